"""Everyday changes that are right, run by name: python -m pytest tests/soak/test_honest_changes.py."""

from pathlib import Path

import pytest

from agentflow.core.errors import Exit
from tests.soak.honest.attempting import Played
from tests.soak.honest.entries import Entry
from tests.soak.honest.table import ENTRIES


def test_few_are_asked_about_and_none_is_refused() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES) >= 60
    assert {code for entry in ENTRIES for code in entry.ends} <= {0, 4, 75}
    assert sum(75 in entry.ends for entry in ENTRIES) <= 0.05 * len(ENTRIES)
    assert sum(0 in entry.ends for entry in ENTRIES) >= 0.8 * len(ENTRIES)
    assert all(entry.caveat for entry in ENTRIES if 4 in entry.ends)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_right_change_is_not_refused(entry: Entry, tmp_path: Path) -> None:
    played = Played(entry, tmp_path)

    assert played.done.code in entry.ends, played.done.out + played.done.err
    assert played.is_done or played.done.code == Exit.SUSPENDED
    if played.done.code == Exit.CAVEAT:
        assert entry.caveat in played.attempt.report
