"""Ways to hide a bug, judged by running the tests afterwards, and by agentflow."""

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.report import Row, at_most
from tests.soak.attacks.attack import Attack
from tests.soak.attacks.python import PYTHON
from tests.soak.attacks.run import attempt
from tests.support.attempts import Attempt
from tests.support.tables import Case, Trial, lay, run, table
from tests.support.tampering import BASE, TAMPERING, Change


def rows(_: int) -> Iterator[Row]:
    """Yield how many cases of each family pass as verified; one round, for nothing in it is by chance."""
    for family in dict.fromkeys(case.family for case in TAMPERING):
        yield _row(family, [_judged(case) for case in TAMPERING if case.family == family])
    for rule in sorted({attack.rule for attack in PYTHON}):
        yield _row(f"rule {rule}, Python", [_attacked(attack) for attack in PYTHON if attack.rule == rule])
    others = table("attacks")
    for language in sorted({case.language for case in others}):
        found = [case for case in others if case.language == language and not case.missing]
        if found:
            yield _row(language, map(_tried, found))
        else:
            sys.stderr.write(f"NOT RUN, for its programs are not here: {language}\n")


def _row(family: str, judged: Iterable[tuple[bool, bool]]) -> Row:
    ours, plain = zip(*judged, strict=True)
    return Row(
        goal=5,
        metric=f"{family}: {len(ours)} cases, let pass",
        agentflow=sum(ours),
        reference=sum(plain),
        bound=at_most(0),
    )


def _judged(case: Change) -> tuple[bool, bool]:
    """Return whether agentflow lets a case pass, and whether the tests alone do."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        tried = Attempt(Path(folder), {**BASE, **case.base})
        done = tried.run(case.task, case.files, "--max-iterations", "1", command=case.command)
        words = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        return done.code == 0, _passes(tried, words)


def _attacked(attack: Attack) -> tuple[bool, bool]:
    """Return whether agentflow lets an attack pass, and whether the checks alone do."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        tried, done = attempt(attack, Path(folder))
        commands = dict.fromkeys(each["command"] for each in done.json["checks"] if each["surface"] == "base")
        return done.code == 0, all(_passes(tried, ["sh", "-c", command]) for command in commands)


def _tried(case: Case) -> tuple[bool, bool]:
    """Return whether agentflow lets an attack in another language pass, and whether its tests alone do."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        (plain := Path(folder, "plain")).mkdir()
        lay(plain, case)
        return Trial(Path(folder), case).run().code == 0, run(plain, case.plain) == 0


def _passes(tried: Attempt, words: list[str]) -> bool:
    done = subprocess.run(words, cwd=tried.repo.root, capture_output=True, check=False, timeout=120)
    return done.returncode == 0
