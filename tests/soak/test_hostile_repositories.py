"""Every command in every hostile repository, run by name: python -m pytest tests/soak."""

from pathlib import Path

import pytest

from tests.e2e.test_hostile_repositories import EVERY, HOSTILE, assert_nothing_happens


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_happens_before_trust(tmp_path: Path, name: str) -> None:
    assert_nothing_happens(tmp_path, name, EVERY)
