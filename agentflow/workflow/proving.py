"""Proving rounds: when none is worth its cost, and what stands where one ends badly."""

import anyio

from agentflow.core.events import PhaseEnded
from agentflow.core.finding import FindingKind
from agentflow.core.task import Ending, Status, TaskState
from agentflow.redact import to_one_line
from agentflow.routing.route import JUDGING, is_to_be_proved
from agentflow.verdict.case import find_hook_files
from agentflow.verdict.ending import conclude
from agentflow.verdict.judge import list_claims
from agentflow.workflow.crew import Crew
from agentflow.workspace.snapshot import InTheWay

_LEAST_LEFT = 0.2
"""The share of each limit that a round needs."""
_WORSE = (Status.FAILED, Status.LIMIT, Status.TAMPERED)
"""The ends of a round that the change before it outlives; what a hook or a person stops stays stopped."""
_REASON = 300


def skip_proving(task: TaskState) -> TaskState:
    """Return the task without the proving round that is due, where a limit of the task is nearly used up."""
    if task.verdict is None or not is_to_be_proved(task):
        return task
    budget, usage = task.options.budget, task.usage
    left = anyio.current_effective_deadline() - anyio.current_time()
    used = {
        "--max-cost": (usage.cost_usd or 0) / budget.cost if budget.cost else 0,
        "--max-tokens": usage.tokens / budget.tokens if budget.tokens else 0,
        "--timeout": 1 - left / budget.seconds if budget.seconds else 0,
    }
    short = [f"{share:.0%} of {name}" for name, share in used.items() if share > 1 - _LEAST_LEFT]
    if not short:
        return task
    note = FindingKind.NO_PROVING_ROUND.of(*short)
    verdict = task.verdict.replace(notes=(*task.verdict.notes, note))
    return task.replace(prove_rounds=task.proving, verdict=verdict)


def keep_results(task: TaskState) -> TaskState | None:
    """Return the task as before its proving round, where that left the files the same; else None.

    Its verdict stands as well, unless judges have still to be asked.
    """
    stands = task.stands
    if stands is None or not task.is_proving or stands.tree != task.tree:
        return None
    notes = dict.fromkeys((*stands.verdict.notes, *list_claims(task)))
    verdict = stands.verdict.replace(notes=tuple(notes))
    kept = {**stands.state, "verdict": verdict, "change": task.change}
    if not (stands.judges and stands.judges.asked) and {*JUDGING} & {*task.routing.steps}:
        kept |= {"gates": task.gates, "verdict": None}
    return task.replace(**kept, prove_rounds=task.proving)  # another round would change as little


def keep_standing(crew: Crew, task: TaskState, ending: Ending) -> tuple[TaskState, Ending]:
    """Return the task as it stood before a proving round that ended badly, with its files, and its end."""
    stands = task.stands
    if stands is None or ending.status not in _WORSE:
        return task, ending
    try:
        crew.snapshots.go_back(find_hook_files(task))
    except InTheWay as error:
        reason = f"{ending.reason}; the files before the proving round cannot be restored: {error}"
        return task, ending.replace(reason=reason)
    why = to_one_line(ending.reason, _REASON)
    note = FindingKind.ROUND_UNDONE.of(str(task.proving), why)
    verdict = stands.verdict.replace(notes=(*stands.verdict.notes, note))
    kept = {**stands.state, "verdict": verdict, "iteration": task.iteration}
    told, task = task.gates, task.replace(**kept, stands=None, pending=())
    for phase, gate in task.gates.items():
        if gate != told.get(phase):  # who watches saw it open again
            crew.store.emit(
                PhaseEnded(
                    phase=phase, iteration=task.iteration, status=gate.status, message=gate.message, seconds=0
                )
            )
    return task, conclude(task)
