"""What is left of a list of tools under a second list, which only takes away."""

from collections.abc import Iterable, Iterator

from agentflow.core.role import ToolRule
from agentflow.core.tool import Tool
from agentflow.permissions.rules import compile_pattern


def narrow_rules(
    held: Iterable[ToolRule], left: Iterable[ToolRule], tools: Iterable[Tool]
) -> tuple[ToolRule, ...]:
    """Return the rules of the first list as far as the second one leaves them.

    Either may name a category in place of its tools. Of two patterns the narrower one counts; two that
    only overlap leave nothing.
    """
    left, tools = tuple(left), tuple(tools)
    found = (rule for one in held for other in left for rule in _meet(one, other, tools))
    return tuple(dict.fromkeys(found))


def _meet(one: ToolRule, other: ToolRule, tools: tuple[Tool, ...]) -> Iterator[ToolRule]:
    """Yield the rules for the tools that both are about."""
    both = _list_names(one, tools) & _list_names(other, tools)
    names = [one.tool] if one.tool == other.tool else sorted(both)
    if one.pattern is None or other.pattern is None:
        yield from (one.replace(tool=name, pattern=one.pattern or other.pattern) for name in names)
    elif (pattern := _find_narrower(one.pattern, other.pattern)) is not None:
        yield from (one.replace(tool=name, pattern=pattern) for name in names)


def _list_names(rule: ToolRule, tools: tuple[Tool, ...]) -> set[str]:
    of_category = {tool.name for tool in tools if tool.category == rule.tool}
    return of_category or {rule.tool}


def _find_narrower(one: str, other: str) -> str | None:
    """Return the narrower of two patterns, None where neither lies within the other."""
    if compile_pattern(other).fullmatch(one):
        return one
    return other if compile_pattern(one).fullmatch(other) else None
