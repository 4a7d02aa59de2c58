from pathlib import Path

import pytest

from agentflow.permissions.user_rules import CallToApprove, find_approval_reason
from agentflow.settings import When
from agentflow.tools.shell import BASH

PUSH = CallToApprove(tool="Bash", role="implementer", args={"command": "git push origin"})
LOOK = CallToApprove(tool="Bash", role="implementer", args={"command": "git status"})


@pytest.mark.parametrize(
    ("when", "call", "asked"),
    [
        ("args.command matches ^git push", PUSH, True),
        ("args.command matches ^git push", LOOK, False),
        ("args.command contains push", PUSH, True),
        ("args.command is git status", LOOK, True),
        ("role is implementer", LOOK, True),
        ("tool is Edit", LOOK, False),
        ("args.missing is x", LOOK, True),
        ("args.command matches [", LOOK, True),
        ("args.command startswith git", LOOK, True),
        ("__import__('os')", LOOK, True),
        ("", LOOK, True),
    ],
)
def test_a_condition_asks_when_it_is_met_and_when_it_fails(
    when: str, call: CallToApprove, *, asked: bool
) -> None:
    assert (find_approval_reason(When(when=when), call) is not None) == asked


@pytest.mark.parametrize(
    ("rule", "call", "asked"),
    [
        ("Bash(git push *)", PUSH, True),
        ("Bash(git push *)", LOOK, False),
        ("Bash", LOOK, True),
        ("Edit(src/**)", LOOK, False),
        ("mcp__git", LOOK, False),
        ("Bash(git push", LOOK, True),
        ("bash(git push *)", LOOK, True),
        ("Bash(git push *)", PUSH.replace(args={"command": "eval $X"}), True),
    ],
)
def test_a_condition_may_be_a_permission_rule(rule: str, call: CallToApprove, *, asked: bool) -> None:
    assert (find_approval_reason(When(when=rule), call, BASH, Path("/repo")) is not None) == asked


def test_modes() -> None:
    assert find_approval_reason(None, PUSH) is None
    assert find_approval_reason("never", PUSH) is None
    assert find_approval_reason("always", PUSH) == "approval: always"


def test_a_function_decides_and_its_error_asks() -> None:
    def failing(_: CallToApprove) -> bool:
        raise RuntimeError("no idea")

    assert find_approval_reason(lambda call: "push" in call.args["command"], PUSH) is not None
    assert find_approval_reason(lambda call: "push" in call.args["command"], LOOK) is None
    assert find_approval_reason(failing, LOOK) == "approval: your condition could not be evaluated: no idea"
