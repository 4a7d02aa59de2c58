"""Kinds of paths: product, document or check, by what runs read and what leads where."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from itertools import accumulate

from agentflow.checks.dependencies import find_manifest
from agentflow.checks.repository import PYTEST_SETTINGS
from agentflow.core.evidence import STALL_SECONDS, CheckRun, Reads, Side, Surface
from agentflow.core.finding import FileKind
from agentflow.core.languages import is_document_path, is_source
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.test_ids import find_id_prefix, find_test_files, get_test_file, list_module_names
from agentflow.redact import list_some
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.mixed_files import is_shared
from agentflow.verdict.reach import find_check_only, find_holders, find_leads
from agentflow.verdict.runner import CheckJob
from agentflow.verdict.surface import (
    find_kind,
    find_kind_for_verdict,
    find_surface,
    is_check_file,
)
from agentflow.verdict.syntax import parse_python
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import mark_ignored

_TOPS = ("src/", "lib/")


class PathKind(StrEnum):
    """The three kinds of a changed path."""

    PRODUCT = "product"
    CHECK = "check"
    DOCUMENT = "document"


class ChangedPath(Record):
    """A changed path with its kind and the reason."""

    path: str
    kind: PathKind
    reason: str


class Observed(Record):
    """The check files and product files that a run revealed, each with the reason."""

    checks: Mapping[str, str] = {}
    product: Mapping[str, str] = {}
    both: tuple[str, ...] = ()
    """The check files that code of the product reads as well."""


class Observation(Record):
    """The files of a tree, and which of them a run of its checks read."""

    files: frozenset[str]
    texts: Mapping[str, str]
    """The texts of sources, of checks and of manifests."""
    checks: frozenset[str]
    """The files that are checks by name or by settings."""
    by_code: frozenset[tuple[str, str]] = frozenset()
    """A file, and the file whose code read it; empty for a runner or a library."""
    opened: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    """The files that were not there before the task."""
    tests: frozenset[str] = frozenset()
    """The names of the tests that ran before the task."""
    loaded: Mapping[str, str] = {}
    """The texts from before the task of the checks whose imports led somewhere then."""


def observe_paths(seen: Observation) -> Observed:
    """Return the kinds of the files that a run read, and the source files that only checks use."""
    leads = {path: set(named) for path, named in find_leads(seen.texts).items()}
    for path, reader in seen.by_code:
        if is_source(path) and reader in leads and path in leads:
            leads[reader].add(path)
    found = {path: frozenset(named) for path, named in leads.items()}
    scripts = {path for path in seen.opened & seen.texts.keys() if not is_source(path)}
    checks = dict(find_holders(seen.texts, found, seen.checks | scripts, seen.tests))
    checks |= find_check_only(seen.texts, found, seen.checks | scripts | checks.keys(), seen.new)
    checks |= _find_shadows(seen.texts, seen.loaded, seen.new)
    product: dict[str, str] = {}
    judging = seen.checks | checks.keys()
    read = {path for path, _ in seen.by_code} | seen.opened
    for path in sorted((read & seen.files) - judging):
        if not (is_source(path) or is_shared(path) or find_manifest(path)):
            is_check, reason = _read_by(path, seen, judging)
            (checks if is_check else product)[path] = reason
    both = {path for path, reader in seen.by_code if path in checks and _is_product(reader, judging)}
    return Observed(checks=checks, product=product, both=tuple(sorted(both)))


def _is_product(reader: str, judging: Collection[str]) -> bool:
    return is_source(reader) and reader not in judging


def _read_by(path: str, seen: Observation, judging: Collection[str]) -> tuple[bool, str]:
    """Return whether a data file is a check file, as its readers are, and the reason."""
    readers = sorted({reader for name, reader in seen.by_code if name == path and reader})
    first = next((reader for reader in readers if reader in judging), "")
    if first:
        return True, f"read by {first}"
    name = path.rpartition("/")[2]
    naming = sorted(each for each, text in seen.texts.items() if name in text and each != path)
    checks = [each for each in naming if each in judging]
    others = [each for each in naming if _is_product(each, judging)]
    if readers:
        is_given = bool(checks) and not others
        return is_given, f"read by {readers[0]}" + (f", for {checks[0]}" if is_given else " and by no check")
    if others and not checks:
        return False, f"opened as the checks ran, and named by {others[0]} alone"
    return True, f"opened as the checks ran{f', and named by {checks[0]}' if checks else ''}"


def explain(path: str, surface: Surface) -> ChangedPath:
    """Return the kind of a changed path; what cannot be shown to be product or document is a check."""
    kind = find_kind_for_verdict(path, surface)
    if kind is not None:
        reason = surface.observed.get(path, kind.words) if kind is FileKind.OBSERVED else kind.words
        return ChangedPath(path=path, kind=PathKind.CHECK, reason=reason)
    is_document = is_document_path(path) and path not in surface.product
    return ChangedPath(
        path=path,
        kind=PathKind.DOCUMENT if is_document else PathKind.PRODUCT,
        reason=surface.product.get(path) or _usual_reason(path, is_document=is_document),
    )


def _usual_reason(path: str, *, is_document: bool) -> str:
    if is_document:
        return "nothing that ran read it"
    if is_source(path):
        return "source of the product"
    return "settings of the product; those of checkers stay" if is_shared(path) else "known by its name"


def _find_shadows(
    texts: Mapping[str, str], loaded: Mapping[str, str], new: Collection[str]
) -> Mapping[str, str]:
    own = {_top_name(path) for path in texts if path not in new}
    found: dict[str, str] = {}
    for path in sorted(each for each in new if each.endswith(".py") and _top_name(each) not in own):
        users = (by for by, text in sorted(loaded.items()) if _top_name(path) in _always_imported(text))
        if user := next(users, None):
            found[path] = f"in place of what {user} imported before"
    return found


def _top_name(path: str) -> str:
    place = next((path.removeprefix(top) for top in _TOPS if path.startswith(top)), path)
    return place.partition("/")[0].removesuffix(".py")


def _always_imported(text: str) -> frozenset[str]:
    body = parse_python(text).body
    names = [each.name for node in body if isinstance(node, ast.Import) for each in node.names]
    names += [node.module or "" for node in body if isinstance(node, ast.ImportFrom) and not node.level]
    return frozenset(name.partition(".")[0] for name in names)


_TEXT_BYTES = 200_000
_MOST_FILES = 20_000
_DOCTESTS = re.compile(
    r"(?<!\w)(?:doctest|DocTestSuite|DocFileSuite|--doctest-modules|--doctest-glob|testmod)(?!\w)"
)
_MANIFESTS = frozenset({*PYTEST_SETTINGS, "setup.py", "package.json", "Cargo.toml", "Makefile", "Dockerfile"})
_SHARED = "settings of checkers beside those of the product"


async def examine_base(context: JudgeContext, task: TaskState, *, ends_stalled: bool) -> TaskState:
    """Run the required checks before anything changes, and record which files belong to them.

    Where only tests are to be mended, one that does not move is ended: it is red.
    """
    assert task.base_tree is not None
    files = context.git.list_paths(task.base_tree)
    checks = context.checking.require(task, files)
    repository = context.checking.read_repository(files)
    surface = find_surface(repository, checks, task.surface.added, task.surface.removed)
    longest = STALL_SECONDS if ends_stalled else 0
    job = CheckJob(checks=checks, tree=task.base_tree, surface=Side.BASE, code=Side.BASE, longest=longest)
    ignored = context.git.list_ignored()
    (baseline,) = await context.checking.run(task, job, ignored=ignored)
    marks = mark_ignored(context.git, ignored)
    task = task.replace(baseline=baseline, surface=surface, ignored=marks)
    reads, runs = context.checking.find_reads(job.tree), context.checking.find_runs(baseline)
    return task.replace(surface=observe_base(context.git, task, reads, runs))


def describe_surface(git: Git, task: TaskState) -> tuple[str, ...]:
    """Return the files that belonged to the checks before the task, one line for each reason."""
    if task.base_tree is None:
        return ()
    found: dict[str, list[str]] = {}
    for path in git.list_paths(task.base_tree):
        kind = find_kind(path, task.surface)
        if kind is not None or is_shared(path):
            found.setdefault(kind.words if kind else _SHARED, []).append(path)
    gap = (f"not watched, so names alone decide: {task.surface.gap}",) if task.surface.gap else ()
    return (*(f"{kind}: {list_some(paths)}" for kind, paths in found.items()), *gap)


def observe_base(git: Git, task: TaskState, reads: Reads | None, runs: Iterable[CheckRun]) -> Surface:
    """Return the check files, by what the tests read in runs on the tree from before the task."""
    assert task.base_tree is not None
    tests = _list_tests(runs)
    seen = _to_observation(git, task.base_tree, task.surface, reads)
    found = observe_paths(seen.replace(tests=tests))
    is_watched = reads is not None and not reads.gap and bool(reads.opened)
    assert task.base_tree is not None
    paths = git.list_paths(task.base_tree)
    known = {*find_test_files(paths, tests).values()} & {*paths}
    return task.surface.replace(
        observed=dict(found.checks),
        product=dict(found.product),
        read=(*found.product, *found.both),
        is_watched=is_watched,
        gap=reads.gap if reads else "",
        has_doctests=_runs_doctests(task, seen),
        parted=tuple(sorted(path for path in known if not is_check_file(task.surface, path))),
    )


def join_surfaces(told: Surface, found: Surface) -> Surface:
    """Return the check files of a record, joined with those found again and those in the settings.

    What the record calls product without having seen it on the change was product before the task as well.
    """
    known = {*found.product, *told.late}
    return told.replace(
        named=tuple(sorted({*told.named, *found.named})),
        folders=tuple(sorted({*told.folders, *found.folders})),
        added=tuple(dict.fromkeys((*told.added, *found.added))),
        removed=tuple(glob for glob in told.removed if glob in found.removed),
        observed=told.observed | found.observed,
        product={path: why for path, why in told.product.items() if path in known},
        read=tuple(dict.fromkeys((*told.read, *found.read))),
        is_watched=told.is_watched or found.is_watched,
        has_doctests=told.has_doctests or found.has_doctests,
        parted=tuple(sorted({*told.parted, *found.parted})),
    )


def observe_after(context: JudgeContext, task: TaskState) -> Surface:
    """Return the check files, with what the tests read of new and undecided files."""
    surface, (base, tree) = _forget_late(task.surface), task.trees
    changed = {each.path for each in context.list_changes(task)}
    if not changed:
        return surface
    new = frozenset(changed & (set(context.git.list_paths(tree)) - set(context.git.list_paths(base))))
    open_ones = {
        path for path in changed if path in new or find_kind_for_verdict(path, surface) is FileKind.UNKNOWN
    }
    if not open_ones:
        return surface
    reads = context.checking.find_reads(tree)
    seen = _to_observation(context.git, tree, surface, reads)
    found = observe_paths(seen.replace(new=new, loaded=_read_loaded(context, task) if new else {}))
    checks = {path: why for path, why in found.checks.items() if path in open_ones}
    product = {path: why for path, why in found.product.items() if path in open_ones}
    read = (*surface.read, *product, *(path for path in found.both if path in checks))
    unread = list[str]()
    if reads is not None:
        rest = sorted(new - checks.keys() - product.keys())
        unread = [path for path in rest if find_kind_for_verdict(path, surface) is FileKind.UNKNOWN]
        product |= dict.fromkeys(unread, "new, and no check reads it")
    return surface.replace(
        observed=surface.observed | checks,
        product=surface.product | product,
        read=read,
        unread=tuple(unread),
        late=tuple(sorted(checks | product)),
    )


def _forget_late(surface: Surface) -> Surface:
    late = set(surface.late)
    return surface.replace(
        observed={path: why for path, why in surface.observed.items() if path not in late},
        product={path: why for path, why in surface.product.items() if path not in late},
        read=tuple(path for path in surface.read if path not in late),
        unread=(),
        late=(),
    )


def is_open(context: JudgeContext, task: TaskState) -> bool:
    """Return whether the kind of a changed path is known only after the checks ran on it."""
    changed = (each.path for each in context.list_changes(task))
    return any(find_kind_for_verdict(path, task.surface) is FileKind.UNKNOWN for path in changed)


def _runs_doctests(task: TaskState, seen: Observation) -> bool:
    if any("doctest" in item.check.command for item in task.baseline):
        return True
    return any(_DOCTESTS.search(seen.texts.get(path, "")) for path in seen.checks | _MANIFESTS)


def _read_loaded(context: JudgeContext, task: TaskState) -> Mapping[str, str]:
    assert task.base_tree is not None
    tests = _list_tests(context.checking.find_runs(task.baseline))
    told = [test for test in tests if not find_id_prefix(test)]
    files = {get_test_file(test) for test in told}
    modules = {module for test in files for module in accumulate(test.split("."), "{}.{}".format)}
    paths = (path for path in context.git.list_paths(task.base_tree) if path.endswith(".py"))
    loaded = [path for path in paths if path in files or not modules.isdisjoint(list_module_names(path))]
    return context.git.read_files(task.base_tree, loaded, _TEXT_BYTES)


def _list_tests(runs: Iterable[CheckRun]) -> frozenset[str]:
    return frozenset(test for run in runs for test in run.outcomes)


_UNWRITABLE = regex("[\ud800-\udfff]")
"""Bytes of a name that are no UTF-8; what changes is told by another spelling, so it is never looked up."""


def _to_observation(git: Git, tree: str, surface: Surface, reads: Reads | None) -> Observation:
    paths = [path for path in git.list_paths(tree) if not _UNWRITABLE.search(path)]
    checks = frozenset(path for path in paths if is_check_file(surface, path))
    opened = reads.opened if reads else frozenset[str]()
    scripts = {path for path in opened if "." not in path.rpartition("/")[2]}
    texts_of = {*checks, *_MANIFESTS, *scripts}
    wanted = [path for path in paths if is_source(path) or path in texts_of][:_MOST_FILES]
    wanted = [path for path in wanted if find_kind(path, surface) is not FileKind.FIXTURES]
    texts = git.read_files(tree, wanted, _TEXT_BYTES)
    seen = Observation(files=frozenset(paths), texts=texts, checks=checks)
    return seen.replace(by_code=reads.by_code, opened=reads.opened) if reads is not None else seen
