"""Chooses an agent's next step: a pure function of its run."""

from collections.abc import Iterator
from enum import StrEnum

from agentflow.core.messages import DEFAULT_ROOM, ContextLimits, Speaker, Stop, ToolResult
from agentflow.core.role import Limits
from agentflow.core.run import Run, RunOutcome

MAX_REJECTED = 2
"""Submissions that do not fit before the run is given up: one repair turn."""
MAX_PAUSES = 8
"""Replies in a row that the provider pauses, before the role is asked for its result."""
MAX_STALE_TURNS = 10
"""Turns without an update of the todos before a role that keeps them is reminded."""
TODO_TOOLS = frozenset({"TodoWrite", "TodoUpdate"})
MAX_INVALID_TURNS = 3
"""Turns in a row in which no call could be made, before the role is asked for its result."""


SEVERITY = (
    RunOutcome.ERROR,
    RunOutcome.HALTED,
    RunOutcome.STOPPED,
    RunOutcome.TURN_LIMIT,
    RunOutcome.PAUSE_LIMIT,
    RunOutcome.TOOL_LIMIT,
    RunOutcome.TOKEN_LIMIT,
    RunOutcome.TIME_LIMIT,
    RunOutcome.COST_LIMIT,
    RunOutcome.INVALID_SUBMISSION,
    RunOutcome.CONFUSED,
    RunOutcome.NO_SUBMISSION,
    RunOutcome.SUBMITTED,
    RunOutcome.ANSWERED,
)
"""Reasons why a run ends, the most severe first: of two that hold at once the earlier one is told."""


class Step(StrEnum):
    ASK = "ask"
    ACT = "act"
    HAND_OVER = "hand over"
    REMIND = "remind"
    NUDGE = "nudge"
    FINALIZE = "finalize"
    COMPACT = "compact"
    CLOSE = "close"
    END = "end"


def choose_next_step(run: Run, limits: Limits, room: ContextLimits = DEFAULT_ROOM) -> Step:
    """Return the next node to run; the same state always gives the same one."""
    return next(_list_due(run, limits, room))


def _list_due(run: Run, limits: Limits, room: ContextLimits) -> Iterator[Step]:
    if run.outcome is not None or run.pause is not None:
        yield Step.END
    if run.pending:
        yield Step.ACT
    if conclude_run(run, limits) is not None:
        yield Step.CLOSE
    if run.handoff is not None:
        yield Step.HAND_OVER
    is_at_limit = run.invalid_turns >= MAX_INVALID_TURNS or find_spent_limit(run, limits) is not None
    if is_at_limit and not run.finalized:
        yield Step.FINALIZE
    if _is_silent(run):
        yield Step.REMIND
    keeps_todos = any(tool.name in TODO_TOOLS for tool in run.head.tools)
    if keeps_todos and run.turns - run.todo_turn >= MAX_STALE_TURNS and not run.finalized:
        yield Step.NUDGE
    most = room.compacted_at if run.ceiling is None else min(room.compacted_at, run.ceiling)
    yield Step.COMPACT if run.is_new and run.tokens >= most else Step.ASK


def conclude_run(run: Run, limits: Limits) -> RunOutcome | None:
    """Return how a run that waits for nothing has ended, or None while it goes on: the most severe wins."""
    return min(_reasons(run, limits), key=SEVERITY.index, default=None)


def is_stopped(run: Run) -> bool:
    return run.stop is not None or run.halt is not None


def _reasons(run: Run, limits: Limits) -> Iterator[RunOutcome]:
    """Yield every reason why a run has ended; a limit is one only where it cost the result."""
    if run.halt is not None:
        yield RunOutcome.HALTED
    if run.stop is not None:
        yield RunOutcome.STOPPED
    if run.submitted or run.answer is not None:
        yield RunOutcome.SUBMITTED if run.head.submit else RunOutcome.ANSWERED
        return
    if run.rejected >= MAX_REJECTED:
        yield RunOutcome.INVALID_SUBMISSION
    if _is_silent(run) and run.head.submit is None:
        yield RunOutcome.ANSWERED
    elif _is_silent(run) and (run.reminded or run.finalized):  # it is reminded once
        yield RunOutcome.CONFUSED if run.invalid_turns >= MAX_INVALID_TURNS else RunOutcome.NO_SUBMISSION
    elif run.finalized and (_is_paused(run) or _has_results(run)):
        yield find_spent_limit(run, limits) or RunOutcome.CONFUSED


def _is_silent(run: Run) -> bool:
    last = run.messages[-1]
    return last.speaker is Speaker.ASSISTANT and not _is_paused(run) and not last.calls


def _is_paused(run: Run) -> bool:
    return run.messages[-1].speaker is Speaker.ASSISTANT and run.reply_stop is Stop.PAUSED


def _has_results(run: Run) -> bool:
    return any(isinstance(part, ToolResult) for part in run.messages[-1].parts)


def find_spent_limit(run: Run, limits: Limits) -> RunOutcome | None:
    """Return the limit that the active role has reached, the most severe of several."""
    used = run.active_tally
    reached = (
        (RunOutcome.TURN_LIMIT, used.turns, limits.turns),
        (RunOutcome.PAUSE_LIMIT, run.pauses, MAX_PAUSES),
        (RunOutcome.TOOL_LIMIT, used.tool_calls, limits.tool_calls),
        (RunOutcome.TOKEN_LIMIT, used.tokens, limits.tokens),
        (RunOutcome.TIME_LIMIT, used.seconds, limits.seconds),
        (RunOutcome.COST_LIMIT, used.cost, limits.cost),
    )
    over = (outcome for outcome, now, most in reached if most is not None and now >= most)
    return min(over, key=SEVERITY.index, default=None)
