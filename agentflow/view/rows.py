"""One event as the rows of a log, in full or in short."""

from collections.abc import Iterable, Iterator
from functools import singledispatch

from agentflow.core import events
from agentflow.core.check_command import format_command
from agentflow.core.evidence import CheckName, Side, describe_counts
from agentflow.core.messages import Stop
from agentflow.core.run import RunOutcome
from agentflow.core.task import GateStatus, Phase
from agentflow.core.verdict import ProbeEnd
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
    tell_approvals_left,
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


class Memory:
    """The facts that rows of later events need from earlier ones."""

    def __init__(self) -> None:
        self.subjects: dict[tuple[int, str], str] = {}
        self.model = ""
        self.subject = ""
        self.phase: Phase | None = None
        self.reads_only = False
        self.shows_calls = False
        """Whether the log in short has each call, as for a person at a terminal."""
        self.results: dict[CheckName, str] = {}
        self.failed: dict[CheckName, int] = {}


_TOLD_IN_SHORT = (
    *(events.Warned, events.RepairTried, events.Retried, events.PersonSaid, events.StepMerged),
    *(events.ProvingStarted, events.TaskUndone, events.TestRunsLong, events.ToolStarted),
    events.MemoryRecalled,
)


@singledispatch
def list_rows(_event: object, _memory: Memory) -> Iterable[Row]:
    return ()


def list_brief_rows(event: events.Event, memory: Memory) -> Iterable[Row]:
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


def _describe_check(event: events.EvidenceRecorded) -> str:
    if event.tests is None or event.timed_out:
        return "passes" if event.exit_code == 0 else to_one_line(event.summary)
    return describe_counts(event.tests) + (", flaky" if event.is_flaky else "")


def _draw_call_in_short(event: events.ToolFinished, memory: Memory) -> Iterator[Row]:
    subject = to_one_line(memory.subjects.pop((event.run, event.call_id), ""), _SUBJECT)
    if not memory.shows_calls or event.tool.startswith(_SUBMITS):
        return
    style = Style.WARN if event.is_error else Style.DIM
    about = span(f" {subject}" if subject else "", Style.ACCENT)
    result = f" {to_one_line(event.summary, _SUBJECT)}" if event.summary else ""
    yield span("  ● ", style), span(event.tool), about, span(result, style)


def _split_message(event: events.PhaseEnded) -> list[str]:
    return [to_one_line(text.strip().removeprefix("- "), _SAID) for text in event.message.splitlines()]


def _draw_phase_in_short(event: events.PhaseEnded, memory: Memory) -> Iterator[Row]:
    checks = "; ".join(f"{name}: {shown}" for name, shown in memory.results.items())
    is_failed, is_first = event.status is GateStatus.FAILED, event.phase is Phase.REFINEMENT
    # the reviewer works beside the checks, and says something else than they do
    says_itself = is_failed or not checks or event.phase is Phase.REVIEW
    told = _split_message(event) if says_itself else [checks]
    mark = span("· ", Style.DIM) if is_first and not is_failed else mark_gate(event.status)
    head = span("before the change" if is_first else str(event.phase), Style.BOLD)
    first = f": {told[0]}" if told and told[0] else ""
    yield mark, head, span(first, Style.BAD if is_failed else Style.PLAIN)


@list_rows.register
def _tell_task(
    event: events.TaskStarted | events.Classified | events.IntentTold | events.TaskEnded | events.TaskUndone,
    memory: Memory,
) -> Iterator[Row]:
    match event:
        case events.TaskStarted():
            memory.model = event.model
            iterations = format_count(event.max_iterations, "iteration")
            limit = f"  model {event.model}, sandbox {event.sandbox}, at most {iterations}"
            text = span(to_one_line(event.task, _SAID), Style.BOLD)
            yield span("▸ ", Style.ACCENT), text, span(limit, Style.DIM)
        case events.Classified():
            why = to_one_line("; ".join(list_reasons(event.reasons, event.ambiguities)), _SAID)
            found = f"class {event.complexity}, route {event.route.replace('_', ' ')}"
            yield span("  ▸ ", Style.ACCENT), span(found), span(f"  {why}", Style.DIM)
        case events.IntentTold():
            gaps = "; ".join(to_one_line(gap, _SAID) for gap in event.gaps) or "clear, nothing assumed"
            yield span("  · ", Style.DIM), span(f"request: {gaps}", Style.DIM)
        case events.TaskEnded():
            reason = to_one_line(event.reason, _SAID)
            status = span(event.status.replace("_", " "), style_status(event.status))
            code = span(f"  exit {event.exit_code}", Style.DIM)
            yield mark_status(event.status), status, span(f"  {reason}" if reason else ""), code
        case events.TaskUndone():
            count = format_count(len(event.restored) + len(event.removed), "file")
            kept = f", kept: {', '.join(map(to_one_line, event.kept))}" if event.kept else ""
            undone = span(f"undone (was: {event.was.replace('_', ' ')})", Style.WARN)
            yield span("! ", Style.WARN), undone, span(f"  {count} put back{kept}")


