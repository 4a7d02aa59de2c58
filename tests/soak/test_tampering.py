"""Every case, run by name: python -m pytest tests/soak/test_tampering.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attempts import Attempt
from tests.support.honest import HONEST, Honest
from tests.support.tampering import BASE, TAMPERING, Change

UNNAMED = 2
"""Of all ways to hide a bug, at most so many whose report does not name them."""


@pytest.fixture(scope="module")
def unnamed() -> Iterator[list[str]]:
    """Names of the cases that were not named, counted at the end."""
    found: list[str] = []
    yield found
    assert len(found) <= UNNAMED, found


@pytest.mark.parametrize("case", TAMPERING, ids=lambda case: case.name)
def test_no_hidden_bug_is_verified(case: Change, tmp_path: Path, unnamed: list[str]) -> None:
    attempt = Attempt(tmp_path, {**BASE, **case.base})

    done = attempt.run(case.task, case.files, "--max-iterations", "1", command=case.command)

    assert done.code not in (0, 70)
    if case.said and not any(word in attempt.report for word in case.said):
        unnamed.append(case.name)


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_an_honest_change_ends_as_it_should(case: Honest, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, case.base or BASE)

    done = attempt.run(case.task, case.files, "--max-iterations", "1")

    assert done.code == case.code
    if case.code:
        assert attempt.settle("approve").code == 0
