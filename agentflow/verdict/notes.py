"""The notes of a verdict for a person; none of them decides anything."""

from collections.abc import Iterable, Iterator

from agentflow.core.check_command import format_command
from agentflow.core.evidence import (
    RED,
    Check,
    CheckName,
    CheckRun,
    Side,
    TestOutcome,
    find_same_check,
)
from agentflow.core.finding import Finding, FindingKind, format_span
from agentflow.core.verdict import Caveat, ProbeEnd, ProbeKind, ProofKind, count_mutants
from agentflow.verdict.case import Case, find_faults, is_left_behind
from agentflow.verdict.proofs import (
    explain_silence,
    find_proof,
    list_differing,
    list_late,
    list_proven_tests,
    list_unloadable,
    list_untried,
)
from agentflow.workspace.changes import ChangeKind

_MOST = 5
"""Changes to the checks that are told one by one, where they change no result."""
_PROBES = (Caveat.DEPENDS_ON_SURROUNDINGS, Caveat.NOT_ALL_TRIED)


def list_notes(case: Case) -> tuple[tuple[Finding, ...], dict[str, tuple[Finding, ...]]]:
    """Return what a person should know of a change besides its verdict, and which of it explains a caveat."""
    new = [each.path for each in (*case.drift, *case.altered) if each.kind is ChangeKind.ADDED]
    added = tuple(filter(is_left_behind, new))
    paths = dict.fromkeys(each.path for each in case.check_notes)
    parts: tuple[tuple[tuple[Caveat, ...], Iterable[Finding]], ...] = (
        ((Caveat.CHECK_SKIPPED,), _list_overrides(case)),
        ((), _no_test_needed(case)),
        ((Caveat.CHECK_WEAKENED,), (*case.check_notes[:_MOST], *FindingKind.ORIGINALS_PASS.about(paths))),
        ((), FindingKind.FILES_APPEARED.about(added)),
        ((Caveat.CHECK_NOT_RUN,), (*note_no_tests(case), *_not_run(case))),
        ((Caveat.MOSTLY_SKIPPED, Caveat.TESTS_NOT_COUNTED), _count_skipped(case)),
        ((), _list_matched(case)),
        ((Caveat.ALREADY_RED,), _still_red(case)),
        ((Caveat.FLAKY,), _find_mixed(case)),
        ((), _unproven(case)),
        ((Caveat.KNOWS_THE_TESTS,), sorted(case.suspicions, key=lambda each: not each.is_sure)),
        (_PROBES, _note_probes(case)),
        ((Caveat.NOT_ALL_TRIED,), _note_mutants(case)),
        ((Caveat.DEPENDENCIES,), _list_dependencies(case)),
        ((), FindingKind.UNSEEN.about(case.unseen)),
    )
    told = [(caveats, tuple(part)) for caveats, part in parts]
    grounds: dict[str, tuple[Finding, ...]] = {}
    for caveats, part in told:
        grounds |= {caveat: (*grounds.get(caveat, ()), *part) for caveat in caveats if part}
    return tuple(note for _, part in told for note in part), grounds


def _list_overrides(case: Case) -> Iterator[Finding]:
    for one in case.overrides:
        yield FindingKind.SKIPPED_ON_REQUEST.of(one.by, one.reason, one.risk, check=one.check)


def note_no_tests(case: Case) -> list[Finding]:
    """Return a note if the repository has no tests, before the task and now."""
    known = {run.check.name for run in (*case.before, *case.after)}
    is_known = CheckName.TESTS in {*known, *(override.check for override in case.overrides)}
    return [] if is_known else [FindingKind.NO_TESTS.of()]


def _no_test_needed(case: Case) -> tuple[Finding, ...]:
    """Return what proves a change without which no test fails, or how far that was tried."""
    if case.same_behaviour:
        return (FindingKind.SAME_BEHAVIOUR.of(ProofKind.SAME_BEHAVIOUR),)
    return FindingKind.TESTS_FAIL_BROKEN.about(sorted(list_proven_tests(case.probes or ())))


def _not_run(case: Case) -> Iterator[Finding]:
    for run in case.after:
        name, why = run.check.name, case.blocked.get(run.check.name)
        if case.is_blocked(run):
            yield FindingKind.CANNOT_RUN_HERE.of(run.check.missing or case.blocked[name], check=name)
        elif run.check.left_out:
            yield FindingKind.CANNOT_RUN_WHOLE.of(run.check.left_out, check=name)
        elif why and (names := case.list_unloadable(run)):
            yield FindingKind.CANNOT_RUN_WHOLE.of(why, *sorted(names), check=name)
        elif why:
            yield FindingKind.COULD_NOT_RUN.of(why, check=name)


def _count_skipped(case: Case) -> Iterator[Finding]:
    for run in case.after:
        if run.counts and run.counts.skipped:
            number = run.counts.ran + run.counts.skipped
            yield FindingKind.SOME_SKIPPED.of(str(run.counts.skipped), str(number), check=run.check.name)
        if run.evidence is None or run.check.name is not CheckName.TESTS or is_counted(case, run):
            continue
        if run.counts is None:
            yield find_uncounted(run.check)
        else:
            names = dict.fromkeys(hunk.path for hunk in case.changed)
            yield FindingKind.PRINTED_NOW.of(*names, check=run.check.name)


