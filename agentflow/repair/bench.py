"""A driver in a copy of the repository, inside the sandbox: run to its end, or asked time and again."""

import json
import math
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import Command, Execution
from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.repair.sources import Sources
from agentflow.repair.target import ADVICE, Target
from agentflow.sandbox.profile import REPAIR_ENGINE, Level
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import View, make_overlay_view, scratch_folder
from agentflow.workspace.working_copy import copy_files, is_mountable, to_pythonpath

DRIVER = Path(__file__).with_name("driver.py")

_TICK = 0.05


class Hope(Record):
    """How far a search has come, for a person who waits."""

    tried: int
    total: int
    seconds_left: float
    best: str
    """The nearest miss so far, or what mends the tests."""


class SearchWatch(Record):
    """Who waits for a search, and how long."""

    tell: Callable[[Hope], object] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    until: float = math.inf
    """When it ends at the latest, by the monotonic clock."""

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def look_up(self) -> None:
        """Raise ModelRejected where nobody waits any more."""
        if self.cancelled():
            raise ModelRejected("the search was stopped")


class Bench(Record):
    """What is needed to run the target tests in a copy."""

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
        with scratch_folder() as scratch:
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
    with open_copy(bench) as copy, scratch_folder() as trial:
        sandbox, place = bench.sandbox, copy.folder
        opened = sandbox.opened.replace(readable=(*sandbox.opened.readable, place))
        is_below = sandbox.level is Level.FULL and is_mountable(place, trial / "layer")
        sandbox = sandbox.replace(opened=opened)
        yield place, bench.replace(sandbox=sandbox, below=place if is_below else None)


def drive(bench: Bench, copy: View, folder: Path, spec: Mapping[str, Any], timeout: float) -> Execution:
    """Run the driver in a copy to its end."""
    target, place = bench.target, copy.place
    told = {
        "runner": target.runner,
        "module": target.is_module,
        "arguments": target.arguments,
        "files": target.files,
        "failing": target.failing,
        "hangs": target.hangs,
        "stalled": target.stalled,
        "timeout": timeout,
    }
    (folder / "spec.json").write_text(json.dumps({**told, **spec}), encoding="utf-8")
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
    """A driver at work in a copy, and the two pipes to it."""

    def __init__(
        self, bench: Bench, spec: Mapping[str, Any], pool: ThreadPoolExecutor, seconds: float
    ) -> None:
        self._pipes = []
        with ExitStack() as stack:  # a copy may be stopped halfway
            folder = stack.enter_context(scratch_folder())
            copy = stack.enter_context(open_copy(bench))
            for name in ("orders", "answers"):
                os.mkfifo(folder / name)
                pipe = os.open(folder / name, os.O_RDWR | os.O_NONBLOCK)
                stack.callback(os.close, pipe)
                self._pipes.append(pipe)
            self._stack = stack.pop_all()
        told = {**spec, "orders": str(folder / "orders"), "answers": str(folder / "answers")}
        self._over: Future[Execution] = pool.submit(drive, bench, copy, folder, told, seconds)
        self._read = b""
        self._is_told = {"plan": ""}

    def tell(self, order: Mapping[str, Any]) -> None:
        raw = json.dumps(order).encode() + b"\n"
        while raw and not self._over.done():
            if select.select([], [self._pipes[0]], [], _TICK)[1]:
                with suppress(BlockingIOError):  # there is room, though not for so much at once
                    raw = raw[os.write(self._pipes[0], raw) :]

    def plan(self, plan: Mapping[str, Any]) -> None:
        """Say which tests are run and how long they may take, where that is new."""
        said = json.dumps(plan)
        if self._is_told["plan"] != said:
            self._is_told["plan"] = said
            self.tell({"plan": plan})

    def hear(self, deadline: float, is_vain: Callable[[], bool]) -> dict[str, Any] | None:
        """Return the next answer, or None once the driver is gone or nobody waits any more."""
        while b"\n" not in self._read:
            if select.select([self._pipes[1]], [], [], _TICK)[0]:
                with suppress(BlockingIOError):
                    self._read += os.read(self._pipes[1], 1 << 16)
            elif self._over.done() or time.monotonic() > deadline or is_vain():
                return None
        line, _, self._read = self._read.partition(b"\n")
        try:
            return fit(dict[str, Any], json.loads(line))
        except (ValueError, Mismatch):
            return {"end": "crashed"}  # the code under test wrote there

    def last_words(self) -> str:
        """Return the last thing a driver said that is over."""
        finished = self._over.result()
        said = finished.tail.strip().splitlines()[-1:] or ["it said nothing"]
        ended = "a signal" if finished.exit_code is None else f"exit {finished.exit_code}"
        return f"{said[0]} ({ended})"

    @property
    def is_over(self) -> bool:
        return self._over.done()

    def close(self) -> None:
        self.tell({"quit": True})
        try:
            self._over.result()
        finally:
            self._stack.close()
