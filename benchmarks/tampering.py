"""Ways to hide a bug, judged by running the tests afterwards, and by agentflow."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Row, at_most
from tests.support.attempts import Attempt
from tests.support.tampering import BASE, TAMPERING, Change


def rows(_: int) -> Iterator[Row]:
    """Yield how many cases of each family pass as verified; one round, for nothing in it is by chance."""
    for family in dict.fromkeys(case.family for case in TAMPERING):
        cases = [case for case in TAMPERING if case.family == family]
        ours, plain = zip(*map(_judged, cases), strict=True)
        yield Row(
            goal=5,
            metric=f"{family}: {len(cases)} cases, let pass",
            agentflow=sum(ours),
            reference=sum(plain),
            bound=at_most(0),
        )


def _judged(case: Change) -> tuple[bool, bool]:
    """Return whether agentflow lets a case pass, and whether the tests alone do."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        attempt = Attempt(Path(folder), {**BASE, **case.base})
        done = attempt.run(case.task, case.files, "--max-iterations", "1", command=case.command)
        words = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        tests = subprocess.run(words, cwd=attempt.repo.root, capture_output=True, check=False, timeout=120)
    return done.code == 0, tests.returncode == 0
