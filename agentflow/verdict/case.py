"""Everything that a verdict rests on: the runs, the probes, and what differs on disk."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.checks.dependencies import Difference
from agentflow.core.check_command import list_part_folders
from agentflow.core.evidence import (
    RED,
    By,
    CheckName,
    CheckRun,
    Evidence,
    Side,
    TestOutcome,
    find_same_check,
    select_runs,
)
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.pending import Answer, Override
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.core.test_ids import find_id_prefix, get_test_place, is_file_named
from agentflow.core.verdict import Hunk, MutantResult, ProbeResult
from agentflow.routing.wanted import Wanted
from agentflow.sandbox.profile import CACHES
from agentflow.verdict.surface import is_check_file
from agentflow.workspace.changes import ChangeKind, FileChange

_OF_CODE = (TestOutcome.PASSED, TestOutcome.FAILED)
FindRuns = Callable[[tuple[RequiredCheck, ...]], tuple[CheckRun, ...]]
"""A function that tells what checks showed."""


class Case(Record):
    """Everything that a verdict rests on."""

    base_tree: str
    tree: str
    """The tree on which the checks began."""
    drift: tuple[FileChange, ...]
    """The files that differ on disk now from `tree`."""
    runs: tuple[CheckRun, ...]
    """All runs of the checks; `select` tells those of one side."""
    targets: frozenset[str]
    """Tests that the task has to turn green."""
    guessed: frozenset[str] = frozenset()
    """Tests that may show what it is about: they have to turn green unless others prove the change."""
    same_behaviour: bool = False
    """Only documents, comments, form or annotations differ, so that no test could tell."""
    wanted: Wanted = Wanted.UNCLEAR
    """What the words of the task ask for."""
    altered: tuple[FileChange, ...] = ()
    """The files that checks and judges changed in their own copies."""
    overrides: tuple[Override, ...] = ()
    blocked: Mapping[CheckName, str] = {}
    """The checks that could not run on this machine before the task, each with the reason."""
    unable: frozenset[CheckName] = frozenset()
    """The blocked checks that cannot run on the change for the very same reason."""
    foreign_errors: frozenset[str] = frozenset()
    """The import errors by which tests failed before the task and which no change of the code mends."""
    known: frozenset[str] = frozenset()
    """Tests whose failure does not count; one that cannot even be loaded does."""
    secrets: tuple[str, ...] = ()
    """The places where the change adds something that looks like a key."""
    probes: tuple[ProbeResult, ...] | None = None
    """The results of runs that have to fail; None until they are known."""
    mutants: tuple[MutantResult, ...] = ()
    """What the tests make of the mutants of the change."""
    memorised: tuple[Finding, ...] = ()
    """The changed places that are right for the tests' own inputs alone."""
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
    weakened: tuple[Finding, ...] = ()
    """Changes to the checks that a person has to approve."""
    check_notes: tuple[Finding, ...] = ()
    """Changes to the checks that change no result under the checks from before."""
    is_weakened: bool = False
    """One of these lets a later fault pass."""
    approval: Answer | None = None
    """The answer of a person to exactly these changes."""
    suspicions: tuple[Finding, ...] = ()
    """Lines of the new code that may be there for the checks."""
    dependencies: tuple[Difference, ...] = ()
    """The changes in manifests and lock files."""
    audit: str = ""
    """The word of an audit tool on the changed dependencies, or why none was run."""
    unseen: tuple[str, ...] = ()
    """Ignored files that are new or changed, which no check could see."""

    @property
    def before(self) -> tuple[CheckRun, ...]:
        """The checks before the task."""
        return self.select(code=Side.BASE, checks=Side.BASE)

    @property
    def after(self) -> tuple[CheckRun, ...]:
        """The checks of now on the code of now."""
        return self.select()

    def select(
        self, *, code: Side = Side.FINAL, checks: Side = Side.FINAL, again: bool = False
    ) -> tuple[CheckRun, ...]:
        """Return the runs of one side under the checks of one side; they are the same if no check changed."""
        found = select_runs(self.runs, code=code, checks=checks, again=again)
        is_unchanged = (code, checks) == (Side.FINAL, Side.BASE) and not found
        return self.after if is_unchanged else found

    def is_blocked(self, run: CheckRun) -> bool:
        """Return whether a check cannot run on this machine, as it could not before the task."""
        if run.evidence is None:
            return run.check.missing is not None
        base = find_same_check(run, self.before)
        if run.check.name not in self.blocked or run.green or base is None or base.evidence is None:
            return False
        if unloadable := self.list_unloadable(run):
            lost = {test for test, error in base.import_errors.items() if error in self.foreign_errors}
            return run.tests_with_result | base.tests_with_result <= unloadable | lost
        if run.check.name in self.unable:
            return not (run.list_ids(*_OF_CODE) or base.list_ids(*_OF_CODE))
        is_alike = base.evidence.exit_code == run.evidence.exit_code and find_faults(base) == find_faults(run)
        return is_alike and base.tests_with_result <= run.tests_with_result

    def list_unloadable(self, run: CheckRun) -> frozenset[str]:
        """Return the tests that fail for want of what failed tests before the task, too, and never ran."""
        base = find_same_check(run, self.before)
        if base is None:
            return frozenset()
        ran = base.tests_with_result - base.import_errors.keys()
        found = (test for test, error in run.import_errors.items() if error in self.foreign_errors)
        return frozenset(
            test
            for test in found
            if test not in ran
            and not ((begin := find_id_prefix(test)) and any(name.startswith(begin) for name in ran))
        )

    def list_doubtful(self, run: CheckRun) -> frozenset[str]:
        """Return all failing tests of files in which most failing tests are not to be loaded here.

        What else fails there may do so for the same reason, such as a program that a test starts.
        """
        failing, unloadable = run.list_ids(*RED), self.list_unloadable(run)
        all_of = Counter(map(get_test_place, failing))
        lost = Counter(map(get_test_place, unloadable))
        return frozenset(test for test in failing if 2 * lost[place := get_test_place(test)] > all_of[place])

    def is_excused(self, run: CheckRun) -> bool:
        """Return whether a check fails only by what is known to fail, by chance or for want of a module."""
        code = run.evidence.exit_code if run.evidence else None
        failing = run.list_ids(*RED, TestOutcome.FLAKY)
        known = (run.list_ids(TestOutcome.FAILED) & self.known) | run.list_ids(TestOutcome.FLAKY)
        known |= self.list_unloadable(run)
        return bool(failing) and code == 1 and failing <= known