def is_counted(case: Case, run: CheckRun) -> bool:
    """Return whether the tests of a run can be counted.

    Numbers that are only printed, and were not before the task, may be printed by the change.
    """
    base = find_same_check(run, case.before)
    is_news = base is not None and base.evidence is not None and base.counts is None
    return run.counts is not None and not (run.counts.is_printed and is_news)


def _list_matched(case: Case) -> Iterator[Finding]:
    for run in case.after:
        yield from FindingKind.MATCHED.about(
            run.evidence.matched if run.evidence else (), check=run.check.name
        )


def find_uncounted(check: Check) -> Finding:
    """Return that only the exit code of a check of tests is known."""
    return FindingKind.UNCOUNTED.of(format_command(check.command), check=check.name)


def _still_red(case: Case) -> Iterator[Finding]:
    before = {run.check.name: run for run in case.before if not run.green}
    for run in (run for run in case.after if not case.is_blocked(run)):
        name, then = run.check.name, before.get(run.check.name)
        if case.is_excused(run):
            known = find_faults(run).keys() - case.list_unloadable(run)
            yield from FindingKind.KNOWN_TO_FAIL.about(sorted(known), check=name)
        elif then is not None and not run.green and (find_faults(run) or not run.flaky):
            names = sorted(find_faults(run).keys() & find_faults(then).keys())
            if names or not find_faults(run):
                yield FindingKind.FAILED_BEFORE.of(*names, check=name)


def _find_mixed(case: Case) -> Iterator[Finding]:
    flaky = {run.evidence.id: run for run in case.runs if run.evidence and run.flaky}
    for evidence, run in flaky.items():
        yield FindingKind.MIXED_RESULTS.of(evidence, *run.flaky, check=run.check.name)


def _unproven(case: Case) -> tuple[Finding, ...]:
    known = frozenset[str]().union(*(run.outcomes.keys() - run.list_ids(*RED) for run in case.before))
    passed = frozenset[str]().union(
        *(run.list_ids(TestOutcome.PASSED) for run in case.select(code=Side.BASE))
    )
    return FindingKind.PASSES_WITHOUT.about(sorted(passed - known))


def _list_dependencies(case: Case) -> Iterator[Finding]:
    for each in case.dependencies:
        yield from (FindingKind.AS_WORDED.of(doubt.said).replace(is_sure=False) for doubt in each.doubts)
    for each in case.dependencies:
        yield from FindingKind.DEPENDENCY_ADDED.about(each.added, path=each.path)
        yield from FindingKind.DEPENDENCY_MOVED.about(each.moved, path=each.path)
        yield from FindingKind.DEPENDENCY_REMOVED.about(each.removed, path=each.path)
        if each.damaged:
            yield FindingKind.UNKNOWN_MANIFEST.of(path=each.path)
    yield from FindingKind.AUDIT.about([case.audit] if case.audit else ())


def _note_probes(case: Case) -> Iterator[Finding]:
    found = case.probes or ()
    if any(each.softened for each in found) and explain_silence(found):
        yield FindingKind.ANY_RESULT.of(*dict.fromkeys(hunk.path for hunk in case.changed))
    yield from FindingKind.DIFFERS_ELSEWHERE.about(list_differing(found))
    late = [(each.end is ProbeEnd.UNREADABLE, part) for each in list_late(case) for part in each.subjects]
    yield from FindingKind.PROBES_LATE.about(dict.fromkeys(part for is_unread, part in late if not is_unread))
    yield from FindingKind.TOO_DEEP.about(dict.fromkeys(part for is_unread, part in late if is_unread))
    for each in (each for each in found if each.kind is ProbeKind.BROKEN_CODE):
        if each.end is ProbeEnd.SILENT and each.code is Side.BASE:  # the repository's own doing
            yield FindingKind.SEES_NO_ERROR.of(*each.subjects, check=each.check)


def _note_mutants(case: Case) -> Iterator[Finding]:
    """Yield how many small edits of the changed lines tests notice, where that is not all of them."""
    untried = (format_span(each.path, each.line, each.end) for each in list_untried(case))
    yield from FindingKind.MUTANTS_LATE.about(untried)
    unloadable = (format_span(each.path, each.line, each.end) for each in list_unloadable(case))
    yield from FindingKind.LOADS_NO_OTHER.about(unloadable)
    told, is_proof = count_mutants(case.mutants), bool(case.mutants) and not find_proof(case)
    if is_proof or told["not_tried"] or told["killed"] < told["tried"]:
        kind = FindingKind.MUTANTS_UNTRIED if told["not_tried"] else FindingKind.MUTANTS_KILLED
        yield from (FindingKind.NONE_FAILS_WITHOUT.of(),) if is_proof else ()
        if told["tried"] or told["not_tried"]:
            yield kind.of(str(told["killed"]), str(told["tried"]), str(told["not_tried"]))
