"""A verdict on a change: its proofs, its probes and its caveats."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from agentflow.core.evidence import CheckName, Side
from agentflow.core.record import Record

PLAUSIBLE = "only your tests vouch for this fix"
"""The claim for a change by the built-in repair engine."""


class ProofKind(StrEnum):
    """The ways in which a change is shown to do what it should."""

    FAIL_TO_PASS = "fail_to_pass"  # noqa: S105  # no password
    SAME_BEHAVIOUR = "same_behaviour"
    TESTS_ONLY = "tests_only"
    RENAME = "rename"
    PINNED = "pinned"

    @property
    def meaning(self) -> str:
        """What it shows about a change, in words."""
        return _SHOWS[self]


_SHOWS: Mapping[ProofKind, str] = {
    ProofKind.FAIL_TO_PASS: "fails without the change and passes with it",
    ProofKind.SAME_BEHAVIOUR: "only documents, comments, docstrings, help, hints, "
    "or the form or place of code differ",
    ProofKind.TESTS_ONLY: "only tests changed, and each fails when the code is broken",
    ProofKind.PINNED: "the tests pass before and after, and notice each small edit of the changed code",
    ProofKind.RENAME: "only names differ, in code and tests alike, and the same tests pass",
}


class Hunk(Record):
    """Neighbouring changed lines of one file of the product."""

    path: str
    line: int
    """The first of them in the current file; for deleted lines, the line before them."""
    end: int
    """The last of them."""
    proved: bool = False
    """True if a test fails without these lines."""
    wanted: str = "add a test that fails without it"
    """What would prove them."""

    @property
    def place(self) -> str:
        """The lines as people write them: `pager/core.py:12-14`."""
        return f"{self.path}:{self.line}" + (f"-{self.end}" if self.end > self.line else "")


class Proof(Record):
    """One reason why a change counts as proved."""

    kind: ProofKind
    tests: tuple[str, ...] = ()
    """The tests that show it, or checks by name."""
    hunks: tuple[Hunk, ...] = ()
    """The changed lines that it covers, where each was tried alone."""
    evidence: tuple[str, ...] = ()
    """Ids of the records of the runs that show it."""


class Verdict(Record):
    """Pass or fail of a change, computed from evidence."""

    passed: bool
    reasons: tuple[str, ...]
    """Why it failed; empty when it passed."""
    evidence: tuple[str, ...]
    """Ids of the records it rests on."""
    caveats: tuple[str, ...] = ()
    """Words such as `already_red`; any of them makes the result verified_with_caveat."""
    notes: tuple[str, ...] = ()
    """Remarks for people; they change nothing."""
    grounds: dict[str, tuple[str, ...]] = {}
    """The notes that say why the change has a caveat."""
    weakened: tuple[str, ...] = ()
    """Changes to the checks that only a person can approve."""
    to_approve: bool = False
    """Nothing else is wrong, and no person has approved it."""
    proof: tuple[Proof, ...] = ()
    """The proofs of the change."""
    unproved: tuple[str, ...] = ()
    """Each changed place that nothing proves, with what would prove it."""
    is_testable: bool = False
    """True if tests could prove all of these places."""
    approvals: tuple[str, ...] = ()
    """A person's approvals, with name and time; printed like caveats, but the result stays verified."""


class ProbeKind(StrEnum):
    CANARY = "canary"
    """Tests that fail whatever the code does."""
    BROKEN_CODE = "broken_code"
    """A check other than the tests, with the changed code broken."""
    WITHOUT_HUNK = "without_hunk"
    """New cases of tests, without the data that brings them."""
    ORACLE = "oracle"
    """The proving tests, with other values expected."""
    TESTS_ONLY = "tests_only"
    """New and changed tests with code that gives default results, where nothing else changed."""

    @property
    def meaning(self) -> str:
        """What is wrong on purpose, in words for people."""
        return _BROKEN[self]


_BROKEN = {
    ProbeKind.CANARY: "tests that always fail",
    ProbeKind.BROKEN_CODE: "with the changed code broken",
    ProbeKind.WITHOUT_HUNK: "new cases of tests, without the data that brings them",
    ProbeKind.ORACLE: "with other values expected",
    ProbeKind.TESTS_ONLY: "new and changed tests with code that gives default results",
}


class ProbeEnd(StrEnum):
    RED_AS_IT_MUST = "red as it must"
    SILENT = "stayed green"
    NOT_APPLIED = "not applied"
    """Nothing shows that the broken code was loaded, so the result means nothing."""
    LEFT_OUT = "left out"
    """All probes together would have taken too long."""
    UNREADABLE = "too deep"
    """Its code cannot be told from text, or lies too deep in brackets or branches to make one of it."""
    TIMED_OUT = "timed out"
    """Its time limit ended it, and the same tests without it were not fast: a busy machine may be why."""


