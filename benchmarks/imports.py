"""What the packages on the way of a task take to import."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

from benchmarks.clients import AGENTFLOW, Scratch, scratch, start, task_words
from benchmarks.report import Row, alone
from benchmarks.server import rehearsed, serving

LEAST_MS = 1.0
"""Packages below it are one row together."""
_TIMED = re.compile(r"import time: +(\d+) \| +\d+ \| ( *)(\S+)")
_REST = "the rest"


def rows(rounds: int) -> Iterator[Row]:
    """Yield milliseconds of each package, the slowest first; timing itself makes them a third longer."""
    with scratch() as place, serving(rehearsed(1, "true")) as server:
        start(AGENTFLOW, place, server.address).wait()  # compiles what is not compiled yet
        runs = [by_package(timed(place, server.address)) for _ in range(rounds)]
    names = {name: median(run[name] for run in runs) for run in runs for name in run}
    small = {name for name, spent in names.items() if spent < LEAST_MS}
    yield alone(1, "imports of a task ms", [sum(run.values()) for run in runs])
    for name in sorted(names.keys() - small, key=lambda name: -names[name]):
        yield alone(1, f"imports of a task ms, {name}", [run[name] for run in runs])
    yield alone(1, f"imports of a task ms, {_REST}", [sum(run[name] for name in small) for run in runs])


def timed(place: Scratch, address: str) -> str:
    """Run a task; return what Python says of its imports."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agentflow", *task_words()],
        cwd=place.root,
        env=place.environment(address),
        capture_output=True,
        text=True,
        check=False,  # a task that changes nothing ends unverified
    ).stderr


def by_package(said: str) -> Mapping[str, float]:
    """Return milliseconds by package; a module of the standard library counts for who wanted it first."""
    spent: dict[str, float] = defaultdict(float)
    owners: list[str] = []
    for own, indent, module in reversed(_TIMED.findall(said)):  # a module is told of after those it imports
        depth, name = len(indent) // 2, module.partition(".")[0]
        wanted_by = owners[depth - 1] if depth else "agentflow"
        owners[depth:] = [wanted_by if name in sys.stdlib_module_names else name]
        spent[owners[depth]] += int(own) / 1000
    return spent
