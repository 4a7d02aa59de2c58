from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.evidence import Command, Execution
from agentflow.sandbox.confine import Ability, find_ability
from agentflow.sandbox.profile import Level, SandboxOpenings
from agentflow.sandbox.run import Sandbox
from tests.support.boxes import without_bubblewrap
from tests.support.repo import Repo

Inside = Callable[..., Execution]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    files = {"a.txt": "a\n", "src/b.txt": "b\n", ".claude/settings.json": "{}", ".gitignore": ".venv\nout\n"}
    made = Repo(tmp_path / "repo", tmp_path / "home").write(files).commit()
    return made.write({".venv/ignored.txt": "seen\n"})


@pytest.fixture(scope="session")
def bare_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return without_bubblewrap(tmp_path_factory.mktemp("bare"))


@pytest.fixture(params=["full", "partial"])
def ability(request: pytest.FixtureRequest, bare_path: str, monkeypatch: pytest.MonkeyPatch) -> Ability:
    """What the machine has, and what it has left without bubblewrap."""
    with monkeypatch.context() as patched:
        if request.param == "partial":
            patched.setenv("PATH", bare_path)
        found = find_ability()
    assert found.level == request.param, found.reason
    return found


@pytest.fixture
def inside(repo: Repo, ability: Ability, tmp_path: Path) -> Inside:
    """Run a shell command as somebody."""

    nothing = SandboxOpenings()

    def run(who: str, shell: str, timeout: float = 30, opened: SandboxOpenings = nothing) -> Execution:
        sandbox = Sandbox(root=repo.root, ability=ability, opened=opened, who=who)
        command = Command(argv=("bash", "-c", shell), cwd=str(repo.root), timeout=timeout)
        return sandbox.run(command, tmp_path / "output")

    return run


@pytest.fixture
def is_full(ability: Ability) -> bool:
    return ability.level is Level.FULL
