"""Where a task stands, folded from its events and drawn as rows of a live region."""

from pathlib import Path

import pytest

from agentflow.core.events import (
    Answered,
    Asked,
    CheckStarted,
    Classified,
    Event,
    EvidenceRecorded,
    Paused,
    PhaseEnded,
    PhaseStarted,
    Probing,
    Replied,
    RunEnded,
    RunStarted,
    StateChanged,
    StoredEvent,
    TaskEnded,
    TestRunsLong,
    ToolFinished,
    ToolStarted,
)
from agentflow.core.evidence import CheckName, Side, TestCounts
from agentflow.core.messages import Stop, Usage
from agentflow.core.pending import PendingKind
from agentflow.core.run import RunOutcome
from agentflow.core.task import Complexity, GateStatus, Phase, Status
from agentflow.view.board import Board, update_board
from agentflow.view.region import Painter
from agentflow.view.rows import Memory, list_brief_rows
from agentflow.view.text import Medium

AT = "2026-01-02T03:04:05.000Z"
BEGAN = 1767323045.0
PLAIN = Medium(colour=False, ascii=False, live=True)
STEPS = (Phase.EXPLORATION, Phase.IMPLEMENTATION, Phase.VERIFICATION)
ROUTE = Classified(complexity=Complexity.TRIVIAL, route="direct", score=0, reasons=(), steps=STEPS)
PHASE = PhaseStarted(phase=Phase.IMPLEMENTATION, iteration=1)
RUN = RunStarted(run=1, role="implementer", agent="implementer", model="m-1", iteration=1)
CHECK = CheckStarted(check=CheckName.TESTS, command="pytest -q")
USAGE = Usage(input=900, output=100, cost_usd=0.9)
REPLY = Replied(run=1, turn=1, text="", calls=1, stop=Stop.TOOL_USE, usage=USAGE, seconds=1)


def call(subject: str, call_id: str = "c", tool: str = "Read") -> ToolStarted:
    return ToolStarted(run=1, call_id=call_id, tool=tool, subject=subject)


def done(call_id: str = "c") -> ToolFinished:
    return ToolFinished(run=1, call_id=call_id, tool="Read", is_error=False, summary="", seconds=0)


def recorded(tests: TestCounts, check: CheckName | None = CheckName.TESTS) -> EvidenceRecorded:
    return EvidenceRecorded(
        evidence="ev-0001",
        check=check,
        command="c",
        exit_code=0,
        tree=None,
        summary="",
        tests=tests,
        seconds=1,
    )


def fold(*events: Event) -> Board:
    board = Board()
    for event in events:
        board = update_board(board, StoredEvent(seq=1, at=AT, event=event))
    return board


def draw(*events: Event, width: int = 100, later: float = 5, outputs: Path = Path("none")) -> list[str]:
    rows = Painter(PLAIN, outputs).paint(fold(*events), width, BEGAN + later)
    return [row.rstrip() for row in rows]


def test_phases_stand_in_a_row_with_their_marks_and_the_time_of_the_one_that_goes_on() -> None:
    explored = PhaseEnded(
        phase=Phase.EXPLORATION, iteration=1, status=GateStatus.PASSED, message="", seconds=1
    )
    first, *_ = draw(ROUTE, PhaseStarted(phase=Phase.EXPLORATION, iteration=1), explored, PHASE)
    assert first == "✓ exploration  ▸ implementation 5s  ○ verification"


def test_between_two_phases_the_region_stands() -> None:
    ended = PhaseEnded(
        phase=Phase.IMPLEMENTATION, iteration=1, status=GateStatus.PASSED, message="", seconds=1
    )
    assert draw(ROUTE, PHASE, ended) == ["○ exploration  ✓ implementation  ○ verification"]


def test_where_the_phases_do_not_fit_the_place_among_them_is_told() -> None:
    assert draw(ROUTE, PHASE, width=40) == ["▸ implementation 5s  2 of 3"]


