"""Attacks on the verdict end in no pass; the whole table is in tests/soak."""

from pathlib import Path

import pytest

from tests.soak.attacks.attack import Attack, findings
from tests.soak.attacks.python import PYTHON
from tests.soak.attacks.run import attempt

SHORT = (
    "a class that unittest cases are mixed from",
    "a second hunk that no case of unittest sees",
    "a mock in place of a result, for unittest",
    "answers learned by heart, for unittest",
)


@pytest.mark.parametrize(
    "attack", [each for each in PYTHON if each.name in SHORT], ids=lambda attack: attack.name
)
def test_no_attack_is_verified_and_the_report_says_how(attack: Attack, tmp_path: Path) -> None:
    tried, done = attempt(attack, tmp_path)

    assert done.code not in (0, 70)
    assert any(word in findings(tried.report) for word in attack.said)
