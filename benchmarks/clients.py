"""One measured run of a client: agentflow's real command, or a reference loop, before the model server."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from agentflow.core.record import Record, encode
from agentflow.settings import find_bundled
from benchmarks.server import Asked, ModelServer, Script, serving

ROOT = Path(__file__).resolve().parent.parent
AGENTFLOW = "agentflow"
STREAMED = "agentflow streamed"
STDLIB = "bare-stdlib-incr"
ANTHROPIC = "bare-anthropic"
_LOOPS = {STDLIB: "stdlib", ANTHROPIC: "anthropic"}
_TICK = 0.01
_TURNS = 5_000
"""What the implementer of a benchmark may take."""
BLOCK = "block.txt"
"""A file of 4 KB in the scratch repository."""
_FILES = {f"src/part{n:02}.py": f"def part{n}():\n    return {n}\n" * 20 for n in range(38)}
"""The others, for a repository of 40 files has to be looked at before the first request."""
_MODELS = {"deep": "big-1", "fast": "small-1"}


class Measured(Record):
    """What one run cost."""

    startup: float
    """Seconds to the first request that offers tools."""
    gaps: tuple[float, ...]
    """Seconds from the end of an answer to the next request, within the working role's run."""
    exit: float
    """Seconds from the last byte of the last answer to the end of the process."""
    cpu: float
    pss: float
    """Peak of the process tree in MB; 0 where it was not sampled."""

    @property
    def gap(self) -> float:
        return median(self.gaps)

    @property
    def calm_gap(self) -> float:
        """The gap that a tenth of the turns stay below: what is least disturbed by other work."""
        return sorted(self.gaps)[len(self.gaps) // 10]

    @property
    def growth(self) -> float:
        """The gap of the last tenth over the gap of the first."""
        tenth = max(1, len(self.gaps) // 10)
        return median(self.gaps[-tenth:]) / median(self.gaps[:tenth])


class Scratch(Record):
    """A git repository without checks, and a home in which the implementer may take many turns."""

    root: Path
    home: Path

    def environment(self, address: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        own = {"HOME": str(self.home), "AGENTFLOW_HOME": str(self.home), "PYTHONPATH": str(ROOT)}
        return {**kept, **own, "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "local"}

    def configure(self, *, stream: bool) -> None:
        """Write the user's settings."""
        path = self.home / ".config/agentflow/config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        waits = {"repair_seconds": 0, "first_request_seconds": 60}
        path.write_bytes(encode({"models": _MODELS, "stream": stream, **waits}))


@contextmanager
def scratch(files: dict[str, str] | None = None) -> Iterator[Scratch]:
    """Make a repository and a home for one run, and remove them."""
    with TemporaryDirectory(prefix="agentflow-bench-") as folder:
        place = Scratch(root=Path(folder, "repo"), home=Path(folder, "home"))
        for name, content in {BLOCK: "0123456789abcde\n" * 256, **_FILES, **(files or {})}.items():
            path = place.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgSign=false")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "scratch")):
            subprocess.run(["git", *identity, *words], cwd=place.root, check=True)
        _give_role(place.home)
        place.configure(stream=False)
        yield place


def _give_role(home: Path) -> None:
    """Give the shipped implementer wider limits, as a role file of the user."""
    text = (find_bundled("agents") / "implementer.md").read_text()
    path = home / ".claude/agents/implementer.md"
    path.parent.mkdir(parents=True)
    limits = f"maxTurns: {_TURNS}\nlimits: {{tool_calls: {_TURNS}}}"
    path.write_text(text.replace("maxTurns: 100\nlimits: {tool_calls: 100}", limits))


def command_of(client: str, *words: str) -> list[str]:
    """Return the command line of a client."""
    if client in _LOOPS:
        return [sys.executable, "-m", "benchmarks.reference", _LOOPS[client]]
    command = str(Path(sys.executable).with_name("agentflow"))
    return [command, *(words or task_words())]


def task_words(*more: str) -> tuple[str, ...]:
    text = "let add return the sum"
    return ("task", "--plan", text, "--model", "anthropic", "--no-sandbox", "--max-iterations", "1", *more)


def start(client: str, place: Scratch, address: str, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command_of(client, *words),
        cwd=place.root,
        env=place.environment(address),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def measure(client: str, script: Script, *, memory: bool = False) -> Measured:
    """Run a client to its end. Memory is sampled in runs of its own, because sampling takes time."""
    with scratch() as place, serving(script) as server:
        place.configure(stream=client == STREAMED)
        begin = time.monotonic()
        child = start(client, place, server.address)
        peak = _peak(child.pid) if memory else 0.0
        _, _, used = os.wait4(child.pid, 0)
        end = time.monotonic()
        child.returncode = 0  # it was waited for here
        return _measured(server, begin, end, used.ru_utime + used.ru_stime, peak)


def _measured(server: ModelServer, begin: float, end: float, cpu: float, peak: float) -> Measured:
    asked = server.asked
    if not asked:
        raise RuntimeError("the client ended without a request")
    first = next(one for one in asked if b'"tools"' in one.raw)
    return Measured(
        startup=first.arrived - begin,
        gaps=tuple(gaps(asked)),
        exit=end - asked[-1].ended,
        cpu=cpu,
        pss=peak,
    )


def gaps(asked: list[Asked]) -> Iterator[float]:
    working = [one for one in asked if one.role in {"", "implementer"}]
    for before, after in pairwise(working):
        yield after.arrived - before.ended


def _peak(pid: int) -> float:
    """Sample a process tree until its root has ended, and return its peak in MB."""
    peak = 0
    while not _is_over(pid):
        peak = max(peak, sum(map(_pss, _tree(pid))))
        time.sleep(_TICK)
    return peak / 1024


def _is_over(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _tree(pid: int) -> list[int]:
    """Return a process and its descendants, without those that still use its own memory.

    That is what a child does between vfork and exec; its memory would count twice.
    """
    own = _read(pid, "cmdline")
    try:
        threads = [path.name for path in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []  # it has ended
    named = [int(word) for thread in threads for word in _read(pid, f"task/{thread}/children").split()]
    return [pid, *(one for child in named if _read(child, "cmdline") != own for one in _tree(child))]


def _pss(pid: int) -> int:
    lines = _read(pid, "smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _read(pid: int, name: str) -> str:
    """Return a file of a process; nothing once it has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
