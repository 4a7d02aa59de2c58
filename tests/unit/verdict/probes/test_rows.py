import pytest

from agentflow.verdict.probes.rows import split_tables
from agentflow.workspace.mixed_tree import ChangedTexts

TABLE = """TAXES = {
    "DE": 19,
    "FR": 20,
    "IT": 22,
}
"""
STATES = """from enum import Enum


class State(Enum):
    OPEN = 1
    PAID = 2

    def text(self):
        return {"a": 1, "b": 2}
"""


def a_change(after: str, before: str = "") -> ChangedTexts:
    return ChangedTexts(path="tax.py", before=before, after=after, modes=("100644", "100644"))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("", TABLE, ["tax.py:2", "tax.py:3", "tax.py:4"]),
        (TABLE.replace('    "FR": 20,\n', ""), TABLE, ["tax.py:3"]),
        ("", "TAXES = {'DE': 19, 'FR': 20}\n", ["tax.py:1", "tax.py:1"]),
        ("", STATES, ["tax.py:5", "tax.py:6"]),
        ("", "TAXES = {'DE': 19}\n", []),
        ("", "TAXES = {**OLD, 'DE': 19}\n", []),
        ("", "DO = {'a': lambda: 1, 'b': lambda: 2}\n", []),
        (TABLE, TABLE.replace(",\n}", "\n}"), []),
        ("", "def f(\n", []),
    ],
)
def test_each_new_row_can_be_taken_out(before: str, after: str, told: list[str]) -> None:
    assert [each.hunk.place for each in split_tables((a_change(after, before),), 8)] == told


def test_what_is_left_without_a_row() -> None:
    first, *_ = split_tables((a_change(TABLE),), 8)
    assert first.hunk.wanted == "that fails without `'DE': 19`"
    assert first.take_out() == {"tax.py": "TAXES = {'FR': 20, 'IT': 22}"}
    _, paid = split_tables((a_change(STATES),), 8)
    assert "    OPEN = 1\n    pass\n" in (paid.take_out()["tax.py"] or "")


def test_many_rows_are_taken_out_together() -> None:
    more, less = split_tables((a_change(TABLE),), 2)
    assert (more.hunk.place, less.hunk.place) == ("tax.py:2-3", "tax.py:4")
    assert more.take_out() == {"tax.py": "TAXES = {'IT': 22}"}


@pytest.mark.parametrize(
    ("path", "after", "told"),
    [
        ("a.js", "const TAXES = {\n  DE: 19,\n  'FR': 20\n};\n", ["a.js:2", "a.js:3"]),
        ("a.ts", "export enum State {\n  OPEN = 'open',\n  PAID = 2,\n}\n", ["a.ts:2", "a.ts:3"]),
        ("a.go", 'var taxes = map[string]int{\n\t"DE": 19,\n\t"FR": 20,\n}\n', ["a.go:2", "a.go:3"]),
        ("a.js", "function f() {\n  return [\n    1,\n    g(2),\n  ];\n}\n", []),
        ("a.ts", "interface A {\n  name: string;\n}\n", []),
        ("a.json", '{\n  "DE": 19,\n  "FR": 20\n}\n', []),
    ],
)
def test_rows_of_other_languages_stand_on_lines_of_their_own(path: str, after: str, told: list[str]) -> None:
    change = ChangedTexts(path=path, before="", after=after, modes=("100644", "100644"))
    found = split_tables((change,), 8)
    assert [each.hunk.place for each in found] == told
    lines = after.splitlines(keepends=True)
    for each in found:
        left = [row for at, row in enumerate(lines, 1) if at != each.hunk.line]
        assert each.take_out() == {path: "".join(left)}
