"""Remarks on a change for its reviewer, as annotations of GitHub and as SARIF 2.1.0."""

from collections.abc import Iterator, Sequence
from typing import Any

from agentflow.api.verification import VerificationRow
from agentflow.checks.interchange import SarifResult, make_sarif
from agentflow.ci.coverage import Coverage
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.pages.diff import DiffBlock, FileView, JudgedAs
from agentflow.redact import one_line

_TOLD = {
    JudgedAs.UNPROVED: ("unproved", "no test fails without these lines"),
    JudgedAs.CHECK: ("changed_check", "this changes a check; a person approved it, or it decides nothing"),
}
_DIFFERS = "not_verified"
_UNCOVERED = "uncovered"
_MERGED = "judged_before_merge"
_UNCONFIRMED = "unconfirmed"
_RULES = {
    **dict(_TOLD.values()),
    _DIFFERS: "what the record says does not hold here",
    _UNCOVERED: "no verified task accounts for this change",
    _MERGED: "the base changed this file, and it was merged after the task was judged",
    _UNCONFIRMED: "only the record says so; look at it yourself",
}
_LATER = "this changed after the task was judged, so nothing ran on it"


class ReviewRemark(Record):
    """One thing to look at."""

    rule: str
    message: str
    path: str = ""
    line: int = 0
    is_error: bool = False


def list_remarks(files: Sequence[FileView], rows: Sequence[VerificationRow]) -> tuple[ReviewRemark, ...]:
    """Return remarks on what does not hold, and then on changed lines that nothing proves."""
    return (*_list_failures(rows), *(remark for file in files for remark in _list_lines(file)))


def list_gaps(coverage: Coverage) -> tuple[ReviewRemark, ...]:
    """Return the files that verified tasks do not account for."""
    later = (
        ReviewRemark(rule=_DIFFERS, message=_LATER, path=path, is_error=True) for path in coverage.unjudged
    )
    others = ((_UNCOVERED, coverage.uncovered), (_MERGED, coverage.merged))
    told = (
        ReviewRemark(rule=rule, message=_RULES[rule], path=path)
        for rule, paths in others
        for path in paths
        if path not in coverage.unjudged
    )
    return (*later, *told)


def list_unconfirmed(task: TaskState) -> Iterator[ReviewRemark]:
    """Yield the approvals that only the record claims; a forger could have written them."""
    for said in task.verdict.approvals if task.verdict else ():
        yield ReviewRemark(
            rule=_UNCONFIRMED, message=one_line(f"approved by the record's own word: {said}", 500)
        )


def _list_failures(rows: Sequence[VerificationRow]) -> Iterator[ReviewRemark]:
    for row in rows:
        if not row.holds:
            said = f"{row.name}: {row.values.get('said', '')}"
            yield ReviewRemark(rule=_DIFFERS, message=one_line(said, 500), is_error=True)


def _list_lines(file: FileView) -> Iterator[ReviewRemark]:
    for block in (block for hunk in file.hunks for block in hunk.blocks):
        if block.mark in _TOLD:
            rule, message = _TOLD[block.mark]
            told = f"{message}; {block.note}" if block.note else message
            yield ReviewRemark(rule=rule, message=one_line(told, 500), path=file.path, line=_find_line(block))


def _find_line(block: DiffBlock) -> int:
    """Return the first line of a block in the new file, or the place where old lines were taken out."""
    lines = [side.number for row in block.rows for side in (row.new, row.old) if side is not None]
    return lines[0] if lines else 1


def to_annotation(remark: ReviewRemark) -> str:
    """Return a remark as a workflow command of GitHub (docs.github.com, "Workflow commands")."""
    place = f"file={_escape(remark.path, ':,')},line={max(1, remark.line)}," if remark.path else ""
    return f"::{_rate(remark)} {place}title=agentflow {remark.rule}::{_escape(remark.message)}"


def _escape(text: str, more: str = "") -> str:
    for sign in ("%", "\r", "\n", *more):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def to_sarif(remarks: Sequence[ReviewRemark]) -> dict[str, Any]:
    """Return remarks as a SARIF log."""
    results = (
        SarifResult(
            rule=each.rule, message=each.message, path=each.path, line=max(1, each.line), level=_rate(each)
        )
        for each in remarks
    )
    return make_sarif(_RULES, results)


def _rate(remark: ReviewRemark) -> str:
    return "error" if remark.is_error else "warning"