@list_rows.register
def _tell_phase(
    event: events.PhaseStarted | events.GatesMerged | events.ProvingStarted | events.StepMerged,
    memory: Memory,
) -> Iterator[Row]:
    match event:
        case events.PhaseStarted():
            memory.phase = event.phase
            again = f"  iteration {event.iteration}" if event.iteration > 1 else ""
            yield span("▸ ", Style.ACCENT), span(event.phase, Style.BOLD), span(again, Style.DIM)
        case events.GatesMerged():
            yield pass_mark(event.all_passed), span(event.summary, Style.DIM)
        case events.ProvingStarted():
            places = f"{format_count(len(event.places), 'place')} no test notices"
            yield span("▸ ", Style.ACCENT), span(f"proving round {event.round} of {event.rounds}: {places}")
        case events.StepMerged() if event.conflicts:
            back = f"step {event.step} goes back, another step changed {list_some(event.conflicts)}"
            yield span("  ! ", Style.WARN), span(back, Style.WARN)
        case events.StepMerged():
            files = list_some(event.files) or "no file"
            done = f"step {event.step}: {to_one_line(event.title, _SAID)} ({files})"
            yield pass_mark(True), span(done, Style.DIM)


@list_rows.register
def _tell_phase_end(event: events.PhaseEnded, memory: Memory) -> Iterator[Row]:
    is_failed = event.status is GateStatus.FAILED
    known = to_one_line(memory.subject, _SAID) if event.status is GateStatus.PASSED else ""
    reasons = [text for text in _split_message(event) if text not in {"", known}]
    style = Style.BAD if is_failed else Style.DIM
    head = f"{event.phase} {event.status}"
    only = (span(f": {reasons.pop()}", style),) if len(reasons) == 1 else ()
    title = span(head, Style.BAD if is_failed else Style.PLAIN)
    yield mark_gate(event.status), title, *only, _draw_seconds(event.seconds)
    for reason in reasons[:_REASONS]:
        yield span("    - ", Style.DIM), span(reason, style)
    if len(reasons) > _REASONS:
        yield (span(f"    … and {len(reasons) - _REASONS} more", Style.DIM),)


@list_rows.register
def _tell_run(
    event: events.RunStarted | events.RunEnded | events.HandedOff | events.Compacted, memory: Memory
) -> Iterator[Row]:
    match event:
        case events.RunStarted():
            agent = "" if event.agent == event.role else f" ({event.agent})"
            model = "" if is_offline(memory.model) else f"  {event.model}"
            angle = f": {event.angle}" if event.angle else ""
            yield span("  ▸ ", Style.ACCENT), span(f"{event.role}{agent}{angle}"), span(model, Style.DIM)
        case events.RunEnded():
            is_fine = event.outcome in _FINE
            work = f"  {format_count(event.turns, 'turn')}, {format_count(event.tool_calls, 'tool call')}"
            mark = span("  ✓ ", Style.GOOD) if is_fine else span("  ! ", Style.WARN)
            words = f"{event.role} {event.outcome.replace('_', ' ')}"
            ended = span(words, Style.PLAIN if is_fine else Style.WARN)
            if event.saved is not None:  # by a direct answer; it is no part of what was used
                again = format_count(event.saved.tokens_not_resent, "token")
                estimate = event.saved.synthesis_avoided
                work += f", {again} not sent again, about {estimate} not written again (estimate)"
            yield mark, ended, span(work, Style.DIM), _draw_seconds(event.seconds)
        case events.HandedOff():
            hands = f"{to_one_line(event.source)} hands over to {to_one_line(event.to)}"
            why = span(f"  {to_one_line(event.reason, _SAID)}", Style.DIM)
            yield span("    ▸ ", Style.ACCENT), span(hands), why
        case events.Compacted():
            parts = (
                format_count(len(event.archived), "output") + " archived" if event.archived else "",
                format_count(event.replaced, "message") + " summarized" if event.replaced else "",
            )
            what = ", ".join(filter(None, parts)) or "long arguments shortened"
            size = f"  {what}: about {event.from_tokens:,} to {event.to_tokens:,} tokens"
            yield span("    ▸ ", Style.DIM), span("history compacted"), span(size, Style.DIM)


@list_rows.register
def _tell_turn(event: events.Replied | events.Retried | events.RepairTried, _memory: Memory) -> Iterator[Row]:
    match event:
        case events.Replied():
            if text := to_one_line(event.text, _SAID):
                yield span("    “", Style.DIM), span(f"{text}”", Style.DIM)
            if event.stop not in _USUAL:
                early = f"the model stopped early: {event.stop}"
                yield span("    ! ", Style.WARN), span(early, Style.WARN)
        case events.Retried():
            pause = f"in {format_duration(event.seconds)}" if event.seconds else "at once"
            again = f"try {event.attempt + 1} {pause}"
            then = f"continuing with {to_one_line(event.model)}" if event.model else again
            why = to_one_line(event.reason, _SAID)
            yield span("    ! ", Style.WARN), span(f"{why}; {then}", Style.WARN)
        case events.RepairTried():
            mark = span("  ✓ ", Style.GOOD) if event.found else span("  · ", Style.DIM)
            account = span(to_one_line(event.account.partition("\n")[0].removesuffix(":"), _SAID))
            yield mark, span("repair engine  ", Style.BOLD), account, _draw_seconds(event.seconds)


