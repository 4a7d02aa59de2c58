"""What a change did, file by file: to its checks, and in its code against them."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath

from agentflow.checks.dependencies import Difference, compare, manifest_of
from agentflow.core.evidence import Surface
from agentflow.core.languages import is_source
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.verdict import Hunk, Remark
from agentflow.redact import redact_text
from agentflow.verdict.diff.inline_tests import (
    describe_suppressions,
    extract_checks,
    find_own_checks,
    has_parts,
)
from agentflow.verdict.diff.other_tests import find_added_tests
from agentflow.verdict.diff.python_tests import find_changed_tests
from agentflow.verdict.diff.weakening import SurfaceChange, TextDiff, find_tampering, list_changed_lines
from agentflow.verdict.proofs import find_moved_module, find_renaming, is_renamed
from agentflow.verdict.same.comments import find_dropped_names, is_taken, looks_up
from agentflow.verdict.same.equivalence import (
    READS_TEXTS,
    is_description,
    is_document,
    is_document_path,
    is_same_behaviour,
)
from agentflow.verdict.same.inlining import find_extracted
from agentflow.verdict.same.moved_code import find_moved
from agentflow.verdict.surface import Kind, belongs, is_shared, kind_for_verdict, kind_of, mix
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import ChangedTexts, read_changed_texts

_TEXT_BYTES = 1_000_000
"""A file over it is compared by what the checks show, and not in words."""
_LOCK_BYTES = 20_000_000
_TEST_FILES = 1_000
_RENAMED_FILES = 5_000
"""In a larger repository a renaming is a change like any other."""
_PLAIN = frozenset({"100644", "000000"})
"""Modes of a file that is no program and no link, or is not there."""
_NUMBER = regex(r"(?<![\w.])\d{2,}(?!\w)")
_MOST_NUMBERS = 100
_DOCUMENTS = 50
_CHANGES = regex(r"(?i)change|history|news|release")
"""Names of documents that tell of what was, by number."""
_MOVED = 2
"""Paths that are in one tree alone where a file has another name."""


class Inspection(Record):
    """What the diff of a change shows."""

    checks: tuple[SurfaceChange, ...]
    code: tuple[Remark, ...]
    """What the code gained against the checks."""
    dependencies: tuple[Difference, ...] = ()
    same_behaviour: bool = False
    """Only documents changed, and code in nothing that has an effect."""
    changed_tests: frozenset[str] = frozenset()
    """The tests that are new or changed, by name, where nothing but tests and documents changed."""
    new_fixtures: tuple[str, ...] = ()
    """The new files of data of the tests, where nothing else changed."""
    renamed: Mapping[str, str] = {}
    """The names that became others, where that is all that changed."""
    lines: tuple[Hunk, ...] = ()
    """The changed lines of the product."""
    suppressed: tuple[str, ...] = ()
    """New comments by which the product keeps a required check from looking."""


NO_INSPECTION = Inspection(checks=(), code=())


def inspect_change(git: Git, task: TaskState) -> Inspection:
    """Return what the files that differ show about a change."""
    assert task.base_tree is not None
    assert task.tree is not None
    found = read_changed_texts(git, task.base_tree, task.tree, _TEXT_BYTES)
    changed = [one for each in found for one in _to_changed(each, task.surface)]
    code = {each.path for each in changed if not each.surface}
    tests, spoken = (_tests(git, task), _find_spoken(git, task, changed)) if code else ((), ())
    findings = find_tampering(changed, tests, spoken)
    own = (
        one
        for each in found
        if each.path in code
        for one in find_own_checks(each.path, each.before, each.after)
    )
    return Inspection(
        checks=tuple(_surface_change(each, each.surface, findings) for each in changed if each.surface),
        code=(*(finding for finding in findings if finding.path in code), *own),
        same_behaviour=_is_same_behaviour(git, task, found) or _is_moved(git, task, found),
        changed_tests=_find_changed_tests(found, changed),
        new_fixtures=_find_new_fixtures(found, task.surface),
        suppressed=_find_suppressions(task, changed),
        dependencies=_dependencies(git, task, [each.path for each in found if manifest_of(each.path)]),
        renamed=_find_renamed(git, task, found),
        lines=tuple(hunk for each in changed if not each.surface for hunk in list_changed_lines(each)),
    )


def _is_same_behaviour(git: Git, task: TaskState, changes: tuple[ChangedTexts, ...]) -> bool:
    """Return whether a change has no effect on behaviour; a text that code reads has one."""
    assert task.base_tree is not None
    paths = git.paths(task.base_tree)
    own = {part.partition(".")[0] for path in paths for part in path.split("/")}
    others = tuple(each for each in changes if not is_ignore_file(each.path))
    modes = {mode for each in changes if is_ignore_file(each.path) for mode in each.modes}
    if modes and not (modes <= _PLAIN and _ignores_nothing(git, task)):
        return False
    if (others and not is_same_behaviour(others, own)) or _is_needed(git, task.base_tree, others, own):
        return False
    if any(each.path in task.surface.read for each in changes):
        return False
    documents = [PurePosixPath(each.path) for each in changes if is_document(each)]
    naming = _find_readers(git, task.base_tree, documents)
    if task.surface.is_watched:  # what a test says of a document shows as it runs
        naming = [path for path in naming if not belongs(task.surface, path)]
    reading = _in_code(git.mentions(task.base_tree, READS_TEXTS)) if len(documents) < len(changes) else ()
    return not naming and not reading


def _find_readers(git: Git, tree: str, documents: Collection[PurePosixPath]) -> list[str]:
    """Return the programs that name one of some documents, or both its folder and its ending."""
    named = git.mentions(tree, [path.name for path in documents]) if documents else ()
    naming = _in_code(named)
    for folder, ending in sorted({(path.parts[0], path.suffix) for path in documents if path.parts[1:]}):
        listing = {*git.mentions(tree, [folder])} & {*git.mentions(tree, [ending])}
        naming += [each for each in _in_code(sorted(listing)) if not each.startswith(f"{folder}/")]
    return naming


def is_ignore_file(path: str) -> bool:
    """Tell whether a file says what git does not look at."""
    return PurePosixPath(path).name == ".gitignore"


def _ignores_nothing(git: Git, task: TaskState) -> bool:
    """Tell whether no file that git knows is one to be ignored, and no code reads which are."""
    assert task.base_tree is not None
    known = git.call("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    return not known and not _in_code(git.mentions(task.base_tree, ["gitignore"]))


def _is_moved(git: Git, task: TaskState, changes: tuple[ChangedTexts, ...]) -> bool:
    """Tell whether functions and classes of Python stand elsewhere, and that is all."""
    assert task.base_tree is not None
    assert task.tree is not None
    modes = {mode for each in changes for mode in each.modes}
    is_python = all(each.path.endswith(".py") and each.is_whole for each in changes)
    is_read = any(each.path in task.surface.read for each in changes)
    if len(changes) < _MOVED or not is_python or is_read or not modes <= _PLAIN:
        return False
    sides = [
        [path for path in git.paths(tree) if path.endswith(".py")] for tree in (task.base_tree, task.tree)
    ]
    if len(sides[0]) > _RENAMED_FILES:
        return False
    before, after = (
        git.read_files(tree, paths, _TEXT_BYTES)
        for tree, paths in zip((task.base_tree, task.tree), sides, strict=True)
    )
    names = find_moved(before, after)
    others = (
        (path for path in git.mentions(task.base_tree, names) if not path.endswith(".py")) if names else ()
    )
    return bool(names) and all(map(is_document_path, others))


def _is_needed(git: Git, tree: str, changes: tuple[ChangedTexts, ...], own: Collection[str]) -> bool:
    """Return whether other files may need a name that is gone, or a project's description."""
    if any(map(is_description, changes)) and _in_code(git.mentions(tree, ["metadata"])):
        return True
    for each in (each for each in changes if each.path.endswith(".py")):
        names = find_dropped_names(each.before, each.after, own)
        functions = {name for name, kind in names.items() if kind == "function"}
        brought = find_extracted(each.before, each.after) - functions
        if brought and git.mentions(tree, brought):
            return True
        saying = [path for path in git.mentions(tree, names) if path != each.path] if names else []
        if functions and git.mentions(tree, functions) != (each.path,):
            return True
        paths = [path for path in git.paths(tree) if path.endswith(".py")] if functions or brought else saying
        others = git.read_files(tree, paths, _TEXT_BYTES)
        if any(is_taken(each.path, names, text) for path, text in others.items() if path in saying):
            return True
        if (functions or brought) and any(map(looks_up, others.values())):
            return True
    return False


