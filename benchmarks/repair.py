"""What the built-in repair engine makes of seeded bugs, by class and by half."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from statistics import median

from agentflow.core.record import Record
from agentflow.core.verdict import Caveat
from benchmarks.bugs import HALVES, Bug, read_bugs
from benchmarks.clients import AGENTFLOW, Scratch, command_of
from benchmarks.report import Row, at_least, at_most

_GOAL = 18
_TASK = "make the failing tests pass"
_PROBE = Path(__file__).parent / "bugs/probe.py"
_MOST_SECONDS = 20
TENTHS = 10


class End(StrEnum):
    """What became of a bug."""

    MENDED = "mended"
    """Verified, and right where no test looks."""
    AMBIGUOUS_RIGHT = "ambiguous, the right edit"
    AMBIGUOUS_WRONG = "ambiguous, another edit"
    OTHER_CAVEAT = "another caveat"
    WRONG = "wrong and called verified"
    REFUSED = "refused"


class Outcome(Record):
    """One bug, what became of it, and what that took."""

    bug: Bug
    end: End
    seconds: float
    cpu: float
    said: str
    """The last line of what was said to the user."""

    def __str__(self) -> str:
        said = f": {self.said}" if self.end is End.REFUSED else ""
        return f"{self.bug.name}: {self.end}, {self.seconds:.1f} s, {self.cpu:.1f} s of processor{said}"


def rows(tenths: int) -> Iterator[Row]:
    """Yield what became of a number of tenths of the bugs, spread over all classes."""
    chosen = [bug for index, bug in enumerate(read_bugs()) if index * 7 % TENTHS < tenths]
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(max(1, cores // 2)) as pool:  # one search uses all cores for a part of its time
        outcomes = list(pool.map(_try, chosen))
    for kind in sorted({outcome.bug.kind for outcome in outcomes}):
        yield from _count(kind, [each for each in outcomes if each.bug.kind == kind], is_bound=False)
    for half in HALVES:
        yield from _count(half, [each for each in outcomes if each.bug.half == half], is_bound=False)
    yield from _count("all", outcomes, is_bound=True)


def _count(name: str, outcomes: Sequence[Outcome], *, is_bound: bool) -> Iterator[Row]:
    """Yield the figures of some bugs; shares are of all of them."""
    if not outcomes:
        return
    ends = [outcome.end for outcome in outcomes]
    shares = {end: ends.count(end) / len(ends) for end in End}
    mended = shares[End.MENDED] + shares[End.AMBIGUOUS_RIGHT]
    bounds = {"mended": at_least(0.75), "wrong": at_most(0.01), "median": at_most(8), "p90": at_most(40)}
    seconds = sorted(outcome.seconds for outcome in outcomes)
    figures = {
        "mended": mended,
        "of these ambiguous": shares[End.AMBIGUOUS_RIGHT],
        "ambiguous, another edit": shares[End.AMBIGUOUS_WRONG],
        "another caveat": shares[End.OTHER_CAVEAT],
        "wrong": shares[End.WRONG],
        "refused": shares[End.REFUSED],
        "median": median(seconds),
        "p90": seconds[math.ceil(0.9 * len(seconds)) - 1],
        "cpu": median(outcome.cpu for outcome in outcomes),
    }
    for metric, figure in figures.items():
        bound = bounds.get(metric) if is_bound else None
        yield Row(goal=_GOAL, metric=f"{name}: {metric}", agentflow=figure, bound=bound, rounds=len(outcomes))


def _try(bug: Bug) -> Outcome:
    """Let the engine mend a bug, and see what the code does then."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        place = Scratch(root=Path(folder, "repo"), home=Path(folder, "home"))
        bug.lay(place.root)
        place.home.mkdir()
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgSign=false")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "start")):
            subprocess.run(["git", *identity, *words], cwd=place.root, check=True)
        begin = time.monotonic()
        said, cpu = _run(place)
        seconds = time.monotonic() - begin
        is_right = _probe(bug, place.root / f"shop/{bug.module}.py") == _probe(bug, None)
        outcome = Outcome(
            bug=bug, end=_to_end(said, is_right=is_right), seconds=seconds, cpu=cpu, said=said[-1]
        )
    print(outcome, file=sys.stderr)
    return outcome


def _run(place: Scratch) -> tuple[list[str], float]:
    """Run the task, and return what it printed and the processor time of all its processes."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    words = command_of(AGENTFLOW, "task", "--model", "repair", "--no-input", "--json", "--", _TASK)
    with (
        tempfile.TemporaryFile() as out,
        subprocess.Popen(
            words,
            cwd=place.root,
            env={**kept, "HOME": str(place.home), "AGENTFLOW_HOME": str(place.home)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as task,
    ):
        _, status, used = os.wait4(task.pid, 0)
        task.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        lines = out.read().decode().splitlines() or [""]
    return [str(task.returncode), *lines], used.ru_utime + used.ru_stime


def _to_end(said: Sequence[str], *, is_right: bool) -> End:
    code, text = said[0], "\n".join(said[1:])
    match code:
        case "0":
            return End.MENDED if is_right else End.WRONG
        case "4" if Caveat.AMBIGUOUS_REPAIR in text:
            return End.AMBIGUOUS_RIGHT if is_right else End.AMBIGUOUS_WRONG
        case "4":
            return End.OTHER_CAVEAT
        case _:
            return End.REFUSED


def _probe(bug: Bug, module: Path | None) -> list[str] | None:
    """Return what a module does where no test looks: the right one without a path."""
    with tempfile.TemporaryDirectory() as folder:
        text = bug.right if module is None else module.read_text("utf-8")
        Path(folder, "module.py").write_text(text, "utf-8")
        Path(folder, "probes.json").write_text(json.dumps(bug.probes), "utf-8")
        words = [sys.executable, str(_PROBE), "module.py", "probes.json"]
        env = {**os.environ, "PYTHONHASHSEED": "0"}  # what a set shows depends on it
        try:
            done = subprocess.run(
                words, cwd=folder, env=env, capture_output=True, check=True, timeout=_MOST_SECONDS
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
        found: list[str] = json.loads(done.stdout)
        return found
