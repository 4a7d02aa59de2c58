"""The skills that a run has opened, read off its messages, and what the one in use allows."""

import re
from collections.abc import Iterator

from agentflow.core.errors import InvalidFile, NotAllowed
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.regex import regex
from agentflow.core.role import Role
from agentflow.core.routing import SUBMITTED_BY
from agentflow.core.run import Run
from agentflow.core.tool import Category, Tool
from agentflow.permissions.rules import parse_rules
from agentflow.redact import make_visible

SKILL_TOOL = "Skill"
_NEVER_BOUND = (Category.STATE, Category.ASK)
ALREADY_OPEN, CLOSED = "is already open above", "is closed"
_USED = regex(rf'\A<skill name="|\A\S+ (?:{ALREADY_OPEN}|{CLOSED})\Z')
_BEGINNING = regex(r'(?m)^<skill name="(?P<name>[^"\n]*)"')
_ALLOWED = regex(r'<skill name="[^"\n]*" allowed-tools="(?P<tools>[^"\n]*)">')


def mark_skill(name: str, allowed: tuple[str, ...] = ()) -> str:
    tools = f' allowed-tools="{_quote(" ".join(allowed))}"' if allowed else ""
    return f"{_begin(name)}{tools}>"


def is_skill_open(run: Run, name: str, call_id: str) -> bool:
    """Return whether a run already shows a skill, or will after the calls before this one."""
    if _begin(name) in run.head.system:
        return True
    for call, result in _list_openings(run):
        if call.id == call_id:
            return False
        is_meant = call.input.get("skill") == name and not call.input.get("close")
        if is_meant and (result is None or _shows(result, name)):
            return True
    return False


def list_opened_names(run: Run) -> tuple[tuple[str, bool], ...]:
    """Return the skills that a run shows, and whether each was open from the beginning."""
    started = {found["name"]: True for found in _BEGINNING.finditer(run.head.system)}
    called = {
        str(call.input.get("skill")): False
        for call, result in _list_openings(run)
        if result and _shows(result, str(call.input.get("skill")))
    }
    return tuple((started | called).items())


def list_active_names(run: Run) -> tuple[str, ...]:
    """Return the skills that a run has opened, from the beginning or by a call, and not closed since."""
    active = dict.fromkeys(found["name"] for found in _BEGINNING.finditer(run.head.system))
    for call, result in _list_openings(run):
        name = str(call.input.get("skill"))
        if result is None or not (_shows(result, name) or _USED.search(result.content)):
            continue
        if call.input.get("close"):
            active.pop(name, None)
        else:
            active[name] = None
    return tuple(active)


def find_skill_bounds(run: Run) -> Role | None:
    """Return what the skill in use allows, as a role that lists it; None where nothing is bounded.

    A skill is in use from the call that opens it until another one is opened or it is closed.
    """
    used = [(call, result) for call, result in _list_openings(run) if result and _USED.search(result.content)]
    if not used or used[-1][0].input.get("close"):
        return None
    name = str(used[-1][0].input.get("skill"))
    texts = (result.content for call, result in used if call.input.get("skill") == name)
    found = next((_ALLOWED.match(text) for text in texts if text.startswith(_begin(name))), None)
    return _to_bounds(name, found["tools"].replace("&quot;", '"')) if found else None


def require_allowed_by_skill(bounds: Role, tool: Tool) -> None:
    """Raise NotAllowed for a tool that the skill in use does not list; what ends a run is always allowed."""
    if tool.granted or tool.category in _NEVER_BOUND or tool.input in SUBMITTED_BY:
        return
    if not bounds.list_rules_in(tool.name, tool.category):
        name = bounds.description
        raise NotAllowed(
            f"{bounds.name} allows only {', '.join(map(str, bounds.tools))} while it is in use; "
            f'when its work is done, call {SKILL_TOOL} with {{"skill": "{name}", "close": true}}',
            by=bounds.name,
        )


def _to_bounds(name: str, tools: str) -> Role | None:
    try:
        rules = parse_rules(tools, name)
    except InvalidFile:
        return None
    return Role(
        name=f"the skill {name}",
        description=name,
        model="",
        tools=rules,
        prompt="",
        source=name,
        origin="skill",
    )


def _list_openings(run: Run) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    parts = (part for message in run.messages for part in message.parts)
    results = {part.call_id: part for part in (*parts, *run.answers) if isinstance(part, ToolResult)}
    for call in (call for message in run.messages for call in message.calls):
        if call.name == SKILL_TOOL and not call.input.get("file"):
            yield call, results.get(call.id)


def _shows(result: ToolResult, name: str) -> bool:
    return re.match(rf"{re.escape(_begin(name))}[ >]", result.content) is not None


def _begin(name: str) -> str:
    return f'<skill name="{_quote(name)}"'


def _quote(text: str) -> str:
    return make_visible(text).replace('"', "&quot;")