_ENDS: Mapping[ProbeEnd, str] = {
    ProbeEnd.RED_AS_IT_MUST: "failed, as expected",
    ProbeEnd.SILENT: "passed, but should have failed",
    ProbeEnd.NOT_APPLIED: "not applied: nothing shows that the changed files were read",
    ProbeEnd.LEFT_OUT: "left out: the probes before it took too long",
    ProbeEnd.UNREADABLE: "left out: the code cannot be read, or is nested too deep to be changed",
    ProbeEnd.TIMED_OUT: "ended by its time limit, which shows nothing",
}


def describe_probe(end: ProbeEnd) -> str:
    """Return the result of a probe, in words for people."""
    return _ENDS[end]


class ProbeResult(Record):
    """The result of one probe; it proves nothing by itself."""

    kind: ProbeKind
    check: CheckName
    end: ProbeEnd
    seconds: float
    subjects: tuple[str, ...] = ()
    """What was broken, changed or reverted, in words for people."""
    code: Side = Side.FINAL
    """The code that it ran on: the final code, or the code from before the task."""
    tests: tuple[str, ...] = ()
    """For probes of tests: the tests that failed, each by itself."""
    softened: tuple[str, ...] = ()
    """Expected values that tests do not really check."""
    differing: tuple[str, ...] = ()
    """Tests that pass in the final run and fail here, where only the surroundings differ."""


class MutantEnd(StrEnum):
    KILLED = "killed"
    """A test fails on it that passes without it."""
    SURVIVED = "survived"
    NO_COVERAGE = "no coverage"
    """No test reaches it."""
    TIMED_OUT = "timed out"
    """Its run was ended by the limit, which shows nothing."""
    INVALID = "invalid"
    """It does not compile or load."""
    NOT_TRIED = "not tried"
    """No time was left."""


class MutantResult(Record):
    """The changed code with one small edit, and what the tests make of it."""

    path: str
    line: int
    """From 1."""
    before: str
    after: str
    operator: str
    """What was changed, by the name of its operator."""
    edit: str
    """The edit as one line for people: `default=0 → default=1`."""
    is_strong: bool
    """True if it decides where it survives."""
    outcome: MutantEnd
    killers: tuple[str, ...] = ()
    """The first tests that fail on it."""
    code: Side = Side.FINAL
    """Whose code it changes: that of now, or what the change took away."""
    hunk: Hunk | None = None
    """The changed lines that it belongs to, in the file as it is now."""
    block: int = 0
    """The first line of the innermost block around it, in the file that it changes."""

    @property
    def is_unnoticed(self) -> bool:
        """True if no test fails on it."""
        return self.outcome in (MutantEnd.SURVIVED, MutantEnd.NO_COVERAGE)


_MOST_OF_A_LINE = 2


def pick_survivors(mutants: Iterable[MutantResult]) -> tuple[MutantResult, ...]:
    """Return the mutants that no test notices, the strong ones first, at most two of a line."""
    found = sorted((each for each in mutants if each.is_unnoticed), key=lambda each: not each.is_strong)
    kept, counts = list[MutantResult](), Counter[tuple[str, int]]()
    for each in found:
        counts[each.path, each.line] += 1
        if counts[each.path, each.line] <= _MOST_OF_A_LINE:
            kept.append(each)
    return tuple(kept)


def count_mutants(mutants: Iterable[MutantResult]) -> dict[str, Any]:
    """Return how many mutants were tried and killed, and those that survived, for programs."""
    found = list(mutants)
    survived = [each for each in found if each.is_unnoticed]
    killed = sum(each.outcome is MutantEnd.KILLED for each in found)
    open_ends = (MutantEnd.NOT_TRIED, MutantEnd.TIMED_OUT)
    told = ("path", "line", "before", "after", "operator", "code")
    return {
        "tried": killed + len(survived),
        "killed": killed,
        "survived": [
            {name: getattr(each, name) for name in told} | {"grade": "strong" if each.is_strong else "weak"}
            for each in survived
        ],
        "not_tried": sum(each.outcome in open_ends and each.is_strong for each in found),
    }


class FailReason(StrEnum):
    """Why a change failed, as a person reads it; `{check}` and `{about}` are filled in."""

    NOTHING_CHANGED = "nothing was changed"
    NOTHING_ASKED_CHANGED = "nothing that was asked for changed: {about}"
    CHECKS_CHANGED = "the checks were changed: {about}"
    CHANGED_LATER = "changed after the checks began: {about}"
    CHANGED_IN_COPY = "changed by a check or a judge in its own copy: {about}"
    LEFT_OUT = "{check}: not run"
    CANNOT_RUN = "{check}: not run ({about})"
    ADDS_SECRET = "the change adds what looks like a secret: {about}"  # noqa: S105  # no password
    NOT_TRIED = "{check}: not run with a test that must fail"
    PASSES_ANYHOW = "{check}: passes whatever its tests expect: {about}"
    KEEPS_SILENT = (
        "{check}: a test that must fail does not fail with this code: the code tampers with the test runner"
    )
    OTHER_TREE = "{check}: {about} ran on another tree"
    OTHER_CHECK = "{check}: {about} is not this check, run by the program on the final code"
    TIMED_OUT = "{check}: timed out after {about}"
    NO_TEST_RAN = "{check}: no test ran"
    NOT_RUN_NOW = "{check}: {about} ran before the task but not after it"
    STILL_FAILING = "{check}: still failing: {about}"
    FEWER_TESTS = "{check}: {about}"
    FAILED = "{check}: {about}"
    NEW_FAILURES = "new failures: {about}"
    NEW_FAILURES_IN = "new failures in {check}: {about}"
    VERIFIER_REFUSED = "verifier: {about}"
    STOPPED_BY_HOOK = "stop hook, block {about}"

    def of(self, about: str = "", *, check: str = "") -> str:
        """Return the reason as a result says it."""
        return self.value.format(about=about, check=check)


