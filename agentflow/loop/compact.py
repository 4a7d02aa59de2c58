"""The step that shortens a conversation: which parts are archived, and what stands in their place."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any

from agentflow.core.events import Compacted, Warned
from agentflow.core.fold import apply_compaction
from agentflow.core.hook import Decision
from agentflow.core.messages import (
    Message,
    Notice,
    Speaker,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    measure_message,
    measure_part,
)
from agentflow.core.points import Compacting, CompactionDone, Point
from agentflow.core.record import Record, map_texts
from agentflow.core.run import CompactionTrigger, HistoryCompacted, Run
from agentflow.core.tool import Retention
from agentflow.loop.agent import Agent, note
from agentflow.loop.lifecycle import apply_hook_result, fire_hooks
from agentflow.loop.next_step import TODO_TOOLS
from agentflow.loop.summary import summarize
from agentflow.redact import redact_text, to_one_line
from agentflow.tools.registry import to_spec
from agentflow.tools.shell import RECALL, recall_note

HEAVY = 1_000
"""Characters of a result above which a marker takes its place."""
LARGE = 2_000
"""Characters of an argument above which only its beginning and its hash stay."""
_BEGINNING = 200
_GOAL = 0.5
"""The share of the allowed tokens that a compaction aims at, so that the next one is not due at once."""
_NO_RELIEF = 0.9
"""The share of a request that was too long; where more of it is left, the newest results go as well."""
_PASSING = (Notice.BRIEF, Notice.TODOS)
"""Messages of the program that are not pinned: the first stays anyway, the other is out of date."""


class Archive(Record):
    """The parts that leave a conversation, and the texts in their place."""

    results: dict[str, str] = {}
    """By call id, the marker."""
    inputs: dict[str, dict[str, Any]] = {}
    """By call id, the shorter input."""
    files: dict[str, str] = {}
    """By call id, the text that is kept in a file."""
    saved: int = 0
    """Characters that the conversation has less."""


def _find_newest_batch(messages: tuple[Message, ...]) -> int:
    """Return the place of the newest reply with calls, else of the newest one; all from there on stays."""
    replies = [place for place, each in enumerate(messages) if each.speaker is Speaker.ASSISTANT]
    calling = [place for place in replies if messages[place].calls]
    return next(reversed(calling or replies), len(messages))


def _join_archives(one: Archive, other: Archive) -> Archive:
    return Archive(
        results=one.results | other.results,
        inputs=one.inputs | other.inputs,
        files=one.files | other.files,
        saved=one.saved + other.saved,
    )


def _with_result(
    found: Archive, result: ToolResult, call: ToolCall, kept: Retention, offered: tuple[ToolSpec, ...]
) -> Archive:
    if kept is Retention.KEEP_FULL or measure_part(result) <= HEAVY:
        return found
    copy = {} if kept is Retention.DROP or result.shown else {call.id: result.content}
    advice = recall_note(offered, call.id) if copy else "make the call again to read it"
    lines = [line for line in result.content.split("\n") if line.strip()] or [""]
    last = f"\n{_clip(lines[-1])}" if kept is Retention.KEEP_STRUCTURED and len(lines) > 1 else ""
    head = f"[archived: {call.name}, {call.id}, {len(result.content):,} characters; {advice}]"
    marker = redact_text(f"{head}\n{_clip(lines[0])}{last}")
    return found.replace(
        results={**found.results, call.id: marker},
        files=found.files | copy,
        saved=found.saved + measure_part(result) - len(marker),
    )


def _clip(line: str) -> str:
    return line if len(line) <= _BEGINNING else f"{line[:_BEGINNING]}…"


def _with_input(found: Archive, call: ToolCall, kept: Retention) -> Archive:
    if kept is Retention.KEEP_FULL:
        return found
    given = map_texts(call.input, _shorten)
    if given == call.input:
        return found
    saved = measure_part(call) - measure_part(call.replace(input=given))
    return found.replace(inputs={**found.inputs, call.id: given}, saved=found.saved + saved)


def _shorten(text: str) -> str:
    if len(text) <= LARGE:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    rest = f"{len(text) - _BEGINNING:,} more characters were sent; of the whole: sha256 {digest}"
    return redact_text(f"{text[:_BEGINNING]}… [{rest}]")


def _select_pairs(messages: Iterable[Message], wanted: Callable[[ToolCall], bool]) -> Iterator[Message]:
    ids: set[str] = set()
    for message in messages:
        ids |= {call.id for call in message.calls if wanted(call)}
        parts = tuple(
            part
            for part in message.parts
            if (isinstance(part, ToolCall) and part.id in ids)
            or (isinstance(part, ToolResult) and part.call_id in ids)
        )
        if parts:
            yield message.replace(parts=parts)


async def compact(agent: Agent, run: Run, trigger: CompactionTrigger = CompactionTrigger.LIMIT) -> Run:
    """Archive old outputs and, where that is not enough, put a summary in the place of old messages."""
    said = await fire_hooks(agent, Point.PRE_COMPACT, lambda: Compacting(trigger="auto"))
    if said.halt is not None:
        return apply_hook_result(agent, run, said)
    if said.decision is Decision.DENY:
        agent.observe(Warned(message=f"the history was not compacted: {said.reason}"))
        return note(agent, run, HistoryCompacted(trigger=trigger, blocked=said.reason))
    begin = time.monotonic()
    goal = int(min(agent.room.compacted_at, run.tokens) * _GOAL)
    old = _archive_old(agent, run, goal)
    entry = _add_archive(run, HistoryCompacted(trigger=trigger), old)
    if apply_compaction(run, entry).tokens > goal:
        entry = await _add_summary(agent, run, entry, goal, said.context)
    if trigger is CompactionTrigger.OVERFLOW:
        # the rest did not suffice for the provider
        after = apply_compaction(run, entry)
        places = range(_find_newest_batch(after.messages), len(after.messages))
        excess = after.size - int(int(run.tokens * _NO_RELIEF) / after.rate)
        old = _join_archives(old, _archive(agent, after, places, excess))
        entry = _add_archive(run, entry, old)
    _store_files(agent, old)
    after = note(agent, run, entry.replace(seconds=round(time.monotonic() - begin, 3)))
    if not entry.is_empty:
        await _report_compaction(agent, run, after, entry)
    return after


def add_recall(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return tools with the one that reads archived results, by name."""
    found = {tool.name: tool for tool in (*tools, to_spec(RECALL))}
    return tuple(found[name] for name in sorted(found))


