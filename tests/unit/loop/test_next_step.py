from typing import Any

import msgspec
import pytest

from agentflow.core.messages import Message, Speaker, Stop, Text, ToolCall, ToolResult, ToolSpec, Usage
from agentflow.core.pending import Pending, PendingKind
from agentflow.core.role import Limits
from agentflow.core.run import HandOff, Run, RunOpened, RunOutcome, RunPaused
from agentflow.loop.next_step import SEVERITY, Step, choose_next_step, conclude_run, find_spent_limit

LIMITS = Limits(turns=3, tool_calls=2, tokens=1000, seconds=60, cost=2)
HEAD = RunOpened(
    run=1, role="implementer", agent="a", iteration=1, model="m", system="", tools=(), submit="SubmitChange"
)
ANSWERING = HEAD.replace(submit=None)
TOLD = Message(speaker=Speaker.USER, parts=(Text(text="do it"),))
PROSE = Message(speaker=Speaker.ASSISTANT, parts=(Text(text="all done"),))
CALLING = Message(speaker=Speaker.ASSISTANT, parts=(ToolCall(id="c1", name="Look", input={}),))
RESULTS = Message(speaker=Speaker.USER, parts=(ToolResult(call_id="c1", content="ok"),))
PENDING = Pending(
    id="p1-1", kind=PendingKind.APPROVAL, tool="Look", input={}, options=(), asked_at="2026-01-02T03:04:05Z"
)
PAUSE = RunPaused(call_id="c1", pending=PENDING)

NEXT = {
    "fresh": (Run(head=HEAD, messages=(TOLD,)), Step.ASK),
    "a call waits": (Run(head=HEAD, messages=(TOLD, CALLING), turns=1), Step.ACT),
    "a call waits past every limit": (
        Run(head=HEAD, messages=(TOLD, CALLING), turns=9, tool_calls=9, finalized=True),
        Step.ACT,
    ),
    "a call waits after a submission": (
        Run(head=HEAD, messages=(TOLD, CALLING), turns=1, submitted=True),
        Step.ACT,
    ),
    "results came": (Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=1), Step.ASK),
    "one call below the limit": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=1, tool_calls=1),
        Step.ASK,
    ),
    "calls used up": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=1, tool_calls=2),
        Step.FINALIZE,
    ),
    "turns used up": (Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=3), Step.FINALIZE),
    "told to finish": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS, TOLD), turns=3, finalized=True),
        Step.ASK,
    ),
    "silent": (Run(head=HEAD, messages=(TOLD, PROSE), turns=1), Step.REMIND),
    "silent at the last turn": (Run(head=HEAD, messages=(TOLD, PROSE), turns=3), Step.FINALIZE),
    "reminded": (Run(head=HEAD, messages=(TOLD, PROSE, TOLD), turns=1, reminded=True), Step.ASK),
    "paused": (Run(head=HEAD, messages=(TOLD, PROSE), turns=1, pauses=7, reply_stop=Stop.PAUSED), Step.ASK),
    "paused too often": (
        Run(head=HEAD, messages=(TOLD, PROSE), turns=1, pauses=8, reply_stop=Stop.PAUSED),
        Step.FINALIZE,
    ),
    "paused past its end": (
        Run(head=HEAD, messages=(TOLD, PROSE), turns=9, pauses=1, finalized=True, reply_stop=Stop.PAUSED),
        Step.CLOSE,
    ),
    "submitted": (Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), submitted=True), Step.CLOSE),
    "halted": (Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), halt="enough"), Step.CLOSE),
    "a role hands over": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=9, handoff=HandOff(to="b", reason="r")),
        Step.HAND_OVER,
    ),
    "a hook stops a role that hands over": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), stop="no", handoff=HandOff(to="b", reason="r")),
        Step.CLOSE,
    ),
    "answered directly": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=1, answer="a.py"),
        Step.CLOSE,
    ),
    "too long": (Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), size=288_000, is_new=True), Step.COMPACT),
    "nearly too long": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), size=287_000, is_new=True),
        Step.ASK,
    ),
    "too long with nothing new": (Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), size=400_000), Step.ASK),
    "too long as the replies count": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), size=150_000, rate=0.5, is_new=True),
        Step.COMPACT,
    ),
    "longer than the provider took": (
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), size=50_000, ceiling=10_000, is_new=True),
        Step.COMPACT,
    ),
    "waiting for a person": (Run(head=HEAD, messages=(TOLD, CALLING), pause=PAUSE), Step.END),
    "over": (Run(head=HEAD, messages=(TOLD, CALLING), outcome=RunOutcome.CONFUSED), Step.END),
}


