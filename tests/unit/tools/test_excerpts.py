"""Which lines are handed on, and whether a role was shown the lines that it cites."""

from typing import Any

import pytest

from agentflow.core.messages import Message, Speaker, Text, ToolCall, ToolResult
from agentflow.core.role import Citation
from agentflow.tools.excerpts import NEAR, WHOLE_LINES, collect_excerpts, find_definition, was_shown
from agentflow.workspace.path_guard import PathGuard
from tests.unit.tools.bench import Bench

LONG = [f"line {number}" for number in range(1, WHOLE_LINES + 100)]


def cites(*places: tuple[str, int]) -> list[Citation]:
    return [Citation(claim="so", path=path, line=line) for path, line in places]


def test_a_short_file_is_handed_on_whole_and_others_around_the_lines(bench: Bench) -> None:
    bench.file("short.py", "one\ntwo\n")
    bench.file("long.py", "\n".join(LONG))
    found = collect_excerpts(
        PathGuard(bench.root), cites(("long.py", 50), ("short.py", 1), ("long.py", 55), ("long.py", 2))
    )
    shown = [(each.path, each.first, each.first + len(each.lines) - 1, each.is_whole) for each in found]
    assert shown == [
        ("long.py", 1, 2 + NEAR, False),
        ("long.py", 50 - NEAR, 55 + NEAR, False),
        ("short.py", 1, 2, True),
    ]
    assert found[1].lines[NEAR] == "line 50"


@pytest.mark.parametrize(
    ("call", "result", "line", "is_shown"),
    [
        ({"file_path": "./a.py", "offset": 2}, "     2\tb = 2\n[lines 2 to 2 of 9]", 2, True),
        ({"file_path": "a.py", "offset": 2}, "     2\tb = 2\n[lines 2 to 2 of 9]", 3, False),
        ({"file_path": "other.py"}, "     3\tc = 3", 3, False),
        ({"pattern": "c", "path": "a.py"}, "a.py:3:c = 3", 3, True),
        ({"pattern": "c"}, "a.py:3:c = 3", 2, False),
        ({"command": "sed -n 3p src/../a.py"}, "c = 3", 3, True),
        ({"command": "git log -p"}, "+++ b/a.py\n+c = 3", 3, True),
        ({"command": "cat b.py"}, "c = 3", 3, False),
    ],
)
def test_a_line_counts_as_seen_where_a_result_shows_it(
    bench: Bench, call: dict[str, Any], result: str, line: int, *, is_shown: bool
) -> None:
    bench.file("a.py", "a = 1\nb = 2\nc = 3\n")
    name = "Read" if "file_path" in call else "Bash" if "command" in call else "Grep"
    asked = Message(speaker=Speaker.ASSISTANT, parts=(ToolCall(id="1", name=name, input=call),))
    said = Message(speaker=Speaker.USER, parts=(ToolResult(call_id="1", content=result),))
    bench.run = bench.run.replace(messages=(asked, said))
    (one,) = cites(("a.py", line))
    assert was_shown(bench.context(), one) is is_shown


def test_a_line_of_the_brief_counts_as_seen(bench: Bench) -> None:
    bench.file("a.py", "a = 1\nb = 2\n")
    brief = Message(speaker=Speaker.USER, parts=(Text(text="a.py:1\n>   a = 1\n"),))
    bench.run = bench.run.replace(messages=(brief,))
    assert [was_shown(bench.context(), one) for one in cites(("a.py", 1), ("a.py", 2))] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def a():\n    one\n\n    two\n\n\ndef b():\n    x\n", ("def a():", "    one", "", "    two")),
        ("it('a', () => {\n  one;\n});\nit('b');\n", ("it('a', () => {", "  one;", "});")),
    ],
)
def test_a_block_ends_where_what_is_deeper_ends(bench: Bench, text: str, lines: tuple[str, ...]) -> None:
    bench.file("a.txt", text)
    found = find_definition(PathGuard(bench.root), "a.txt", "a")
    assert found is not None
    assert found.lines == lines
    assert find_definition(PathGuard(bench.root), "a.txt", "nowhere") is None


def test_a_block_begins_with_its_decorators(bench: Bench) -> None:
    bench.file("a.py", "x = 1\n@slow\n@cases(\n    1,\n)\ndef test_a(n):\n    assert n\n\ny = 2\n")
    found = find_definition(PathGuard(bench.root), "a.py", "test_a")
    assert found is not None
    assert (found.first, found.lines[0], found.lines[-1]) == (2, "@slow", "    assert n")


def test_a_block_is_where_a_name_is_defined_rather_than_first_named(bench: Bench) -> None:
    bench.file("a.py", '__all__ = ("get",)\n\n\ndef forget():\n    pass\n\n\ndef get():\n    return 1\n')
    found = find_definition(PathGuard(bench.root), "a.py", "get")
    assert found is not None
    assert (found.first, found.lines) == (8, ("def get():", "    return 1"))
