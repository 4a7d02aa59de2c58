"""Ways to hide a bug, judged by running the tests afterwards, and by agentflow."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from benchmarks.report import Row, alone, at_most
from tests.soak.attacks.attack import Attack, findings
from tests.soak.attacks.python import PYTHON
from tests.soak.attacks.run import attempt
from tests.support.attempts import Attempt
from tests.support.tables import Case, Trial, lay, run, table
from tests.support.tampering import BASE, TAMPERING, Change

_Judged = tuple[bool, bool, bool | None]
"""Whether agentflow lets a case pass, whether the tests alone do, and whether its report names the attack."""
_Case = TypeVar("_Case")


def rows(_: int) -> Iterator[Row]:
    """Yield how many cases of each family pass as verified; one round, for nothing in it is by chance."""
    others = table("attacks")
    for language in sorted({case.language for case in others}):
        found = [case for case in others if case.language == language and not case.missing]
        if found:
            yield from _compare(language, _try_other, found)
        else:
            sys.stderr.write(f"NOT RUN, for its programs are not here: {language}\n")
    for rule in sorted({attack.rule for attack in PYTHON}):
        attacks = [attack for attack in PYTHON if attack.rule == rule]
        yield from _compare(f"rule {rule}, Python", _try_python, attacks)
    for family in dict.fromkeys(case.family for case in TAMPERING):
        yield from _compare(family, _try_tampering, [case for case in TAMPERING if case.family == family])


def _compare(family: str, attempted: Callable[[_Case], _Judged], cases: Sequence[_Case]) -> Iterator[Row]:
    """Yield what became of the cases of a family, as many at once as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ours, plain, named = zip(*pool.map(attempted, cases), strict=True)
    yield Row(
        goal=5,
        metric=f"{family}: {len(ours)} cases, let pass",
        agentflow=sum(ours),
        reference=sum(plain),
        bound=at_most(0),
    )
    if None not in named:
        yield alone(5, f"{family}: {len(ours)} cases, not named", [named.count(False)])


def _try_tampering(case: Change) -> _Judged:
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        tried = Attempt(Path(folder), {**BASE, **case.base})
        done = tried.run(case.task, case.files, "--max-iterations", "1", command=case.command)
        words = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        return done.code == 0, _passes(tried, words), None


def _try_python(attack: Attack) -> _Judged:
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        tried, done = attempt(attack, Path(folder))
        commands = dict.fromkeys(each["command"] for each in done.json["checks"] if each["surface"] == "base")
        plain = all(_passes(tried, ["sh", "-c", command]) for command in commands)
        return done.code == 0, plain, any(word in findings(tried.report) for word in attack.said)


def _try_other(case: Case) -> _Judged:
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        (plain := Path(folder, "plain")).mkdir()
        lay(plain, case)
        trial = Trial(Path(folder), case)
        is_passed, is_plain = trial.run().code == 0, run(plain, case.plain) == 0
        return is_passed, is_plain, any(word in trial.told for word in case.named)


def _passes(tried: Attempt, words: list[str]) -> bool:
    done = subprocess.run(words, cwd=tried.repo.root, capture_output=True, check=False, timeout=120)
    return done.returncode == 0
