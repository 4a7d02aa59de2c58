"""The notes of a verdict for a person; none of them decides anything."""

from collections.abc import Iterable, Iterator

from agentflow.core.check_command import format_command
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome, describe_end
from agentflow.core.verdict import Caveat, ProbeEnd, ProbeKind, ProofKind, count_mutants
from agentflow.redact import list_some
from agentflow.verdict.case import Case, find_faults, is_left_behind
from agentflow.verdict.proofs import (
    explain_silence,
    find_proof,
    list_differing,
    list_late,
    list_proven_tests,
    list_untried,
)
from agentflow.workspace.changes import ChangeKind

_PROBES = (Caveat.DEPENDS_ON_SURROUNDINGS, Caveat.NOT_ALL_TRIED)


def list_notes(case: Case) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return what a person should know of a change besides its verdict, and which of it explains a caveat."""
    overrides = [
        f"{one.check} skipped by {one.by}: {one.reason} (risk: {one.risk})" for one in case.overrides
    ]
    unseen, changed = list_some(case.unseen), list_some(case.check_notes)
    new = [each.path for each in (*case.drift, *case.altered) if each.kind is ChangeKind.ADDED]
    added = [path for path in new if is_left_behind(path)]
    parts: tuple[tuple[tuple[Caveat, ...], Iterable[str]], ...] = (
        ((Caveat.CHECK_SKIPPED,), overrides),
        ((), _no_test_needed(case)),
        (
            (Caveat.CHECK_WEAKENED,),
            [f"the checks changed, and the original ones pass as well: {changed}"] if changed else (),
        ),
        ((), [f"new files appeared while the checks ran: {list_some(added)}"] if added else []),
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
        ((), [f"new or changed but ignored by git, so no check saw it: {unseen}"] if unseen else ()),
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


def _no_test_needed(case: Case) -> list[str]:
    """Return what proves a change without which no test fails, or how far that was tried."""
    if case.same_behaviour:
        return [f"same behaviour: {ProofKind.SAME_BEHAVIOUR.meaning}"]
    tests = sorted(list_proven_tests(case.probes or ()))
    return [f"tests only, each fails when the code is broken: {list_some(tests)}"] if tests else []


def _not_run(case: Case) -> Iterator[str]:
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
    for run in case.after:
        if run.counts and run.counts.skipped:
            number = run.counts.ran + run.counts.skipped
            yield f"{run.check.name}: {run.counts.skipped} of {number} skipped"
        elif run.evidence and run.counts is None and run.check.name is CheckName.TESTS:
            yield f"{run.check.name}: {explain_uncounted(run.check)}"


def _list_matched(case: Case) -> Iterator[str]:
    for run in case.after:
        if run.evidence and run.evidence.matched:
            yield (
                f"{run.check.name}: cases with another name in each run, known by file, function and number: "
                f"{list_some(run.evidence.matched)}"
            )


def explain_uncounted(check: Check) -> str:
    return f"the tests of `{format_command(check.command)}` cannot be counted; only its exit code is known"


def _still_red(case: Case) -> Iterator[str]:
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
    known = frozenset[str]().union(*(run.outcomes.keys() - run.list_ids(*RED) for run in case.before))
    passed = frozenset[str]().union(
        *(run.list_ids(TestOutcome.PASSED) for run in case.select(code=Side.BASE))
    )
    new = sorted(passed - known)
    return [f"not evidence, passes without the change: {list_some(new)}"] if new else []


def _list_suspicions(case: Case) -> list[str]:
    ordered = sorted(case.suspicions, key=lambda each: not each.is_sure)
    return [each.describe() if each.is_sure else f"please review: {each.describe()}" for each in ordered]


def _list_dependencies(case: Case) -> Iterator[str]:
    for each in case.dependencies:
        yield from (f"please review: {doubt.said}" for doubt in each.doubts)
    for each in case.dependencies:
        told = {"added": each.added, "moved": each.moved, "removed": each.removed}
        said = [f"{word} {list_some(names)}" for word, names in told.items() if names]
        said += ["it cannot be read, so what changed is unknown"] if each.damaged else []
        yield from [f"dependencies in {each.path}: {'; '.join(said)}"] if said else []
    yield from [f"dependency audit: {case.audit}"] if case.audit else []


def _note_probes(case: Case) -> Iterator[str]:
    found, files = case.probes or (), list_some(dict.fromkeys(hunk.path for hunk in case.changed))
    if any(each.softened for each in found) and explain_silence(found):
        yield f"results that pass for whatever a test expects came with the change of {files}"
    if tests := list_differing(found):
        yield f"fails with another order of sets or another temporary folder: {list_some(tests)}"
    late = [(each.end is ProbeEnd.UNREADABLE, part) for each in list_late(case) for part in each.subjects]
    if slow := dict.fromkeys(part for is_unread, part in late if not is_unread):
        yield f"not checked, out of time: would the checks fail without {list_some(slow)}?"
    if unread := dict.fromkeys(part for is_unread, part in late if is_unread):
        yield f"cannot be read, or is nested too deep, to see if anything can fail: {list_some(unread)}"
    for each in (each for each in found if each.kind is ProbeKind.BROKEN_CODE):
        if each.end is ProbeEnd.SILENT and each.code is Side.BASE:  # the repository's own doing
            yield f"{each.check}: sees no error in {list_some(each.subjects)}, as before the task"


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
