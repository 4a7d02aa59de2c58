"""Tools that a provider runs itself: how they are offered, and their blocks in a turn."""

from collections.abc import Mapping
from typing import Any

from agentflow.core.messages import Served, ToolSpec
from agentflow.redact import one_line

MAX_SEARCHES = 5
"""Of one request."""
_OFFERED: Mapping[str, dict[str, Any]] = {
    "WebSearch": {"type": "web_search_20250305", "name": "web_search", "max_uses": MAX_SEARCHES}
}
_OURS: Mapping[str, str] = {tool["name"]: name for name, tool in _OFFERED.items()}


def to_offer(tool: ToolSpec) -> dict[str, Any]:
    if tool.by_provider:
        return dict(_OFFERED[tool.name])
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def to_served_call(block: dict[str, Any]) -> Served | None:
    """Return a call that the provider made, or None for a tool that nobody offered."""
    tool, given = _OURS.get(str(block.get("name"))), block.get("input")
    if tool is None or not isinstance(given, dict):
        return None
    return Served(
        block=block, call_id=str(block.get("id")), tool=tool, said=one_line(str(given.get("query")))
    )


def to_served_result(block: dict[str, Any]) -> Served:
    """Return what came of a search: so many results, or the provider's word for why there are none."""
    found = block.get("content")
    is_error = not isinstance(found, list)
    count = len(found or ())
    said = str(found.get("error_code")) if isinstance(found, dict) else f"{count} result{'s' * (count != 1)}"
    return Served(
        block=block,
        call_id=str(block.get("tool_use_id")),
        tool="WebSearch",
        said=one_line(said),
        is_result=True,
        is_error=is_error,
    )
