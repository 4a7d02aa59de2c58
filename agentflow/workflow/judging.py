"""Review and verification of one unchanging tree, and the approval of changed checks by a person."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial

from agentflow.core.errors import Exit
from agentflow.core.evidence import CheckRun, summarize_evidence
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.pending import Answer, PendingKind
from agentflow.core.role import Claim
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import Ending, Failure, GateStatus, JudgesChoice, Phase, Status, TaskState
from agentflow.core.verdict import Verdict
from agentflow.routing.route import JUDGING, is_to_be_proved
from agentflow.verdict.case import Case, find_faults, list_drift
from agentflow.verdict.diff.inspection import make_approval_id
from agentflow.verdict.doubts import describe_proof, find_doubts
from agentflow.verdict.ending import end_without_result
from agentflow.verdict.gather import (
    find_altered,
    find_drift,
    gather_case,
    gather_final_case,
    run_required,
    try_checks,
)
from agentflow.verdict.judge import add_role_caveats, doubt, judge, list_objections, lower_verdict
from agentflow.verdict.runner import run_apart, run_together
from agentflow.wording import describe_all, list_lines
from agentflow.workflow.crew import Crew
from agentflow.workflow.dispatch import dispatch
from agentflow.workflow.gates import (
    decide_gate,
    decide_or_suspend,
    end_in_phase,
    format_check,
    make_pending,
    merge_gates,
    suspend_for,
)
from agentflow.workflow.proving import keep_results
from agentflow.workflow.session import announce_phase, ask_stop_hooks
from agentflow.workflow.task_prompt import MAX_DIFF_CHARS

_NOTHING_NEW = "- not asked again: nothing changed since the last iteration failed"
_CHECK_FAILED = "- not asked: a required check failed"
_NO_JUDGE = ("its route has none that could be",)
_WRONG_FORM = (RunOutcome.INVALID_SUBMISSION, RunOutcome.NO_SUBMISSION, RunOutcome.CONFUSED)
"""The ends of a judge whose result cannot be taken: they make no proved work worse than a caveat."""


async def _run_checks(crew: Crew) -> tuple[Case, Verdict]:
    """Run the required checks unless they ran on this tree; return the case and its verdict without proof."""
    task = crew.store.task
    known = crew.checking.find_runs(task.final)
    if not known or any(run.evidence and run.evidence.tree_before != task.tree for run in known):
        found = await run_required(crew.judging, task)
        _save(crew, found, "surface", "final", "held", "fresh", "probes", "mutants", "audit", "unable")
    case = gather_case(crew.judging, crew.store.task)
    return case, judge(case.replace(probes=case.probes or (), guessed=frozenset()))


async def _ask_judges(crew: Crew, phases: tuple[Phase, ...]) -> dict[Phase, Run | None]:
    """Run the required checks, look for proof, and ask the judges that are needed; return each one's run."""
    case, so_far = await _run_checks(crew)
    if not (so_far.passed or so_far.to_approve):
        _skip_review(crew, phases, _CHECK_FAILED)
        return {Phase.VERIFICATION: None} if Phase.VERIFICATION in phases else {}
    may_verify = crew.store.task.asks_verifier and so_far.passed and bool(so_far.evidence)
    able = tuple(phase for phase in phases if phase is Phase.REVIEW or may_verify)
    choice = await _choose_judges(crew, case, able)
    asked, task = able if choice.asked else (), crew.store.task
    if asked and task.stands and not (task.stands.judges and task.stands.judges.asked):
        task = task.replace(stands=None)  # what no judge has seen stands no longer
    crew.store.save(task.replace(judges=choice))
    if Phase.REVIEW not in asked:
        _skip_review(crew, phases, f"- {choice.describe()}")
    for phase in asked:
        task = await announce_phase(crew, crew.store.task, phase)
        if task.ending is not None:
            crew.store.save(end_in_phase(task, phase, task.ending))
            return {}

    async def verify() -> Run | None:
        judge = (partial(dispatch, crew, Phase.VERIFICATION),) if Phase.VERIFICATION in asked else ()
        look = partial(_try_checks, crew, case)
        _, *runs = await run_apart(crew.sandbox.level, look, *judge)
        return runs[0] if runs else None

    async def review() -> Run | None:
        return await dispatch(crew, Phase.REVIEW)

    judges = {Phase.REVIEW: review, Phase.VERIFICATION: verify}
    due = [phase for phase in phases if phase is Phase.VERIFICATION or phase in asked]
    return dict(zip(due, await run_together(*map(judges.__getitem__, due)), strict=True))


