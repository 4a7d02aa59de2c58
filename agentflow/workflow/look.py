"""What a change did, file by file: to its checks, and in its code against them."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import PurePosixPath

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
from agentflow.verdict.broken import changed_tests
from agentflow.verdict.equivalence import READS_TEXTS, is_document, is_same_behaviour
from agentflow.workspace.crossed import Texts, texts
from agentflow.workspace.git import Git

_TEXT_BYTES = 200_000
"""A file over it is compared by what the checks show, and not in words."""
_LOCK_BYTES = 20_000_000
_TEST_FILES = 1_000
_NAMED = 5
_CODE = frozenset(
    {
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".ts",
        ".tsx",
        ".mjs",
        ".cjs",
        ".go",
        ".rs",
        ".java",
        ".kt",
        ".rb",
        ".sh",
        ".c",
        ".cpp",
    }
)
_SHARED = "settings of checkers beside those of the product"


class Look(Record):
    """What is to be seen of a change."""

    checks: tuple[SurfaceChange, ...]
    code: tuple[Finding, ...]
    """What the code gained against the checks."""
    dependencies: tuple[Difference, ...] = ()
    same_behaviour: bool = False
    """Only documents changed, and code in nothing that has an effect."""
    changed_tests: frozenset[str] = frozenset()
    """The test functions that are new or changed, by name, where nothing but tests and documents changed."""


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
        same_behaviour=_is_same_behaviour(git, task, found),
        changed_tests=_changed_tests(found, changed),
        dependencies=_dependencies(git, task, [each.path for each in found if manifest_of(each.path)]),
    )


def _is_same_behaviour(git: Git, task: TaskState, changes: tuple[Texts, ...]) -> bool:
    """Tell whether the change has no effect; what code of the repository reads is no mere text."""
    assert task.base_tree is not None
    if not is_same_behaviour(changes):
        return False
    documents = [PurePosixPath(each.path).name for each in changes if is_document(each)]
    naming = _in_code(git.mentions(task.base_tree, documents)) if documents else ()
    reading = _in_code(git.mentions(task.base_tree, READS_TEXTS)) if len(documents) < len(changes) else ()
    return not naming and not reading


def _in_code(paths: Iterable[str]) -> list[str]:
    """Return the paths of programs; a package's manifest may name its README."""
    found = (path for path in paths if PurePosixPath(path).suffix in _CODE and path != "setup.py")
    return list(found)


def _changed_tests(texts: tuple[Texts, ...], changed: list[Changed]) -> frozenset[str]:
    """Return the new and changed tests, if nothing else changed but documents."""
    kinds = {each.path: each.surface for each in changed}
    tests = [each for each in texts if kinds[each.path] is Kind.TESTS and each.path.endswith(".py")]
    if not all(each in tests or (kinds[each.path] is None and is_document(each)) for each in texts):
        return frozenset()
    found = [
        changed_tests(each.before, each.after) for each in tests if each.after
    ]  # one gone is asked about
    is_clear = all(each.is_whole for each in texts) and all(found)
    return frozenset[str]().union(*found) if is_clear else frozenset()


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
