"""Runs an attack, and its probe where the change lies without anything that git ignores."""

import os
import subprocess
import sys
from pathlib import Path

from tests.soak.attacks.attack import Attack
from tests.support.attempts import Attempt
from tests.support.repo import Done


def attempt(attack: Attack, folder: Path) -> tuple[Attempt, Done]:
    """Return where a task was whose implementer makes the change, and how it ended."""
    tried = Attempt(folder, attack.base, runs=attack.runs)
    return tried, tried.run(
        attack.task, attack.files, "--max-iterations", "1", "--json", command=attack.command
    )


def shown(attack: Attack, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Return what the probe shows in a clone of the changed repository."""
    repo = Attempt(folder, attack.base).repo
    for name, text in attack.files.items():
        if text is None:
            (repo.root / name).unlink()
        else:
            repo.write({name: text})
    if attack.command:
        subprocess.run(["sh", "-c", attack.command], cwd=repo.root, check=True)
    repo.git("clean", "-fdXq")
    return subprocess.run(
        [sys.executable, "-c", attack.probe],
        cwd=repo.root,
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "cache"), "CI": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
