"""What proves a change, run once more on the code from before it: luck proves nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence

from agentflow.checks.again import WHOLE
from agentflow.checks.narrow import file_of, narrowed
from agentflow.checks.surface import Kind, belongs
from agentflow.checks.weakening import SurfaceChange
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.verdict.broken import break_functions
from agentflow.workflow.case import Case
from agentflow.workflow.crew import Crew
from agentflow.workflow.gate import holds, proof
from agentflow.workflow.look import Look
from agentflow.workflow.round import Order, Results
from agentflow.workflow.turned import turned
from agentflow.workspace.crossed import lay
from agentflow.workspace.git import Git

_TESTED = frozenset({Kind.TESTS, Kind.FIXTURES, Kind.START, Kind.NAMED, Kind.SETTING})
"""What a test may be written in."""
_FILE_BYTES = 1_000_000


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
    is_needed = not case.same_behaviour and holds(case) and not proof(case)
    check = grounds.asked if grounds and is_needed else None
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


async def prove_tests(crew: Crew, task: TaskState, case: Case) -> tuple[str, ...]:
    """Run the new and changed tests with all functions of the code broken, and return them if each fails.

    Nothing else changed, so that no code from before could tell what they are worth.
    """
    probe = find_probe(crew.git, task, crew.sight.of(task), case.final) if holds(case) else None
    if probe is None:
        return ()
    order = Order(checks=(probe.check,), tree=probe.tree, surface=Side.FINAL, code=Side.FINAL)
    return probe.judge((await crew.checking.tried(task, order)).outcomes)


class Probe(Record):
    """New and changed tests, the check that runs them alone, and the tree in which they have to fail."""

    tests: frozenset[str]
    check: Check
    tree: str

    def judge(self, outcomes: Mapping[str, TestOutcome]) -> tuple[str, ...]:
        """Return the tests if each of them failed; a file that could not be loaded tells of no test."""
        red = {test for test, said in outcomes.items() if said in RED}
        return tuple(sorted(self.tests)) if self.tests <= red else ()


def find_probe(git: Git, task: TaskState, seen: Look, runs: Iterable[CheckRun]) -> Probe | None:
    """Return what shows the worth of a change of tests alone; None for another change or runner."""
    final, paths = _tests(runs), [each.path for each in seen.checks]
    passed = final.ids(TestOutcome.PASSED) if final else frozenset[str]()
    tests = {test for test in passed if _lies_in(test, paths) and _function(test) in seen.changed_tests}
    if final is None or task.tree is None or {_function(test) for test in tests} != seen.changed_tests:
        return None  # one that does not pass, or is no test
    check, broken = narrowed(final.check, tests), _broken_files(git, task)
    if check == final.check or not broken:
        return None
    return Probe(tests=frozenset(tests), check=check, tree=lay(git, task.tree, broken))


def _function(test: str) -> str:
    """Return the function of a test, by pytest's id of it or by unittest's."""
    return re.split(r"::|\.", test.partition("[")[0])[-1]


def _broken_files(git: Git, task: TaskState) -> dict[str, str]:
    """Return the code of the product with each function raising, by path."""
    assert task.tree is not None
    paths = [
        path for path in git.paths(task.tree) if path.endswith(".py") and not belongs(task.surface, path)
    ]
    texts = git.texts([f"{task.tree}:{path}" for path in paths], _FILE_BYTES)
    found = {path: break_functions(text) for path, text in zip(paths, texts, strict=True)}
    return {path: text for path, text in found.items() if text is not None}


def _grounds(case: Case, changes: Sequence[SurfaceChange]) -> Grounds | None:
    base, final = (_tests(runs) for runs in (case.baseline, case.final))
    return Grounds(base=base, final=final, changes=tuple(changes)) if final else None


def _tests(runs: Iterable[CheckRun]) -> CheckRun | None:
    return next((run for run in runs if run.check.name is CheckName.TESTS), None)