async def _choose_judges(crew: Crew, case: Case, able: tuple[Phase, ...]) -> JudgesChoice:
    """Return whether judges are asked; that is known after the proof, unless it is needed in any case."""
    ask = partial(find_doubts, crew.git, crew.table)
    if why := ask(crew.store.task, case):
        return JudgesChoice(asked=bool(able), why=why if able else _NO_JUDGE)
    await _try_checks(crew, case)
    task = crew.store.task
    case = gather_case(crew.judging, task)
    verdict = judge(case)
    if not (verdict.passed or verdict.to_approve):
        return JudgesChoice(asked=False, why=describe_all(verdict.reasons))
    if is_to_be_proved(task.replace(verdict=verdict)):
        return JudgesChoice(asked=False, why=("a proving round comes first",))
    if why := ask(task, case, verdict):
        return JudgesChoice(asked=bool(able), why=why if able else _NO_JUDGE)
    return JudgesChoice(asked=False, why=describe_proof(crew.git, task, case, verdict))


def _skip_review(crew: Crew, phases: tuple[Phase, ...], message: str) -> None:
    if Phase.REVIEW in phases:
        task = crew.store.task
        crew.store.save(decide_gate(task, GateStatus.SKIPPED, message, phase=Phase.REVIEW))


async def _try_checks(crew: Crew, case: Case) -> None:
    if crew.store.task.probes is None:
        tried = await try_checks(crew.judging, crew.store.task, case)
        _save(crew, tried, "probes", "mutants", "memorised", "fresh")


def _save(crew: Crew, found: TaskState, *keys: str) -> None:
    """Save these keys alone, because the other judge changes the state meanwhile."""
    crew.store.save(crew.store.task.replace(**found.get_values(keys)))


async def run_judges(crew: Crew, task: TaskState, phases: tuple[Phase, ...]) -> TaskState:
    """Run the judges side by side, then decide their gates one after the other."""
    task = crew.take_tree(task)
    if not task.reads_only and not crew.list_changes(task):
        return _fail_unchanged(crew, task.replace(final=()), phases)
    if kept := keep_results(task):
        if kept.verdict is not None:
            return kept
        task = kept
    if repeated := _find_repeated(task):
        return _fail_as_before(crew, task, repeated)
    crew.store.save(task)
    if task.reads_only:  # an audit
        runs: dict[Phase, Run | None] = {Phase.REVIEW: await dispatch(crew, Phase.REVIEW)}
    else:
        runs = await _ask_judges(crew, phases)
    task = crew.store.task
    for run in runs.values():
        task = suspend_for(task, run.pause.pending) if run and run.pause else task
    if Phase.REVIEW in runs:
        task = _decide_review(crew, task, runs[Phase.REVIEW])
    if Phase.VERIFICATION in runs:
        task = await _decide_verification(crew, task, runs[Phase.VERIFICATION])
    is_reviewed = task.get_gate(Phase.REVIEW).status is not GateStatus.SKIPPED
    if Phase.REVIEW in task.routing.steps and Phase.VERIFICATION in runs and is_reviewed:
        crew.store.emit(merge_gates("judging", {phase: task.get_gate(phase) for phase in JUDGING}))
    return task


def _find_repeated(task: TaskState) -> tuple[Failure, ...]:
    """Return the failures of the last iteration, if the tree is still the one that failed.

    Once Stop hooks have sent a change back they are asked again: they may look at other things than files.
    """
    last = [failure for failure in task.failures if failure.iteration == task.iteration - 1]
    is_same = bool(last) and all(failure.tree == task.tree for failure in last)
    return tuple(last) if is_same and not task.waiting.stop_blocks else ()


