"""Try candidates in throw-away copies, on all cores; the first in order under which the tests pass wins."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import RED
from agentflow.core.execution import Execution
from agentflow.core.record import Record
from agentflow.repair.candidates import Candidate
from agentflow.repair.target import ADVICE
from agentflow.repair.trial import Bench, copied, drive, watch
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder

SEARCH_SECONDS = 120.0
_SHORTEST = 5.0
_SLOWER = 10
"""How many times longer than before the tests may take under a candidate."""
_MOST_CRASHES = 6


class Searched(Record):
    """What a search came to."""

    winner: Candidate | None = None
    crashed: int = 0
    """How many candidates ended the worker that tried them."""
    untried: int = 0
    """How many the time did not suffice for, where none won."""

    @property
    def note(self) -> str:
        """What a person should know of a search that was not a smooth one; else empty."""
        crashed = f"workers that crashed and were replaced: {self.crashed}" if self.crashed else ""
        late = f"not tried within {SEARCH_SECONDS:.0f} s: {self.untried}" if self.untried else ""
        return "; ".join(filter(None, (crashed, late)))


def first_plausible(bench: Bench, candidates: tuple[Candidate, ...]) -> Searched:
    """Find the first candidate in order under which the tests that matter pass.

    Time can only end the search without a result, never choose another one. Raises ModelRejected, which names
    the error, when a worker crashes by itself, or too many do.
    """
    if not candidates:
        return Searched()
    seen = watch(bench, trace=False)
    if not set(seen.outcomes.values()) & set(RED):
        raise ModelRejected("the failing tests pass in a copy of the repository", hint=ADVICE)
    with scratch_folder() as folder, copied(bench) as pristine:
        board = folder / "board"
        board.mkdir()
        bench = bench.replace(sandbox=_shared(bench.sandbox, board, pristine))
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


def _shared(sandbox: Sandbox, board: Path, pristine: Path) -> Sandbox:
    """Let all drivers write the board and read the code as it was."""
    opened = sandbox.opened.replace(readable=(*sandbox.opened.readable, pristine))
    return sandbox.replace(writable=(board,), opened=opened)


def _work(bench: Bench, folder: Path, number: int, spec: dict[str, object], deadline: float) -> None:
    """Keep a driver at work until no candidate is left to claim; one that a candidate ended is replaced."""
    own, board = folder / f"driver-{number}", folder / "board"
    own.mkdir()
    while True:
        with copied(bench) as copy:
            seconds = max(0.0, deadline - time.monotonic())
            finished = drive(bench, copy, own, {**spec, "number": number}, seconds)
        if finished.exit_code == 0 or finished.timed_out or bench.cancelled():
            return
        left = _unfinished(board, number)
        for index in left:
            (board / f"crashed-{index}").touch()
        if not left or len(list(board.glob("crashed-*"))) >= _MOST_CRASHES:
            raise ModelRejected(f"a worker of the search for a repair crashed: {_last_words(finished)}")


def _unfinished(board: Path, number: int) -> list[int]:
    """Return what a driver claimed and did not try to the end."""
    claims = {int(path.name.removeprefix("claimed-")): path.read_text() for path in board.glob("claimed-*")}
    known = _marked(board, "lost") | _marked(board, "won") | _marked(board, "crashed")
    return [index for index, by in claims.items() if by == str(number) and index not in known]


def _marked(board: Path, word: str) -> set[int]:
    return {int(path.name.removeprefix(f"{word}-")) for path in board.glob(f"{word}-*")}


def _last_words(finished: Execution) -> str:
    said = finished.tail.strip().splitlines()[-1:] or ["it said nothing"]
    ended = "a signal" if finished.exit_code is None else f"exit {finished.exit_code}"
    return f"{said[0]} ({ended})"


def _plain(candidate: Candidate) -> dict[str, object]:
    edit = candidate.mutation
    return {"path": candidate.path, "start": edit.start, "end": edit.end, "text": edit.text}


def _result(board: Path, candidates: tuple[Candidate, ...]) -> Searched:
    """Return the first candidate that won, if all before it were tried to the end."""
    won, crashed = sorted(_marked(board, "won")), len(_marked(board, "crashed"))
    tried = _marked(board, "lost") | _marked(board, "crashed")
    if won and tried.issuperset(range(won[0])):
        return Searched(winner=candidates[won[0]], crashed=crashed)
    return Searched(crashed=crashed, untried=len(candidates) - len(tried) - len(won))
