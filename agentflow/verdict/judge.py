"""The verdict on a change: a pure function of a case, which the verifier and the reviewer can only lower."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from agentflow.core.evidence import RED, CheckName, CheckRun, Side, TestOutcome, find_same_check
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.role import Claim, Judgement, JudgeTest, Review, ReviewVerdict, Severity
from agentflow.core.task import GateStatus, Phase, TaskState
from agentflow.core.verdict import Caveat, ProofKind, Verdict
from agentflow.routing.wanted import Wanted
from agentflow.verdict.case import Case, find_faults, is_bound, list_drift, list_left_out
from agentflow.verdict.notes import is_counted, list_notes, note_no_tests
from agentflow.verdict.proofs import (
    explain_silence,
    find_loaded_now,
    find_proofs,
    find_unloaded_tests,
    find_unmet,
    find_unproved,
    is_testable,
    list_differing,
    list_late,
    list_unloadable,
    list_untried,
)
from agentflow.workspace.changes import FileChange

_LAST_LINES = 20
_VARYING = re.compile(r"\S*/|0x[0-9a-f]+|\d+")
"""What differs in the output of the same command: places, addresses, times."""


def judge(case: Case) -> Verdict:
    """Return pass only if something changed and every required check passed on exactly that tree.

    It has to hold as it stood before the task too, or a person approved how it was changed.
    """
    shown = (run.evidence.id for run in case.runs if run.evidence and Side.FINAL in (run.code, run.checks))
    evidence = tuple(dict.fromkeys(shown))
    if case.tree == case.base_tree or case.is_unchanged:
        return Verdict(passed=False, reasons=(FindingKind.NOTHING_CHANGED.of(),), evidence=evidence)
    case = _without_skipped(case)
    failures = _failures(case) or explain_silence(case.probes) or _find_open_targets(case)
    notes, grounds = list_notes(case)
    if failures:
        return Verdict(passed=False, reasons=failures, evidence=evidence, notes=notes, weakened=case.weakened)
    found = find_proofs(case)
    unproved = find_unproved(case, found)
    to_approve = () if case.approval is not None and case.approval.approved else case.weakened
    return Verdict(
        passed=not to_approve,
        reasons=(FindingKind.CHECKS_CHANGED.of(), *to_approve) if to_approve else (),
        evidence=evidence,
        caveats=() if to_approve else tuple(dict.fromkeys(_list_caveats(case, is_proved=not unproved))),
        notes=notes,
        grounds=grounds,
        proof=found,
        unproved=unproved,
        is_testable=bool(unproved) and is_testable(case, found),
        weakened=case.weakened,
        to_approve=bool(to_approve),
        approval=case.approval if case.weakened and not to_approve else None,
    )


def _without_skipped(case: Case) -> Case:
    skipped = {override.check for override in case.overrides}
    kept = tuple(run for run in case.runs if run.check.name not in skipped)
    return case.replace(runs=kept)


def has_no_failure(case: Case) -> bool:
    """Return whether all checks hold as they are now."""
    return not _failures(_without_skipped(case))


def _failures(case: Case) -> tuple[Finding, ...]:
    """Return what the change has to fix, whatever a person approves."""
    now = {run.check.name for run in case.after}
    left_out = [run.check.name for run in case.before if run.check.name not in now]
    return (
        *list_drift(case.drift, case.altered),
        *(FindingKind.LEFT_OUT.of(check=name) for name in left_out),
        *FindingKind.ADDS_SECRET.about(case.secrets),
        *(problem for run in case.after for problem in _problems(case, run)),
        *_find_unmet(case),
    )


def _list_caveats(case: Case, *, is_proved: bool) -> Iterator[str]:
    yield from (Caveat.CHECK_SKIPPED.of(override.check) for override in case.overrides)
    yield from (Caveat.CHECK_NOT_RUN.of(name) for name in _list_not_run(case))
    able = [run for run in case.after if not case.is_blocked(run)]
    if any(run.check.name is CheckName.TESTS and not is_counted(case, run) for run in able):
        yield Caveat.TESTS_NOT_COUNTED
    if any(run.counts and run.counts.is_mostly_skipped for run in able):
        yield Caveat.MOSTLY_SKIPPED
    if any(not run.green and not case.is_excused(run) for run in able if not run.check.only_looks):
        yield Caveat.ALREADY_RED
    if any(set(run.flaky) - case.known for run in case.runs):
        yield Caveat.FLAKY
    if not is_proved:
        yield Caveat.UNPROVED
    if list_late(case) or list_untried(case) or list_unloadable(case):
        yield Caveat.NOT_ALL_TRIED
    if list_differing(case.probes or ()):
        yield Caveat.DEPENDS_ON_SURROUNDINGS
    if any(each.is_sure for each in case.suspicions):
        yield Caveat.KNOWS_THE_TESTS
    if case.is_weakened:
        yield Caveat.CHECK_WEAKENED
    if any(each.doubts for each in case.dependencies):
        yield Caveat.DEPENDENCIES


def _list_not_run(case: Case) -> Iterator[CheckName]:
    for run in (each for each in case.after if not each.check.only_looks):
        if case.is_blocked(run) or run.check.left_out or run.check.name in case.blocked:
            yield run.check.name
    if note_no_tests(case) and not case.same_behaviour:
        yield CheckName.TESTS


def _problems(case: Case, run: CheckRun) -> list[Finding]:
    if case.is_blocked(run):
        return []
    unfit = _unfit(case, run)
    if unfit is not None:
        return [unfit]
    base = find_same_check(run, case.before)
    return [*_find_owed(case, base, run), *([] if run.green else _find_new_failures(case, base, run))]


def _unfit(case: Case, run: CheckRun) -> Finding | None:
    evidence, name = run.evidence, run.check.name
    if evidence is None:
        return FindingKind.CANNOT_RUN.of(run.check.missing or "", check=name)
    if evidence.tree_before != case.tree:
        return FindingKind.OTHER_TREE.of(evidence.id, check=name)
    if not is_bound(run, evidence):
        return FindingKind.OTHER_CHECK.of(evidence.id, check=name)
    if evidence.timed_out:
        return FindingKind.TIMED_OUT.of(f"{evidence.seconds:.0f}", check=name)
    if run.counts is not None and run.counts.ran == 0:
        return FindingKind.NO_TEST_RAN.of(check=name)
    return None


def _find_owed(case: Case, base: CheckRun | None, run: CheckRun) -> list[Finding]:
    if base is None:
        return []
    loaded = find_loaded_now(base, run)
    held = find_same_check(run, case.select(checks=Side.BASE)) or run
    spared = find_unloaded_tests(base, held) - base.list_ids(*RED)
    spared |= list_left_out(base, run)  # a person is asked about these
    gone = base.tests_with_result - run.tests_with_result - held.tests_with_result - loaded - spared
    lost = FindingKind.NOT_RUN_NOW.about(sorted(gone), check=run.check.name)
    return [*lost, *_fewer(base, run, held), *_find_still_failing(case, base, run, case.targets)]


def _find_still_failing(
    case: Case, base: CheckRun, run: CheckRun, wanted: frozenset[str]
) -> Iterator[Finding]:
    due = frozenset[str]() if case.is_blocked(run) else wanted & base.list_ids(*RED)
    due -= (
        case.known
        | run.list_ids(TestOutcome.PASSED)
        | (base.tests_with_result - run.tests_with_result)
        | find_loaded_now(base, run)
        | case.list_unloadable(run)
    )
    at_times = due & {*run.flaky}
    yield from FindingKind.STILL_FAILING.about(sorted(due - at_times), check=run.check.name)
    yield from FindingKind.FAILS_AT_TIMES.about(sorted(at_times), check=run.check.name)


def _find_open_targets(case: Case) -> tuple[Finding, ...]:
    """Return the failing tests that the task may be about, if no other test proves the change."""
    if any(each.kind is ProofKind.FAIL_TO_PASS for each in find_proofs(case)):
        return ()
    runs = [(base, run) for base in case.before for run in case.after if base.check.name is run.check.name]
    wanted = ((base, run, case.guessed - case.list_doubtful(run)) for base, run in runs)
    return tuple(line for each in wanted for line in _find_still_failing(case, *each))


def _find_unmet(case: Case) -> tuple[Finding, ...]:
    """Return why a change cannot be what was asked for: other behaviour, where it provably makes none.

    An off-by-one that was "fixed" by one added comment had exit code 0.
    """
    met = find_unmet(case)
    if met is None or case.wanted is not Wanted.BEHAVIOUR:
        return ()
    return (*_find_open_targets(case), FindingKind.NOTHING_ASKED_CHANGED.of(met))


def _fewer(base: CheckRun, run: CheckRun, held: CheckRun) -> list[Finding]:
    """Return whether fewer tests ran than before, where only their number is known."""
    if base.outcomes or base.counts is None or not base.counts.ran:
        return []
    now = max(each.counts.ran if each.counts else 0 for each in (run, held))
    if now >= base.counts.ran:
        return []
    return [FindingKind.FEWER_RAN.of(str(base.counts.ran), str(now), check=run.check.name)]


def _find_new_failures(case: Case, base: CheckRun | None, run: CheckRun) -> list[Finding]:
    if case.is_excused(run) or (base is not None and _ends_the_same(case, base, run)):
        return []
    name, code = run.check.name, run.evidence.exit_code if run.evidence else None
    now, before = find_faults(run), find_faults(base) if base else {}
    if base is None or base.green or not now:
        if code is None:
            return [FindingKind.KILLED.of(*sorted(now), check=name)]
        return [FindingKind.FAILED.of(str(code), *sorted(now), check=name)]
    known = (case.known & run.list_ids(TestOutcome.FAILED)) | case.list_unloadable(run)
    # what a linter said of a file goes with the code that moves to another one
    moved = _count_messages(case, now) - _count_messages(case, before)
    new = sorted(
        item
        for item, times in now.items()
        if times > before.get(item, 0) and moved[_find_message(case, item)] and item not in known
    )
    kind = FindingKind.NEW_FAILURES if name is CheckName.TESTS else FindingKind.NEW_FAILURES_IN
    return [*kind.about(new, check=name)]


def _count_messages(case: Case, faults: Mapping[str, int]) -> Counter[str]:
    """Count what is said of the changed files without their names."""
    found = Counter[str]()
    for fault, times in faults.items():
        found[_find_message(case, fault)] += times
    return found


def _find_message(case: Case, fault: str) -> str:
    path, _, message = fault.partition(": ")
    return message if any(each.path == path.removeprefix("./") for each in case.changed) else fault


def _ends_the_same(case: Case, base: CheckRun, run: CheckRun) -> bool:
    """Return whether a check fails as before the task, without anything that can be named.

    Beside tests that all pass that is its exit code, else what it says but for numbers and places.
    """
    then, now, name = base.evidence, run.evidence, run.check.name
    if find_faults(base) or find_faults(run) or then is None or now is None or str(name) in case.targets:
        return False
    if now.exit_code in (None, 0) or then.exit_code != now.exit_code:
        return False
    if name is CheckName.TESTS and run.counts is not None:
        return bool(run.counts.passed) and not run.counts.failed + run.counts.errors
    said = (_VARYING.sub("", each.tail).strip().splitlines()[-_LAST_LINES:] for each in (base, run))
    return next(said) == next(said)


def lower_verdict(
    verdict: Verdict,
    judgement: Judgement,
    changed: tuple[FileChange, ...],
    tests: tuple[JudgeTest, ...] = (),
) -> Verdict:
    """Return the verdict with the verifier's word, which can only lower it.

    A test of its own counts where it fails and the verifier stands by it; one that passes shows nothing.
    """
    own = (FindingKind.OWN_TEST_FAILS.about(each.failing, path=each.path) for each in tests)
    failing = [found for each in own for found in each]
    text = "\n".join(judgement.reasons)
    places = (rf"(?<![\w./-])(?:\./)?{re.escape(change.path)}:\d+" for change in changed)
    is_cited = any(re.search(place, text) for place in places)
    match judgement.verdict:
        case Claim.VERIFIED:
            return verdict
        case Claim.FAILED if judgement.evidence or is_cited or failing:
            refused = (FindingKind.VERIFIER_REFUSED.of(*judgement.reasons), *failing)
            return verdict.replace(passed=False, reasons=refused, caveats=())
        case Claim.FAILED | Claim.ENVIRONMENT_BLOCKED:
            return doubt(verdict, FindingKind.VERIFIER_DOUBTS.of(*judgement.reasons))


def doubt(verdict: Verdict, note: Finding) -> Verdict:
    """Return a pass that the verifier did not confirm."""
    grounds = {**verdict.grounds, Caveat.VERIFIER_DISAGREES: (note,)}
    caveats = (*verdict.caveats, Caveat.VERIFIER_DISAGREES)
    return verdict.replace(caveats=caveats, notes=(*verdict.notes, note), grounds=grounds)


_BLOCKING = (Severity.CRITICAL, Severity.MAJOR)


def list_objections(review: Review, flagged: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return why a review sends a change back: its verdict or its cited issues, whichever is stricter.

    A review cannot be outvoted by checks or verifier, so that two judges who contradict each other end in
    the change going back, as often as there are iterations.
    """
    cited = tuple(issue for issue in review.issues if issue.place not in flagged)
    serious = any(issue.severity in _BLOCKING for issue in cited)
    if not serious and review.verdict is ReviewVerdict.APPROVED:
        return ()
    return tuple(FindingKind.AS_WORDED.of(issue.describe()) for issue in cited)


