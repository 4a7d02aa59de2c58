"""A run is the fold of the entries in its file, whether it is live or read back."""

from typing import Any, assert_never

from agentflow.core.messages import (
    Message,
    MessagePart,
    Notice,
    Reply,
    ServerToolPart,
    Speaker,
    Stop,
    ToolCall,
    ToolResult,
    calibrate_rate,
    measure_message,
    sum_usage,
)
from agentflow.core.record import copy_shared, encode
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    CompactionTrigger,
    HandedOver,
    HistoryCompacted,
    MessageAdded,
    PauseAnswered,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunEntry,
    RunOpened,
    RunPaused,
    RunStopped,
    TokenSavings,
)

DELEGATE = "Agent"
"""The tool by which a role gives work to a sub-agent."""
RECALL_TOOL = "RecallOutput"
"""The tool that reads archived results."""
_CHARACTERS_A_TOKEN = 4
_TASK_PROMPTS = (Notice.BRIEF, Notice.FAILED)
"""The notices that carry the task prompt."""
_SHARE = 0.75
"""The share of a rejected request's length that later requests stay below."""


def begin_run(head: RunOpened, earlier: Run | None) -> Run:
    """Return a new run; it continues the conversation of an earlier run, with limits of its own."""
    own = _head_size(head)
    if earlier is None:
        size = own + sum(map(measure_message, head.history))
        return Run(head=head, size=size, messages=head.history)
    kept = ("messages", "sent", "rate", "ceiling", "recalls", "is_archived")
    size = earlier.size - _head_size(earlier.head) + own
    return Run(head=head, size=size, **{name: getattr(earlier, name) for name in kept})


def advance(run: Run, entry: RunEntry) -> Run:
    match entry:
        case RunOpened():
            after = begin_run(entry, None)
        case MessageAdded():
            is_held = entry.notice is Notice.HELD
            after = _with_message(
                run,
                entry.message,
                notices=run.notices | {entry.notice: entry.message},
                task_prompt=entry.message.text if entry.notice in _TASK_PROMPTS else run.task_prompt,
                todo_turn=run.turns if entry.notice is Notice.TODOS else run.todo_turn,
                reminded=run.reminded or entry.notice is Notice.REMINDER,
                finalized=run.finalized or entry.notice is Notice.FINALIZE,
                held=run.held + is_held,
                submitted=run.submitted and not is_held,
                answer=None if is_held else run.answer,
            )
        case RequestSent():
            size = 0 if entry.changed else run.size
            after = run.replace(turns=entry.turn, sent=len(run.messages), sent_size=size)
        case ReplyReceived():
            after = _add_reply(run, entry.reply).replace(seconds=run.seconds + entry.seconds)
        case CallsStarted():
            after = run.replace(started=entry.calls)
        case CallAnswered():
            after = _add_answer(run, entry)
        case RunPaused() | PauseAnswered() | RunStopped() | HandedOver() | HistoryCompacted() | RunClosed():
            after = _apply_change(run, entry)
        case _:
            assert_never(entry)
    return after


def _apply_change(
    run: Run, entry: RunPaused | PauseAnswered | RunStopped | HandedOver | HistoryCompacted | RunClosed
) -> Run:
    match entry:
        case HistoryCompacted():
            return apply_compaction(run, entry)
        case HandedOver():
            return _hand_over(run, entry)
        case RunPaused():
            return run.replace(pause=entry)
        case PauseAnswered():
            own = {} if run.pause and run.pause.inside else {entry.call_id: entry.answer}
            waiting = tuple(call for call in run.started if call != entry.call_id)
            return run.replace(pause=None, decided={**run.decided, **own}, started=waiting)
        case RunStopped():
            said = "halt" if entry.halt else "stop"
            return run.replace(**{said: getattr(run, said) or entry.reason})
        case RunClosed():
            changes = {**run.changes, **entry.changes}
            return run.replace(outcome=entry.outcome, changes=changes, bail=entry.bail)


def _add_reply(run: Run, reply: Reply) -> Run:
    message = Message(speaker=Speaker.ASSISTANT, parts=reply.parts)
    served = sum(isinstance(part, ServerToolPart) and not part.is_result for part in reply.parts)
    recalled = tuple(call.id for call in message.calls if call.name == RECALL_TOOL)
    return _with_message(
        run,
        message,
        rate=calibrate_rate(run.rate, run.sent_size, reply.usage),
        recalls=(*run.recalls, *recalled),
        is_refused=False,
        used=(*run.used, reply.usage),
        usage=sum_usage((run.usage, reply.usage)) if run.used else reply.usage,
        tool_calls=run.tool_calls + served,
        made=0,
        returned={},
        reply_stop=reply.stop,
        pauses=run.pauses + 1 if reply.stop is Stop.PAUSED else 0,
    )


