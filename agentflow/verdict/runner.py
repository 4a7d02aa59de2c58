"""Required checks side by side, each order in a copy of its tree; what fails by chance runs again, alone."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from agentflow.checks.run import Manner, Shown, execute
from agentflow.core.events import CheckStarted
from agentflow.core.evidence import Check, CheckName, CheckRun, Fault, Side, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.process import stop_asked
from agentflow.sandbox.profile import CHECKS, Level
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder
from agentflow.settings import Patience
from agentflow.store.tasks import TaskStore
from agentflow.verdict.again import Known, due, passing, wait
from agentflow.verdict.surface import belongs
from agentflow.workspace.copies import paths_for
from agentflow.workspace.git import Git
from agentflow.workspace.stage import Stage
from agentflow.workspace.underlay import Underlay

Results = tuple[RequiredCheck, ...]


class Order(Record):
    """Checks to be run on one tree, and whose code stands there under whose checks."""

    checks: tuple[Check, ...]
    tree: str
    surface: Side
    code: Side
    earlier: Mapping[str, TestOutcome] = {}
    """What tests came to before on the same code under the same checks."""

    def manner(self, check: Check) -> Manner:
        """Return how a check is run: what tests read tells what the files of their tree are."""
        is_telling = check.name is CheckName.TESTS and self.surface is self.code
        return Manner.OBSERVED if is_telling else Manner.PLAIN


class Ran(Record):
    """A check that was run, once or several times on one tree; None where it cannot run."""

    check: Check
    runs: tuple[Shown, ...] = ()
    faults: tuple[Fault, ...] = ()
    """Why each run but the last did not stand."""


class Ground(Record):
    """Where the checks of a task run, and how patiently."""

    git: Git
    sandbox: Sandbox
    store: TaskStore
    underlay: Underlay | None
    """What copies are layers above, where the machine can."""
    seen: tuple[str, ...]
    """The ignored files that a check may see."""
    places: tuple[str, ...]
    """From where Python imports this repository's packages."""
    patience: Mapping[Fault, Patience]
    before: Mapping[CheckName, CheckRun]
    """What each check showed before the task."""


