"""One plausible task, told event by event."""

from agentflow.core.errors import Exit
from agentflow.core.events import (
    Asked,
    CheckStarted,
    Event,
    EvidenceRecorded,
    PhaseEnded,
    PhaseStarted,
    Replied,
    RunEnded,
    RunStarted,
    StateChanged,
    TaskEnded,
    TaskStarted,
    ToolBlocked,
    ToolFinished,
    ToolStarted,
    Warned,
)
from agentflow.core.evidence import Check, CheckName, Evidence
from agentflow.core.finding import FindingKind
from agentflow.core.messages import Stop, Usage
from agentflow.core.record import to_builtins
from agentflow.core.run import RunOutcome
from agentflow.core.task import (
    Ending,
    Failure,
    Gate,
    GateStatus,
    Phase,
    RequiredCheck,
    Status,
    TaskState,
)
from agentflow.core.verdict import Verdict
from tests.unit.view.material import FAILED_TEST, FINAL, FIRST, LINT, TESTS, TYPES, records, state


def recorded(record: Evidence, summary: str) -> EvidenceRecorded:
    return EvidenceRecorded(
        evidence=record.id,
        check=record.check,
        command=record.command,
        exit_code=record.exit_code,
        tree=record.tree_before,
        summary=summary,
        seconds=record.seconds,
        tests=record.tests,
        timed_out=record.timed_out,
        failing=record.tests.failed + record.tests.errors if record.tests else 0,
    )


def required(*pairs: tuple[Check, str | None]) -> tuple[RequiredCheck, ...]:
    return tuple(RequiredCheck(check=check, evidence=identity) for check, identity in pairs)


def changed(**values: object) -> StateChanged:
    return StateChanged(changed={key: to_builtins(value) for key, value in values.items()})


def gate(
    now: TaskState, phase: Phase, status: GateStatus, tree: str | None = None, message: str = ""
) -> TaskState:
    agents = {Phase.IMPLEMENTATION: "implementer", Phase.VERIFICATION: "verifier"}
    return now.with_gate(phase, Gate(status=status, agent=agents.get(phase), tree=tree, message=message))


def call(
    run: int, number: int, tool: str, subject: str, summary: str, *, is_error: bool = False
) -> list[Event]:
    identity = f"call-{number}"
    return [
        Asked(run=run, turn=number),
        Replied(
            run=run,
            turn=number,
            text="",
            calls=1,
            stop=Stop.TOOL_USE,
            usage=Usage(input=900, output=20),
            seconds=0.2,
        ),
        ToolStarted(run=run, call_id=identity, tool=tool, subject=subject),
        ToolFinished(
            run=run, call_id=identity, tool=tool, is_error=is_error, summary=summary, seconds=0.004 * number
        ),
    ]


def opening() -> list[Event]:
    now = state()
    _, red, *_ = records()
    return [
        changed(**now.to_fields()),
        TaskStarted(task=now.task, model="repair", max_iterations=10),
        Warned(message=".claude/orchestration.local.md is a file, not our link: left alone"),
        PhaseEnded(
            phase=Phase.REFINEMENT,
            iteration=1,
            status=GateStatus.SKIPPED,
            message="route: implementation",
            seconds=0.0,
        ),
        CheckStarted(check=CheckName.LINT, command=LINT.command),
        recorded(records()[0], "exit 0"),
        CheckStarted(check=CheckName.TESTS, command=TESTS.command),
        recorded(red, "exit 1, 14 passed, 1 failed"),
        changed(
            baseline=required((LINT, "ev-0001"), (TYPES, None), (TESTS, "ev-0002")),
            current_phase=Phase.IMPLEMENTATION,
            gates=gate(now, Phase.IMPLEMENTATION, GateStatus.IN_PROGRESS).gates,
        ),
        PhaseStarted(phase=Phase.IMPLEMENTATION, iteration=1),
    ]


