"""Does a change hold beside the tests' own inputs? Old and new code compared on values next to them."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from anyio import to_thread

from agentflow.core.evidence import Check, TestOutcome
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.core.verdict import Hunk
from agentflow.mutants.forked import ForkedRun
from agentflow.parse import Mismatch, fit
from agentflow.routing.wanted import Wanted
from agentflow.runners.selection import are_python_tests, narrow_quietly
from agentflow.verdict.case import find_tests
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.diff.tampering import list_told
from agentflow.verdict.mixed_sides import lay_new_checks
from agentflow.verdict.probes.probe import ProbeContext
from agentflow.verdict.runner import run_apart

_HOOK = Path(__file__).parents[1] / "mutants/neighbour_hook.py"
_SECONDS = 6.0
_MOST_TESTS = 40
_LEAST = 3
"""So many neighbours have to give a result before one of them is missed."""
_ALL = -1
_NEXT = (0, 1)
"""The changes to the next number above and below."""
_FAILED = "!"
"""The sign before the name of an error, in place of a value."""
_Key = tuple[int, int]
"""A value that a test asserts on, and the how-manieth time."""
_Change = tuple[int, int, int, tuple[tuple[int, str], ...]]
"""The place of what is changed, the number of it there and of the change, and what the test then tells."""
_Neighbour = tuple[_Change, Mapping[_Key, str], Mapping[_Key, str]]


class NearbyRun(Record):
    """What a test tells of its own inputs and of those near them."""

    test: str
    seen: tuple[tuple[int, str], ...]
    atoms: tuple[tuple[int, tuple[int | float | str, ...]], ...]
    lines: tuple[tuple[str, int], ...]
    relevant: tuple[tuple[int, ...], ...]
    runs: tuple[_Change, ...]


async def find_memorised(
    context: JudgeContext, task: TaskState, probing: ProbeContext
) -> tuple[Finding, ...]:
    """Return the changed places whose every proof holds at its own inputs and at no others.

    Of a refactoring, which no test proves, those that do something else beside the inputs of the tests.
    """
    base, final, proving = find_tests(probing.case.before), probing.tests, probing.proving
    is_form = probing.case.wanted is Wanted.FORM and not proving and base is not None
    kept = probing.passed & base.list_ids(TestOutcome.PASSED) if base and is_form else frozenset[str]()
    tests = sorted(proving or kept)[:_MOST_TESTS]
    paths = {each.path for each in probing.list_product_files()}
    hunks = [each for each in probing.inspection.lines if each.path in paths]
    if final is None or not (tests and hunks and are_python_tests(final.check, tests)):
        return ()
    check = narrow_quietly(final.check, tests)
    sides = (lay_new_checks(context.git, task), task.trees[1])
    nearby = nearby_run(_SECONDS, is_all=is_form)
    old, new = await run_apart(
        context.sandbox.level, *(partial(_run, context, task, tree, check, nearby) for tree in sides)
    )
    return (
        tuple(find_other_results(old, new, hunks))
        if is_form
        else compare_sides(old, new, hunks, list_told([task.task]))
    )


async def _run(context: JudgeContext, task: TaskState, tree: str, check: Check, nearby: ForkedRun) -> bytes:
    async with context.checking.copy(task, tree) as place:
        return await to_thread.run_sync(place.fork, nearby, check) or b""


def nearby_run(seconds: float, *, is_all: bool = False) -> ForkedRun:
    """Return a run of tests that tells of the neighbours of each, or also of values that say little."""
    return ForkedRun(_HOOK, "sitecustomize", {"is_all": is_all}, seconds)


def find_other_results(old: bytes, new: bytes, hunks: Iterable[Hunk]) -> Iterator[Finding]:
    """Yield the changed places where a test that gets another literal comes to another value than before."""
    before, now = ({each.test: each for each in _read(raw)} for raw in (old, new))
    for hunk in hunks:
        runs = (run for test, run in now.items() if test in before and _is_run(hunk, run.lines))
        found = (literal for run in runs for literal in _list_differing(before[run.test], run))
        if literal := next(found, None):
            yield FindingKind.SAME_ONLY_FOR.of(literal, path=hunk.path, line=hunk.line)


def _list_differing(old: NearbyRun, new: NearbyRun) -> Iterator[str]:
    nearby, literals = {change[:3]: _number(change[3]) for change in old.runs}, dict(new.atoms)
    for place, at, step, seen in new.runs:
        before, now = nearby.get((place, at, step), {}), _number(seen)
        is_other = any(now.get(key) != said for key, said in before.items() if not said.startswith(_FAILED))
        if place != _ALL and is_other:
            yield repr(literals[place][at])


def compare_sides(
    old: bytes, new: bytes, hunks: Iterable[Hunk], told: Collection[str]
) -> tuple[Finding, ...]:
    """Return the changed places whose every proof is memorised, from what runs on the two sides told.

    What people speak of is no value that only the tests know.
    """
    before, now = ({each.test: each for each in _read(raw)} for raw in (old, new))
    literals = {test: _find_literal(before[test], run, told) for test, run in now.items() if test in before}
    proofs = {test: literal for test, literal in literals.items() if literal is not None}
    return tuple(_blame(hunks, now, proofs))


def _read(raw: bytes) -> Iterator[NearbyRun]:
    for line in raw.splitlines():
        try:
            yield fit(NearbyRun, json.loads(line))
        except (ValueError, Mismatch):
            return  # it was ended as it wrote


def _number(seen: Iterable[tuple[int, str]]) -> dict[_Key, str]:
    counts, found = defaultdict[int, int](int), dict[_Key, str]()
    for number, said in seen:
        found[number, counts[number]] = said
        counts[number] += 1
    return found


def _find_literal(old: NearbyRun, new: NearbyRun, told: Collection[str]) -> str | None:
    """Return the literal without which the change has no effect on a test; empty if it has, None if none."""
    before, now = _number(old.seen), _number(new.seen)
    literals = {(place, at): value for place, values in new.atoms for at, value in enumerate(values)}
    nearby = {change[:3]: _number(change[3]) for change in old.runs}
    runs = [(change, nearby[change[:3]], _number(change[3])) for change in new.runs if change[:3] in nearby]
    literal = None
    for key, answer in now.items():
        if key[0] < 0 or answer == before.get(key, _FAILED):
            continue
        places = (
            each for each in literals if each[0] in new.relevant[key[0]] and str(literals[each]) not in told
        )
        hit = next((each for each in places if _is_needed(key, each, runs, answer)), None)
        if hit is None:
            return ""
        literal = repr(literals[hit])
    return literal


def _is_needed(key: _Key, literal: tuple[int, int], runs: Iterable[_Neighbour], answer: str) -> bool:
    """Return whether no change of one literal, nor of all at once, lets old and new code differ."""
    same = 0
    for (place, at, step, _), old, new in runs:
        before, now = old.get(key, _FAILED), new.get(key, _FAILED)
        if place == _ALL or (place, at) == literal:
            if before != now or (place != _ALL and step in _NEXT and now == answer):
                return False  # the answer is that of the next value: a bound moved
            same += place != _ALL and not now.startswith(_FAILED)
    return same >= _LEAST


def _blame(
    hunks: Iterable[Hunk], runs: Mapping[str, NearbyRun], proofs: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield the changed places that only memorised answers run, of all where no test runs a place."""
    reached = {test: {*runs[test].lines} for test in proofs}
    is_all = bool(proofs) and all(proofs.values())
    places = {hunk: [test for test in proofs if _is_run(hunk, reached[test])] for hunk in hunks}
    for hunk, tests in places.items():
        literals = [proofs[test] for test in tests] if any(places.values()) else [*proofs.values()]
        if literals and all(literals) and (tests or is_all):
            yield FindingKind.MEMORISED.of(literals[0], path=hunk.path, line=hunk.line)


def _is_run(hunk: Hunk, lines: Collection[tuple[str, int]]) -> bool:
    return any((hunk.path, line) in lines for line in range(hunk.line, hunk.end + 1))