def _archive_old(agent: Agent, run: Run, goal: int) -> Archive:
    """Return what is archived: all that is older than the turns that are kept, then more as far as needed."""
    newest, turns = _find_newest_batch(run.messages), agent.room.turns_kept
    replies = [at for at, message in enumerate(run.messages) if message.speaker is Speaker.ASSISTANT]
    old = min(newest, replies[-turns] if len(replies) >= turns else 1)
    first = _archive(agent, run, range(1, old), run.size)
    excess = run.size - first.saved - int(goal / run.rate)
    return _join_archives(first, _archive(agent, run, range(max(1, old), newest), excess))


def _archive(agent: Agent, run: Run, places: Iterable[int], excess: int) -> Archive:
    offered = add_recall(run.head.tools)
    calls = {call.id: call for message in run.messages for call in message.calls}
    parts = (part for message in run.messages for part in message.parts)
    succeeded = {part.call_id for part in parts if isinstance(part, ToolResult) and not part.is_error}
    found = Archive()
    for part in (part for place in places for part in run.messages[place].parts):
        if found.saved >= excess:
            break
        call = calls.get(part.call_id) if isinstance(part, ToolResult) else None
        if isinstance(part, ToolResult) and call is not None:
            found = _with_result(found, part, call, _retention_of(agent, call.name), offered)
        elif isinstance(part, ToolCall) and part.id in succeeded:
            found = _with_input(found, part, _retention_of(agent, part.name))
    return found


