"""Limits that processes share at an endpoint; two accesses to one folder are as two processes."""

import time
from pathlib import Path

import anyio
import pytest

from agentflow.model.retry import SharedLimits, Throttle, share_limits

HERE = "http://127.0.0.1:1"


def run(folder: Path, limits: SharedLimits, count: int, together: int = 1) -> tuple[int, float]:
    """Return how many requests ran at once, and how long all took; they wait for so many of them."""
    share_limits(folder, limits)
    most = running = 0

    async def ask(met: anyio.Event) -> None:
        nonlocal most, running
        async with Throttle(folder, HERE).take_turn():
            running += 1
            most = max(most, running)
            if most >= together:
                met.set()
            with anyio.move_on_after(20):
                await met.wait()
            running -= 1

    async def ask_all() -> None:
        met = anyio.Event()
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(ask, met)

    begin = time.monotonic()
    anyio.run(ask_all)
    return most, time.monotonic() - begin


@pytest.mark.parametrize(("limits", "most"), [(SharedLimits(at_once=2), 2), (SharedLimits(), 6)])
def test_only_so_many_requests_run_at_once(tmp_path: Path, limits: SharedLimits, most: int) -> None:
    assert run(tmp_path, limits, 6, most)[0] == most


def test_requests_keep_to_their_rate(tmp_path: Path) -> None:
    assert run(tmp_path, SharedLimits(per_minute=600), 4)[1] >= 0.29
    assert any(run(tmp_path / "free", SharedLimits(), 4)[1] < 0.29 for _ in range(20))


def test_a_pause_that_one_hears_holds_for_all_of_that_endpoint_alone(tmp_path: Path) -> None:
    share_limits(tmp_path, SharedLimits())
    Throttle(tmp_path, HERE).pause(0.3)
    Throttle(tmp_path, HERE).pause(0.1)
    Throttle(tmp_path, "http://127.0.0.1:2").pause(60)
    assert run(tmp_path, SharedLimits(), 2)[1] >= 0.25


def test_a_damaged_file_is_no_limit(tmp_path: Path) -> None:
    share_limits(tmp_path, SharedLimits())
    Throttle(tmp_path, HERE).pause(60)
    (place,) = (path for path in tmp_path.glob("*.json") if path.name != "limits.json")
    place.write_text("{")
    assert run(tmp_path, SharedLimits(), 1)[1] < 30
