"""Events folded into runs, turns and calls, and into the usage over time."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum

from agentflow.core.events import (
    Asked,
    Compacted,
    PersonSaid,
    PhaseEnded,
    PhaseStarted,
    Replied,
    Retried,
    RunEnded,
    RunStarted,
    StoredEvent,
    TaskEnded,
    ToolBlocked,
    ToolFinished,
    ToolStarted,
)
from agentflow.core.messages import Usage
from agentflow.core.record import Record, copy_shared
from agentflow.core.run import RunOutcome


class CallEnd(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


class CallView(Record):
    id: str
    tool: str
    subject: str
    end: CallEnd
    result: str = ""
    seconds: float | None = None


class TurnView(Record):
    """One reply of a model, with the calls it asked for."""

    run: int
    number: int
    text: str = ""
    usage: Usage | None = None
    """None while the model is asked."""
    seconds: float = 0
    call_count: int = 0
    """The calls of the reply, including those that wait for a person."""
    calls: tuple[CallView, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person said before it, and why a request was sent again."""


class RunView(Record):
    number: int
    role: str
    agent: str
    model: str
    iteration: int
    angle: str = ""
    parent: int | None = None
    outcome: RunOutcome | None = None
    """None while it goes on, or where its process was ended."""
    usage: Usage = Usage()
    seconds: float = 0
    turns: tuple[TurnView, ...] = ()


def fold_runs(happened: Iterable[StoredEvent]) -> tuple[RunView, ...]:
    runs: dict[int, RunView] = {}
    for one in happened:
        event = one.event
        if isinstance(event, RunStarted):
            earlier = runs[event.run].turns if event.run in runs else ()  # of a run that was resumed
            known = copy_shared(event, RunView)
            runs[event.run] = RunView(number=event.run, parent=one.parent, turns=earlier, **known)
        elif isinstance(event, RunEnded) and event.run in runs:
            ended = runs[event.run].replace(outcome=event.outcome, usage=event.usage, seconds=event.seconds)
            runs[event.run] = ended
        elif isinstance(event, _OfTurn) and event.run in runs:
            run = runs[event.run]
            turn = _open_turn(run, event)
            others = (one for one in run.turns if one.number != turn.number)
            runs[event.run] = run.replace(turns=(*others, turn))
    return tuple(runs.values())


_OfTurn = Asked | Replied | ToolStarted | ToolFinished | ToolBlocked | PersonSaid | Retried


def _open_turn(run: RunView, event: _OfTurn) -> TurnView:
    newest = run.turns[-1].number if run.turns else 0
    number = {PersonSaid: newest + 1, Retried: max(newest, 1)}.get(type(event), getattr(event, "turn", 0))
    number = number or max(newest, 1)
    known = TurnView(run=run.number, number=number)
    turn = next((one for one in run.turns if one.number == number), known)
    match event:
        case Replied():
            return turn.replace(
                text=event.text, usage=event.usage, seconds=event.seconds, call_count=event.calls
            )
        case PersonSaid():
            return turn.replace(notes=(*turn.notes, f"You: {event.text}"))
        case Retried():
            return turn.replace(
                notes=(*turn.notes, f"Asked again, try {event.attempt} failed: {event.reason}")
            )
        case ToolStarted() | ToolFinished() | ToolBlocked():
            return turn.replace(calls=_put_call(turn.calls, event))
        case Asked():
            return turn


def _put_call(
    calls: tuple[CallView, ...], event: ToolStarted | ToolFinished | ToolBlocked
) -> tuple[CallView, ...]:
    known = {call.id: call for call in calls}
    new = CallView(id=event.call_id, tool=event.tool, subject="", end=CallEnd.RUNNING)
    call = known.get(event.call_id, new)
    match event:
        case ToolStarted():
            call = call.replace(subject=event.subject)
        case ToolFinished():
            end = CallEnd.FAILED if event.is_error else CallEnd.DONE
            call = call.replace(end=end, result=event.summary, seconds=event.seconds)
        case ToolBlocked():
            call = call.replace(end=CallEnd.REFUSED, result=event.reason)
    return tuple({**known, call.id: call}.values())


class UsagePoint(Record):
    seconds: float
    """Of work since it began; the time in which it waited for a person does not count."""
    tokens: int
    cost: float | None


class Course(Record):
    """The usage of a task over time, and by phase."""

    seconds: float = 0
    used: tuple[UsagePoint, ...] = ()
    phases: Mapping[str, float] = {}
    """The seconds of each, of all its iterations."""


def follow_course(happened: Iterable[StoredEvent]) -> Course:
    used, begun = [UsagePoint(seconds=0, tokens=0, cost=0.0)], dict[str, float]()
    spent: dict[str, float] = {}
    now = 0.0
    for now, one in _clock(happened):
        match one.event:
            case Replied(usage=usage) | Compacted(usage=usage) if usage.tokens or usage.cost_usd:
                last = used[-1]
                is_known = last.cost is not None and usage.cost_usd is not None
                cost = (last.cost or 0) + (usage.cost_usd or 0) if is_known else None
                used.append(UsagePoint(seconds=now, tokens=last.tokens + usage.tokens, cost=cost))
            case PhaseStarted(phase=phase):
                begun[phase] = now
            case PhaseEnded(phase=phase) if phase in begun:
                spent[phase] = spent.get(phase, 0) + now - begun.pop(phase)
            case _:
                pass
    for open_phase, start in begun.items():
        spent[open_phase] = spent.get(open_phase, 0) + now - start
    return Course(seconds=now, used=tuple(used), phases=spent)


def _clock(happened: Iterable[StoredEvent]) -> Iterator[tuple[float, StoredEvent]]:
    now, last, is_over = 0.0, None, False
    for one in happened:
        try:
            at = datetime.fromisoformat(one.at)
            now += max(0.0, (at - last).total_seconds()) if last and not is_over else 0.0
            last = at
        except (TypeError, ValueError):
            pass  # a time that nobody can read takes none
        is_over = isinstance(one.event, TaskEnded)
        yield now, one
