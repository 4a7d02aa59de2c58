from pathlib import Path

import pytest

from tests.support.repo import NewRepo, Repo


@pytest.fixture
def new_repo(tmp_path: Path) -> NewRepo:
    def make(files: dict[str, str]) -> Repo:
        return Repo(tmp_path / "repo", tmp_path / "home").write(files).commit()

    return make
