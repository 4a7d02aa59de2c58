"""The step that shortens a conversation: which parts are archived, and what stands in their place."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, takewhile
from typing import Any

import anyio

from agentflow.core.errors import ModelError
from agentflow.core.events import Compacted, Warned
from agentflow.core.fold import apply_compaction
from agentflow.core.hook import Decision
from agentflow.core.messages import (
    SUMMARIZER,
    Message,
    Notice,
    Reply,
    Request,
    Speaker,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    measure_message,
    measure_part,
)
from agentflow.core.points import Compacting, CompactionDone, Point, RequestPayload
from agentflow.core.record import Record, copy_shared, encode, map_texts
from agentflow.core.run import CompactionTrigger, HistoryCompacted, Run
from agentflow.core.tool import Retention
from agentflow.loop.agent import Agent, note
from agentflow.loop.history import find_submission, to_writable
from agentflow.loop.lifecycle import apply_hook_result, fire_hooks, judge_reply
from agentflow.loop.next_step import TODO_TOOLS
from agentflow.loop.prompts import read_prompt
from agentflow.parse import Mismatch, fit, make_schema
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
    for call_id, text in old.files.items():
        path = agent.around.outputs / f"{call_id}.out"
        if not path.exists():
            path.write_text(text, "utf-8", "backslashreplace", newline="")
    after = note(agent, run, entry.replace(seconds=round(time.monotonic() - begin, 3)))
    if not entry.is_empty:
        await _report_compaction(agent, run, after, entry)
    return after


def add_recall(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
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


MAX_SECONDS = 180
"""For one summary; without it the program's list of calls is used."""
CHARACTERS_A_TOKEN = 4
_PART = 2_000
"""Characters of one text or result that the summary is made from."""


class Summary(Record):
    """The content of a summary, one line an item."""

    facts: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()


SUBMIT_SUMMARY = ToolSpec(
    name="SubmitSummary", description="Hand in the summary and end.", input_schema=make_schema(Summary)
)


class SummaryResult(Record):
    """A summary as the role reads it, with the model's reply or why there is none."""

    text: str
    reply: Reply | None = None
    failure: str | None = None


async def summarize(agent: Agent, run: Run, old: tuple[Message, ...], advice: str) -> SummaryResult:
    """Return a summary of messages; where the model gives none, the program's list of calls."""
    most = agent.room.summary_tokens * CHARACTERS_A_TOKEN
    reply, failure = await _ask_model(agent, _build_request(agent, run, old, advice))
    said = _to_markdown(reply)[:most] if reply is not None else ""
    lines = _list_calls(old)
    sizes = accumulate(len(line) + 1 for line in reversed(lines))
    calls = "\n".join(lines[-max(1, sum(size <= most // 2 for size in sizes)) :])
    if said:
        text = read_prompt("summarized.md").format(summary=f"{said}\n\n## Calls that were made\n{calls}")
        return SummaryResult(text=redact_text(to_writable(text)), reply=reply)
    before = [message.text[: most // 2] for message in old[:1] if message.speaker is Speaker.USER]
    text = read_prompt("truncated.md").format(summary="\n".join((*before, calls)))
    why = failure or "the summary was empty"
    return SummaryResult(text=redact_text(to_writable(text)), reply=reply, failure=why)


def _build_request(agent: Agent, run: Run, old: tuple[Message, ...], advice: str) -> Request:
    room = int(agent.room.context / 2 / run.rate)
    parts = (
        f"# What the role was told\n{run.messages[0].text[: room // 8]}",
        f"# Messages\n{_to_transcript(old, room // 2)}",
        advice,
    )
    text = redact_text(to_writable("\n\n".join(filter(None, parts))))
    return Request(
        **{
            **copy_shared(run.head, Request),
            "role": SUMMARIZER,
            "agent": SUMMARIZER,
            "system": read_prompt("summary.md"),
            "tools": (SUBMIT_SUMMARY,),
        },
        messages=(Message(speaker=Speaker.USER, parts=(Text(text=text),)),),
        force=SUBMIT_SUMMARY.name,
        replies=run.summaries,
        reply_tokens=agent.room.summary_tokens,
    )


async def _ask_model(agent: Agent, request: Request) -> tuple[Reply | None, str | None]:
    """Return the model's reply, or why there is none; hooks see request and reply as they see any other."""
    said = await fire_hooks(agent, Point.MODEL_REQUEST, lambda: RequestPayload(request=request))
    if said.decision is Decision.DENY or said.halt is not None:
        return None, said.halt or said.reason
    try:
        with anyio.fail_after(MAX_SECONDS):
            reply = await agent.model.complete(said.request or request)
    except (ModelError, TimeoutError) as error:
        return None, redact_text(to_writable(str(error) or "it took too long"))
    said, judged = await judge_reply(agent, reply)
    if said.decision is Decision.DENY or said.halt is not None:
        return reply.replace(parts=()), said.halt or said.reason
    text = redact_text(to_writable(_to_markdown(judged)))
    return reply.replace(parts=(Text(text=text),) if text else ()), None


def _to_markdown(reply: Reply) -> str:
    text = "\n".join(part.text for part in reply.parts if isinstance(part, Text)).strip()
    given = next((part.input for part in reply.parts if isinstance(part, ToolCall)), None)
    try:
        found = fit(Summary, find_submission(text, Summary) if given is None else given)
    except Mismatch:
        return text
    sections = (
        ("Facts", found.facts),
        ("Goals", found.goals),
        ("Open questions", found.open_questions),
        ("Discarded", found.discarded),
    )
    listed = ((title, "\n".join(f"- {item}" for item in items)) for title, items in sections)
    return "\n\n".join(f"## {title}\n{items}" for title, items in listed if items) or text


def _to_transcript(messages: tuple[Message, ...], most: int) -> str:
    first, *others = list(_render(messages)) or [""]
    kept, size = list[str](), len(first)
    for one in reversed(others):
        size += len(one)
        if size > most:
            kept.append("[older messages are left out here]")
            break
        kept.append(one)
    return "\n".join((first, *reversed(kept)))


def _render(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            match part:
                case Text():
                    yield f"{message.speaker}: {part.text[: _PART * 10]}"
                case ToolCall():
                    yield f"call {part.id}: {part.name} {encode(part.input).decode()[:_PART]}"
                case ToolResult():
                    yield f"result of {part.call_id}: {part.content[:_PART]}"
                case _:
                    pass


def _list_calls(messages: tuple[Message, ...]) -> tuple[str, ...]:
    parts = [part for message in messages for part in message.parts]
    ends = {
        part.call_id: to_one_line(part.content.strip().rpartition("\n")[2], 100)
        for part in parts
        if isinstance(part, ToolResult)
    }
    return tuple(
        f"- {part.id} {part.name} {to_one_line(_subject_of(part), 100)}: {ends.get(part.id, '')}"
        for part in parts
        if isinstance(part, ToolCall)
    )


def _subject_of(call: ToolCall) -> str:
    return next((value for value in call.input.values() if isinstance(value, str)), "")
