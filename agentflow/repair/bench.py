"""A driver in a copy of the repository, inside the sandbox: run to its end, or asked time and again."""

import json
import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.events import Searched
from agentflow.core.evidence import Command, Execution
from agentflow.core.record import Record, to_builtins
from agentflow.parse import Mismatch, fit
from agentflow.repair.sources import Sources
from agentflow.repair.target import ADVICE, Target
from agentflow.sandbox.profile import REPAIR_ENGINE, Level
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import View, make_overlay_view, make_scratch_folder
from agentflow.workspace.working_copy import copy_files, is_mountable, to_pythonpath

DRIVER = Path(__file__).with_name("driver.py")
_TICK = 0.05
_CLOSING_SECONDS = 1.0


class SearchWatch(Record):
    """The person or program that waits for a search, and for how long."""

    tell: Callable[[Searched], object] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    run: int = 0
    """That of the role which asks; 0 before the first request."""
    until: float = math.inf
    """When it ends at the latest, by the monotonic clock."""

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def look_up(self) -> None:
        if self.cancelled():
            raise ModelRejected("the search was stopped")


class Bench(Record):
    """The parts that are needed to run the target tests in a copy."""

    sandbox: Sandbox
    sources: Sources
    target: Target
    places: tuple[str, ...]
    """From where the code is imported, relative to the root."""
    watch: SearchWatch = SearchWatch()
    below: Path | None = None
    """A copy that no driver writes, above which the others are layers."""


@contextmanager
def open_copy(bench: Bench) -> Iterator[View]:
    """Yield a copy of the repository as it was before any attempt. Raises ModelRejected once cancelled."""
    if bench.below is not None:
        with make_scratch_folder() as scratch:
            yield make_overlay_view(bench.below, scratch / "layer")
        return
    sources = bench.sources
    with copy_files(sources.root, sources.files, bench.watch.look_up) as copy:
        for path, raw in sources.overlay.items():
            (copy / path).unlink(missing_ok=True)
            (copy / path).write_bytes(raw)
        yield View(folder=copy)


@contextmanager
def open_pristine(bench: Bench) -> Iterator[tuple[Path, Bench]]:
    """Yield a copy that drivers only read, and a bench whose copies are layers above it where they can be."""
    with open_copy(bench) as copy, make_scratch_folder() as trial:
        sandbox, place = bench.sandbox, copy.folder
        opened = sandbox.opened.replace(readable=(*sandbox.opened.readable, place))
        is_below = sandbox.level is Level.FULL and is_mountable(place, trial / "layer")
        sandbox = sandbox.replace(opened=opened)
        yield place, bench.replace(sandbox=sandbox, below=place if is_below else None)


def drive(bench: Bench, copy: View, folder: Path, spec: Mapping[str, Any], timeout: float) -> Execution:
    target, place = bench.target, copy.place
    told = {**to_builtins(target), "timeout": timeout, **spec}
    (folder / "spec.json").write_text(json.dumps(told), encoding="utf-8")
    env = {
        **target.env,
        "PYTHONPATH": to_pythonpath(place, bench.places),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    argv = (target.interpreter, str(DRIVER), str(folder / "spec.json"))
    order = Command(argv=argv, cwd=str(place), timeout=timeout, env=env)
    try:
        # it may write its own folders and what the drivers share
        sandbox = bench.sandbox.of(REPAIR_ENGINE, place, folder, *bench.sandbox.writable)
        return sandbox.replace(layer=copy.overlay).run(order, folder / "output", bench.watch.cancelled)
    except OSError as error:
        raise ModelRejected(
            f"{target.interpreter} cannot be started: {error.strerror}", hint=ADVICE
        ) from None


class Channel:
    """The two pipes to one server of a driver."""

    def __init__(self, orders: Path, answers: Path, stack: ExitStack) -> None:
        self._orders, self._answers = (_open_pipe(path, stack) for path in (orders, answers))
        self._read = b""
        self._plan: Mapping[str, Any] = {}

    def tell(self, order: Mapping[str, Any], is_over: Callable[[], bool]) -> None:
        raw = json.dumps(order).encode() + b"\n"
        while raw and not is_over():
            if select.select([], [self._orders], [], _TICK)[1]:
                with suppress(BlockingIOError):  # there is room, though not for so much at once
                    raw = raw[os.write(self._orders, raw) :]

    def plan(self, plan: Mapping[str, Any], is_over: Callable[[], bool]) -> None:
        if self._plan != plan:
            self._plan = plan
            self.tell({"plan": plan}, is_over)

    def hear(self, is_vain: Callable[[], bool]) -> dict[str, Any] | None:
        """Return the next answer, or None once it is vain to wait for one."""
        while b"\n" not in self._read:
            if select.select([self._answers], [], [], _TICK)[0]:
                with suppress(BlockingIOError):
                    self._read += os.read(self._answers, 1 << 16)
            elif is_vain():
                return None
        line, _, self._read = self._read.partition(b"\n")
        try:
            return fit(dict[str, Any], json.loads(line))
        except (ValueError, Mismatch):
            return {"end": "crashed"}  # the code under test wrote there


def _open_pipe(path: Path, stack: ExitStack) -> int:
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    stack.callback(os.close, pipe)
    return pipe


class Driver:
    """A driver at work in a copy, and the channels to its servers."""

    def __init__(
        self, bench: Bench, spec: Mapping[str, Any], pool: ThreadPoolExecutor, seconds: float
    ) -> None:
        pipes, self._channels = {}, dict[str, Channel]()
        with ExitStack() as stack:  # a copy may be stopped halfway
            folder = stack.enter_context(make_scratch_folder())
            copy = stack.enter_context(open_copy(bench))
            for kind in spec["servers"]:
                pipes[kind] = (folder / f"{kind}-orders", folder / f"{kind}-answers")
                self._channels[kind] = Channel(*pipes[kind], stack)
            self._stack = stack.pop_all()
        named = {kind: [str(path) for path in paths] for kind, paths in pipes.items()}
        is_cancelled = bench.watch.cancelled
        self._is_closed = threading.Event()
        watch = bench.watch.replace(cancelled=lambda: self._is_closed.is_set() or is_cancelled())
        self._over: Future[Execution] = pool.submit(
            drive, bench.replace(watch=watch), copy, folder, {**spec, "servers": named}, seconds
        )

    def tell(self, kind: str, order: Mapping[str, Any], plan: Mapping[str, Any] | None = None) -> None:
        if plan is not None:
            self._channels[kind].plan(plan, self._over.done)
        self._channels[kind].tell(order, self._over.done)

    def hear(self, kind: str, seconds: float, is_vain: Callable[[], bool]) -> dict[str, Any] | None:
        """Return a server's next answer, or None once it is gone, late, or nobody waits any more."""
        until = time.monotonic() + seconds
        return self._channels[kind].hear(lambda: self._over.done() or time.monotonic() > until or is_vain())

    def read_last_line(self) -> str:
        finished = self._over.result()
        lines = finished.tail.strip().splitlines()[-1:] or ["it said nothing"]
        ended = "a signal" if finished.exit_code is None else f"exit {finished.exit_code}"
        return f"{lines[0]} ({ended})"

    @property
    def is_over(self) -> bool:
        return self._over.done()

    def close(self) -> None:
        self.tell("fresh", {"quit": True})
        try:
            wait([self._over], _CLOSING_SECONDS)  # it may be at work
            self._is_closed.set()
            self._over.result()
        finally:
            self._stack.close()