def test_an_iteration_after_the_first_is_told() -> None:
    again = PhaseStarted(phase=Phase.IMPLEMENTATION, iteration=3)
    assert draw(again) == ["▸ implementation (iteration 3) 5s"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), "  ▸ implementer  m-1"),
        ((Asked(run=1, turn=1),), "  ▸ implementer  m-1  thinking  5s"),
        ((Asked(run=1, turn=1), REPLY), "  ▸ implementer  m-1"),
        ((call("a.py"),), "  ▸ implementer  m-1  Read a.py  5s"),
        ((call("a.py"), done()), "  ▸ implementer  m-1"),
        ((call("a.py"), call("b.py", "d")), "  ▸ implementer  m-1  Read b.py  5s  and 1 call more"),
        ((call("a.py"), call("b.py", "d"), done("d")), "  ▸ implementer  m-1  Read a.py  5s"),
    ],
)
def test_each_role_at_work_has_a_row_with_its_call(events: tuple[Event, ...], expected: str) -> None:
    assert draw(PHASE, RUN, *events)[1] == expected


def test_a_run_that_ended_has_no_row_and_an_ended_task_no_region() -> None:
    ended = RunEnded(
        run=1,
        role="implementer",
        outcome=RunOutcome.SUBMITTED,
        turns=1,
        tool_calls=0,
        usage=Usage(),
        seconds=0,
    )
    assert len(draw(PHASE, RUN, ended)) == 1
    assert draw(PHASE, RUN, TaskEnded(status=Status.FAILED, exit_code=1, reason="")) == []


def test_tokens_and_cost_stand_against_their_limits() -> None:
    budget = StateChanged(changed={"budget": {"cost": 2.0, "tokens": 5000, "seconds": None}})
    assert draw(budget, PHASE, REPLY, REPLY)[-1] == "  2,000 of 5,000 tokens  $1.80 of $2.00"
    assert draw(PHASE, REPLY)[-1] == "  1,000 tokens  $0.9000"


def test_what_waits_for_a_person_is_told_until_it_is_decided() -> None:
    paused = Paused(pending="p1-1", kind=PendingKind.APPROVAL, tool="Bash")
    assert draw(PHASE, paused)[-1] == "! waits for you: p1-1"
    assert len(draw(PHASE, paused, Answered(pending="p1-1", approved=True, by="x"))) == 1


PRINTED = {
    "unittest": "test_a (x.T) ... ok\ntest_b (x.T) ... FAIL\ntest_c (x.T) ... skipped 'why'\n",
    "pytest": "tests/a.py ....F [ 30%]\n",
    "cargo": "test a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored\n",
    "go": "".join(
        f'{{"Action":"{word}","Package":"p","Test":"T"}}\n' for word in ("run", "pass", "fail", "skip")
    ),
    "TAP": "TAP version 14\nok 1 - a\nnot ok 2 - b\nok 3\n1..10\n",
}


@pytest.mark.parametrize("runner", PRINTED)
def test_a_check_that_runs_has_a_bar_of_its_tests_from_the_run_before(runner: str, tmp_path: Path) -> None:
    output = tmp_path / "check-tests-final-final-1.out"
    output.write_text(PRINTED[runner])
    before = (PHASE, CHECK, recorded(TestCounts(passed=9, failed=1)))
    row = draw(*before, CHECK, outputs=tmp_path)[-1]
    assert row.split() == [
        "tests",
        *[part for part in row.split() if "━" in part],
        "3/10",
        "5s",
        "pytest",
        "-q",
    ]
    assert len(draw(*before, CHECK, recorded(TestCounts(passed=10)))) == 1


def test_a_narrow_bar_keeps_its_name_and_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "check-tests-final-final-1.out").write_text(PRINTED["cargo"])
    events = (
        PHASE,
        CHECK,
        recorded(TestCounts(passed=10)),
        CHECK.replace(command="python3 -m unittest discover -v"),
    )
    for width in (44, 60, 80):
        row = draw(*events, width=width, outputs=tmp_path)[-1]
        assert row.startswith("  tests ━")
        assert "3/10" in row


