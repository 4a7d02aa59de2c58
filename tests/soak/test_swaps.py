"""Run by name: python -m pytest tests/soak."""

from pathlib import Path

from tests.unit.workspace.swaps import attacked


def test_ten_thousand_swaps_lead_nowhere(tmp_path: Path) -> None:
    assert attacked(tmp_path, 10_000) > 0
