"""What decides about a role's commands follows from what the sandbox holds."""

from pathlib import Path

import pytest

from agentflow.core.role import Role
from agentflow.library.roles import read_role
from agentflow.permissions.role_rules import CommandScope, find_scope
from agentflow.permissions.rules import parse_rules
from agentflow.sandbox.confine import Ability
from agentflow.sandbox.profile import Level, SandboxOpenings
from agentflow.sandbox.run import Sandbox
from agentflow.tools.shell import BASH

AGENTS = Path(__file__).parents[3] / "agents"
LISTED, READING, LOOKING, ANYTHING = CommandScope


def shipped(name: str) -> Role:
    return read_role(AGENTS / f"{name}.md", "bundled")[0]


def sandbox(level: Level, who: str | None, *network: str) -> Sandbox:
    return Sandbox(root=Path("/r"), ability=Ability(level=level), opened=SandboxOpenings(network=network)).of(
        who
    )


@pytest.mark.parametrize(
    ("name", "full", "partial", "none"),
    [
        ("explorer", LOOKING, LISTED, LISTED),
        ("reviewer", READING, LISTED, LISTED),
        ("verifier", ANYTHING, LISTED, LISTED),
        ("implementer", ANYTHING, ANYTHING, LISTED),
    ],
)
def test_what_the_sandbox_does_not_hold_is_judged(
    name: str, full: CommandScope, partial: CommandScope, none: CommandScope
) -> None:
    found = [find_scope(shipped(name), BASH, sandbox(level, name)) for level in Level]
    assert found == [full, partial, none]


def test_a_network_leaves_a_reader_to_its_list() -> None:
    assert find_scope(shipped("explorer"), BASH, sandbox(Level.FULL, "explorer", "explorer")) is LISTED


def test_a_role_file_of_the_user_means_what_it_lists() -> None:
    own = shipped("verifier").replace(origin="project")
    assert find_scope(own, BASH, sandbox(Level.FULL, "verifier")) is READING


def test_a_bounded_role_beside_a_writer_has_its_list() -> None:
    child = shipped("reviewer").replace(part=None, tools=parse_rules("Bash(git diff *)", ""))
    assert find_scope(child, BASH, sandbox(Level.FULL, "implementer")) is LISTED
    assert find_scope(child, BASH, sandbox(Level.FULL, None)) is READING
