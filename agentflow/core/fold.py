"""A run is the fold of the entries in its file, so that loading and living are the same act."""

from typing import assert_never

from agentflow.core.messages import Message, Reply, Speaker
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    MessageAdded,
    Notice,
    PauseAnswered,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunEntry,
    RunOpened,
    RunPaused,
    RunStopped,
)


def advance(run: Run, entry: RunEntry) -> Run:
    """Return the run after one more entry."""
    match entry:
        case RunOpened():
            after = Run(head=entry)
        case MessageAdded():
            after = run.replace(
                messages=(*run.messages, entry.message),
                reminded=run.reminded or entry.notice is Notice.REMINDER,
                finalized=run.finalized or entry.notice is Notice.FINALIZE,
            )
        case RequestSent():
            after = run.replace(turns=entry.turn, sent=len(run.messages))
        case ReplyReceived():
            after = _with_reply(run, entry.reply).replace(seconds=run.seconds + entry.seconds)
        case CallsStarted():
            after = run.replace(started=entry.calls)
        case CallAnswered():
            after = _with_answer(run, entry)
        case RunPaused() | PauseAnswered() | RunStopped() | RunClosed():
            after = _waiting_or_over(run, entry)
        case _:
            assert_never(entry)
    return after


def _waiting_or_over(run: Run, entry: RunPaused | PauseAnswered | RunStopped | RunClosed) -> Run:
    match entry:
        case RunPaused():
            return run.replace(pause=entry)
        case PauseAnswered():
            decided = {**run.decided, entry.call_id: entry.answer}
            waiting = tuple(call for call in run.started if call != entry.call_id)
            return run.replace(pause=None, decided=decided, started=waiting)
        case RunStopped(halt=True):
            return run.replace(halt=run.halt or entry.reason)
        case RunStopped():
            return run.replace(stop=run.stop or entry.reason)
        case RunClosed():
            return run.replace(outcome=entry.outcome)


def _with_reply(run: Run, reply: Reply) -> Run:
    message = Message(speaker=Speaker.ASSISTANT, parts=reply.parts)
    used = (*run.used, reply.usage)
    return run.replace(messages=(*run.messages, message), used=used, made=0, reply_stop=reply.stop)


def _with_answer(run: Run, entry: CallAnswered) -> Run:
    answers = (*run.answers, entry.result)
    submits = _name_of(run, entry.result.call_id) == run.head.submit
    after = run.replace(
        answers=answers,
        tool_calls=run.tool_calls + (entry.made and not submits),
        made=run.made + entry.made,
        rejected=run.rejected + (submits and entry.result.is_error),
        changes={**run.changes, **entry.changes},
        submitted=run.submitted or entry.submitted,
        halt=run.halt or entry.halt,
        seconds=run.seconds + entry.seconds,
    )
    if after.pending:
        return after
    by_call = {answer.call_id: answer for answer in answers}
    results = tuple(by_call[call.id] for call in run.messages[-1].calls)
    message = Message(speaker=Speaker.USER, parts=results)
    return after.replace(
        messages=(*after.messages, message),
        answers=(),
        started=(),
        stumbles=0 if after.made else after.stumbles + 1,
    )


def _name_of(run: Run, call_id: str) -> str:
    return next(call.name for call in run.messages[-1].calls if call.id == call_id)
