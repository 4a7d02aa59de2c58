import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from agentflow.core.errors import ToolError
from agentflow.symbols.build import build
from agentflow.symbols.index import open_index

FILES = {
    "pkg/core.py": "class Engine:\n    def start(self):\n        return helper()\n",
    "pkg/tools.py": "def helper():\n    return 1\n",
    "pkg/app.py": "from pkg.core import Engine\n\ndef run():\n    Engine().start()\n",
    "tests/test_app.py": "from pkg.app import run\n\ndef helper():\n    run()\n",
    "README.md": "Engine\n",
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "symbols.sqlite"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "repository")


def write(root: Path, files: dict[str, str] = FILES) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def bring(database: Path, root: Path, paths: Iterable[str] = FILES) -> bool:
    return build(database, root, paths, 60, lambda: False)


def bring_settled(database: Path, root: Path) -> None:
    """Bring it up to date until no file is so new that it may change once more unseen."""
    stale = ["?"]
    while stale:
        bring(database, root)
        with open_index(database, root) as index:
            stale = index.find_stale(FILES)[0]


def where(database: Path, root: Path, name: str) -> list[str]:
    with open_index(database, root) as index:
        return [f"{path}:{one.first}" for path, one in index.find_definitions([name])]


def test_definitions_uses_and_ranks_of_a_folder(database: Path, root: Path) -> None:
    assert bring(database, root)
    assert where(database, root, "helper") == ["pkg/tools.py:1", "tests/test_app.py:3"]
    with open_index(database, root) as index:
        assert index.find_files_with("Engine") == ("pkg/app.py", "pkg/core.py")
        assert index.find_similar_names("ELP") == ("helper",)
        assert [each.name for each in index.read_outline("pkg/core.py")] == ["Engine", "start"]
        graph = index.load_graph()
    assert graph is not None
    ranks = dict(zip(graph.paths, graph.ranks, strict=True))
    # a product file is not taken to use the helper of a test
    assert ranks["tests/test_app.py"] == min(ranks.values())
    assert ranks["pkg/tools.py"] > ranks["pkg/app.py"]


def test_only_what_changed_is_read_again(database: Path, root: Path) -> None:
    bring_settled(database, root)
    write(root, {"pkg/tools.py": "\ndef assist():\n    return 1\n"})
    (root / "pkg/app.py").unlink()
    with open_index(database, root) as index:
        assert index.find_stale(FILES)[0] == ["pkg/tools.py"]
    bring(database, root)
    assert where(database, root, "assist") == ["pkg/tools.py:2"]
    assert where(database, root, "helper") == ["tests/test_app.py:3"]
    assert where(database, root, "run") == []


def test_a_copy_elsewhere_has_places_of_its_own(database: Path, root: Path, tmp_path: Path) -> None:
    bring(database, root)
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    assert where(database, copy, "helper") == []
    bring(database, copy)
    write(copy, {"pkg/tools.py": "def other():\n    return 1\n"})
    bring(database, copy)
    assert where(database, copy, "other") == ["pkg/tools.py:1"]
    assert where(database, root, "helper") == ["pkg/tools.py:1", "tests/test_app.py:3"]


def test_a_name_that_would_be_text_of_a_prompt_is_left_out(database: Path, root: Path) -> None:
    write(root, {"a\n# Task\nb.py": "def odd(): pass\n"})
    bring(database, root, (*FILES, "a\n# Task\nb.py"))
    assert where(database, root, "odd") == []


def test_a_link_that_leads_out_is_not_followed(database: Path, root: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"secret.py": "def hidden(): pass\n"})
    (root / "link.py").symlink_to(tmp_path / "elsewhere/secret.py")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    assert bring(database, root, (*FILES, "link.py", "folder/secret.py"))
    assert where(database, root, "hidden") == []


@pytest.mark.parametrize("content", [b"", b"no database\n" * 100])
def test_a_file_that_is_no_index_is_made_again(database: Path, root: Path, content: bytes) -> None:
    database.parent.mkdir()
    database.write_bytes(content)
    if content:
        with pytest.raises(ToolError, match="damaged"):
            bring(database, root)
    assert bring(database, root)
    assert where(database, root, "Engine") == ["pkg/core.py:1"]


def test_a_large_repository_is_read_and_ranked_by_other_processes(database: Path, root: Path) -> None:
    lines = "".join(f"def f_{number}(): return f_{number + 1}()\n" for number in range(10_000))
    many = {f"large/m{number}.py": f"{lines}# {number}\n" for number in range(4)}
    assert bring(database, write(root, many), (*FILES, *many))
    assert where(database, root, "f_9999") == [f"large/m{number}.py:10000" for number in range(4)]
    with open_index(database, root) as index:
        assert index.is_ranked()
    write(root, {name: f"# new\n{text}" for name, text in many.items()})
    assert not build(database, root, many, 60, lambda: True)


def test_processes_may_build_at_the_same_time(database: Path, root: Path, tmp_path: Path) -> None:
    given = tmp_path / "paths"
    given.write_text("\0".join(FILES))
    argv = (sys.executable, "-P", "-m", "agentflow.symbols.build", str(database), str(root))
    with given.open() as first, given.open() as second:
        begun = [subprocess.Popen(argv, stdin=each) for each in (first, second)]
        assert [each.wait() for each in begun] == [0, 0]
    assert where(database, root, "Engine") == ["pkg/core.py:1"]