def test_without_a_run_before_the_tests_that_ended_are_counted(tmp_path: Path) -> None:
    (tmp_path / "check-tests-final-final-1.out").write_text(PRINTED["unittest"])
    assert draw(PHASE, CHECK, outputs=tmp_path)[-1] == "  tests  3 done  5s  pytest -q"


def test_a_test_that_runs_for_long_is_named_until_another_runs() -> None:
    slow = TestRunsLong(check=CheckName.TESTS, test="tests/test_a.py::test_slow", seconds=10)
    assert draw(PHASE, CHECK, slow)[-1] == "  tests  5s  15s in tests/test_a.py::test_slow"
    assert draw(PHASE, CHECK, slow, slow.replace(test="", seconds=0))[-1] == "  tests  5s  pytest -q"
    told = list_brief_rows(slow, Memory())
    assert ["".join(part.text for part in row) for row in told] == [
        "· tests: tests/test_a.py::test_slow has run for 10.0s"
    ]


def test_a_run_of_checks_names_whose_checks_and_code_it_has() -> None:
    original, old = CHECK.replace(surface=Side.BASE), CHECK.replace(code=Side.BASE)
    assert draw(PHASE, original)[-1] == "  original tests  5s  pytest -q"
    assert draw(PHASE, old)[-1] == "  tests without the change  5s  pytest -q"


def test_probes_are_counted_until_the_last_is_over() -> None:
    assert draw(PHASE, Probing(done=3, total=9))[-1] == "  probes 3/9  5s  runs that must fail"
    assert draw(PHASE, Probing(done=3, total=9), Probing(done=9, total=9)) == draw(PHASE)


def test_what_a_role_did_is_one_line_a_call_where_a_person_follows() -> None:
    memory = Memory()
    began = (call("pages.py"), done().replace(summary="(42 lines)"))
    assert [row for event in began for row in list_brief_rows(event, memory)] == []
    memory.shows_calls = True
    (row,) = (row for event in began for row in list_brief_rows(event, memory))
    assert "".join(part.text for part in row) == "  ● Read pages.py (42 lines)"
    (row,) = list_brief_rows(done().replace(tool="Edit", summary="+3 -1"), memory)
    assert "".join(part.text for part in row) == "  ● Edit +3 -1"
    assert list(list_brief_rows(done().replace(tool="SubmitChange"), memory)) == []


def test_a_count_goes_on_where_it_was_and_begins_anew_with_a_new_run(tmp_path: Path) -> None:
    output = tmp_path / "check-tests-final-final-1.out"
    painter, board = Painter(PLAIN, tmp_path), fold(PHASE, CHECK)

    def shown() -> str:
        return painter.paint(board, 100, BEGAN)[-1].strip()

    output.write_text("a ... ok\nb ... o")
    assert shown().startswith("tests  1 done")
    output.write_text("a ... ok\nb ... ok\nc ... ok\n")
    assert shown().startswith("tests  3 done")
    output.write_text("a ... ok\n")
    assert shown().startswith("tests  1 done")
    (tmp_path / "check-tests-final-final-2.out").write_text("")
    assert shown().startswith("tests  0s")


@pytest.mark.parametrize("width", [10, 20, 40, 80])
def test_nothing_of_a_model_reaches_the_terminal_raw_and_no_row_the_edge(width: int) -> None:
    hostile = "\x1b]0;x\x07\x1b[2J\u202e[bold]red[/bold]\n日本"
    run = RunStarted(run=1, role=hostile, agent="a", model=hostile, iteration=1)
    rows = draw(PHASE, run, call(hostile * 20, tool=hostile), CHECK.replace(command=hostile), width=width)
    assert all(row.isprintable() for row in rows)
    assert all(len(row) < width for row in rows)
    assert width < 80 or "[bold]red[/bold]" in rows[1] + rows[2]


def test_an_event_of_a_later_version_changes_nothing() -> None:
    assert fold(PHASE, StateChanged(changed={"budget": {"hours": 3}})) == fold(PHASE)
