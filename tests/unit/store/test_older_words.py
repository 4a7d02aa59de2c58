"""A state of version 1, whose verdict was words: it is read, and what a person approved then holds."""

import hashlib

from agentflow.core.finding import Finding, FindingKind
from agentflow.core.task import Failure
from agentflow.core.verdict import Verdict
from agentflow.parse import fit
from agentflow.store.reading import upgrade_fields
from agentflow.verdict.diff.inspection import NO_INSPECTION, find_approval, make_approval_id
from agentflow.wording import describe_all, describe_approvals
from tests.unit.verdict.cases import a_task

LINE = "test_a still fails with the original files (test_a.py:3: assertion weaker or gone: test_a: assert x)"
OLD_ID = f"checks-{hashlib.sha256(LINE.encode()).hexdigest()[:8]}"
ANSWER = {"approved": True, "by": "ada", "at": "2026-11-01T10:00:00Z"}
STATE = {
    "version": 1,
    "answers": {"p1-1": {"approved": True}, OLD_ID: ANSWER},
    "verdict": {
        "passed": True,
        "reasons": [],
        "evidence": ["ev-0002"],
        "notes": ["a note"],
        "grounds": {"flaky": ["a note"]},
        "weakened": [LINE],
        "unproved": ["a.py:3: add a test"],
        "approvals": [f"{LINE} (approved by ada at 2026-11-01T10:00:00Z)"],
        "proof": [
            {"kind": "fail_to_pass", "hunks": [{"path": "a.py", "line": 1, "end": 2, "wanted": "add a test"}]}
        ],
    },
    "failures": [
        {
            "iteration": 1,
            "phase": "review",
            "tree": "t",
            "signature": "s",
            "reasons": ["off by one"],
            "evidence": [],
        }
    ],
    "memorised": [
        {
            "kind": "code that knows the tests",
            "path": "a.py",
            "line": 1,
            "text": "only for 7",
            "is_sure": True,
        }
    ],
}


def test_its_words_and_its_approval_are_kept() -> None:
    now = upgrade_fields(STATE, "events.jsonl")
    verdict, (failure,) = fit(Verdict, now["verdict"]), fit(tuple[Failure, ...], now["failures"])
    assert describe_all((*verdict.notes, *verdict.unproved)) == ("a note", "a.py:3: add a test")
    assert describe_approvals(verdict) == (f"{LINE} (approved by ada at 2026-11-01T10:00:00Z)",)
    assert describe_all(failure.reasons) == ("off by one",)
    (remark,) = fit(tuple[Finding, ...], now["memorised"])
    assert (remark.kind, remark.subjects) == (FindingKind.KNOWS_INPUTS, ("only for 7",))


def test_what_was_approved_then_is_known_among_the_findings_of_now() -> None:
    verdict = fit(Verdict, upgrade_fields(STATE, "events.jsonl")["verdict"])
    task = a_task(verdict=verdict)
    task = task.replace(waiting=task.waiting.replace(answers={OLD_ID: verdict.approval}))
    same = FindingKind.FAILS_ORIGINALLY.of("test_a", path="test_a.py", line=3)
    other = FindingKind.FAILS_ORIGINALLY.of("test_b", path="test_b.py", line=3)
    assert make_approval_id(NO_INSPECTION, verdict.weakened) == OLD_ID
    assert find_approval(task, NO_INSPECTION, (same,)) == verdict.approval
    assert find_approval(task, NO_INSPECTION, (same, other)) is None
