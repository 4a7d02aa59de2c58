"""What decides about a role's commands follows from what the sandbox holds."""

from pathlib import Path

import pytest

from agentflow.core.role import Role
from agentflow.core.routing import Access
from agentflow.library.roles import read_role
from agentflow.permissions.role_rules import is_left_to_sandbox
from agentflow.permissions.rules import parse_rules
from agentflow.sandbox.confine import Ability
from agentflow.sandbox.profile import Level, SandboxOpenings
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import View
from agentflow.tools.shell import BASH

AGENTS = Path(__file__).parents[3] / "agents"


def shipped(name: str) -> Role:
    return read_role(AGENTS / f"{name}.md", "bundled")[0]


def sandbox(level: Level, who: str | None, *network: str) -> Sandbox:
    return Sandbox(root=Path("/r"), ability=Ability(level=level), opened=SandboxOpenings(network=network)).of(
        who
    )


@pytest.mark.parametrize(
    ("name", "full", "partial"),
    [
        ("explorer", True, False),
        ("reviewer", True, False),
        ("verifier", True, False),
        ("implementer", True, True),
    ],
)
def test_what_the_sandbox_does_not_hold_is_judged(name: str, *, full: bool, partial: bool) -> None:
    held = [is_left_to_sandbox(shipped(name), BASH, sandbox(level, name)) for level in Level]
    assert held == [full, partial, False]


def test_a_network_leaves_a_reader_to_its_list() -> None:
    assert not is_left_to_sandbox(shipped("explorer"), BASH, sandbox(Level.FULL, "explorer", "explorer"))


def test_a_view_whose_changes_stay_leaves_a_reader_to_its_list() -> None:
    view = sandbox(Level.FULL, "explorer").switch_to_view(View(folder=Path("/v")))
    assert not is_left_to_sandbox(shipped("explorer"), BASH, view)
    assert view.access is Access.READ


def test_a_role_file_of_the_user_means_what_it_lists() -> None:
    own = shipped("verifier").replace(origin="project")
    assert not is_left_to_sandbox(own, BASH, sandbox(Level.FULL, "verifier"))


@pytest.mark.parametrize("who", ["implementer", None])
def test_a_bounded_role_beside_another_has_its_list(who: str | None) -> None:
    child = shipped("reviewer").replace(part=None, tools=parse_rules("Bash(git diff *)", ""))
    assert not is_left_to_sandbox(child, BASH, sandbox(Level.FULL, who))
