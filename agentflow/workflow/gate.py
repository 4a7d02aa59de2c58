"""The verdict on a change: a pure function of evidence."""

import re
from pathlib import PurePosixPath

from agentflow.core.allowance import Override
from agentflow.core.evidence import RED, By, CheckName, CheckRun, Evidence, Side, TestOutcome, Verdict
from agentflow.core.record import Record
from agentflow.core.submissions import Claim, Judgement
from agentflow.workspace.git import ChangeKind, FileChange

ALREADY_RED = "already_red"
NO_REGRESSION_ONLY = "no_regression_only"
VERIFIER_DISAGREES = "verifier_disagrees"
CHECK_SKIPPED = "check_skipped"  # followed by the name of the check
_UNLOADED = "unittest.loader._FailedTest."
_FIXTURES = frozenset({"setUpClass", "tearDownClass", "setUpModule", "tearDownModule"})
_ARTEFACTS = frozenset(
    {".log", ".txt", ".out", ".tmp", ".xml", ".html", ".db", ".sqlite3", ".csv", ".lock", ".pid"}
)
"""New files of these kinds are what checks leave behind; any other could change what the checks show."""
NAMED = 5
"""Names listed in a reason before the rest is counted."""


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


def judge(case: Case) -> Verdict:
    """Return pass only if something changed, and every required check held on that very tree."""
    evidence = tuple(run.evidence.id for run in case.final if run.evidence is not None)
    if case.tree == case.base_tree:
        return Verdict(passed=False, reasons=("nothing was changed",), evidence=evidence)
    case = _without_skipped(case)
    reasons = [*drifted(case), *_missing(case), *_leaked(case)]
    caveats = [f"{CHECK_SKIPPED}:{override.check}" for override in case.overrides]
    for run in case.final:
        found = _problems(case, run)
        reasons.extend(found)
        if not found and not run.green and not _is_known(case, run):
            caveats.append(ALREADY_RED)
    if not case.preserving and not _proof(case):
        caveats.append(NO_REGRESSION_ONLY)
    return Verdict(
        passed=not reasons,
        reasons=tuple(reasons),
        evidence=evidence,
        caveats=() if reasons else tuple(dict.fromkeys(caveats)),
        notes=(*_skipped(case), *_appeared(case), *_still_red(case)),
    )


def _without_skipped(case: Case) -> Case:
    """Return the case as if there were no check of the kinds that a person skips."""
    skipped = {override.check for override in case.overrides}
    before = tuple(run for run in case.baseline if run.check.name not in skipped)
    now = tuple(run for run in case.final if run.check.name not in skipped)
    return case.replace(baseline=before, final=now)


def _skipped(case: Case) -> list[str]:
    return [f"{one.check} skipped by {one.by}: {one.reason} (risk: {one.risk})" for one in case.overrides]


def _leaked(case: Case) -> list[str]:
    return [f"the change adds what looks like a secret: {listed(list(case.secrets))}"] if case.secrets else []


def drifted(case: Case) -> list[str]:
    """Return what was changed after the tree was taken that is judged."""
    changed = [change.path for change in case.drift if not _is_artefact(change)]
    return [f"changed after the checks began: {listed(changed)}"] if changed else []


def _is_artefact(change: FileChange) -> bool:
    """Return whether a file is new and of a kind that no program or test runner obeys."""
    return change.kind is ChangeKind.ADDED and PurePosixPath(change.path).suffix in _ARTEFACTS


def _appeared(case: Case) -> list[str]:
    added = [change.path for change in case.drift if _is_artefact(change)]
    return [f"new files appeared while the checks ran: {listed(added)}"] if added else []


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
    loaded = _loaded_now(base, run)
    gone = base.ids(TestOutcome.PASSED, *RED) - run.ids(TestOutcome.PASSED, *RED) - loaded
    due = (case.targets & base.ids(*RED)) - case.known - run.ids(TestOutcome.PASSED) - gone - loaded
    reasons = [f"{run.check.name}: ran before, not now: {listed(sorted(gone))}"] if gone else []
    return [*reasons, *([f"{run.check.name}: still failing: {listed(sorted(due))}"] if due else [])]


def _loaded_now(base: CheckRun, run: CheckRun) -> frozenset[str]:
    """Return what stood for tests that could not be loaded or set up, and of which some pass now."""
    passed = run.ids(TestOutcome.PASSED)
    return frozenset(
        test
        for test in base.ids(*RED) - run.ids(*RED)
        if (scope := _scope(test)) and any(name.startswith(scope) for name in passed)
    )


def _scope(test: str) -> str | None:
    """Return how the ids of the tests begin that a failure to load or set up stands for."""
    if _UNLOADED in test:
        return test.partition(_UNLOADED)[2] + "."
    owner, _, last = test.rpartition(".")
    if last in _FIXTURES:
        return f"{owner}."
    return f"{test}::" if last == "py" and "::" not in test else None


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


def _proof(case: Case) -> list[str]:
    """Return the checks and tests that were red on the base and are green now."""
    proven = []
    for base in case.baseline:
        run = next((run for run in case.final if run.check.name is base.check.name), None)
        if run is None or base.evidence is None:
            continue
        if not base.outcomes and not base.green and run.green:
            proven.append(str(run.check.name))
        proven.extend((base.ids(*RED) & run.ids(TestOutcome.PASSED)) | _loaded_now(base, run))
    return proven


def _still_red(case: Case) -> list[str]:
    red = (run for run in case.final if not run.green)
    return [
        f"{'known to fail' if _is_known(case, run) else 'red before the task and now'}: "
        f"{run.check.name}: {listed(sorted(_wrong(run)))}"
        for run in red
    ]


def weigh(verdict: Verdict, judgement: Judgement, changed: tuple[FileChange, ...]) -> Verdict:
    """Return the verdict after the verifier spoke: its word can lower a pass, and nothing else."""
    said = "; ".join(judgement.reasons) or "no reason given"
    match judgement.verdict:
        case Claim.VERIFIED:
            return verdict
        case Claim.FAILED if judgement.evidence or _cites(judgement, changed):
            return verdict.replace(passed=False, reasons=(f"verifier: {said}",), caveats=())
        case Claim.FAILED | Claim.ENVIRONMENT_BLOCKED:
            return verdict.replace(
                caveats=(*verdict.caveats, VERIFIER_DISAGREES),
                notes=(*verdict.notes, f"every check holds, and the verifier says without evidence: {said}"),
            )


def _cites(judgement: Judgement, changed: tuple[FileChange, ...]) -> bool:
    """Return whether a reason names a line of a changed file."""
    text = "\n".join(judgement.reasons)
    return any(re.search(rf"(?<![\w./-])(?:\./)?{re.escape(change.path)}:\d+", text) for change in changed)


def listed(names: list[str]) -> str:
    """Return names in one line, the first few of many."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
