"""The state of a running task, folded from its events: what the live region shows."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import singledispatch
from pathlib import Path

from agentflow.core import events
from agentflow.core.check_command import format_command
from agentflow.core.evidence import CheckName
from agentflow.core.messages import Usage, sum_usage
from agentflow.core.pending import Budget
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.task import GateStatus, Phase, TaskState
from agentflow.parse import Mismatch, fit
from agentflow.redact import to_one_line
from agentflow.view.words import is_without_change

_THINKING = "thinking"
_PROBES = "probes"
_PERCENT = regex(r"\[ *(\d+)%\]")
_RESULT = regex(
    r"(?m)\.\.\. (?:ok|FAIL|ERROR|FAILED|ignored|skipped|expected failure)"
    r"|^(?:not )?ok \d+\b|^ *--- (?:PASS|FAIL|SKIP): "
    r'|"Action":"(?:pass|fail|skip)"[^}\n]*"Test":|^ *\d+/\d+ +Test +#\d+'
)
"""The end of one test, as unittest, cargo, TAP, go and ctest print it."""


class CurrentCall(Record):
    """The call that a role waits for: of a tool, or of the model."""

    id: str
    words: str
    since: float


class Work(Record):
    role: str
    model: str
    since: float
    calls: tuple[CurrentCall, ...] = ()

    def drop(self, call_id: str) -> "Work":
        return self.replace(calls=tuple(call for call in self.calls if call.id != call_id))

    def begin(self, call_id: str, words: str, since: float) -> "Work":
        return self.replace(
            calls=(*self.drop(call_id).calls, CurrentCall(id=call_id, words=words, since=since))
        )


class RunningCheck(Record):
    name: str
    command: str
    since: float
    output: str
    """How the files of its output are named."""
    expected: int
    """The number of tests it had before; 0 where nobody knows."""
    slow: str = ""
    slow_since: float = 0.0


class Board(Record):
    """The state of a running task; times are seconds since the epoch."""

    gates: dict[Phase, GateStatus] = {}
    phase: Phase | None = None
    iteration: int = 1
    since: float = 0.0
    works: dict[int, Work] = {}
    checks: dict[str, RunningCheck] = {}
    expected: dict[str, int] = {}
    """The number of tests that each check had when it ran last."""
    usage: Usage | None = None
    budget: Budget = Budget()
    waiting: tuple[str, ...] = ()

    @classmethod
    def of(cls, task: TaskState) -> "Board":
        used = task.usage if task.usage.tokens else None
        gates = {phase: gate.status for phase, gate in task.gates.items()}
        return cls(gates=gates, usage=used, budget=task.options.budget).plan(task.routing.steps)

    def plan(self, steps: tuple[Phase, ...]) -> "Board":
        begun = {phase: gate for phase, gate in self.gates.items() if gate is not GateStatus.PENDING}
        return self.replace(gates={**dict.fromkeys(steps, GateStatus.PENDING), **begun})

    def spend(self, usage: Usage) -> "Board":
        return self.replace(usage=usage if self.usage is None else sum_usage((self.usage, usage)))

    def change(self, run: int, change: Callable[[Work], Work]) -> "Board":
        work = self.works.get(run)
        return self if work is None else self.replace(works={**self.works, run: change(work)})


def update_board(board: Board, stamped: events.StoredEvent) -> Board:
    try:
        now = datetime.fromisoformat(stamped.at).timestamp()
    except ValueError:
        now = 0.0
    return _update(stamped.event, board, now)


@singledispatch
def _update(_event: object, board: Board, _now: float) -> Board:
    return board


@_update.register
def _update_phases(
    event: events.Classified
    | events.PhaseStarted
    | events.PhaseEnded
    | events.Paused
    | events.Answered
    | events.TaskEnded,
    board: Board,
    now: float,
) -> Board:
    match event:
        case events.Classified():
            return board.plan(event.steps)
        case events.PhaseStarted(phase=phase, iteration=iteration):
            gates = {**board.gates, phase: GateStatus.IN_PROGRESS}
            return board.replace(gates=gates, phase=phase, iteration=iteration, since=now, waiting=())
        case events.PhaseEnded():
            gates = {**board.gates, event.phase: event.status}
            checks = {} if board.phase is event.phase else board.checks
            return board.replace(gates=gates, checks=checks)
        case events.Paused():
            return board.replace(waiting=(*board.waiting, event.pending))
        case events.Answered():
            return board.replace(waiting=tuple(one for one in board.waiting if one != event.pending))
        case events.TaskEnded():
            return board.replace(phase=None, works={}, checks={})


@_update.register
def _update_works(
    event: events.RunStarted | events.RunEnded | events.RepairTried, board: Board, now: float
) -> Board:
    if isinstance(event, events.RunStarted):
        angle = f" ({event.angle.partition(':')[0]})" if event.angle else ""
        work = Work(role=f"{event.role}{angle}", model=event.model, since=now)
        return board.replace(works={**board.works, event.run: work})
    ended = event.run if isinstance(event, events.RunEnded) else 0  # the search before any run
    return board.replace(works={run: work for run, work in board.works.items() if run != ended})


@_update.register
def _update_turn(
    event: events.Asked | events.Retried | events.Replied | events.Compacted, board: Board, now: float
) -> Board:
    match event:
        case events.Asked():
            return board.change(event.run, lambda work: work.begin("", _THINKING, now))
        case events.Retried():
            words = f"{to_one_line(event.reason)}, try {event.attempt + 1}"
            return board.change(event.run, lambda work: work.begin("", words, now))
        case events.Replied():
            return board.spend(event.usage).change(event.run, lambda work: work.drop(""))
        case events.Compacted():
            return board.spend(event.usage)


@_update.register
def _update_call(event: events.ToolStarted | events.ToolFinished, board: Board, now: float) -> Board:
    if isinstance(event, events.ToolFinished):
        return board.change(event.run, lambda work: work.drop(event.call_id).drop(""))
    words = to_one_line(f"{event.tool} {event.subject}")
    return board.change(event.run, lambda work: work.begin(event.call_id, words, now))


@_update.register
def _count_tries(event: events.Searched, board: Board, now: float) -> Board:
    best = f", nearest {to_one_line(event.best)}" if event.best else ""
    words = f"{event.tried} of {event.total} edits tried, {event.seconds_left:.0f} s left{best}"
    words = words if event.total else f"looking at what fails, for {event.seconds_left:.0f} s at most"

    def count(work: Work) -> Work:
        since = next((call.since for call in work.calls if not call.id), now)
        return work.begin("", words, since)

    searching = Work(role="repair engine", model="", since=now)
    board = board.replace(works={0: searching}) if event.run == 0 and not board.works else board
    return board.change(event.run, count)


@_update.register
def _take_state(event: events.StateChanged, board: Board, _now: float) -> Board:
    with suppress(KeyError, Mismatch):  # most changes are of other fields; some are of a later version
        return board.replace(budget=fit(Budget, event.changed["budget"]))
    return board


@_update.register
def _update_check(
    event: events.CheckStarted | events.TestRunsLong | events.EvidenceRecorded, board: Board, now: float
) -> Board:
    output = f"check-{event.check}-{event.surface}-{event.code}"  # how the names of its files begin
    match event:
        case events.CheckStarted():
            name = f"original {event.check}" if event.surface is not event.code else str(event.check)
            check = RunningCheck(
                name=f"{event.check} without the change" if is_without_change(event) else name,
                command=to_one_line(format_command(event.command)),
                since=now,
                output=output,
                expected=board.expected.get(event.check, 0),
            )
            return board.replace(checks={**board.checks, output: check})
        case events.TestRunsLong() if running := board.checks.get(output):
            slow = running.replace(slow=to_one_line(event.test), slow_since=now - event.seconds)
            return board.replace(checks={**board.checks, output: slow})
        case events.EvidenceRecorded(check=CheckName() as wanted):
            known = dict(board.expected)
            if event.surface is event.code and event.tests:
                known[wanted] = event.tests.ran + event.tests.skipped
            left = {key: check for key, check in board.checks.items() if key != output}
            return board.replace(checks=left, expected=known)
        case _:
            return board


@_update.register
def _count_probes(event: events.Probing, board: Board, now: float) -> Board:
    others = {name: check for name, check in board.checks.items() if name != _PROBES}
    if event.done == event.total:
        return board.replace(checks=others)
    since = board.checks[_PROBES].since if _PROBES in board.checks else now
    name = f"probes {event.done}/{event.total}"
    command = "runs that must fail"
    probes = RunningCheck(name=name, command=command, since=since, output=_PROBES, expected=0)
    return board.replace(checks={**others, _PROBES: probes})


class TestCounter:
    """Counts the tests that running checks have done, from what they have printed so far."""

    __test__ = False

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs
        self._read: dict[Path, tuple[int, int]] = {}
        """How far each file was read, and how many tests had ended by then."""

    def count(self, check: RunningCheck) -> int:
        files = sorted(self._outputs.glob(f"{check.output}-*.out"))
        if not files or files[-1].is_symlink():
            return 0
        path = files[-1]
        start, done = self._read.get(path, (0, 0))
        try:
            with path.open("rb") as file:
                if file.seek(0, 2) < start:  # it runs again
                    start, done = 0, 0
                file.seek(start)
                new = file.read()
        except OSError:
            return 0
        whole = new[: new.rfind(b"\n") + 1]
        text = whole.decode("utf-8", "replace")
        if percents := _PERCENT.findall(text):
            done = max(done, int(percents[-1]) * check.expected // 100)
        done += len(_RESULT.findall(text))
        self._read[path] = (start + len(whole), done)
        return done
