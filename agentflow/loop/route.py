"""What an agent does next: a pure function of its run."""

from enum import StrEnum

from agentflow.core.messages import Speaker, ToolResult
from agentflow.core.role import Limits
from agentflow.core.run import Run, RunOutcome

MAX_REJECTED = 2
"""Submissions that do not fit before the run is given up: one repair turn."""
MAX_STUMBLES = 3
"""Turns in a row in which no call could be made, before the role is asked for its result."""


class Step(StrEnum):
    """The nodes of the loop."""

    ASK = "ask"
    ACT = "act"
    REMIND = "remind"
    FINALIZE = "finalize"
    CLOSE = "close"
    END = "end"


def next_step(run: Run, limits: Limits) -> Step:
    """Return the next node to run; the same state always gives the same one."""
    if run.outcome is not None or run.pause is not None:
        return Step.END
    if run.pending:
        return Step.ACT
    if conclusion(run, limits) is not None:
        return Step.CLOSE
    is_lost = run.stumbles >= MAX_STUMBLES
    if (spent(run, limits) is not None or is_lost) and not run.finalized:
        return Step.FINALIZE
    return Step.REMIND if _is_silent(run) else Step.ASK


def conclusion(run: Run, limits: Limits) -> RunOutcome | None:
    """Return how a run that waits for nothing has ended, or None while it goes on."""
    outcome = None
    if run.halt is not None:
        outcome = RunOutcome.HALTED
    elif run.submitted:
        outcome = RunOutcome.SUBMITTED
    elif run.rejected >= MAX_REJECTED:
        outcome = RunOutcome.INVALID_SUBMISSION
    elif _is_silent(run):
        outcome = _silent_end(run)
    elif run.finalized and _has_new_results(run):
        outcome = spent(run, limits) or RunOutcome.CONFUSED
    return outcome


def _silent_end(run: Run) -> RunOutcome | None:
    """Return how a reply without calls ends the run; a role that has to submit is reminded once."""
    if run.head.submit is None:
        return RunOutcome.ANSWERED
    return RunOutcome.NO_SUBMISSION if run.reminded or run.finalized else None


def _is_silent(run: Run) -> bool:
    last = run.messages[-1]
    return last.speaker is Speaker.ASSISTANT and not last.calls


def _has_new_results(run: Run) -> bool:
    return any(isinstance(part, ToolResult) for part in run.messages[-1].parts)


def spent(run: Run, limits: Limits) -> RunOutcome | None:
    """Return the limit that a run has reached, the most severe of several."""
    usage = run.usage
    tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
    reached = (
        (RunOutcome.TURN_LIMIT, run.turns - run.finalized, limits.turns),
        (RunOutcome.TOOL_LIMIT, run.tool_calls, limits.tool_calls),
        (RunOutcome.TOKEN_LIMIT, tokens, limits.tokens),
        (RunOutcome.TIME_LIMIT, run.seconds, limits.seconds),
        (RunOutcome.COST_LIMIT, usage.cost_usd or 0, limits.cost),
    )
    return next((outcome for outcome, now, most in reached if most is not None and now >= most), None)
