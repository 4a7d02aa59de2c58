"""Weakened checks: which changes of them a person has to approve, and which are only told.

The original checks decide: where they show the same with the new code, no changed check hides anything.
"""

import ast
import configparser
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.core.check_command import list_moves
from agentflow.core.evidence import RED, CheckName, CheckRun, TestOutcome
from agentflow.core.finding import FileKind, Finding, FindingKind
from agentflow.core.languages import is_source
from agentflow.core.record import Record
from agentflow.core.test_ids import get_test_file, get_test_function, is_test_in
from agentflow.verdict.case import list_left_out
from agentflow.verdict.diff.python_tests import (
    find_altered_functions,
    find_extended_tests,
    find_moved_tests,
    strip_to_names,
)
from agentflow.verdict.diff.tampering import TextDiff
from agentflow.verdict.mixed_files import read_checker_settings
from agentflow.verdict.projects import get_folder
from agentflow.verdict.syntax import NO_PYTHON

_LOST = frozenset(
    {
        *(FindingKind.TEST_GONE, FindingKind.FEWER_CASES, FindingKind.SKIPPED, FindingKind.RETURNS_AT_ONCE),
        *(FindingKind.WEAKER, FindingKind.EXPECTATION, FindingKind.OTHER_INPUT),
    }
)
_WEAKER = frozenset(
    {FindingKind.WEAKER, FindingKind.SWALLOWED, FindingKind.FORCED_EXIT, FindingKind.EXCLUDED}
)
"""What lets later faults pass, where the line is sure to do so."""
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


class JudgedCheck(Record):
    """A check before the task, and twice after it."""

    base: CheckRun
    final: CheckRun
    """The code as it is now under the checks as they are now."""
    held: CheckRun
    """The code as it is now under the checks as they stood before."""


class Weakening(Record):
    """Changes to the checks."""

    asked: tuple[Finding, ...] = ()
    """All that was done, where a person has to approve any of it."""
    noted: tuple[Finding, ...] = ()
    """Changes that change no result of today; later changes are judged by them, the weaker ones first."""
    is_weaker: bool = False
    """One of those that are noted is sure to let a later fault pass."""


def find_weakening(
    changes: Sequence[TextDiff], judged: Iterable[JudgedCheck], new_projects: Collection[str] = ()
) -> Weakening:
    """Return what the change did to the checks, judged by what the original ones show on the new code."""
    runs = tuple(judged)
    moved = _find_moved_files(changes, runs)
    # settings of a new project concern its tests alone, and leave none of these out
    own = {
        each.path
        for each in changes
        if each.kind is FileKind.RUNNER and get_folder(each.path) in new_projects
    }
    changes = [each for each in changes if each.path not in moved | own]
    results = [
        each for run in runs for each in (*_find_lost_tests(run, changes, moved), *_other_results(run))
    ]
    asked = [
        *_group_results(results, changes),
        *_list_differing_moves(changes, runs),
        *_untold(changes, runs),
    ]
    told = [each for change in changes for each in _list_losses(change)]
    aids = [each for each in changes if asked and not each.before and each.kind is not FileKind.TESTS]
    new = [each for aid in aids for each in _list_remarks(aid)]
    weaker = [] if asked else [each for change in changes for each in _list_weaker(change)]
    found = tuple(dict.fromkeys((*asked, *weaker, *new, *told)))
    return Weakening(asked=found) if asked else Weakening(noted=found, is_weaker=bool(weaker))


def _list_weaker(change: TextDiff) -> list[Finding]:
    """Return what surely lets later faults pass: of tests only weaker assertions, which are theirs alone."""
    kinds = {FindingKind.WEAKER} if change.kind is FileKind.TESTS else _WEAKER
    return [each for each in change.findings if each.is_sure and each.kind in kinds and change.before]


