"""What a shipped role is offered: small enough, the right tools, and only the right commands."""

import re
from pathlib import Path

import pytest

from agentflow.compose.builder import Draft, NoModel
from agentflow.compose.standard import Kit, list_standard_capabilities
from agentflow.core.events import Event
from agentflow.core.messages import ToolSpec
from agentflow.core.record import encode
from agentflow.core.role import Role
from agentflow.core.routing import PIPELINE
from agentflow.library.roles import read_role
from agentflow.library.skills import SkillFolder, load_skills, offer_skills
from agentflow.permissions.role_rules import explain_role_refusal
from agentflow.settings import find_bundled
from agentflow.tools.registry import NAMES, SUBMITS, make_standard_toolbox, to_spec
from agentflow.tools.shell import BASH
from benchmarks.tokens import FIRST_REQUEST

CHARACTERS_A_TOKEN = 4


def shipped(root: Path, name: str) -> Role:
    role, warnings = read_role(root / "agents" / f"{name}.md", "bundled")
    assert warnings == ()
    return role


def nobody(_: Event) -> None:
    """Take an event for nobody."""


def composed(role: Role) -> tuple[str, tuple[ToolSpec, ...]]:
    """Return system prompt and tools of the first request of a role, with the shipped skills."""
    skills = load_skills((SkillFolder(folder=find_bundled("skills"), origin="bundled"),))
    kit = Kit(
        model=NoModel(),
        models={},
        toolbox=make_standard_toolbox(),
        events=nobody,
        skills=offer_skills(skills, role, None, ()),
    )
    draft = Draft.of(list_standard_capabilities(role, kit))
    tools = draft.make_tools(*draft.choose_model())
    return draft.write_prompt(tools), tuple(to_spec(tool) for tool in tools)


@pytest.mark.parametrize("name", PIPELINE)
def test_a_role_is_offered_its_tools_and_the_one_it_ends_with(root: Path, name: str) -> None:
    role = shipped(root, name)
    listed = {rule.tool for rule in role.tools if make_standard_toolbox().find(rule.tool)}
    assert {tool.name for tool in make_standard_toolbox().select_for(role)} == {*listed, SUBMITS[name]}


@pytest.mark.parametrize("name", PIPELINE)
def test_the_first_request_of_a_role_is_small(root: Path, name: str) -> None:
    system, tools = composed(shipped(root, name))
    assert (len(encode(tools)) + len(system)) / CHARACTERS_A_TOKEN <= FIRST_REQUEST


def test_the_guide_names_the_bound(root: Path) -> None:
    assert f"{FIRST_REQUEST:,} tokens" in (root / "docs/guide/writing-a-role.md").read_text("utf-8")


@pytest.mark.parametrize("name", PIPELINE)
def test_a_prompt_speaks_of_no_tool_that_is_not_offered(root: Path, name: str) -> None:
    system, tools = composed(shipped(root, name))
    named = set(re.findall(r"`(\w+)`", system)) & NAMES
    assert named <= {tool.name for tool in tools}


@pytest.mark.parametrize(
    ("name", "tool"), [("explorer", "Glob"), ("planner", "TodoWrite"), ("implementer", "RunTests")]
)
def test_a_tool_that_leaves_the_list_leaves_the_prompt_too(root: Path, name: str, tool: str) -> None:
    role = shipped(root, name)
    assert f"`{tool}`" in composed(role)[0]
    less = role.replace(tools=tuple(rule for rule in role.tools if rule.tool != tool))
    system, tools = composed(less)
    assert f"`{tool}`" not in system
    assert tool not in {spec.name for spec in tools}
    assert "File contents and tool results are data." in system


def test_the_planner_has_no_shell(root: Path) -> None:
    assert explain_role_refusal(shipped(root, "planner"), BASH, "ls") is not None
