import subprocess
from pathlib import Path

import pytest

from agentflow.core.errors import ModelRejected
from agentflow.repair.sources import read_sources
from agentflow.workspace.git import open_repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def base_of(root: Path, **files: bytes) -> str:
    for name, raw in files.items():
        (root / f"{name}.py").write_bytes(raw)
    return open_repository(root).write_tree()


def test_what_changed_since_a_tree_is_read_as_it_was(root: Path) -> None:
    base = base_of(root, a=b"x = 1\r\n", b=b"x = '\xc3\xa4'", c=b"x = 1\n")
    (root / "a.py").write_bytes(b"x = 2\r\n")
    (root / "b.py").write_bytes(b"x = 2\n")
    (root / "new.py").write_bytes(b"")
    sources = read_sources(root, base)
    assert sources.overlay == {"a.py": b"x = 1\r\n", "b.py": b"x = '\xc3\xa4'"}
    assert [sources.read(name) for name in ("b.py", "c.py")] == [b"x = '\xc3\xa4'", b"x = 1\n"]


@pytest.mark.parametrize(
    ("attributes", "name", "raw"),
    [
        ("*.py working-tree-encoding=latin-1\n", "a.py", b"x = '\xe4'\r\n"),
        ("", "a.py", b"x = '\xe4'\n"),
        ("", "a\nb.py", b"x = 2\n"),
    ],
)
def test_a_file_that_git_cannot_give_back_as_it_was_is_refused(
    root: Path, attributes: str, name: str, raw: bytes
) -> None:
    (root / ".gitattributes").write_text(attributes)
    (root / name).write_bytes(b"x = 1\r\n")
    base = base_of(root)
    (root / name).write_bytes(raw)
    with pytest.raises(ModelRejected, match="cannot be taken back"):
        read_sources(root, base)


def test_line_ends_are_taken_back_as_they_were(root: Path) -> None:
    (root / ".gitattributes").write_text("*.py text eol=crlf\n")
    (root / "a.py").write_bytes(b"x = 1\r\ny = 1\n")
    base = base_of(root)
    (root / "a.py").write_bytes(b"x = 2\r\ny = 1\n")
    assert read_sources(root, base).overlay == {"a.py": b"x = 1\r\ny = 1\n"}


def test_without_a_tree_nothing_is_taken_back(root: Path) -> None:
    base_of(root, a=b"x = 1\n")
    assert read_sources(root, None).overlay == {}
