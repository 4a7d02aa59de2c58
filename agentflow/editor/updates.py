"""The events of a task as the updates that an editor shows: the plan, each call with its diff, each check."""

from collections.abc import Iterator
from pathlib import Path

from acp import helpers, schema

from agentflow.core.errors import AgentflowError
from agentflow.core.events import (
    CheckStarted,
    Classified,
    EvidenceRecorded,
    PhaseEnded,
    PhaseStarted,
    Replied,
    StoredEvent,
    ToolBlocked,
    ToolFinished,
    ToolStarted,
    Warned,
)
from agentflow.core.evidence import Side
from agentflow.core.messages import ToolCall
from agentflow.core.run import ReplyReceived, RunEntry, RunPaused
from agentflow.core.task import GateStatus, Phase
from agentflow.core.tool import Category, Effect, Subject, Tool
from agentflow.parse import decode
from agentflow.redact import make_visible
from agentflow.store.journal import read_numbered_lines
from agentflow.tools.registry import make_standard_toolbox

_REPLACES = ("old_string", "new_string")
_WRITES = "content"
"""The inputs in which a call says what goes and what comes."""


class Updates:
    """Turns the events of one task into updates; it knows where the route stands and which checks run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tools = {tool.name: tool for tool in make_standard_toolbox().tools}
        self._phases: dict[Phase, schema.PlanEntryStatus] = {}
        self._checks: dict[tuple[str, str, Side], str] = {}
        self.has_streamed = False

    def draw(self, stamped: StoredEvent, folder: Path) -> Iterator[helpers.SessionUpdate]:
        match stamped.event:
            case Classified() | PhaseStarted() | PhaseEnded() as event:
                yield self._draw_plan(event)
            case Replied() if self.has_streamed:
                self.has_streamed = False
            case Replied(text=said) | Warned(message=said) if said.strip():
                yield helpers.update_agent_message_text(f"{make_visible(said.strip())}\n\n")
            case ToolStarted() | ToolBlocked() as event:
                yield self._start_call(event, folder)
            case ToolFinished() as event:
                told = to_content(event.summary)
                yield helpers.update_tool_call(event.call_id, status=_to_status(event.is_error), content=told)
            case CheckStarted() as event:
                yield self._start_check(event)
            case EvidenceRecorded(check=str()) as event:
                yield self._end_check(event)
            case _:
                pass

    def _draw_plan(self, event: Classified | PhaseStarted | PhaseEnded) -> helpers.SessionUpdate:
        match event:
            case Classified(steps=steps):
                self._phases = {phase: self._phases.get(phase, "pending") for phase in steps}
            case PhaseStarted(phase=phase):
                self._phases[phase] = "in_progress"
            case PhaseEnded(phase=phase, status=GateStatus.PASSED | GateStatus.SKIPPED):
                self._phases[phase] = "completed"
            case PhaseEnded(phase=phase):
                self._phases[phase] = "pending"
        return helpers.update_plan(
            helpers.plan_entry(one.value, status=status) for one, status in self._phases.items()
        )

    def _start_call(self, event: ToolStarted | ToolBlocked, folder: Path) -> helpers.SessionUpdate:
        tool = self._tools.get(event.tool)
        if isinstance(event, ToolBlocked):
            return helpers.start_tool_call(
                event.call_id,
                event.tool,
                kind=_choose_kind(tool),
                status="failed",
                content=to_content(event.reason),
            )
        subject = make_visible(event.subject)
        is_file = tool is not None and tool.rule_subject is Subject.PATH
        place = str(self._root / event.subject)
        return helpers.start_tool_call(
            event.call_id,
            f"{event.tool} {subject}".strip(),
            kind=_choose_kind(tool),
            status="in_progress",
            content=self._draw_edit(event, folder) if _choose_kind(tool) == "edit" else None,
            locations=[schema.ToolCallLocation(path=place)] if is_file and event.subject else None,
        )

    def _draw_edit(self, event: ToolStarted, folder: Path) -> list[helpers.ToolCallContentVariant]:
        call = _find_call(folder, event.run, event.call_id)
        said = {key: value for key, value in (call.input if call else {}).items() if isinstance(value, str)}
        old, new = (said.get(name) for name in _REPLACES)
        new = said.get(_WRITES) if new is None else new
        if new is None:
            return []
        place = str(self._root / event.subject)
        return [
            helpers.tool_diff_content(place, make_visible(new), None if old is None else make_visible(old))
        ]

    def _start_check(self, event: CheckStarted) -> helpers.SessionUpdate:
        call_id = f"check-{len(self._checks) + 1}"
        self._checks[event.check, event.command, event.code] = call_id
        before = " before the change" if event.code is Side.BASE else ""
        title = f"{event.check}{before}: {make_visible(event.command)}"
        return helpers.start_tool_call(call_id, title, kind="execute", status="in_progress")

    def _end_check(self, event: EvidenceRecorded) -> helpers.SessionUpdate:
        key = (event.check or "", event.command, event.code)
        told = to_content(f"{event.evidence}: {event.summary}")
        status = _to_status(event.exit_code != 0)
        if call_id := self._checks.get(key):
            return helpers.update_tool_call(call_id, status=status, content=told)
        title = f"{event.check}: {make_visible(event.command)}"
        return helpers.start_tool_call(event.evidence, title, kind="execute", status=status, content=told)


def _choose_kind(tool: Tool | None) -> schema.ToolKind:
    if tool is None or tool.category in (Category.STATE, Category.ASK, Category.AGENT):
        return "other" if tool is None else "think"
    if tool.category is Category.NET:
        return "fetch"
    match tool.effect:
        case Effect.EXECUTE:
            return "execute"
        case Effect.WRITE:
            return "edit"
        case Effect.READ:
            return "read" if tool.rule_subject is Subject.PATH else "search"


def _to_status(is_error: bool) -> schema.ToolCallStatus:
    return "failed" if is_error else "completed"


def to_content(text: str) -> list[helpers.ToolCallContentVariant] | None:
    return [helpers.tool_content(helpers.text_block(make_visible(text)))] if text else None


def find_waiting_call(folder: Path, pending_id: str) -> str | None:
    """Return the id of the call that a pending item is about; None where it is about no call."""
    found = None
    for entry in _read_entries(folder, "*.jsonl", b'"RunPaused"'):
        if isinstance(entry, RunPaused) and entry.pending.id == pending_id and not entry.inside:
            found = entry.call_id
    return found


def _find_call(folder: Path, run: int, call_id: str) -> ToolCall | None:
    try:
        for entry in _read_entries(folder, f"{run}-*.jsonl", b'"ReplyReceived"', call_id.encode()):
            parts = entry.reply.parts if isinstance(entry, ReplyReceived) else ()
            calls = (part for part in parts if isinstance(part, ToolCall))
            return next((call for call in calls if call.id == call_id), None)
    except (OSError, AgentflowError):
        pass  # the call is shown without its diff
    return None


def _read_entries(folder: Path, names: str, *signs: bytes) -> Iterator[RunEntry]:
    for path in (folder / "runs").glob(names):
        for number, line in read_numbered_lines(path):
            if all(sign in line for sign in signs):
                yield decode(RunEntry, line, f"{path}:{number}")  # type: ignore[arg-type]
