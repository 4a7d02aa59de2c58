"""The summary that stands in the place of old messages: the model's, or a list of calls by the program."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

import anyio

from agentflow.core.errors import ModelError
from agentflow.core.hook import Decision
from agentflow.core.messages import (
    SUMMARIZER,
    Message,
    Reply,
    Request,
    Speaker,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from agentflow.core.points import Point, RequestPayload
from agentflow.core.record import Record, copy_shared, encode
from agentflow.core.run import Run
from agentflow.loop.agent import Agent
from agentflow.loop.history import find_submission, to_writable
from agentflow.loop.lifecycle import fire_hooks, judge_reply
from agentflow.loop.prompts import read_prompt
from agentflow.parse import Mismatch, fit, make_schema
from agentflow.redact import redact_text, to_one_line

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
