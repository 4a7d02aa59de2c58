"""Marks and short phrases that all views share."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum

from agentflow.core.events import CheckStarted, EvidenceRecorded
from agentflow.core.evidence import Evidence, Side
from agentflow.core.task import GateStatus, Status
from agentflow.redact import format_count
from agentflow.view.text import Span, Style, span

_TREE_WIDTH = 7

GATE_MARKS: Mapping[GateStatus, tuple[str, Style]] = {
    GateStatus.PENDING: ("○", Style.DIM),
    GateStatus.IN_PROGRESS: ("▸", Style.ACCENT),
    GateStatus.PASSED: ("✓", Style.GOOD),
    GateStatus.FAILED: ("✗", Style.BAD),
    GateStatus.SKIPPED: ("─", Style.DIM),
}
RESUMABLE = (Status.SUSPENDED, Status.CANCELLED)
_STATUS_STYLES: Mapping[Status, Style] = {
    Status.RUNNING: Style.ACCENT,
    Status.SUSPENDED: Style.WARN,
    Status.VERIFIED: Style.GOOD,
    Status.VERIFIED_WITH_CAVEAT: Style.WARN,
    Status.ANSWERED: Style.GOOD,
    Status.LIMIT: Style.WARN,
    Status.CANCELLED: Style.WARN,
}
"""All other statuses are bad."""
_STYLE_MARKS = {Style.GOOD: "✓", Style.WARN: "!", Style.ACCENT: "▸", Style.BAD: "✗"}


def is_offline(model: str) -> bool:
    """Return whether the id that stands for a role's tier means nothing for a model."""
    return model.startswith(("repair", "script:", "replay:"))


class Detail(Enum):
    VERDICT = "verdict"
    BRIEF = "brief"
    FULL = "full"


def describe_sides(surface: Side, code: Side) -> str:
    if surface is code:
        return ""
    return ", original checks" if surface is Side.BASE else ", without the change"


def list_reasons(decided: Sequence[str], ambiguities: Sequence[str]) -> tuple[str, ...]:
    return (*decided, *([f"ambiguity: {', '.join(ambiguities)}"] if ambiguities else []))


def mark_gate(status: GateStatus) -> Span:
    mark, style = GATE_MARKS[status]
    return span(f"{mark} ", style)


def style_status(status: Status) -> Style:
    return _STATUS_STYLES.get(status, Style.BAD)


def mark_status(status: Status) -> Span:
    return mark_style(style_status(status))


def mark_style(style: Style) -> Span:
    return span(f"{_STYLE_MARKS[style]} ", style)


def pass_mark(holds: bool) -> Span:
    return span("✓ ", Style.GOOD) if holds else span("✗ ", Style.BAD)


def mark_evidence(evidence: Evidence | EvidenceRecorded) -> Span:
    """Return the mark of a recorded command; a check that should fail without the change has none."""
    return span("· ", Style.DIM) if is_without_change(evidence) else pass_mark(evidence.exit_code == 0)


def is_without_change(evidence: Evidence | EvidenceRecorded | CheckStarted) -> bool:
    """Return whether the checks of now were run on the code from before the task."""
    return evidence.code is Side.BASE and evidence.surface is Side.FINAL


def describe_tree(tree: str | None) -> str:
    return tree[:_TREE_WIDTH] if tree else "-"


def format_duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f}s" if seconds < 1 else f"{seconds:.1f}s"
    return format_whole_seconds(seconds)


def format_whole_seconds(seconds: float) -> str:
    """Return a time span that nobody needs to the tenth."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes == 0:
        return f"{rest}s"
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def format_clock(seconds: float) -> str:
    """Return elapsed time to the tenth, as it stands at the left of a log."""
    minutes, rest = divmod(max(seconds, 0.0), 60)
    hours, minutes = divmod(int(minutes), 60)
    rest = int(rest * 10) / 10  # never 60.0
    return f"{hours}:{minutes:02}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"


def tell_approvals_left(left: int) -> str:
    return f"{format_count(left, 'more approval')} needed"


def format_local(at: str) -> str:
    """Return a timestamp as the time of this machine, with the name of its zone."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    except ValueError:
        return at


def count_seconds(start: str, end: str) -> float | None:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
