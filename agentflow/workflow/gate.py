"""The verdict on a change: a pure function of evidence."""

from agentflow.checks.tampering import Finding
from agentflow.core.allowance import Override
from agentflow.core.evidence import RED, By, CheckName, CheckRun, Evidence, Side, TestOutcome, Verdict
from agentflow.core.pending import Answer
from agentflow.core.record import Record
from agentflow.workflow.drift import appeared, drifted, listed
from agentflow.workflow.turned import loaded_now, turned
from agentflow.workspace.git import FileChange

ALREADY_RED = "already_red"
NO_REGRESSION_ONLY = "no_regression_only"
CHECK_SKIPPED = "check_skipped"  # followed by the name of the check
KNOWS_THE_TESTS = "knows_the_tests"


class Case(Record):
    """All that a verdict rests on."""

    base_tree: str
    tree: str
    """As the checks began."""
    drift: tuple[FileChange, ...]
    """What differs on disk now from `tree`."""
    baseline: tuple[CheckRun, ...]
    final: tuple[CheckRun, ...]
    targets: frozenset[str]
    """Tests that the task has to turn green."""
    preserving: bool
    """The task asks for no new behaviour."""
    overrides: tuple[Override, ...] = ()
    known: frozenset[str] = frozenset()
    """Tests whose failure does not count; one that cannot even be loaded does."""
    secrets: tuple[str, ...] = ()
    """Where the change brings in what looks like a key."""
    held: tuple[CheckRun, ...] = ()
    """The same code under the checks as they stood; the runs of `final` where nothing changed."""
    fresh: tuple[CheckRun, ...] = ()
    """Changed tests on the code as it was."""
    weakened: tuple[str, ...] = ()
    """What was done to the checks that a person has to approve."""
    approval: Answer | None = None
    """What a person said to exactly that."""
    suspicions: tuple[Finding, ...] = ()
    """Lines of the new code that may be there for the checks."""
    unseen: tuple[str, ...] = ()
    """Ignored files that are new or changed, which no check could see."""


def judge(case: Case) -> Verdict:
    """Return pass only if something changed and every required check held on that very tree.

    It has to hold as it stood before the task too, or a person approved how it was changed.
    """
    shown = (run.evidence.id for run in (*case.final, *case.held, *case.fresh) if run.evidence is not None)
    evidence = tuple(dict.fromkeys(shown))
    if case.tree == case.base_tree:
        return Verdict(passed=False, reasons=("nothing was changed",), evidence=evidence)
    case = _without_skipped(case)
    failures = _failures(case)
    is_approved = case.approval is not None and case.approval.approved
    to_approve = bool(case.weakened) and not (failures or is_approved)
    changed = case.weakened if to_approve else ()
    reasons = failures or tuple(f"the checks were changed: {line}" for line in changed)
    return Verdict(
        passed=not reasons,
        reasons=reasons,
        evidence=evidence,
        caveats=() if reasons else _caveats(case),
        notes=(*_skipped(case), *_remarks(case)),
        weakened=case.weakened,
        to_approve=to_approve,
        approvals=() if reasons else _approvals(case),
    )


def _without_skipped(case: Case) -> Case:
    """Return the case as if there were no check of the kinds that a person skips."""
    skipped = {override.check for override in case.overrides}
    sides = {"baseline": case.baseline, "final": case.final, "held": case.held, "fresh": case.fresh}
    kept = {side: tuple(run for run in runs if run.check.name not in skipped) for side, runs in sides.items()}
    return case.replace(**kept)


def _skipped(case: Case) -> list[str]:
    return [f"{one.check} skipped by {one.by}: {one.reason} (risk: {one.risk})" for one in case.overrides]


def _leaked(case: Case) -> list[str]:
    return [f"the change adds what looks like a secret: {listed(list(case.secrets))}"] if case.secrets else []


def _remarks(case: Case) -> list[str]:
    """Return what a person should know although it decides nothing."""
    return [*appeared(case.drift), *_still_red(case), *_unproven(case), *_suspected(case), *_unseen(case)]


def holds(case: Case) -> bool:
    """Return whether all checks hold as they are now."""
    return not _failures(_without_skipped(case))


def _failures(case: Case) -> tuple[str, ...]:
    """Return what the change has to mend, whoever approves what."""
    problems = (problem for run in case.final for problem in _problems(case, run))
    return (*drifted(case.drift), *_missing(case), *_leaked(case), *problems)


def _caveats(case: Case) -> tuple[str, ...]:
    """Return what lessens a pass, as words."""
    caveats = [f"{CHECK_SKIPPED}:{override.check}" for override in case.overrides]
    if any(not run.green and not _is_known(case, run) for run in case.final):
        caveats.append(ALREADY_RED)
    if not case.preserving and not proof(case):
        caveats.append(NO_REGRESSION_ONLY)
    if any(each.is_sure for each in case.suspicions):
        caveats.append(KNOWS_THE_TESTS)
    return tuple(dict.fromkeys(caveats))


def _approvals(case: Case) -> tuple[str, ...]:
    """Return who approved what of the checks' changes, and when."""
    if case.approval is None or not case.weakened:
        return ()
    said = f": {case.approval.comment}" if case.approval.comment else ""
    by = f"approved by {case.approval.by or 'a person'} at {case.approval.at}{said}"
    return tuple(f"{line} ({by})" for line in case.weakened)


