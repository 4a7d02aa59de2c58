import subprocess
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.first_commit import make_repository
from tests.unit.tools.bench import Bench


class Git(Protocol):
    def __call__(self, *argv: str) -> None: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    place.mkdir()
    make_repository(place)
    return place


@pytest.fixture
def git(root: Path) -> Git:
    def call(*argv: str) -> None:
        subprocess.run(["git", *argv], cwd=root, check=True, capture_output=True)

    return call


@pytest.fixture
def bench(root: Path, tmp_path: Path) -> Bench:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    return Bench(root, outputs)
