"""The one place where findings become sentences; what people read here, no program compares or looks up."""

from collections.abc import Iterable

from agentflow.core.finding import FileKind, Finding, FindingKind, Worded
from agentflow.core.verdict import ProofKind, Verdict
from agentflow.redact import list_some

_KINDS: tuple[type[Worded], ...] = (ProofKind, FileKind, FindingKind)
_BLANKS = ("", "", "")
"""For a record that somebody edited."""


def describe_finding(finding: Finding) -> str:
    names, rest = list_some(finding.subjects), list_some(finding.subjects[1:])
    first, others = next(iter(finding.subjects), ""), len(finding.subjects) - 1
    words = finding.kind.words
    said = words.format(
        *finding.subjects,
        *_BLANKS,
        check=finding.check,
        path=finding.path,
        names=names,
        first=f"{first} (and {others} more)" if others > 0 else first,
        list=f": {names}" if names else "",
        rest=rest,
        more=f": {rest}" if rest else "",
        detail="".join(f": {each}" for each in finding.subjects),
        all="; ".join(finding.subjects) or "no reason given",
        what=next((each.words for kind in _KINDS for each in kind if each == first), first),
    )
    said = f"{finding.place}: {said}" if finding.path and "{path}" not in words else said
    return said if finding.is_sure else f"please review: {said}"


def describe_all(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(describe_finding, findings)))


def list_lines(findings: Iterable[Finding]) -> str:
    return "\n".join(f"- {line}" for line in describe_all(findings))


def describe_approvals(verdict: Verdict) -> tuple[str, ...]:
    answer = verdict.approval
    if answer is None:
        return ()
    by = f"approved by {answer.author} at {answer.at}" + (f": {answer.comment}" if answer.comment else "")
    return tuple(f"{line} ({by})" for line in describe_all(verdict.weakened))