def _in_code(paths: Iterable[str]) -> list[str]:
    """Return the paths of programs; a package's manifest may name its README."""
    found = (path for path in paths if is_source(path) and path != "setup.py")
    return list(found)


def _find_changed_tests(texts: tuple[ChangedTexts, ...], changed: list[TextDiff]) -> frozenset[str]:
    """Return the new and changed tests, if only tests and documents changed."""
    kinds = {each.path: each.surface for each in changed}
    tests = [each for each in texts if kinds[each.path] is Kind.TESTS]
    if not all(each in tests or (kinds[each.path] is None and is_document(each)) for each in texts):
        return frozenset()
    found = [_tests_of(each) for each in tests if each.after]  # one gone is asked about
    is_clear = all(each.is_whole for each in texts) and all(found)
    return frozenset[str]().union(*found) if is_clear else frozenset()


def _tests_of(change: ChangedTexts) -> frozenset[str]:
    """Return the new and changed tests of a file, if nothing else in it changed."""
    if change.path.endswith(".py"):
        return find_changed_tests(change.before, change.after)
    return find_added_tests(change.path, change.before, change.after)


def _find_new_fixtures(changes: tuple[ChangedTexts, ...], surface: Surface) -> tuple[str, ...]:
    """Return the changed files if all are new data of the tests."""
    is_all = all(_is_new_fixture(each, surface) for each in changes)
    return tuple(each.path for each in changes) if is_all else ()