def list_runs(task: TaskState, shown: FindRuns) -> tuple[CheckRun, ...]:
    """Return all check runs of a task, each with the side of its code and of its checks."""
    sides = (
        (task.baseline, Side.BASE, Side.BASE),
        (task.final, Side.FINAL, Side.FINAL),
        (task.held, Side.FINAL, Side.BASE),
    )
    runs = (run.replace(code=code, checks=checks) for items, code, checks in sides for run in shown(items))
    return (*runs, *to_proof_runs(shown(task.fresh)))


def to_proof_runs(runs: Iterable[CheckRun]) -> tuple[CheckRun, ...]:
    """Return the runs of tests that may prove the change, each with whose code it ran."""
    sides = ((run, run.evidence.code) for run in runs if run.evidence)
    return tuple(run.replace(code=code, again=code is Side.FINAL) for run, code in sides)


def is_bound(run: CheckRun, record: Evidence) -> bool:
    """Return whether the program made a record of this check, on the code and under the checks of the run."""
    return (
        record.by is By.PROGRAM
        and (record.check, record.command) == (run.check.name, run.check.command)
        and (record.code, record.surface) == (run.code, run.checks)
    )


def list_misused(task: TaskState, evidence: Mapping[str, Evidence]) -> Iterator[str]:
    """Yield the records that a task counts as its check runs although the program did not make them."""

    def show(items: tuple[RequiredCheck, ...]) -> tuple[CheckRun, ...]:
        return tuple(CheckRun(check=item.check, evidence=evidence.get(item.evidence or "")) for item in items)

    bound = ((run, run.evidence) for run in list_runs(task, show))
    yield from (record.id for run, record in bound if record and not is_bound(run, record))


