"""One event as the rows of a log, in full or in short."""

from functools import singledispatch

from agentflow.core import events
from agentflow.core.check_command import format_command
from agentflow.core.evidence import CheckName, Side, describe_counts
from agentflow.core.messages import Stop
from agentflow.core.run import RunOutcome
from agentflow.core.task import GateStatus, Phase
from agentflow.core.verdict import ProbeEnd, describe_probe
from agentflow.redact import format_count, list_some, to_one_line
from agentflow.view.text import Span, Style, span
from agentflow.view.words import (
    describe_sides,
    format_duration,
    is_offline,
    is_without_change,
    list_reasons,
    mark_gate,
    mark_status,
    pass_mark,
    style_status,
)

Row = tuple[Span, ...]
_SUBJECT = 100
_WARNING = 600
"""All that a partial sandbox leaves open has room in it."""
_SAID = 160
_NOTICEABLE = 0.1
"""Seconds; what was faster needs no mention of its time."""
_REASONS = 12
_SUBMITS = "Submit"
"""The tools with which a role hands in its result begin with it."""
_MARKS = {Style.GOOD: "✓ ", Style.DIM: "· ", Style.WARN: "! ", Style.BAD: "✗ "}
_FINE = (RunOutcome.SUBMITTED, RunOutcome.ANSWERED)
_USUAL = (Stop.END_TURN, Stop.TOOL_USE)
_PAST = {GateStatus.PASSED: "passed", GateStatus.FAILED: "failed", GateStatus.SKIPPED: "skipped"}


class Memory:
    """The facts that rows of later events need from earlier ones."""

    def __init__(self) -> None:
        self.subjects: dict[tuple[int, str], str] = {}
        """The subject of each running call."""
        self.model = ""
        """What `--model` calls the task's model."""
        self.subject = ""
        """The subject of the call that ended last."""
        self.phase: Phase | None = None
        self.reads_only = False
        self.shows_calls = False
        """Whether the log in short has each call, as for a person at a terminal."""
        self.results: dict[CheckName, str] = {}
        """The result of each check in this phase, in short."""
        self.failed: dict[CheckName, int] = {}
        """The number of failing tests before any change, by check."""


_TOLD_IN_SHORT = (
    *(
        events.Warned,
        events.RepairTried,
        events.Retried,
        events.PersonSaid,
        events.StepMerged,
        events.ProvingStarted,
        events.TaskUndone,
        events.TestRunsLong,
    ),
    events.ToolStarted,
)


@singledispatch
def list_rows(_event: object, _memory: Memory) -> tuple[Row, ...]:
    return ()


def list_brief_rows(event: events.Event, memory: Memory) -> tuple[Row, ...]:
    """Return what a person needs while a task runs: one row for each phase that ends, and warnings."""
    if isinstance(event, _TOLD_IN_SHORT):
        return list_rows(event, memory)
    if isinstance(event, events.ToolFinished):
        return _draw_call_in_short(event, memory)
    if isinstance(event, events.PhaseStarted):
        memory.phase = event.phase
        memory.results = {}
    if isinstance(event, events.Classified):
        memory.reads_only = Phase.IMPLEMENTATION not in event.steps
    if isinstance(event, events.EvidenceRecorded) and event.check and event.surface is event.code:
        memory.results.setdefault(event.check, _describe_check(event))  # later ones are of some tests alone
    if not isinstance(event, events.PhaseEnded) or event.status is GateStatus.SKIPPED or memory.reads_only:
        return ()
    return _draw_phase_in_short(event, memory)


def _draw_call_in_short(event: events.ToolFinished, memory: Memory) -> tuple[Row, ...]:
    subject = to_one_line(memory.subjects.pop((event.run, event.call_id), ""), _SUBJECT)
    if not memory.shows_calls or event.tool.startswith(_SUBMITS):
        return ()
    style = Style.WARN if event.is_error else Style.DIM
    about = span(f" {subject}" if subject else "", Style.ACCENT)
    result = span(f" {to_one_line(event.summary, _SUBJECT)}" if event.summary else "", style)
    return ((span("  ● ", style), span(event.tool), about, result),)


def _describe_check(event: events.EvidenceRecorded) -> str:
    if event.tests is None or event.timed_out:
        return "passes" if event.exit_code == 0 else to_one_line(event.summary)
    return describe_counts(event.tests) + (", flaky" if event.is_flaky else "")


def _split_message(event: events.PhaseEnded) -> list[str]:
    return [to_one_line(text.strip().removeprefix("- "), _SAID) for text in event.message.splitlines()]


