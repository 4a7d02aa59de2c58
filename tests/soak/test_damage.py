"""Every damage of the table, run by name: python -m pytest tests/soak/test_damage.py."""

import pytest

from tests.e2e.test_damage import TABLE, check_damage, repo, waiting
from tests.support.repo import Repo

__all__ = ["repo", "waiting"]


@pytest.mark.parametrize("named", TABLE)
def test_damage_is_refused_by_name_or_taken_and_told(repo: Repo, named: str) -> None:
    check_damage(repo, named)
