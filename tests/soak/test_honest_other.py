"""Honest changes in other languages than Python, run by name."""

from pathlib import Path

import pytest

from tests.support.tables import Case, Trial, table

HONEST = table("honest")


def test_most_of_them_end_verified_and_hardly_any_asks() -> None:
    assert sum(case.code == 0 for case in HONEST) >= 0.8 * len(HONEST)
    assert sum(case.code == 75 for case in HONEST) <= 0.05 * len(HONEST)


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.id)
def test_an_honest_change_ends_as_it_should(case: Case, tmp_path: Path) -> None:
    if case.missing:
        pytest.skip(f"NOT RUN, not here: {', '.join(case.missing)}")
    trial = Trial(tmp_path, case)
    done = trial.run()
    assert done.code == case.code, trial.told