def _add_answer(run: Run, entry: CallAnswered) -> Run:
    answers = (*run.answers, entry.result)
    names = {call.id: call.name for call in run.messages[-1].calls}
    submits = names[entry.result.call_id] == run.head.submit
    after = run.replace(
        answers=answers,
        tool_calls=run.tool_calls + (entry.made and not submits),
        made=run.made + entry.made,
        refused_by={
            **run.refused_by,
            **({entry.refused_by: entry.result.content} if entry.refused_by else {}),
        },
        rejected=run.rejected + (submits and entry.result.is_error),
        changes={**run.changes, **entry.changes},
        todo_turn=run.turns if "todos" in entry.changes else run.todo_turn,
        submitted=run.submitted or entry.submitted,
        halt=run.halt or entry.halt,
        seconds=run.seconds + entry.seconds,
        handoff=run.handoff or entry.handoff,
    )
    if entry.delegated is not None:
        after = after.replace(
            delegated=(*run.delegated, entry.delegated),
            returned={**run.returned, entry.result.call_id: entry.delegated},
        )
    return after if after.pending else _add_results(after)


def _add_results(run: Run) -> Run:
    """Return the run once each call of its newest reply has its result."""
    by_call = {answer.call_id: answer for answer in run.answers}
    results = tuple(by_call[call.id] for call in run.messages[-1].calls)
    after = _with_message(
        run,
        Message(speaker=Speaker.USER, parts=results),
        is_new=True,
        answers=(),
        started=(),
        invalid_turns=0 if run.made else run.invalid_turns + 1,
        refused_by={} if run.made and not run.finalized else run.refused_by,
    )
    answer = _find_direct_answer(run)
    if answer is None:
        return after
    saved = TokenSavings(
        tokens_not_resent=run.used[-1].tokens, synthesis_avoided=len(answer) // _CHARACTERS_A_TOKEN
    )
    return after.replace(answer=answer, saved=saved)


def _find_direct_answer(run: Run) -> str | None:
    """Return the joined answers of sub-agents, if every call of the turn has a direct answer."""
    asked = [call.id for call in run.messages[-1].calls if call.name == DELEGATE]
    returned = (run.returned.get(call_id) for call_id in asked)
    answers = [each.answer for each in returned if each is not None and each.answer is not None]
    if not answers or len(answers) < len(asked) or (len(asked) > 1 and not run.head.concatenates):
        return None
    return "\n\n".join(answers)  # in the order of the calls, whoever came back first


def _hand_over(run: Run, entry: HandedOver) -> Run:
    """Return the run under another role, with the same conversation; its limits count from here."""
    head = run.head.replace(**copy_shared(entry, RunOpened))
    return run.replace(
        head=head,
        size=run.size - _head_size(run.head) + _head_size(head),
        active=entry.agent,
        before=run.tally,
        handoff=None,
        handoffs=run.handoffs + 1,
        reminded=False,
        finalized=False,
        rejected=0,
        invalid_turns=0,
        refused_by={},
    )


def _with_message(run: Run, message: Message, **changes: Any) -> Run:
    return run.replace(messages=(*run.messages, message), size=run.size + measure_message(message), **changes)


def _head_size(head: RunOpened) -> int:
    return len(head.system) + sum(len(encode(tool)) for tool in head.tools)


def apply_compaction(run: Run, entry: HistoryCompacted) -> Run:
    head = run.head.replace(tools=entry.tools) if entry.tools else run.head
    messages = _rewrite_messages(run.messages, entry)
    size = run.size if entry.is_empty else _head_size(head) + sum(map(measure_message, messages))
    same = {id(message) for message in messages}
    was_asked = entry.reply is not None or entry.failure is not None
    after = run.replace(
        head=head,
        messages=messages,
        size=size,
        sent=0 if messages is not run.messages else run.sent,
        replaced=(*run.replaced, *(message for message in run.messages if id(message) not in same)),
        is_new=False,
        is_archived=run.is_archived or bool(entry.results),
        summaries=run.summaries + was_asked,
        usage=sum_usage((run.usage, entry.reply.usage)) if entry.reply else run.usage,
        seconds=run.seconds + entry.seconds,
    )
    if entry.trigger is CompactionTrigger.OVERFLOW:
        ceiling = int(run.tokens * _SHARE)
        after = after.replace(is_refused=True, ceiling=min(ceiling, run.ceiling or ceiling))
    return after


def _rewrite_messages(messages: tuple[Message, ...], entry: HistoryCompacted) -> tuple[Message, ...]:
    if entry.is_empty:
        return messages
    kept = tuple(_shorten(message, entry) for message in messages[entry.until :])
    first = tuple(_shorten(message, entry) for message in messages[: min(entry.until, 1)])
    return (*first, *entry.instead, *kept)


def _shorten(message: Message, entry: HistoryCompacted) -> Message:
    parts = tuple(_replace_part(part, entry) for part in message.parts)
    return message if parts == message.parts else message.replace(parts=parts)


def _replace_part(part: MessagePart, entry: HistoryCompacted) -> MessagePart:
    match part:
        case ToolResult() if part.call_id in entry.results:
            return part.replace(content=entry.results[part.call_id], shown="", failures={})
        case ToolCall() if part.id in entry.inputs:
            return part.replace(input=entry.inputs[part.id])
        case _:
            return part