@pytest.mark.parametrize("name", NEXT)
def test_the_next_step_follows_from_the_run(name: str) -> None:
    run, step = NEXT[name]
    assert choose_next_step(run, LIMITS) is step


ENDED = {
    RunOutcome.SUBMITTED: Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), submitted=True),
    RunOutcome.ANSWERED: Run(head=ANSWERING, messages=(TOLD, PROSE), turns=1),
    RunOutcome.NO_SUBMISSION: Run(head=HEAD, messages=(TOLD, PROSE), turns=2, reminded=True),
    RunOutcome.INVALID_SUBMISSION: Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), rejected=2),
    RunOutcome.TURN_LIMIT: Run(
        head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=4, tool_calls=1, finalized=True
    ),
    RunOutcome.PAUSE_LIMIT: Run(
        head=HEAD, messages=(TOLD, PROSE), turns=1, finalized=True, pauses=9, reply_stop=Stop.PAUSED
    ),
    RunOutcome.TOOL_LIMIT: Run(
        head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=2, tool_calls=2, finalized=True
    ),
    RunOutcome.TOKEN_LIMIT: Run(
        head=HEAD,
        messages=(TOLD, CALLING, RESULTS),
        turns=2,
        finalized=True,
        usage=Usage(input=400, cache_read=300, output=300),
    ),
    RunOutcome.TIME_LIMIT: Run(
        head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=2, finalized=True, seconds=60
    ),
    RunOutcome.COST_LIMIT: Run(
        head=HEAD, messages=(TOLD, CALLING, RESULTS), turns=2, finalized=True, usage=Usage(cost_usd=2.5)
    ),
    RunOutcome.HALTED: Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), submitted=True, halt="enough"),
    RunOutcome.STOPPED: Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), submitted=True, stop="enough"),
    RunOutcome.CONFUSED: Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), invalid_turns=3, finalized=True),
}


@pytest.mark.parametrize("outcome", ENDED)
def test_each_outcome_closes_the_run(outcome: RunOutcome) -> None:
    run = ENDED[outcome]
    assert conclude_run(run, LIMITS) is outcome
    assert choose_next_step(run, LIMITS) is Step.CLOSE
    assert choose_next_step(run.replace(outcome=outcome), LIMITS) is Step.END


def test_the_steps_of_the_tables_are_all_there_are() -> None:
    assert {step for _, step in NEXT.values()} | {Step.NUDGE} == set(Step)


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"turns": 9}, Step.ASK),
        ({"turns": 10}, Step.NUDGE),
        ({"turns": 19, "todo_turn": 10}, Step.ASK),
        ({"turns": 20, "todo_turn": 10}, Step.NUDGE),
        ({"turns": 10, "finalized": True, "messages": (TOLD, CALLING, RESULTS, TOLD)}, Step.ASK),
        ({"turns": 10, "head": HEAD}, Step.ASK),
    ],
)
def test_stale_todos_are_recalled_every_ten_turns(changes: dict[str, Any], step: Step) -> None:
    keeps = HEAD.replace(tools=(ToolSpec(name="TodoWrite", description="", input_schema={}),))
    run = Run(head=keeps, messages=(TOLD, CALLING, RESULTS)).replace(**changes)
    assert choose_next_step(run, LIMITS.replace(turns=30)) is step