def _is_new_fixture(change: ChangedTexts, surface: Surface) -> bool:
    """Tell whether a file is new, belongs to the tests alone, and is no code and no setting by its name."""
    name = PurePosixPath(change.path).name
    is_new = change.modes == ("000000", "100644") and change.path not in surface.read
    is_named = name.startswith(".") or is_shared(name) or kind_of(name, Surface()) is not None
    kind = kind_for_verdict(change.path, surface)
    is_of_tests = kind in (Kind.TESTS, Kind.FIXTURES, Kind.OBSERVED)
    return is_new and is_of_tests and not is_source(change.path) and not is_named


def _dependencies(git: Git, task: TaskState, paths: list[str]) -> tuple[Difference, ...]:
    """Return what changed in manifests and lock files."""
    names = [f"{tree}:{path}" for path in paths for tree in (task.base_tree, task.tree)]
    read = git.texts(names, _LOCK_BYTES) if names else ()
    return tuple(compare(*each) for each in zip(paths, read[::2], read[1::2], strict=True))


def _find_renamed(git: Git, task: TaskState, changes: tuple[ChangedTexts, ...]) -> Mapping[str, str]:
    """Return the names that changed, if nothing but names changed."""
    assert task.base_tree is not None
    assert task.tree is not None
    names = find_renaming(changes)
    paths, now = git.paths(task.base_tree), git.paths(task.tree)
    is_moved = not names and len(set(paths) ^ {*now}) == _MOVED
    if not (names or is_moved) or len(paths) > _RENAMED_FILES or (names and sorted(paths) != sorted(now)):
        return {}
    before, after = (
        git.read_files(tree, places, _TEXT_BYTES)
        for tree, places in ((task.base_tree, paths), (task.tree, now))
    )
    if is_moved:
        return find_moved_module(before, after)
    is_left = git.mentions(task.tree, names) or git.mentions(task.base_tree, names.values())
    return names if not is_left and is_renamed(before, after, names) else {}


