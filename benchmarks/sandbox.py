"""What the boundary adds to a command."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agentflow.core.evidence import Command
from agentflow.sandbox.confine import Ability, find_ability
from agentflow.sandbox.profile import CHECKS, Level
from agentflow.sandbox.run import Sandbox
from benchmarks.report import Row, alone, at_most

LEAST_ROUNDS = 21
"""A single run says little."""
FILES = 5_000
_PARTIAL = Ability(level=Level.PARTIAL)
PROFILES = (
    ("reader", "explorer", at_most(50)),
    ("writer", "implementer", at_most(50)),
    ("check", CHECKS, None),
)
"""By name: who calls, and the bound where bubblewrap does it."""


def rows(rounds: int) -> Iterator[Row]:
    """Yield what a command takes bare, in each profile, and on a view of many files."""
    rounds = max(rounds, LEAST_ROUNDS)
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        box = Sandbox(root=Path(folder, "repository").resolve(), ability=find_ability())
        made(box.root, 10)
        bare = _taken(rounds, box.replace(ability=Ability(level=Level.NONE)))
        yield alone(17, "bare command ms", bare)
        for name, who, bound in PROFILES:
            yield alone(17, f"full, {name}: added ms", _added(bare, box.of(who)), bound)
            partial = box.of(who).replace(ability=_PARTIAL)
            yield alone(17, f"partial, {name}: added ms", _added(bare, partial))
        made(box.root, FILES)
        yield alone(17, f"full, check, {FILES:,} files: added ms", _added(bare, box.of(CHECKS)), at_most(500))


def _added(bare: list[float], sandbox: Sandbox) -> list[float]:
    return [spent - statistics.median(bare) for spent in _taken(len(bare), sandbox)]


def _taken(rounds: int, sandbox: Sandbox) -> list[float]:
    command = Command(argv=("bash", "-c", "echo x > written"), cwd=str(sandbox.root), timeout=60)
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        sandbox.run(command, sandbox.root.parent / "output")
        spent.append((time.perf_counter() - begin) * 1000)
    return spent


def made(root: Path, files: int) -> None:
    """Make a repository of so many files, ten in a folder."""
    for number in range(files):
        place = root / f"d{number // 10}" / f"f{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x" * 200)
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=dict(os.environ))
