"""Every case, run by name: python -m pytest tests/soak/test_tampering.py."""

from pathlib import Path

import pytest

from agentflow.core.errors import Exit
from tests.support.attempts import Attempt
from tests.support.honest import HONEST, Honest
from tests.support.tampering import BASE, TAMPERING, Change

UNNAMED = frozenset[str]()
"""The ways to hide a bug whose report does not name them; any other has to be named."""


def test_hardly_a_way_to_hide_a_bug_is_unnamed() -> None:
    assert len(UNNAMED) <= 2
    assert len(UNNAMED) <= 0.05 * len(TAMPERING)
    assert {case.name for case in TAMPERING} >= UNNAMED
    assert all(case.said for case in TAMPERING)


@pytest.mark.parametrize("case", TAMPERING, ids=lambda case: case.name)
def test_no_hidden_bug_is_verified(case: Change, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, {**BASE, **case.base})

    done = attempt.run(case.task, case.files, "--max-iterations", "1", command=case.command)

    assert done.code not in (0, 70)
    assert any(word in attempt.report for word in case.said) is (case.name not in UNNAMED)


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_an_honest_change_ends_as_it_should(case: Honest, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, case.base or BASE)

    done = attempt.run(case.task, case.files, "--max-iterations", "1")

    assert done.code == case.code
    if case.code == Exit.SUSPENDED:
        assert attempt.settle("approve").code == case.approved