def _draw_phase_in_short(event: events.PhaseEnded, memory: Memory) -> tuple[Row, ...]:
    checks = "; ".join(f"{name}: {shown}" for name, shown in memory.results.items())
    said = _split_message(event)
    is_failed, is_first = event.status is GateStatus.FAILED, event.phase is Phase.REFINEMENT
    told = said if is_failed or not checks else [checks]
    mark = span("· ", Style.DIM) if is_first and not is_failed else mark_gate(event.status)
    head = span("before the change" if is_first else str(event.phase), Style.BOLD)
    first = span(f": {told[0]}" if told and told[0] else "", Style.BAD if is_failed else Style.PLAIN)
    return ((mark, head, first),)


@list_rows.register
def _tell_start(event: events.TaskStarted, memory: Memory) -> tuple[Row, ...]:
    memory.model = event.model
    iterations = format_count(event.max_iterations, "iteration")
    limit = f"  model {event.model}, sandbox {event.sandbox}, at most {iterations}"
    return (
        (span("▸ ", Style.ACCENT), span(to_one_line(event.task, _SAID), Style.BOLD), span(limit, Style.DIM)),
    )


@list_rows.register
def _tell_class(event: events.Classified, _memory: Memory) -> tuple[Row, ...]:
    why = to_one_line("; ".join(list_reasons(event.reasons, event.ambiguities)), _SAID)
    return (
        (
            span("  ▸ ", Style.ACCENT),
            span(f"class {event.complexity}, route {event.route.replace('_', ' ')}"),
            span(f"  {why}", Style.DIM),
        ),
    )


@list_rows.register
def _tell_gates(event: events.GatesMerged, _memory: Memory) -> tuple[Row, ...]:
    return ((pass_mark(event.all_passed), span(event.summary, Style.DIM)),)


@list_rows.register
def _tell_proving(event: events.ProvingStarted, _memory: Memory) -> tuple[Row, ...]:
    said = f"{format_count(len(event.places), 'place')} no test notices"
    return ((span("▸ ", Style.ACCENT), span(f"proving round {event.round} of {event.rounds}: {said}")),)


@list_rows.register
def _tell_step(event: events.StepMerged, _memory: Memory) -> tuple[Row, ...]:
    if event.conflicts:
        said = f"step {event.step} goes back, another step changed {list_some(event.conflicts)}"
        return ((span("  ! ", Style.WARN), span(said, Style.WARN)),)
    said = f"step {event.step}: {to_one_line(event.title, _SAID)} ({list_some(event.files) or 'no file'})"
    return ((pass_mark(True), span(said, Style.DIM)),)


@list_rows.register
def _tell_request(event: events.IntentTold, _memory: Memory) -> tuple[Row, ...]:
    gaps = "; ".join(to_one_line(gap, _SAID) for gap in event.gaps) or "clear, nothing assumed"
    return ((span("  · ", Style.DIM), span(f"request: {gaps}", Style.DIM)),)


@list_rows.register
def _tell_phase(event: events.PhaseStarted, memory: Memory) -> tuple[Row, ...]:
    memory.phase = event.phase
    again = f"  iteration {event.iteration}" if event.iteration > 1 else ""
    return ((span("▸ ", Style.ACCENT), span(event.phase, Style.BOLD), span(again, Style.DIM)),)


@list_rows.register
def _tell_phase_end(event: events.PhaseEnded, memory: Memory) -> tuple[Row, ...]:
    said = _split_message(event)
    known = to_one_line(memory.subject, _SAID) if event.status is GateStatus.PASSED else ""
    said = [text for text in said if text not in {"", known}]
    style = Style.BAD if event.status is GateStatus.FAILED else Style.DIM
    head = f"{event.phase} {_PAST.get(event.status, event.status)}"
    words = [
        mark_gate(event.status),
        span(head, Style.BAD if event.status is GateStatus.FAILED else Style.PLAIN),
    ]
    if len(said) == 1:
        words.append(span(f": {said[0]}", style))
    words.append(_draw_seconds(event.seconds))
    listed = tuple((span("    - ", Style.DIM), span(text, style)) for text in said if len(said) > 1)
    rest = len(listed) - _REASONS
    more = ((span(f"    … and {rest} more", Style.DIM),),) if rest > 0 else ()
    return (tuple(words), *listed[:_REASONS], *more)


