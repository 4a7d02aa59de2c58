from typing import Any

import pytest

from agentflow.core.fold import advance
from agentflow.core.messages import Message, Notice, Reply, Speaker, Text, ToolCall, ToolResult, Usage
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    MessageAdded,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunEntry,
    RunOpened,
    RunOutcome,
)

HEAD = RunOpened(
    run=1, role="implementer", agent="a", iteration=1, model="m", system="", tools=(), submit="SubmitChange"
)
BRIEF = Message(speaker=Speaker.USER, parts=(Text(text="do it"),))


def replied(*names: str, **usage: Any) -> ReplyReceived:
    calls = tuple(ToolCall(id=f"{name}-{place}", name=name, input={}) for place, name in enumerate(names))
    return ReplyReceived(reply=Reply(parts=calls, usage=Usage(**usage)))


def answered(call_id: str, *, is_error: bool = False, **more: Any) -> CallAnswered:
    return CallAnswered(result=ToolResult(call_id=call_id, content=call_id, is_error=is_error), **more)


def after(*entries: RunEntry) -> Run:
    run = Run(head=HEAD)
    for entry in (MessageAdded(message=BRIEF, notice=Notice.BRIEF), RequestSent(turn=1), *entries):
        run = advance(run, entry)
    return run


def test_a_head_begins_a_run_anew() -> None:
    assert advance(after(replied("Look")), HEAD) == Run(head=HEAD)


def test_a_request_counts_the_turn() -> None:
    assert advance(after(), RequestSent(turn=7)).turns == 7


@pytest.mark.parametrize(
    ("notice", "flags"),
    [
        (Notice.BRIEF, (False, False)),
        (Notice.REMINDER, (True, False)),
        (Notice.FINALIZE, (False, True)),
    ],
)
def test_a_notice_is_remembered(notice: Notice, flags: tuple[bool, bool]) -> None:
    run = after(MessageAdded(message=BRIEF, notice=notice), MessageAdded(message=BRIEF, notice=Notice.BRIEF))
    assert (run.reminded, run.finalized) == flags


def test_calls_are_pending_until_each_is_answered() -> None:
    run = after(replied("A", "B"))
    assert [call.id for call in run.pending] == ["A-0", "B-1"]
    run = advance(run, answered("B-1"))
    assert [call.id for call in run.pending] == ["A-0"]
    assert advance(run, answered("A-0")).pending == ()


def test_results_stand_in_the_order_of_the_calls_whenever_they_came() -> None:
    run = after(replied("A", "B", "C"), answered("C-2"), answered("A-0"), answered("B-1"))
    results = [part for part in run.messages[-1].parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == ["A-0", "B-1", "C-2"]
    assert run.messages[-1].speaker is Speaker.USER


def test_a_finished_batch_leaves_nothing_behind() -> None:
    run = after(replied("A"), CallsStarted(calls=("A-0",)), answered("A-0"))
    assert (run.answers, run.started) == ((), ())


def test_started_calls_are_known_before_they_end() -> None:
    assert after(replied("A", "B"), CallsStarted(calls=("A-0",))).started == ("A-0",)


def test_made_calls_count_and_submissions_do_not() -> None:
    run = after(replied("A", "SubmitChange", "B"), answered("A-0"), answered("SubmitChange-1"))
    assert run.tool_calls == 1
    assert advance(run, answered("B-2", made=False)).tool_calls == 1


def test_a_rejected_submission_counts() -> None:
    run = after(replied("SubmitChange"), answered("SubmitChange-0", is_error=True, made=False))
    assert (run.rejected, run.submitted) == (1, False)


def test_an_error_of_another_call_rejects_no_submission() -> None:
    assert after(replied("A"), answered("A-0", is_error=True)).rejected == 0


def test_turns_without_a_made_call_add_up_and_one_made_call_clears_them() -> None:
    stumble = (replied("A"), answered("A-0", made=False))
    assert after(*stumble, *stumble).invalid_turns == 2
    assert (
        after(
            *stumble, *stumble, replied("A", "B"), answered("A-0"), answered("B-1", made=False)
        ).invalid_turns
        == 0
    )


def test_changes_of_calls_add_up_and_the_last_one_wins() -> None:
    run = after(
        replied("A", "B"), answered("A-0", changes={"x": 1, "y": 1}), answered("B-1", changes={"y": 2})
    )
    assert run.changes == {"x": 1, "y": 2}


def test_a_submission_stays() -> None:
    run = after(replied("A", "B"), answered("A-0", submitted=True), answered("B-1"))
    assert run.submitted


def test_usage_is_the_sum_of_the_replies() -> None:
    run = after(
        replied("A", input=5, output=1, cost_usd=0.5), answered("A-0"), replied(input=7, cost_usd=0.25)
    )
    assert run.usage == Usage(input=12, output=1, cost_usd=0.75)


def test_closing_keeps_the_outcome() -> None:
    assert after(RunClosed(outcome=RunOutcome.CONFUSED)).outcome is RunOutcome.CONFUSED


def test_a_new_run_waits_for_nothing() -> None:
    assert Run(head=HEAD).pending == ()
