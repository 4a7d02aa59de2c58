"""What is left of a role's tools inside another role: pure."""

from agentflow.core.errors import InvalidInput
from agentflow.core.fold import DELEGATE
from agentflow.core.role import HANDOFF, INHERIT, SUBMITTED_BY, Role
from agentflow.core.tool import Category, Effect, Tool
from agentflow.tools.registry import Toolbox

_LOOKING = (Category.FS, Category.REPO)


def child_of(parent: Role, child: Role, model_id: str, tools: tuple[Tool, ...]) -> tuple[Role, Toolbox]:
    """Return a sub-agent with the tools that its parent has too, and the box they are in.

    Raises InvalidInput when none of those it lists is left.
    """
    box = Toolbox(tools=tuple(tool for tool in tools if tool.input not in SUBMITTED_BY and not tool.granted))
    role = _within(parent, child, {tool.name for tool in box.tools})
    if child.tools and not role.tools:
        raise InvalidInput(
            f"{child.name} has none of your tools: it lists {', '.join(map(str, child.tools))}"
        )
    return role.replace(model=_model(child, model_id), part=None), box


def heir_of(first: Role, heir: Role, model_id: str, box: Toolbox) -> tuple[Role, Toolbox]:
    """Return a role as it goes on in the place of the first: what that one lacks it may only look with."""
    kept = tuple(
        tool
        for tool in box.tools
        if tool.input in SUBMITTED_BY
        or first.rules_of(tool.name, tool.category)
        or (tool.effect is Effect.READ and tool.category in _LOOKING)
    )
    handoffs = {rule.tool for rule in heir.tools if rule.tool.startswith(HANDOFF)}
    role = _within(first, heir, {tool.name for tool in kept} | handoffs)
    return role.replace(model=_model(heir, model_id), part=first.part), Toolbox(tools=kept)


def only_reads(role: Role, box: Toolbox) -> bool:
    """Return whether nothing outside a run's own notes can change by a role's tools."""
    return all(tool.effect is Effect.READ or tool.category is Category.STATE for tool in box.offered(role))


def _within(outer: Role, inner: Role, names: set[str]) -> Role:
    """Return a role with its rules about these tools; one that lists none has the outer role's."""
    known = {*names, *Category, *((DELEGATE,) if outer.rules_for(DELEGATE) else ())}
    listed = inner.tools
    if inner.inherits:
        without = (*inner.denied, *(f"{HANDOFF}{name}" for name in outer.handoffs))
        listed = tuple(rule for rule in outer.tools if rule.tool not in without)
    rules = tuple(rule for rule in listed if rule.tool in known)
    return inner.replace(tools=rules, write_paths=outer.write_paths or inner.write_paths)


def _model(role: Role, model_id: str) -> str:
    return model_id if role.model == INHERIT else role.model
