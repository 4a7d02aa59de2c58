"""What a result says, it says everywhere: terminal, page, comment, report and JSON."""

import html
import re
from pathlib import Path

import pytest

from agentflow.core.errors import Exit
from agentflow.core.events import IntentTold
from agentflow.core.finding import FindingKind
from agentflow.core.pending import Answer
from agentflow.core.role import Claim, Issue, Judgement, Review, ReviewVerdict, Severity
from agentflow.core.task import Ending, Status
from agentflow.core.verdict import MutantEnd, MutantResult, Proof, ProofKind
from agentflow.pages.markdown import format_comment
from agentflow.pages.page import TaskPage
from agentflow.pages.render import render_document
from agentflow.report.material import Material, Spending
from agentflow.report.report import format_report, to_result
from agentflow.report.summary import summarize_task
from agentflow.view.tasks import Snapshot
from agentflow.view.verdict import draw_verdict
from tests.unit.verdict.cases import a_task, a_verdict

SURVIVOR = MutantResult(
    path="pager.py",
    line=3,
    before="1",
    after="2",
    operator="number",
    edit="1 to 2",
    is_strong=True,
    outcome=MutantEnd.SURVIVED,
)
ISSUE = Issue(severity=Severity.MINOR, kind="style", path="pager.py", line=6, message="name the factor")
TASK = a_task(
    status=Status.VERIFIED_WITH_CAVEAT,
    ending=Ending(status=Status.VERIFIED_WITH_CAVEAT, exit_code=Exit.CAVEAT, reason="with a caveat"),
    verdict=a_verdict(caveats=("flaky",)).replace(
        proof=(Proof(kind=ProofKind.PINNED, tests=("test one",)),),
        unproved=(FindingKind.AS_WORDED.of("pager line 9 needs a test"),),
        notes=(FindingKind.AS_WORDED.of("one new file is not tracked"),),
        weakened=(FindingKind.AS_WORDED.of("the fewer cases"),),
        approval=Answer(approved=True, by="ada", at="2026-11-01T10:00:00Z"),
    ),
    review=Review(verdict=ReviewVerdict.APPROVED, issues=(ISSUE,)),
    judgement=Judgement(verdict=Claim.VERIFIED, evidence=(), reasons=("ran the tests twice",)),
    mutants=(SURVIVOR,),
    hook_files={"hooks log": "x"},
)
SAID = (
    *("a check both failed and passed on the same tree", "pager line 9 needs a test", "name the factor"),
    *(
        "ran the tests twice",
        "one new file is not tracked",
        "the fewer cases (approved by ada at 2026-11-01T10:00:00Z)",
    ),
    "hooks log",
)
FURTHER = ("the tests pass before and after", "test one", "1 to 2: no test notices", "0 of 1 mutants killed")
"""The terminal has these in its headline and its lines on what nothing proves, or leaves them out."""


def plain(text: str) -> str:
    return " ".join(re.sub(r"\\(?=\W)", "", html.unescape(text)).split())


def printed() -> dict[str, str]:
    snapshot = Snapshot(folder=Path("a/b/c/d/e"), state=TASK, events=(), evidence=())
    summary = summarize_task(TASK, snapshot.find)
    page = TaskPage(task_id="t", at_work=False, snapshot=snapshot, summary=summary)
    material = Material(runs=(), recall=lambda _: (), diff="", folder="f")
    spent = Spending(roles=(), seconds=0, model=0)
    told = IntentTold(goal="", constraints="", assumptions="", gaps=())
    texts = {
        "terminal": "\n".join(row.text for row in draw_verdict(snapshot, "")),
        "page": render_document(page),
        "comment": format_comment(page),
        "report": format_report(TASK, material, (), told, spent),
        "JSON": str(to_result(TASK, material, (), spent)["summary"]),
    }
    return {name: plain(text) for name, text in texts.items()}


@pytest.mark.parametrize("where", ["terminal", "page", "comment", "report", "JSON"])
def test_what_stands_in_one_stands_in_all(where: str) -> None:
    text = printed()[where]
    assert [said for said in SAID if said not in text] == []
    assert where == "terminal" or [said for said in FURTHER if said not in text] == []
