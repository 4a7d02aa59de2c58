from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from agentflow.core.errors import Exit
from agentflow.core.evidence import Side
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status
from agentflow.view.status import draw_status, format_evidence, format_evidence_table
from agentflow.view.tasks import Snapshot, load_snapshot
from agentflow.view.text import Line, Style, fit_lines
from tests.unit.view.test_text import HOSTILE

Golden = Callable[[str, Iterable[Line]], None]
STAGES = ("implementation", "verification", "second_iteration", "complete")


@pytest.mark.parametrize("stage", STAGES)
def test_status_of_each_phase(stage: str, folder: Callable[[str], Path], golden: Golden) -> None:
    golden(f"status_{stage}", draw_status(load_snapshot(folder(stage)), at_work=True))


@pytest.mark.parametrize("width", [80, 40])
def test_status_in_a_narrow_terminal(width: int, finished: Snapshot, golden: Golden) -> None:
    golden(f"status_complete_{width}", fit_lines(draw_status(finished, at_work=True), width))


def test_evidence_as_a_table(finished: Snapshot, golden: Golden) -> None:
    golden("evidence", format_evidence_table(finished))


def test_one_record_with_its_output(finished: Snapshot, golden: Golden) -> None:
    output = "\x1b[31mE   assert 2 == 3\x1b[0m\n\tindented\n1 failed, 14 passed in 0.81s\n"
    golden("evidence_detail", format_evidence(finished.evidence[1], output))


def test_the_table_fits_eighty_columns(finished: Snapshot) -> None:
    rows = tuple(format_evidence_table(finished))
    assert tuple(fit_lines(rows, 80)) == rows


def test_a_red_and_a_green_run_look_different(finished: Snapshot) -> None:
    rows = {row.spans[1].text.strip(): row for row in [*format_evidence_table(finished)][1:]}
    red, green = rows["ev-0002"], rows["ev-0007"]
    assert (red.spans[0].text, red.spans[0].style) == ("✗ ", Style.BAD)
    assert (green.spans[0].text, green.spans[0].style) == ("✓ ", Style.GOOD)


def test_a_command_that_was_stopped_is_not_green(finished: Snapshot) -> None:
    one = finished.evidence[6].replace(exit_code=None, timed_out=True, tests=None)
    (_, row) = format_evidence_table(finished.replace(evidence=(one,)))
    assert row.text.startswith("✗ ev-0007  tests  time")
    assert "timed out" in [*format_evidence(one, "")][1].text
    killed = one.replace(timed_out=False)
    assert "killed" in [*format_evidence(killed, "")][1].text


def test_base_checks_on_final_code_are_told_apart(finished: Snapshot) -> None:
    one = finished.evidence[7]
    assert "after, original checks" in [*format_evidence(one, "")][3].text
    other = one.replace(code=Side.BASE, surface=Side.FINAL)
    assert "before, current tests" in [*format_evidence(other, "")][3].text


def test_what_fails_without_the_change_is_no_fault(finished: Snapshot) -> None:
    one = finished.evidence[7].replace(code=Side.BASE, surface=Side.FINAL, exit_code=1)
    (_, row) = format_evidence_table(finished.replace(evidence=(one,)))
    assert (row.spans[0].text, row.spans[0].style) == ("· ", Style.DIM)
    assert "  before  " in row.text


def test_only_the_end_of_a_long_output_is_shown(finished: Snapshot) -> None:
    output = "".join(f"line {number}\n" for number in range(200))
    texts = [row.text for row in format_evidence(finished.evidence[0], output)]
    assert texts[-1] == "line 199"
    assert "… 140 lines above …" in texts
    assert "line 139" not in texts


def test_no_evidence_is_said_in_words(finished: Snapshot) -> None:
    assert [row.text for row in format_evidence_table(finished.replace(evidence=()))] == [
        "no command was run"
    ]


def test_a_sandbox_is_named_and_none_is_shouted(finished: Snapshot) -> None:
    boxed = finished.replace(state=finished.state.replace(sandbox="full"))
    assert any("NOT SANDBOXED" in row.text for row in draw_status(finished, at_work=True))
    assert not any("NOT SANDBOXED" in row.text for row in draw_status(boxed, at_work=True))


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_picture(status: Status, finished: Snapshot) -> None:
    ending = Ending(status=status, exit_code=Exit.LIMIT, reason="for a reason")
    rows = draw_status(
        finished.replace(state=finished.state.replace(status=status, ending=ending)), at_work=True
    )
    assert status.replace("_", " ") in rows[0].text
    assert any("for a reason  exit 3" in row.text for row in rows)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_foreign_text_reaches_no_picture_raw(hostile: str, finished: Snapshot) -> None:
    state = finished.state
    gate = Gate(status=GateStatus.FAILED, agent=hostile, tree=hostile, message=hostile)
    final = tuple(
        one.replace(check=one.check.replace(command=hostile, missing=hostile)) for one in state.final
    )
    evil = finished.replace(
        state=state.replace(
            task=hostile,
            task_id=hostile,
            model=hostile,
            sandbox=hostile,
            started_at=hostile,
            final=final,
            gates={Phase.REVIEW: gate},
            ending=Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason=hostile),
        ),
        evidence=tuple(
            one.replace(command=hostile, cwd=hostile, tree_before=hostile, stdout_sha256=hostile)
            for one in finished.evidence
        ),
    )
    rows = (
        *draw_status(evil, at_work=True),
        *format_evidence_table(evil),
        *format_evidence(evil.evidence[0], hostile),
    )
    assert all(row.text.isprintable() for row in rows)


def test_markup_in_a_task_is_shown_as_it_was_written(finished: Snapshot) -> None:
    task = "[/x] [red]mend[/red] \\[a]"
    rows = draw_status(finished.replace(state=finished.state.replace(task=task)), at_work=True)
    assert rows[1].text.endswith(task)


def test_a_task_that_stopped_says_where_and_how_it_goes_on(finished: Snapshot) -> None:
    ending = Ending(status=Status.CANCELLED, exit_code=Exit.INTERRUPTED, reason="stopped by a signal")
    gates = {**finished.state.gates, Phase.VERIFICATION: Gate(status=GateStatus.IN_PROGRESS)}
    state = finished.state.replace(status=Status.CANCELLED, ending=ending, gates=gates)
    rows = [row.text for row in draw_status(finished.replace(state=state), at_work=False)]
    assert f"next       agentflow resume {state.task_id}" in rows
    assert any(row.startswith("  ▸ verification    stopped") for row in rows)
