from pathlib import Path

import pytest

from tests.support import play
from tests.support.boxes import without_bubblewrap
from tests.support.repo import NewRepo, Repo


@pytest.fixture
def new_repo(tmp_path: Path) -> NewRepo:
    def make(files: dict[str, str]) -> Repo:
        return Repo(tmp_path / "repo", tmp_path / "home").write(files).commit()

    return make


@pytest.fixture(scope="session")
def bare_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where programs are, without bubblewrap."""
    return without_bubblewrap(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with a task that was verified, and beside it, under `kept`, the same once more."""
    folder = tmp_path_factory.mktemp("finished")
    repo = Repo(folder / "now/repo", folder / "now/home").write(play.CALC).commit()
    assert repo.task(script=play.mending()).code == 0
    (repo.home / "script.yaml").unlink()
    repo.keep()
    return repo


@pytest.fixture
def done(finished: Repo) -> Repo:
    """The finished task as it was, where it was: its records name that place."""
    return finished.put_back()