@list_rows.register
def _tell_run(event: events.RunStarted, memory: Memory) -> tuple[Row, ...]:
    agent = "" if event.agent == event.role else f" ({event.agent})"
    model = "" if is_offline(memory.model) else f"  {event.model}"
    angle = f": {event.angle}" if event.angle else ""
    return ((span("  ▸ ", Style.ACCENT), span(f"{event.role}{agent}{angle}"), span(model, Style.DIM)),)


@list_rows.register
def _tell_reply(event: events.Replied, _memory: Memory) -> tuple[Row, ...]:
    said = to_one_line(event.text, _SAID)
    rows: list[Row] = [(span("    “", Style.DIM), span(f"{said}”", Style.DIM))] if said else []
    if event.stop not in _USUAL:
        rows.append((span("    ! ", Style.WARN), span(f"the model stopped early: {event.stop}", Style.WARN)))
    return tuple(rows)


@list_rows.register
def _tell_first_try(event: events.RepairTried, _memory: Memory) -> tuple[Row, ...]:
    mark = span("  ✓ ", Style.GOOD) if event.found else span("  · ", Style.DIM)
    return (
        (
            mark,
            span("repair engine  ", Style.BOLD),
            span(to_one_line(event.account, _SAID)),
            _draw_seconds(event.seconds),
        ),
    )


@list_rows.register
def _tell_retry(event: events.Retried, _memory: Memory) -> tuple[Row, ...]:
    pause = f"in {format_duration(event.seconds)}" if event.seconds else "at once"
    again = f"try {event.attempt + 1} {pause}"
    then = f"continuing with {to_one_line(event.model)}" if event.model else again
    return ((span("    ! ", Style.WARN), span(f"{to_one_line(event.reason, _SAID)}; {then}", Style.WARN)),)


@list_rows.register
def _remember_call(event: events.ToolStarted, memory: Memory) -> tuple[Row, ...]:
    memory.subjects[event.run, event.call_id] = event.subject
    return ()


@list_rows.register
def _tell_call(event: events.ToolFinished, memory: Memory) -> tuple[Row, ...]:
    memory.subject = memory.subjects.pop((event.run, event.call_id), "")
    subject = to_one_line(memory.subject, _SUBJECT)
    mark = span("    ! ", Style.WARN) if event.is_error else span("    · ", Style.DIM)
    result = f"  {to_one_line(event.summary, _SUBJECT)}" if event.summary else ""
    said = span(result, Style.WARN if event.is_error else Style.DIM)
    about = span(f" {subject}" if subject else "", Style.ACCENT)
    return ((mark, span(event.tool), about, said, _draw_seconds(event.seconds)),)


@list_rows.register
def _tell_handoff(event: events.HandedOff, _memory: Memory) -> tuple[Row, ...]:
    hands = f"{to_one_line(event.source)} hands over to {to_one_line(event.to)}"
    return (
        (span("    ▸ ", Style.ACCENT), span(hands), span(f"  {to_one_line(event.reason, _SAID)}", Style.DIM)),
    )


@list_rows.register
def _tell_compaction(event: events.Compacted, _memory: Memory) -> tuple[Row, ...]:
    parts = (
        format_count(len(event.archived), "output") + " archived" if event.archived else "",
        format_count(event.replaced, "message") + " summarized" if event.replaced else "",
    )
    what = ", ".join(filter(None, parts)) or "long arguments shortened"
    size = f"  {what}: about {event.from_tokens:,} to {event.to_tokens:,} tokens"
    return ((span("    ▸ ", Style.DIM), span("history compacted"), span(size, Style.DIM)),)


@list_rows.register
def _tell_refusal(event: events.ToolBlocked, _memory: Memory) -> tuple[Row, ...]:
    refused = span(f"{event.tool} refused", Style.WARN)
    return ((span("    ! ", Style.WARN), refused, span(f"  {to_one_line(event.reason, _SAID)}")),)


@list_rows.register
def _tell_evidence(event: events.EvidenceRecorded, memory: Memory) -> tuple[Row, ...]:
    if event.check is None:
        return ()  # the tool call that made it is told
    style = _choose_style(event, memory)
    said, more = f"  {to_one_line(event.summary)}", f"  {format_duration(event.seconds)}  {event.evidence}"
    if is_without_change(event):
        said, more = f"  {_describe_proof(event)} ({event.evidence})", f"  {format_duration(event.seconds)}"
    else:
        start = ", before any change" if memory.phase is Phase.REFINEMENT else ""
        more += describe_sides(event.surface, event.code) or start
    return (
        (
            span("  "),
            span(_MARKS[style], style),
            span(f"{event.check}  ", Style.BOLD),
            span(to_one_line(format_command(event.command), _SUBJECT)),
            span(said, style),
            span(more, Style.DIM),
        ),
    )


