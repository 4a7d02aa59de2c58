"""What a change is judged by: its checks as they are now, and as they stood before the task."""

from collections.abc import Iterable
from functools import partial

from agentflow.checks.alarm import alarm, is_silent
from agentflow.checks.mixed import is_shared, mix
from agentflow.checks.surface import Kind, belongs, kind_of, surface_of
from agentflow.checks.weakening import Judged, SurfaceChange, to_approve
from agentflow.core.evidence import RED, CheckRun, Side, Surface
from agentflow.core.task import TaskState
from agentflow.workflow.aims import aims
from agentflow.workflow.approval import approval_id
from agentflow.workflow.audit import audited
from agentflow.workflow.beside import undisturbed
from agentflow.workflow.case import Case
from agentflow.workflow.counterproof import counterproof, prove_tests
from agentflow.workflow.crew import Crew
from agentflow.workflow.drift import set_apart, without_leavings
from agentflow.workflow.intent import named
from agentflow.workflow.round import Order, Results
from agentflow.workflow.secrets_added import added_secrets
from agentflow.workspace.crossed import Split, cross
from agentflow.workspace.git import FileChange
from agentflow.workspace.ignored import differences, fingerprint, unseen


async def examine_base(crew: Crew, task: TaskState) -> TaskState:
    """Run the required checks before anything changes, and write down what belongs to them."""
    assert task.base_tree is not None
    files = crew.git.paths(task.base_tree)
    checks = crew.checking.required(task, files)
    repository = crew.checking.repository(files)
    surface = surface_of(repository, checks, task.surface.added, task.surface.removed)
    order = Order(checks=checks, tree=task.base_tree, surface=Side.BASE, code=Side.BASE)
    ignored = crew.git.ignored()
    (baseline,) = await crew.checking.run(task, order, ignored=ignored)
    marks = fingerprint(crew.git.root, ignored)
    return task.replace(baseline=baseline, surface=surface, ignored=marks)


async def examine(crew: Crew, task: TaskState) -> TaskState:
    """Run the required checks on the change, and once more as they stood where they were changed."""
    assert task.tree is not None
    assert task.base_tree is not None
    checks = crew.checking.required(task, crew.git.paths(task.tree))
    mine = Order(checks=checks, tree=task.tree, surface=Side.FINAL, code=Side.FINAL)
    tree = cross(crew.git, task.tree, task.base_tree, split(task.surface))
    if tree == task.tree:
        (final,) = await crew.checking.run(task, mine)
        held: Results = ()
    else:
        before = tuple(item.check for item in task.baseline)
        theirs = Order(checks=before, tree=tree, surface=Side.BASE, code=Side.FINAL)
        final, held = await crew.checking.run(task, mine, theirs)
    task = task.replace(final=final, held=held, fresh=(), proven_tests=(), silent=None)
    return task.replace(audit=await audited(crew, task))


async def believed(crew: Crew, task: TaskState, case: Case) -> TaskState:
    """Return the task with what makes checks that hold worth something: alarm and proof."""
    asks = (partial(_heard, crew, task), partial(_proven, crew, task, case))
    silent, proof = await undisturbed(crew.sandbox.level, *asks)
    return task.replace(silent=silent.silent, fresh=proof.fresh, proven_tests=proof.proven_tests)


