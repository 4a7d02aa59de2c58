"""Runs of the tests in throw-away copies: as the code was, and under each candidate, on all cores."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import RED, Command, Execution
from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.repair.candidates import Candidate
from agentflow.repair.locate import TestTrace
from agentflow.repair.sources import Sources
from agentflow.repair.target import ADVICE, Target
from agentflow.sandbox.profile import REPAIR_ENGINE
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import scratch_folder
from agentflow.workspace.working_copy import copy_files, to_pythonpath

SEARCH_SECONDS = 120.0

_SHORTEST = 5.0

_SLOWER = 10
"""How many times longer than before the tests may take under a candidate."""

_MOST_CRASHES = 6

DRIVER = Path(__file__).with_name("driver.py")

WATCH_SECONDS = 120.0


class SearchResult(Record):
    """The result of a search."""

    winner: Candidate | None = None
    crashed: int = 0
    """How many candidates ended the worker that tried them."""
    untried: int = 0
    """How many the time did not suffice for, where none won."""

    @property
    def note(self) -> str:
        """Workers that crashed and candidates not tried in time, for a person; else empty."""
        crashed = f"workers that crashed and were replaced: {self.crashed}" if self.crashed else ""
        late = f"not tried within {SEARCH_SECONDS:.0f} s: {self.untried}" if self.untried else ""
        return "; ".join(filter(None, (crashed, late)))


class Bench(Record):
    """What is needed to run the target tests in a copy."""

    sandbox: Sandbox
    sources: Sources
    target: Target
    places: tuple[str, ...]
    """From where the code is imported, relative to the root."""
    cancelled: Callable[[], bool] = lambda: False


def find_first_plausible(bench: Bench, candidates: tuple[Candidate, ...]) -> SearchResult:
    """Find the first candidate in order under which the tests that matter pass.

    Time can only end the search without a result, never choose another one. Raises ModelRejected, which names
    the error, when a worker crashes by itself, or too many do.
    """
    if not candidates:
        return SearchResult()
    seen = trace_tests(bench, trace=False)
    if not set(seen.outcomes.values()) & set(RED):
        raise ModelRejected("the failing tests pass in a copy of the repository", hint=ADVICE)
    with scratch_folder() as folder, open_copy(bench) as pristine:
        board = folder / "board"
        board.mkdir()
        bench = bench.replace(sandbox=_share(bench.sandbox, board, pristine))
        spec = {
            "board": str(board),
            "pristine": str(pristine),
            "before": seen.outcomes,
            "timeout": max(_SHORTEST, _SLOWER * seen.seconds),
            "candidates": [_plain(candidate) for candidate in candidates],
        }
        deadline = time.monotonic() + SEARCH_SECONDS
        count = min(os.cpu_count() or 1, len(candidates))
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda number: _work(bench, folder, number, spec, deadline), range(count)))
        return _result(board, candidates)


def _share(sandbox: Sandbox, board: Path, pristine: Path) -> Sandbox:
    """Let all drivers share the list of results and the original code."""
    opened = sandbox.opened.replace(readable=(*sandbox.opened.readable, pristine))
    return sandbox.replace(writable=(board,), opened=opened)


def _work(bench: Bench, folder: Path, number: int, spec: dict[str, object], deadline: float) -> None:
    """Keep a driver at work until no candidate is left to claim; one that a candidate ended is replaced."""
    own, board = folder / f"driver-{number}", folder / "board"
    own.mkdir()
    while True:
        with open_copy(bench) as copy:
            seconds = max(0.0, deadline - time.monotonic())
            finished = drive(bench, copy, own, {**spec, "number": number}, seconds)
        if finished.exit_code == 0 or finished.timed_out or bench.cancelled():
            return
        left = _find_unfinished(board, number)
        for index in left:
            (board / f"crashed-{index}").touch()
        if not left or len(list(board.glob("crashed-*"))) >= _MOST_CRASHES:
            raise ModelRejected(f"a worker of the search for a repair crashed: {_last_words(finished)}")


def _find_unfinished(board: Path, number: int) -> list[int]:
    """Return the candidates that a driver claimed and did not finish."""
    claims = {int(path.name.removeprefix("claimed-")): path.read_text() for path in board.glob("claimed-*")}
    known = _read_marks(board, "lost") | _read_marks(board, "won") | _read_marks(board, "crashed")
    return [index for index, by in claims.items() if by == str(number) and index not in known]


def _read_marks(board: Path, word: str) -> set[int]:
    return {int(path.name.removeprefix(f"{word}-")) for path in board.glob(f"{word}-*")}


def _last_words(finished: Execution) -> str:
    said = finished.tail.strip().splitlines()[-1:] or ["it said nothing"]
    ended = "a signal" if finished.exit_code is None else f"exit {finished.exit_code}"
    return f"{said[0]} ({ended})"


def _plain(candidate: Candidate) -> dict[str, object]:
    edit = candidate.mutation
    return {"path": candidate.path, "start": edit.start, "end": edit.end, "text": edit.text}


def _result(board: Path, candidates: tuple[Candidate, ...]) -> SearchResult:
    """Return the first candidate that won, if all before it were tried to the end."""
    won, crashed = sorted(_read_marks(board, "won")), len(_read_marks(board, "crashed"))
    tried = _read_marks(board, "lost") | _read_marks(board, "crashed")
    if won and tried.issuperset(range(won[0])):
        return SearchResult(winner=candidates[won[0]], crashed=crashed)
    return SearchResult(crashed=crashed, untried=len(candidates) - len(tried) - len(won))


@contextmanager
def open_copy(bench: Bench) -> Iterator[Path]:
    """Yield a copy of the repository as it was before any attempt."""
    sources = bench.sources
    with copy_files(sources.root, sources.files) as copy:
        for path, raw in sources.overlay.items():
            (copy / path).write_bytes(raw)
        yield copy


def trace_tests(bench: Bench, *, trace: bool) -> TestTrace:
    """Return what the tests do on the code as it was. Raises ModelRejected when they cannot be run."""
    with open_copy(bench) as copy, scratch_folder() as folder:
        report = folder / "report.json"
        finished = drive(bench, copy, folder, {"report": str(report), "trace": trace}, WATCH_SECONDS)
        try:
            return fit(TestTrace, json.loads(report.read_bytes()))
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
        "PYTHONPATH": to_pythonpath(copy, bench.places),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    argv = (target.interpreter, str(DRIVER), str(folder / "spec.json"))
    order = Command(argv=argv, cwd=str(copy), timeout=timeout, env=env)
    try:
        # it may write its own folders and what the drivers share
        sandbox = bench.sandbox.of(REPAIR_ENGINE, copy, folder, *bench.sandbox.writable)
        return sandbox.run(order, folder / "output", bench.cancelled)
    except OSError as error:
        raise ModelRejected(
            f"{target.interpreter} cannot be started: {error.strerror}", hint=ADVICE
        ) from None
