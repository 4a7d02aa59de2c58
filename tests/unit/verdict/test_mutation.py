import os

import pytest

from agentflow.core.evidence import Check, CheckName
from agentflow.verdict.mutation import MutationPlan


@pytest.mark.parametrize(("busy", "seconds"), [(0, 21), (1, 21), (2, 41), (9, 81)])
def test_mutants_have_more_time_where_the_cores_are_busy(
    monkeypatch: pytest.MonkeyPatch, busy: float, seconds: float
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (busy * 2, 0.0, 0.0))

    plan = MutationPlan.of({}, (), Check(name=CheckName.TESTS, command="true", reason="", timeout=60), 1)

    assert plan.seconds == seconds