async def _heard(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with what the alarm came to."""
    return task.replace(silent=await _silence(crew, task))


async def _silence(crew: Crew, task: TaskState) -> str:
    """Return that a test which has to fail does not with the new code, but with the old; empty if it does."""
    assert task.base_tree is not None
    held = [(run.check, run.evidence) for run in crew.checking.runs(task.held or task.final) if run.green]
    tests = (path for path in crew.git.paths(task.base_tree) if _is_python_test(task.surface, path))
    beside, code = next(tests, None), _changed_code(crew, task)
    alarms = ((alarm(check, beside, code), shown) for check, shown in held if beside and code)
    found, tree = next(((each, shown.tree_before) for each, shown in alarms if each and shown), (None, None))
    if found is None or tree is None:
        return ""

    async def is_quiet(place: str, side: Side) -> bool:
        order = Order(checks=(found.check,), tree=place, surface=Side.BASE, code=side)
        return is_silent(await crew.checking.tried(task, order.replace(laid={found.path: found.text})))

    if not await is_quiet(tree, Side.FINAL) or await is_quiet(task.base_tree, Side.BASE):
        return ""
    return "tests: a test that has to fail does not fail with this code: it keeps the runner from telling"


def _is_python_test(surface: Surface, path: str) -> bool:
    return path.endswith(".py") and kind_of(path, surface) is Kind.TESTS


def _changed_code(crew: Crew, task: TaskState) -> list[str]:
    assert task.base_tree is not None
    assert task.tree is not None
    changed = (each.path for each in crew.git.changes(task.base_tree, task.tree))
    return [path for path in changed if path.endswith(".py") and not belongs(task.surface, path)]


async def _proven(crew: Crew, task: TaskState, case: Case) -> TaskState:
    """Return the task with the runs of the tests that may prove the change, on the code where it is not."""
    assert task.tree is not None
    assert task.base_tree is not None
    if crew.sight.of(task).changed_tests:
        return task.replace(proven_tests=await prove_tests(crew, task, case))
    tree = cross(crew.git, task.base_tree, task.tree, split(task.surface))
    return task.replace(fresh=await counterproof(crew, task, case, tree))


def split(surface: Surface) -> Split:
    return Split(belongs=partial(belongs, surface), is_shared=is_shared, mix=mix)


def _ran(crew: Crew, task: TaskState) -> Case:
    """Gather what was run and what the task says of it."""
    assert task.base_tree is not None
    assert task.tree is not None
    baseline, final = crew.checking.runs(task.baseline), crew.checking.runs(task.final)
    fresh = crew.checking.runs(task.fresh)
    failing = frozenset[str]().union(*(run.ids(*RED) for run in baseline))
    return Case(
        base_tree=task.base_tree,
        tree=task.tree,
        drift=(),
        is_unchanged=not crew.changes(task),
        altered=altered(crew, task),
        baseline=baseline,
        final=final,
        held=crew.checking.runs(task.held) or final,
        fresh=on(Side.BASE, fresh),
        alone=on(Side.FINAL, fresh),
        targets=aims(crew.git, task.base_tree, task.task, failing),
        named=named(task.task, failing),
        overrides=task.overrides,
        blocked=task.blocked,
        known=frozenset(task.known_failures),
        proven_tests=frozenset(task.proven_tests),
        silent=task.silent,
    )


def on(code: Side, runs: Iterable[CheckRun]) -> tuple[CheckRun, ...]:
    """Return the runs on the code of one side."""
    return tuple(run for run in runs if run.evidence and run.evidence.code is code)


def case_of(crew: Crew, task: TaskState) -> Case:
    """Gather what is known of a change, as if nobody had touched its tree since."""
    case = _ran(crew, task)
    case = case.replace(secrets=added_secrets(crew.git.diff(case.base_tree, case.tree)))
    if not case.final:
        return case
    seen, entries = crew.sight.of(task), crew.git.ignored()
    now = fingerprint(crew.git.root, entries)
    found = weakened(case, task.task, seen.checks, differences(task.ignored, now))
    return case.replace(
        weakened=found,
        approval=task.answers.get(approval_id(seen, found)),
        same_behaviour=seen.same_behaviour,
        suspicions=seen.code,
        dependencies=seen.dependencies,
        audit=task.audit,
        unseen=unseen(entries, task.ignored, now),
    )


def final_case_of(crew: Crew, task: TaskState) -> Case:
    """Gather what the verdict rests on, with the tree as it is at this very moment."""
    return case_of(crew, task).replace(drift=drift(crew, task))


def drift(crew: Crew, task: TaskState) -> tuple[FileChange, ...]:
    """Return what changed on disk since the tree was taken that is judged."""
    assert task.tree is not None
    now = crew.look(task)
    assert now.tree is not None
    apart = set_apart(now)
    return tuple(change for change in crew.git.changes(task.tree, now.tree) if change.path not in apart)


def altered(crew: Crew, task: TaskState) -> tuple[FileChange, ...]:
    """Return what the checks and the judges of this iteration changed in their own copies and views.

    What a check leaves on the code from before the task, too, is no change.
    """
    ledger = crew.store.ledger
    found = crew.git.counted(ledger.altered(task.iteration))
    changed = {change.path for change in crew.changes(task)}
    if not found or task.base_tree is None:
        return found
    before = crew.git.counted(ledger.left_before())
    return without_leavings(found, before, changed, crew.git.paths(task.base_tree))


def weakened(
    case: Case, task: str, changes: tuple[SurfaceChange, ...], installed: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return all that a person has to approve, what was installed meanwhile included."""
    base, final, held = (
        {run.check.name: run for run in side} for side in (case.baseline, case.final, case.held)
    )
    both = [name for name in base if name in final and name in held]
    judged = [Judged(base=base[name], final=final[name], held=held[name]) for name in both]
    return (*(each.said for each in to_approve(task, changes, judged)), *installed)
