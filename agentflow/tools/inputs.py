"""The rules on the input of every tool: paths stay inside, files are read before a change, no key is sent."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.messages import Message, ServerToolPart, Speaker, Text, ToolCall, ToolResult
from agentflow.core.ports import Workspace
from agentflow.core.run import Run
from agentflow.core.tool import Effect, Subject, Tool, ToolContext
from agentflow.redact import redact_text
from agentflow.tools.files import SNIFFED, is_binary

LEAST_QUOTE = 8
"""Characters that the longest line of a quote needs to show that the file was read."""


def check_input(tool: Tool, given: Mapping[str, Any], context: ToolContext) -> None:
    """Raise ToolError for paths outside, files to be written unseen, and addresses that hold a key."""
    for path in tool.list_values(given, Subject.PATH):
        name = context.workspace.to_relative(path)
        if tool.effect is Effect.WRITE and (context.workspace.root / name).exists():
            _require_seen(name, tool.list_values(given, Subject.QUOTE), context)
    for key, kind in tool.input_subjects.items():
        if kind is Subject.ADDRESS and redact_text(str(given.get(key, ""))) != given.get(key, ""):
            raise InvalidInput(f"{key}: holds what looks like a key")


def _require_seen(name: str, quotes: tuple[str, ...], context: ToolContext) -> None:
    with context.workspace.open(name) as file:  # whoever names a file that may not be opened is told why
        is_text = not is_binary(file.read(SNIFFED))
    was_shown = (name in list_files_shown(call, context) for call in _find_successes(context))
    is_known = name in context.run.head.shown or any(was_shown) or _was_quoted(name, quotes, context.run)
    if not is_known:
        why = "exists but was not read in this run: Read it first" if is_text else "is binary"
        raise InvalidInput(f"{name} {why}")


def _was_quoted(name: str, quotes: tuple[str, ...], run: Run) -> bool:
    lines = [line.strip() for text in quotes for line in text.splitlines() if line.strip()]
    if max(map(len, lines), default=0) < LEAST_QUOTE:
        return False
    file = PurePosixPath(name).name
    return any(
        file in (said if call is None else f"{call.input}\n{said}") and all(line in said for line in lines)
        for call, said in list_exchanges(run)
    )


def list_exchanges(run: Run) -> Iterator[tuple[ToolCall | None, str]]:
    """Yield what a run was told, with the call that it answers if there is one."""
    calls = {call.id: call for message in run.all_messages for call in message.calls}
    for message in (*run.all_messages, Message(speaker=Speaker.USER, parts=run.answers)):
        for part in message.parts:
            match part:
                case ToolResult():
                    yield calls.get(part.call_id), part.content
                case Text() if message.speaker is Speaker.USER:
                    yield None, part.text
                case ServerToolPart():
                    yield None, part.said
                case _:
                    continue


def list_files_shown(call: ToolCall, context: ToolContext, *effects: Effect) -> tuple[str, ...]:
    """Return the files that a call shows, if its tool has one of these effects; none given: any effect."""
    tool = next((tool for tool in context.tools if tool.name == call.name), None)
    if tool is None or not tool.shows_file or tool.effect not in (effects or Effect):
        return ()
    return tuple(spell_path(context.workspace, path) for path in tool.list_values(call.input, Subject.PATH))


def spell_path(workspace: Workspace, path: str) -> str:
    """Return a path as git spells it; a path outside the repository is unchanged."""
    try:
        return workspace.to_relative(path)
    except ToolError:
        return path


def _find_successes(context: ToolContext) -> Iterator[ToolCall]:
    run = context.run
    calls = {call.id: call for message in run.all_messages for call in message.calls}
    parts = (part for message in run.all_messages for part in message.parts)
    for part in (*parts, *run.answers):
        if isinstance(part, ToolResult) and not part.is_error and part.call_id in calls:
            yield calls[part.call_id]
