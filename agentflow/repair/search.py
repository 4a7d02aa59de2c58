"""Try candidates in throw-away copies, on all cores; the first in order that mends it wins."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import RED
from agentflow.repair.candidates import Candidate
from agentflow.repair.target import ADVICE
from agentflow.repair.trial import Bench, copied, drive, watch
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder

SEARCH_SECONDS = 120.0
_SHORTEST = 5.0
_SLOWER = 10
"""How many times longer than before the tests may take under a candidate."""


def first_plausible(bench: Bench, candidates: tuple[Candidate, ...]) -> Candidate | None:
    """Return the first candidate in order under which the tests that matter pass, or None.

    Time can only end the search without a result, never choose another one.
    """
    if not candidates:
        return None
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
        winner = _winner(board)
        return None if winner is None else candidates[winner]


def _shared(sandbox: Sandbox, board: Path, pristine: Path) -> Sandbox:
    """Let all drivers write the board and read the code as it was."""
    opened = sandbox.opened.replace(readable=(*sandbox.opened.readable, pristine))
    return sandbox.replace(writable=(board,), opened=opened)


def _work(bench: Bench, folder: Path, number: int, spec: dict[str, object], deadline: float) -> None:
    own = folder / f"driver-{number}"
    own.mkdir()
    with copied(bench) as copy:
        drive(bench, copy, own, spec, max(0.0, deadline - time.monotonic()))


def _plain(candidate: Candidate) -> dict[str, object]:
    edit = candidate.mutation
    return {"path": candidate.path, "start": edit.start, "end": edit.end, "text": edit.text}


def _winner(board: Path) -> int | None:
    """Return the first candidate that won, if all before it were tried to the end."""
    marks = {path.name for path in board.iterdir()}
    won = sorted(int(name.removeprefix("won-")) for name in marks if name.startswith("won-"))
    if won and all(f"lost-{index}" in marks for index in range(won[0])):
        return won[0]
    return None
