"""What a change did to the checks: what a person has to approve, what is only told, and the words for it.

The original checks decide: where they show the same with the new code, no changed check hides anything.
"""

import ast
import configparser
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from agentflow.core.evidence import RED, CheckName, CheckRun, TestOutcome
from agentflow.core.languages import is_source
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk, Remark, Tampering
from agentflow.frontmatter import read_yaml
from agentflow.redact import list_some
from agentflow.verdict.diff.known_values import (
    COMMON,
    Known,
    find_asking_rows,
    find_copied_rows,
    find_knowing_lines,
)
from agentflow.verdict.diff.python_tests import compare_tests, find_moved_tests
from agentflow.verdict.diff.switches import find_careless_comparisons, find_switches, is_setting_row
from agentflow.verdict.same.comments import code_lines
from agentflow.verdict.shared_settings import read_checker_settings
from agentflow.verdict.surface import Kind
from agentflow.verdict.syntax import NO_PYTHON
from agentflow.workspace.mixed_tree import find_differences

_LOST = frozenset(
    {Tampering.TEST_GONE, Tampering.FEWER_CASES, Tampering.SKIPPED, Tampering.WEAKER, Tampering.EXPECTATION}
)
_OTHER_TOOLS = frozenset(
    {
        *("ruff", "mypy", "black", "isort", "pylint", "flake8", "pyright", "ty", "bandit", "codespell"),
        *("coverage", "eslint", "eslintrc", "nycrc", "coveragerc", "pylintrc", "pyrightconfig", "tsconfig"),
        *("golangci", "clippy", "pre-commit-config", "eslintConfig", "eslintIgnore", "nyc", "c8"),
    }
)
"""Tools that judge code without running a test, by the begin of their files or their table."""
_RECIPES: Mapping[str, str] = MappingProxyType(
    {
        "makefile": "make",
        ".mk": "make",
        "justfile": "just",
        "taskfile": "task",
        "mvnw": "mvn",
        "gradle": "gradle",
    }
)
"""Files with commands, and the program that obeys them."""
_VALUES = frozenset(
    {".json", ".csv", ".tsv", ".txt", ".xml", ".yaml", ".yml", ".html", ".md", ".rst", ".sql"}
)


class SurfaceChange(Record):
    """A file of the surface that differs from before."""

    path: str
    kind: Kind
    before: str
    after: str
    findings: tuple[Remark, ...] = ()


class JudgedCheck(Record):
    """A check before the task, and twice after it."""

    base: CheckRun
    final: CheckRun
    """The code as it is now under the checks as they are now."""
    held: CheckRun
    """The same code under the checks as they stood before."""


class Weakening(Record):
    """Changes to the checks, a line for each thing."""

    asked: tuple[str, ...] = ()
    """What a person has to approve, all that was done in one list."""
    noted: tuple[str, ...] = ()
    """What changes no result of today, and what later changes are judged by."""


def find_weakening(changes: Sequence[SurfaceChange], judged: Iterable[JudgedCheck]) -> Weakening:
    """Return what the change did to the checks, judged by what the original ones show on the new code."""
    runs = tuple(judged)
    asked = [line for each in runs for line in (*_find_lost_tests(each, changes), *_other_results(each))]
    asked += _untold(changes, runs)
    told = [line for change in changes for line in _describe_weakening(change)]
    aids = [each for each in changes if asked and not each.before and each.kind is not Kind.TESTS]
    new = [line for each in aids for line in _describe(each)]
    lines = tuple(dict.fromkeys((*asked, *new, *told)))
    return Weakening(asked=lines) if asked else Weakening(noted=lines)


def _find_lost_tests(judged: JudgedCheck, changes: Sequence[SurfaceChange]) -> Iterator[str]:
    """Yield the tests that would still give a result as they were, and no longer run."""
    base, final, held = judged.base, judged.final, judged.held
    lost = (base.tests_with_result - final.tests_with_result) & held.tests_with_result
    passed = held.list_ids(TestOutcome.PASSED)
    news = final.list_ids(TestOutcome.PASSED) - base.tests_with_result
    texts = [(each.before, each.after) for each in changes if each.kind is Kind.TESTS]
    found = find_moved_tests(lost & passed - final.outcomes.keys(), news, texts)
    found |= {test for test in lost & passed if any(each.startswith(f"{test}[") for each in news)}
    for test in sorted(lost - found):
        yield f"{test} {'is skipped now' if test in final.outcomes else 'is gone'}"
    before, after, as_it_stood = (run.counts.ran if run.counts else 0 for run in (base, final, held))
    if not base.outcomes and after < min(before, as_it_stood):
        yield f"{base.check.name}: {before} tests ran before, {after} now"


