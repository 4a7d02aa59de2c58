"""The case of a change, gathered: its checks as they are now and as they were, its proof and its probes."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from anyio import to_thread

from agentflow.checks.dependencies import choose_audit, find_manifest
from agentflow.checks.repository import require
from agentflow.core.events import Probed, Probing
from agentflow.core.evidence import (
    RED,
    Check,
    CheckName,
    CheckRun,
    Side,
    TestOutcome,
    describe_end,
    find_longest,
)
from agentflow.core.finding import FileKind, Finding, FindingKind
from agentflow.core.languages import is_source
from agentflow.core.record import Record, copy_shared
from agentflow.core.task import TaskState
from agentflow.core.test_ids import get_test_function, is_test_in, may_be_test_in
from agentflow.core.verdict import ProbeEnd, ProbeResult
from agentflow.routing.wanted import find_wanted
from agentflow.runners.selection import narrow
from agentflow.sandbox.environment import find_program
from agentflow.sandbox.profile import CHECKS
from agentflow.verdict.case import (
    Case,
    FindRuns,
    drop_leavings,
    find_hook_files,
    find_tests,
    list_left_out,
    list_runs,
    to_proof_runs,
)
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.diff.inspection import Inspection, find_added_secrets, find_approval
from agentflow.verdict.diff.python_tests import find_altered_functions, strip_to_names
from agentflow.verdict.diff.tampering import TextDiff
from agentflow.verdict.diff.weakening import JudgedCheck, Weakening, find_weakening, shows_all_tests
from agentflow.verdict.earlier_runs import WHOLE
from agentflow.verdict.judge import has_no_failure
from agentflow.verdict.mixed_sides import lay_new_checks, lay_original_checks
from agentflow.verdict.mutation import plan_mutants, try_plans
from agentflow.verdict.neighbours import find_memorised
from agentflow.verdict.paths import is_open, observe_after
from agentflow.verdict.probes.plan import plan_canaries, plan_probes
from agentflow.verdict.probes.probe import Probe, ProbeContext, shorten
from agentflow.verdict.proofs import (
    find_blind_checks,
    find_needing_change,
    find_proof,
    find_turned,
    is_renaming,
    list_tried_lines,
)
from agentflow.verdict.runner import CheckJob, Results, run_apart
from agentflow.verdict.surface import is_check_file
from agentflow.verdict.target_tests import find_target_tests
from agentflow.workspace.changes import ChangeKind, FileChange
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import is_ignore_file, list_program_changes, list_unseen, mark_ignored


async def run_required(context: JudgeContext, task: TaskState) -> TaskState:
    """Run the required checks on the change, and again as they were before the task if they changed."""
    tree = task.trees[1]
    checks = context.checking.require(task, context.git.list_paths(tree))
    mine = CheckJob(checks=checks, tree=tree, surface=Side.FINAL, code=Side.FINAL)
    task = task.replace(surface=observe_after(context, task))
    if is_open(context, task):
        (final,) = await context.checking.run(task, mine)
        task = task.replace(surface=observe_after(context, task))
        (held,) = await context.checking.run(task, *_as_before(context, task)) or ((),)
    else:
        final, held = (*await context.checking.run(task, mine, *_as_before(context, task)), ())[:2]
    again = context.checking.find_blocked(final) if task.blocked else {}
    unable = tuple(name for name, why in task.blocked.items() if again.get(name) == why)
    task = task.replace(
        final=final, held=held, fresh=(), probes=None, mutants=(), memorised=(), unable=unable
    )
    return task.replace(audit=await audit_dependencies(context, task))


def _as_before(context: JudgeContext, task: TaskState) -> tuple[CheckJob, ...]:
    tree, now = lay_original_checks(context.git, task), task.trees[1]
    if tree == now:
        return ()
    checks = context.checking.list_left(task, context.git.list_paths(now))
    return (CheckJob(checks=checks, tree=tree, surface=Side.BASE, code=Side.FINAL),)


async def try_checks(context: JudgeContext, task: TaskState, case: Case) -> TaskState:
    """Return the task with what its passing checks are worth: proof, and runs that have to fail."""

    async def run_canaries() -> TaskState:
        seen = context.inspections.of(task)
        probing = ProbeContext(git=context.git, task=task, case=case, inspection=seen)
        return task.replace(probes=await run_probes(context, task, probing, plan_canaries))

    asks = (run_canaries, partial(_run_proof, context, task, case))
    canaries, proven = await run_apart(context.sandbox.level, *asks)
    return proven.replace(probes=(*(canaries.probes or ()), *(proven.probes or ())))


async def _run_proof(context: JudgeContext, task: TaskState, case: Case) -> TaskState:
    seen = context.inspections.of(task)
    if seen.new_fixtures and not _is_read_by_tests_alone(context, task, seen.new_fixtures):
        seen = seen.replace(new_fixtures=())
    if not (seen.changed_tests or seen.new_fixtures):
        task = task.replace(fresh=await run_fail_to_pass(context, task, case))
        case = case.replace(runs=list_runs(task, context.checking.find_runs))
    probing = ProbeContext(git=context.git, task=task, case=case, inspection=seen)
    probes = await run_probes(context, task, probing, plan_probes)
    plans = plan_mutants(probing, probes)

    async def try_neighbours() -> TaskState:
        return task.replace(memorised=await find_memorised(context, task, probing))

    async def try_mutants() -> TaskState:
        return task.replace(mutants=await try_plans(context, task, plans) if plans else ())

    near, tried = await run_apart(context.sandbox.level, try_neighbours, try_mutants)
    return tried.replace(probes=probes, memorised=near.memorised)


def _is_read_by_tests_alone(context: JudgeContext, task: TaskState, paths: Iterable[str]) -> bool:
    """Return whether code of the checks was seen to read each file on the change, and no other code."""
    reads = context.checking.find_reads(task.trees[1])
    if reads is None or reads.gap:
        return False
    readers = [{reader for name, reader in reads.by_code if name == path and reader} for path in paths]
    return all(found and all(is_check_file(task.surface, each) for each in found) for found in readers)


def build_case(
    git: Git, task: TaskState, trees: tuple[str, str] | None, shown: FindRuns, seen: Inspection
) -> Case:
    """Gather what a verdict rests on: the results of the checks, and what the diff shows.

    `trees` are those from before the task and of now, where the repository has both.
    """
    failing = frozenset[str]().union(*(run.list_ids(*RED) for run in shown(task.baseline)))
    changes = git.list_changes(*trees) if trees else ()
    paths = [each.path for each in changes]
    checks = [path for path in paths if is_check_file(task.surface, path)]
    targets = find_target_tests(git, trees and trees[0], task.task, failing)
    case = Case(
        base_tree=task.base_tree or "",
        tree=task.tree or "",
        drift=(),
        is_unchanged=task.tree == task.session.start_tree
        or (bool(trees) and {*paths} <= find_hook_files(task)),
        runs=list_runs(task, shown),
        unread=task.surface.unread,
        targets=targets.asked,
        guessed=targets.guessed,
        wanted=find_wanted(task.task, [path for path in paths if not is_source(path)], checks),
        overrides=task.options.overrides,
        blocked=task.blocked,
        unable=frozenset(task.unable),
        foreign_errors=frozenset(task.foreign_errors),
        known=frozenset(task.options.known_failures),
        secrets=find_added_secrets(git.make_diff(*trees)) if trees else (),
        probes=task.probes,
        mutants=task.mutants,
        memorised=task.memorised,
    )
    return add_inspection(case, seen)


def gather_case(context: JudgeContext, task: TaskState) -> Case:
    """Gather the case of a change, as if nobody touched its tree since it was recorded."""
    seen = context.inspections.of(task)
    case = build_case(context.git, task, task.trees, context.checking.find_runs, seen)
    case = case.replace(altered=find_altered(context, task))
    entries = context.git.list_ignored()
    now = mark_ignored(context.git, entries)
    weakened = (*case.weakened, *list_program_changes(task.ignored, now))
    hidden = list_unseen(entries, task.ignored, now)
    paths = (*(each.path for each in seen.checks), *(hunk.path for hunk in seen.lines))
    is_hiding = bool(hidden) and any(map(is_ignore_file, paths))
    return case.replace(
        weakened=weakened,
        approval=find_approval(task, seen, weakened),
        audit=task.audit,
        unseen=hidden,
        same_behaviour=case.same_behaviour and not is_hiding,
    )


def gather_final_case(context: JudgeContext, task: TaskState) -> Case:
    """Gather the case of a change, with what differs on disk at this moment."""
    return gather_case(context, task).replace(drift=find_drift(context, task))


def find_drift(context: JudgeContext, task: TaskState) -> tuple[FileChange, ...]:
    """Return the files that changed on disk since the judged tree was recorded."""
    now = context.take_tree(task)
    changes, apart = context.git.list_changes(task.trees[1], now.trees[1]), find_hook_files(now)
    return tuple(change for change in changes if change.path not in apart)


def find_altered(context: JudgeContext, task: TaskState) -> tuple[FileChange, ...]:
    """Return what checks and judges of this iteration changed in their own copies.

    What a check leaves on the code from before the task, too, is no change.
    """
    ledger = context.ledger
    found = context.git.drop_ignored(ledger.list_altered(task.iteration))
    changed = {change.path for change in context.list_changes(task)}
    if not found or task.base_tree is None:
        return found
    before = context.git.drop_ignored(ledger.list_left_before())
    return drop_leavings(found, before, changed, context.git.list_paths(task.base_tree))


def add_inspection(case: Case, seen: Inspection) -> Case:
    """Return the case with what the diff shows, and what of that needs an approval."""
    case = case.replace(
        is_renaming=is_renaming(seen.renamed, case.before, case.after),
        same_behaviour=seen.same_behaviour,
        changed=seen.lines,
        tested=tuple(each.path for each in seen.checks if each.kind is FileKind.TESTS and each.after),
        unshown=tuple(each.path for each in seen.checks if each.kind is not FileKind.TESTS),
        suspicions=(*case.memorised, *(_weigh(each, case) for each in seen.code)),
        dependencies=seen.dependencies,
    )
    found = Weakening() if case.is_renaming else _find_weakening(case, seen)
    weakened = (
        *found.asked,
        *seen.suppressed,
        *find_blind_checks(case.probes or (), [each.path for each in seen.lines]),
    )
    return case.replace(weakened=weakened, check_notes=found.noted, is_weakened=found.is_weaker)


def _weigh(found: Finding, case: Case) -> Finding:
    """Return a finding; a condition on the environment that tests try both ways is no suspicion."""
    is_tried = found.kind is FindingKind.ON_SETTING and (found.path, found.line) in list_tried_lines(case)
    return found.replace(is_sure=False) if is_tried else found


def _find_weakening(case: Case, seen: Inspection) -> Weakening:
    skipped = {override.check for override in case.overrides}
    base, final, held = (
        {run.check.name: run for run in side if run.check.name not in skipped}
        for side in (case.before, case.after, case.select(checks=Side.BASE))
    )
    # where all projects of before are gone, nothing of a check could run as it stood
    apart = (run for name, run in final.items() if list_left_out(base.get(name), run) or not run.evidence)
    held = {run.check.name: run for run in apart} | held
    both = [name for name in base if name in final and name in held]
    judged = [JudgedCheck(base=base[name], final=final[name], held=held[name]) for name in both]
    tests = (base.get(CheckName.TESTS), final.get(CheckName.TESTS))
    whole = [each for each in seen.new_projects if shows_all_tests(each, seen.checks, *tests)]
    return find_weakening(seen.checks, judged, whole)


_CLOSED = "not run (the network is closed to checks: `network: [checks]` in config.yaml opens it)"


async def audit_dependencies(context: JudgeContext, task: TaskState) -> str:
    """Return what audit tools say of the changed dependencies, or why none was run.

    What is known of vulnerabilities is another thing tomorrow, so that no verdict rests on it.
    """
    changes = context.git.list_changes(*task.trees)
    paths = [
        each.path for each in changes if each.kind is not ChangeKind.DELETED and find_manifest(each.path)
    ]
    commands = dict.fromkeys(command for path in paths if (command := choose_audit(path)))
    if commands and CHECKS not in context.sandbox.opened.network:
        return _CLOSED
    return "; ".join([await _run_audit(context, task, command) for command in commands])


async def _run_audit(context: JudgeContext, task: TaskState, command: str) -> str:
    name = command.split(maxsplit=1)[0]
    if find_program(name, context.git.root) is None:
        return f"not run ({name} is not installed)"
    check = require(CheckName.LINT, command, "the dependencies changed")
    async with context.checking.copy(task, task.trees[1]) as place:
        shown, _ = await to_thread.run_sync(place.try_elsewhere, check)
    execution = shown.execution
    lines = [line.strip() for line in execution.tail.splitlines() if line.strip()]
    last = next((line for line in lines if "vulnerabilit" in line), lines[-1] if lines else "")
    return f"{command}: {describe_end(execution)}{f': {last}' if last else ''}"


PlanProbes = Callable[[ProbeContext, tuple[ProbeResult, ...]], tuple[Probe, ...]]
_AT_ONCE = 2
_LEAST_SECONDS = 60.0


async def run_probes(
    context: JudgeContext, task: TaskState, probing: ProbeContext, plan: PlanProbes
) -> tuple[ProbeResult, ...]:
    """Run the probes of a plan until it has no more; return their results in order.

    None begins once those before it took longer than a while and the tests themselves.
    """
    known: tuple[ProbeResult, ...] = ()
    tests = probing.tests.evidence if probing.tests else None
    allowed = _LEAST_SECONDS + (tests.seconds if tests else 0)
    while due := plan(probing, known):
        for start in range(0, len(due), _AT_ONCE):
            batch = due[start : start + _AT_ONCE]
            if sum(each.seconds for each in known) > allowed:
                known += tuple(probe.leave_out() for probe in batch)
                continue
            context.checking.emit(Probing(done=len(known), total=len(known) + len(due) - start))
            begin = (partial(_run, context, task, probe) for probe in batch)
            known += tuple(await run_apart(context.sandbox.level, *begin))
    if known:
        context.checking.emit(Probing(done=len(known), total=len(known)))
    return known


async def _run(context: JudgeContext, task: TaskState, probe: Probe) -> ProbeResult:
    async with context.checking.copy(task, probe.lay(context.git)) as place:
        result = await to_thread.run_sync(probe.run, place)
    if result.end is ProbeEnd.TIMED_OUT:
        async with context.checking.copy(task, probe.tree) as place:
            if await to_thread.run_sync(probe.is_fast_without, place):
                result = result.replace(end=ProbeEnd.RED_AS_IT_MUST)
    context.checking.emit(Probed(**copy_shared(result, Probed)))
    return result


_TESTED = frozenset(
    {FileKind.TESTS, FileKind.FIXTURES, FileKind.START, FileKind.NAMED, FileKind.OBSERVED, FileKind.SETTING}
)
"""The kinds of files that a test may be written in."""


class Grounds(Record):
    """The results of the tests before and after the task, and the changes to the checks."""

    base: CheckRun | None
    final: CheckRun
    changes: tuple[TextDiff, ...]

    @property
    def asked(self) -> Check | None:
        """The check reduced to the tests that may prove the change; None if there are none."""
        final, red = self.final, find_turned((self.base,) if self.base else (), (self.final,))
        changed = [each for each in self.changes if each.kind in _TESTED and each.after]
        if not (red or changed):
            return None
        passed, known = final.list_ids(TestOutcome.PASSED), self.base.outcomes if self.base else {}
        paths = [] if red else [each.path for each in changed]
        is_told = bool(final.outcomes) and CheckName.TESTS not in red
        if not is_told or not all(any(is_test_in(test, (path,)) for test in passed) for path in paths):
            return final.check  # what holds no test is something that tests obey
        new = {test for test in passed if test not in known}
        new |= {test for each in ([] if red else changed) for test in _find_touched(each, passed)}
        return narrow(final.check, {*red, *new}) if red or new else None

    @property
    def longest(self) -> float:
        """The seconds for which a test that did not move before may be busy: more than on the code now."""
        base, final = self.base and self.base.evidence, self.final.evidence
        return find_longest(final.seconds) if base and base.stalled and final else 0

    @property
    def earlier(self) -> Mapping[str, TestOutcome]:
        """The failures on the old code under exactly the checks of now."""
        base, paths = self.base, [each.path for each in self.changes]
        if base is None or any(each.kind is not FileKind.TESTS for each in self.changes):
            return {}
        if not base.outcomes and not base.green and not paths:
            return {WHOLE: TestOutcome.FAILED}
        return {test: base.outcomes[test] for test in base.list_ids(*RED) if not may_be_test_in(test, paths)}


def _find_touched(change: TextDiff, tests: Iterable[str]) -> set[str]:
    """Return the tests of a changed file that may differ; all, if anything beside tests changed in it."""
    mine = {test for test in tests if is_test_in(test, (change.path,))}
    functions = find_altered_functions(change.before, change.after) if change.path.endswith(".py") else None
    names = strip_to_names(functions or ())
    told = {test for test in mine if get_test_function(test) in names}
    is_clear = functions is not None and {get_test_function(test) for test in told} == names
    return told if is_clear else mine  # whatever else changed may be part of every test


async def run_fail_to_pass(context: JudgeContext, task: TaskState, case: Case) -> Results:
    """Run the tests that may prove the change on the old code under the new checks.

    Where only new tests prove it, they run on the code now in the same way: both show the same tests alone.
    """
    case = case.replace(weakened=())  # who is asked to approve sees what the tests of now show by themselves
    base, final = map(find_tests, (case.before, case.after))
    is_needed = (
        not (case.same_behaviour or case.is_renaming) and has_no_failure(case) and not find_proof(case)
    )
    if final is None or not is_needed:
        return ()
    grounds = Grounds(base=base, final=final, changes=context.inspections.of(task).checks)
    tree = lay_new_checks(context.git, task)
    if (check := grounds.asked) is None or tree == task.trees[1]:
        return ()  # where no code changed, what fails there and passes now does so by luck
    check = shorten(check, final)  # the old code may hang: a pipe that nobody reads takes no five minutes
    anew = CheckJob(checks=(check,), tree=tree, surface=Side.FINAL, code=Side.BASE, runs_anew=True)
    before = anew.replace(earlier=grounds.earlier, longest=grounds.longest)
    (fresh,) = await context.checking.run(task, before)
    case = case.replace(runs=(*case.runs, *to_proof_runs(context.checking.find_runs(fresh))))
    proving = find_needing_change(case, case.after)
    if find_proof(case) or not proving:
        return fresh
    passed = dict.fromkeys(proving, TestOutcome.PASSED)
    now = anew.replace(tree=task.trees[1], code=Side.FINAL, earlier=passed)
    (alone,) = await context.checking.run(task, now)
    return (*fresh, *alone)
