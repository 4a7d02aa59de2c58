"""All that a verdict rests on, and what of it is only to be told."""

from collections.abc import Iterator, Mapping

from agentflow.checks.dependencies import Difference
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, TestOutcome, ended
from agentflow.core.pending import Answer, Override
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk, ProbeResult, ProofKind
from agentflow.verdict.drift import appeared, listed
from agentflow.verdict.findings import Finding
from agentflow.verdict.probe_results import hunks_of, notes_of, proven_tests
from agentflow.workspace.git import FileChange


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
    guessed: frozenset[str] = frozenset()
    """Tests that may show what it is about: they have to turn green unless others prove the change."""
    same_behaviour: bool = False
    """Only documents, comments, form or annotations differ, so that no test could tell."""
    altered: tuple[FileChange, ...] = ()
    """What checks and judges changed in their own copies."""
    overrides: tuple[Override, ...] = ()
    blocked: Mapping[CheckName, str] = {}
    """Why checks could not run on this machine before the task."""
    known: frozenset[str] = frozenset()
    """Tests whose failure does not count; one that cannot even be loaded does."""
    secrets: tuple[str, ...] = ()
    """Where the change brings in what looks like a key."""
    held: tuple[CheckRun, ...] = ()
    """The same code under the checks as they stood; the runs of `final` where nothing changed."""
    fresh: tuple[CheckRun, ...] = ()
    """Tests that may prove the change, on the code as it was."""
    alone: tuple[CheckRun, ...] = ()
    """The same tests in the same way on the code now, where no other run shows that."""
    probes: tuple[ProbeResult, ...] | None = None
    """What runs that have to fail came to; None until that is known."""
    is_unchanged: bool = False
    """Nothing differs but what hooks changed."""
    changed: tuple[Hunk, ...] = ()
    """All changed lines of the product, as places to point at."""
    tested: tuple[str, ...] = ()
    """The files of tests that are new or changed."""
    unread: tuple[str, ...] = ()
    """New files that no check was seen to read."""
    unshown: tuple[str, ...] = ()
    """Settings and other files of the checks that differ, and are no tests."""
    is_renaming: bool = False
    """Nothing but names differs, and the very same tests pass."""
    weakened: tuple[str, ...] = ()
    """Changes to the checks that a person has to approve."""
    check_notes: tuple[str, ...] = ()
    """What was done to them that changes no result under the checks from before."""
    approval: Answer | None = None
    """What a person said to exactly that."""
    suspicions: tuple[Finding, ...] = ()
    """Lines of the new code that may be there for the checks."""
    dependencies: tuple[Difference, ...] = ()
    """What changed in manifests and lock files."""
    audit: str = ""
    """What a tool that knows of vulnerabilities said of them, or why it was not run."""
    unseen: tuple[str, ...] = ()
    """Ignored files that are new or changed, which no check could see."""

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """The changed lines of the product that were taken back one by one, with what that showed."""
        return hunks_of(self.probes or ())

    @property
    def proven_tests(self) -> frozenset[str]:
        """New and changed tests, where nothing else changed and each of them fails with broken code."""
        return proven_tests(self.probes or ())

    @property
    def runs(self) -> tuple[CheckRun, ...]:
        return (*self.baseline, *self.judged)

    @property
    def judged(self) -> tuple[CheckRun, ...]:
        """What was run after the change."""
        return (*self.final, *self.held, *self.fresh, *self.alone)

    def is_blocked(self, run: CheckRun) -> bool:
        """Return whether this machine cannot run a check, which ends as it did before the task."""
        if run.evidence is None:
            return run.check.missing is not None
        base = next((each for each in self.baseline if each.check.name is run.check.name), None)
        if run.check.name not in self.blocked or run.green or base is None or base.evidence is None:
            return False
        is_alike = base.evidence.exit_code == run.evidence.exit_code and wrong(base) == wrong(run)
        return is_alike and base.told <= run.told

    def excuses(self, run: CheckRun) -> bool:
        """Return whether a check is red by nothing but tests that are known to fail or failed by chance."""
        code = run.evidence.exit_code if run.evidence else None
        failing = run.ids(*RED, TestOutcome.FLAKY)
        known = (run.ids(TestOutcome.FAILED) & self.known) | run.ids(TestOutcome.FLAKY)
        return bool(failing) and code == 1 and failing <= known


def remarks(case: Case) -> tuple[str, ...]:
    """Return what a person should know although it decides nothing."""
    parts = (
        _no_test_needed(case),
        _changed_checks(case),
        appeared((*case.drift, *case.altered)),
        _not_run(case),
        _skipped(case),
        _still_red(case),
        _mixed(case),
        _unproven(case),
        _suspected(case),
        notes_of(case.probes or (), dict.fromkeys(hunk.path for hunk in case.changed)),
    )
    return tuple(remark for part in (*parts, _depended(case), _unseen(case)) for remark in part)


