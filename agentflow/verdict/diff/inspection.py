"""The diff of a change, file by file: what it did to the checks, and in the code against them."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.checks.dependencies import Difference, compare, find_manifest
from agentflow.core.evidence import CheckName, Surface
from agentflow.core.finding import FileKind, Finding, FindingKind
from agentflow.core.languages import is_document_path, is_source
from agentflow.core.pending import Answer
from agentflow.core.record import Record, encode
from agentflow.core.regex import regex
from agentflow.core.task import TaskState
from agentflow.core.verdict import Hunk
from agentflow.redact import redact_text
from agentflow.verdict.diff.other_tests import find_added_tests
from agentflow.verdict.diff.python_tests import find_changed_tests, has_only_lost_functions
from agentflow.verdict.diff.tampering import TextDiff, find_tampering, list_changed_lines
from agentflow.verdict.mixed_files import blank_checks, extract_checks, has_parts, is_shared, mix
from agentflow.verdict.projects import find_new_projects, is_put_among_tests
from agentflow.verdict.same.program import find_renamed, is_same_program
from agentflow.verdict.surface import find_kind, find_kind_for_verdict, is_document
from agentflow.verdict.syntax import parse_python
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import ChangedTexts, read_changed_texts

_TEXT_BYTES = 1_000_000
"""A file over it is compared by what the checks show, and not in words."""
_LOCK_BYTES = 20_000_000
_TEST_FILES = 1_000
_NUMBER = regex(r"(?<![\w.])\d{2,}(?!\w)")
_WORD = regex(r"[\w.-]{2}")
_MOST_NUMBERS = 100
_DOCUMENTS = 50
_CHANGES = regex(r"(?i)change|history|news|release")
"""Names of documents that tell of what was, by number."""
_SILENCED: Mapping[CheckName, re.Pattern[str]] = MappingProxyType(
    {
        CheckName.LINT: regex(
            r"#\s*(?:(?:ruff|flake8)\s*:\s*)?noqa\b[^#\n]*|#\s*(?:pylint\s*:\s*(?:disable|skip)|nosec\b|fmt\s*:\s*(?:off|skip)"
            r"|isort\s*:\s*(?:skip|off))[^#\n]*|/[/*]\s*(?:eslint|biome|oxlint|tslint|stylelint)[-:\w]*(?:disable|ignore)[^\n]*"
            r"|//\s*nolint\b[^\n]*|#!?\[(?:allow|expect)\([^\]]*\]|#\s*(?:rubocop|shellcheck)\s*:?\s*disable[^\n]*"
        ),
        CheckName.TYPES: regex(
            r"#\s*(?:type\s*:\s*ignore|(?:pyright|mypy|ty|pyre)\s*:\s*(?:ignore|basic)|pyre-(?:ignore|fixme))[^#\n]*"
            r"|/[/*]\s*@ts-(?:ignore|expect-error|nocheck)[^\n]*"
        ),
        CheckName.TESTS: regex(
            r"#\s*pragma\s*:\s*no\s*(?:cover|branch)[^#\n]*|/\*\s*(?:istanbul|c8|v8)\s+ignore[^\n]*"
            r"|#\[ignore\b[^\]]*\]|//\s*(?:coverage:ignore|go:build\s+ignore)[^\n]*|LCOV_EXCL_\w+"
        ),
    }
)


class Inspection(Record):
    """All that the diff of a change shows."""

    checks: tuple[TextDiff, ...]
    code: tuple[Finding, ...]
    """Lines that the code gained against the checks."""
    dependencies: tuple[Difference, ...] = ()
    same_behaviour: bool = False
    """Only documents changed, and code in nothing that has an effect."""
    changed_tests: frozenset[str] = frozenset()
    """The tests that are new or changed, by name, where nothing but tests and documents changed."""
    new_fixtures: tuple[str, ...] = ()
    """The new and longer files of data of the tests, where nothing else changed."""
    renamed: Mapping[str, str] = {}
    """The names that became others, where that is all that changed."""
    lines: tuple[Hunk, ...] = ()
    """The changed lines of the product."""
    new_projects: tuple[str, ...] = ()
    """The folders of projects that are new, each with a slash at its end."""
    suppressed: tuple[Finding, ...] = ()
    """New comments by which the product keeps a required check from looking."""


NO_INSPECTION = Inspection(checks=(), code=())


def inspect_change(git: Git, task: TaskState) -> Inspection:
    """Return what the files that differ show about a change."""
    found = read_changed_texts(git, *task.trees, _TEXT_BYTES)
    changed = [one for each in found for one in _to_changed(each, task.surface)]
    before = git.list_paths(task.trees[0])
    changed = [_see_settings(each, before) for each in changed]
    settings = (each.path for each in changed if each.kind is FileKind.RUNNER and not each.before)
    code = {each.path for each in changed if not each.kind}
    tests, spoken = (_tests(git, task), _find_spoken(git, task, changed)) if code else ((), ())
    findings = find_tampering(changed, tests, spoken)
    product = (each for each in found if each.path in code)
    is_all_fixtures = all(_is_new_fixture(each, task.surface) for each in found)
    own = (one for each in product for one in find_own_checks(each.path, each.before, each.after))
    return Inspection(
        checks=tuple(
            each.replace(findings=tuple(finding for finding in findings if finding.path == each.path))
            for each in changed
            if each.kind
        ),
        code=(*(finding for finding in findings if finding.path in code), *own),
        same_behaviour=is_same_program(git, task, found),
        changed_tests=_find_changed_tests(found, changed),
        new_fixtures=tuple(each.path for each in found) if is_all_fixtures else (),
        new_projects=find_new_projects(task.surface, settings, before),
        suppressed=_find_suppressions(task, changed),
        dependencies=_dependencies(git, task, [each.path for each in found if find_manifest(each.path)]),
        renamed=find_renamed(git, task, found),
        lines=tuple(hunk for each in changed if not each.kind for hunk in list_changed_lines(each)),
    )


def _find_changed_tests(texts: tuple[ChangedTexts, ...], changed: list[TextDiff]) -> frozenset[str]:
    kinds = {each.path: each.kind for each in changed}
    tests = [each for each in texts if kinds[each.path] is FileKind.TESTS]
    if not all(each in tests or (kinds[each.path] is None and is_document(each)) for each in texts):
        return frozenset()
    found = list[frozenset[str]]()
    for path, before, after in ((each.path, each.before, each.after) for each in tests if each.after):
        if not path.endswith(".py"):
            found.append(find_added_tests(path, before, after))
        elif not has_only_lost_functions(before, after):  # one gone is asked about
            found.append(find_changed_tests(before, after))
    is_clear = all(each.is_whole for each in texts) and all(found)
    return frozenset[str]().union(*found) if is_clear else frozenset()


def _is_new_fixture(change: ChangedTexts, surface: Surface) -> bool:
    """Return whether a file is new or longer, of the tests alone, and no code and no setting by its name."""
    name = PurePosixPath(change.path).name
    is_longer = change.modes == ("100644", "100644") and change.is_whole and _is_inserted(change)
    is_new = (change.modes == ("000000", "100644") or is_longer) and change.path not in surface.read
    is_named = name.startswith(".") or is_shared(name) or find_kind(name, Surface()) is not None
    kind = find_kind_for_verdict(change.path, surface)
    is_of_tests = kind in (FileKind.TESTS, FileKind.FIXTURES, FileKind.OBSERVED)
    return is_new and is_of_tests and not is_source(change.path) and not is_named


def _is_inserted(change: ChangedTexts) -> bool:
    """Return whether all of a file is there as before, and one piece more that changes none of its cases."""
    before, after = change.before, change.after
    pairs = enumerate(zip(before, after, strict=False))
    same = next((place for place, (old, new) in pairs if old != new), min(len(before), len(after)))
    return any(_is_put_at(place, before, after) for place in (same, before.rfind("\n", 0, same) + 1))


def _is_put_at(place: int, before: str, after: str) -> bool:
    left = before[place:]
    added = after[place : len(after) - len(left)]
    edges = (before[:place][-1:] + added[:1], added[-1:] + left[:1])
    return after.endswith(left) and not any(map(_WORD.fullmatch, edges)) and _is_whole(added)


def _is_whole(added: str) -> bool:
    """Return whether a piece closes no bracket that it does not open, and begins on its outermost level."""
    depths = [*accumulate({"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0) for sign in added)]
    indents = [len(line) - len(line.lstrip()) for line in added.splitlines() if line.strip()]
    return bool(indents) and min(depths) == depths[-1] == 0 and indents[0] == min(indents)


def _dependencies(git: Git, task: TaskState, paths: list[str]) -> tuple[Difference, ...]:
    names = [f"{tree}:{path}" for path in paths for tree in task.trees]
    read = git.read_texts(names, _LOCK_BYTES) if names else ()
    return tuple(compare(*each) for each in zip(paths, read[::2], read[1::2], strict=True))


def _find_suppressions(task: TaskState, changed: Iterable[TextDiff]) -> tuple[Finding, ...]:
    names = {item.check.name for item in task.baseline if item.evidence}
    code = (each for each in changed if not each.kind and is_source(each.path))
    return tuple(
        found for each in code for found in find_suppressions(each.path, each.before, each.after, names)
    )


def find_suppressions(path: str, before: str, after: str, checks: Collection[CheckName]) -> Iterator[Finding]:
    """Yield each comment that keeps a required check from looking; what only moved is no news."""
    for check, silenced in _SILENCED.items():
        is_checked = check in checks or (check is CheckName.LINT and CheckName.FORMAT in checks)
        known = Counter(_bare(found[0]) for found in silenced.finditer(before))
        for number, line in enumerate(after.splitlines(), 1) if is_checked else ():
            for said in (_bare(found[0]) for found in silenced.finditer(line)):
                known[said] -= 1
                if known[said] < 0:
                    yield FindingKind.SILENCED.of(said, check=check, path=path, line=number)


def _bare(said: str) -> str:
    return " ".join(said.split()).removesuffix("*/").strip()


def find_own_checks(path: str, before: str, after: str) -> Iterator[Finding]:
    """Yield the changed comparisons that a Python file makes when it runs as a program."""
    old, new = _list_started(path, before), _list_started(path, after)
    known = {ast.dump(node) for node in old}
    for node in new if old else ():
        if ast.dump(node) not in known and any(map(_compares, ast.walk(node))):
            yield FindingKind.OWN_CHECK.of(path=path, line=node.lineno).replace(is_sure=False)


def _list_started(path: str, text: str) -> list[ast.If]:
    body = parse_python(text).body if path.endswith(".py") else []
    blocks = [node for node in body if isinstance(node, ast.If)]
    return [node for node in blocks if "__name__" in ast.unparse(node.test)]


def _compares(node: ast.AST) -> bool:
    is_asked = isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test)
    inner = [each for part in node.body for each in ast.walk(part)] if is_asked else []  # type: ignore[attr-defined]
    return isinstance(node, ast.Assert) or any(isinstance(each, ast.Raise) for each in inner)


def _to_changed(each: ChangedTexts, surface: Surface) -> tuple[TextDiff, ...]:
    kind = find_kind_for_verdict(each.path, surface)
    if kind is None and is_shared(each.path) and mix(each.path, each.before, each.after) != each.after:
        kind = FileKind.RUNNER
    whole = TextDiff(path=each.path, before=each.before, after=each.after, kind=kind)
    if kind is not None or not has_parts(surface, each.path):
        return (whole,)
    before, after = (extract_checks(each.path, text) for text in (each.before, each.after))
    part = TextDiff(path=each.path, before=before, after=after, kind=FileKind.TESTS)
    sides = (blank_checks(each.path, text) for text in (each.before, each.after))
    product = whole.replace(before=next(sides), after=next(sides))
    if before == after:
        return (product,)
    bare = [blank_checks(each.path, text, is_cut=True) for text in (each.before, each.after)]
    return (part,) if bare[0] == bare[1] else (part, product)


def _see_settings(change: TextDiff, before: Iterable[str]) -> TextDiff:
    """Return a change, which is one of settings although a folder of tests has the file."""
    is_new_test = change.kind is FileKind.TESTS and not change.before
    is_setting = is_new_test and is_put_among_tests(change.path, before)
    return change.replace(kind=FileKind.RUNNER) if is_setting else change


def _tests(git: Git, task: TaskState) -> tuple[str, ...]:
    kinds, base = (FileKind.TESTS, FileKind.OBSERVED, FileKind.NAMED), task.trees[0]
    paths = (path for path in git.list_paths(base) if find_kind(path, task.surface) in kinds)
    return git.read_texts([f"{base}:{path}" for path in islice(paths, _TEST_FILES)], _TEXT_BYTES)


def _find_spoken(git: Git, task: TaskState, changed: Iterable[TextDiff]) -> tuple[str, ...]:
    """Return the lines of the task and of older documents that mention a new number of the code."""
    product = [each for each in changed if not each.kind and is_source(each.path)]
    new = [{*_NUMBER.findall(each.after)} - {*_NUMBER.findall(each.before)} for each in product]
    numbers = sorted(set[str]().union(*new))[:_MOST_NUMBERS]
    found = git.find_mentions(task.trees[0], numbers) if numbers else ()
    paths = (path for path in found if is_document_path(path) and not _CHANGES.search(path))
    texts = git.read_files(task.trees[0], islice(paths, _DOCUMENTS), _TEXT_BYTES)
    return tuple(line for text in (task.task, *texts.values()) for line in text.splitlines())


def find_approval(task: TaskState, seen: Inspection, weakened: Sequence[Finding]) -> Answer | None:
    """Return the answer to exactly these changes; one from an older version was to what its record says."""
    recorded = task.verdict.weakened if task.verdict else ()
    is_older = bool(weakened) and all(each.is_among(recorded) for each in weakened)
    answers = task.waiting.answers
    ids = (make_approval_id(seen, each) for each in (weakened, *((recorded,) if is_older else ())))
    return next((answers[name] for name in ids if name in answers), None)


def make_approval_id(seen: Inspection, weakened: Iterable[Finding]) -> str:
    """Return the id under which exactly these changes are approved."""
    older = FindingKind.AS_WORDED
    parts = [each.subjects[0] if each.kind is older else encode(each).decode() for each in weakened]
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