def _other_results(judged: JudgedCheck) -> Iterator[str]:
    """Yield what only the original checks complain about on the new code."""
    base, final, held = judged.base, judged.final, judged.held
    for test in sorted(held.list_ids(*RED) - final.list_ids(*RED)):
        yield f"{test} fails as it stood before the task"
    if not held.list_ids(*RED) - base.list_ids(*RED):
        for test in sorted((base.tests_with_result & final.tests_with_result) - held.tests_with_result):
            yield f"{test} gives no result as it stood before the task"
    hidden = Counter(held.findings) - Counter(final.findings)
    if hidden and not final.outcomes:
        found = list_some(sorted(hidden), 1)
        yield f"{held.check.name} fails with the settings from before the task: {found}"
    elif _is_hidden(base, final, held):
        yield f"{held.check.name} fails with the settings from before the task"


def _is_hidden(base: CheckRun, final: CheckRun, held: CheckRun) -> bool:
    """Return whether a check without named findings passes only by its changed settings."""
    if held.evidence is None:
        return base.evidence is not None and final.evidence is not None
    if held.outcomes or not final.green:
        return False
    return bool(base.outcomes) or not held.green


def _untold(changes: Sequence[SurfaceChange], judged: Sequence[JudgedCheck]) -> Iterator[str]:
    """Yield the changes that the results of the original checks cannot reveal."""
    tests = [each for each in judged if each.base.check.name is CheckName.TESTS]
    commands = [run.check.command for each in tests for run in (each.base, each.final)]
    is_named = all(each.base.outcomes for each in tests)
    has_new_tests = any(each.kind is Kind.TESTS and each.after for each in changes)
    for change in changes:
        is_steering = steers(change.path, change.kind, change.before, change.after, commands)
        is_read = bool(change.before) and change.kind is not Kind.UNKNOWN
        is_uncounted = (
            not is_named and is_read and bool(Counter(change.before.split()) - Counter(change.after.split()))
        )
        if (is_steering and has_new_tests) or is_uncounted:
            yield from _describe(change)


def _describe(change: SurfaceChange) -> list[str]:
    """Return what was done to a file, at least that it changed or is new."""
    found = [finding.describe() for finding in change.findings]
    return found or [f"{change.path}: {change.kind} {'changed' if change.before else 'is new'}"]


def _describe_weakening(change: SurfaceChange) -> list[str]:
    """Return what one file of the checks lost, or may have lost."""
    if change.kind is Kind.TESTS:
        return [each.describe() for each in change.findings if each.kind in _LOST and change.before]
    return _describe(change) if change.before or change.findings else []


def steers(path: str, kind: Kind, before: str, after: str, commands: Iterable[str]) -> bool:
    """Return whether a changed file can affect tests that do not mention it.

    `commands` are those of the tests: a Makefile decides nothing where they do not start make.
    """
    match kind:
        case Kind.TESTS | Kind.UNKNOWN:
            return False
        case Kind.FIXTURES:
            return path.endswith(".py") and not _only_gains(before, after)
        case Kind.RUNNER:
            return _settings(path, before) != _settings(path, after)
        case Kind.BUILD:
            return any(word in path.lower() and _starts(tool, commands) for word, tool in _RECIPES.items())
        case Kind.START | Kind.NAMED | Kind.OBSERVED | Kind.SETTING:
            is_code = PurePosixPath(path).suffix not in _VALUES
            return is_code and not (path.endswith(".py") and _only_gains(before, after))


def _starts(tool: str, commands: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w-]){tool}", command) for command in commands)


def _settings(path: str, text: str) -> object:
    """Return what a settings file says to a test runner; its whole text if it cannot be parsed."""
    name = path.rpartition("/")[2]
    if (
        name.lstrip(".").partition(".")[0] in _OTHER_TOOLS
        or re.split(r"[._]", name.lstrip("."))[0] in _OTHER_TOOLS
    ):
        return None
    try:
        found = read_checker_settings(path, text)
    except (ValueError, configparser.Error, RecursionError):
        return text
    return {table: said for table, said in found.items() if re.split(r"[.:-]", table)[0] not in _OTHER_TOOLS}


