"""The levels of the sandbox on this machine, by who runs the program and which programs it finds."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

import agentflow
from tests.support.boxes import without_bubblewrap
from tests.support.repo import Repo

NOBODY = 65534
PACKAGES = f"{Path(agentflow.__file__).parents[1]}:{sysconfig.get_path('purelib')}"
IDENTITY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
_PROBE = """
from agentflow.sandbox.confine import find_ability
found = find_ability()
print(found.level, found.reason)
"""


class Level(NamedTuple):
    """What the sandbox can be for somebody."""

    name: str
    sandbox: str
    """What it has to be."""
    identity: dict[str, Any]
    """Who starts the program, as `subprocess.run` is told."""


_OWN = "root" if os.getuid() == 0 else "an ordinary user"
LEVELS = (
    Level(f"bubblewrap as {_OWN}", "full", {}),
    Level(f"Landlock as {_OWN}", "partial", {}),
    Level("bubblewrap as another user", "full", IDENTITY),
    Level("Landlock as another user", "partial", IDENTITY),
)[: 4 if os.getuid() == 0 else 2]
"""Root can be anybody; anybody else only themselves."""


class Machine:
    """Where the program runs at one level: who starts it, with which programs, in folders of theirs."""

    def __init__(self, level: Level, folder: Path) -> None:
        self.level = level
        self.folder = folder
        folder.chmod(0o755)
        program = without_bubblewrap(folder) if level.sandbox == "partial" else None
        usual = "/usr/local/bin:/usr/bin:/bin" if level.identity else os.environ["PATH"]
        python = interpreter() if level.identity else sys.executable
        self.command = (python or "", "-m", "agentflow")
        self.env = {"PATH": program or usual, "PYTHONPATH": PACKAGES, "HOME": str(self.own("home"))}

    @property
    def options(self) -> dict[str, Any]:
        """How a repository's `run` and `task` start the program at this level."""
        return {"command": self.command, "env": self.env}

    def own(self, name: str) -> Path:
        """Make a folder that belongs to who starts the program."""
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        if self.level.identity:
            os.chown(place, NOBODY, NOBODY)
        return place

    def repo(self, name: str, files: dict[str, str]) -> Repo:
        """Make a repository with one commit."""
        repo = Repo(self.own(name), self.own("agentflow"), self.level.identity)
        return repo.write(files).commit()

    def lacks(self) -> str:
        """Return why the level cannot be had here; or empty."""
        if not self.command[0]:
            return "there is no Python that others may run"
        words = (self.command[0], "-c", _PROBE)
        said = subprocess.run(
            words, cwd="/", env=self.env, capture_output=True, text=True, check=False, **self.level.identity
        )
        found, _, reason = said.stdout.partition(" ")
        return "" if found == self.level.sandbox else f"it is {found}: {reason or said.stderr}".strip()


def interpreter() -> str | None:
    """Return a Python that has our packages and that others may run; the usual one may lie in a home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for program in (os.path.realpath(sys.executable), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        words, env = [program, "-c", "import msgspec"], {"PYTHONPATH": PACKAGES}
        try:
            subprocess.run(words, env=env, cwd="/", check=True, **IDENTITY)
        except (OSError, subprocess.CalledProcessError):
            continue
        return program
    return None