class Caveat(StrEnum):
    """Why a change that passed ends with exit code 4; a word of the result, some with a check."""

    UNPROVED = "unproved"
    ALREADY_RED = "already_red"
    FLAKY = "flaky"
    CHECK_SKIPPED = "check_skipped"
    CHECK_NOT_RUN = "check_not_run"
    TESTS_NOT_COUNTED = "tests_not_counted"
    MOSTLY_SKIPPED = "mostly_skipped"
    DEPENDS_ON_SURROUNDINGS = "depends_on_surroundings"
    NOT_ALL_TRIED = "not_all_tried"
    KNOWS_THE_TESTS = "knows_the_tests"
    CHECK_WEAKENED = "check_weakened"
    DEPENDENCIES = "dependencies"
    AMBIGUOUS_REPAIR = "ambiguous_repair"
    NOT_REVIEWED = "not_reviewed"
    REVIEWER_DISAGREES = "reviewer_disagrees"
    VERIFIER_DISAGREES = "verifier_disagrees"

    def of(self, check: str) -> str:
        """Return the caveat of one check, as the result says it."""
        return f"{self}:{check}"

    def is_named_in(self, said: str) -> bool:
        """Return whether a result's word is this caveat, for any check."""
        return said.partition(":")[0] == self


_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        Caveat.UNPROVED: "no test proves the change, or a part of it",
        Caveat.ALREADY_RED: "some checks failed before the task and still fail",
        Caveat.FLAKY: "a check both failed and passed on the same tree, so its pass proves little",
        Caveat.CHECK_SKIPPED: "skipped on request",
        Caveat.CHECK_NOT_RUN: "this check could not run on this machine",
        Caveat.TESTS_NOT_COUNTED: "the tests cannot be counted; only the exit code is known",
        Caveat.MOSTLY_SKIPPED: "more tests were skipped than run",
        Caveat.KNOWS_THE_TESTS: "parts of the new code look written for these tests",
        Caveat.DEPENDS_ON_SURROUNDINGS: "a proving test fails under other conditions",
        Caveat.NOT_ALL_TRIED: "not every probe could be run",
        Caveat.CHECK_WEAKENED: "a check was weakened; today's code passes the original one",
        Caveat.DEPENDENCIES: "the dependencies changed; a person should review them",
        Caveat.AMBIGUOUS_REPAIR: "other edits pass the same tests but differ on other inputs",
        Caveat.NOT_REVIEWED: "no review counts: --no-review skipped it, or the reviewer gave no valid result",
        Caveat.REVIEWER_DISAGREES: "the checks pass, but the reviewer objected without citing a line",
        Caveat.VERIFIER_DISAGREES: "the checks pass, but the verifier did not confirm the change",
    }
)


def explain_caveat(said: str) -> str:
    """Return the meaning of a caveat in a result; empty for one of another version."""
    return _MEANINGS.get(said.partition(":")[0], "")


class Tampering(StrEnum):
    """Ways in which a change can weaken the checks or evade them."""

    TEST_GONE = "test removed"
    FEWER_CASES = "fewer cases of a test"
    SKIPPED = "test no longer runs, or may fail"
    WEAKER = "assertion weaker or gone"
    EXPECTATION = "different result expected"
    SWALLOWED = "exception swallowed"
    FORCED_EXIT = "exit code forced"
    REWRITTEN = "outcome rewritten by a hook"
    PATCHED = "runner, interpreter or product patched"
    EXCLUDED = "less is checked"
    REFRESHED = "snapshot rewritten"
    LONGER = "time limit changed"
    DETECTS = "code that can tell a test run from another"
    SETTING = "condition on the environment"
    KNOWS_INPUTS = "code that knows the tests"


class Remark(Record):
    """One place where a change may tamper with the checks."""

    kind: Tampering
    path: str
    line: int | None
    """In the file as it is now; None where it is gone."""
    text: str
    """The code there, or the name of the test."""
    is_sure: bool = True
    """True if honest code hardly ever looks like this."""

    def describe(self) -> str:
        """Return it as one line for people."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.kind}{f': {self.text}' if self.text else ''}"