def _find_suppressions(task: TaskState, changed: Iterable[TextDiff]) -> tuple[str, ...]:
    """Return the new comments by which the product suppresses a required check."""
    names = {item.check.name for item in task.baseline if item.evidence}
    code = (each for each in changed if not each.surface and is_source(each.path))
    return tuple(
        line for each in code for line in describe_suppressions(each.path, each.before, each.after, names)
    )


def _to_changed(each: ChangedTexts, surface: Surface) -> tuple[TextDiff, ...]:
    """Return the diffs of a changed file: two where it holds both product and checks."""
    kind = kind_for_verdict(each.path, surface)
    if kind is None and is_shared(each.path) and mix(each.path, each.before, each.after) != each.after:
        kind = Kind.RUNNER
    whole = TextDiff(path=each.path, before=each.before, after=each.after, surface=kind)
    if kind is not None or not has_parts(surface, each.path):
        return (whole,)
    before, after = (extract_checks(each.path, text) for text in (each.before, each.after))
    part = TextDiff(path=each.path, before=before, after=after, surface=Kind.TESTS)
    return (whole,) if before == after else (part, whole)


def _surface_change(each: TextDiff, kind: Kind, findings: tuple[Remark, ...]) -> SurfaceChange:
    own = tuple(finding for finding in findings if finding.path == each.path)
    return SurfaceChange(path=each.path, kind=kind, before=each.before, after=each.after, findings=own)


def _tests(git: Git, task: TaskState) -> tuple[str, ...]:
    """Return the texts of the tests before the task, whose values code should not know."""
    assert task.base_tree is not None
    kinds = (Kind.TESTS, Kind.OBSERVED, Kind.NAMED)
    paths = (path for path in git.paths(task.base_tree) if kind_of(path, task.surface) in kinds)
    return git.texts([f"{task.base_tree}:{path}" for path in islice(paths, _TEST_FILES)], _TEXT_BYTES)


def _find_spoken(git: Git, task: TaskState, changed: Iterable[TextDiff]) -> tuple[str, ...]:
    """Return the lines of the task, and of older documents that speak of a new number of the code."""
    assert task.base_tree is not None
    product = [each for each in changed if not each.surface and is_source(each.path)]
    new = [{*_NUMBER.findall(each.after)} - {*_NUMBER.findall(each.before)} for each in product]
    numbers = sorted(set[str]().union(*new))[:_MOST_NUMBERS]
    found = git.mentions(task.base_tree, numbers) if numbers else ()
    paths = (path for path in found if is_document_path(path) and not _CHANGES.search(path))
    texts = git.read_files(task.base_tree, islice(paths, _DOCUMENTS), _TEXT_BYTES)
    return tuple(line for text in (task.task, *texts.values()) for line in text.splitlines())


def approval_id(seen: Inspection, weakened: Sequence[str]) -> str:
    """Return the id under which exactly these changes are approved."""
    parts = list(weakened)
    parts += [part for each in seen.checks for part in (each.path, each.after)]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace"))
    return f"checks-{digest.hexdigest()[:8]}"


def find_added_secrets(diff: str) -> tuple[str, ...]:
    """Return `path:line` of each added line that looks like a key and did not only move."""
    removed = {
        row[1:].strip() for row in diff.split("\n") if row.startswith("-") and not row.startswith("---")
    }
    return tuple(place for place, text in _hits(diff) if text.strip() not in removed)


def _hits(diff: str) -> Iterator[tuple[str, str]]:
    """Yield place and text of the added lines that redaction would change."""
    path, number, is_head = "", 0, True
    added: list[tuple[str, str]] = []
    for row in diff.split("\n"):
        if row.startswith("diff --git "):
            is_head = True
        elif is_head and row.startswith("+++ "):
            path = row[4:].strip('"').removeprefix("b/")
        elif row.startswith("@@ "):
            is_head, number = False, int(row.split("+")[1].split(",")[0].split(" ")[0])
        elif not is_head and row[:1] in ("+", " "):
            if row[0] == "+":
                added.append((f"{path}:{number}", row[1:]))
            number += 1
    clean = redact_text("\n".join(text for _, text in added)).split("\n")
    yield from (one for one, now in zip(added, clean, strict=False) if one[1] != now)
