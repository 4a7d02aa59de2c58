"""The notes of a verdict for a person; none of them decides anything."""

from collections.abc import Iterable, Iterator

from agentflow.core.check_command import format_command
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome, describe_end
from agentflow.core.verdict import Caveat, ProbeEnd, ProbeKind, ProbeResult, ProofKind, count_mutants
from agentflow.redact import list_some
from agentflow.verdict.case import Case, find_faults, is_left_behind
from agentflow.verdict.proofs import (
    find_proof,
    list_differing,
    list_green_when_broken,
    list_late,
    list_proven_tests,
    list_untried,
)
from agentflow.workspace.changes import ChangeKind

_PROBES = (Caveat.GREEN_WHEN_BROKEN, Caveat.DEPENDS_ON_SURROUNDINGS, Caveat.NOT_ALL_TRIED)


def list_notes(case: Case) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return what a person should know of a change besides its verdict, and which of it explains a caveat."""
    parts: tuple[tuple[tuple[Caveat, ...], Iterable[str]], ...] = (
        ((Caveat.CHECK_SKIPPED,), _list_overrides(case)),
        ((), _no_test_needed(case)),
        ((Caveat.CHECK_WEAKENED,), _note_checks(case)),
        ((), _list_leavings(case)),
        ((Caveat.CHECK_NOT_RUN,), (*note_no_tests(case), *_not_run(case))),
        ((Caveat.MOSTLY_SKIPPED, Caveat.TESTS_NOT_COUNTED), _count_skipped(case)),
        ((), _list_matched(case)),
        ((Caveat.ALREADY_RED,), _still_red(case)),
        ((Caveat.FLAKY,), _find_mixed(case)),
        ((), _unproven(case)),
        ((Caveat.KNOWS_THE_TESTS,), _list_suspicions(case)),
        (_PROBES, _note_probes(case)),
        ((Caveat.NOT_ALL_TRIED,), _note_mutants(case)),
        ((Caveat.DEPENDENCIES,), _list_dependencies(case)),
        ((), _list_unseen(case)),
    )
    told = [(caveats, tuple(part)) for caveats, part in parts]
    grounds: dict[str, tuple[str, ...]] = {}
    for caveats, part in told:
        grounds |= {caveat: (*grounds.get(caveat, ()), *part) for caveat in caveats if part}
    return tuple(note for _, part in told for note in part), grounds


def note_no_tests(case: Case) -> list[str]:
    """Return a note if the repository has no tests, before the task and now."""
    known = {run.check.name for run in (*case.before, *case.after)}
    is_known = CheckName.TESTS in {*known, *(override.check for override in case.overrides)}
    return [] if is_known else ["tests: not run (this repository has none that agentflow can find)"]


def _list_overrides(case: Case) -> list[str]:
    return [f"{one.check} skipped by {one.by}: {one.reason} (risk: {one.risk})" for one in case.overrides]


def _no_test_needed(case: Case) -> list[str]:
    """Return what proves a change without which no test fails, or how far that was tried."""
    if case.same_behaviour:
        return [f"same behaviour: {ProofKind.SAME_BEHAVIOUR.meaning}"]
    tests = sorted(list_proven_tests(case.probes or ()))
    return [f"tests only, each fails when the code is broken: {list_some(tests)}"] if tests else []


def _note_checks(case: Case) -> list[str]:
    """Return how the checks changed, if the original ones pass as well."""
    if not case.check_notes:
        return []
    return [f"the checks changed, and the original ones pass as well: {list_some(case.check_notes)}"]


def _not_run(case: Case) -> Iterator[str]:
    """Yield the checks, or parts of them, that cannot run on this machine."""
    for run in case.after:
        if case.is_blocked(run):
            yield f"{run.check.name} cannot run here: {run.check.missing or case.blocked[run.check.name]}"
        elif run.check.left_out:
            yield f"{run.check.name} cannot run as a whole here: {run.check.left_out}"
        elif (why := case.blocked.get(run.check.name)) and (names := case.list_unloadable(run)):
            yield f"{run.check.name} cannot run as a whole here: {list_some(sorted(names))}: {why}"
        elif why:
            yield f"{run.check.name} could not run here before the task: {why}"


def _count_skipped(case: Case) -> Iterator[str]:
    """Yield how many tests were skipped, or that they cannot be counted."""
    for run in case.after:
        if run.counts and run.counts.skipped:
            number = run.counts.ran + run.counts.skipped
            yield f"{run.check.name}: {run.counts.skipped} of {number} skipped"
        elif run.evidence and run.counts is None and run.check.name is CheckName.TESTS:
            yield f"{run.check.name}: {explain_uncounted(run.check)}"


def _list_matched(case: Case) -> Iterator[str]:
    """Yield the tests that have other names in each run."""
    for run in case.after:
        if run.evidence and run.evidence.matched:
            yield (
                f"{run.check.name}: cases with another name in each run, known by file, function and number: "
                f"{list_some(run.evidence.matched)}"
            )


def explain_uncounted(check: Check) -> str:
    return f"the tests of `{format_command(check.command)}` cannot be counted; only its exit code is known"


def _still_red(case: Case) -> Iterator[str]:
    """Yield what fails for a reason that the change does not have to fix."""
    before = {run.check.name: run for run in case.before if not run.green}
    for run in (run for run in case.after if not case.is_blocked(run)):
        then = before.get(run.check.name)
        if case.is_excused(run):
            if names := sorted(find_faults(run).keys() - case.list_unloadable(run)):
                yield f"known to fail: {run.check.name}: {list_some(names)}"
        elif then is not None and not run.green and (find_faults(run) or not run.flaky):
            if names := sorted(find_faults(run).keys() & find_faults(then).keys()):
                yield f"failed before the task and still fails: {run.check.name}: {list_some(names)}"
            elif not find_faults(run):
                yield f"failed before the task and still fails: {run.check.name}"


def _find_mixed(case: Case) -> list[str]:
    """Return what both failed and passed on one tree, with the end of each run."""
    flaky = {run.evidence.id: run for run in case.runs if run.evidence and run.flaky}
    return [
        f"mixed results on the same tree: {list_some(run.flaky)} ({_runs(run)})" for run in flaky.values()
    ]


def _runs(run: CheckRun) -> str:
    assert run.evidence is not None
    ends = [*(describe_end(each) for each in run.evidence.tries), describe_end(run.evidence)]
    said = ", then ".join(ends) if len(ends) > 1 else f"{ends[0]}, another result before"
    return f"{run.evidence.id}: {said}"


def _unproven(case: Case) -> list[str]:
    """Return the new tests that also pass without the change."""
    known = frozenset[str]().union(*(run.outcomes.keys() - run.list_ids(*RED) for run in case.before))
    passed = frozenset[str]().union(
        *(run.list_ids(TestOutcome.PASSED) for run in case.select(code=Side.BASE))
    )
    new = sorted(passed - known)
    return [f"not evidence, passes without the change: {list_some(new)}"] if new else []


def _list_suspicions(case: Case) -> list[str]:
    """Return the new lines that may be there for the checks, the certain ones first."""
    ordered = sorted(case.suspicions, key=lambda each: not each.is_sure)
    return [each.describe() if each.is_sure else f"please review: {each.describe()}" for each in ordered]


def _list_dependencies(case: Case) -> Iterator[str]:
    """Yield the dependencies to review, then all that changed, file by file."""
    for each in case.dependencies:
        yield from (f"please review: {doubt.said}" for doubt in each.doubts)
    for each in case.dependencies:
        told = {"added": each.added, "moved": each.moved, "removed": each.removed}
        said = [f"{word} {list_some(names)}" for word, names in told.items() if names]
        said += ["it cannot be read, so what changed is unknown"] if each.damaged else []
        yield from [f"dependencies in {each.path}: {'; '.join(said)}"] if said else []
    yield from [f"dependency audit: {case.audit}"] if case.audit else []


def _list_unseen(case: Case) -> list[str]:
    names = list_some(case.unseen)
    return [f"new or changed but ignored by git, so no check saw it: {names}"] if names else []


def _list_leavings(case: Case) -> list[str]:
    """Return the new files that look like output of the checks."""
    new = [each.path for each in (*case.drift, *case.altered) if each.kind is ChangeKind.ADDED]
    added = [path for path in new if is_left_behind(path)]
    return [f"new files appeared while the checks ran: {list_some(added)}"] if added else []


def _note_probes(case: Case) -> Iterator[str]:
    """Yield what runs that had to fail showed, or could not show."""
    found, files = case.probes or (), list_some(dict.fromkeys(hunk.path for hunk in case.changed))
    yield from dict.fromkeys(
        f"{each.check}: {_why_green(each, files)}" for each in list_green_when_broken(found)
    )
    if any(each.softened for each in found):
        yield f"results that pass for whatever a test expects came with the change of {files}"
    if tests := list_differing(found):
        yield f"fails with another order of sets or another temporary folder: {list_some(tests)}"
    if late := list_late(case):
        unread = dict.fromkeys(
            part for each in late if each.end is ProbeEnd.UNREADABLE for part in each.subjects
        )
        slow = dict.fromkeys(
            part for each in late if each.end is not ProbeEnd.UNREADABLE for part in each.subjects
        )
        if slow:
            yield f"not checked, out of time: would the checks fail without {list_some(slow)}?"
        if unread:
            yield f"cannot be read, or is nested too deep, to see if anything can fail: {list_some(unread)}"
    yield from _list_unclear(found)


def _note_mutants(case: Case) -> Iterator[str]:
    """Yield how many small edits of the changed lines tests notice, where that is not all of them."""
    told, untried = count_mutants(case.mutants), list_untried(case)
    is_proof = case.mutants and not find_proof(case)
    if untried:
        places = list_some(each.place for each in untried)
        yield f"not checked, out of time: would a test notice something else in {places}?"
    if is_proof or told["not_tried"] or told["killed"] < told["tried"]:
        without = "no test fails without this change: " if is_proof else ""
        late = f", {told['not_tried']} not tried for want of time" if told["not_tried"] else ""
        yield f"{without}{told['killed']} of {told['tried']} mutants killed{late}"


def _why_green(result: ProbeResult, changed: str) -> str:
    places = list_some(result.subjects)
    if result.kind is ProbeKind.ORACLE:
        return f"passes with the change of {changed} when something else is expected in {places}"
    why = "although it runs them" if result.reached else "no test runs what was broken"
    return f"passes with {places} broken: {why}"


def _list_unclear(results: Iterable[ProbeResult]) -> Iterator[str]:
    """Yield what a probe could not show, which may be the repository's own doing."""
    for each in (each for each in results if each.kind is ProbeKind.BROKEN_CODE):
        files = list_some(each.subjects)
        if each.end is ProbeEnd.NOT_APPLIED:
            yield f"{each.check}: not known whether it can fail: nothing shows that it read {files}"
        elif each.end is ProbeEnd.SILENT and each.code is Side.BASE:
            yield f"{each.check}: sees no error in {files}, as before the task"