def find_tests(runs: Iterable[CheckRun]) -> CheckRun | None:
    return next((run for run in runs if run.check.name is CheckName.TESTS), None)


def list_left_out(base: CheckRun | None, run: CheckRun) -> frozenset[str]:
    """Return the tests of before that may be of a project which is gone, so that its part of the check is."""
    if base is None:
        return frozenset()
    left = list_part_folders(run.check.command) if run.evidence else ()
    gone = tuple({*list_part_folders(base.check.command)} - {*left})
    return frozenset(
        test for test in base.tests_with_result if gone and (test.startswith(gone) or not is_file_named(test))
    )


def find_faults(run: CheckRun) -> dict[str, int]:
    """Return the failing tests of a check, or else its messages, each with its number."""
    return dict.fromkeys(run.list_ids(*RED), 1) or dict(run.findings)


_ARTEFACTS = frozenset(
    {".log", ".txt", ".out", ".tmp", ".xml", ".html", ".db", ".sqlite3", ".csv", ".lock", ".pid"}
)
"""New files of these kinds are what checks leave behind; any other could change what the checks show."""


def find_hook_files(task: TaskState) -> frozenset[str]:
    """Return the files that only hooks changed, without those that belong to the checks."""
    return frozenset(path for path in task.hook_files if not is_check_file(task.surface, path))


def list_drift(drift: Iterable[FileChange], altered: Iterable[FileChange]) -> Iterator[Finding]:
    """Yield what changed since the judged tree was recorded: on disk, and in the judges' copies."""
    for kind, part in ((FindingKind.CHANGED_LATER, drift), (FindingKind.CHANGED_IN_COPY, altered)):
        yield from kind.about(
            each.path for each in part if each.kind is not ChangeKind.ADDED or not is_left_behind(each.path)
        )


def drop_leavings(
    altered: Iterable[FileChange],
    before: Iterable[FileChange],
    changed: Collection[str],
    tracked: Iterable[str],
) -> tuple[FileChange, ...]:
    """Return what checks changed in their copies, without what they leave behind before a task, too.

    A new file is known by the folder that came with it, else by its folder and its kind, since its name may
    be another in each run. A file that the task changed is never taken for one that checks write.
    """
    known, there = list(before), {str(folder) for path in tracked for folder in PurePosixPath(path).parents}
    written = {(change.kind, change.path) for change in known if change.path not in changed}
    places = {_place(change.path, there) for change in known if change.kind is ChangeKind.ADDED}
    return tuple(
        change
        for change in altered
        if (change.kind, change.path) not in written
        and not (change.kind is ChangeKind.ADDED and _place(change.path, there) in places)
    )


def _place(path: str, there: Collection[str]) -> tuple[str, str]:
    file = PurePosixPath(path)
    new = next((str(folder) for folder in reversed(file.parents) if str(folder) not in there), "")
    return (new, "") if new else (str(file.parent), file.suffix)


def is_left_behind(name: str) -> bool:
    """Return whether a path looks like output that no program or test runner reads."""
    path = PurePosixPath(name)
    return bool(path.suffix in _ARTEFACTS or path.name.startswith(".coverage") or CACHES & {*path.parts})


def is_written_by_hooks(name: str) -> bool:
    """Return whether a hook may have written a file, by its name: a log or a cache."""
    return is_left_behind(name) or ("/" in name and not PurePosixPath(name).suffix)
