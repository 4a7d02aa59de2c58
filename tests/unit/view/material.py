"""The values of one plausible task: its state at the start, its checks and its evidence."""

from agentflow.core.evidence import By, Check, CheckName, Evidence, Side, TestCounts
from agentflow.core.task import (
    Gate,
    GateStatus,
    Phase,
    TaskState,
)

TASK_ID = "20260102T030405Z-1f2e"
BASE, FIRST, FINAL = "7a20f3c1d2e4", "51cc09e7aa10", "9c1d4b7730fe"
TESTS = Check(
    name=CheckName.TESTS,
    command="python -m pytest -q",
    timeout=600,
    reason="pytest is set up in pyproject.toml",
)
LINT = Check(name=CheckName.LINT, command="ruff check .", timeout=120, reason="ruff is set up")
TYPES = Check(
    name=CheckName.TYPES, command="mypy", timeout=300, reason="mypy.ini", missing="mypy (pip install mypy)"
)
FAILED_TEST = "tests/test_pager.py::test_last_page: assert 2 == 3"


def state() -> TaskState:
    gates = {Phase.REFINEMENT: Gate(status=GateStatus.SKIPPED, message="route: implementation")}
    return TaskState(
        task_id=TASK_ID,
        task="The last page of the pager is missing its entries",
        started_at="2026-01-02T03:04:05Z",
        max_iterations=10,
        model="repair",
        base_tree=BASE,
        tree=BASE,
        gates=gates,
    )


def evidence(
    number: int, check: Check | None, exit_code: int | None, tree: str | None, **more: object
) -> Evidence:
    record = Evidence(
        id=f"ev-{number:04}",
        task_id=TASK_ID,
        iteration=1,
        role=None if check else "implementer",
        by=By.PROGRAM if check else By.AGENT,
        check=check.name if check else None,
        command=check.command if check else "git log --oneline -3",
        cwd=".",
        exit_code=exit_code,
        timed_out=False,
        started_at="2026-01-02T03:04:06Z",
        seconds=0.812,
        stdout_sha256="5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        bytes=1832,
        tree_before=tree,
        tree_after=tree,
        surface=Side.FINAL,
        code=Side.FINAL,
        sandbox="none",
    )
    return record.replace(**more)


def records() -> tuple[Evidence, ...]:
    base, red = {"surface": Side.BASE, "code": Side.BASE}, TestCounts(passed=14, failed=1)
    return (
        evidence(1, LINT, 0, BASE, seconds=0.041, **base),
        evidence(2, TESTS, 1, BASE, tests=red, **base),
        evidence(3, None, 0, None, seconds=0.012),
        evidence(4, LINT, 0, FIRST, seconds=0.044),
        evidence(5, TESTS, 1, FIRST, tests=red),
        evidence(6, LINT, 0, FINAL, seconds=0.043, iteration=2),
        evidence(7, TESTS, 0, FINAL, tests=TestCounts(passed=16, skipped=1), iteration=2),
        evidence(8, TESTS, 0, "d00df00d1234", tests=TestCounts(passed=15), iteration=2, surface=Side.BASE),
    )
