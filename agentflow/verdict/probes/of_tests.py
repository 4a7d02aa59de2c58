"""Probes of tests: with other expected values, and with the code under test broken."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from agentflow.core.check_command import CommandPart, find_part, join_parts, split_command
from agentflow.core.evidence import Check, CheckName, CheckRun
from agentflow.core.languages import PROBED, is_source
from agentflow.core.test_ids import get_test_function, is_test_in
from agentflow.core.verdict import ProbeEnd, ProbeKind
from agentflow.verdict.case import find_tests
from agentflow.verdict.diff.other_tests import Expected, expect_other, find_expected
from agentflow.verdict.probes.breaking import break_functions
from agentflow.verdict.probes.oracle import Clone, clone_tests
from agentflow.verdict.probes.probe import Probe, ProbeContext, make_word
from agentflow.verdict.proofs import find_proof
from agentflow.verdict.surface import Kind, find_kind, is_check_file
from agentflow.verdict.syntax import is_too_deep
from agentflow.verdict.target_tests import narrow_quietly

_TEST_BYTES = 1_000_000
_MOST_CLONES = 40
_MOST_FILES = 500
_OTHERS = (PROBED | {".bats", ".t", ""}) - {".py"}
"""Endings of files that may hold tests of other languages."""
_TESTED = (Kind.TESTS, Kind.OBSERVED, Kind.NAMED)
_SLOW = 20.0
"""Run time of all tests above which values are moved in one direction only."""
_GO = "go test ./..."
_MOST_FIXTURES = 8
_MOST_GO = 8
"""Tests of Go that run one by one, since a panic ends all others."""


def probe_expectations(context: ProbeContext) -> tuple[Probe, ...]:
    """Return probes in which the proving tests expect other values: Python clones, or edited files."""
    final = context.tests
    if final is None or final.evidence is None or context.case.is_blocked(final):
        return ()
    return tuple(_clone(context, final) if _by_file(context) else _rewrite(context, final))


def _clone(context: ProbeContext, final: CheckRun) -> Iterator[Probe]:
    """Yield the proving Python tests together with copies that expect other values."""
    word, names, controls = make_word(), {*context.proving}, set[str]()
    files, clones, deep = dict[str, str | None](), list[Clone](), list[str]()
    for path, tests in _by_file(context).items():
        (text,) = context.git.read_texts([f"{context.trees[1]}:{path}"], _TEST_BYTES)
        deep += [path] if is_too_deep(text) else []
        cloned = clone_tests(text, {*map(get_test_function, tests)}, word, _MOST_CLONES - len(clones))
        if cloned is not None:
            files[path] = cloned.text
            clones += cloned.clones
            by_function = {get_test_function(test): test.partition("[")[0] for test in tests}
            names |= {_clone_id(by_function, word, clone.name) for clone in cloned.clones}
            controls |= {_clone_id(by_function, word, name) for name in cloned.controls}
    check, whole = (narrow_quietly(final.check, each) for each in (names, names | controls))
    made = context.plan(ProbeKind.ORACLE, final.replace(check=check), files)
    if clones:
        controlled = None if whole == check else whole
        yield made.replace(tests=context.proving, clones=tuple(clones), with_controls=controlled)
    if deep:
        yield made.replace(files={}, subjects=tuple(deep), unrun=ProbeEnd.UNREADABLE)


def _by_file(context: ProbeContext) -> dict[str, list[str]]:
    """Return the proving tests by the Python file that holds them."""
    python = [path for path in context.git.list_paths(context.trees[1]) if path.endswith(".py")]
    found: dict[str, list[str]] = {}
    for test in sorted(context.proving):
        path = next((each for each in python if is_test_in(test, (each,))), None)
        if path is not None:
            found.setdefault(path, []).append(test)
    return found


def _clone_id(tests: dict[str, str], word: str, name: str) -> str:
    """Return the id of a clone beside its test."""
    function = name.rpartition(f"_{word}_")[0] + name[-1]
    return f"{tests[function].removesuffix(function)}{name}"


def _rewrite(context: ProbeContext, final: CheckRun) -> Iterator[Probe]:
    """Yield the tests with every expected literal changed, once upwards and once downwards."""
    if final.evidence is None or not (context.proving or CheckName.TESTS in find_proof(context.case)):
        return
    word, files = make_word(), _find_expecting(context)
    places = [(path, each) for path, (_, found) in files.items() for each in found]
    directions = (1,) if final.evidence.seconds > _SLOW else (1, -1)
    for direction in directions if places else ():
        other = {path: expect_other(*each, word, direction) for path, each in files.items()}
        yield context.plan(ProbeKind.ORACLE, final, other).replace(
            subjects=tuple(f"{path}:{each.line}" for path, each in places),
            tests=frozenset(each.test for _, each in places if each.test),
        )


def _find_expecting(context: ProbeContext) -> dict[str, tuple[str, tuple[Expected, ...]]]:
    """Return the test files with their texts and the literals that they expect."""
    named = context.proving or context.passed - _tests_before(context)
    for tests in (named, frozenset[str]()) if named and not context.proving else (named,):
        texts = _test_texts(context, tests)
        found = {path: (text, find_expected(path, text, tests)) for path, text in texts.items()}
        if any(spots for _, spots in found.values()):
            return {path: each for path, each in found.items() if each[1]}
    return {}


def _test_texts(context: ProbeContext, proving: Collection[str]) -> dict[str, str]:
    """Return the texts of the files that may hold tests of other languages.

    Where tests have names, any code may hold them: only lines of a named test are looked at.
    """
    tree, surface = context.trees[1], context.task.surface
    found = (path for path in context.git.list_paths(tree) if PurePosixPath(path).suffix in _OTHERS)
    paths = [path for path in found if proving or find_kind(path, surface) in _TESTED]
    return context.git.read_files(tree, paths[:_MOST_FILES], _TEST_BYTES)


def probe_tests_alone(context: ProbeContext) -> Iterator[Probe]:
    """Yield the new and changed tests with all functions of the product broken, in any known language.

    Those of other languages than Python also run with what they expect changed, by which they are known to
    assert something.
    """
    final, paths = context.tests, [each.path for each in context.inspection.checks]
    broken = _break_product(context, is_python=paths[0].endswith(".py")) if paths else {}
    if final is not None and context.inspection.new_fixtures:
        yield from _of_fixtures(context, final)
    elif final is None or not broken or len({path.endswith(".py") for path in paths}) > 1:
        return
    elif paths[0].endswith(".py"):
        yield from _of_python(context, final, paths, broken)
    else:
        yield from _of_others(context, final, paths, broken)


def _of_python(
    context: ProbeContext, final: CheckRun, paths: Collection[str], broken: dict[str, str | None]
) -> Iterator[Probe]:
    wanted = context.inspection.changed_tests
    tests = {test for test in context.passed if is_test_in(test, paths) and get_test_function(test) in wanted}
    check = narrow_quietly(final.check, tests)
    # one that does not pass, or is no test, would show nothing
    if {get_test_function(test) for test in tests} == wanted and check != final.check:
        made = context.plan(ProbeKind.TESTS_ONLY, final.replace(check=check), broken)
        yield made.replace(tests=frozenset(tests))


def _of_fixtures(context: ProbeContext, final: CheckRun) -> Iterator[Probe]:
    """Yield the new cases of tests that were there with broken code, then with each file as it was."""
    known = _tests_before(context)
    functions = {test.partition("[")[0] for test in known if "[" in test}
    tests = context.passed - known
    check, broken = narrow_quietly(final.check, tests), _break_product(context, is_python=True)
    files = context.inspection.new_fixtures
    before = context.git.read_files(context.trees[0], files, _TEST_BYTES)
    is_clear = bool(tests) and all(test.partition("[")[0] in functions for test in tests)
    if is_clear and broken and check != final.check and len(files) <= _MOST_FIXTURES:
        made = context.plan(ProbeKind.TESTS_ONLY, final.replace(check=check), broken).replace(tests=tests)
        without = made.replace(kind=ProbeKind.WITHOUT_HUNK)
        yield from (
            made,
            *(without.replace(files={path: before.get(path)}, subjects=(path,)) for path in files),
        )


def _tests_before(context: ProbeContext) -> frozenset[str]:
    base = find_tests(context.case.before)
    return base.tests_with_result if base else frozenset()


def _of_others(
    context: ProbeContext, final: CheckRun, paths: Collection[str], broken: dict[str, str | None]
) -> Iterator[Probe]:
    new, wanted = context.passed - _tests_before(context), context.inspection.changed_tests
    tests = {test for test in new if any(_is_named(test, name) for name in wanted)}
    texts = context.git.read_files(context.trees[1], paths, _TEST_BYTES)
    spots = {path: find_expected(path, text, tests) for path, text in texts.items()}
    expecting = {each.test for found in spots.values() for each in found}
    if not all(any(_is_named(test, name) for test in tests) for name in wanted) or expecting != tests:
        return
    if _list_go_parts(final.check, paths) and len(tests) > _MOST_GO:
        return
    for run, few in _one_by_one(final, tests, paths):
        yield context.plan(ProbeKind.TESTS_ONLY, run, broken).replace(tests=frozenset(few))
    word = make_word()
    other = {path: expect_other(texts[path], found, word, 1) for path, found in spots.items()}
    yield context.plan(ProbeKind.TESTS_ONLY, final, other).replace(tests=frozenset(tests))


def _one_by_one(
    final: CheckRun, tests: Collection[str], paths: Iterable[str]
) -> Iterator[tuple[CheckRun, Collection[str]]]:
    """Yield the tests in some files in the groups in which each of them gives a result."""
    parts = _list_go_parts(final.check, paths)
    if not parts:
        yield final, tests
    for test in sorted(tests) if parts else ():
        name = f" -run '^{test.rpartition('::')[2]}$'"
        command = join_parts(part.replace(command=part.command + name) for part in parts)
        yield final.replace(check=final.check.replace(command=command)), {test}


def _list_go_parts(check: Check, paths: Iterable[str]) -> list[CommandPart]:
    """Return the parts of a check that run the Go tests in some files, each of the innermost module."""
    parts = [part for part in split_command(check.command) if part.command.endswith(_GO)]
    found = (find_part(parts, path) for path in paths if path.endswith(".go"))
    return [part for part in dict.fromkeys(found) if part is not None]


def _is_named(test: str, name: str) -> bool:
    return test == name or test.endswith((f"::{name}", f" {name}"))


def _break_product(context: ProbeContext, *, is_python: bool) -> dict[str, str | None]:
    """Return the files of the product with each function failing, by path."""
    git, tree, surface = context.git, context.trees[1], context.task.surface
    paths = [path for path in git.list_paths(tree) if path.endswith(".py") is is_python]
    paths = [path for path in paths if is_source(path) and not is_check_file(surface, path)]
    found = git.read_files(tree, paths, _TEST_BYTES)
    return {
        path: text for path, before in found.items() if (text := break_functions(path, before)) is not None
    }
