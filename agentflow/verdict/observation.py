"""What belongs to the checks: by names before the task, and by what the runs of a task are seen to read."""

import re
from itertools import accumulate

from agentflow.checks.observing import Reads
from agentflow.checks.repository import PYTEST_SETTINGS
from agentflow.core.evidence import Side, Surface
from agentflow.core.languages import is_source
from agentflow.core.record import Record, copy_shared
from agentflow.core.task import TaskState
from agentflow.core.wording import list_some
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.paths import Observation, observe
from agentflow.verdict.runner import CheckJob
from agentflow.verdict.shared_settings import is_shared
from agentflow.verdict.surface import Kind, belongs, find_surface, kind_for_verdict, kind_of
from agentflow.verdict.target_tests import file_of, id_prefix, modules_of
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import mark_ignored

UNREAD = "new, and no check reads it"

_TEXT_BYTES = 200_000

_MOST_FILES = 20_000

_DOCTESTS = re.compile(
    r"(?<!\w)(?:doctest|DocTestSuite|DocFileSuite|--doctest-modules|--doctest-glob|testmod)(?!\w)"
)

_MANIFESTS = frozenset({*PYTEST_SETTINGS, "setup.py", "package.json", "Cargo.toml", "Makefile", "Dockerfile"})


_SHARED = "settings of checkers beside those of the product"


async def examine_base(context: JudgeContext, task: TaskState) -> TaskState:
    """Run the required checks before anything changes, and record which files belong to them."""
    assert task.base_tree is not None
    files = context.git.paths(task.base_tree)
    checks = context.checking.require(task, files)
    repository = context.checking.repository(files)
    surface = find_surface(repository, checks, task.surface.added, task.surface.removed)
    order = CheckJob(checks=checks, tree=task.base_tree, surface=Side.BASE, code=Side.BASE)
    ignored = context.git.ignored()
    (baseline,) = await context.checking.run(task, order, ignored=ignored)
    marks = mark_ignored(context.git.root, ignored)
    task = task.replace(baseline=baseline, surface=surface, ignored=marks)
    return task.replace(surface=observe_before(context, task))


def describe_surface(git: Git, task: TaskState) -> tuple[str, ...]:
    """Return the files that belonged to the checks before the task, one line for each reason."""
    if task.base_tree is None:
        return ()
    found: dict[str, list[str]] = {}
    for path in git.paths(task.base_tree):
        kind = kind_of(path, task.surface) or (_SHARED if is_shared(path) else None)
        if kind is not None:
            found.setdefault(kind, []).append(path)
    gap = (f"not watched, names alone tell: {task.surface.gap}",) if task.surface.gap else ()
    return (*(f"{kind}: {list_some(paths)}" for kind, paths in found.items()), *gap)


class _Known(Record):
    """What an observation knows beside the tree and the files that were read."""

    new: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    tests: frozenset[str] = frozenset()


def observe_before(context: JudgeContext, task: TaskState) -> Surface:
    """Return which files belong to the checks, by what the tests read before the task."""
    assert task.base_tree is not None
    reads = context.checking.reads(task.base_tree)
    told = _Known(tests=frozenset(test for test in _tests_before(context, task) if "::" not in test))
    seen = _to_observation(context.git, task.base_tree, task.surface, reads, told)
    found = observe(seen)
    is_watched = reads is not None and not reads.gap and bool(reads.opened)
    return task.surface.replace(
        observed=dict(found.checks),
        product=dict(found.product),
        read=(*found.product, *found.both),
        is_watched=is_watched,
        gap=reads.gap if reads else "",
        has_doctests=_runs_doctests(task, seen),
        parted=_files_with_tests(context, task),
    )


