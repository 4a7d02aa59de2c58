from pathlib import Path

import pytest

from agentflow.symbols.build import build
from agentflow.symbols.index import open_index
from agentflow.symbols.repo_map import write_repo_map

FILES = {
    "app/engine.py": "class Engine:\n    def start(self,\n      speed=1):\n        return helper(speed)\n",
    "app/tools.py": "def helper(speed):\n    return speed\n\n\ndef value():\n    return 2\n",
    "app/report.py": "from app.engine import Engine\n\n\ndef tell():\n    return Engine().start()\n",
    "app/other.py": "def unrelated():\n    return 3\n",
    "tests/test_engine.py": "from app.engine import Engine\n\n\ndef test_it():\n    Engine().start()\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    build(tmp_path / "symbols.sqlite", tmp_path, FILES, 60, lambda: False)
    return tmp_path


def written(root: Path, task: str, *shown: str, hidden: str = "") -> str:
    def read(path: str) -> str | None:
        return None if path == hidden else (root / path).read_text()

    with open_index(root / "symbols.sqlite", root) as index:
        return write_repo_map(index, read, task, shown)


def test_the_code_that_a_task_names_comes_with_its_callers(root: Path) -> None:
    text = written(root, "`Engine.start` is slow")
    names, _, chart = text.partition("\n\n")
    assert "- app/engine.py:2: def start(self, speed=1): (Engine)" in names
    assert "used in app/report.py: 5; tests/test_engine.py: 5" in names
    assert chart.splitlines()[2:5] == [
        "app/engine.py",
        "     1 class Engine:",
        "     2   def start(self, speed=1):",
    ]


def test_words_of_plain_english_are_names_only_where_few_files_use_them(root: Path) -> None:
    assert "- app/tools.py:5: def value():" in written(root, "the value is wrong")
    assert "## Code" not in written(root, "the colour is wrong")


def test_the_map_begins_near_the_words_of_the_task(root: Path) -> None:
    def first(task: str) -> str:
        return written(root, task).split("## Map")[1].splitlines()[2]

    assert first("the report misses a line") == "app/report.py"
    assert first("what is other about it?") == "app/other.py"


def test_no_map_where_lines_are_shown_anyhow_and_nothing_of_what_may_not_be_read(root: Path) -> None:
    text = written(root, "fix `helper` and `Engine`", "app/engine.py", hidden="app/tools.py")
    assert "- app/engine.py:1: class Engine:" in text
    assert "def helper" not in text
    assert "## Map" not in text
    assert "app/tools.py" not in written(root, "fix `helper`", hidden="app/tools.py")


def test_without_ranks_there_is_no_map(tmp_path: Path) -> None:
    assert written(tmp_path, "fix `helper`") == ""
