"""What a second list of tools leaves of a first one."""

import pytest

from agentflow.permissions.rules import narrow_rules, parse_rules
from agentflow.tools.registry import make_standard_toolbox

CASES = (
    ("Read Grep Bash", "Read Bash(git diff:*)", "Read Bash(git diff:*)"),
    ("Bash(git diff:*)", "Bash", "Bash(git diff:*)"),
    ("Bash(git *)", "Bash(git diff:*)", "Bash(git diff:*)"),
    ("Bash(git diff:*)", "Bash(git:*)", "Bash(git diff:*)"),
    ("Bash(ruff check:*)", "Bash(git:*)", ""),
    ("Read", "Read Edit Write WebFetch", "Read"),
    ("fs", "Read Edit", "Edit Read"),
    ("Read Bash", "fs", "Read"),
    ("Read", "", ""),
)


@pytest.mark.parametrize(("held", "left", "expected"), CASES)
def test_a_list_only_takes_away(held: str, left: str, expected: str) -> None:
    rules = narrow_rules(parse_rules(held, "a"), parse_rules(left, "b"), make_standard_toolbox().tools)
    assert sorted(map(str, rules)) == sorted(map(str, parse_rules(expected, "c")))