def first_change() -> list[Event]:
    now = gate(state(), Phase.IMPLEMENTATION, GateStatus.PASSED, FIRST)
    return [
        RunStarted(run=1, role="implementer", agent="implementer", model="repair", iteration=1),
        *call(1, 1, "Read", "src/pager.py", ""),
        *call(1, 2, "Edit", "src/pager.py", "old_string stands there 2 times", is_error=True),
        ToolBlocked(
            run=1,
            call_id="call-3",
            tool="WebFetch",
            role="implementer",
            owner="explorer",
            reason="implementer has no WebFetch; explorer has it",
        ),
        *call(1, 4, "Bash", "git log --oneline -3", "exit 0"),
        recorded(records()[2], "exit 0"),
        *call(1, 5, "Edit", "src/pager.py", "1 replacement"),
        RunEnded(
            run=1,
            role="implementer",
            outcome=RunOutcome.SUBMITTED,
            turns=5,
            tool_calls=4,
            usage=Usage(input=4500, output=100),
            seconds=1.4,
        ),
        PhaseEnded(
            phase=Phase.IMPLEMENTATION, iteration=1, status=GateStatus.PASSED, message="", seconds=1.5
        ),
        changed(
            tree=FIRST,
            current_phase=Phase.VERIFICATION,
            gates=gate(now, Phase.VERIFICATION, GateStatus.IN_PROGRESS).gates,
        ),
        PhaseStarted(phase=Phase.VERIFICATION, iteration=1),
        CheckStarted(check=CheckName.TESTS, command=TESTS.command),
    ]


def first_failure() -> list[Event]:
    now = gate(state(), Phase.IMPLEMENTATION, GateStatus.IN_PROGRESS)
    reasons = ("`python -m pytest -q` exit 1 (evidence ev-0005)", FAILED_TEST)
    failure = Failure(
        iteration=1,
        phase=Phase.VERIFICATION,
        tree=FIRST,
        signature="x",
        reasons=tuple(map(FindingKind.AS_WORDED.of, reasons)),
        evidence=("ev-0005",),
    )
    return [
        recorded(records()[3], "exit 0"),
        recorded(records()[4], "exit 1, 14 passed, 1 failed"),
        PhaseEnded(
            phase=Phase.VERIFICATION,
            iteration=1,
            status=GateStatus.FAILED,
            message="".join(f"- {reason}\n" for reason in reasons),
            seconds=0.9,
        ),
        changed(
            failures=(failure,),
            final=required((LINT, "ev-0004"), (TYPES, None), (TESTS, "ev-0005")),
            iteration=2,
            current_phase=Phase.IMPLEMENTATION,
            usage=Usage(input=4500, output=100),
            gates=gate(now, Phase.VERIFICATION, GateStatus.FAILED, FIRST, "tests: exit 1").gates,
        ),
        PhaseStarted(phase=Phase.IMPLEMENTATION, iteration=2),
    ]


def happy_end() -> list[Event]:
    now = gate(state(), Phase.IMPLEMENTATION, GateStatus.PASSED, FINAL)
    return [
        RunStarted(run=2, role="implementer", agent="implementer", model="repair", iteration=2),
        *call(2, 1, "Edit", "src/pager.py", "1 replacement"),
        RunEnded(
            run=2,
            role="implementer",
            outcome=RunOutcome.SUBMITTED,
            turns=2,
            tool_calls=2,
            usage=Usage(input=1800, output=40),
            seconds=0.7,
        ),
        PhaseEnded(
            phase=Phase.IMPLEMENTATION, iteration=2, status=GateStatus.PASSED, message="", seconds=0.8
        ),
        PhaseStarted(phase=Phase.VERIFICATION, iteration=2),
        recorded(records()[5], "exit 0"),
        recorded(records()[6], "exit 0, 16 passed"),
        recorded(records()[7], "exit 0, 15 passed"),
        PhaseEnded(phase=Phase.VERIFICATION, iteration=2, status=GateStatus.PASSED, message="", seconds=1.1),
        changed(
            status=Status.VERIFIED,
            active=False,
            current_phase=Phase.COMPLETE,
            tree=FINAL,
            gates=gate(now, Phase.VERIFICATION, GateStatus.PASSED, FINAL).gates,
            final=required((LINT, "ev-0006"), (TYPES, None), (TESTS, "ev-0007")),
            verdict=Verdict(passed=True, reasons=(), evidence=("ev-0006", "ev-0007", "ev-0008")),
            usage=Usage(input=6300, output=140),
            ending=Ending(
                status=Status.VERIFIED, exit_code=Exit.VERIFIED, reason="every required check is green"
            ),
        ),
        TaskEnded(status=Status.VERIFIED, exit_code=0, reason="every required check is green"),
    ]


def stages() -> dict[str, list[Event]]:
    """Return the events of the task up to each of its stages."""
    implementing = opening()
    verifying = [*implementing, *first_change()]
    again = [*verifying, *first_failure()]
    return {
        "implementation": implementing,
        "verification": verifying,
        "second_iteration": again,
        "complete": [*again, *happy_end()],
    }
