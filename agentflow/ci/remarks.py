"""What a reviewer is told of a change, line by line: as annotations of GitHub, and as SARIF 2.1.0."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from agentflow import __version__
from agentflow.api.verification import VerificationRow
from agentflow.core.record import Record
from agentflow.pages.diff import DiffBlock, FileView, JudgedAs
from agentflow.redact import one_line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_TOLD = {
    JudgedAs.UNPROVED: ("unproved", "no test fails without these lines"),
    JudgedAs.CHECK: ("changed_check", "this changes a check; a person approved it, or it decides nothing"),
}
_DIFFERS = "not_verified"
_RULES = {
    **dict(_TOLD.values()),
    _DIFFERS: "what the record says does not hold here",
}


class ReviewRemark(Record):
    """One thing to look at."""

    rule: str
    message: str
    path: str = ""
    line: int = 0
    is_error: bool = False


def list_remarks(files: Sequence[FileView], rows: Sequence[VerificationRow]) -> tuple[ReviewRemark, ...]:
    """Return what to look at: what does not hold, then changed lines that nothing proves."""
    return (*_list_failures(rows), *(remark for file in files for remark in _list_lines(file)))


def _list_failures(rows: Sequence[VerificationRow]) -> Iterator[ReviewRemark]:
    for row in rows:
        if not row.holds:
            said = f"{row.name}: {row.told.get('said', '')}"
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
    level = "error" if remark.is_error else "warning"
    place = f"file={_escape(remark.path, ':,')},line={remark.line}," if remark.path else ""
    return f"::{level} {place}title=agentflow {remark.rule}::{_escape(remark.message)}"


def _escape(text: str, more: str = "") -> str:
    for sign in ("%", "\r", "\n", *more):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def to_sarif(remarks: Sequence[ReviewRemark]) -> dict[str, Any]:
    """Return remarks as a SARIF log."""
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()]
    driver = {"name": "agentflow", "version": __version__, "rules": rules}
    results = [_to_result(remark) for remark in remarks]
    return {
        "version": "2.1.0",
        "$schema": _SCHEMA,
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _to_result(remark: ReviewRemark) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": quote(remark.path)}, "region": {"startLine": max(1, remark.line)}}
    return {
        "ruleId": remark.rule,
        "level": "error" if remark.is_error else "warning",
        "message": {"text": remark.message},
        "locations": [{"physicalLocation": place}] if remark.path else [],
    }