def observe_after(context: JudgeContext, task: TaskState) -> Surface:
    """Return the same, with what the tests on the change read of files that were undecided."""
    assert task.tree is not None
    assert task.base_tree is not None
    surface = forget_late(task.surface)
    changed = {each.path for each in context.changes(task)}
    if not changed:
        return surface
    new = frozenset(changed & (set(context.git.paths(task.tree)) - set(context.git.paths(task.base_tree))))
    open_ones = {path for path in changed if path in new or kind_for_verdict(path, surface) is Kind.UNKNOWN}
    if not open_ones:
        return surface
    reads = context.checking.reads(task.tree)
    told = _Known(new=new, loaded=_files_loaded(context, task) if new else frozenset())
    found = observe(_to_observation(context.git, task.tree, surface, reads, told))
    checks = {path: why for path, why in found.checks.items() if path in open_ones}
    product = {path: why for path, why in found.product.items() if path in open_ones}
    read = (*surface.read, *product, *(path for path in found.both if path in checks))
    if reads is not None:
        rest = sorted(new - checks.keys() - product.keys())
        unread = [path for path in rest if kind_for_verdict(path, surface) is Kind.UNKNOWN]
        product |= dict.fromkeys(unread, UNREAD)
    return surface.replace(
        observed=surface.observed | checks,
        product=surface.product | product,
        read=read,
        late=tuple(sorted(checks | product)),
    )


def forget_late(surface: Surface) -> Surface:
    """Return what was known before the change."""
    late = set(surface.late)
    return surface.replace(
        observed={path: why for path, why in surface.observed.items() if path not in late},
        product={path: why for path, why in surface.product.items() if path not in late},
        read=tuple(path for path in surface.read if path not in late),
        late=(),
    )


def is_open(context: JudgeContext, task: TaskState) -> bool:
    """Return whether a changed path is undecided until the checks ran on the change."""
    changed = (each.path for each in context.changes(task))
    return any(kind_for_verdict(path, task.surface) is Kind.UNKNOWN for path in changed)


def _runs_doctests(task: TaskState, seen: Observation) -> bool:
    """Return whether a check mentions doctests."""
    if any("doctest" in item.check.command for item in task.baseline):
        return True
    return any(_DOCTESTS.search(seen.texts.get(path, "")) for path in seen.checks | _MANIFESTS)


def _files_with_tests(context: JudgeContext, task: TaskState) -> tuple[str, ...]:
    """Return the product files in which tests ran."""
    assert task.base_tree is not None
    runs = context.checking.runs(task.baseline)
    files = {file_of(test) for run in runs for test in run.outcomes}
    known = files & set(context.git.paths(task.base_tree))
    return tuple(sorted(path for path in known if not belongs(task.surface, path)))


def _files_loaded(context: JudgeContext, task: TaskState) -> frozenset[str]:
    """Return the Python files whose tests had any result before the task."""
    assert task.base_tree is not None
    told = [test for test in _tests_before(context, task) if not id_prefix(test)]
    files = {file_of(test) for test in told}
    modules = {module for test in files for module in accumulate(test.split("."), "{}.{}".format)}
    paths = (path for path in context.git.paths(task.base_tree) if path.endswith(".py"))
    return frozenset(path for path in paths if path in files or not modules.isdisjoint(modules_of(path)))


def _tests_before(context: JudgeContext, task: TaskState) -> frozenset[str]:
    return frozenset(test for run in context.checking.runs(task.baseline) for test in run.outcomes)


def _to_observation(git: Git, tree: str, surface: Surface, reads: Reads | None, told: _Known) -> Observation:
    paths = git.paths(tree)
    checks = frozenset(path for path in paths if belongs(surface, path))
    opened = reads.opened if reads else frozenset[str]()
    scripts = {path for path in opened if "." not in path.rpartition("/")[2]}
    texts_of = {*checks, *_MANIFESTS, *scripts}
    wanted = [path for path in paths if is_source(path) or path in texts_of][:_MOST_FILES]
    wanted = [path for path in wanted if "\n" not in path and kind_of(path, surface) is not Kind.FIXTURES]
    texts = dict(zip(wanted, git.texts([f"{tree}:{path}" for path in wanted], _TEXT_BYTES), strict=True))
    seen = Observation(files=frozenset(paths), texts=texts, checks=checks)
    seen = seen.replace(**copy_shared(told, Observation))
    if reads is not None:
        seen = seen.replace(by_code=reads.by_code, opened=reads.opened)
    return seen
