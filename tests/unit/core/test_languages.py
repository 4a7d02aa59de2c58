import pytest

from agentflow.core.languages import is_document_path


@pytest.mark.parametrize(
    "path",
    [
        *("README.md", "CHANGES", "docs/guide.md", "releasenotes/notes/fix-empty-7b1e9c4a.yaml"),
        *("newsfragments/123.bugfix", "newsfragments/123.bugfix.1.rst", "changes/123.feature.md"),
        *("src/pkg/newsfragments/+fix.misc.txt", ".changeset/brave-cats.md", "changelog.d/20260102_fix.rst"),
    ],
)
def test_what_is_written_for_people_is_a_document(path: str) -> None:
    assert is_document_path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("src/README.py", "docs/conf.py", "releasenotes/source/conf.py", "releasenotes/notes/x.py"),
        *("changelog.d/run.sh", "changes/rates.yaml", "news/index.md", "newsfragments/template.py"),
        *("data/notes/fix.yaml", ".changeset/config.json"),
    ],
)
def test_what_a_program_may_read_is_none(path: str) -> None:
    assert not is_document_path(path)
