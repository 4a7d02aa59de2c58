"""What is left of a role's tools inside another role: pure."""

from collections.abc import Callable

from agentflow.core.errors import InvalidInput
from agentflow.core.fold import DELEGATE
from agentflow.core.role import HANDOFF, INHERIT, Role, ToolRule
from agentflow.core.submissions import SUBMITTED_BY
from agentflow.core.tool import Category, Effect, Tool
from agentflow.tools.registry import Toolbox

_LOOKING = (Category.FS, Category.REPO)


def child_of(parent: Role, child: Role, model_id: str, tools: tuple[Tool, ...]) -> tuple[Role, Toolbox]:
    """Return a sub-agent with the tools that its parent has too, and the box they are in.

    Raises InvalidInput when none of those it lists is left.
    """
    box = Toolbox(tools=tuple(tool for tool in tools if tool.input not in SUBMITTED_BY and not tool.granted))
    names = {tool.name for tool in box.tools} | ({DELEGATE} if parent.rules_for(DELEGATE) else set())
    rules = _rules(parent, child, lambda rule: rule.tool in {*names, *Category})
    if child.tools and not rules:
        raise InvalidInput(
            f"{child.name} has none of your tools: it lists {', '.join(map(str, child.tools))}"
        )
    paths = parent.write_paths or child.write_paths
    return _as(child, model_id).replace(tools=rules, write_paths=paths, part=None), box


def heir_of(first: Role, heir: Role, model_id: str, box: Toolbox) -> tuple[Role, Toolbox]:
    """Return a role as it goes on in the place of the first: what that one lacks it may only look with."""
    kept = tuple(
        tool
        for tool in box.tools
        if tool.input in SUBMITTED_BY
        or first.rules_of(tool.name, tool.category)
        or (tool.effect is Effect.READ and tool.category in _LOOKING)
    )
    names = {tool.name for tool in kept} | ({DELEGATE} if first.rules_for(DELEGATE) else set())
    rules = _rules(
        first, heir, lambda rule: rule.tool in {*names, *Category} or rule.tool.startswith(HANDOFF)
    )
    paths = first.write_paths or heir.write_paths
    return _as(heir, model_id).replace(tools=rules, write_paths=paths, part=first.part), Toolbox(tools=kept)


def only_reads(role: Role, box: Toolbox) -> bool:
    """Return whether nothing outside a run's own notes can change by a role's tools."""
    return all(tool.effect is Effect.READ or tool.category is Category.STATE for tool in box.offered(role))


def _rules(outer: Role, inner: Role, fits: Callable[[ToolRule], bool]) -> tuple[ToolRule, ...]:
    """Return the rules that a role lists and that fit; one that lists none has the outer role's."""
    if not inner.inherits:
        return tuple(rule for rule in inner.tools if fits(rule))
    without = (*inner.denied, *(f"{HANDOFF}{name}" for name in outer.handoffs))
    return tuple(rule for rule in outer.tools if rule.tool not in without and fits(rule))


def _as(role: Role, model_id: str) -> Role:
    return role.replace(model=model_id) if role.model == INHERIT else role
