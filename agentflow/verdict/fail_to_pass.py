"""What proves a change, run once more on the code from before it: luck proves nothing."""

from collections.abc import Iterable, Mapping, Sequence

from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.verdict.case import Case, to_proof_runs
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.judge import holds
from agentflow.verdict.proofs import find_proof, find_turned
from agentflow.verdict.python_tests import bare_names, find_altered_functions
from agentflow.verdict.runner import WHOLE, CheckJob, Results
from agentflow.verdict.surface import Kind
from agentflow.verdict.target_tests import function_of, lies_in, narrow
from agentflow.verdict.weakening import SurfaceChange

_TESTED = frozenset({Kind.TESTS, Kind.FIXTURES, Kind.START, Kind.NAMED, Kind.OBSERVED, Kind.SETTING})
"""What a test may be written in."""


class Grounds(Record):
    """The results of the tests before and after the task, and the changes to the checks."""

    base: CheckRun | None
    final: CheckRun
    changes: tuple[SurfaceChange, ...]

    @property
    def asked(self) -> Check | None:
        """The check reduced to the tests that may prove the change; None if there are none."""
        final, red = self.final, find_turned((self.base,) if self.base else (), (self.final,))
        changed = [each for each in self.changes if each.kind in _TESTED and each.after]
        if not (red or changed):
            return None
        passed, known = final.ids(TestOutcome.PASSED), self.base.outcomes if self.base else {}
        paths = [] if red else [each.path for each in changed]
        is_told = bool(final.outcomes) and CheckName.TESTS not in red
        if not is_told or not all(any(lies_in(test, (path,)) for test in passed) for path in paths):
            return final.check  # what holds no test is something that tests obey
        new = {test for test in passed if test not in known}
        new |= {test for each in ([] if red else changed) for test in _find_touched(each, passed)}
        return narrow(final.check, {*red, *new}) if red or new else None

    @property
    def earlier(self) -> Mapping[str, TestOutcome]:
        """The failures on the old code under exactly the checks of now."""
        base, paths = self.base, [each.path for each in self.changes]
        if base is None or any(each.kind is not Kind.TESTS for each in self.changes):
            return {}
        if not base.outcomes and not base.green and not paths:
            return {WHOLE: TestOutcome.FAILED}
        return {test: base.outcomes[test] for test in base.ids(*RED) if not lies_in(test, paths)}


def _find_touched(change: SurfaceChange, tests: Iterable[str]) -> set[str]:
    """Return the tests of a changed file that may differ: all of them if anything else in it changed."""
    mine = {test for test in tests if lies_in(test, (change.path,))}
    functions = find_altered_functions(change.before, change.after) if change.path.endswith(".py") else None
    names = bare_names(functions or ())
    told = {test for test in mine if function_of(test) in names}
    is_clear = functions is not None and {function_of(test) for test in told} == names
    return told if is_clear else mine  # whatever else changed may be part of every test


async def run_fail_to_pass(context: JudgeContext, task: TaskState, case: Case, tree: str) -> Results:
    """Run the tests that may prove the change on the old code, which `tree` holds under the new checks.

    Where only new tests prove it, they run on the code now in the same way: both show the same tests alone.
    """
    assert task.tree is not None
    case = case.replace(weakened=())  # who is asked to approve sees what the tests of now show by themselves
    grounds = _grounds(case, context.inspections.of(task).checks)
    is_needed = not (case.same_behaviour or case.is_renaming) and holds(case) and not find_proof(case)
    check = grounds.asked if grounds and is_needed else None
    if grounds is None or check is None:
        return ()
    anew = CheckJob(checks=(check,), tree=tree, surface=Side.FINAL, code=Side.BASE, runs_anew=True)
    before = anew.replace(earlier=grounds.earlier)
    (fresh,) = await context.checking.run(task, before)
    case = case.replace(runs=(*case.runs, *to_proof_runs(context.checking.runs(fresh))))
    proving = find_turned(case.select(code=Side.BASE), case.after)
    if find_proof(case) or not proving:
        return fresh
    passed = dict.fromkeys(proving, TestOutcome.PASSED)
    now = anew.replace(tree=task.tree, code=Side.FINAL, earlier=passed)
    (alone,) = await context.checking.run(task, now)
    return (*fresh, *alone)


def _grounds(case: Case, changes: Sequence[SurfaceChange]) -> Grounds | None:
    base, final = (_tests(runs) for runs in (case.before, case.after))
    return Grounds(base=base, final=final, changes=tuple(changes)) if final else None


def _tests(runs: Iterable[CheckRun]) -> CheckRun | None:
    return next((run for run in runs if run.check.name is CheckName.TESTS), None)
