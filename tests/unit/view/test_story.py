from collections.abc import Callable, Iterable

import pytest

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
    StoredEvent,
    TaskEnded,
    TaskStarted,
    ToolBlocked,
    ToolFinished,
    ToolStarted,
    Warned,
)
from agentflow.core.evidence import CheckName, Side, TestCounts
from agentflow.core.messages import Stop, Usage
from agentflow.core.run import RunOutcome
from agentflow.core.task import GateStatus, Phase, Status
from agentflow.view.progress import Story
from agentflow.view.text import Line, Style
from tests.unit.view.test_text import HOSTILE

Golden = Callable[[str, Iterable[Line]], None]
AT = "2026-01-02T03:04:05.120Z"


def told(*events: Event, at: str = AT) -> list[str]:
    story = Story()
    return [row.text for event in events for row in story(StoredEvent(seq=1, at=at, event=event))]


def test_the_log_of_a_task(story: Callable[[str], tuple[StoredEvent, ...]], golden: Golden) -> None:
    tell = Story()
    golden("log", [row for one in story("complete") for row in tell(one)])


def test_what_a_sub_agent_does_stands_below_the_run_that_asked() -> None:
    story = Story()
    begun = [RunStarted(run=run, role=f"role-{run}", agent="a", model="m", iteration=1) for run in (1, 2, 3)]
    rows = [
        story(StoredEvent(seq=1, at=AT, event=event, parent=parent))[0].text
        for event, parent in zip(begun, (None, 1, 2), strict=True)
    ]
    assert [row.index("▸") - rows[0].index("▸") for row in rows] == [0, 2, 4]


def test_runs_side_by_side_are_told_by_their_numbers_until_the_phase_ends() -> None:
    begun = [RunStarted(run=run, role="explorer", agent="explorer", model="m", iteration=1) for run in (1, 2)]
    read = [
        ToolFinished(run=run, call_id="c", tool="Read", is_error=False, summary="", seconds=0)
        for run in (1, 2)
    ]
    over = RunEnded(
        run=1,
        role="explorer",
        outcome=RunOutcome.SUBMITTED,
        turns=1,
        tool_calls=1,
        usage=Usage(),
        seconds=0,
    )
    phase = PhaseStarted(phase=Phase.EXPLORATION, iteration=1)
    rows = told(phase, *begun, read[0], over, read[1], phase, begun[0], read[0])
    assert ["#1" in row or "#2" in row for row in rows] == [
        *(False, False, True, True, True, True),
        *(False, False, False),
    ]
    assert "#1" in rows[3]
    assert "#2" in rows[5]


def test_runs_that_a_kill_ended_are_beside_no_run_of_the_phase_that_is_entered_again() -> None:
    phase = PhaseStarted(phase=Phase.EXPLORATION, iteration=1)
    begun = [RunStarted(run=run, role="explorer", agent="explorer", model="m", iteration=1) for run in (1, 2)]
    rows = told(phase, *begun, phase, begun[1])
    assert ["#" in row for row in rows] == [False, False, True, False, False]


