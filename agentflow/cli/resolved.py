"""A role as it would be run here: what its capabilities come to, and where each part comes from."""

import os
from pathlib import Path
from typing import Any

from agentflow.api.content import Content, toolbox_here
from agentflow.api.models import with_chosen
from agentflow.api.wiring import governed, hooks_here, permitted, rules_here, shared_capabilities
from agentflow.compose.agents import Handoffs
from agentflow.compose.builder import Draft, NoModel
from agentflow.compose.capability import Capability, Settled
from agentflow.compose.standard import Kit, list_standard_capabilities
from agentflow.compose.subagents import SubagentRequest, Subagents
from agentflow.core.errors import NotAllowed
from agentflow.core.record import Record, plain
from agentflow.core.role import SUBMITTED_BY, Role
from agentflow.core.run import Run
from agentflow.core.tool import Tool
from agentflow.hooks.chain import Chain
from agentflow.library.skills import Offer, offer
from agentflow.library.subagents import subagents
from agentflow.model.tiers import first_ids, model_id, tier
from agentflow.routing.route import ROLE_OF
from agentflow.settings import load_settings, model_name

Fact = tuple[str, str, str]
"""A label, what it says, and where that comes from."""


class Resolved(Record):
    prompt: str
    facts: tuple[Fact, ...]
    told: dict[str, Any]
    """The same as plain values."""
    tools: tuple[Tool, ...]
    """Those that it is offered, the one that ends its run too."""


def resolved(role: Role, content: Content, root: Path) -> Resolved:
    """Return what the capabilities of its crew and the settings here make of a role."""
    settings = load_settings(os.environ)
    settings = with_chosen(settings, model_name(None, settings, os.environ))
    rules, ids = rules_here(root), first_ids(settings.models)
    hooks, _ = hooks_here(root)
    toolbox = governed(toolbox_here(root), content.roles, hooks, rules, settings.approvals)
    role = permitted(role, rules, toolbox)
    phase = next((phase for phase, part in ROLE_OF.items() if part == role.part), None)
    skills = offer(content.skills, role, phase, ())
    kit = Kit(model=NoModel(), models=ids, toolbox=toolbox, events=nobody, skills=skills)
    shared = shared_capabilities(hooks, rules, settings.approvals)
    draft = Draft.of((*list_standard_capabilities(role, kit), *_others(role, content), *shared))
    tools = draft.make_tools(*draft.choose_model())
    prompt, limits = draft.write_prompt(tools), plain(role.limits)
    bounds = ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in limits.items() if value)
    named = [f"{hook.name} at {hook.point} ({hook.origin.name.lower()})" for hook in Chain(draft.hooks).hooks]
    facts: list[Fact] = [
        ("source", role.source, role.origin),
        (
            "tier",
            f"{tier(role.model)}, {model_id(role.model, ids)}",
            role.place("model"),
        ),
        *(("tool", _spelled(tool, role), _giver(tool, role)) for tool in tools),
        *(("skill", name, source) for name, source in _skills(skills)),
        *(("hook", name, "") for name in named),
        ("limits", bounds, role.place("maxTurns" if "maxTurns" in role.lines else "limits")),
    ]
    told = {
        "limits": limits,
        "prompt": prompt,
        "offered": [tool.name for tool in tools],
        "hooks": named,
        "sources": [{"part": part, "value": value, "source": source} for part, value, source in facts],
    }
    return Resolved(prompt=prompt, facts=tuple(facts), told=told, tools=tools)


def _others(role: Role, content: Content) -> tuple[Capability, ...]:
    """Return what lets a role give work to sub-agents, or hand a conversation over to one."""
    known = subagents(content.roles.all)
    given = Subagents(role=role, depth=0, known=known, run=_refuse_to_run)
    return given, Handoffs(role=role, known=known)


def _spelled(tool: Tool, role: Role) -> str:
    return ", ".join(map(str, role.rules_for(tool.name))) or tool.name


def _giver(tool: Tool, role: Role) -> str:
    """Return what gives a role this tool."""
    if tool.input in SUBMITTED_BY:
        return f"the part it plays, {role.part}"
    return "skills" if tool.granted else role.place("tools")


def _skills(skills: Offer) -> list[tuple[str, str]]:
    opened = [(f"{skill.name}, open from the beginning", skill.source) for skill in skills.opened]
    return opened + [(skill.name, skill.source) for skill in skills.listed]


async def _refuse_to_run(request: SubagentRequest, _: Settled) -> Run:
    raise NotAllowed(f"{request.role.name} is shown here and not run")


def nobody(_: object) -> None:
    """Take an event for nobody."""
