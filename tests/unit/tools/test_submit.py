import json
from typing import Any

import pytest

from agentflow.core.errors import InvalidInput
from agentflow.core.evidence import By, Side
from agentflow.core.record import encode
from agentflow.core.role import Change, Findings, Judgement, Plan, Review
from agentflow.core.tool import Tool
from agentflow.parse import Mismatch, fit
from agentflow.tools.registry import SUBMITS, make_standard_toolbox
from tests.unit.tools.bench import Bench, Records, a_record

FINDINGS = {"summary": "s", "findings": [], "open_questions": []}
PLAN = {"summary": "s", "steps": [{"title": "t", "files": ["a.py"]}], "acceptance": [], "risks": ["r"]}
CHANGE = {"summary": "s", "files": ["a.py"]}
ISSUE = {"severity": "minor", "kind": "style", "path": "a.py", "line": 1, "message": "m"}
REVIEW = {"verdict": "NEEDS_CHANGES", "issues": [ISSUE]}
VERDICT = {"verdict": "FAILED", "evidence": [], "reasons": ["r"]}


def tool(name: str) -> Tool:
    found = make_standard_toolbox().find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "key", "kind", "given"),
    [
        ("SubmitFindings", "findings", Findings, FINDINGS),
        ("SubmitPlan", "plan", Plan, PLAN),
        ("SubmitChange", "change", Change, CHANGE),
        ("SubmitReview", "review", Review, REVIEW),
        ("SubmitVerdict", "judgement", Judgement, VERDICT),
    ],
)
def test_a_submission_becomes_the_tasks_state(
    bench: Bench, name: str, key: str, kind: type[Any], given: dict[str, Any]
) -> None:
    (bench.root / "a.py").write_text("x = 1\n")
    output = bench(tool(name), **given)
    assert output.submitted
    assert output.content == "submitted"
    changes = {name: value for name, value in output.changes.items() if not name.startswith("flagged")}
    assert json.loads(encode(changes))[key] == given
    assert isinstance(fit(kind, output.changes[key]), kind)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("SubmitVerdict", VERDICT | {"verdict": "LGTM"}),
        ("SubmitReview", REVIEW | {"verdict": "LGTM"}),
        ("SubmitPlan", PLAN | {"extra": 1}),
        ("SubmitPlan", PLAN | {"summary": ""}),
        ("SubmitChange", {"summary": "s"}),
    ],
)
def test_another_shape_is_refused(bench: Bench, name: str, given: dict[str, Any]) -> None:
    with pytest.raises(Mismatch):
        bench(tool(name), **given)


def claims(*places: tuple[str, int]) -> dict[str, Any]:
    findings = [{"claim": "c", "path": path, "line": line} for path, line in places]
    return FINDINGS | {"findings": findings}


def test_findings_name_lines_that_exist(bench: Bench) -> None:
    bench.file("a.py", "one\ntwo")
    bench.file("b.py", "one\n")
    output = bench(
        tool("SubmitFindings"), **claims(("a.py", 1), ("./a.py", 2), (str(bench.root / "b.py"), 1))
    )
    kept = [(each["path"], each["line"]) for each in output.changes["findings"]["findings"]]
    assert kept == [("a.py", 1), ("a.py", 2), ("b.py", 1)]


@pytest.mark.parametrize(
    ("path", "line", "problem"),
    [
        ("a.py", 3, "a.py:3: the file has 2 lines"),
        ("empty.py", 1, "empty.py:1: the file has 0 lines"),
        ("none.py", 1, "none.py: no such file"),
        ("src", 1, "src is a folder"),
        ("../secret", 1, "leads out of the repository"),
        (".git/config", 1, "belongs to git"),
    ],
)
def test_findings_that_point_nowhere_are_refused(bench: Bench, path: str, line: int, problem: str) -> None:
    bench.file("a.py", "one\ntwo\n")
    bench.file("empty.py")
    bench.file("src/x.py")
    with pytest.raises(InvalidInput, match=problem) as caught:
        bench(tool("SubmitFindings"), **claims(("a.py", 1), (path, line), ("gone.py", 1)))
    assert "gone.py" in str(caught.value)


def test_what_points_nowhere_twice_is_kept_and_flagged(bench: Bench) -> None:
    bench.file("a.py", "one\n")
    bench.run = bench.run.replace(rejected=1)
    output = bench(tool("SubmitFindings"), **claims(("./a.py", 1), ("nope.py", 3), ("a.py", 9)))
    assert output.changes["flagged_findings"] == ["nope.py:3", "a.py:9"]
    assert [each["path"] for each in output.changes["findings"]["findings"]] == ["a.py", "nope.py", "a.py"]


def test_an_issue_names_a_line_that_exists(bench: Bench) -> None:
    with pytest.raises(InvalidInput, match=r"a\.py: no such file"):
        bench(tool("SubmitReview"), **REVIEW)
    bench.run = bench.run.replace(rejected=1)
    assert bench(tool("SubmitReview"), **REVIEW).changes["flagged_issues"] == ["a.py:1"]


def test_a_page_is_cited_by_its_address(bench: Bench) -> None:
    assert bench(tool("SubmitFindings"), **claims(("https://example.org/a", 1))).submitted


def verdict(claim: str, *cited: str) -> dict[str, Any]:
    return {"verdict": claim, "evidence": list(cited), "reasons": []}


@pytest.fixture
def judged(bench: Bench) -> Bench:
    bench.ledger = Records(
        a_record("ev-1"),
        a_record("ev-red", exit_code=1),
        a_record("ev-agent", by=By.AGENT),
        a_record("ev-old-code", code=Side.BASE),
        a_record("ev-old-checks", surface=Side.BASE),
    )
    return bench


@pytest.mark.parametrize(
    "given",
    [
        verdict("VERIFIED", "ev-1"),
        verdict("FAILED", "ev-red"),
        verdict("FAILED", "ev-old-code"),
        verdict("FAILED", "ev-agent"),
        verdict("VERIFIED", "ev-1", "ev-old-checks"),
        verdict("FAILED"),
        verdict("ENVIRONMENT_BLOCKED"),
    ],
)
def test_a_verdict_on_recorded_evidence_is_taken(judged: Bench, given: dict[str, Any]) -> None:
    assert judged(tool("SubmitVerdict"), **given).submitted


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (verdict("VERIFIED"), "VERIFIED has to cite evidence"),
        (verdict("VERIFIED", "ev-1", "ev-9"), "ev-9: no check that the program ran after the change"),
        (verdict("VERIFIED", "ev-1", "ev-agent"), "ev-agent: an agent chose that command"),
        (verdict("VERIFIED", "ev-1", "ev-old-code"), "ev-old-code ran the old code; cite"),
        (verdict("VERIFIED", "ev-old-checks"), "ev-old-checks ran the old checks; cite"),
        (verdict("FAILED", "ev-9"), "ev-9: no check that the program ran after the change"),
        (verdict("ENVIRONMENT_BLOCKED", "ev-9"), "ev-9: no check that the program ran after the change"),
    ],
)
def test_a_verdict_on_anything_else_is_refused(judged: Bench, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        judged(tool("SubmitVerdict"), **given)


def test_each_part_has_its_own() -> None:
    assert SUBMITS == {
        "explorer": "SubmitFindings",
        "planner": "SubmitPlan",
        "implementer": "SubmitChange",
        "reviewer": "SubmitReview",
        "verifier": "SubmitVerdict",
    }
