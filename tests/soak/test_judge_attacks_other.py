"""Bugs hidden from the tests of other languages than Python, run by name."""

from pathlib import Path

import pytest

from tests.soak.attacks.attack import NO_TEST
from tests.support.tables import Case, Trial, lay, run, table

ATTACKS = table("attacks")


@pytest.mark.parametrize("case", ATTACKS, ids=lambda case: case.id)
def test_each_attack_hides_a_bug(case: Case, tmp_path: Path) -> None:
    if case.missing:
        pytest.skip(f"NOT RUN, not here: {', '.join(case.missing)}")
    lay(tmp_path, case)
    assert run(tmp_path, case.wrong) != 0


@pytest.mark.parametrize("case", ATTACKS, ids=lambda case: case.id)
def test_no_attack_is_verified_and_each_is_named(case: Case, tmp_path: Path) -> None:
    if case.missing:
        pytest.skip(f"NOT RUN, not here: {', '.join(case.missing)}")
    trial = Trial(tmp_path, case)
    done = trial.run()
    assert done.code not in (0, 2, 70), done.err
    assert any(word in trial.told for word in (*case.named, NO_TEST)), trial.told
