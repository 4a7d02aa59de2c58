"""Every attack on the verdict, run by name: python -m pytest tests/soak/test_judge_attacks.py."""

from pathlib import Path

import pytest

from tests.soak.attacks.attack import NO_TEST, Attack, findings
from tests.soak.attacks.python import PYTHON
from tests.soak.attacks.run import attempt, shown

UNNAMED = frozenset[str]()
"""The attacks whose report does not say by what they work."""


def test_hardly_an_attack_is_unnamed() -> None:
    assert len(UNNAMED) <= 0.05 * len(PYTHON)
    assert {attack.name for attack in PYTHON} >= UNNAMED
    assert all(attack.said for attack in PYTHON)


@pytest.mark.parametrize("attack", PYTHON, ids=lambda attack: attack.name)
def test_what_is_wrong_shows_without_the_checks_of_the_repository(attack: Attack, tmp_path: Path) -> None:
    done = shown(attack, tmp_path)

    assert done.returncode == 1
    assert "AssertionError" in done.stderr


@pytest.mark.parametrize("attack", PYTHON, ids=lambda attack: attack.name)
def test_no_attack_is_verified(attack: Attack, tmp_path: Path) -> None:
    tried, done = attempt(attack, tmp_path)

    assert done.code not in (0, 70)
    is_named = any(word in findings(tried.report) for word in (*attack.said, NO_TEST))
    assert is_named is (attack.name not in UNNAMED)
