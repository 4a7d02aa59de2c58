"""All that a verdict rests on, and what of it is only to be told."""

from collections.abc import Iterator, Mapping

from agentflow.checks.dependencies import Difference
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, TestOutcome, describe_end
from agentflow.core.pending import Answer, Override
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk, ProbeResult, ProofKind
from agentflow.core.wording import list_some
from agentflow.verdict.drift import describe_leavings
from agentflow.verdict.findings import Finding
from agentflow.verdict.probe_results import hunks_of, list_proven_tests, note_probes
from agentflow.workspace.git import FileChange


class Case(Record):
    """Everything that a verdict rests on."""

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
        """The changed lines that were taken back one by one, and whether a check failed without them."""
        return hunks_of(self.probes or ())

    @property
    def proven_tests(self) -> frozenset[str]:
        """New and changed tests, where nothing else changed and each of them fails with broken code."""
        return list_proven_tests(self.probes or ())

    @property
    def runs(self) -> tuple[CheckRun, ...]:
        return (*self.baseline, *self.judged)

    @property
    def judged(self) -> tuple[CheckRun, ...]:
        """What was run after the change."""
        return (*self.final, *self.held, *self.fresh, *self.alone)

    def is_blocked(self, run: CheckRun) -> bool:
        """Return whether a check cannot run on this machine and failed in the same way before the task."""
        if run.evidence is None:
            return run.check.missing is not None
        base = next((each for each in self.baseline if each.check.name is run.check.name), None)
        if run.check.name not in self.blocked or run.green or base is None or base.evidence is None:
            return False
        is_alike = base.evidence.exit_code == run.evidence.exit_code and find_faults(base) == find_faults(run)
        return is_alike and base.tests_with_result <= run.tests_with_result

    def excuses(self, run: CheckRun) -> bool:
        """Return whether a check fails only by tests that are known to fail or that failed by chance."""
        code = run.evidence.exit_code if run.evidence else None
        failing = run.ids(*RED, TestOutcome.FLAKY)
        known = (run.ids(TestOutcome.FAILED) & self.known) | run.ids(TestOutcome.FLAKY)
        return bool(failing) and code == 1 and failing <= known


def remarks(case: Case) -> tuple[str, ...]:
    """Return the notes of a verdict for a person; none of them decides anything."""
    parts = (
        _no_test_needed(case),
        _remark_on_checks(case),
        describe_leavings((*case.drift, *case.altered)),
        _not_run(case),
        _count_skipped(case),
        _still_red(case),
        _find_mixed(case),
        _unproven(case),
        _list_suspicions(case),
        note_probes(case.probes or (), dict.fromkeys(hunk.path for hunk in case.changed)),
    )
    return tuple(remark for part in (*parts, _list_dependencies(case), _list_unseen(case)) for remark in part)


def _no_test_needed(case: Case) -> list[str]:
    """Return what proves a change that needs no test."""
    if case.same_behaviour:
        return [f"same behaviour: {ProofKind.SAME_BEHAVIOUR.meaning}"]
    if case.proven_tests:
        return [f"tests only, each fails when the code is broken: {list_some(sorted(case.proven_tests))}"]
    return []


def _remark_on_checks(case: Case) -> list[str]:
    """Return how the checks changed, if the original ones pass as well."""
    if not case.check_notes:
        return []
    return [f"the checks changed, and the original ones pass as well: {list_some(case.check_notes)}"]


def find_faults(run: CheckRun) -> dict[str, int]:
    """Return the failing tests of a check, or else its messages, each with its number."""
    return dict.fromkeys(run.ids(*RED), 1) or dict(run.findings)


def _not_run(case: Case) -> Iterator[str]:
    """Yield the checks, or parts of them, that cannot run on this machine."""
    for run in case.final:
        if case.is_blocked(run):
            yield f"{run.check.name} cannot run here: {run.check.missing or case.blocked[run.check.name]}"
        elif run.check.left_out:
            yield f"{run.check.name} cannot run as a whole here: {run.check.left_out}"


def _count_skipped(case: Case) -> Iterator[str]:
    """Yield how many tests were skipped, or that they cannot be counted."""
    for run in case.final:
        if run.counts and run.counts.skipped:
            number = run.counts.ran + run.counts.skipped
            yield f"{run.check.name}: {run.counts.skipped} of {number} skipped"
        elif run.evidence and run.counts is None and run.check.name is CheckName.TESTS:
            yield f"{run.check.name}: {explain_uncounted(run.check)}"


def explain_uncounted(check: Check) -> str:
    return f"the tests of `{check.command}` cannot be counted; only its exit code is known"


def _still_red(case: Case) -> Iterator[str]:
    """Yield what fails for a reason that the change does not have to fix."""
    before = {run.check.name: run for run in case.baseline if not run.green}
    for run in (run for run in case.final if not case.is_blocked(run)):
        then = before.get(run.check.name)
        if case.excuses(run):
            yield f"known to fail: {run.check.name}: {list_some(sorted(find_faults(run)))}"
        elif then is not None and not run.green and (find_faults(run) or not run.flaky):
            if names := sorted(find_faults(run).keys() & find_faults(then).keys()):
                yield f"failed before the task and still fails: {run.check.name}: {list_some(names)}"
            elif not find_faults(run):
                yield f"failed before the task and still fails: {run.check.name}"


def _find_mixed(case: Case) -> list[str]:
    """Return what both failed and passed on one tree, with the end of each run."""
    flaky = {run.evidence.id: run for run in case.runs if run.evidence and run.flaky}
    return [
        f"mixed results on the same tree: {list_some(run.flaky)} ({_runs(run)})" for run in flaky.values()
    ]


def _runs(run: CheckRun) -> str:
    assert run.evidence is not None
    ends = [*(describe_end(each) for each in run.evidence.tries), describe_end(run.evidence)]
    said = ", then ".join(ends) if len(ends) > 1 else f"{ends[0]}, another result before"
    return f"{run.evidence.id}: {said}"


def _unproven(case: Case) -> list[str]:
    """Return the new tests that also pass without the change."""
    known = frozenset[str]().union(*(run.outcomes.keys() - run.ids(*RED) for run in case.baseline))
    passed = frozenset[str]().union(*(run.ids(TestOutcome.PASSED) for run in case.fresh))
    new = sorted(passed - known)
    return [f"not evidence, passes without the change: {list_some(new)}"] if new else []


def _list_suspicions(case: Case) -> list[str]:
    """Return the new lines that may be there for the checks, the certain ones first."""
    ordered = sorted(case.suspicions, key=lambda each: not each.is_sure)
    return [each.describe() if each.is_sure else f"please review: {each.describe()}" for each in ordered]


def _list_dependencies(case: Case) -> Iterator[str]:
    """Yield the dependencies to review, then all that changed, file by file."""
    for each in case.dependencies:
        yield from (f"please review: {doubt.said}" for doubt in each.doubts)
    for each in case.dependencies:
        told = {"added": each.added, "moved": each.moved, "removed": each.removed}
        said = [f"{word} {list_some(names)}" for word, names in told.items() if names]
        said += ["it cannot be read, so what changed is unknown"] if each.damaged else []
        yield from [f"dependencies in {each.path}: {'; '.join(said)}"] if said else []
    yield from [f"dependency audit: {case.audit}"] if case.audit else []


def _list_unseen(case: Case) -> list[str]:
    names = list_some(case.unseen)
    return [f"new or changed but ignored by git, so no check saw it: {names}"] if names else []
