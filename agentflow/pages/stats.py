"""Numbers over all tasks of a repository: results, cost and time, by week and by route."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from agentflow.core import events
from agentflow.core.errors import CorruptState
from agentflow.core.messages import Usage, sum_usage
from agentflow.core.record import Record
from agentflow.core.task import Status
from agentflow.redact import format_count
from agentflow.store.journal import read_numbered_lines
from agentflow.store.reading import EVENTS, TASKS, list_tasks, parse_event

_READ = (
    events.TaskStarted,
    events.Classified,
    events.RunStarted,
    events.ToolStarted,
    events.ToolBlocked,
    events.Replied,
    events.Compacted,
    events.TaskEnded,
)
"""The events that say something here; of all others only the type is looked at."""
_IS_READ = re.compile(
    rb'\{"seq":\d+,"at":"[^"]*","type":"(?:%s)"' % b"|".join(kind.__name__.encode() for kind in _READ)
)
_DAY = len("20260102")
_MANY_ATTEMPTS = (1.5, 2.5)
_MANY_REFUSALS = (0.3, 0.5)


class ResultKind(StrEnum):
    VERIFIED = "verified"
    CAVEAT = "with caveat"
    ANSWERED = "answered"
    NOT_VERIFIED = "not verified"
    OPEN = "open"
    """It waits, was stopped, or is at work."""


_RESULT_KINDS: Mapping[Status | None, ResultKind] = {
    Status.VERIFIED: ResultKind.VERIFIED,
    Status.VERIFIED_WITH_CAVEAT: ResultKind.CAVEAT,
    Status.ANSWERED: ResultKind.ANSWERED,
    **dict.fromkeys((Status.FAILED, Status.LIMIT, Status.TAMPERED), ResultKind.NOT_VERIFIED),
    **dict.fromkeys((Status.BLOCKED, Status.ERROR), ResultKind.NOT_VERIFIED),
}


class TaskNumbers(Record):
    task_id: str
    week: str
    """The Monday of the week in which it began, such as `2026-01-05`."""
    route: str
    came: ResultKind
    attempts: int
    runs: int
    calls: Mapping[str, int]
    refused: int
    overreach: int
    usage: Usage
    seconds: float
    changes: bool


class Numbers(Record):
    name: str
    tasks: int
    came: Mapping[ResultKind, int]
    attempts: int
    runs: int
    tokens: int
    cost_usd: float | None
    """Of the tasks whose cost is known; None where none is."""
    unpriced: int
    seconds: float


class Stats(Record):
    total: Numbers
    weeks: tuple[Numbers, ...]
    routes: tuple[Numbers, ...]
    tools: Mapping[str, int]
    refused: int
    notes: tuple[str, ...]
    unreadable: tuple[str, ...]


def read_stats(homes: Iterable[Path]) -> Stats:
    found, unreadable = list[TaskNumbers](), list[str]()
    for folder in (home / TASKS / name for home in homes for name in list_tasks(home)):
        try:
            found.append(_read_task(folder))
        except (CorruptState, OSError):
            unreadable.append(folder.name)
    calls = sum((Counter(one.calls) for one in found), Counter[str]())
    weeks, routes = {one.week for one in found}, Counter(one.route for one in found)
    return Stats(
        total=_add_up("all", found),
        weeks=tuple(_add_up(week, [one for one in found if one.week == week]) for week in _fill(weeks)),
        routes=tuple(
            _add_up(route, [one for one in found if one.route == route])
            for route, _ in sorted(routes.items(), key=lambda each: (-each[1], each[0]))
        ),
        tools=dict(calls.most_common()),
        refused=sum(one.refused for one in found),
        notes=tuple(_note(found, calls.total())),
        unreadable=tuple(unreadable),
    )


def _read_task(folder: Path) -> TaskNumbers:
    route, status, attempts, runs = "", None, 1, 0
    calls, refused, overreach, seconds = Counter[str](), 0, 0, 0.0
    used, changes = list[Usage](), False
    path = folder / EVENTS
    lines = ((number, line) for number, line in read_numbered_lines(path) if _IS_READ.match(line))
    for stamped in filter(None, (parse_event(line, f"{path}:{number}") for number, line in lines)):
        match event := stamped.event:
            case events.Classified():
                route = event.route
            case events.RunStarted():
                runs, attempts = runs + 1, max(attempts, event.iteration)
                changes |= event.role == "implementer"
            case events.ToolStarted():
                calls[event.tool] += 1
            case events.ToolBlocked():
                refused, overreach = refused + 1, overreach + (event.owner is not None)
            case events.Replied() | events.Compacted():
                used.append(event.usage)
            case events.TaskEnded():
                status, seconds = event.status, seconds + (event.seconds or 0)
            case _:
                pass
    day = datetime.strptime(folder.name[:_DAY], "%Y%m%d").date()  # noqa: DTZ007  # a day has no zone
    return TaskNumbers(
        task_id=folder.name,
        week=(day - timedelta(days=day.weekday())).isoformat(),
        route=route.replace("_", " ") or "none",
        came=_RESULT_KINDS.get(status, ResultKind.OPEN),
        attempts=attempts,
        runs=runs,
        calls=calls,
        refused=refused,
        overreach=overreach,
        usage=sum_usage(used) if used else Usage(cost_usd=0.0),
        seconds=round(seconds, 3),
        changes=changes,
    )


def _fill(weeks: Iterable[str]) -> Iterator[str]:
    known = sorted(datetime.fromisoformat(week) for week in weeks)
    now = known[0] if known else None
    while now is not None and now <= known[-1]:
        yield now.date().isoformat()
        now += timedelta(days=7)


def _add_up(name: str, found: list[TaskNumbers]) -> Numbers:
    counts = Counter(one.came for one in found)
    costs = [one.usage.cost_usd for one in found if one.usage.cost_usd is not None]
    return Numbers(
        name=name,
        tasks=len(found),
        came={came: counts[came] for came in ResultKind},
        attempts=sum(one.attempts for one in found),
        runs=sum(one.runs for one in found),
        tokens=sum(one.usage.tokens for one in found),
        cost_usd=round(sum(costs), 6) if costs else None,
        unpriced=len(found) - len(costs),
        seconds=round(sum(one.seconds for one in found), 3),
    )


def _note(found: list[TaskNumbers], calls: int) -> Iterator[str]:
    changing = [one for one in found if one.changes]
    rate = sum(one.attempts for one in changing) / len(changing) if changing else 0
    if level := _judge(rate, _MANY_ATTEMPTS):
        yield f"{level}: {rate:.1f} attempts a task, more than {_MANY_ATTEMPTS[0]}"
    refused = sum(one.refused for one in found)
    share = refused / (calls + refused) if calls + refused else 0
    if level := _judge(share, _MANY_REFUSALS):
        yield f"{level}: {share:.0%} of the tool calls were refused, more than {_MANY_REFUSALS[0]:.0%}"
    if overreach := sum(one.overreach for one in found):
        yield f"look: {format_count(overreach, 'refused call')} of a tool that another role has"


def _judge(number: float, limits: tuple[float, float]) -> str:
    low, high = limits
    if number <= low:
        return ""
    return "act" if number > high else "look"
