"""A verdict on a change: its proofs, its probes and its caveats."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from agentflow.core.evidence import CheckName, Side
from agentflow.core.finding import Finding, Worded
from agentflow.core.pending import Answer
from agentflow.core.record import Record

PLAUSIBLE = "only your tests vouch for this fix"
"""The claim for a change by the built-in repair engine."""


class ProofKind(Worded):
    """The ways in which a change is shown to do what it should."""

    FAIL_TO_PASS = "fail_to_pass", "fails without the change and passes with it"  # no password
    SAME_BEHAVIOUR = (
        "same_behaviour",
        "only documents, comments, help, hints, or the form or place of code differ",
    )
    TESTS_ONLY = "tests_only", "only tests changed, and each fails when the code is broken"
    RENAME = "rename", "only names differ, in code and tests alike, and the same tests pass"
    PINNED = "pinned", "the tests pass before and after, and notice each small edit of the changed code"


class Hunk(Record):
    """Neighbouring changed lines of one file of the product."""

    path: str
    line: int
    """The first of them in the current file; for deleted lines, the line before them."""
    end: int
    """The last of them."""
    proved: bool = False
    """True if a test fails without these lines."""
    edit: str = ""
    """The edit of them that no test notices."""
    code: Side = Side.FINAL
    """The code that this edit changes."""


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
    reasons: tuple[Finding, ...]
    """Why it failed; empty when it passed."""
    evidence: tuple[str, ...]
    """Ids of the records it rests on."""
    caveats: tuple[str, ...] = ()
    """Words such as `already_red`; any of them makes the result verified_with_caveat."""
    notes: tuple[Finding, ...] = ()
    """Remarks for people; they change nothing."""
    grounds: dict[str, tuple[Finding, ...]] = {}
    """The notes that say why the change has a caveat."""
    weakened: tuple[Finding, ...] = ()
    """Changes to the checks that only a person can approve."""
    to_approve: bool = False
    """Nothing else is wrong, and no person has approved it."""
    proof: tuple[Proof, ...] = ()
    """The proofs of the change."""
    unproved: tuple[Finding, ...] = ()
    """Each changed place that nothing proves, with what would prove it."""
    is_testable: bool = False
    """True if tests could prove all of these places."""
    approval: Answer | None = None
    """A person's approval of what is weakened; printed like caveats, but the result stays verified."""


class ProbeKind(Worded):
    """What is wrong on purpose."""

    CANARY = "canary", "tests that always fail"
    BROKEN_CODE = "broken_code", "with the changed code broken"
    """A check other than the tests."""
    WITHOUT_HUNK = "without_hunk", "new cases of tests, without the data that brings them"
    ORACLE = "oracle", "with other values expected"
    TESTS_ONLY = "tests_only", "new and changed tests with code that gives default results"
    """Where nothing else changed."""


class ProbeEnd(Worded):
    RED_AS_IT_MUST = "red as it must", "failed, as expected"
    SILENT = "stayed green", "passed, but should have failed"
    NOT_APPLIED = "not applied", "not applied: nothing shows that the changed files were read"
    LEFT_OUT = "left out", "left out: the probes before it took too long"
    UNREADABLE = "too deep", "left out: the code cannot be read, or is nested too deep to be changed"
    TIMED_OUT = "timed out", "ended by its time limit, which shows nothing"
    """The same tests without what is wrong were not fast: a busy machine may be why."""


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


class Caveat(Worded):
    """Why a change that passed ends with exit code 4; a word of the result, some with a check."""

    UNPROVED = "unproved", "no test proves the change, or a part of it"
    ALREADY_RED = "already_red", "some checks failed before the task and still fail"
    FLAKY = "flaky", "a check both failed and passed on the same tree, so its pass proves little"
    CHECK_SKIPPED = "check_skipped", "skipped on request"
    CHECK_NOT_RUN = "check_not_run", "this check could not run on this machine"
    TESTS_NOT_COUNTED = "tests_not_counted", "the tests cannot be counted; only the exit code is known"
    MOSTLY_SKIPPED = "mostly_skipped", "more tests were skipped than run"
    DEPENDS_ON_SURROUNDINGS = "depends_on_surroundings", "a proving test fails under other conditions"
    NOT_ALL_TRIED = "not_all_tried", "not every probe could be run"
    KNOWS_THE_TESTS = "knows_the_tests", "parts of the new code look written for these tests"
    CHECK_WEAKENED = "check_weakened", "a check was weakened; today's code passes the original one"
    DEPENDENCIES = "dependencies", "the dependencies changed; a person should review them"
    AMBIGUOUS_REPAIR = "ambiguous_repair", "other edits pass the same tests but differ on other inputs"
    NOT_REVIEWED = "not_reviewed", "no review: --no-review skipped it, or it gave no valid result"
    REVIEWER_DISAGREES = "reviewer_disagrees", "the reviewer objected without citing a line"
    VERIFIER_DISAGREES = "verifier_disagrees", "the verifier did not confirm the change"

    def of(self, check: str) -> str:
        """Return the caveat of one check, as the result says it."""
        return f"{self}:{check}"

    def is_named_in(self, said: str) -> bool:
        """Return whether a result's word is this caveat, for any check."""
        return said.partition(":")[0] == self


def explain_caveat(said: str) -> str:
    """Return the meaning of a caveat in a result; empty for one of another version."""
    return next((each.words for each in Caveat if each.is_named_in(said)), "")
