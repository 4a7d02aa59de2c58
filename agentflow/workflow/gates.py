"""Gates of phases: how one is decided, how it waits for a person, and how a waiting task goes on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentflow.core.check_command import format_command
from agentflow.core.errors import Exit, Suspended, TaskOver
from agentflow.core.events import Answered, GatesMerged
from agentflow.core.evidence import RED, CheckRun, summarize_evidence
from agentflow.core.pending import APPROVED, Answer, Consent, Pending, PendingKind, decide_now
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status, TaskState
from agentflow.process import make_timestamp
from agentflow.redact import list_some

if TYPE_CHECKING:
    from agentflow.workflow.crew import Crew


def decide_gate(
    task: TaskState, status: GateStatus, message: str, *, agent: str | None = None, phase: Phase | None = None
) -> TaskState:
    gate = Gate(status=status, agent=agent, tree=task.tree, timestamp=make_timestamp(), message=message)
    return task.with_gate(phase or task.current_phase, gate)


def end_in_phase(task: TaskState, phase: Phase, ending: Ending, *, agent: str | None = None) -> TaskState:
    """Return the task ended by a phase without a usable result."""
    task = task.replace(ending=ending)
    return decide_gate(task, GateStatus.FAILED, f"- {ending.reason}", agent=agent, phase=phase)


def format_check(run: CheckRun) -> str:
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({run.check.missing})"
    failing = sorted(run.list_ids(*RED))
    names = f": {list_some(failing)}" if failing else ""
    hint = f"\n  {run.hint}" if run.hint else ""
    command = format_command(run.check.command)
    return f"- `{command}` {summarize_evidence(evidence)} (evidence {evidence.id}){names}{hint}"


def merge_gates(group: str, gates: Mapping[Phase, Gate]) -> GatesMerged:
    """Return the common result of the gates of one tree: passed only if each is."""
    failed = tuple(phase for phase, gate in gates.items() if gate.status is not GateStatus.PASSED)
    words = ", ".join(f"{phase} {gate.status}" for phase, gate in gates.items())
    return GatesMerged(
        group=group, phases=tuple(gates), all_passed=not failed, failed_phases=failed, summary=words
    )


_OPEN = frozenset({Status.RUNNING, Status.SUSPENDED, Status.CANCELLED, Status.ERROR})
"""A task with one of these may go on; `running` is one whose process died."""


def suspend_for(task: TaskState, pending: Pending) -> TaskState:
    others = tuple(item for item in task.pending if item.id != pending.id)
    return suspend(task.replace(pending=(*others, pending)), f"waiting for you: {pending.tell_what_waits()}")


def decide_or_suspend(crew: "Crew", task: TaskState, item: Pending, consent: Consent) -> TaskState:
    """Return the task with an item decided as the person said beforehand, or waiting for a person."""
    item = task.options.terms.apply(item)
    decision = decide_now(consent, item)
    if decision is None:
        return suspend_for(task, item)
    if item.kind is PendingKind.SURFACE:
        decision = decision.replace(at=make_timestamp())
    crew.store.emit(Answered(pending=item.id, approved=decision.approved, by=decision.author))
    return record_answer(task, item, decision)


def make_pending(
    item_id: str, kind: PendingKind, asked: Mapping[str, Any], options: tuple[str, ...] = ()
) -> Pending:
    """Return what a person is asked now about a task, not about a call."""
    now = make_timestamp()
    return Pending(id=item_id, kind=kind, tool=None, input=dict(asked), options=options, asked_at=now)


def pause_after(task: TaskState, phase: Phase) -> TaskState:
    return suspend(task.replace(pause_after=None), f"paused after {phase}")


def suspend(task: TaskState, reason: str, code: Exit = Exit.SUSPENDED) -> TaskState:
    ending = Ending(status=Status.SUSPENDED, exit_code=code, reason=reason)
    return task.replace(status=Status.SUSPENDED, ending=ending)


def record_answer(task: TaskState, item: Pending, answer: Answer) -> TaskState:
    """Return the task with a person's answer to a pending item; a first answer is never replaced."""
    if item.kind is PendingKind.APPROVAL:
        asked = item.input if item.first_input is None else item.first_input
        answer = answer.replace(tool=item.tool, asked=asked)
    elif item.kind not in APPROVED:
        is_own = len(item.questions) == 1 and answer.text not in item.questions[0].options
        answer = answer.replace(question=item.question_text, is_own=is_own)
    task = task.replace(
        pending=tuple(other for other in task.pending if other.id != item.id),
        answers={item.id: answer, **task.waiting.answers},
    )
    if item.kind in APPROVED:
        return task
    task = task.replace(asked=(*task.waiting.asked, task.current_phase))
    if item.kind is PendingKind.PLAN and not answer.approved:  # it is planned again with the correction
        task = task.replace(rejected_plan=task.plan)
        if (
            task.options.plan_mode
        ):  # its conversation goes on with the words, which mean nothing without the plan
            return task
        constraints = "\n".join(filter(None, (task.intent.constraints, f"- {answer.text}")))
        return task.replace(intent=task.intent.replace(constraints=constraints))
    if item.kind is not PendingKind.ESCALATION:
        return task
    wrong, place = item.input["assumption"], f"{item.input['path']}:{item.input['line']}"
    return add_assumption(task, f"{answer.text} (in place of: {wrong}; see {place})", instead=wrong)


def add_assumption(task: TaskState, text: str, *, instead: str = "") -> TaskState:
    kept = [line for line in task.intent.assumptions.split("\n") if line and line != f"- {instead}"]
    return task.replace(intent=task.intent.replace(assumptions="\n".join((*kept, f"- {text}"))))


def decide_pending(task: TaskState, consent: Consent) -> TaskState:
    """Return the task with its pending items decided as the person said beforehand."""
    for item in task.pending:
        decision = decide_now(consent, item)
        task = record_answer(task, item, decision) if decision else task
    return task


def can_go_on(task: TaskState) -> bool:
    """Return whether a task, as it ended or stopped, may be resumed."""
    return task.status in _OPEN


def go_on(task: TaskState, *, is_told: bool) -> TaskState:
    """Return a suspended task ready to run again; an ended one is returned only to be told again.

    Raises TaskOver, or Suspended while something is undecided.
    """
    if not can_go_on(task) and not is_told:
        return task
    if not can_go_on(task):
        raise TaskOver(f"the task is over: {task.status}", hint="start a new one with agentflow task")
    if task.pending:
        first = task.pending[0]
        raise Suspended(
            f"waiting for you: {first.tell_what_waits()}",
            hint=first.tell_how_to_decide(task.task_id),
        )
    tree = task.session.goes_on_from or task.tree
    return task.replace(
        status=Status.RUNNING, ending=None, active=True, tree=tree, goes_on_from=None, undone=None
    )
