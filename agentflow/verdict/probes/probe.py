"""A probe, a run that has to fail: how it is planned, how it is laid out, and what it shows."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from secrets import token_hex

from agentflow.checks.dependencies import find_manifest
from agentflow.core.check_command import list_moves
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.languages import is_document_path
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.core.test_ids import find_id_prefix
from agentflow.core.verdict import ProbeEnd, ProbeKind, ProbeResult
from agentflow.verdict.case import Case, find_hook_files, find_tests
from agentflow.verdict.diff.inspection import Inspection
from agentflow.verdict.mixed_files import is_shared
from agentflow.verdict.probes.breaking import hide_from_linters, is_silent
from agentflow.verdict.probes.oracle import find_softened, gave_results
from agentflow.verdict.proofs import find_proof
from agentflow.verdict.runner import Place
from agentflow.verdict.surface import is_check_file, is_document
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import ChangedTexts, read_changed_texts, write_tree_with

_PATIENCE = 5
"""A probe may take so many times longer than the run without it."""
CONTROLS = 2
"""Runs without what a probe broke, each in a fifth of its time, before its time-out is a result."""
_LEAST_SECONDS = 20.0
_TEXT_BYTES = 200_000
_ON_CODE = frozenset({ProbeKind.BROKEN_CODE, ProbeKind.TESTS_ONLY, ProbeKind.WITHOUT_HUNK})
"""The kinds whose files hold code; a comment before a test may be what its runner obeys."""


def shorten(check: Check, run: CheckRun) -> Check:
    """Return a check with the time that it may take where it may hang, by how long a run of it took."""
    limit = max(_LEAST_SECONDS, _PATIENCE * (run.evidence.seconds if run.evidence else 0.0))
    return check.replace(timeout=min(limit, check.timeout))


class ProbeContext(Record):
    """The task, its checks, and what its change shows: all that probes are planned from."""

    git: Git
    task: TaskState
    case: Case
    inspection: Inspection

    @property
    def trees(self) -> tuple[str, str]:
        return self.task.trees

    @property
    def tests(self) -> CheckRun | None:
        """The tests on the code of now."""
        return find_tests(self.case.after)

    @property
    def passed(self) -> frozenset[str]:
        return self.tests.list_ids(TestOutcome.PASSED) if self.tests else frozenset()

    @property
    def proving(self) -> frozenset[str]:
        """The passing tests that prove the change, with those of a file that could not be loaded before."""
        names = {*find_proof(self.case)}
        begins = tuple(begin for name in names if (begin := find_id_prefix(name)))
        return frozenset(
            test for test in self.passed if test in names or (begins and test.startswith(begins))
        )

    def plan(
        self, kind: ProbeKind, run: CheckRun, files: Mapping[str, str | None], code: Side = Side.FINAL
    ) -> "Probe":
        """Return a probe of a check, with a time limit that follows from how long the check usually takes."""
        check = shorten(run.check, run)
        if check.name is CheckName.TESTS and kind in _ON_CODE:
            files = {path: text and hide_from_linters(path, text) for path, text in files.items()}
        return Probe(kind=kind, check=check, tree=self.trees[code is Side.FINAL], files=files, code=code)

    def list_product_files(self) -> tuple[ChangedTexts, ...]:
        """Return the changed files of the product, documents left out."""
        if self.case.same_behaviour:
            return ()
        apart = find_hook_files(self.task)
        found = read_changed_texts(self.git, *self.trees, _TEXT_BYTES)
        if self.case.is_renaming:  # a file that only has another place is as it was
            gone = {each.before for each in found if not each.after}
            found = tuple(each for each in found if (each.before and each.after) or each.after not in gone)
        apart |= self._list_moved_away(found)
        return tuple(each for each in found if each.path not in apart and self._is_product(each))

    def _list_moved_away(self, changes: tuple[ChangedTexts, ...]) -> frozenset[str]:
        """Return the old paths of projects that moved as a whole, if no more than documents name them."""
        base, final, texts = find_tests(self.case.before), self.tests, {each.path: each for each in changes}
        found = set[str]()
        for old, new in list_moves(base.check.command, final.check.command) if base and final else ():
            mine = [each for each in changes if each.path.startswith(old)]
            pairs = [(each, texts.get(new + each.path.removeprefix(old))) for each in mine]
            is_same = all(
                now and each.is_whole and now.is_whole and (each.before, "") == (now.after, now.before)
                for each, now in pairs
            )
            if is_same and all(map(is_document_path, self.git.find_mentions(self.trees[1], [old[:-1]]))):
                found |= {each.path for each in mine}
        return frozenset(found)

    def _is_product(self, change: ChangedTexts) -> bool:
        path, surface = change.path, self.task.surface
        if path in surface.read:
            return change.is_whole  # whatever its name says
        is_named = find_manifest(path) or is_shared(path) or PurePosixPath(path).name.startswith(".")
        is_other = is_named or is_check_file(surface, path) or is_document(change)
        return change.is_whole and not is_other


class Probe(Record):
    """A check to run on a tree in which some files are replaced; it has to fail."""

    kind: ProbeKind
    check: Check
    tree: str
    files: Mapping[str, str | None]
    """The replaced files by path; None for one that is taken away."""
    subjects: tuple[str, ...] = ()
    code: Side = Side.FINAL
    tests: frozenset[str] = frozenset()
    """The tests that pass on the tree as it is; none where a runner tells no names."""
    copies: Mapping[str, str] = {}
    """Copies of these tests that must fail, each with the value that it no longer expects."""
    unrun: ProbeEnd | None = None
    """Why there is no run of it."""

    def lay(self, git: Git) -> str:
        """Write the tree that the check runs on, and return its id."""
        return write_tree_with(git, self.tree, self.files)

    def run(self, place: Place) -> ProbeResult:
        """Run the check in a copy of the tree."""
        if self.unrun:
            return self.leave_out()
        return self.read(place.try_elsewhere(self.check)[0])

    def is_fast_without(self, place: Place) -> bool:
        """Return whether the check ends soon on the tree as it is, so that only what was broken can hang it.

        A line that nothing tests was "proved" by a run that a busy machine drove into its limit.
        """
        check = self.check.replace(timeout=self.check.timeout / _PATIENCE)
        runs = (place.try_elsewhere(check)[0] for _ in range(CONTROLS))
        return all(not shown.execution.timed_out and not self._is_red(shown) for shown in runs)

    def read(self, shown: CheckRun) -> ProbeResult:
        """Return the result of a run from what it showed."""
        result = self._result(self._end(shown), shown.execution.seconds)
        if self.kind is ProbeKind.TESTS_ONLY:
            red = self.tests & shown.list_ids(*RED)
            return result.replace(tests=tuple(sorted(red)), subjects=tuple(sorted(self.tests - red)))
        if self.kind is ProbeKind.ORACLE and not self.copies and result.end is ProbeEnd.SILENT:
            return result.replace(softened=self.subjects)
        if self.copies:
            differing = sorted(test for test in self.tests if shown.outcomes.get(test) in RED)
            return result.replace(
                softened=find_softened(self.copies, shown.outcomes), differing=tuple(differing)
            )
        return result

    def leave_out(self) -> ProbeResult:
        """Return the result of a probe that is not run."""
        return self._result(self.unrun or ProbeEnd.LEFT_OUT, 0)

    def _result(self, end: ProbeEnd, seconds: float) -> ProbeResult:
        return ProbeResult(
            kind=self.kind,
            check=self.check.name,
            end=end,
            seconds=seconds,
            subjects=self.subjects,
            code=self.code,
        )

    def _end(self, shown: CheckRun) -> ProbeEnd:
        if shown.execution.timed_out and self.tests.isdisjoint(shown.list_ids(*RED)):
            return ProbeEnd.TIMED_OUT
        match self.kind:
            case ProbeKind.CANARY:
                is_red, applied = not is_silent(shown), True
            case ProbeKind.TESTS_ONLY:
                is_red, applied = self.tests <= shown.list_ids(*RED), True
            case ProbeKind.ORACLE if self.copies:
                is_red = not find_softened(self.copies, shown.outcomes)
                applied = gave_results(self.copies, shown.outcomes)
            case _:
                is_red, applied = self._is_red(shown), True
        if not applied:
            return ProbeEnd.NOT_APPLIED
        return ProbeEnd.RED_AS_IT_MUST if is_red else ProbeEnd.SILENT

    def _is_red(self, shown: CheckRun) -> bool:
        if self.tests:
            return not self.tests <= shown.list_ids(TestOutcome.PASSED)
        return shown.ended_red


def make_word() -> str:
    """Return a word that stands nowhere else."""
    return f"k{token_hex(6)}q"