def _describe_proof(event: events.EvidenceRecorded) -> str:
    if event.exit_code is None:
        return f"{to_one_line(event.summary)}, without the change"
    return "confirmed: fails without the change" if event.exit_code else "passes without the change: no proof"


def _choose_style(event: events.EvidenceRecorded, memory: Memory) -> Style:
    """Return the style of a check's outcome: red only for a new failure, which may fail the phase."""
    if event.check is None or event.exit_code == 0:
        return Style.WARN if is_without_change(event) else Style.GOOD
    if is_without_change(event):
        return Style.DIM
    if memory.phase is Phase.REFINEMENT:
        memory.failed[event.check] = event.failing
        return Style.DIM
    is_known = event.failing <= memory.failed.get(event.check, -1)
    return Style.WARN if is_known or event.surface is Side.BASE else Style.BAD


@list_rows.register
def _tell_probe(event: events.Probed, _memory: Memory) -> tuple[Row, ...]:
    style = Style.WARN if event.end is ProbeEnd.SILENT else Style.DIM
    about = to_one_line(", ".join(event.subjects) or str(event.check), _SUBJECT)
    end = describe_probe(event.end)
    said = f"probe {event.kind}  {about}{describe_sides(Side.FINAL, event.code)}  {end}"
    return ((span(f"    {_MARKS[style]}", style), span(said, style), _draw_seconds(event.seconds)),)


@list_rows.register
def _tell_run_end(event: events.RunEnded, _memory: Memory) -> tuple[Row, ...]:
    fine = event.outcome in _FINE
    work = f"  {format_count(event.turns, 'turn')}, {format_count(event.tool_calls, 'tool call')}"
    mark = span("  ✓ ", Style.GOOD) if fine else span("  ! ", Style.WARN)
    ended = span(f"{event.role} {event.outcome.replace('_', ' ')}", Style.PLAIN if fine else Style.WARN)
    return ((mark, ended, span(work + _describe_savings(event), Style.DIM), _draw_seconds(event.seconds)),)


def _describe_savings(event: events.RunEnded) -> str:
    """Return the tokens that a direct answer saved; they are not part of what was used."""
    if event.saved is None:
        return ""
    again, estimate = event.saved.tokens_not_resent, event.saved.synthesis_avoided
    return f", {format_count(again, 'token')} not sent again, about {estimate} not written again (estimate)"


@list_rows.register
def _tell_warning(event: events.Warned, _memory: Memory) -> tuple[Row, ...]:
    return ((span("! ", Style.WARN), span(to_one_line(event.message, _WARNING), Style.WARN)),)


@list_rows.register
def _tell_slow_test(event: events.TestRunsLong, _memory: Memory) -> tuple[Row, ...]:
    if not event.test:
        return ()
    side = describe_sides(event.surface, event.code)
    said = (
        f"{event.check}: {to_one_line(event.test, _SAID)} has run for {format_duration(event.seconds)}{side}"
    )
    return ((span("· ", Style.DIM), span(said)),)


@list_rows.register
def _tell_message(event: events.PersonSaid, _memory: Memory) -> tuple[Row, ...]:
    return ((span("  > ", Style.ACCENT), span(to_one_line(event.text, _SAID))),)


@list_rows.register
def _tell_end(event: events.TaskEnded, _memory: Memory) -> tuple[Row, ...]:
    reason = to_one_line(event.reason, _SAID)
    return (
        (
            mark_status(event.status),
            span(event.status.replace("_", " "), style_status(event.status)),
            span(f"  {reason}" if reason else ""),
            span(f"  exit {event.exit_code}", Style.DIM),
        ),
    )


@list_rows.register
def _tell_undo(event: events.TaskUndone, _memory: Memory) -> tuple[Row, ...]:
    count = len(event.restored) + len(event.removed)
    kept = f", kept: {', '.join(map(to_one_line, event.kept))}" if event.kept else ""
    said = span(f"undone (was: {event.was.replace('_', ' ')})", Style.WARN)
    return ((span("! ", Style.WARN), said, span(f"  {format_count(count, 'file')} put back{kept}")),)


def _draw_seconds(seconds: float) -> Span:
    return span(f"  {format_duration(seconds)}" if seconds >= _NOTICEABLE else "", Style.DIM)
