from pathlib import Path

import pytest

from agentflow.loop.agent import Surroundings
from tests.unit.compose.parts import around


@pytest.fixture
def place(tmp_path: Path) -> Surroundings:
    return around(tmp_path)
