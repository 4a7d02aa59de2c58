"""Tasks, checks and cases to judge, ready-made."""

from typing import Any

from agentflow.core.evidence import Check, CheckName, CheckRun, Side, TestCounts, TestOutcome
from agentflow.core.finding import FindingKind
from agentflow.core.task import Failure, Gate, GateStatus, Phase, TaskState
from agentflow.core.verdict import Verdict
from agentflow.routing.route import ORDER
from agentflow.routing.wanted import Wanted
from agentflow.verdict.case import Case
from agentflow.workspace.changes import ChangeKind, FileChange
from tests.unit.tools.bench import a_record

BEFORE, AFTER = "tree-before", "tree-after"
PASSED, FAILED, SKIPPED, ERROR, FLAKY = TestOutcome
TESTS, LINT, TYPES, BUILD = CheckName.TESTS, CheckName.LINT, CheckName.TYPES, CheckName.BUILD


def a_check(name: CheckName = TESTS, **changes: Any) -> Check:
    check = Check(name=name, command=f"run {name}", timeout=600, reason="it is configured")
    return check.replace(**changes)


def ran(
    name: CheckName = TESTS,
    outcomes: dict[str, TestOutcome] | None = None,
    *,
    exit_code: int | None = None,
    findings: dict[str, int] | None = None,
    **evidence: Any,
) -> CheckRun:
    """Return a run of a check on the final tree; its exit code follows from its tests if not given."""
    found = outcomes or {}
    red = any(outcome in (FAILED, ERROR) for outcome in found.values()) or bool(findings)
    code = {"exit_code": int(red) if exit_code is None else exit_code}
    bound = {"check": name, "command": f"run {name}", "tree_before": AFTER, "tree_after": AFTER}
    record = a_record(f"ev-{name}", **{**bound, **code, "tests": counts(found), **evidence})
    run = CheckRun(check=a_check(name), evidence=record, outcomes=found, findings=findings or {})
    return run.replace(counts=record.tests, import_errors=record.import_errors, tail="output")


def before(*arguments: Any, **changes: Any) -> CheckRun:
    """Return a run of a check on the tree before the task."""
    sides = {"tree_before": BEFORE, "tree_after": BEFORE, "surface": Side.BASE, "code": Side.BASE}
    return ran(*arguments, **{**sides, **changes})


def counts(outcomes: dict[str, TestOutcome]) -> TestCounts | None:
    if not outcomes:
        return None
    number = list(outcomes.values()).count
    return TestCounts(
        passed=number(PASSED), failed=number(FAILED), skipped=number(SKIPPED), errors=number(ERROR)
    )


def a_case(
    final: tuple[CheckRun, ...],
    baseline: tuple[CheckRun, ...] = (),
    *,
    held: tuple[CheckRun, ...] = (),
    fresh: tuple[CheckRun, ...] | None = None,
    alone: tuple[CheckRun, ...] = (),
    **changes: Any,
) -> Case:
    """Return a case in which what was red before is so once more on that code."""
    again = tuple(run for run in baseline if run.check.name is TESTS) if fresh is None else fresh
    sides: tuple[tuple[CheckRun, dict[str, Any]], ...] = (
        *((run, {"code": Side.BASE, "checks": Side.BASE}) for run in baseline),
        *((run, {}) for run in final),
        *((run, {"checks": Side.BASE}) for run in held),
        *((run, {"code": Side.BASE}) for run in again),
        *((run, {"again": True}) for run in alone),
    )
    case = Case(
        base_tree=BEFORE,
        tree=AFTER,
        drift=(),
        runs=tuple(run.replace(**side) for run, side in sides),
        targets=frozenset(),
        probes=(),
        wanted=Wanted.FORM,
    )
    return case.replace(**changes)


def changed(path: str, kind: ChangeKind = ChangeKind.MODIFIED) -> FileChange:
    return FileChange(kind=kind, path=path)


def a_task(**changes: Any) -> TaskState:
    task = TaskState(
        task_id="20260102T030405Z-abcd",
        task="make the failing tests pass",
        started_at="2026-01-02T03:04:05Z",
        max_iterations=3,
        model="script:x",
    )
    return task.replace(**changes)


def gated(phase: Phase, status: GateStatus, **changes: Any) -> TaskState:
    """Return a task whose phases before this one have passed, and the later ones wait."""
    place = ORDER.index(phase)
    gates = {other: Gate(status=GateStatus.PASSED) for other in ORDER[:place]}
    gates |= {other: Gate(status=GateStatus.PENDING) for other in ORDER[place:]}
    return a_task(**{"current_phase": phase, "gates": {**gates, phase: Gate(status=status)}, **changes})


def a_failure(tree: str = AFTER, signature: str = "s", **changes: Any) -> Failure:
    failure = Failure(
        iteration=1,
        phase=Phase.VERIFICATION,
        tree=tree,
        signature=signature,
        reasons=(FindingKind.STILL_FAILING.of("t1", check=TESTS),),
        evidence=("ev-tests",),
    )
    return failure.replace(**changes)


def a_verdict(*reasons: str, caveats: tuple[str, ...] = ()) -> Verdict:
    said = tuple(map(FindingKind.AS_WORDED.of, reasons))
    return Verdict(passed=not reasons, reasons=said, evidence=("ev-tests",), caveats=caveats)
