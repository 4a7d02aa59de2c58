"""What the end of a run means for its task: a table over every outcome."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from agentflow.core.exits import Exit
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import Ending, Status


class Meaning(NamedTuple):
    """How a task ends whose role ended so, and why, with the role and the hook's reason filled in."""

    status: Status
    exit_code: Exit
    reason: str


def _limit(what: str) -> Meaning:
    return Meaning(Status.LIMIT, Exit.LIMIT, f"the {{role}} used up its {what} without a result")


def _invalid(why: str) -> Meaning:
    return Meaning(Status.FAILED, Exit.NOT_VERIFIED, f"the {{role}} gave no valid result: {why}")


WITHOUT_RESULT: Mapping[RunOutcome, Meaning] = MappingProxyType(
    {
        RunOutcome.ERROR: Meaning(Status.FAILED, Exit.NO_MODEL, "the {role} got no usable reply"),
        RunOutcome.HALTED: Meaning(Status.BLOCKED, Exit.BLOCKED, "a hook said stop: {why}"),
        RunOutcome.STOPPED: Meaning(Status.BLOCKED, Exit.BLOCKED, "a hook stopped the {role}: {why}"),
        RunOutcome.TURN_LIMIT: _limit("turns"),
        RunOutcome.PAUSE_LIMIT: Meaning(
            Status.LIMIT,
            Exit.LIMIT,
            "the model paused its reply again and again (pause_turn), and the {role} has no result",
        ),
        RunOutcome.TOOL_LIMIT: _limit("tool calls"),
        RunOutcome.TOKEN_LIMIT: _limit("tokens"),
        RunOutcome.TIME_LIMIT: _limit("seconds"),
        RunOutcome.COST_LIMIT: _limit("money"),
        RunOutcome.INVALID_SUBMISSION: _invalid("its submission did not fit, twice"),
        RunOutcome.CONFUSED: _invalid("its last three turns held only calls that were refused{by}"),
        RunOutcome.NO_SUBMISSION: _invalid("it ended without a submission"),
        RunOutcome.ANSWERED: _invalid("it ended without a submission"),
        RunOutcome.SUBMITTED: Meaning(Status.FAILED, Exit.NOT_VERIFIED, "the {role} gave no result"),
    }
)
"""The codes are those of the command; a submission that came is judged by the gate of its phase."""


def without_result(run: Run) -> Ending:
    """Return how a task ends whose role gave no result that its phase can use."""
    meaning = WITHOUT_RESULT[run.outcome or RunOutcome.ERROR]
    why = run.halt or run.stop or ""
    by = f" (by {', '.join(run.refused_by)})" if run.refused_by else ""
    reason = meaning.reason.replace("{role}", run.head.role).replace("{why}", why).replace("{by}", by)
    return Ending(status=meaning.status, exit_code=meaning.exit_code, reason=reason)
