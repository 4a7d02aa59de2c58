"""What a change did to the checks: what a person has to approve, and what is only to be told.

The original checks decide: where they show the same with the new code, no changed check hides anything.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agentflow.core.evidence import RED, CheckName, CheckRun, TestOutcome
from agentflow.core.record import Record
from agentflow.verdict.moved_tests import moved_tests
from agentflow.verdict.steering import steers
from agentflow.verdict.surface import Kind
from agentflow.verdict.tampering import Finding, Tampering

_LOST = frozenset(
    {Tampering.TEST_GONE, Tampering.FEWER_CASES, Tampering.SKIPPED, Tampering.WEAKER, Tampering.EXPECTATION}
)


class SurfaceChange(Record):
    """A file of the surface that differs from before."""

    path: str
    kind: Kind
    before: str
    after: str
    findings: tuple[Finding, ...] = ()


class Judged(Record):
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


def weakening(changes: Sequence[SurfaceChange], judged: Iterable[Judged]) -> Weakening:
    """Return what the change did to the checks, by what the original ones show with the new code."""
    runs = tuple(judged)
    asked = [line for each in runs for line in (*_lost_tests(each, changes), *_other_results(each))]
    asked += _untold(changes, runs)
    told = [line for change in changes for line in _weakened(change)]
    new = [line for each in changes if asked and _is_new_aid(each) for line in _said(each)]
    lines = tuple(dict.fromkeys((*asked, *new, *told)))
    return Weakening(asked=lines) if asked else Weakening(noted=lines)


def _is_new_aid(change: SurfaceChange) -> bool:
    return not change.before and change.kind is not Kind.TESTS


def _lost_tests(judged: Judged, changes: Sequence[SurfaceChange]) -> Iterator[str]:
    """Yield the tests that gave a result before, and would now, and are not run."""
    base, final, held = judged.base, judged.final, judged.held
    lost = (base.told - final.told) & held.told
    passed = held.ids(TestOutcome.PASSED)
    news = final.ids(TestOutcome.PASSED) - base.told
    texts = [(each.before, each.after) for each in changes if each.kind is Kind.TESTS]
    found = moved_tests(lost & passed - final.outcomes.keys(), news, texts)
    found |= {test for test in lost & passed if any(each.startswith(f"{test}[") for each in news)}
    for test in sorted(lost - found):
        yield f"{test} {'is skipped now' if test in final.outcomes else 'is gone'}"
    before, after, as_it_stood = (run.counts.ran if run.counts else 0 for run in (base, final, held))
    if not base.outcomes and after < min(before, as_it_stood):
        yield f"{base.check.name}: {before} tests ran before, {after} now"


def _other_results(judged: Judged) -> Iterator[str]:
    """Yield what the original checks complain of with the new code, and those of now do not."""
    base, final, held = judged.base, judged.final, judged.held
    for test in sorted(held.ids(*RED) - final.ids(*RED)):
        yield f"{test} fails as it stood before the task"
    if not held.ids(*RED) - base.ids(*RED):
        for test in sorted((base.told & final.told) - held.told):
            yield f"{test} gives no result as it stood before the task"
    hidden = Counter(held.findings) - Counter(final.findings)
    if hidden and not final.outcomes:
        yield f"{held.check.name} fails with the settings from before the task: {_first(hidden)}"
    elif _is_hidden(base, final, held):
        yield f"{held.check.name} fails with the settings from before the task"


def _is_hidden(base: CheckRun, final: CheckRun, held: CheckRun) -> bool:
    """Tell whether a check that names nothing holds by its changed settings alone."""
    if held.evidence is None:
        return base.evidence is not None and final.evidence is not None
    if held.outcomes or not final.green:
        return False
    return bool(base.outcomes) or not held.green


def _first(found: Counter[str]) -> str:
    first, *others = sorted(found)
    return f"{first} and {len(others)} more" if others else first


def _untold(changes: Sequence[SurfaceChange], judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the changes of which the results of the original checks cannot tell."""
    tests = [each for each in judged if each.base.check.name is CheckName.TESTS]
    commands = [run.check.command for each in tests for run in (each.base, each.final)]
    is_named = all(each.base.outcomes for each in tests)
    has_new_tests = any(each.kind is Kind.TESTS and each.after for each in changes)
    for change in changes:
        is_steering = steers(change.path, change.kind, change.before, change.after, commands)
        is_read = bool(change.before) and change.kind is not Kind.UNKNOWN
        is_uncounted = not is_named and is_read and _lost_words(change)
        if (is_steering and has_new_tests) or is_uncounted:
            yield from _said(change)


def _said(change: SurfaceChange) -> list[str]:
    """Return what was done to a file, at least that it changed or is new."""
    found = [finding.said() for finding in change.findings]
    return found or [f"{change.path}: {change.kind} {'changed' if change.before else 'is new'}"]


def _weakened(change: SurfaceChange) -> list[str]:
    """Return what one file of the checks lost, or may have lost."""
    if change.kind is Kind.TESTS:
        return [each.said() for each in change.findings if each.kind in _LOST and change.before]
    return _said(change) if change.before or change.findings else []


def _lost_words(change: SurfaceChange) -> bool:
    """Tell whether a file lacks something that it said."""
    before, after = (Counter(text.split()) for text in (change.before, change.after))
    return bool(before - after)