def _suspected(case: Case) -> list[str]:
    """Return the lines of the new code that may be there for the checks, the sure ones first."""
    ordered = sorted(case.suspicions, key=lambda each: not each.is_sure)
    return [each.said() if each.is_sure else f"to be looked at: {each.said()}" for each in ordered]


def _unseen(case: Case) -> list[str]:
    names = listed(list(case.unseen))
    return [f"ignored by git and new or changed, so that no check saw it: {names}"] if names else []


def _unproven(case: Case) -> list[str]:
    """Return what new tests show of the change: nothing, if they pass without it."""
    known = frozenset[str]().union(*(run.ids(*TestOutcome) for run in case.baseline))
    passed = frozenset[str]().union(*(run.ids(TestOutcome.PASSED) for run in case.fresh))
    new = sorted(passed - known)
    return [f"not evidence, passes without the change: {listed(new)}"] if new else []


def _missing(case: Case) -> list[str]:
    """Return the checks that were not run, of those that there were before and of tests in any case."""
    now = {run.check.name for run in case.final}
    left_out = [run.check.name for run in case.baseline if run.check.name not in now]
    reasons = [f"{name}: not run" for name in left_out]
    skipped = {override.check for override in case.overrides}
    if CheckName.TESTS not in {*now, *left_out, *skipped}:
        reasons.append("tests: not run (this repository has none that agentflow can find)")
    return reasons


def _problems(case: Case, run: CheckRun) -> list[str]:
    """Return why a required check does not hold."""
    unfit = _unfit(case, run)
    if unfit is not None:
        return [f"{run.check.name}: {unfit}"]
    base = next((other for other in case.baseline if other.check.name is run.check.name), None)
    return [*_owed(case, base, run), *([] if run.green else _red(case, base, run))]


def _unfit(case: Case, run: CheckRun) -> str | None:
    """Return why what a check showed cannot count at all."""
    evidence, reason = run.evidence, None
    if evidence is None:
        reason = f"not run ({run.check.missing})"
    elif evidence.tree_before != case.tree:
        reason = f"{evidence.id} ran on another tree"
    elif not _is_bound(run, evidence):
        reason = f"{evidence.id} is not this check, run by the program on the final code"
    elif evidence.timed_out:
        reason = f"timed out after {evidence.seconds:.0f} s"
    elif evidence.tests is not None and evidence.tests.ran == 0:
        reason = "no test ran"
    return reason


def _is_bound(run: CheckRun, evidence: Evidence) -> bool:
    return (
        evidence.by is By.PROGRAM
        and evidence.check is run.check.name
        and evidence.command == run.check.command
        and (evidence.surface, evidence.code) == (Side.FINAL, Side.FINAL)
    )


def _owed(case: Case, base: CheckRun | None, run: CheckRun) -> list[str]:
    """Return the tests that gave a result before and give none now, and the targets that do not pass."""
    if base is None:
        return []
    loaded = loaded_now(base, run)
    held = next((other for other in case.held if other.check.name is run.check.name), run)
    gone = base.told - run.told - held.told - loaded
    due = case.targets & base.ids(*RED)
    due -= case.known | run.ids(TestOutcome.PASSED) | (base.told - run.told) | loaded
    reasons = [f"{run.check.name}: ran before, not now: {listed(sorted(gone))}"] if gone else []
    return [*reasons, *([f"{run.check.name}: still failing: {listed(sorted(due))}"] if due else [])]


def _is_known(case: Case, run: CheckRun) -> bool:
    """Return whether a check is red by nothing but tests that are known to fail."""
    failing = run.ids(*RED)
    code = run.evidence.exit_code if run.evidence else None
    return bool(failing) and code == 1 and failing <= (run.ids(TestOutcome.FAILED) & case.known)


def _red(case: Case, base: CheckRun | None, run: CheckRun) -> list[str]:
    """Return what is newly wrong in a red check."""
    if _is_known(case, run):
        return []
    name, code = run.check.name, run.evidence.exit_code if run.evidence else None
    now, before = _wrong(run), _wrong(base) if base else {}
    if base is None or base.green or not now:
        return [f"{name}: exit {code}{': ' + listed(sorted(now)) if now else ''}"]
    known = case.known & run.ids(TestOutcome.FAILED)
    new = sorted(item for item, times in now.items() if times > before.get(item, 0) and item not in known)
    return [f"{name}: newly wrong: {listed(new)}"] if new else []


def _wrong(run: CheckRun) -> dict[str, int]:
    """Return what a check complains of: failing tests, else findings, with how often."""
    return dict.fromkeys(run.ids(*RED), 1) or dict(run.findings)


def proof(case: Case) -> tuple[str, ...]:
    """Return the checks and tests that were red on the code before and are green on the code now.

    Where that is so because a test was changed, the task asks for it by name or a person approves it.
    """
    return (*turned(case.baseline, case.final), *turned(case.fresh, case.final))


def _still_red(case: Case) -> list[str]:
    red = (run for run in case.final if not run.green)
    return [
        f"{'known to fail' if _is_known(case, run) else 'red before the task and now'}: "
        f"{run.check.name}: {listed(sorted(_wrong(run)))}"
        for run in red
    ]