def _fail_as_before(crew: Crew, task: TaskState, failures: tuple[Failure, ...]) -> TaskState:
    """Return the task with the failures of the last iteration; no judge is asked twice about one tree."""
    verdict, failed = judge(gather_final_case(crew.judging, task)), {each.phase: each for each in failures}
    for phase in (phase for phase in JUDGING if task.get_gate(phase).status is not GateStatus.SKIPPED):
        known = failed.get(phase)
        status = GateStatus.FAILED if known else GateStatus.SKIPPED
        message = list_lines(known.reasons) if known else _NOTHING_NEW
        task = decide_gate(task, status, message, phase=phase)
    if known := failed.get(Phase.VERIFICATION):
        verdict = verdict.replace(passed=False, reasons=known.reasons, caveats=())
    task = task.replace(verdict=verdict)
    again = (each.replace(iteration=task.iteration) for each in failures)
    return task.replace(failures=(*task.failures, *again))


def _fail_unchanged(crew: Crew, task: TaskState, phases: tuple[Phase, ...]) -> TaskState:
    verdict = judge(gather_case(crew.judging, task))
    for phase in phases:
        task = decide_gate(task, GateStatus.FAILED, list_lines(verdict.reasons), phase=phase)
    return add_failure(task.replace(verdict=verdict), phases[0], verdict.reasons)


def _decide_review(crew: Crew, task: TaskState, run: Run | None) -> TaskState:
    """Return the task with its review gate decided; a review is all that an audit needs."""
    if run is None or run.pause is not None:
        return task
    agent = run.head.agent
    if run.outcome in _WRONG_FORM and not task.reads_only:
        message = f"- no review counts: {end_without_result(run).reason}"
        return decide_gate(task, GateStatus.SKIPPED, message, agent=agent, phase=Phase.REVIEW)
    if run.outcome is not RunOutcome.SUBMITTED or task.review is None:
        return end_in_phase(task, Phase.REVIEW, end_without_result(run), agent=agent)
    issues = len(task.review.issues)
    said = f"- {task.review.verdict}, {issues} issue{'' if issues == 1 else 's'}"
    reasons = () if task.reads_only else list_objections(task.review, task.flagged_issues)
    reasons = (*list_drift(find_drift(crew.judging, task), find_altered(crew.judging, task)), *reasons)
    if not reasons:
        return decide_gate(task, GateStatus.PASSED, said, agent=agent, phase=Phase.REVIEW)
    message = f"{said}\n{list_lines(reasons)}"
    task = decide_gate(task, GateStatus.FAILED, message, agent=agent, phase=Phase.REVIEW)
    return add_failure(task, Phase.REVIEW, reasons)


async def _decide_verification(crew: Crew, task: TaskState, run: Run | None) -> TaskState:
    if run is not None and run.pause is not None:
        return task
    verdict = judge(gather_final_case(crew.judging, task))
    if verdict.to_approve and task.get_gate(Phase.REVIEW).status is not GateStatus.FAILED:
        task = ask_approval(crew, task.replace(verdict=verdict))
        return task if task.pending else _decide_gate(crew, task, verdict, run)
    if verdict.passed and run is not None and run.outcome in _WRONG_FORM:
        verdict = doubt(verdict, FindingKind.AS_WORDED.of(end_without_result(run).reason))
    elif verdict.passed and run is not None:
        if run.outcome is not RunOutcome.SUBMITTED or task.judgement is None:
            return end_in_phase(task, Phase.VERIFICATION, end_without_result(run), agent=run.head.agent)
        verdict = lower_verdict(verdict, task.judgement, crew.list_changes(task), task.judge_tests)
    verdict = add_role_caveats(verdict, task)
    if verdict.passed and task.get_gate(Phase.REVIEW).status is not GateStatus.FAILED:
        task, verdict = await ask_stop_hooks(crew, task, verdict)
    return _decide_gate(crew, task, verdict, run)


