"""The tests that prove a change, expecting something else than they should."""

from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from agentflow.core.evidence import CheckName, CheckRun
from agentflow.core.verdict import ProbeKind
from agentflow.verdict.breaking import SOURCES
from agentflow.verdict.expected import Expected, expect_other, find_expected
from agentflow.verdict.ground import Ground
from agentflow.verdict.oracle import Clone, clone_tests
from agentflow.verdict.probe import Probe, make_word, with_patience
from agentflow.verdict.proofs import proof
from agentflow.verdict.surface import Kind, kind_of
from agentflow.verdict.target_tests import function_of, lies_in, narrow

_FILE_BYTES = 1_000_000
_MOST_CLONES = 40
_MOST_FILES = 500
_OTHERS = (SOURCES | {".bats", ".t", ""}) - {".py"}
"""Endings of files that may hold tests of other languages."""
_TESTED = (Kind.TESTS, Kind.OBSERVED, Kind.NAMED)
_SLOW = 20.0
"""Seconds of all tests from which on one direction has to do."""


def oracle_probes(ground: Ground) -> tuple[Probe, ...]:
    """Return the probes of what the proving tests expect: clones in Python, else files of another text."""
    final = ground.tests
    if final is None or final.evidence is None or ground.case.is_blocked(final):
        return ()
    return tuple(_cloned(ground, final) if _by_file(ground) else _rewritten(ground, final))


def _cloned(ground: Ground, final: CheckRun) -> Iterator[Probe]:
    """Yield the proving tests of Python with clones that expect something else."""
    word, names = make_word(), {*ground.proving}
    files, clones = dict[str, str | None](), list[Clone]()
    for path, tests in _by_file(ground).items():
        (text,) = ground.git.texts([f"{ground.trees[1]}:{path}"], _FILE_BYTES)
        cloned = clone_tests(text, {*map(function_of, tests)}, word, _MOST_CLONES - len(clones))
        if cloned is not None:
            files[path] = cloned.text
            clones += cloned.clones
            by_function = {function_of(test): test.partition("[")[0] for test in tests}
            names |= {_renamed(by_function, word, name) for name in cloned.names}
    made = Probe(
        kind=ProbeKind.ORACLE,
        check=narrow(final.check, names),
        tree=ground.trees[1],
        files=files,
        tests=ground.proving,
        clones=tuple(clones),
    )
    if clones:
        yield with_patience(final, made)


def _by_file(ground: Ground) -> dict[str, list[str]]:
    """Return the proving tests by the Python file that holds them."""
    python = [path for path in ground.git.paths(ground.trees[1]) if path.endswith(".py")]
    found: dict[str, list[str]] = {}
    for test in sorted(ground.proving):
        path = next((each for each in python if lies_in(test, (each,))), None)
        if path is not None:
            found.setdefault(path, []).append(test)
    return found


def _renamed(tests: dict[str, str], word: str, name: str) -> str:
    """Return the id of a clone beside its test."""
    function = name.rpartition(f"_{word}_")[0]
    return f"{tests[function].removesuffix(function)}{name}"


def _rewritten(ground: Ground, final: CheckRun) -> Iterator[Probe]:
    """Yield the tests with other literals expected, once above and once below what they expect."""
    if final.evidence is None or not (ground.proving or CheckName.TESTS in proof(ground.case)):
        return
    word, files = make_word(), _expecting(ground)
    places = [(path, each) for path, (_, found) in files.items() for each in found]
    directions = (1,) if final.evidence.seconds > _SLOW else (1, -1)
    for direction in directions if places else ():
        made = Probe(
            kind=ProbeKind.ORACLE,
            check=final.check,
            tree=ground.trees[1],
            files={path: expect_other(*each, word, direction) for path, each in files.items()},
            subjects=tuple(f"{path}:{each.line}" for path, each in places),
            tests=frozenset(each.test for _, each in places if each.test),
        )
        yield with_patience(final, made)


def _new_tests(ground: Ground) -> frozenset[str]:
    """Return the tests that gave no result before, where only the check as a whole turned."""
    before = (run for run in ground.case.baseline if run.check.name is CheckName.TESTS)
    return ground.passed.difference(*(run.told for run in before))


def _expecting(ground: Ground) -> dict[str, tuple[str, tuple[Expected, ...]]]:
    """Return the files in which tests expect literals, with their texts; all tests where none can be told."""
    named = ground.proving or _new_tests(ground)
    for tests in (named, frozenset[str]()) if named and not ground.proving else (named,):
        texts = _test_texts(ground, tests)
        found = {path: (text, find_expected(path, text, tests)) for path, text in texts.items()}
        if any(spots for _, spots in found.values()):
            return {path: each for path, each in found.items() if each[1]}
    return {}


def _test_texts(ground: Ground, proving: Collection[str]) -> dict[str, str]:
    """Return the files that may hold tests of other languages, and their texts.

    Where tests have names, any code may hold them: only lines of a named test are looked at.
    """
    tree, surface = ground.trees[1], ground.task.surface
    found = (path for path in ground.git.paths(tree) if PurePosixPath(path).suffix in _OTHERS)
    paths = [path for path in found if proving or kind_of(path, surface) in _TESTED]
    texts = ground.git.texts([f"{tree}:{path}" for path in paths[:_MOST_FILES]], _FILE_BYTES)
    return dict(zip(paths, texts, strict=False))
