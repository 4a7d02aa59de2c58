"""The geometry of the pictures: a task's route with where it stands, and plots of numbers over time."""

import math
from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate, chain, pairwise, product

from agentflow.core.record import Record
from agentflow.core.task import GateStatus, Phase, Status, TaskState
from agentflow.pages.page import Course
from agentflow.pages.stats import Numbers, ResultKind, Stats
from agentflow.routing.route import JUDGING

_BOX = 138
_HEIGHT = 46
_GAP = 30
_TOP = 34
"""Above the boxes, where the arrow of a new iteration runs."""
_STEPS_OF_A_SCALE = (1, 2, 2.5, 5, 10)


class Stand(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOW = "now"
    WAITS = "waits"
    STOPPED = "stopped"
    TO_COME = "to come"
    SKIPPED = "left out"


class PhaseBox(Record):
    phase: str
    stand: Stand
    x: int
    y: int
    seconds: float | None
    width: int = _BOX
    height: int = _HEIGHT


class RoutePicture(Record):
    width: int
    height: int
    boxes: tuple[PhaseBox, ...]
    lines: tuple[str, ...]
    """Each the `d` of an SVG path."""
    again: str
    """The path from the judges back to the implementation; empty where there is none."""
    again_x: int


def draw_route(state: TaskState, course: Course, *, at_work: bool) -> RoutePicture:
    columns = _arrange_columns(state)
    rows = max(map(len, columns))
    above = _TOP if state.iteration > 1 else 6
    height = above + rows * _HEIGHT + (rows - 1) * 14 + 6
    placed: list[list[PhaseBox]] = []
    for number, column in enumerate(columns):
        whole = len(column) * _HEIGHT + (len(column) - 1) * 14
        top = above + (height - above - 6 - whole) // 2
        x = 4 + number * (_BOX + _GAP)
        boxes = list[PhaseBox]()
        for at, phase in enumerate(column):
            stand, spent = _find_stand(state, phase, at_work=at_work), course.phases.get(phase)
            boxes.append(PhaseBox(phase=phase, stand=stand, x=x, y=top + at * (_HEIGHT + 14), seconds=spent))
        placed.append(boxes)
    lines = list[str]()
    for left, right in chain.from_iterable(product(one, two) for one, two in pairwise(placed)):
        x, y = left.x + left.width, left.y + left.height // 2
        to_x, to_y = right.x, right.y + right.height // 2
        lines.append(f"M{x} {y} C{(x + to_x) // 2} {y} {(x + to_x) // 2} {to_y} {to_x} {to_y}")
    again, again_x = _draw_return(placed) if state.iteration > 1 else ("", 0)
    return RoutePicture(
        width=8 + len(columns) * _BOX + (len(columns) - 1) * _GAP,
        height=height,
        boxes=tuple(box for column in placed for box in column),
        lines=tuple(lines),
        again=again,
        again_x=again_x,
    )


def _arrange_columns(state: TaskState) -> list[list[Phase]]:
    known = {Phase.REFINEMENT, *state.routing.steps, *state.gates} - {Phase.COMPLETE}
    route = [phase for phase in Phase if phase in known]
    skipped = [phase for phase in JUDGING if state.get_gate(phase).status is GateStatus.SKIPPED]
    if known.issuperset(JUDGING) and not skipped and not state.options.sequential:
        return [*([phase] for phase in route if phase not in JUDGING), list(JUDGING)]
    left_out = skipped if state.iteration > 1 or state.ending else []
    return [[phase] for phase in route if phase not in left_out]


def _find_stand(state: TaskState, phase: Phase, *, at_work: bool) -> Stand:
    is_open = state.ending is None or state.status in (Status.SUSPENDED, Status.CANCELLED)
    match state.get_gate(phase).status:
        case GateStatus.PASSED:
            return Stand.PASSED
        case GateStatus.FAILED:
            return Stand.FAILED
        case GateStatus.SKIPPED:
            return Stand.SKIPPED
        case GateStatus.IN_PROGRESS if state.status is Status.SUSPENDED:
            return Stand.WAITS
        case GateStatus.IN_PROGRESS:
            return Stand.NOW if at_work and state.ending is None else Stand.STOPPED
        case GateStatus.PENDING:
            return Stand.TO_COME if is_open else Stand.SKIPPED


def _draw_return(placed: Sequence[Sequence[PhaseBox]]) -> tuple[str, int]:
    to = next((box for column in placed for box in column if box.phase == Phase.IMPLEMENTATION), None)
    last = placed[-1][0]
    if to is None or last.phase == Phase.IMPLEMENTATION:
        return "", 0
    x, to_x, top = last.x + last.width // 2, to.x + to.width // 2, 14
    out = f"M{x} {last.y} V{top + 8} Q{x} {top} {x - 8} {top}"
    back = f"H{to_x + 8} Q{to_x} {top} {to_x} {top + 8} V{to.y - 3}"
    return f"{out} {back}", (x + to_x) // 2


class Tick(Record):
    at: float
    label: str


class Plot(Record):
    width: int
    height: int
    left: int
    bottom: int
    line: str
    """The `d` of an SVG path."""
    area: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


_PLOT = (760, 190)
_LEFT, _RIGHT, _ABOVE, _BELOW = 64, 16, 12, 26


def draw_plot(points: Sequence[tuple[float, float]], label: tuple[str, str]) -> Plot:
    """Return a plot of points from 0 on; `label` is the format of each axis, such as `{:,.0f} s`."""
    width, height = _PLOT
    across, up = (_scale(max((point[axis] for point in points), default=0)) for axis in (0, 1))
    bottom = height - _BELOW

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + point[0] / across[-1] * (width - _LEFT - _RIGHT)
        return round(x, 1), round(bottom - point[1] / up[-1] * (bottom - _ABOVE), 1)

    placed = [place(point) for point in points]
    path = "".join(("H{}V{}" if at else "M{} {}").format(*point) for at, point in enumerate(placed))
    return Plot(
        width=width,
        height=height,
        left=_LEFT,
        bottom=bottom,
        line=path,
        area=f"{path}V{bottom}H{placed[0][0]}Z" if placed else "",
        across=tuple(Tick(at=place((at, 0))[0], label=_say(label[0], at)) for at in across),
        up=tuple(Tick(at=place((0, at))[1], label=_say(label[1], at)) for at in up),
    )


def _scale(most: float) -> tuple[float, ...]:
    if most <= 0 or not math.isfinite(most):
        return (0, 1)
    rough = most / 5
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in _STEPS_OF_A_SCALE if unit * factor >= rough)
    return tuple(step * number for number in range(math.ceil(most / step - 1e-9) + 1))