def ask_approval(crew: Crew, task: TaskState) -> TaskState:
    """Return the task suspended until a person approves its changed checks, or ended where that is denied."""
    assert task.verdict is not None
    seen, weakened = crew.inspections.of(task), task.verdict.weakened
    paths = [each.path for each in seen.checks]
    before = [f"{run.check.name} {_describe_run(run)}" for run in crew.checking.find_runs(task.held)]
    asked = {
        "why": task.change.summary if task.change else "",
        "changes": list(describe_all(weakened)),
        "before": before,
        "diff": crew.git.make_diff(*task.trees, *paths)[:MAX_DIFF_CHARS] if paths else "",
    }
    pending = make_pending(make_approval_id(seen, weakened), PendingKind.SURFACE, asked)
    if pending.id not in task.waiting.answers:
        task = decide_or_suspend(crew, task, pending, crew.consent)
    if task.pending:
        return task
    return task.replace(ending=_end_tampered(task.waiting.answers[pending.id], weakened))


def _decide_gate(crew: Crew, task: TaskState, verdict: Verdict, run: Run | None) -> TaskState:
    task = task.replace(verdict=verdict)
    agent = run.head.agent if run is not None else None
    if verdict.passed:
        caveats = f" with caveat: {', '.join(verdict.caveats)}" if verdict.caveats else ""
        found = f"every required check passes (evidence {', '.join(verdict.evidence)})"
        message = f"- {found if verdict.evidence else 'no check was run'}{caveats}"
        if run is None and task.judges:
            message += f"\n- {task.judges.describe()}"
        return decide_gate(task, GateStatus.PASSED, message, agent=agent, phase=Phase.VERIFICATION)
    red = [run for run in crew.checking.find_runs(task.final) if not run.green]
    message = "\n".join((list_lines(verdict.reasons), *map(format_check, red)))
    task = decide_gate(task, GateStatus.FAILED, message, agent=agent, phase=Phase.VERIFICATION)
    return add_failure(task, Phase.VERIFICATION, verdict.reasons, red)


def add_failure(
    task: TaskState, phase: Phase, reasons: tuple[Finding, ...], red: Sequence[CheckRun] = ()
) -> TaskState:
    """Return the task with one more failure for the implementer's next prompt.

    Its signature leaves out its reasons: a hanging check has other seconds each time, a judge other words.
    """
    judge: object = task.judgement and task.judgement.verdict
    is_judged = phase is Phase.VERIFICATION and judge is Claim.FAILED
    if phase is Phase.REVIEW and task.review is not None:
        judge = sorted((each.severity, each.kind, each.path, each.line) for each in task.review.issues)
    identity = (phase.value, judge, task.waiting.stop_blocks, sorted(map(_identify, red)))
    failure = Failure(
        iteration=task.iteration,
        phase=phase,
        tree=task.tree or "",
        signature=hashlib.sha256(repr(identity).encode()).hexdigest()[:16],
        reasons=reasons,
        tests=tuple(each for each in task.judge_tests if each.failing) if is_judged else (),
        evidence=task.verdict.evidence if task.verdict and phase is not Phase.REVIEW else (),
    )
    return task.replace(failures=(*task.failures, failure))


def _identify(run: CheckRun) -> tuple[str, ...]:
    end = (run.evidence.timed_out or run.evidence.exit_code) if run.evidence else None
    return (run.check.name, run.check.command, str(end), *sorted(find_faults(run)))


def _describe_run(run: CheckRun) -> str:
    return summarize_evidence(run.evidence) if run.evidence else f"not run ({run.check.missing})"


def _end_tampered(answer: Answer, weakened: Iterable[Finding]) -> Ending:
    why = f" ({answer.text})" if answer.text else ""
    reason = "\n".join(
        (f"the checks were changed, not approved by {answer.author}{why}:", *describe_all(weakened))
    )
    return Ending(status=Status.TAMPERED, exit_code=Exit.TAMPERED, reason=reason)
