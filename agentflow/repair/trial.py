"""Start the driver in a copy of the repository, with the check's own interpreter."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.execution import Execution
from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.process import Command
from agentflow.repair.sources import Sources
from agentflow.repair.target import ADVICE, Target
from agentflow.sandbox.profile import REPAIR
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder
from agentflow.workspace.copies import copy_of, paths_for

DRIVER = Path(__file__).with_name("driver.py")
WATCH_SECONDS = 120.0


class Seen(Record):
    """What the driver saw of one run of the tests."""

    outcomes: Mapping[str, str]
    lines: Mapping[str, tuple[tuple[str, int], ...]]
    """Test id to the lines it executed; those of loading stand under the empty id."""
    frames: Mapping[str, tuple[tuple[str, int], ...]]
    """Red test to the frames of its traceback, outermost first."""
    files: tuple[str, ...]
    """The files the tests stand in."""
    seconds: float


class Bench(Record):
    """All it takes to run the tests that matter, somewhere else."""

    sandbox: Sandbox
    sources: Sources
    target: Target
    places: tuple[str, ...]
    """From where the code is imported, relative to the root."""
    cancelled: Callable[[], bool] = lambda: False


@contextmanager
def copied(bench: Bench) -> Iterator[Path]:
    """Yield a copy of the repository as it was before any attempt."""
    sources = bench.sources
    with copy_of(sources.root, sources.files) as copy:
        for path, raw in sources.overlay.items():
            (copy / path).write_bytes(raw)
        yield copy


def watch(bench: Bench, *, trace: bool) -> Seen:
    """Return what the tests do on the code as it was. Raises ModelRejected when they cannot be run."""
    with copied(bench) as copy, scratch_folder() as folder:
        report = folder / "report.json"
        finished = drive(bench, copy, folder, {"report": str(report), "trace": trace}, WATCH_SECONDS)
        try:
            return fit(Seen, json.loads(report.read_bytes()))
        except (OSError, ValueError, Mismatch):
            said = finished.tail.strip().splitlines()[-1:] or ["it said nothing"]
            raise ModelRejected(f"the tests cannot be run in a copy: {said[0]}", hint=ADVICE) from None


def drive(bench: Bench, copy: Path, folder: Path, spec: dict[str, Any], timeout: float) -> Execution:
    """Run the driver in a copy to its end."""
    target = bench.target
    told = {
        "runner": target.runner,
        "module": target.is_module,
        "arguments": target.arguments,
        "files": target.files,
        "trace": False,
        "candidates": [],
    }
    (folder / "spec.json").write_text(json.dumps({**told, **spec}), encoding="utf-8")
    env = {
        **target.env,
        "PYTHONPATH": paths_for(copy, bench.places),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    argv = (target.interpreter, str(DRIVER), str(folder / "spec.json"))
    order = Command(argv=argv, cwd=str(copy), timeout=timeout, env=env)
    try:
        # it may write its own folders and what the drivers share
        sandbox = bench.sandbox.of(REPAIR, copy, folder, *bench.sandbox.writable)
        return sandbox.run(order, folder / "output", bench.cancelled)
    except OSError as error:
        raise ModelRejected(
            f"{target.interpreter} cannot be started: {error.strerror}", hint=ADVICE
        ) from None