class Round:
    """One run of several orders; ids of evidence are given in their order."""

    def __init__(self, ground: Ground, task: TaskState, keep: Callable[[Order, Ran], RequiredCheck]) -> None:
        self._ground = ground
        self._task = task
        self._keep = keep
        self._firsts: dict[CheckName, frozenset[str]] = {}
        self._going = 0
        self._idle = anyio.Event()

    async def run(self, *orders: Order) -> tuple[Results, ...]:
        results: dict[int, Results] = {}
        turns = [anyio.Event() for _ in range(len(orders) + 1)]
        turns[0].set()
        self._going = sum(1 for order in orders if order.checks)

        async def follow(place: int, order: Order) -> None:
            results[place] = await self._follow(order, turns[place])
            turns[place + 1].set()

        async with anyio.create_task_group() as group:
            for place, order in enumerate(orders):
                group.start_soon(follow, place, order)
        return tuple(results[place] for place in range(len(orders)))

    async def _follow(self, order: Order, turn: anyio.Event) -> Results:
        """Run an order in a copy of its own; what it shows is kept as soon as it is its turn."""
        stage = Stage(self._ground.git, order.tree, self._ground.seen)
        ran: list[Ran] = []
        kept: list[RequiredCheck] = []
        try:
            await to_thread.run_sync(stage.fill, self._ground.underlay)
            for place, check in enumerate(order.checks):
                if place:
                    await to_thread.run_sync(stage.restore, partial(belongs, self._task.surface))
                runs = await self._first(order, check, stage)
                if place == len(order.checks) - 1:
                    await self._alone(turn)
                ran.append(await self._settled(order, stage, Ran(check=check, runs=runs)))
                if turn.is_set():
                    kept += [self._keep(order, each) for each in ran[len(kept) :]]
            return tuple(kept)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(stage.remove)

    async def tried(self, order: Order) -> tuple[Shown, str]:
        """Return what the one check of an order shows in other surroundings, and its output; keep nothing."""
        stage, (check,) = Stage(self._ground.git, order.tree, self._ground.seen), order.checks
        with scratch_folder() as scratch:
            try:
                await to_thread.run_sync(stage.fill, self._ground.underlay)
                sink = scratch / "output"
                begin = partial(self._execute, check, stage, sink, manner=Manner.ELSEWHERE)
                shown = await to_thread.run_sync(begin)
                changed = await to_thread.run_sync(stage.changed)
                said = sink.read_text("utf-8", "replace")
                return shown.replace(execution=shown.execution.replace(changed=changed)), said
            finally:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(stage.remove)

    async def _alone(self, turn: anyio.Event) -> None:
        """Wait until nothing else runs: what runs at once may disturb each other."""
        self._going -= 1
        if not self._going:
            self._idle.set()
        await self._idle.wait()
        await turn.wait()

    async def _first(self, order: Order, check: Check, stage: Stage) -> tuple[Shown, ...]:
        if check.missing is not None:
            return ()
        store = self._ground.store
        store.emit(
            CheckStarted(check=check.name, command=check.command, surface=order.surface, code=order.code)
        )
        shown = await self._once(order, check, stage, 1)
        self._firsts[check.name] = self._firsts.get(check.name, frozenset()) | passing(shown)
        return (shown,)

    async def _settled(self, order: Order, stage: Stage, ran: Ran) -> Ran:
        """Run a check again as long as that tells more about its failure."""
        patience, known = self._ground.patience, self._known(order, ran.check)
        while ran.runs and (fault := due(ran.runs, ran.faults, known, patience)):
            await anyio.sleep(wait(fault, ran.faults, patience))
            await to_thread.run_sync(stage.restore, partial(belongs, self._task.surface))
            shown = await self._once(order, ran.check, stage, len(ran.runs) + 1)
            ran = ran.replace(runs=(*ran.runs, shown), faults=(*ran.faults, fault))
        return ran

    def _known(self, order: Order, check: Check) -> Known:
        """Return what speaks against a failure; on the code from before the task, a failure is no news."""
        sandbox, before = self._ground.sandbox, self._ground.before.get(check.name)
        online = sandbox.level is Level.NONE or CHECKS in sandbox.opened.network
        if order.code is Side.BASE or before is None or before.evidence is None:
            return Known(online=online)
        green = {""} if before.green else set[str]()
        return Known(
            passed=before.ids(TestOutcome.PASSED) | green | self._firsts.get(check.name, frozenset()),
            hangs=before.evidence.timed_out,
            online=online,
        )

    async def _once(self, order: Order, check: Check, stage: Stage, number: int) -> Shown:
        """Run a check, and see what it did to the files."""
        shown = await self._shown(order, check, stage, number)
        changed = await to_thread.run_sync(stage.changed)
        return shown.replace(execution=shown.execution.replace(changed=changed))

    async def _shown(self, order: Order, check: Check, stage: Stage, number: int) -> Shown:
        patient, sink = check.replace(timeout=self._time_for(check)), self._sink(order, check, number)
        begin = partial(self._execute, patient, stage, sink, manner=order.manner(check))
        return await to_thread.run_sync(begin)

    def _execute(self, check: Check, stage: Stage, sink: Path, *, manner: Manner) -> Shown:
        places = paths_for(stage.view.place, self._ground.places)
        return execute(
            check,
            self._ground.sandbox.on(stage.view),
            sink,
            cancelled=stop_asked,
            env={"PYTHONPATH": places} if places else {},
            manner=manner,
        )

    def _sink(self, order: Order, check: Check, number: int) -> Path:
        name = f"check-{check.name}-{order.surface}-{order.code}-{number}.out"
        return self._ground.store.folder / "outputs" / name

    def _time_for(self, check: Check) -> float:
        """Return the seconds a check may take: for tests at least three times the base run."""
        before = self._ground.before.get(check.name)
        if check.name is not CheckName.TESTS or before is None or before.evidence is None:
            return check.timeout
        return max(check.timeout, 3 * before.evidence.seconds)
