"""What it costs to judge a change in a large repository, against its tests run once and plainly."""

import ctypes
import os
import re
import resource
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agentflow.core.record import Record
from benchmarks.report import Bound, Row, alone, at_least, at_most, compared
from tests.support.attempts import Attempt
from tests.support.play import CALC, MENDED, call, plan, role, submit, turn, verified
from tests.support.repo import COMMAND, Repo
from tests.support.tampering import RIGHT, SETTINGS, TASK

FILES = 5_000
TESTS = 500
_TESTS_A_FILE = 10
_BUSY = """import time

from pager.core import pages


def busy():
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass

"""
_COUNTED = RIGHT.replace("-(-total // size)", "total // size")
_TEST = "\ndef test_{}():\n    busy()\n    assert pages({}, 10) == {}\n"
_ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER."""
_PHASE = "verification"
_JUDGING = re.compile(rb'"type":"(Phase\w+)","phase":"verification"')
_BETWEEN_LOOKS = 0.01
_PLAIN = (".venv/bin/python", "-m", "pytest", "-q")
"""As the required check runs them."""


class Spent(Record):
    """Seconds of a command and of all that it started."""

    wall: float
    cpu: float
    probes: Mapping[str, float] = {}
    """Of those, what each kind of probe took."""


def rows(rounds: int) -> Iterator[Row]:
    """Yield what the judgement costs after the first run of the tests, which is before any change."""
    same = [_round({"pager/core.py": RIGHT}) for _ in range(rounds)]
    over = [ours.wall - 1.3 * plain.wall for ours, plain in same]
    yield alone(5, "the same checks: wall s over 1.3 x their run", over, at_most(1))
    for kind in dict.fromkeys(kind for ours, _ in same for kind in ours.probes):
        yield alone(5, f"the same checks: probe {kind}: s", [ours.probes.get(kind, 0) for ours, _ in same])
    yield _row("the same checks: wall s / their run", same, "wall")
    both = {"pager/core.py": RIGHT, "tests/test_0.py": f"{_file(0)}\n# read\n"}
    changed = [_round(both) for _ in range(rounds)]
    yield _row("changed checks: cpu s / their run", changed, "cpu", at_most(2.3))
    yield _row("changed checks: wall s / their run", changed, "wall", at_most(1.5))
    together = [_judges() for _ in range(rounds)]
    yield alone(5, "reviewer and verifier of 1 s each, side by side: s", together, at_most(1.6))
    in_turn = [_judges("--sequential") for _ in range(rounds)]
    yield alone(5, "reviewer and verifier of 1 s each, in turn: s", in_turn, at_least(2))


def _row(metric: str, spent: Sequence[tuple[Spent, Spent]], kind: str, bound: Bound | None = None) -> Row:
    ours, plain = ([getattr(each, kind) for each in side] for side in zip(*spent, strict=True))
    return compared(5, metric, ours, plain, bound)


def _round(change: Mapping[str, str]) -> tuple[Spent, Spent]:
    """Return what judging a change takes, from its first check to its last, and what its tests take."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        attempt = Attempt(Path(folder), _repository())
        return _judged(attempt, change), _plain(attempt)


def _judges(*options: str) -> float:
    """Return what both judges of a small change take, each of which has to wait a second for its model."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        repo = Repo(Path(folder, "repo"), Path(folder, "home")).write(CALC).commit()
        review = role("reviewer", turn(call("SubmitReview", verdict="APPROVED", issues=[])))
        judges = [{**judge, "delay": 1} for judge in (review, verified("ev-0002"))]
        work = role("implementer", *MENDED, submit("calc.py"))
        done = repo.task("refactor add", *options, script=[plan("calc.py"), work, *judges])
        assert done.code == 0, done.err
        ends = {event["phase"]: event["seconds"] for event in repo.events("PhaseEnded")}
        return float(ends["review"] + (ends["verification"] if options else 0))


def _repository() -> dict[str, str]:
    files = {f"assets/d{number // 50}/f{number}.txt": "x" * 200 for number in range(FILES)}
    tests = {f"tests/test_{number}.py": _file(number) for number in range(TESTS // _TESTS_A_FILE)}
    start = {"pager/__init__.py": "", "pager/core.py": _COUNTED, "pyproject.toml": SETTINGS}
    start[".gitignore"] = ".venv/\n__pycache__/\n"
    return {**files, **tests, **start}


def _file(number: int) -> str:
    """Return a file of tests; those of the first are red as long as the last page is not counted."""
    more = 0 if number else 5
    totals = range(10 * number, 10 * number + _TESTS_A_FILE)
    return _BUSY + "".join(_TEST.format(name, 10 * name + more, name + bool(more)) for name in totals)


def _judged(attempt: Attempt, change: Mapping[str, str]) -> Spent:
    """Run a task; what all its processes spend is read as its verification starts and as it ends."""
    model = attempt.repo.scripted(attempt.script(change))
    words = (str(COMMAND), "task", TASK, "--model", model)
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    read: dict[str, float] = {}
    root, nowhere = attempt.repo.root, subprocess.DEVNULL
    with subprocess.Popen(
        words, cwd=root, env=attempt.repo.environment, stdout=nowhere, stderr=nowhere
    ) as task:
        while not _has_ended(task.pid):
            for event in _phases(root):
                read.setdefault(event, _cpu(task.pid))
            time.sleep(_BETWEEN_LOOKS)
        assert task.wait() == 0
    (wall,) = (each["seconds"] for each in attempt.repo.events("PhaseEnded") if each["phase"] == _PHASE)
    probes = defaultdict[str, float](float)
    for each in attempt.repo.events("Probed"):
        probes[each["kind"]] += each["seconds"]
    return Spent(wall=wall, cpu=read["PhaseEnded"] - read["PhaseStarted"], probes=probes)


def _phases(root: Path) -> Iterator[str]:
    """Yield whether verification has started, and whether it has ended; to look must cost next to nothing."""
    for events in root.glob(".claude/agentflow/*/events.jsonl"):
        yield from (found.decode() for found in _JUDGING.findall(events.read_bytes()))


def _cpu(process: int) -> float:
    """Return the seconds of a process and of all that ended below it, whoever waited for them."""
    words = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    orphans = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK") + orphans.ru_utime + orphans.ru_stime


def _has_ended(process: int) -> bool:
    """Take note of orphans that ended, as long as a process goes on."""
    while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
        if found.si_pid == process:
            return True
        os.waitpid(found.si_pid, 0)
    return False


def _plain(attempt: Attempt) -> Spent:
    """Run the tests as they are."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = attempt.repo.environment
    subprocess.run(_PLAIN, cwd=attempt.repo.root, env=environment, capture_output=True, check=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall=wall, cpu=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
