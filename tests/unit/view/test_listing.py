"""The table of tasks, at the widths of terminals."""

from datetime import UTC, datetime

import pytest

from agentflow.core.task import Status
from agentflow.view.tasks import INTERRUPTED, UNDONE, TaskRow, draw_tasks
from agentflow.view.text import count_cells
from tests.unit.view.material import TASK_ID

NOW = datetime(2026, 1, 2, 4, 4, 4, tzinfo=UTC)


@pytest.mark.parametrize("status", [*Status, INTERRUPTED, UNDONE])
@pytest.mark.parametrize("width", [80, 120])
def test_no_row_is_wider_than_a_terminal(status: str, width: int) -> None:
    task = TaskRow(
        task_id=TASK_ID,
        started_at="2026-01-02T03:04:05Z",
        task="explain how the calculator adds, and what happens when one of the numbers is only a word",
        status=status,
        exit_code=130,
        cost_usd=12.34,
    )
    heads, row = draw_tasks((task,), NOW, width)
    assert "59 minutes ago" in row.text
    assert "explain" in row.text
    assert max(count_cells(heads.text), count_cells(row.text)) <= width
