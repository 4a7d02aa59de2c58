"""What the built-in repair engine makes of seeded bugs, by class and by half."""

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from statistics import median

import agentflow
from agentflow.core.record import Record, encode
from agentflow.core.verdict import Caveat
from agentflow.parse import decode
from benchmarks.bugs import HALVES, Bug, read_bugs
from benchmarks.clients import AGENTFLOW, Scratch, command_of
from benchmarks.report import Row, at_least, at_most

_GOAL = 18
_TASK = "make the failing tests pass"
_PROBE = Path(__file__).parent / "bugs/probe.py"
_PROGRAM = Path(agentflow.__file__).parent
_MOST_SECONDS = 20
_NORMAL = 1.96
"""How many deviations of the normal distribution hold 95 %."""
TENTHS = 10


class End(StrEnum):
    """What became of a bug."""

    MENDED = "mended"
    """Verified, and right where no test looks."""
    AMBIGUOUS_RIGHT = "ambiguous, the right edit"
    AMBIGUOUS_WRONG = "ambiguous, another edit"
    OTHER_CAVEAT = "another caveat"
    WRONG = "wrong and called verified"
    REFUSED = "not mended"


class Outcome(Record):
    """One bug, what became of it, and what that took."""

    name: str
    kind: str
    half: str
    end: End
    seconds: float
    cpu: float
    said: str
    """The last line of what was said to the user."""

    def __str__(self) -> str:
        said = f": {self.said}" if self.end is End.REFUSED else ""
        return f"{self.name}: {self.end}, {self.seconds:.1f} s, {self.cpu:.1f} s of processor{said}"


def rows(tenths: int, kept: Path | None = None) -> Iterator[Row]:
    """Yield what became of a number of tenths of the bugs, spread over all classes; Ctrl-C ends it early."""
    every = sorted(enumerate(read_bugs()), key=lambda pair: pair[0] * 7 % TENTHS)
    chosen = [bug for index, bug in every if index * 7 % TENTHS < tenths]
    outcomes = list(_measure(chosen, _Kept(kept)))
    print(f"\n{to_table(outcomes)}\n", file=sys.stderr)
    for half in HALVES:
        yield from _count(half, [each for each in outcomes if each.half == half], is_bound=False)
    yield from _count("all", outcomes, is_bound=True)


def _measure(bugs: Sequence[Bug], kept: "_Kept") -> Iterator[Outcome]:
    """Yield what becomes of each bug, those first that are known; one that is cut short is left out."""
    yield from (kept.known[bug.name] for bug in bugs if bug.name in kept.known)
    todo = [bug for bug in bugs if bug.name not in kept.known]
    cores = os.cpu_count() or 1
    pool = ThreadPoolExecutor(max(1, cores // 2))  # one search uses all cores for a part of its time
    try:
        for outcome in pool.map(_try, todo):
            kept.add(outcome)
            yield outcome
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would only cut off the table
        print("ended early: the figures are of what was measured", file=sys.stderr)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # the one at work ends by itself


class _Kept:
    """What was measured of the program as it is, in a file of one line a bug; a run goes on from there."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._code = hashlib.sha256(
            b"".join(each.read_bytes() for each in sorted(_PROGRAM.rglob("*.py")))
        ).hexdigest()
        lines = path.read_bytes().splitlines() if path is not None and path.exists() else []
        read = [decode(_Line, line, str(path)) for line in lines]
        self.known = {line.outcome.name: line.outcome for line in read if line.code == self._code}

    def add(self, outcome: Outcome) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(encode(_Line(code=self._code, outcome=outcome)) + b"\n")


class _Line(Record):
    """One line of what is kept."""

    code: str
    """A hash of the program that was measured."""
    outcome: Outcome


def to_table(outcomes: Sequence[Outcome]) -> str:
    """Return what became of the bugs, by class and by half: shares with 95 % intervals, and seconds."""
    lines: list[tuple[str, ...]] = [
        ("", "bugs", "mended", "of these ambiguous", "another edit", "wrong", "not mended", "median", "p90")
    ]
    for half in (*HALVES, "all"):
        own = [each for each in outcomes if half in (each.half, "all")]
        kinds = sorted({each.kind for each in own}) if half != "all" else []
        lines += [_to_line(f"  {kind}", [each for each in own if each.kind == kind]) for kind in kinds]
        lines += [_to_line(half, own)] if own else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _to_line(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    counts, total = Counter(each.end for each in outcomes), len(outcomes)
    seconds = sorted(each.seconds for each in outcomes)
    groups = (
        (End.MENDED, End.AMBIGUOUS_RIGHT),
        (End.AMBIGUOUS_RIGHT,),
        (End.AMBIGUOUS_WRONG, End.OTHER_CAVEAT),
        (End.WRONG,),
        (End.REFUSED,),
    )
    shares = (_to_share(sum(counts[end] for end in group), total) for group in groups)
    return (name, str(total), *shares, f"{median(seconds):.1f} s", f"{_find_p90(seconds):.1f} s")


def _to_share(count: int, total: int) -> str:
    """Return a share with Wilson's interval of 95 %."""
    share, square = count / total, _NORMAL**2 / total
    middle = (share + square / 2) / (1 + square)
    reach = _NORMAL * math.sqrt(share * (1 - share) / total + square / (4 * total)) / (1 + square)
    return f"{share:.0%} ({max(0, middle - reach):.0%} to {min(1, middle + reach):.0%})"


def _find_p90(ordered: Sequence[float]) -> float:
    return ordered[math.ceil(0.9 * len(ordered)) - 1]


def _count(name: str, outcomes: Sequence[Outcome], *, is_bound: bool) -> Iterator[Row]:
    """Yield the figures of some bugs; shares are of all of them."""
    if not outcomes:
        return
    ends = [outcome.end for outcome in outcomes]
    shares = {end: ends.count(end) / len(ends) for end in End}
    bounds = {"mended": at_least(0.75), "wrong": at_most(0.01), "median": at_most(8), "p90": at_most(40)}
    seconds = sorted(outcome.seconds for outcome in outcomes)
    figures = {
        "mended": shares[End.MENDED] + shares[End.AMBIGUOUS_RIGHT],
        "of these ambiguous": shares[End.AMBIGUOUS_RIGHT],
        "ambiguous, another edit": shares[End.AMBIGUOUS_WRONG],
        "another caveat": shares[End.OTHER_CAVEAT],
        "wrong": shares[End.WRONG],
        "not mended": shares[End.REFUSED],
        "median": median(seconds),
        "p90": _find_p90(seconds),
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
            name=bug.name,
            kind=bug.kind,
            half=bug.half,
            end=_to_end(said, is_right=is_right),
            seconds=seconds,
            cpu=cpu,
            said=said[-1],
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