@list_rows.register
def _remember_call(event: events.ToolStarted, memory: Memory) -> tuple[Row, ...]:
    memory.subjects[event.run, event.call_id] = event.subject
    return ()


@list_rows.register
def _tell_call(event: events.ToolFinished | events.ToolBlocked, memory: Memory) -> Iterator[Row]:
    if isinstance(event, events.ToolBlocked):
        refused, why = span(f"{event.tool} refused", Style.WARN), to_one_line(event.reason, _SAID)
        yield span("    ! ", Style.WARN), refused, span(f"  {why}")
        return
    memory.subject = memory.subjects.pop((event.run, event.call_id), "")
    subject = to_one_line(memory.subject, _SUBJECT)
    style = Style.WARN if event.is_error else Style.DIM
    mark = span("    ! " if event.is_error else "    · ", style)
    result = span(f"  {to_one_line(event.summary, _SUBJECT)}" if event.summary else "", style)
    about = span(f" {subject}" if subject else "", Style.ACCENT)
    yield mark, span(event.tool), about, result, _draw_seconds(event.seconds)


@list_rows.register
def _tell_evidence(event: events.EvidenceRecorded, memory: Memory) -> Iterator[Row]:
    if event.check is None:
        return  # the tool call that made it is told
    style = _choose_style(event, event.check, memory)
    result, more = f"  {to_one_line(event.summary)}", f"  {format_duration(event.seconds)}"
    if is_without_change(event):
        proof = "confirmed: fails without the change"
        if event.exit_code is None:
            proof = f"{to_one_line(event.summary)}, without the change"
        elif event.exit_code == 0:
            proof = "passes without the change: no proof"
        result = f"  {proof} ({event.evidence})"
    else:
        start = ", before any change" if memory.phase is Phase.REFINEMENT else ""
        more += f"  {event.evidence}{describe_sides(event.surface, event.code) or start}"
    command = span(to_one_line(format_command(event.command), _SUBJECT))
    mark, name = span(_MARKS[style], style), span(f"{event.check}  ", Style.BOLD)
    yield span("  "), mark, name, command, span(result, style), span(more, Style.DIM)


def _choose_style(event: events.EvidenceRecorded, check: CheckName, memory: Memory) -> Style:
    """Return the style of a check's outcome: red only for a new failure, which may fail the phase."""
    if event.exit_code == 0:
        return Style.WARN if is_without_change(event) else Style.GOOD
    if is_without_change(event):
        return Style.DIM
    if memory.phase is Phase.REFINEMENT:
        memory.failed[check] = event.failing
        return Style.DIM
    is_known = event.failing <= memory.failed.get(check, -1)
    return Style.WARN if is_known or event.surface is Side.BASE else Style.BAD


@list_rows.register
def _tell_notice(
    event: events.Probed | events.Warned | events.TestRunsLong | events.MemoryRecalled, _memory: Memory
) -> Iterator[Row]:
    match event:
        case events.Probed():
            style = Style.WARN if event.end is ProbeEnd.SILENT else Style.DIM
            about = to_one_line(", ".join(event.subjects) or str(event.check), _SUBJECT)
            side = describe_sides(Side.FINAL, event.code)
            text = span(f"probe {event.kind}  {about}{side}  {event.end.words}", style)
            yield span(f"    {_MARKS[style]}", style), text, _draw_seconds(event.seconds)
        case events.Warned():
            yield span("! ", Style.WARN), span(to_one_line(event.message, _WARNING), Style.WARN)
        case events.TestRunsLong() if event.test:
            took = f"{format_duration(event.seconds)}{describe_sides(event.surface, event.code)}"
            text = span(f"{event.check}: {to_one_line(event.test, _SAID)} has run for {took}")
            yield span("· ", Style.DIM), text
        case events.MemoryRecalled():
            counts = {"learning": event.learnings, "earlier task": event.tasks, "message": event.messages}
            told = ", ".join(format_count(count, noun) for noun, count in counts.items() if count)
            yield span("· ", Style.DIM), span(f"recalled {told}", Style.DIM)
        case _:
            pass


@list_rows.register
def _tell_person(event: events.PersonSaid | events.Answered, _memory: Memory) -> Iterator[Row]:
    if isinstance(event, events.PersonSaid):
        said = to_one_line(event.text, _SAID)
    else:
        by = f" by {to_one_line(event.by, _SAID)}" if event.by else ""
        left = f"; {tell_approvals_left(event.left)}" if event.left else ""
        said = f"{event.pending} {'approved' if event.approved else 'denied'}{by}{left}"
    yield span("  > ", Style.ACCENT), span(said)


def _draw_seconds(seconds: float) -> Span:
    return span(f"  {format_duration(seconds)}" if seconds >= _NOTICEABLE else "", Style.DIM)