def _retention_of(agent: Agent, name: str) -> Retention:
    tool = agent.find_tool(name)
    return Retention.SUMMARIZE_ARCHIVE if tool is None else tool.effective_retention


def _add_archive(run: Run, entry: HistoryCompacted, old: Archive) -> HistoryCompacted:
    tools = add_recall(run.head.tools) if old.files else run.head.tools
    changed = () if tools == run.head.tools else tools
    return entry.replace(results=old.results, inputs=old.inputs, tools=changed)


async def _add_summary(
    agent: Agent, run: Run, entry: HistoryCompacted, goal: int, advice: str
) -> HistoryCompacted:
    shorter = apply_compaction(run, entry)
    until = _find_first_kept(agent, shorter, goal)
    old = shorter.messages[1:until]

    def is_pinned(call: ToolCall) -> bool:
        is_kept = call.name not in TODO_TOOLS and call.name != run.head.submit
        return is_kept and _retention_of(agent, call.name) is Retention.KEEP_FULL

    notices = [message for notice, message in shorter.notices.items() if notice not in _PASSING]
    kept = (*_select_pairs(old, is_pinned), *(message for message in old if message in notices))
    if sum(map(measure_message, old)) - sum(map(measure_message, kept)) <= HEAVY:
        return entry
    summary = await summarize(agent, shorter, old, advice)
    text = "\n\n".join(filter(None, (summary.text, _list_todos(run))))
    first = Message(speaker=Speaker.USER, parts=(Text(text=text),))
    return entry.replace(until=until, instead=(first, *kept), reply=summary.reply, failure=summary.failure)


def _find_first_kept(agent: Agent, run: Run, goal: int) -> int:
    """Return the place from which on the messages stay: the newest turns that fit into half of the goal."""
    newest, room = _find_newest_batch(run.messages), goal / 2 / run.rate
    turns = [
        place
        for place in range(newest, 0, -1)
        if place < len(run.messages) and run.messages[place].speaker is Speaker.ASSISTANT
    ]
    sizes = {
        place: sum(map(measure_message, run.messages[place:])) for place in turns[: agent.room.turns_kept]
    }
    fitting = list(takewhile(lambda place: sizes[place] <= room, sizes))
    return fitting[-1] if fitting else newest


def _list_todos(run: Run) -> str:
    todos = run.changes.get("todos")
    if not todos:
        return ""
    lines = (f"{todo['id']}. {to_one_line(todo['title'], 200)} ({todo['status']})" for todo in todos)
    return "\n".join(("## Todos as they stand now", *lines))


def _store_files(agent: Agent, old: Archive) -> None:
    """Write the archived texts to files; a file that a call has already is longer and stays."""
    for call_id, text in old.files.items():
        path = agent.around.outputs / f"{call_id}.out"
        if not path.exists():
            path.write_text(text, "utf-8", "backslashreplace", newline="")


async def _report_compaction(agent: Agent, before: Run, after: Run, entry: HistoryCompacted) -> None:
    by = "" if entry.until == 1 else "model" if entry.failure is None else "program"
    agent.observe(
        Compacted(
            run=agent.around.number,
            turn=before.turns,
            trigger=entry.trigger,
            archived=tuple(entry.results),
            shortened=tuple(entry.inputs),
            replaced=entry.until - 1,
            from_tokens=before.tokens,
            to_tokens=after.tokens,
            summary=by,
            usage=entry.reply.usage if entry.reply else Usage(),
            seconds=entry.seconds,
        )
    )
    text = "\n\n".join(message.text for message in entry.instead[:1])
    await fire_hooks(agent, Point.POST_COMPACT, lambda: CompactionDone(trigger="auto", compact_summary=text))
