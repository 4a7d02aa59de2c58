import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.process import Command, Finished
from agentflow.sandbox.probe import Ability, probe
from agentflow.sandbox.profile import Level, Opened
from agentflow.sandbox.run import Sandbox
from tests.support.repo import Repo

Inside = Callable[..., Finished]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    files = {"a.txt": "a\n", "src/b.txt": "b\n", ".claude/settings.json": "{}", ".gitignore": ".venv\nout\n"}
    made = Repo(tmp_path / "repo", tmp_path / "home").write(files).commit()
    return made.write({".venv/ignored.txt": "seen\n"})


@pytest.fixture(params=["full", "partial"])
def ability(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ability:
    """What the machine has, and what it has left without bubblewrap."""
    if request.param == "partial":
        monkeypatch.setenv("PATH", without_bubblewrap(tmp_path))
    found = probe()
    assert found.level == request.param, found.reason
    return found


def without_bubblewrap(place: Path) -> str:
    """Return a PATH with every program of the real one but bubblewrap."""
    folder = place / "programs"
    folder.mkdir()
    for entry in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(entry).iterdir() if Path(entry).is_dir() else ():
            if program.name != "bwrap":
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.fixture
def inside(repo: Repo, ability: Ability, tmp_path: Path) -> Inside:
    """Run a shell command as somebody."""

    def run(who: str, shell: str, timeout: float = 30, opened: Opened = Opened()) -> Finished:  # noqa: B008
        sandbox = Sandbox(root=repo.root, ability=ability, opened=opened, who=who)
        command = Command(argv=("bash", "-c", shell), cwd=str(repo.root), timeout=timeout)
        return sandbox.run(command, tmp_path / "output")

    return run


@pytest.fixture
def is_full(ability: Ability) -> bool:
    return ability.level is Level.FULL