@pytest.mark.parametrize(
    "event",
    [
        StateChanged(changed={"iteration": 2}),
        Asked(run=1, turn=1),
        ToolStarted(run=1, call_id="c", tool="Read", subject="a.py"),
        CheckStarted(check=CheckName.TESTS, command="pytest"),
        Replied(run=1, turn=1, text="", calls=1, stop=Stop.TOOL_USE, usage=Usage(), seconds=1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_noise_has_no_line(event: Event) -> None:
    assert told(event) == []


@pytest.mark.parametrize(
    ("at", "clock"),
    [
        ("2026-01-02T03:04:05.120Z", "  0:00.0  "),
        ("2026-01-02T03:04:08.370Z", "  0:03.2  "),
        ("2026-01-02T03:05:05.119Z", "  0:59.9  "),
        ("2026-01-02T03:05:05.120Z", "  1:00.0  "),
        ("2026-01-02T05:04:06.120Z", "2:00:01.0  "),
        ("2026-01-02T03:04:00.000Z", "  0:00.0  "),
        ("no time at all", " " * 10),
        ("2026-01-02T03:04:08", " " * 10),
    ],
)
def test_time_counts_from_the_first_event(at: str, clock: str) -> None:
    story = Story()
    story(StoredEvent(seq=1, at=AT, event=Asked(run=1, turn=1)))
    (row,) = story(StoredEvent(seq=2, at=at, event=Warned(message="careful")))
    assert row.text == f"{clock}! careful"


def test_a_call_is_one_line_with_its_subject_and_its_result() -> None:
    rows = told(
        ToolStarted(run=1, call_id="a", tool="Grep", subject="count"),
        ToolStarted(run=2, call_id="a", tool="Grep", subject="other"),
        ToolFinished(run=1, call_id="a", tool="Grep", is_error=False, summary="3 matches", seconds=2.0),
    )
    assert rows == ["  0:00.0      · Grep count  3 matches  2.0s"]


def test_a_result_without_a_summary_is_only_named_and_a_failure_says_why() -> None:
    fine = ToolFinished(run=1, call_id="a", tool="Read", is_error=False, summary="", seconds=0)
    assert told(fine) == ["  0:00.0      · Read"]
    assert "no such file" in told(fine.replace(is_error=True, summary="no such file"))[0]


def test_a_check_of_the_refinement_is_before_any_change() -> None:
    event = EvidenceRecorded(
        evidence="ev-0001",
        check=CheckName.TESTS,
        command="pytest",
        exit_code=1,
        tree="aaa",
        summary="exit 1, 1 failed",
        seconds=1.5,
    )
    begins = (PhaseStarted(phase=phase, iteration=1) for phase in (Phase.REFINEMENT, Phase.VERIFICATION))
    _, first, _, second = told(next(begins), event, next(begins), event.replace(tree="bbb", exit_code=0))
    assert first == "  0:00.0    · tests  pytest  exit 1, 1 failed  1.5s  ev-0001, before any change"
    assert second.startswith("  0:00.0    ✓ tests")
    assert "before" not in second


CHECKED = EvidenceRecorded(
    evidence="ev-0004",
    check=CheckName.TESTS,
    command="pytest",
    exit_code=1,
    tree="aaa",
    summary="exit 1, 3 passed, 1 failed",
    failing=1,
    seconds=1.5,
)
WITHOUT_THE_CHANGE = CHECKED.replace(surface=Side.FINAL, code=Side.BASE)


@pytest.mark.parametrize(
    ("exit_code", "row"),
    [
        (1, "· tests  pytest  confirmed: fails without the change (ev-0004)  1.5s"),
        (2, "· tests  pytest  confirmed: fails without the change (ev-0004)  1.5s"),
        (0, "! tests  pytest  passes without the change: no proof (ev-0004)  1.5s"),
        (None, "· tests  pytest  killed, without the change (ev-0004)  1.5s"),
    ],
)
def test_a_run_without_the_change_says_what_it_shows(exit_code: int | None, row: str) -> None:
    summary = "killed" if exit_code is None else f"exit {exit_code}"
    event = WITHOUT_THE_CHANGE.replace(exit_code=exit_code, summary=summary)
    assert told(event) == [f"  0:00.0    {row}"]


@pytest.mark.parametrize(("failing", "mark"), [(1, "!"), (2, "✗")])
def test_only_a_check_that_fails_more_than_before_the_task_is_red(failing: int, mark: str) -> None:
    begins = [PhaseStarted(phase=phase, iteration=1) for phase in (Phase.REFINEMENT, Phase.VERIFICATION)]
    *_, row = told(begins[0], CHECKED, begins[1], CHECKED.replace(failing=failing))
    assert row.startswith(f"  0:00.0    {mark} tests")


def test_a_check_that_was_green_before_the_task_is_red_once_it_fails() -> None:
    begins = [PhaseStarted(phase=phase, iteration=1) for phase in (Phase.REFINEMENT, Phase.VERIFICATION)]
    green = CHECKED.replace(exit_code=0, summary="exit 0, 4 passed")
    *_, row = told(begins[0], green, begins[1], CHECKED.replace(summary="exit 1"))
    assert row.startswith("  0:00.0    ✗ tests")


def test_a_phase_that_passes_shows_nothing_red() -> None:
    refused = ToolFinished(run=1, call_id="a", tool="Edit", is_error=True, summary="not there", seconds=0)
    stopped = RunEnded(
        run=1, role="planner", outcome=RunOutcome.ERROR, turns=1, tool_calls=0, usage=Usage(), seconds=0
    )
    blocked = ToolBlocked(run=1, call_id="a", tool="Bash", role="planner", owner="", reason="no")
    tell, red = Story(), []
    phases: dict[Phase, list[Event]] = {
        Phase.REFINEMENT: [CHECKED],
        Phase.IMPLEMENTATION: [refused, blocked, stopped],
        Phase.VERIFICATION: [CHECKED, CHECKED.replace(surface=Side.BASE), WITHOUT_THE_CHANGE],
    }
    for phase, happened in phases.items():
        ended = PhaseEnded(phase=phase, iteration=1, status=GateStatus.PASSED, message="", seconds=0)
        for event in (PhaseStarted(phase=phase, iteration=1), *happened, ended):
            lines = tell(StoredEvent(seq=1, at="2024-01-01T00:00:00Z", event=event))
            red += [part.text for one in lines for part in one.spans if part.style is Style.BAD]
    assert red == []


@pytest.mark.parametrize(
    ("message", "rows"),
    [
        ("", ["✗ verification failed  0.50s"]),
        ("tests: exit 1\n", ["✗ verification failed: tests: exit 1  0.50s"]),
        ("- one\n- two\n", ["✗ verification failed  0.50s", "    - one", "    - two"]),
    ],
)
def test_a_failed_phase_says_why(message: str, rows: list[str]) -> None:
    event = PhaseEnded(
        phase=Phase.VERIFICATION, iteration=1, status=GateStatus.FAILED, message=message, seconds=0.5
    )
    assert [row[10:] for row in told(event)] == rows


def test_a_flood_of_reasons_is_cut() -> None:
    message = "".join(f"- reason {number}\n" for number in range(1000))
    event = PhaseEnded(phase=Phase.REVIEW, iteration=1, status=GateStatus.FAILED, message=message, seconds=0)
    assert len(told(event)) == 14
    assert told(event)[-1].endswith("… and 988 more")


def test_what_a_model_says_and_why_it_stopped_is_told() -> None:
    event = Replied(
        run=1, turn=1, text="I look first.\nThen more.", calls=0, stop=Stop.REFUSAL, usage=Usage(), seconds=1
    )
    assert [row.strip() for row in told(event)] == [
        "0:00.0      “I look first.”",
        "! the model stopped early: refusal",
    ]


@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_a_run_that_did_not_do_its_part_is_marked(outcome: RunOutcome) -> None:
    event = RunEnded(run=1, role="planner", outcome=outcome, turns=1, tool_calls=0, usage=Usage(), seconds=0)
    mark = "✓" if outcome in {RunOutcome.SUBMITTED, RunOutcome.ANSWERED} else "!"
    assert told(event) == [f"  0:00.0    {mark} planner {outcome.replace('_', ' ')}  1 turn, 0 tool calls"]


def test_an_agent_is_named_where_it_is_not_its_role() -> None:
    event = RunStarted(run=1, role="planner", agent="my-planner", model="deep-1", iteration=1)
    assert told(event) == ["  0:00.0    ▸ planner (my-planner)  deep-1"]


@pytest.mark.parametrize(
    ("model", "shown"), [("anthropic", "  deep-1"), ("repair", ""), ("script:a.yaml", ""), ("replay:x", "")]
)
def test_the_model_of_a_run_is_named_only_where_it_is_asked(model: str, shown: str) -> None:
    start = TaskStarted(task="mend it", model=model, max_iterations=3)
    run = RunStarted(run=1, role="planner", agent="planner", model="deep-1", iteration=1)
    assert told(start, run)[1] == f"  0:00.0    ▸ planner{shown}"


@pytest.mark.parametrize(
    ("message", "shown"), [("a small plan", ""), ("another message", ": another message")]
)
def test_a_phase_does_not_repeat_what_was_submitted(message: str, shown: str) -> None:
    rows = told(
        ToolStarted(run=1, call_id="s", tool="SubmitPlan", subject="a small plan"),
        ToolFinished(run=1, call_id="s", tool="SubmitPlan", is_error=False, summary="", seconds=0),
        PhaseEnded(phase=Phase.PLANNING, iteration=1, status=GateStatus.PASSED, message=message, seconds=0),
    )
    assert [row[10:] for row in rows] == ["    · SubmitPlan a small plan", f"✓ planning passed{shown}"]


def test_a_submission_cannot_hide_why_a_phase_failed() -> None:
    rows = told(
        ToolStarted(run=1, call_id="s", tool="SubmitChange", subject="tests: exit 1"),
        ToolFinished(run=1, call_id="s", tool="SubmitChange", is_error=False, summary="submitted", seconds=0),
        PhaseEnded(
            phase=Phase.VERIFICATION,
            iteration=1,
            status=GateStatus.FAILED,
            message="- tests: exit 1\n",
            seconds=0,
        ),
    )
    assert rows[-1].endswith("✗ verification failed: tests: exit 1")


def hostile_events(hostile: str) -> tuple[Event, ...]:
    return (
        TaskStarted(task=hostile, model=hostile, max_iterations=1),
        PhaseStarted(phase=Phase.REVIEW, iteration=1),
        RunStarted(run=1, role=hostile, agent=f"{hostile}.", model=hostile, iteration=1),
        Replied(run=1, turn=1, text=hostile, calls=0, stop=Stop.END_TURN, usage=Usage(), seconds=1),
        ToolStarted(run=1, call_id="c", tool="Read", subject=hostile),
        ToolFinished(run=1, call_id="c", tool=hostile, is_error=True, summary=hostile, seconds=1),
        ToolBlocked(run=1, call_id="d", tool=hostile, role=hostile, owner=None, reason=hostile),
        EvidenceRecorded(
            evidence=hostile,
            check=CheckName.LINT,
            command=hostile,
            exit_code=0,
            tree="t",
            summary=hostile,
            seconds=1,
        ),
        RunEnded(
            run=1,
            role=hostile,
            outcome=RunOutcome.CONFUSED,
            turns=1,
            tool_calls=1,
            usage=Usage(),
            seconds=1,
        ),
        Warned(message=hostile),
        PhaseEnded(
            phase=Phase.REVIEW,
            iteration=1,
            status=GateStatus.FAILED,
            message=f"{hostile}\n- {hostile}",
            seconds=1,
        ),
        TaskEnded(status=Status.FAILED, exit_code=1, reason=hostile),
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_foreign_text_reaches_no_log_raw(hostile: str) -> None:
    rows = told(*hostile_events(hostile))
    assert len(rows) >= 10
    assert all(row.isprintable() for row in rows)


def test_markup_is_told_as_it_was_written() -> None:
    assert told(Warned(message="[/x] [bold]")) == ["  0:00.0  ! [/x] [bold]"]


def in_short(*events: Event) -> list[str]:
    tell = Story(is_brief=True)
    rows = [row for event in events for row in tell(StoredEvent(seq=1, at=AT, event=event))]
    return [row.text.strip().split("  ", 1)[1] for row in rows]


def a_check(
    name: CheckName, code: int, tests: TestCounts | None = None, *, without_change: bool = False
) -> EvidenceRecorded:
    return EvidenceRecorded(
        evidence="ev-0001",
        check=name,
        command="run",
        exit_code=code,
        tree="t",
        summary=f"exit {code}",
        tests=tests,
        seconds=1.0,
        code=Side.BASE if without_change else Side.FINAL,
    )


def an_end(phase: Phase, status: GateStatus, message: str = "") -> PhaseEnded:
    return PhaseEnded(phase=phase, iteration=1, status=status, message=message, seconds=1.0)


def test_in_short_each_phase_is_one_row_of_what_its_checks_showed() -> None:
    assert in_short(
        PhaseStarted(phase=Phase.REFINEMENT, iteration=1),
        a_check(CheckName.LINT, 0),
        a_check(CheckName.TESTS, 1, TestCounts(failed=2)),
        an_end(Phase.REFINEMENT, GateStatus.PASSED, "- `run` exit 1"),
        Warned(message="look out"),
        an_end(Phase.PLANNING, GateStatus.SKIPPED),
        PhaseStarted(phase=Phase.VERIFICATION, iteration=1),
        a_check(CheckName.TESTS, 0, TestCounts(passed=9)),
        a_check(CheckName.TESTS, 1, TestCounts(failed=2), without_change=True),
        a_check(CheckName.TESTS, 0, TestCounts(passed=2)),
        an_end(Phase.VERIFICATION, GateStatus.PASSED, "- every required check passes"),
    ) == [
        "· before the change: lint: passes; tests: 2 failed",
        "! look out",
        "✓ verification: tests: 9 passed",
    ]


def test_in_short_a_failed_phase_says_why_and_a_warning_is_never_left_out() -> None:
    assert in_short(
        PhaseStarted(phase=Phase.VERIFICATION, iteration=1),
        a_check(CheckName.TESTS, 1, TestCounts(failed=3)),
        an_end(Phase.VERIFICATION, GateStatus.FAILED, "- new failures: a\n- `run` exit 1"),
        Warned(message="look out"),
    ) == ["✗ verification: new failures: a", "! look out"]


def test_in_short_a_check_without_counts_says_how_it_ended_and_a_flaky_one_that_it_is() -> None:
    killed = a_check(CheckName.TESTS, 1, TestCounts(passed=4)).replace(
        exit_code=None, timed_out=True, summary="timed out after 3 s"
    )
    assert in_short(
        PhaseStarted(phase=Phase.VERIFICATION, iteration=1),
        a_check(CheckName.LINT, 2),
        a_check(CheckName.TYPES, 0, TestCounts(passed=4)).replace(is_flaky=True),
        killed,
        an_end(Phase.VERIFICATION, GateStatus.PASSED),
    ) == ["✓ verification: lint: exit 2; types: 4 passed, flaky; tests: timed out after 3 s"]


def test_in_short_the_review_says_what_the_reviewer_says_and_not_the_checks_beside_it() -> None:
    tell = Story(is_brief=True)
    ended = PhaseEnded(
        phase=Phase.REVIEW, iteration=1, status=GateStatus.PASSED, message="APPROVED", seconds=0
    )
    happened = (
        PhaseStarted(phase=Phase.REVIEW, iteration=1),
        PhaseStarted(phase=Phase.VERIFICATION, iteration=1),
        CHECKED,
        ended,
        ended.replace(phase=Phase.VERIFICATION, message=""),
    )
    rows = [tell(StoredEvent(seq=1, at="2024-01-01T00:00:00Z", event=event)) for event in happened]
    review, verification = (one.text[10:] for lines in rows for one in lines)
    assert review == "✓ review: APPROVED"
    assert verification.startswith("✓ verification: tests: ")
