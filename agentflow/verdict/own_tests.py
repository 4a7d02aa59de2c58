"""Tests that the verifier writes: each runs on a copy of the judged tree, and none of them enters it."""

from collections.abc import Callable
from pathlib import Path

from anyio import from_thread, to_thread

from agentflow.core.errors import InvalidInput
from agentflow.core.evidence import RED, Surface
from agentflow.core.finding import FileKind
from agentflow.core.record import Record
from agentflow.core.role import JudgeTest
from agentflow.core.task import TaskState
from agentflow.core.test_ids import may_be_test_in
from agentflow.core.tool import TestSelection, TestsRun
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.some_tests import SomeTests
from agentflow.verdict.surface import find_kind
from agentflow.workspace.mixed_tree import write_tree_with
from agentflow.workspace.path_guard import PathGuard

_MOST_CHARS = 20_000


class OwnTests(Record):
    """Runs the test files of a verifier, one at a time, beside the tests of the judged tree."""

    context: JudgeContext
    workspace: PathGuard
    load: Callable[[], TaskState]
    """Returns the task as it is now."""

    def __call__(
        self, path: str, text: str, sink: Path, cancelled: Callable[[], bool]
    ) -> tuple[TestsRun, tuple[JudgeTest, ...]]:
        """Run one, its output going to `sink`. Raises ToolError where it is none, or cannot run."""
        task = self.load()
        if path in self.context.git.list_paths(task.trees[1]):
            raise InvalidInput(f"{path} exists, and the change is not yours to edit: choose a new name")
        is_hidden = any(part.startswith(".") for part in path.split("/"))
        if is_hidden or find_kind(path, Surface()) is not FileKind.TESTS:
            raise InvalidInput(f"{path} is no file of tests by its name: write a new one beside the others")
        if len(text) > _MOST_CHARS:
            raise InvalidInput(f"a test file has at most {_MOST_CHARS:,} characters")
        ran = from_thread.run(self._run, task, path, text, sink, cancelled)
        known = self.context.checking.find_runs(task.final)
        red = ran.failures.keys() - {test for run in known for test in run.list_ids(*RED)}
        failing = tuple(sorted(test for test in red if may_be_test_in(test, (path,))))
        if ran.execution.exit_code and not (ran.failures or ran.execution.timed_out):
            failing = (path,)  # its runner names no test
        said = "\n".join(ran.failures[test] for test in failing if test in ran.failures)
        test = JudgeTest(path=path, text=text, failing=failing, said=said)
        return ran, (*(each for each in task.judge_tests if each.path != path), test)

    async def _run(
        self, task: TaskState, path: str, text: str, sink: Path, cancelled: Callable[[], bool]
    ) -> TestsRun:
        tree = write_tree_with(self.context.git, task.trees[1], {path: text})
        async with self.context.checking.copy(task, tree) as place:
            imports = {"PYTHONPATH": place.imports} if place.imports else {}
            opened = place.sandbox.opened
            opened = opened.replace(environment={**opened.environment, **imports})
            tests = SomeTests(
                checking=self.context.checking,
                sandbox=place.sandbox.replace(opened=opened),
                task=task,
                workspace=self.workspace,
            )
            return await to_thread.run_sync(tests, TestSelection(paths=(path,)), sink, cancelled)
