import shutil
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
    shutil.copytree(folder / "now", folder / "kept", symlinks=True)
    return repo


@pytest.fixture
def done(finished: Repo) -> Repo:
    """The finished task as it was, where it was: its records name that place."""
    now = finished.root.parent
    shutil.rmtree(now)
    shutil.copytree(now.with_name("kept"), now, symlinks=True)
    return finished