def _say(form: str, number: float) -> str:
    text = form.format(number)
    return text.rstrip("0").rstrip(".") if "." in text and text[-1].isdigit() else text


class Bar(Record):
    came: ResultKind
    count: int
    y: float
    height: float


class WeekColumn(Record):
    numbers: Numbers
    x: float
    width: float
    middle: float
    label: str
    """The day it begins with; empty where there is no room."""
    bars: tuple[Bar, ...]


class WeeksPicture(Record):
    width: int
    height: int
    left: int
    bottom: int
    columns: tuple[WeekColumn, ...]
    up: tuple[Tick, ...]


_WEEKS = (860, 330)
_TOP_OF_COLUMNS = 84
_MOST_COLUMNS = 60
_LABELS = 14


def draw_weeks(stats: Stats) -> WeeksPicture:
    width, height = _WEEKS
    weeks, bottom = stats.weeks[-_MOST_COLUMNS:], height - 34
    up = _scale(max((week.tasks for week in weeks), default=1))
    room = (width - _LEFT - _RIGHT) / max(len(weeks), 1)
    unit = (bottom - _TOP_OF_COLUMNS) / up[-1]
    every = math.ceil(len(weeks) / _LABELS) or 1
    columns = tuple(
        WeekColumn(
            numbers=week,
            x=round(_LEFT + at * room + room * 0.14, 1),
            width=round(min(room * 0.72, 60), 1),
            middle=round(_LEFT + at * room + room * 0.14 + min(room * 0.72, 60) / 2, 1),
            label=week.name[5:] if at % every == 0 else "",
            bars=tuple(
                Bar(came=came, count=count, y=round(bottom - end * unit, 1), height=round(count * unit, 1))
                for (came, count), end in zip(week.came.items(), accumulate(week.came.values()), strict=True)
                if count
            ),
        )
        for at, week in enumerate(weeks)
    )
    ticks = (Tick(at=round(bottom - at * unit, 1), label=f"{at:,.0f}") for at in up if at == int(at))
    return WeeksPicture(
        width=width, height=height, left=_LEFT, bottom=bottom, columns=columns, up=tuple(ticks)
    )
