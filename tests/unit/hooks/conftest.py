from pathlib import Path

import pytest

from agentflow.core.points import Scene
from tests.unit.hooks.stage import a_scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return a_scene(tmp_path)


@pytest.fixture
def root() -> Path:
    return Path(__file__).parents[3]