def find_review_caveats(task: TaskState) -> tuple[str, ...]:
    """Return the caveats of the review of a change that is otherwise verified."""
    gate = task.get_gate(Phase.REVIEW)
    if gate.status is GateStatus.SKIPPED:
        return (Caveat.NOT_REVIEWED,) if task.routing.review_required or gate.agent else ()
    review = task.review
    disagrees = review is not None and (review.verdict is ReviewVerdict.NEEDS_CHANGES or task.flagged_issues)
    return (Caveat.REVIEWER_DISAGREES,) if disagrees else ()


def add_role_caveats(verdict: Verdict, task: TaskState) -> Verdict:
    """Return a pass with the caveats of the review, and of a change that has rivals."""
    if not verdict.passed:
        return verdict
    rivals = task.change.rivals if task.change is not None else ()
    ambiguous = (Caveat.AMBIGUOUS_REPAIR,) if rivals else ()
    notes = tuple(map(FindingKind.RIVAL.of, rivals))
    caveats = (*verdict.caveats, *ambiguous, *find_review_caveats(task))
    gate = task.get_gate(Phase.REVIEW)
    claims = list_claims(task) if verdict.unproved else ()
    lost = (FindingKind.NO_REVIEW.of(),) if gate.status is GateStatus.SKIPPED and gate.agent else ()
    grounds = {**verdict.grounds, Caveat.AMBIGUOUS_REPAIR: notes, Caveat.NOT_REVIEWED: lost}
    return verdict.replace(caveats=caveats, notes=(*verdict.notes, *notes, *lost, *claims), grounds=grounds)


def list_claims(task: TaskState) -> tuple[Finding, ...]:
    """Return which places no test can notice, as the implementer says; nobody checks it."""
    claims = task.change.equivalent if task.change is not None else ()
    return tuple(FindingKind.CLAIMED_EQUIVALENT.of(each.place, each.why) for each in claims)
