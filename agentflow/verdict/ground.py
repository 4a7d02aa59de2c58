"""What probes are planned by: the trees of a task, what its checks showed, and what proves its change."""

from pathlib import PurePosixPath

from agentflow.checks.manifests import manifest_of
from agentflow.core.evidence import CheckName, CheckRun, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.verdict.case import Case
from agentflow.verdict.drift import set_apart
from agentflow.verdict.equivalence import is_document
from agentflow.verdict.look import Look
from agentflow.verdict.mixed import is_shared
from agentflow.verdict.proofs import proof
from agentflow.verdict.surface import belongs
from agentflow.verdict.target_tests import id_prefix
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import ChangedTexts, read_changed_texts

_TEXT_BYTES = 200_000


class Ground(Record):
    """What probes are planned by."""

    git: Git
    task: TaskState
    case: Case
    look: Look

    @property
    def trees(self) -> tuple[str, str]:
        """The trees from before the task and of now."""
        assert self.task.base_tree is not None
        assert self.task.tree is not None
        return self.task.base_tree, self.task.tree

    @property
    def tests(self) -> CheckRun | None:
        """The tests on the code of now."""
        return next((run for run in self.case.final if run.check.name is CheckName.TESTS), None)

    @property
    def passed(self) -> frozenset[str]:
        return self.tests.ids(TestOutcome.PASSED) if self.tests else frozenset()

    @property
    def proving(self) -> frozenset[str]:
        """The tests that prove the change, those of a file that could not even be loaded before included."""
        names = {*proof(self.case)}
        begins = tuple(begin for name in names if (begin := id_prefix(name)))
        return frozenset(
            test for test in self.passed if test in names or (begins and test.startswith(begins))
        )

    def product(self) -> tuple[ChangedTexts, ...]:
        """Return the changed files of the product that a program reads."""
        if self.case.same_behaviour or self.case.is_renaming:
            return ()
        apart = set_apart(self.task)
        found = read_changed_texts(self.git, *self.trees, _TEXT_BYTES)
        return tuple(each for each in found if each.path not in apart and self._is_product(each))

    def _is_product(self, change: ChangedTexts) -> bool:
        path, surface = change.path, self.task.surface
        if path in surface.read:
            return change.is_whole  # whatever its name says
        is_named = manifest_of(path) or is_shared(path) or PurePosixPath(path).name.startswith(".")
        is_other = is_named or belongs(surface, path) or is_document(change)
        return change.is_whole and not is_other
