"""The five Submit tools, one for each part of the pipeline; each ends its run."""

from collections.abc import Callable, Iterator
from typing import Any

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.evidence import By, Side
from agentflow.core.ports import Ledger, Workspace
from agentflow.core.record import Record, plain
from agentflow.core.submissions import Change, Claim, Finding, Findings, Judgement, Plan, Review, Submission
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext


def submit_findings(wanted: Findings, context: ToolContext) -> Output:
    """Hand in what was found and end; each finding names a file and a line that exist."""
    problems = [problem for finding in wanted.findings if (problem := _misplaced(finding, context.workspace))]
    if problems:
        raise InvalidInput("; ".join(problems))
    relative = context.workspace.relative
    placed = tuple(finding.replace(path=relative(finding.path)) for finding in wanted.findings)
    return _submitted("findings", wanted.replace(findings=placed))


def submit_plan(wanted: Plan, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Hand in the plan and end."""
    return _submitted("plan", wanted)


def submit_change(wanted: Change, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Hand in the finished change and end; the program looks at the files itself."""
    return _submitted("change", wanted)


def submit_review(wanted: Review, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Hand in the review and end."""
    return _submitted("review", wanted)


def submit_verdict(wanted: Judgement, context: ToolContext) -> Output:
    """Hand in the verdict and end; VERIFIED cites evidence that the program recorded on the newest state."""
    problems = list(_unfounded(wanted, context.ledger))
    if problems:
        raise InvalidInput("; ".join(problems))
    return _submitted("judgement", wanted)


def _tool(name: str, kind: type[Record], call: Callable[[Any, ToolContext], Output]) -> Tool:
    return Tool(name=name, category=Category.STATE, effect=Effect.WRITE, input=kind, call=call)


SUBMIT_TOOLS = (
    _tool("SubmitFindings", Findings, submit_findings),
    _tool("SubmitPlan", Plan, submit_plan),
    _tool("SubmitChange", Change, submit_change),
    _tool("SubmitReview", Review, submit_review),
    _tool("SubmitVerdict", Judgement, submit_verdict),
)


def _submitted(key: str, submission: Submission) -> Output:
    return Output(content="submitted", changes={key: plain(submission)}, submitted=True)


def _misplaced(finding: Finding, workspace: Workspace) -> str | None:
    try:
        content = workspace.read(finding.path)
    except ToolError as error:
        return str(error)
    count = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
    return None if finding.line <= count else f"{finding.path}:{finding.line}: the file has {count} lines"


def _unfounded(wanted: Judgement, ledger: Ledger) -> Iterator[str]:
    if wanted.verdict is Claim.VERIFIED and not wanted.evidence:
        yield "VERIFIED has to cite evidence"
    for cited in wanted.evidence:
        record = ledger.find(cited)
        if record is None:
            yield f"{cited}: there is no such evidence"
        elif record.by is not By.PROGRAM:
            yield f"{cited}: an agent chose that command; only what the program ran counts"
        elif wanted.verdict is Claim.VERIFIED and (record.surface, record.code) != (Side.FINAL, Side.FINAL):
            yield f"{cited}: it was not taken on the newest state of code and checks"
