"""What a change did, file by file: to its checks, and in its code against them."""

import re
from itertools import islice

from agentflow.checks.dependencies import Difference, compare
from agentflow.checks.manifests import manifest_of
from agentflow.checks.mixed import is_shared, mix
from agentflow.checks.surface import Kind, kind_of
from agentflow.checks.tamper import Changed, name_changes
from agentflow.checks.tampering import Finding
from agentflow.checks.weakening import SurfaceChange
from agentflow.core.evidence import Surface
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.workspace.crossed import Texts, texts
from agentflow.workspace.git import Git

_TEXT_BYTES = 200_000
"""A file over it is compared by what the checks show, and not in words."""
_LOCK_BYTES = 20_000_000
_TEST_FILES = 1_000
_NAMED = 5
_SHARED = "settings of checkers beside those of the product"


class Look(Record):
    """What is to be seen of a change."""

    checks: tuple[SurfaceChange, ...]
    code: tuple[Finding, ...]
    """What the code gained against the checks."""
    dependencies: tuple[Difference, ...] = ()


NOTHING = Look(checks=(), code=())


class Sight:
    """The looks at the changes of a task, each taken once."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[tuple[str | None, str | None], Look] = {}

    def of(self, task: TaskState) -> Look:
        trees = (task.base_tree, task.tree)
        if trees not in self._known:
            self._known[trees] = look(self._git, task)
        return self._known[trees]


def look(git: Git, task: TaskState) -> Look:
    """Compare all files that differ, and put what is to be said of them into words."""
    assert task.base_tree is not None
    assert task.tree is not None
    found = tuple(texts(git, task.base_tree, task.tree, _TEXT_BYTES))
    changed = [_changed(each, task.surface) for each in found]
    code = {each.path for each in changed if not each.surface}
    findings = name_changes(changed, _tests(git, task) if code else ())
    return Look(
        checks=tuple(_surface_change(each, each.surface, findings) for each in changed if each.surface),
        code=tuple(finding for finding in findings if finding.path in code),
        dependencies=_dependencies(git, task, [each.path for each in found if manifest_of(each.path)]),
    )


def _dependencies(git: Git, task: TaskState, paths: list[str]) -> tuple[Difference, ...]:
    """Return what changed in manifests and lock files; what the task asks for by name is no doubt."""
    names = [f"{tree}:{path}" for path in paths for tree in (task.base_tree, task.tree)]
    read = git.texts(names, _LOCK_BYTES) if names else ()
    found = (compare(*each) for each in zip(paths, read[::2], read[1::2], strict=True))
    return tuple(
        each.replace(doubts=tuple(one for one in each.doubts if not _named(task.task, one.name)))
        for each in found
    )


def _named(task: str, name: str) -> bool:
    return re.search(rf"(?<![\w.@/-]){re.escape(name)}(?![\w/-])", task) is not None


def _changed(each: Texts, surface: Surface) -> Changed:
    """Return a changed file with why it belongs to the checks; one may be theirs and the product's."""
    kind = kind_of(each.path, surface)
    if kind is None and is_shared(each.path) and mix(each.path, each.before, each.after) != each.after:
        kind = Kind.RUNNER
    return Changed(path=each.path, before=each.before, after=each.after, surface=kind)


def _surface_change(each: Changed, kind: Kind, findings: tuple[Finding, ...]) -> SurfaceChange:
    own = tuple(finding for finding in findings if finding.path == each.path)
    return SurfaceChange(path=each.path, kind=kind, before=each.before, after=each.after, findings=own)


def _tests(git: Git, task: TaskState) -> tuple[str, ...]:
    """Return the tests as they were, by which code is known that has their values."""
    assert task.base_tree is not None
    paths = (path for path in git.paths(task.base_tree) if kind_of(path, task.surface) is Kind.TESTS)
    return git.texts([f"{task.base_tree}:{path}" for path in islice(paths, _TEST_FILES)], _TEXT_BYTES)


def listed(git: Git, task: TaskState) -> tuple[str, ...]:
    """Return what belonged to the checks before the task, a line for each reason."""
    if task.base_tree is None:
        return ()
    found: dict[str, list[str]] = {}
    for path in git.paths(task.base_tree):
        kind = kind_of(path, task.surface) or (_SHARED if is_shared(path) else None)
        if kind is not None:
            found.setdefault(kind, []).append(path)
    return tuple(f"{kind}: {_shortened(paths)}" for kind, paths in found.items())


def _shortened(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"
