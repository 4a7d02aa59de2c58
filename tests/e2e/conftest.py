from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.repo import Repo


@pytest.fixture
def new_repo(tmp_path: Path) -> Callable[[dict[str, str]], Repo]:
    def make(files: dict[str, str]) -> Repo:
        return Repo(tmp_path / "repo", tmp_path / "home").write(files).commit()

    return make
