"""What proves a change, run once more on the code from before it: luck proves nothing."""

from collections.abc import Iterable, Mapping, Sequence

from agentflow.checks.again import WHOLE
from agentflow.checks.narrow import file_of, narrowed
from agentflow.checks.surface import Kind
from agentflow.checks.weakening import SurfaceChange
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.workflow.case import Case
from agentflow.workflow.crew import Crew
from agentflow.workflow.gate import holds, proof
from agentflow.workflow.round import Order, Results
from agentflow.workflow.turned import turned

_TESTED = frozenset({Kind.TESTS, Kind.FIXTURES, Kind.START, Kind.NAMED, Kind.SETTING})
"""What a test may be written in."""


class Grounds(Record):
    """What the tests showed before the task and show now, and what was done to the checks."""

    base: CheckRun | None
    final: CheckRun
    changes: tuple[SurfaceChange, ...]

    @property
    def asked(self) -> Check | None:
        """The check of the tests that may prove the change; None where none can."""
        final, red = self.final, turned((self.base,) if self.base else (), (self.final,))
        changed = [each for each in self.changes if each.kind in _TESTED and each.after]
        if not (red or changed):
            return None
        passed, known = final.ids(TestOutcome.PASSED), self.base.outcomes if self.base else {}
        paths = [] if red else [each.path for each in changed]
        is_told = bool(final.outcomes) and CheckName.TESTS not in red
        if not is_told or not all(any(_lies_in(test, (path,)) for test in passed) for path in paths):
            return final.check  # what holds no test is something that tests obey
        new = {test for test in passed if test not in known or _lies_in(test, paths)}
        return narrowed(final.check, {*red, *new}) if red or new else None

    @property
    def earlier(self) -> Mapping[str, TestOutcome]:
        """What was red on the code from before under the very checks of now."""
        base, paths = self.base, [each.path for each in self.changes]
        if base is None or any(each.kind is not Kind.TESTS for each in self.changes):
            return {}
        if not base.outcomes and not base.green and not paths:
            return {WHOLE: TestOutcome.FAILED}
        return {test: base.outcomes[test] for test in base.ids(*RED) if not _lies_in(test, paths)}


def _lies_in(test: str, paths: Iterable[str]) -> bool:
    """Return whether one of these files has a test, by pytest's id of it or by unittest's."""
    return any(file_of(test) == path or _is_of_module(test, path) for path in paths)


def _is_of_module(test: str, path: str) -> bool:
    parts = path.removesuffix(".py").split("/")
    modules = (".".join(parts[place:]) for place in range(len(parts)))
    return any(test.startswith(f"{module}.") for module in modules)


async def counterproof(crew: Crew, task: TaskState, case: Case, tree: str) -> Results:
    """Run the tests that may prove the change on the code from before, which lies under its checks in `tree`.

    Where only new tests prove it, they run on the code now in the same way: both show the same tests alone.
    """
    assert task.tree is not None
    case = case.replace(weakened=())  # who is asked to approve sees what the tests of now show by themselves
    grounds = _grounds(case, crew.sight.of(task).checks)
    check = grounds.asked if grounds and not case.preserving and holds(case) and not proof(case) else None
    if grounds is None or check is None:
        return ()
    before = Order(checks=(check,), tree=tree, surface=Side.FINAL, code=Side.BASE, earlier=grounds.earlier)
    (fresh,) = await crew.checking.run(task, before)
    case = case.replace(fresh=crew.checking.runs(fresh))
    proving = turned(case.fresh, case.final)
    if proof(case) or not proving:
        return fresh
    passed = dict.fromkeys(proving, TestOutcome.PASSED)
    now = Order(checks=(check,), tree=task.tree, surface=Side.FINAL, code=Side.FINAL, earlier=passed)
    (alone,) = await crew.checking.run(task, now)
    return (*fresh, *alone)


def _grounds(case: Case, changes: Sequence[SurfaceChange]) -> Grounds | None:
    base, final = (_tests(runs) for runs in (case.baseline, case.final))
    return Grounds(base=base, final=final, changes=tuple(changes)) if final else None


def _tests(runs: Iterable[CheckRun]) -> CheckRun | None:
    return next((run for run in runs if run.check.name is CheckName.TESTS), None)