def _find_lost_tests(
    judged: JudgedCheck, changes: Sequence[TextDiff], moved: Collection[str]
) -> Iterator[Finding]:
    base, final, held = judged.base, judged.final, judged.held
    apart = list_left_out(base, final)
    lost = (base.tests_with_result - final.tests_with_result) & (held.tests_with_result | apart)
    passed = held.list_ids(TestOutcome.PASSED) | apart
    news = final.list_ids(TestOutcome.PASSED) - base.tests_with_result
    texts = [(each.before, each.after) for each in changes if each.kind is FileKind.TESTS]
    found = find_moved_tests(lost & passed - final.outcomes.keys(), news, texts)
    found |= {
        test
        for test in lost & apart
        if get_test_file(test) in moved and not news.isdisjoint(_list_moved(test, judged))
    }
    found |= {test for test in lost & passed if any(each.startswith(f"{test}[") for each in news)}
    found |= _find_renumbered(lost & passed, judged, changes)
    for test in sorted(lost - found):
        yield (FindingKind.SKIPPED_NOW if test in final.outcomes else FindingKind.GONE_NOW).of(test)
    before, after, as_it_stood = (run.counts.ran if run.counts else 0 for run in (base, final, held))
    if not base.outcomes and after < min(before, as_it_stood):
        yield FindingKind.FEWER_RAN.of(str(before), str(after), check=base.check.name)


def _find_renumbered(
    gone: Collection[str], judged: JudgedCheck, changes: Iterable[TextDiff]
) -> frozenset[str]:
    """Return the cases with another id now since their tests, otherwise unchanged, gained cases."""
    counts = [
        Counter(test.partition("[")[0] for test in run.tests_with_result)
        for run in (judged.base, judged.final)
    ]
    files = {each.path: each for each in changes if each.kind is FileKind.TESTS and each.path.endswith(".py")}
    extended = {path: find_extended_tests(each.before, each.after) for path, each in files.items()}
    return frozenset(
        test
        for test in gone
        if "[" in test
        and get_test_function(test) in extended.get(get_test_file(test), ())
        and counts[1][function := test.partition("[")[0]] > counts[0][function]
    )


def _group_results(results: Iterable[Finding], changes: Iterable[TextDiff]) -> Iterator[Finding]:
    """Yield one finding for each test of the source, however many inherit it."""
    sources: dict[str, dict[str, int | None]] = {}
    for each in (each for change in changes for each in change.findings if each.kind in _LOST):
        sources.setdefault(get_test_function(next(iter(each.subjects), "")), {})[each.path] = each.line
    groups: dict[tuple[FindingKind, str, str], list[Finding]] = {}
    for each in results:
        test = "" if each.check else each.subjects[0]
        name, own = get_test_function(test), get_test_file(test)
        known = sources.get(name, {})
        source = own if own in known or len(known) != 1 else next(iter(known))
        groups.setdefault((each.kind, source, each.check or name), []).append(each)
    for (kind, source, name), group in groups.items():
        tests = dict.fromkeys(test for each in group for test in each.subjects)
        line = sources.get(name, {}).get(source)
        yield group[0] if group[0].check else kind.of(*tests, path=source if line else "", line=line)


def _list_moved(path: str, judged: JudgedCheck) -> Iterator[str]:
    """Yield the paths that a file, or a test by its file, has where its project is another folder now."""
    moves = list_moves(judged.base.check.command, judged.final.check.command)
    yield from (new + path.removeprefix(old) for old, new in moves if path.startswith(old))


def _find_moved_files(changes: Sequence[TextDiff], runs: Sequence[JudgedCheck]) -> frozenset[str]:
    new = {each.path: each for each in changes if each.after and not each.before}
    gone = [each for each in changes if each.before and not each.after]
    pairs = ((each, new.get(path)) for each in gone for run in runs for path in _list_moved(each.path, run))
    same = [(old, now) for old, now in pairs if now and (old.before, old.kind) == (now.after, now.kind)]
    return frozenset(each.path for pair in same for each in pair)


def _list_differing_moves(changes: Sequence[TextDiff], runs: Sequence[JudgedCheck]) -> Iterator[Finding]:
    """Yield the files of a project that moved which are others now: nothing ran there as they stood."""
    gone = [each for each in changes if each.before and not each.after]
    moved = (each for each in gone if any(True for run in runs for _ in _list_moved(each.path, run)))
    yield from (remark for each in moved for remark in _list_remarks(each))


def _other_results(judged: JudgedCheck) -> Iterator[Finding]:
    base, final, held = judged.base, judged.final, judged.held
    for test in sorted(held.list_ids(*RED) - final.list_ids(*RED)):
        yield FindingKind.FAILS_ORIGINALLY.of(test)
    if not held.list_ids(*RED) - base.list_ids(*RED):
        for test in sorted((base.tests_with_result & final.tests_with_result) - held.tests_with_result):
            yield FindingKind.NO_RESULT_ORIGINALLY.of(test)
    if base.evidence and final.evidence is None:
        yield FindingKind.NO_LONGER_RUNS.of(final.check.missing or "", check=base.check.name)
    hidden = Counter(held.findings) - Counter(final.findings)
    if hidden and not final.outcomes:
        yield FindingKind.CONFIGURATION_HIDES.of(*sorted(hidden), check=held.check.name)
    elif _is_hidden(base, final, held):
        yield FindingKind.CONFIGURATION_HIDES.of(check=held.check.name)


