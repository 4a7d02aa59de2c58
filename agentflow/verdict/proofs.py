"""Proofs of a change: pure functions of a case, the rule for renamings, and what probes show."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.core.evidence import RED, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.languages import is_source
from agentflow.core.test_ids import find_id_prefix, may_be_test_in
from agentflow.core.verdict import (
    Hunk,
    MutantEnd,
    MutantResult,
    ProbeEnd,
    ProbeKind,
    ProbeResult,
    Proof,
    ProofKind,
    pick_survivors,
)
from agentflow.languages.grammars import find_grammar
from agentflow.mutants.operators import Operator
from agentflow.redact import list_some
from agentflow.routing.wanted import Wanted
from agentflow.verdict.case import Case, find_tests

_Results = tuple[ProbeResult, ...]
_LATE = (MutantEnd.NOT_TRIED, MutantEnd.TIMED_OUT)
_LOSES_NAMES = (Operator.TAKEN_BACK, Operator.STATEMENT)
"""Without `MOST = 12` what imports it does not load, as it should be."""
_FAST = 5
"""What takes so many times less than a limit does not come near it on a busy machine."""


def find_proofs(case: Case) -> tuple[Proof, ...]:
    """Return everything that proves a change."""
    if case.is_renaming:  # its tests fail on the code from before since that lacks a name
        ids = _evidence([*case.before, *case.after], {CheckName.TESTS})
        return (Proof(kind=ProofKind.RENAME, hunks=list_hunks(case), evidence=ids),)
    found, probes = [], case.probes or ()
    if tests := find_proof(case):
        ids = _evidence(case.runs, {CheckName.TESTS, *tests})
        names = tuple(dict.fromkeys(sorted(tests)))
        hunks = list_hunks(case)
        found.append(Proof(kind=ProofKind.FAIL_TO_PASS, tests=names, hunks=hunks, evidence=ids))
    if case.same_behaviour:
        found.append(Proof(kind=ProofKind.SAME_BEHAVIOUR))
    if proven := list_proven_tests(probes):
        ids = _evidence(case.after, {CheckName.TESTS})
        found.append(Proof(kind=ProofKind.TESTS_ONLY, tests=tuple(sorted(proven)), evidence=ids))
    if not found and case.wanted is Wanted.FORM and is_pinned(case.mutants):
        ids = _evidence([*case.before, *case.after], {CheckName.TESTS})
        tests = tuple(sorted({test for each in case.mutants for test in each.killers}))
        found.append(Proof(kind=ProofKind.PINNED, tests=tests, evidence=ids))
    return tuple(found)


def find_unmet(case: Case) -> FindingKind | None:
    """Return how a change makes no behaviour other, if that is certain.

    Where checks changed, such as an example that a test reads from a document, a person is asked instead.
    """
    if case.weakened or find_proof(case):
        return None
    if case.is_renaming:
        return FindingKind.ONLY_NAMES
    if case.same_behaviour:
        return FindingKind.SAME_PROGRAM
    return FindingKind.ONLY_TESTS if list_proven_tests(case.probes or ()) else None


def find_unproved(case: Case, found: Collection[Proof]) -> tuple[Finding, ...]:
    """Return the changed places that nothing proves, each with what would prove it."""
    if case.wanted is not Wanted.FORM and (met := find_unmet(case)):
        return (FindingKind.READ_DIFF.of(met),)
    hunks = _list_open(case, found)
    is_covered = any(each.kind not in (ProofKind.FAIL_TO_PASS, ProofKind.RENAME) for each in found)
    if is_covered or (found and not hunks):
        return ()
    if not found and (survivors := pick_survivors(case.mutants)):
        hunks = tuple(map(_to_hunk, survivors))
    places = [_to_unproved(case, hunk) for hunk in hunks]
    unseen = {path: command for path in case.tested if (command := _find_blind_command(case, path))}
    places = places or [_ask_to_fail(case, path) for path in case.tested if path not in unseen]
    places += [FindingKind.NONE_RAN.of(command, path=path) for path, command in unseen.items()]
    shown = places or [FindingKind.NOTHING_SHOWS.of(path=path) for path in case.unshown]
    return tuple(shown) or (FindingKind.ADD_ANY.of(),)


def _list_open(case: Case, found: Collection[Proof]) -> tuple[Hunk, ...]:
    return tuple(hunk for hunk in list_hunks(case) if not hunk.proved) if found else case.changed


def is_testable(case: Case, found: Collection[Proof]) -> bool:
    """Return whether tests that run here could prove all that is unproved; all else a person has to read."""
    tests, paths = find_tests(case.after), {each.path for each in _list_open(case, found)}
    if tests is None or case.is_blocked(tests) or (case.wanted is not Wanted.FORM and find_unmet(case)):
        return False
    return bool(paths or case.tested) and all(map(is_source, paths)) and paths.isdisjoint(case.unread)


def _find_blind_command(case: Case, path: str) -> str:
    """Return the command that names all tests it runs, and none in a file of tests; else empty."""
    run = find_tests(case.after)
    if run is None or not run.outcomes or not is_source(path):
        return ""
    stem = PurePosixPath(path).stem  # `src/later.test.ts` runs as `dist/later.test.js`
    is_seen = any(may_be_test_in(test, (path,)) or stem in test for test in run.outcomes)
    return "" if is_seen else run.check.command


def _ask_to_fail(case: Case, path: str) -> Finding:
    known = frozenset[str]().union(*(run.outcomes for run in case.before))
    new = sorted(frozenset[str]().union(*(run.outcomes for run in case.after)) - known)
    own = [test for test in new if test.startswith(path) or len(case.tested) == 1]
    return (FindingKind.LET_FAIL if own else FindingKind.LET_EACH_FAIL).of(*own, path=path)


def _to_unproved(case: Case, hunk: Hunk) -> Finding:
    subjects = (hunk.edit,) if hunk.edit else ()
    return _find_wanted(case, hunk).of(*subjects, path=hunk.path, line=hunk.line).replace(end=hunk.end)


def _find_wanted(case: Case, hunk: Hunk) -> FindingKind:
    """Return what would prove a place."""
    if hunk.path in case.unread:
        return FindingKind.UNREAD_FILE
    if any(each.path == hunk.path and (each.added or each.moved) for each in case.dependencies):
        return FindingKind.VERSION_UNSEEN
    if case.wanted is Wanted.FORM and hunk in case.changed:  # a refactoring passes on both sides
        mine = [
            each for each in case.mutants if each.path == hunk.path and hunk.line <= each.line <= hunk.end
        ]
        if any(each.outcome in _LATE for each in mine) and not any(each.is_unnoticed for each in mine):
            return FindingKind.EDITS_UNTRIED
        return FindingKind.ADD_NOTICING
    if not hunk.edit:
        return FindingKind.ADD_FAILING
    return FindingKind.UNNOTICED if hunk.code is Side.FINAL else FindingKind.UNNOTICED_BEFORE


def _evidence(runs: Iterable[CheckRun], names: Iterable[str]) -> tuple[str, ...]:
    kept = {*names}
    found = (run.evidence.id for run in runs if run.evidence and run.check.name in kept)
    return tuple(dict.fromkeys(found))


def find_proof(case: Case) -> tuple[str, ...]:
    """Return the checks and tests that fail on the old code and pass on the new code.

    A test counts if it turns twice, since once is luck: red before the task, green now and red on that code
    again; or green now, red on the code before and green now in the very same run.
    A test that is gone counts as it stood, and where a person has to approve how the checks changed, all do.
    """
    others = (run for run in case.before if run.check.name is not CheckName.TESTS)
    old_code, original = case.select(code=Side.BASE), case.select(checks=Side.BASE)
    commands = {run.evidence.command for run in old_code if run.evidence}
    new_code = (*case.after, *case.select(again=True))
    alike = tuple(run for run in new_code if run.evidence and run.evidence.command in commands)
    pairs = ((case.before, case.after), (case.before, original))
    again = {each for before, now in pairs for each in find_turned(before, now)}
    again |= {*find_needing_change(case, alike)}
    tests = [each for each in find_needing_change(case, case.after) if each in again]
    stood = find_turned(case.before, original)
    now = frozenset[str]().union(*(run.outcomes for run in case.after))
    if not case.weakened:
        stood = [each for each in stood if now and each not in {*now, *CheckName}]
    return (*find_turned(tuple(others), case.after), *tests, *stood)


def is_renaming(names: Mapping[str, str], before: Iterable[CheckRun], now: Iterable[CheckRun]) -> bool:
    """Return whether the same tests pass after the change, apart from the changed names."""
    old = {check: frozenset(_rename(test, names) for test in tests) for check, tests in _list_passing(before)}
    return bool(names) and bool(old.get(CheckName.TESTS)) and old == dict(_list_passing(now))


def _rename(test: str, names: Mapping[str, str]) -> str:
    whole, bracket, case = test.partition("[")
    place, mark, name = whole.rpartition("::" if "::" in whole else ".")
    return f"{place}{mark}{names.get(name, name)}{bracket}{case}"


def _list_passing(runs: Iterable[CheckRun]) -> Iterator[tuple[CheckName, frozenset[str]]]:
    for run in runs:
        yield (
            run.check.name,
            run.list_ids(TestOutcome.PASSED) if run.green or not run.list_ids(*RED) else frozenset(),
        )


def find_needing_change(case: Case, now: tuple[CheckRun, ...]) -> list[str]:
    """Return the checks and tests of now that do not pass on the old code, under the checks of now.

    A new test that does not even run there counts: a test inside a new module of Rust is not compiled before
    another file names that module.
    """
    old_code = case.select(code=Side.BASE)
    known = frozenset[str]().union(*(run.outcomes for run in (*case.before, *old_code)))
    commands = {run.evidence.command for run in old_code if run.green and run.outcomes and run.evidence}
    alike = (run for run in now if run.evidence and run.evidence.command in commands)
    absent = {test for run in alike for test in run.list_ids(TestOutcome.PASSED) - known}
    return [*find_turned(old_code, now), *sorted(absent)]


def find_turned(before: tuple[CheckRun, ...], now: tuple[CheckRun, ...]) -> list[str]:
    """Return the checks and tests that failed before and pass now."""
    proven = []
    for base in before:
        run = next((run for run in now if run.check.name is base.check.name), None)
        if run is None or base.evidence is None:
            continue
        # a limit may have ended a run which a slower machine would have ended now, too
        is_slow = (
            base.evidence.timed_out and run.evidence and run.evidence.seconds > base.evidence.seconds / _FAST
        )
        if not base.outcomes and not base.green and run.green and not is_slow:
            proven.append(str(run.check.name))
        proven.extend((base.list_ids(*RED) & run.list_ids(TestOutcome.PASSED)) | find_loaded_now(base, run))
    return proven


def find_loaded_now(base: CheckRun, run: CheckRun) -> frozenset[str]:
    """Return the ids of files or classes that could not be loaded before and have passing tests now."""
    passed = run.list_ids(TestOutcome.PASSED)
    return frozenset(
        test
        for test in base.list_ids(*RED) - run.list_ids(*RED)
        if (begin := find_id_prefix(test)) and any(name.startswith(begin) for name in passed)
    )


def find_unloaded_tests(before: CheckRun, now: CheckRun) -> frozenset[str]:
    """Return the tests that had a result before and can no longer be loaded."""
    scopes = tuple(
        begin for test in now.list_ids(*RED) - before.tests_with_result if (begin := find_id_prefix(test))
    )
    return frozenset(test for test in before.tests_with_result if scopes and test.startswith(scopes))


def explain_silence(results: _Results | None) -> tuple[Finding, ...]:
    """Return why no result of the tests can be trusted."""
    tests = CheckName.TESTS
    if results is None:
        return (FindingKind.NOT_TRIED.of(check=tests),)
    oracles = [each for each in results if each.kind is ProbeKind.ORACLE]
    softened = dict.fromkeys(said for each in oracles if each.code is Side.FINAL for said in each.softened)
    is_news = not any(each.softened for each in oracles if each.code is Side.BASE)
    reasons = [*FindingKind.PASSES_ANYHOW.about(softened if is_news else (), check=tests)]
    canaries = {each.code: each.end for each in results if each.kind is ProbeKind.CANARY}
    is_told_before = canaries.get(Side.BASE) is ProbeEnd.RED_AS_IT_MUST
    if canaries.get(Side.FINAL) is ProbeEnd.SILENT and is_told_before:
        reasons.append(FindingKind.KEEPS_SILENT.of(check=tests))
    return tuple(reasons)


def list_proven_tests(results: _Results) -> frozenset[str]:
    """Return the new and changed tests if each fails with default results of the code, or with others."""
    alone = [each for each in results if each.kind is ProbeKind.TESTS_ONLY]
    proven = frozenset(test for each in alone for test in each.tests)
    is_left = any(not {*each.subjects} <= proven for each in alone)
    without = (each for each in results if each.kind is ProbeKind.WITHOUT_HUNK)
    is_clear = all(each.end is ProbeEnd.RED_AS_IT_MUST for each in without)
    return frozenset() if is_left or not is_clear else proven


def find_blind_checks(results: _Results, changed: Iterable[str]) -> Iterator[Finding]:
    """Yield the checks that saw errors in the old code and miss them in the new code, with what changed."""
    of_code = [each for each in results if each.kind is ProbeKind.BROKEN_CODE]
    broken = [each for each in of_code if each.check is not CheckName.TESTS]
    now = {each.check: each for each in broken if each.code is Side.FINAL and each.end is ProbeEnd.SILENT}
    red = [each.check for each in broken if each.code is Side.BASE and each.end is ProbeEnd.RED_AS_IT_MUST]
    for name, unseen in ((name, list_some(now[name].subjects)) for name in red if name in now):
        yield FindingKind.SEES_LESS.of(unseen, *dict.fromkeys(changed), check=name)


def list_hunks(case: Case) -> tuple[Hunk, ...]:
    """Return the changed places: whether a test fails without each, and those where a mutant survives."""
    taken = [each for each in case.mutants if each.operator == Operator.TAKEN_BACK and each.hunk]
    found = {each.hunk: not each.is_unnoticed for each in taken if each.hunk and each.outcome not in _LATE}
    pieces = tuple(hunk.replace(proved=is_red) for hunk, is_red in found.items())
    if case.approval is not None and case.approval.approved:
        return pieces  # a person knows that the tests see less now
    others = (each for each in pick_survivors(case.mutants) if each.is_strong and each not in taken)
    return (*pieces, *map(_to_hunk, others))


def _to_hunk(survivor: MutantResult) -> Hunk:
    line = survivor.line
    return Hunk(path=survivor.path, line=line, end=line, edit=survivor.edit, code=survivor.code)


def is_pinned(mutants: Collection[MutantResult]) -> bool:
    """Return whether tests notice each small edit of all changed code, of what came and of what went.

    So it has to go on doing what they know. One guard that goes unnoticed beside a tested line is enough to
    be something else than a refactoring.
    """
    ends = defaultdict[Hunk | None, set[MutantEnd]](set)
    for each in mutants:
        ends[each.hunk].add(each.outcome)
    return bool(ends) and all(map(_are_killed, ends.values()))


def list_tried_lines(case: Case) -> frozenset[tuple[str, int]]:
    """Return the conditions of which tests notice each strong edit, by path and line."""
    ends = defaultdict[tuple[str, int], set[MutantEnd]](set)
    for each in (each for each in case.mutants if each.is_strong):
        ends[each.path, each.line].add(each.outcome)
    return frozenset(place for place, found in ends.items() if _are_killed(found))


def _are_killed(ends: set[MutantEnd]) -> bool:
    return MutantEnd.KILLED in ends and ends <= {MutantEnd.KILLED, MutantEnd.INVALID}


def list_differing(results: _Results) -> tuple[str, ...]:
    """Return the proving tests whose result depends on their surroundings."""
    return tuple(dict.fromkeys(test for each in results for test in each.differing))


def list_late(case: Case) -> tuple[ProbeResult, ...]:
    """Return the probes that were not run, for want of time or since the code cannot be read."""
    ends = (ProbeEnd.LEFT_OUT, ProbeEnd.UNREADABLE, ProbeEnd.TIMED_OUT)
    return tuple(each for each in case.probes or () if each.end in ends)


def list_untried(case: Case) -> tuple[Hunk, ...]:
    """Return the blocks of changed lines of which no strong mutant was tried to its end."""
    strong = (each for each in case.mutants if each.is_strong)
    return _pick_blocks(strong, lambda found: all(each.outcome in _LATE for each in found))


def list_unloadable(case: Case) -> tuple[Hunk, ...]:
    """Return the blocks of changed lines of which no edit loads, in a language that loads any program.

    Two modules that each compared the size of the other's file when they were imported kept all edits of both
    from every test: a function that was wrong had exit code 0.
    """
    return _pick_blocks(case.mutants, _loads_in_no_other_form)


def _loads_in_no_other_form(found: list[MutantResult]) -> bool:
    edits = [each for each in found if each.operator not in _LOSES_NAMES]
    grammar = find_grammar(found[0].path)
    is_loose = grammar is not None and grammar.is_loose
    ends = {each.outcome for each in edits}
    return is_loose and MutantEnd.INVALID in ends and ends <= {MutantEnd.INVALID, *_LATE}


def _pick_blocks(
    mutants: Iterable[MutantResult], choose: Callable[[list[MutantResult]], bool]
) -> tuple[Hunk, ...]:
    blocks = defaultdict[tuple[str, Side, int], list[MutantResult]](list)
    for each in mutants:
        blocks[each.path, each.code, each.block].append(each)
    return tuple(
        Hunk(path=path, line=min(each.line for each in found), end=max(each.line for each in found))
        for (path, _, _), found in blocks.items()
        if choose(found)
    )
