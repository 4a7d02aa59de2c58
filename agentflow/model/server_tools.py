"""Tools that the provider runs itself, as requests offer them and replies show them."""

from collections.abc import Mapping
from typing import Any

from agentflow.core.messages import ServerToolPart, ToolSpec
from agentflow.redact import to_one_line

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


def to_served_call(block: dict[str, Any]) -> ServerToolPart | None:
    """Return a call that the provider made, or None for a tool that nobody offered."""
    tool, given = _OURS.get(str(block.get("name"))), block.get("input")
    if tool is None or not isinstance(given, dict):
        return None
    return ServerToolPart(
        block=block, call_id=str(block.get("id")), tool=tool, said=to_one_line(str(given.get("query")))
    )


def to_served_result(block: dict[str, Any]) -> ServerToolPart:
    """Return the result of a search as a part: the number of results, or the provider's error."""
    found = block.get("content")
    is_error = not isinstance(found, list)
    count = len(found or ())
    said = str(found.get("error_code")) if isinstance(found, dict) else f"{count} result{'s' * (count != 1)}"
    return ServerToolPart(
        block=block,
        call_id=str(block.get("tool_use_id")),
        tool="WebSearch",
        said=to_one_line(said),
        is_result=True,
        is_error=is_error,
    )
