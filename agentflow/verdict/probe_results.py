"""What probes that came to their end mean for a verdict, in words."""

from collections.abc import Iterable, Iterator

from agentflow.core.evidence import CheckName, Side
from agentflow.core.verdict import FailReason, Hunk, ProbeEnd, ProbeKind, ProbeResult
from agentflow.core.wording import list_some

Results = Iterable[ProbeResult]


def explain_silence(results: Results) -> tuple[str, ...]:
    """Return why no result of the tests can be trusted."""
    found = tuple(results)
    tests = CheckName.TESTS
    reasons = [FailReason.PASSES_ANYHOW.of(each, check=tests) for each in _list_softened(found)]
    canaries = {each.code: each.end for each in found if each.kind is ProbeKind.CANARY}
    is_told_before = canaries.get(Side.BASE) is ProbeEnd.RED_AS_IT_MUST
    if canaries.get(Side.FINAL) is ProbeEnd.SILENT and is_told_before:
        reasons.append(FailReason.KEEPS_SILENT.of(check=tests))
    return tuple(reasons)


def _list_softened(results: Results) -> list[str]:
    return [said for each in results if each.kind is ProbeKind.ORACLE for said in each.softened]


def list_proven_tests(results: Results) -> frozenset[str]:
    """Return the new and changed tests if every probe shows that they fail without the code."""
    kinds = (ProbeKind.TESTS_ONLY, ProbeKind.WITHOUT_HUNK)
    found = [each for each in results if each.kind in kinds]
    is_clear = all(each.end is ProbeEnd.RED_AS_IT_MUST for each in found)
    return frozenset(test for each in found if is_clear for test in each.tests)


def find_blind_checks(results: Results, changed: Iterable[str]) -> tuple[str, ...]:
    """Return the checks that saw planted errors in the old code and miss them in the new code."""
    found = tuple(results)
    broken = [each for each in found if _is_of_code_checker(each)]
    now = {each.check: each for each in broken if each.code is Side.FINAL and each.end is ProbeEnd.SILENT}
    red = [each.check for each in broken if each.code is Side.BASE and each.end is ProbeEnd.RED_AS_IT_MUST]
    lines = [(name, list_some(now[name].subjects)) for name in red if name in now]
    planted = (each for each in found if each.kind is ProbeKind.PLANTED and each.code is Side.BASE)
    lines += [(each.check, list_some(each.subjects)) for each in planted if each.subjects]
    by = list_some(changed)
    return tuple(
        f"{name}: no longer sees an error in {files}, with the change of {by}" for name, files in lines
    )


def _is_of_code_checker(result: ProbeResult) -> bool:
    return result.kind is ProbeKind.BROKEN_CODE and result.check is not CheckName.TESTS


def green_with_broken_code(results: Results) -> tuple[ProbeResult, ...]:
    """Return the probes in which tests passed although the changed code was broken."""
    kinds = (ProbeKind.BROKEN_CODE, ProbeKind.ORACLE)
    found = (each for each in results if each.kind in kinds and each.check is CheckName.TESTS)
    return tuple(each for each in found if each.end is ProbeEnd.SILENT and not each.softened)


def hunks_of(results: Results) -> tuple[Hunk, ...]:
    """Return the changed lines that were taken back, and whether a check failed without them."""
    found: dict[Hunk, bool] = {}
    for each in (each for each in results if each.kind is ProbeKind.WITHOUT_HUNK):
        for hunk in each.hunks:
            found[hunk] = found.get(hunk, False) or each.end is ProbeEnd.RED_AS_IT_MUST
    return (*(hunk.replace(proved=proved) for hunk, proved in found.items()), *_list_untried(results))


def _list_untried(results: Results) -> tuple[Hunk, ...]:
    """Return the changed lines that no test tries."""
    return tuple(hunk for hunk in _last_watch(results) if not hunk.proved)


def list_tried_lines(results: Results) -> frozenset[tuple[str, int]]:
    """Return the conditions that tests evaluated both ways, by path and line."""
    found = tuple(results)
    tried = {(hunk.path, hunk.line) for hunk in _last_watch(found) if hunk.proved}
    return frozenset(tried - {(hunk.path, hunk.line) for hunk in _list_untried(found)})


def _last_watch(results: Results) -> tuple[Hunk, ...]:
    """Return what the last run on watched code showed of each of its branches."""
    runs = (each for each in results if each.kind is ProbeKind.UNTRIED)
    applied = [each for each in runs if each.end not in (ProbeEnd.NOT_APPLIED, ProbeEnd.LEFT_OUT)]
    return applied[-1].hunks if applied else ()


def list_differing(results: Results) -> tuple[str, ...]:
    """Return the proving tests whose result depends on their surroundings."""
    return tuple(dict.fromkeys(test for each in results for test in each.differing))


def list_late(results: Results) -> tuple[ProbeResult, ...]:
    """Return the probes for which there was no time."""
    return tuple(each for each in results if each.end is ProbeEnd.LEFT_OUT)


def note_probes(results: Results, changed: Iterable[str]) -> Iterator[str]:
    """Yield notes on the probes for a person; `changed` are the changed files of the product."""
    found, files = tuple(results), list_some(changed)
    yield from dict.fromkeys(
        f"{each.check}: {_why_green(each, files)}" for each in green_with_broken_code(found)
    )
    if tests := list_differing(found):
        yield f"fails with another order of sets or another temporary folder: {list_some(tests)}"
    if late := list_late(found):
        subjects = dict.fromkeys(subject for each in late for subject in each.subjects)
        yield f"no time was left to see whether the checks fail without, or broken: {list_some(subjects)}"
    yield from _odd(found)


def _why_green(result: ProbeResult, changed: str) -> str:
    places = list_some(result.subjects)
    if result.kind is ProbeKind.ORACLE:
        return f"passes with the change of {changed} when something else is expected in {places}"
    why = "although it runs them" if result.reached else "no test runs what was broken"
    return f"passes with {places} broken: {why}"


def _odd(results: Results) -> Iterator[str]:
    """Yield what a probe could not show, which may be the repository's own doing."""
    for each in (each for each in results if each.kind is ProbeKind.BROKEN_CODE):
        files = list_some(each.subjects)
        if each.end is ProbeEnd.NOT_APPLIED:
            yield f"{each.check}: not known whether it can fail: nothing shows that it read {files}"
        elif each.end is ProbeEnd.SILENT and each.code is Side.BASE:
            yield f"{each.check}: sees no error in {files}, as before the task"
