"""New and changed tests where nothing else changed: each has to fail once the code it covers is broken."""

from collections.abc import Collection, Iterator

from agentflow.core.evidence import CheckName, CheckRun
from agentflow.core.verdict import ProbeKind
from agentflow.verdict.breaking import break_functions
from agentflow.verdict.expected import Expected, expect_other, find_expected
from agentflow.verdict.ground import Ground
from agentflow.verdict.probe import Probe, make_word, with_patience
from agentflow.verdict.reach import is_source
from agentflow.verdict.surface import belongs
from agentflow.verdict.target_tests import function_of, lies_in, narrow

_FILE_BYTES = 1_000_000
_GO = "go test ./..."
_MOST_GO = 8
"""Each of its tests runs by itself: one that panics ends all others."""


def probe_tests_alone(ground: Ground) -> Iterator[Probe]:
    """Yield the new and changed tests with all functions of the product broken, in any known language.

    Those of other languages than Python also run with what they expect changed, by which they are known to
    assert something.
    """
    final, paths = ground.tests, [each.path for each in ground.look.checks]
    broken = _broken_product(ground, is_python=paths[0].endswith(".py")) if paths else {}
    if final is None or not broken or len({path.endswith(".py") for path in paths}) > 1:
        return
    if paths[0].endswith(".py"):
        yield from _of_python(ground, final, paths, broken)
    else:
        yield from _of_others(ground, final, paths, broken)


def _of_python(
    ground: Ground, final: CheckRun, paths: Collection[str], broken: dict[str, str | None]
) -> Iterator[Probe]:
    wanted = ground.look.changed_tests
    tests = {test for test in ground.passed if lies_in(test, paths) and function_of(test) in wanted}
    check = narrow(final.check, tests)
    # one that does not pass, or is no test, would show nothing
    if {function_of(test) for test in tests} == wanted and check != final.check:
        yield _probe(ground, final.replace(check=check), broken, tests)


def _of_others(
    ground: Ground, final: CheckRun, paths: Collection[str], broken: dict[str, str | None]
) -> Iterator[Probe]:
    known = frozenset[str]().union(
        *(run.told for run in ground.case.baseline if run.check.name is CheckName.TESTS)
    )
    new, wanted = ground.passed - known, ground.look.changed_tests
    tests = {test for test in new if any(_is_named(test, name) for name in wanted)}
    texts = dict(
        zip(
            paths, ground.git.texts([f"{ground.trees[1]}:{path}" for path in paths], _FILE_BYTES), strict=True
        )
    )
    spots = {path: find_expected(path, text, tests) for path, text in texts.items()}
    if not all(any(_is_named(test, name) for test in tests) for name in wanted) or not _are_all(tests, spots):
        return
    if final.check.command == _GO and len(tests) > _MOST_GO:
        return
    for run, few in _one_by_one(final, tests):
        yield _probe(ground, run, broken, few)
    word = make_word()
    other = {path: expect_other(texts[path], found, word, 1) for path, found in spots.items()}
    yield _probe(ground, final, dict(other), tests)


def _are_all(tests: Collection[str], spots: dict[str, tuple[Expected, ...]]) -> bool:
    """Tell whether it is known of each test what it expects."""
    return {each.test for found in spots.values() for each in found} == set(tests)


def _one_by_one(final: CheckRun, tests: Collection[str]) -> Iterator[tuple[CheckRun, Collection[str]]]:
    """Yield the tests as they have to run so that each gives a result."""
    if final.check.command != _GO:
        yield final, tests
    else:
        for test in sorted(tests):
            command = f"{_GO} -run '^{test.rpartition('::')[2]}$'"
            yield final.replace(check=final.check.replace(command=command)), {test}


def _is_named(test: str, name: str) -> bool:
    return test == name or test.endswith((f"::{name}", f" {name}"))


def _probe(ground: Ground, run: CheckRun, files: dict[str, str | None], tests: Collection[str]) -> Probe:
    made = Probe(
        kind=ProbeKind.TESTS_ONLY, check=run.check, tree=ground.trees[1], files=files, tests=frozenset(tests)
    )
    return with_patience(run, made)


def _broken_product(ground: Ground, *, is_python: bool) -> dict[str, str | None]:
    """Return the files of the product with each function failing, by path."""
    git, tree, surface = ground.git, ground.trees[1], ground.task.surface
    paths = [path for path in git.paths(tree) if path.endswith(".py") is is_python]
    paths = [path for path in paths if is_source(path) and not belongs(surface, path)]
    found = zip(paths, git.texts([f"{tree}:{path}" for path in paths], _FILE_BYTES), strict=True)
    return {path: text for path, before in found if (text := break_functions(path, before)) is not None}
