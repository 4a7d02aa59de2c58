import pytest

from agentflow.verdict.mutation import allow_seconds


@pytest.mark.parametrize(("busy", "seconds"), [(0, 21), (1, 21), (2, 41), (9, 81)])
def test_mutants_have_more_time_where_the_cores_are_busy(busy: float, seconds: float) -> None:
    assert allow_seconds(1, busy) == seconds
