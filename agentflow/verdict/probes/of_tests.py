"""Probes of tests: with other expected values, and with code under test that gives default results."""

from collections.abc import Iterator

from agentflow.core.evidence import CheckRun, Side, TestOutcome
from agentflow.core.finding import FileKind
from agentflow.core.languages import is_source
from agentflow.core.test_ids import get_test_function, is_test_in
from agentflow.core.verdict import ProbeKind, ProbeResult
from agentflow.runners.selection import narrow_quietly
from agentflow.verdict.case import find_tests
from agentflow.verdict.diff.other_tests import list_tests_on
from agentflow.verdict.probes.breaking import give_defaults
from agentflow.verdict.probes.oracle import copy_tests, expect_others
from agentflow.verdict.probes.probe import Probe, ProbeContext, make_word
from agentflow.verdict.surface import find_kind, is_check_file

_TEST_BYTES = 1_000_000
_MOST_COPIES = 40
_MOST_FIXTURES = 8
_TESTED = (FileKind.TESTS, FileKind.OBSERVED, FileKind.NAMED)


def probe_expectations(context: ProbeContext) -> Iterator[Probe]:
    """Yield the proving Python tests together with copies that expect other values, or all of others so."""
    final = context.tests
    if final is None or final.evidence is None or context.case.is_blocked(final):
        return
    word, names = make_word(), {*context.proving}
    files, copies = dict[str, str | None](), dict[str, str]()
    for path, tests in _by_file(context).items():
        (text,) = context.git.read_texts([f"{context.trees[1]}:{path}"], _TEST_BYTES)
        ids = {get_test_function(test): test.partition("[")[0] for test in tests}
        if oracle := copy_tests(text, ids.keys(), word, _MOST_COPIES - len(copies)):
            files[path] = oracle.text
            copies |= oracle.copies
            names |= {
                f"{ids[original].removesuffix(original)}{name}"
                for name in oracle.copies
                if (original := name.partition(f"_{word}_")[0] + name[-1])
            }
    if copies:
        check = narrow_quietly(final.check, names)
        made = context.plan(ProbeKind.ORACLE, final.replace(check=check), files)
        yield made.replace(tests=context.proving, copies=copies)
    else:
        yield from _expect_others(context, final, context.proving, Side.FINAL)


def probe_older_expectations(context: ProbeContext, known: tuple[ProbeResult, ...]) -> Iterator[Probe]:
    """Yield the same for the old code, where all was green and no test turned.

    `make test` of a library ran a demo and none of its tests: a right fix "passed whatever its tests expect".
    """
    base = find_tests(context.case.before)
    silent = [each for each in known if each.kind is ProbeKind.ORACLE and each.softened and each.subjects]
    is_plain = base is not None and base.green and not context.proving
    if base is not None and is_plain and [each.code for each in silent] == [Side.FINAL]:
        yield from _expect_others(context, base, frozenset(), Side.BASE)


def _expect_others(
    context: ProbeContext, run: CheckRun, proving: frozenset[str], code: Side
) -> Iterator[Probe]:
    """Yield the tests of other languages with other values for all that they expect."""
    word, tree, surface = make_word(), context.trees[code is Side.FINAL], context.task.surface
    paths = [path for path in context.git.list_paths(tree) if find_kind(path, surface) in _TESTED]
    texts = context.git.read_files(tree, [path for path in paths if not path.endswith(".py")], _TEST_BYTES)
    found = {path: each for path, text in texts.items() if (each := expect_others(path, text, word))}
    names = {name for path, each in found.items() for name in list_tests_on(path, texts[path], each[1])}
    proving = frozenset(test for test in proving if any(_is_named(test, name) for name in names))
    if found:
        made = context.plan(ProbeKind.ORACLE, run, {path: text for path, (text, _) in found.items()}, code)
        places = tuple(f"{path}:{line}" for path, (_, lines) in found.items() for line in lines)
        yield made.replace(tests=proving or run.list_ids(TestOutcome.PASSED), subjects=places)


def _is_named(test: str, name: str) -> bool:
    return test == name or test.endswith((f"::{name}", f" {name}"))


def _by_file(context: ProbeContext) -> dict[str, list[str]]:
    python = [path for path in context.git.list_paths(context.trees[1]) if path.endswith(".py")]
    found: dict[str, list[str]] = {}
    for test in sorted(context.proving):
        path = next((each for each in python if is_test_in(test, (each,))), None)
        if path is not None:
            found.setdefault(path, []).append(test)
    return found


def probe_tests_alone(context: ProbeContext, known: tuple[ProbeResult, ...]) -> Iterator[Probe]:
    """Yield the new and changed tests with each function of the product giving a default result.

    Those that pass then may expect a default: they come again with other results.
    """
    final, paths = context.tests, [each.path for each in context.inspection.checks]
    if final is None or len(known) > 1:
        return
    if known:
        left, is_python = frozenset(known[0].subjects), paths[0].endswith(".py")
        broken = _break_product(context, is_python=is_python, is_other=True)
        if left and broken and known[0].kind is ProbeKind.TESTS_ONLY:
            check = narrow_quietly(final.check, left) if is_python else final.check
            made = context.plan(ProbeKind.TESTS_ONLY, final.replace(check=check), broken)
            yield made.replace(tests=left)
        return
    if context.inspection.new_fixtures:
        yield from _of_fixtures(context, final)
        return
    is_python, wanted = paths[0].endswith(".py"), context.inspection.changed_tests
    if any(path.endswith(".py") is not is_python for path in paths):
        return
    before = frozenset() if is_python else _tests_before(context)
    named = {
        (test, name)
        for test in context.passed - before
        for name in wanted
        if (is_python and get_test_function(test) == name and is_test_in(test, paths))
        or (not is_python and _is_named(test, name))
    }
    broken = _break_product(context, is_python=is_python)
    tests = frozenset(test for test, _ in named)
    if not is_python and {name for _, name in named} != wanted:
        tests = context.passed - before  # a runner that names assertions, not tests: tape
        wanted = frozenset(name for _, name in named)
    # one that does not pass, or is no test, would show nothing
    if broken and tests and {name for _, name in named} == wanted:
        check = narrow_quietly(final.check, tests) if is_python else final.check
        made = context.plan(ProbeKind.TESTS_ONLY, final.replace(check=check), broken)
        yield made.replace(tests=tests)


def _of_fixtures(context: ProbeContext, final: CheckRun) -> Iterator[Probe]:
    """Yield the new cases of tests that were there with such code, then with each file as it was."""
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


def _break_product(
    context: ProbeContext, *, is_python: bool, is_other: bool = False
) -> dict[str, str | None]:
    git, tree, surface = context.git, context.trees[1], context.task.surface
    paths = [path for path in git.list_paths(tree) if path.endswith(".py") is is_python]
    paths = [path for path in paths if is_source(path) and not is_check_file(surface, path)]
    found = git.read_files(tree, paths, _TEST_BYTES)
    return {
        path: text
        for path, before in found.items()
        if (text := give_defaults(path, before, is_other=is_other)) is not None
    }