def _no_test_needed(case: Case) -> list[str]:
    """Return by what a change is proved that no test has to show."""
    if case.same_behaviour:
        return [f"same behaviour: {ProofKind.SAME_BEHAVIOUR.meaning}"]
    if case.proven_tests:
        return [f"tests only, each fails when the code is broken: {listed(sorted(case.proven_tests))}"]
    return []


def _changed_checks(case: Case) -> list[str]:
    """Return what later changes are judged by, and this one was not alone."""
    if not case.check_notes:
        return []
    return [f"the checks changed, and the original ones pass as well: {listed(list(case.check_notes))}"]


def wrong(run: CheckRun) -> dict[str, int]:
    """Return what a check complains of: failing tests, else findings, with how often."""
    return dict.fromkeys(run.ids(*RED), 1) or dict(run.findings)


def _not_run(case: Case) -> Iterator[str]:
    """Yield which checks, or parts of them, this machine cannot run."""
    for run in case.final:
        if case.is_blocked(run):
            yield f"{run.check.name} cannot run here: {run.check.missing or case.blocked[run.check.name]}"
        elif run.check.left_out:
            yield f"{run.check.name} cannot run as a whole here: {run.check.left_out}"


def _skipped(case: Case) -> Iterator[str]:
    """Yield how many tests were skipped, or that nobody could count them."""
    for run in case.final:
        if run.counts and run.counts.skipped:
            number = run.counts.ran + run.counts.skipped
            yield f"{run.check.name}: {run.counts.skipped} of {number} skipped"
        elif run.evidence and run.counts is None and run.check.name is CheckName.TESTS:
            yield f"{run.check.name}: {uncounted(run.check)}"


def uncounted(check: Check) -> str:
    """Return that only the exit code tells of the tests, in words."""
    return f"the tests of `{check.command}` cannot be counted; only its exit code is known"


def _still_red(case: Case) -> Iterator[str]:
    """Yield what is red for a reason that the change need not answer for."""
    before = {run.check.name: run for run in case.baseline if not run.green}
    for run in (run for run in case.final if not case.is_blocked(run)):
        then = before.get(run.check.name)
        if case.excuses(run):
            yield f"known to fail: {run.check.name}: {listed(sorted(wrong(run)))}"
        elif then is not None and not run.green and (wrong(run) or not run.flaky):
            if names := sorted(wrong(run).keys() & wrong(then).keys()):
                yield f"failed before the task and still fails: {run.check.name}: {listed(names)}"
            elif not wrong(run):
                yield f"failed before the task and still fails: {run.check.name}"


def _mixed(case: Case) -> list[str]:
    """Return what failed and passed on one tree, with what each run came to."""
    flaky = {run.evidence.id: run for run in case.runs if run.evidence and run.flaky}
    return [
        f"mixed results on the same tree: {listed(list(run.flaky))} ({_runs(run)})" for run in flaky.values()
    ]


def _runs(run: CheckRun) -> str:
    assert run.evidence is not None
    ends = [*(ended(each) for each in run.evidence.tries), ended(run.evidence)]
    said = ", then ".join(ends) if len(ends) > 1 else f"{ends[0]}, another result before"
    return f"{run.evidence.id}: {said}"


def _unproven(case: Case) -> list[str]:
    """Return what new tests show of the change, and red ones: nothing, if they pass without it."""
    known = frozenset[str]().union(*(run.outcomes.keys() - run.ids(*RED) for run in case.baseline))
    passed = frozenset[str]().union(*(run.ids(TestOutcome.PASSED) for run in case.fresh))
    new = sorted(passed - known)
    return [f"not evidence, passes without the change: {listed(new)}"] if new else []


def _suspected(case: Case) -> list[str]:
    """Return the lines of the new code that may be there for the checks, the sure ones first."""
    ordered = sorted(case.suspicions, key=lambda each: not each.is_sure)
    return [each.said() if each.is_sure else f"please review: {each.said()}" for each in ordered]


def _depended(case: Case) -> Iterator[str]:
    """Yield what a person should look at among the dependencies, then all that changed, file by file."""
    for each in case.dependencies:
        yield from (f"please review: {doubt.said}" for doubt in each.doubts)
    for each in case.dependencies:
        told = {"added": each.added, "moved": each.moved, "removed": each.removed}
        said = [f"{word} {listed(list(names))}" for word, names in told.items() if names]
        said += ["it cannot be read, so what changed is unknown"] if each.damaged else []
        yield from [f"dependencies in {each.path}: {'; '.join(said)}"] if said else []
    yield from [f"dependency audit: {case.audit}"] if case.audit else []


def _unseen(case: Case) -> list[str]:
    names = listed(list(case.unseen))
    return [f"new or changed but ignored by git, so no check saw it: {names}"] if names else []
