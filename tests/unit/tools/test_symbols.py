from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.errors import InvalidInput, NotAllowed
from agentflow.core.tool import Output
from agentflow.parse import fit
from agentflow.tools.symbols import REFERENCES, RENAME, SYMBOLS
from tests.support.tools import tool_named
from tests.unit.tools.bench import Bench

FILES = {
    "a.py": "class Engine:\n    def start(self): pass\n\n\ndef helper():  # helper\n    return 'helper'\n",
    "b.py": "from a import Engine, helper\nhelper()\nEngine().start()\n",
    "c.ts": "export function helperTwo(): void {}\nhelperTwo();\n",
    "d.py": "class Motor:\n    def start(self): pass\n",
    "README.md": "Call helper.\n",
}


@pytest.fixture
def code(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("AGENTFLOW_HOME", str(tmp_path / "home"))
    for path, text in FILES.items():
        bench.file(path, text)
    return bench


@pytest.fixture
def rename(code: Bench) -> Callable[..., Output]:
    """Return Rename, the inner calls of which are made as the loop makes them."""

    def call(**given: Any) -> Output:
        context = code.context()

        def make(name: str, wanted: dict[str, Any]) -> None:
            tool = tool_named(name)
            tool.call(fit(tool.input, wanted), context)

        allowed = context.replace(shell=context.shell.replace(make=make))
        return RENAME.call(fit(RENAME.input, given), allowed)

    return call


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("start", "a.py:2: def start(self): pass (Engine)\nd.py:2: def start(self): pass (Motor)"),
        ("Motor.start", "d.py:2: def start(self): pass (Motor)"),
        ("HELP", "a.py:5: def helper(): # helper\nc.ts:1: export function helperTwo(): void {}"),
        ("nothing", "no such definition"),
    ],
)
def test_symbols_are_found_by_name_owner_and_part(code: Bench, query: str, found: str) -> None:
    assert code(SYMBOLS, query=query).content == found


def test_references_are_uses_in_code(code: Bench) -> None:
    expected = "b.py:1: from a import Engine, helper\nb.py:2: helper()"
    assert code(REFERENCES, symbol="helper").content == expected
    code.file("b.py", "")
    assert code(REFERENCES, symbol="helper").content == "no uses"


def test_a_rename_changes_code_and_tells_what_it_leaves(code: Bench, rename: Callable[..., Output]) -> None:
    told = rename(symbol="helper", to="assist").content
    assert "a.py:5: def helper():  # helper" in told
    assert (code.root / "a.py").read_text() == FILES["a.py"].replace("def helper", "def assist")
    assert (code.root / "b.py").read_text() == FILES["b.py"].replace("helper", "assist")
    left = told.partition("not changed, as it is text:\n")[2].splitlines()
    assert [line.partition(": ")[0] for line in left] == ["README.md:1", "a.py:5", "a.py:6"]
    assert rename(symbol="helperTwo", to="twice").content.startswith("renamed")
    assert (code.root / "c.ts").read_text() == FILES["c.ts"].replace("helperTwo", "twice")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"symbol": "start", "to": "begin"}, NotAllowed, "defined 2 times, at a.py:2, d.py:2"),
        ({"symbol": "helper", "to": "Engine"}, NotAllowed, "Engine is a name in a.py, b.py already"),
        ({"symbol": "nothing", "to": "begin"}, InvalidInput, "no such definition"),
        ({"symbol": "helper", "to": "a b"}, InvalidInput, "not another name"),
    ],
)
def test_what_is_not_renamed(
    rename: Callable[..., Output], given: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        rename(**given)


def test_a_rename_within_a_path_leaves_the_same_name_elsewhere(
    code: Bench, rename: Callable[..., Output]
) -> None:
    rename(symbol="d.py:start", to="begin")
    assert "def begin" in (code.root / "d.py").read_text()
    assert (code.root / "a.py").read_text() == FILES["a.py"]


def test_a_refused_write_is_told(code: Bench) -> None:
    output = RENAME.call(fit(RENAME.input, {"symbol": "helper", "to": "assist"}), code.context())
    assert output.is_error
    assert output.content.startswith("stopped after no file")
