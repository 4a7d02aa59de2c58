import pytest

from agentflow.core.errors import InvalidFile
from agentflow.core.role import ToolRule
from agentflow.permissions.rules import parse_rules

EXPECTED = (
    ToolRule(tool="Read"),
    ToolRule(tool="Bash", pattern="git diff:*"),
    ToolRule(tool="Bash", pattern="pytest -k (a, b)"),
    ToolRule(tool="mcp__server__tool-1"),
)


@pytest.mark.parametrize(
    "spelling",
    [
        ["Read", "Bash(git diff:*)", "Bash(pytest -k (a, b))", "mcp__server__tool-1"],
        '["Read", "Bash(git diff:*)", "Bash(pytest -k (a, b))", "mcp__server__tool-1"]',
        "Read, Bash(git diff:*), Bash(pytest -k (a, b)), mcp__server__tool-1",
        "Read Bash(git diff:*) Bash(pytest -k (a, b)) mcp__server__tool-1",
        " Read,Bash(git diff:*)\n Bash(pytest -k (a, b)),,\tmcp__server__tool-1 ",
    ],
)
def test_all_spellings_mean_the_same(spelling: object) -> None:
    assert parse_rules(spelling, "a.md") == tuple(rule.replace(source="a.md") for rule in EXPECTED)


@pytest.mark.parametrize("nothing", ["", "  ", [], "[]", ","])
def test_an_empty_list_has_no_rules(nothing: object) -> None:
    assert parse_rules(nothing, "a.md") == ()


def test_a_rule_is_spelled_as_it_was_read() -> None:
    assert [str(rule) for rule in parse_rules("Read Bash(ls *)", "a.md")] == ["Read", "Bash(ls *)"]


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        7,
        {"Read": True},
        [7],
        [None],
        [["Read"]],
        [""],
        ["Read, Grep"],
        "Bash(ls",
        "Bash ls)",
        "Bash)ls(",
        "Bash()",
        "Bash( )",
        "(ls)",
        "Bash(ls)x",
        "Bash(a)(b)",
        ["Bash(a)b)"],
        ["Bash((a)"],
        "Re;ad",
        "-Read",
        "9Read",
        "[Read, Grep]",
        '["Read"',
        '["Read"] x',
    ],
)
def test_a_malformed_entry_names_the_file(malformed: object) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_rules(malformed, "agents/a.md")
    assert str(caught.value).startswith("agents/a.md: ")