def _only_gains(before: str, after: str) -> bool:
    """Return whether Python code only gained what a test has to ask for by name."""
    try:
        old, new = (Counter(map(ast.dump, ast.parse(text).body)) for text in (before, after))
        known = {name for node in ast.parse(before).body if (name := _name_of(node))}
        added = [node for node in ast.parse(after).body if ast.dump(node) in new - old]
    except NO_PYTHON:
        return False
    return not old - new and all(_is_plain(node) and _name_of(node) not in known for node in added)


def _name_of(node: ast.stmt) -> str | None:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _is_plain(node: ast.stmt) -> bool:
    """Return whether a statement cannot affect a test that does not mention it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if not isinstance(node, ast.FunctionDef) or node.name.startswith(
        ("pytest_", "setup", "teardown", "load_tests")
    ):
        return False
    words = " ".join(map(ast.unparse, node.decorator_list))
    return not words or (
        bool(re.fullmatch(r"(?:pytest\.)?fixture(?:\(.*\))?", words)) and "autouse" not in words
    )


_SNAPSHOT = re.compile(
    r".*(?:\.snap|\.ambr|\.approved\.\w+)|(?:.*/)?(?:__snapshots__|golden|cassettes|expected)/.*"
)
_LITERAL = re.compile(
    r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d{2,}(?:\.\d+)?|\"[^\"\n]{3,}\"|'[^'\n]{3,}')(?![\w.])"
)
_ROW_FILES = (
    *(".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".csv", ".tsv", ".txt", ".xml", ".md", ".rst"),
)
_KEY = re.compile(r"[\"'](?:\d+)[\"']\s*:\s*-?\d")
"""A row of data that leads from a number to a number."""
_SHELLS = ("", ".sh", ".bash")
_SEVERAL = 3
"""Literals of the tests on one line, or on neighbouring ones, before code is said to know them."""


class _Where(StrEnum):
    SURFACE = "surface"
    CODE = "code"


class _Rule(Record):
    kind: str
    place: _Where
    files: str
    lines: tuple[str, ...]
    sure: bool = False


class TextDiff(Record):
    """A file before and after a change; empty text for none."""

    path: str
    before: str
    after: str
    surface: Kind | None


def find_tampering(
    changed: Sequence[TextDiff], tests: Sequence[str] = (), spoken: Sequence[str] = ()
) -> tuple[Remark, ...]:
    """Return all that a change did to the checks, or to code against them, by path and line.

    `tests` are texts of tests, whose values code should not know, unless lines for people speak of them.
    """
    given = (*tests, *(each.before + each.after for each in changed if each.surface))
    known = frozenset(literal for text in given for literal in _literals(text))
    product = [each for each in changed if not each.surface]
    values = Known(given, [each.before for each in product], spoken)
    found = [finding for each in changed for finding in _look(each, known, values)]
    found += [finding for each in product for finding in _find_known_text(each, given, product)]
    unique: dict[tuple[str, str, int | None], Remark] = {}
    for each in sorted(found, key=lambda each: not each.is_sure):
        unique.setdefault((each.kind, each.path, each.line), each)
    return tuple(sorted(unique.values(), key=lambda each: (each.path, each.line or 0, each.kind)))


def _look(changed: TextDiff, known: frozenset[str], values: Known) -> Iterator[Remark]:
    added = _lines_added(changed)
    place = _Where.SURFACE if changed.surface else _Where.CODE
    for rule in _rules():
        if rule.place is place and re.fullmatch(rule.files, changed.path):
            pattern = _either(rule.lines)
            is_new = not pattern.search(changed.before)
            for line, text in added:
                if pattern.search(text):
                    is_setting = rule.kind == "detects" and is_setting_row(text, pattern)
                    kind = Tampering.SETTING if is_setting else Tampering[rule.kind.upper()]
                    yield _to_finding(kind, changed, line, text, rule.sure and is_new)
    if place is _Where.CODE:
        yield from _find_repeated(changed, added, known)
        yield from _find_knowing(changed, added, values)
        yield from find_careless_comparisons(changed.path, changed.before, changed.after)
    elif _SNAPSHOT.fullmatch(changed.path) and changed.before:
        yield Remark(kind=Tampering.REFRESHED, path=changed.path, line=None, text="")
    elif changed.path.endswith(".py"):
        yield from compare_tests(changed.path, changed.before, changed.after)


def _find_repeated(
    changed: TextDiff, added: Sequence[tuple[int, str]], known: frozenset[str]
) -> Iterator[Remark]:
    """Yield where code gained several of the very values that the tests use."""
    shared = [(line, text) for line, text in added if not known.isdisjoint(_literals(text))]
    values = {value for _, text in shared for value in _literals(text)} & known
    odd = {value for value in values if value.isdigit() and int(value) not in COMMON}
    if len(values) >= _SEVERAL:
        line, text = next(((at, text) for at, text in shared if any(each in text for each in odd)), shared[0])
        yield _to_finding(Tampering.KNOWS_INPUTS, changed, line, text, is_sure=len(odd) >= _SEVERAL)


def _literals(text: str) -> list[str]:
    """Return the numbers and strings that a text spells out, a number in one way only."""
    found = _LITERAL.findall(text)
    return [str(int(each, 16)) if each[:2] in ("0x", "0X") else each for each in found]


def _to_finding(kind: Tampering, changed: TextDiff, line: int, text: str, is_sure: bool) -> Remark:
    return Remark(kind=kind, path=changed.path, line=line, text=text.strip(), is_sure=is_sure)


def _find_knowing(changed: TextDiff, added: Sequence[tuple[int, str]], known: Known) -> Iterator[Remark]:
    """Yield the conditions and tables of new code that hold values of the tests or look at no input."""
    texts = (changed.before, changed.after)
    rows = [row for row in added if not changed.path.endswith(_ROW_FILES) or _KEY.search(row[1])]
    for line, text in find_knowing_lines(changed.path, texts, rows, known):
        yield _to_finding(Tampering.KNOWS_INPUTS, changed, line, text, is_sure=True)
    for line, text, is_setting in find_switches(*texts) if changed.path.endswith(".py") else ():
        kind = Tampering.SETTING if is_setting else Tampering.DETECTS
        yield _to_finding(kind, changed, line, text, is_sure=True)


def _find_known_text(changed: TextDiff, tests: Sequence[str], code: list[TextDiff]) -> Iterator[Remark]:
    """Yield where a new file of data, or a script, has what stands in the tests, or digests of it."""
    ending = PurePosixPath(changed.path).suffix
    is_table = not changed.before and (ending in _ROW_FILES or not is_source(changed.path))
    pairs = [(each.before, each.after) for each in code if is_source(each.path)]
    for line, text in find_copied_rows(changed.after, tests, pairs) if is_table else ():
        yield _to_finding(Tampering.KNOWS_INPUTS, changed, line, text, is_sure=True)
    for line, text in find_asking_rows(_lines_added(changed), tests) if ending in _SHELLS else ():
        yield _to_finding(Tampering.DETECTS, changed, line, text, is_sure=True)


def _lines_added(changed: TextDiff) -> list[tuple[int, str]]:
    """Return the lines that are new, with their numbers, without those that only say something."""
    after = code_lines(changed.path, changed.after)
    places = (place for span in _spans(changed) for place in span)
    return [(place + 1, after[place]) for place in places if place < len(after) and after[place].strip()]


def list_changed_lines(changed: TextDiff) -> list[Hunk]:
    """Return the changed places of a file, in lines of it as it is now."""
    return [
        Hunk(path=changed.path, line=max(span.start + bool(span), 1), end=max(span.stop, 1))
        for span in _spans(changed)
    ]


def _spans(changed: TextDiff) -> list[range]:
    """Return what was inserted, replaced and deleted, counted from 0 in the file as it is now."""
    found = find_differences(changed.before.splitlines(), changed.after.splitlines())
    return [range(start, end) for *_, start, end in found]


@cache
def _rules() -> tuple[_Rule, ...]:
    text = Path(__file__).with_name("tamper.yaml").read_text("utf-8")
    return read_yaml(tuple[_Rule, ...], text, "tamper.yaml")


@cache
def _either(lines: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        "|".join(f"(?:{line})" if not line.startswith("(?i)") else f"(?i:{line[4:]})" for line in lines)
    )
