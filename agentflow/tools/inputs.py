"""The rules on the input of every tool: paths stay inside, files are read before a change, no key is sent."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.tool import Effect, Subject, Tool, ToolContext
from agentflow.redact import redacted
from agentflow.tools.files import SNIFFED, is_binary


def check_input(tool: Tool, given: Mapping[str, Any], context: ToolContext) -> None:
    """Raise ToolError for an input that no tool takes, by what the inputs of this one name."""
    for path in tool.values(given, Subject.PATH):
        name = context.workspace.relative(path)
        if tool.effect is Effect.WRITE and (context.workspace.root / name).exists():
            _require_seen(name, context)
    for key, kind in tool.named.items():
        if kind is Subject.ADDRESS and redacted(str(given.get(key, ""))) != given.get(key, ""):
            raise InvalidInput(f"{key}: holds what looks like a key")


def _require_seen(name: str, context: ToolContext) -> None:
    """Raise ToolError for a file that cannot be opened, or that this run has not read."""
    with context.workspace.open(name) as file:  # whoever names a file that may not be opened is told why
        is_text = not is_binary(file.read(SNIFFED))
    was_shown = (name in files_shown(call, context) for call in _succeeded(context))
    if name not in context.run.head.shown and not any(was_shown):
        why = "exists and was not read in this run: Read it first" if is_text else "is binary"
        raise InvalidInput(f"{name} {why}")


def files_shown(call: ToolCall, context: ToolContext, *effects: Effect) -> tuple[str, ...]:
    """Return the files whose text is known after a call of a tool with one of these effects, or any."""
    tool = next((tool for tool in context.tools if tool.name == call.name), None)
    if tool is None or not tool.shows_file or tool.effect not in (effects or Effect):
        return ()
    return tuple(_spelled(path, context) for path in tool.values(call.input, Subject.PATH))


def _spelled(path: str, context: ToolContext) -> str:
    try:
        return context.workspace.relative(path)
    except ToolError:
        return ""


def _succeeded(context: ToolContext) -> Iterator[ToolCall]:
    """Yield the calls of a run that came to a good end."""
    run = context.run
    calls = {call.id: call for message in run.seen for call in message.calls}
    parts = (part for message in run.seen for part in message.parts)
    for part in (*parts, *run.answers):
        if isinstance(part, ToolResult) and not part.is_error and part.call_id in calls:
            yield calls[part.call_id]
