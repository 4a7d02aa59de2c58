"""What proves a change: pure functions of a case, and the rule for renamings."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from agentflow.core.evidence import RED, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.verdict import Hunk, Proof, ProofKind
from agentflow.redact import list_some
from agentflow.verdict.case import Case
from agentflow.verdict.target_tests import id_prefix


def find_proofs(case: Case) -> tuple[Proof, ...]:
    """Return everything that proves a change."""
    if case.is_renaming:  # its tests fail on the code from before since that lacks a name
        ids = _evidence([*case.before, *case.after], {CheckName.TESTS})
        return (Proof(kind=ProofKind.RENAME, evidence=ids),)
    found = []
    if tests := find_proof(case):
        ids = _evidence(case.runs, {CheckName.TESTS, *tests})
        names = tuple(dict.fromkeys(sorted(tests)))
        found.append(Proof(kind=ProofKind.FAIL_TO_PASS, tests=names, hunks=case.hunks, evidence=ids))
    if case.same_behaviour:
        found.append(Proof(kind=ProofKind.SAME_BEHAVIOUR))
    if case.proven_tests:
        ids = _evidence(case.after, {CheckName.TESTS})
        found.append(Proof(kind=ProofKind.TESTS_ONLY, tests=tuple(sorted(case.proven_tests)), evidence=ids))
    return tuple(found)


def find_unproved(case: Case, found: Collection[Proof]) -> tuple[str, ...]:
    """Return the changed places that nothing proves, each with what would prove it."""
    hunks = [hunk for hunk in case.hunks if not hunk.proved] if found else case.changed
    is_covered = any(each.kind is not ProofKind.FAIL_TO_PASS for each in found)
    if is_covered or (found and not hunks):
        return ()
    lines = [f"{hunk.place}: {_explain_wanted(case, hunk)}" for hunk in hunks]
    if not lines:
        lines = [f"{path}: let {_list_new(case, path)} fail when the code is broken" for path in case.tested]
    if not lines:
        lines = [f"{path}: nothing that runs here shows what it does: read the diff" for path in case.unshown]
    return tuple(lines) or ("add a test that fails without this change and passes with it",)


def _list_new(case: Case, path: str) -> str:
    """Return the names of the new tests of a file, or a general phrase where they are unknown."""
    known = frozenset[str]().union(*(run.outcomes for run in case.before))
    new = sorted(frozenset[str]().union(*(run.outcomes for run in case.after)) - known)
    own = [test for test in new if test.startswith(path) or len(case.tested) == 1]
    return list_some(own) if own else "each new or changed test"


def _explain_wanted(case: Case, hunk: Hunk) -> str:
    if hunk.path in case.unread:
        return "nothing reads this new file: take it out, or add a test that needs it"
    if any(each.path == hunk.path for each in case.dependencies):
        return "no test sees which version is named: install it, run the tests, and read what is new in it"
    return f"add a test {hunk.wanted}"


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
    pairs = (
        (case.before, case.after),
        (case.before, case.select(checks=Side.BASE)),
        (case.select(code=Side.BASE), _alike(case)),
    )
    again = {each for before, now in pairs for each in find_turned(before, now)}
    tests = [each for each in find_turned(case.select(code=Side.BASE), case.after) if each in again]
    return (*find_turned(tuple(others), case.after), *tests, *_as_it_stood(case))


def _as_it_stood(case: Case) -> list[str]:
    """Return the tests that pass now under the original checks and no longer exist in the new checks."""
    stood = find_turned(case.before, case.select(checks=Side.BASE))
    now = frozenset[str]().union(*(run.outcomes for run in case.after))
    return stood if case.weakened else [each for each in stood if now and each not in {*now, *CheckName}]


def _alike(case: Case) -> tuple[CheckRun, ...]:
    """Return the runs on the new code with the same command as a run on the old code."""
    commands = {run.evidence.command for run in case.select(code=Side.BASE) if run.evidence}
    now = (*case.after, *case.select(again=True))
    return tuple(run for run in now if run.evidence and run.evidence.command in commands)


def is_renaming(names: Mapping[str, str], before: Iterable[CheckRun], now: Iterable[CheckRun]) -> bool:
    """Return whether the same tests pass after the change, apart from the changed names."""
    old = {check: frozenset(_rename(test, names) for test in tests) for check, tests in _list_passing(before)}
    return bool(names) and bool(old.get(CheckName.TESTS)) and old == dict(_list_passing(now))


def _rename(test: str, names: Mapping[str, str]) -> str:
    """Return the id of a test with the name that its function has now."""
    whole, bracket, case = test.partition("[")
    place, mark, name = whole.rpartition("::" if "::" in whole else ".")
    return f"{place}{mark}{names.get(name, name)}{bracket}{case}"


def _list_passing(runs: Iterable[CheckRun]) -> Iterator[tuple[CheckName, frozenset[str]]]:
    for run in runs:
        yield (
            run.check.name,
            run.list_ids(TestOutcome.PASSED) if run.green or not run.list_ids(*RED) else frozenset(),
        )


def find_turned(before: tuple[CheckRun, ...], now: tuple[CheckRun, ...]) -> list[str]:
    """Return the checks and tests that failed before and pass now."""
    proven = []
    for base in before:
        run = next((run for run in now if run.check.name is base.check.name), None)
        if run is None or base.evidence is None:
            continue
        if not base.outcomes and not base.green and run.green:
            proven.append(str(run.check.name))
        proven.extend((base.list_ids(*RED) & run.list_ids(TestOutcome.PASSED)) | find_loaded_now(base, run))
    return proven


def find_loaded_now(base: CheckRun, run: CheckRun) -> frozenset[str]:
    """Return the ids of files or classes that could not be loaded before and have passing tests now."""
    passed = run.list_ids(TestOutcome.PASSED)
    return frozenset(
        test
        for test in base.list_ids(*RED) - run.list_ids(*RED)
        if (begin := id_prefix(test)) and any(name.startswith(begin) for name in passed)
    )


def not_loaded(before: CheckRun, now: CheckRun) -> frozenset[str]:
    """Return the tests that had a result before and can no longer be loaded."""
    scopes = tuple(
        begin for test in now.list_ids(*RED) - before.tests_with_result if (begin := id_prefix(test))
    )
    return frozenset(test for test in before.tests_with_result if scopes and test.startswith(scopes))