@pytest.mark.parametrize(
    "run",
    [
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), rejected=1),
        Run(head=HEAD, messages=(TOLD, CALLING, RESULTS), invalid_turns=2),
        Run(head=HEAD, messages=(TOLD, PROSE)),
        Run(head=ANSWERING, messages=(TOLD, CALLING, RESULTS)),
    ],
)
def test_one_below_a_bound_goes_on(run: Run) -> None:
    assert conclude_run(run, LIMITS) is None


def test_a_submission_beats_every_limit() -> None:
    run = Run(
        head=HEAD,
        messages=(TOLD, CALLING, RESULTS),
        submitted=True,
        rejected=2,
        invalid_turns=3,
        turns=9,
        finalized=True,
    )
    assert conclude_run(run, LIMITS) is RunOutcome.SUBMITTED


def test_a_role_that_was_told_to_finish_and_only_talks_has_no_submission() -> None:
    run = Run(head=HEAD, messages=(TOLD, PROSE), turns=4, finalized=True)
    assert conclude_run(run, LIMITS) is RunOutcome.NO_SUBMISSION


def test_of_two_limits_the_more_severe_one_is_named() -> None:
    run = Run(head=HEAD, messages=(TOLD,), turns=3, tool_calls=2, seconds=99, usage=Usage(cost_usd=9))
    assert find_spent_limit(run, LIMITS) is RunOutcome.TURN_LIMIT
    assert find_spent_limit(run.replace(turns=0), LIMITS) is RunOutcome.TOOL_LIMIT
    assert find_spent_limit(run.replace(turns=0, tool_calls=0), LIMITS) is RunOutcome.TIME_LIMIT


def test_each_outcome_but_the_error_of_the_model_comes_of_a_run() -> None:
    assert set(SEVERITY) == set(RunOutcome)
    assert set(SEVERITY) - set(ENDED) == {RunOutcome.ERROR}


TWO: dict[str, tuple[dict[str, Any], RunOutcome]] = {
    "the whole task before the run": ({"halt": "a", "stop": "b"}, RunOutcome.HALTED),
    "a hook before a limit": ({"stop": "b", "finalized": True, "turns": 9}, RunOutcome.STOPPED),
    "a hook before a result": ({"stop": "b", "submitted": True}, RunOutcome.STOPPED),
    "a limit before a wrong result": ({"finalized": True, "turns": 9, "rejected": 2}, RunOutcome.TURN_LIMIT),
    "turns before calls": ({"finalized": True, "turns": 9, "tool_calls": 9}, RunOutcome.TURN_LIMIT),
    "calls before time": ({"finalized": True, "tool_calls": 9, "seconds": 99}, RunOutcome.TOOL_LIMIT),
    "time before money": (
        {"finalized": True, "seconds": 99, "used": (Usage(cost_usd=9),)},
        RunOutcome.TIME_LIMIT,
    ),
    "a wrong result before confusion": (
        {"finalized": True, "rejected": 2, "invalid_turns": 3},
        RunOutcome.INVALID_SUBMISSION,
    ),
    "a result in spite of a limit": (
        {"submitted": True, "finalized": True, "turns": 9},
        RunOutcome.SUBMITTED,
    ),
}


@pytest.mark.parametrize("name", TWO)
def test_of_two_reasons_the_more_severe_one_is_told(name: str) -> None:
    fields, outcome = TWO[name]
    run = msgspec.structs.replace(Run(head=HEAD, messages=(TOLD, CALLING, RESULTS)), **fields)
    assert conclude_run(run, LIMITS) is outcome


def test_an_unknown_cost_bounds_nothing() -> None:
    assert find_spent_limit(Run(head=HEAD, messages=(TOLD,), usage=Usage(input=9)), LIMITS) is None