def _is_hidden(base: CheckRun, final: CheckRun, held: CheckRun) -> bool:
    """Return whether a check without named findings passes only by its changed settings."""
    if held.evidence is None:
        return base.evidence is not None and final.evidence is not None
    if held.outcomes or not final.green:
        return False
    return bool(base.outcomes) or not held.green


def _untold(changes: Sequence[TextDiff], judged: Sequence[JudgedCheck]) -> Iterator[Finding]:
    """Yield the changes that the results of the original checks cannot reveal."""
    tests = [each for each in judged if each.base.check.name is CheckName.TESTS]
    commands = [run.check.command for each in tests for run in (each.base, each.final)]
    is_named = all(each.base.outcomes for each in tests)
    has_new_tests = any(each.kind is FileKind.TESTS and each.after for each in changes)
    for change in changes:
        is_steering = can_steer_tests(change.path, change.kind, change.before, change.after, commands)
        is_read = bool(change.before) and change.kind is not FileKind.UNKNOWN
        is_uncounted = (
            not is_named and is_read and bool(Counter(change.before.split()) - Counter(change.after.split()))
        )
        if (is_steering and has_new_tests) or is_uncounted:
            yield from _list_remarks(change)


def _list_remarks(change: TextDiff) -> tuple[Finding, ...]:
    kind = FindingKind.CHECK_FILE_CHANGED if change.before else FindingKind.CHECK_FILE_NEW
    return change.findings or (kind.of(change.kind or "", path=change.path),)


def _list_losses(change: TextDiff) -> tuple[Finding, ...]:
    """Return what one file of the checks lost, or may have lost."""
    if change.kind is FileKind.TESTS:
        return tuple(each for each in change.findings if each.kind in _LOST and change.before)
    return _list_remarks(change) if change.before or change.findings else ()


def shows_all_tests(
    folder: str, changes: Iterable[TextDiff], base: CheckRun | None, final: CheckRun | None
) -> bool:
    """Return whether each test in the changed files of a new project gave a result, or none of them did."""
    now, known = final.outcomes if final else {}, base.outcomes if base else {}
    shown = [test for test in now if test not in known]
    files = [each for each in changes if each.kind is FileKind.TESTS and each.path.startswith(folder)]
    found = {each.path: [test for test in shown if is_test_in(test, (each.path,))] for each in files}
    is_none = not any(found.values())
    return bool(now) and (is_none or all(_is_shown(each, found[each.path]) for each in files))


def _is_shown(file: TextDiff, shown: Collection[str]) -> bool:
    functions = find_altered_functions("", file.after) if file.path.endswith(".py") else None
    if functions is None:
        return bool(shown) or not (file.after and is_source(file.path))
    defined = {name for name in strip_to_names(functions) if name.startswith("test")}
    return defined <= {get_test_function(test) for test in shown}


def can_steer_tests(
    path: str, kind: FileKind | None, before: str, after: str, commands: Collection[str]
) -> bool:
    """Return whether a changed file can affect tests that do not mention it.

    `commands` are those of the tests: a Makefile decides nothing where they do not start make.
    """
    match kind:
        case None | FileKind.TESTS | FileKind.UNKNOWN:
            return False
        case FileKind.FIXTURES:
            return path.endswith(".py") and not _only_gains(before, after)
        case FileKind.RUNNER:
            return _settings(path, before) != _settings(path, after)
        case FileKind.BUILD:
            tools = (tool for word, tool in _RECIPES.items() if word in path.lower())
            return any(re.search(rf"(?<![\w-]){tool}", said) for tool in tools for said in commands)
        case FileKind.START | FileKind.NAMED | FileKind.OBSERVED | FileKind.SETTING:
            is_code = PurePosixPath(path).suffix not in _VALUES
            return is_code and not (path.endswith(".py") and _only_gains(before, after))


def _settings(path: str, text: str) -> object:
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
