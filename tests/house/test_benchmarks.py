"""The stable figures of `python -m benchmarks`, in short, and whether its arithmetic can be trusted."""

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks import commands, prompts, repair, report, state, tokens, work
from benchmarks.clients import AGENTFLOW, STDLIB, measure, scratch
from benchmarks.report import Row
from benchmarks.server import Asked, rehearsed
from benchmarks.tasks import Task, tasks

SHORT = 12
COMMANDS = [(words, forbidden) for words, _, forbidden in commands.COMMANDS]
LARGE = "x" * 8_000
MARK = {"cache_control": {"type": "ephemeral"}}


def missed(rows: Iterable[Row]) -> list[str]:
    return [report.table([row]) for row in rows if row.holds is False]


@pytest.fixture(scope="module")
def grown() -> list[Asked]:
    return tokens.asked(AGENTFLOW, rehearsed(SHORT, tokens.CAT))


@pytest.mark.parametrize(("words", "forbidden"), COMMANDS)
def test_a_command_that_only_answers_loads_nothing_heavy(words: str, forbidden: frozenset[str]) -> None:
    with scratch() as place:
        (place.root / ".claude").mkdir()
        state.new_store(place.root)
        assert commands.loaded(place, words) & forbidden == set()


def test_what_was_sent_is_sent_again_byte_by_byte(grown: list[Asked]) -> None:
    sent = [
        one.raw.replace(b',"cache_control":{"type":"ephemeral"}', b"")
        for one in grown
        if one.role == "implementer"
    ]
    assert len(sent) == SHORT + 1
    for before, after in pairwise(sent):
        assert after.startswith(before.removesuffix(b"]}"))


def test_a_cache_reads_what_stood_in_the_request_before(grown: list[Asked]) -> None:
    sent = tokens.working(grown)
    assert prompts.append_only(sent) == 1
    assert prompts.billed(sent).read_share >= 0.99 * prompts.prefix_share(sent)
    assert prompts.prefix_share(sent) > 0.8


def test_a_step_of_many_blocks_loses_no_cache() -> None:
    sent = tokens.working(tokens.asked(AGENTFLOW, tokens.bursting(6)))
    assert prompts.append_only(sent) == 1
    assert prompts.billed(sent).read_share >= 0.99 * prompts.prefix_share(sent)


def test_a_whole_task_keeps_its_bounds() -> None:
    rows = list(tokens.four_roles())
    assert {row.goal for row in rows} == {7, 9, 10}
    assert missed(rows) == []


def test_a_killed_run_asks_the_same_again() -> None:
    before, after = tokens.killed_and_resumed(2)
    assert before == after


def test_a_run_is_measured() -> None:
    found = measure(STDLIB, rehearsed(3, "true"), memory=True)
    assert len(found.gaps) == 3
    assert 0 < found.startup < 30
    assert 0 < found.exit < 30
    assert found.cpu > 0
    assert found.pss > 1


def test_each_task_of_the_tables_can_be_done() -> None:
    for task in tasks():
        files = task.files
        for edit in task.change:
            files = edit.apply(files)
        assert (files == task.files) == (task.kind == "question")


def test_work_is_counted_by_role() -> None:
    (question,) = (task for task in tasks() if task.kind == "question")
    cost = work.tried(AGENTFLOW, question, "competent")
    assert (cost.verdict, cost.refused, cost.requests) == ("answered", (), {"explorer": 3})
    assert cost.input["explorer"] > cost.output["explorer"] > 0
    assert not work.tried(STDLIB, tasks()[0], "lazy").is_right


def task_of(name: str) -> Task:
    return next(task for task in tasks() if task.id == name)


def test_a_failing_test_costs_no_more_than_by_a_plain_loop() -> None:
    ours, plain = (
        work.tried(client, task_of("python-red-test"), "competent") for client in (AGENTFLOW, STDLIB)
    )
    assert (ours.verdict, ours.refused, ours.is_done) == ("verified", (), True)
    assert ours.requests == {"implementer": 3}
    assert sum(ours.input.values()) <= 1.1 * sum(plain.input.values())


def test_a_wrong_change_that_passes_its_own_tests_is_rejected_by_a_verifier_that_looks() -> None:
    cost = work.tried(AGENTFLOW, task_of("python-small-feature"), "mistaken")
    assert (cost.verdict, cost.is_done) == ("failed", False)
    assert cost.requests["verifier"] > 1


def test_state_is_written_in_little_time() -> None:
    rows = [row for row in state.rows(9) if "fsync" not in row.metric]
    assert missed(rows) == []


def block(content: str, *, marked: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": content, **(MARK if marked else {})}


def prompt(*blocks: dict[str, Any], model: str = "m") -> prompts.Parts:
    body = {"model": model, "messages": [{"role": "user", "content": list(blocks)}]}
    return prompts.parts(json.dumps(body).encode())


def reads(*sent: prompts.Parts) -> float:
    return prompts.billed(sent).read


def test_a_prefix_with_a_breakpoint_is_read_the_next_time() -> None:
    first = prompt(block(LARGE, marked=True))
    assert reads(first, prompt(block(LARGE), block("more", marked=True))) == 2_000


@pytest.mark.parametrize(
    "second",
    [
        prompt(block(LARGE), block("more")),
        prompt(block("y" + LARGE[1:]), block("more", marked=True)),
        prompt(block(LARGE), block("more", marked=True), model="other"),
        prompt(block(LARGE), *[block("more")] * 19, block("end", marked=True)),
    ],
    ids=["no breakpoint", "another beginning", "another model", "too many blocks between"],
)
def test_nothing_is_read_without_the_same_prefix_near_a_breakpoint(second: prompts.Parts) -> None:
    assert reads(prompt(block(LARGE, marked=True)), second) == 0


def test_the_last_block_of_the_look_back_still_counts() -> None:
    second = prompt(block(LARGE), *[block("more")] * 18, block("end", marked=True))
    assert reads(prompt(block(LARGE, marked=True)), second) == 2_000


def test_a_short_prompt_is_not_cached() -> None:
    short = prompt(block("x" * 4_000, marked=True))
    assert prompts.billed([short, short]) == prompts.Bill(sent=2_000)


def test_a_bill_counts_each_token_once() -> None:
    bill = prompts.billed([prompt(block(LARGE, marked=True))] * 2)
    assert bill == prompts.Bill(sent=4_000, read=2_000, written=2_000)
    assert bill.units == 1.25 * 2_000 + 0.1 * 2_000


def test_a_changed_history_is_not_append_only() -> None:
    first = prompt(block("a" * 40), block("b" * 40))
    assert prompts.append_only([first, prompt(block("a" * 40), block("c" * 40))]) == 0.5


def figures() -> Iterator[Row]:
    yield report.compared(1, "a", [1.0, 2.0, 9.0], [2.0, 2.0, 3.0], report.at_most(0.9))
    yield report.compared(1, "b", [1.0, 2.0, 9.0], [2.0, 2.0, 3.0], report.at_most(1))
    yield report.alone(2, "c", [0.999], report.exactly(1))
    yield report.alone(2, "d", [5.0])


def test_a_row_is_judged_by_the_median_of_its_rounds_ratios() -> None:
    assert [row.holds for row in figures()] == [False, True, False, None]
    assert [row.ratio for row in figures()] == [1.0, 1.0, None, None]


def test_a_row_in_json_has_the_published_keys() -> None:
    first = json.loads(report.json_line(next(figures())))
    assert first == {
        "goal": 1,
        "metric": "a",
        "agentflow": 2.0,
        "reference": 2.0,
        "ratio": 1.0,
        "bound": "<= 0.9",
        "pass": False,
        "rounds": 3,
        "spread": 6.0,
    }


def test_the_table_marks_what_is_missed() -> None:
    lines = report.table(list(figures())).splitlines()
    assert ["MISSED" in line for line in lines] == [False, True, False, True, False]


def test_a_run_under_load_is_marked(root: Path) -> None:
    assert (root / "benchmarks/README.md").is_file()
    assert "UNDER LOAD" in report.header(1_000)


def test_the_table_of_repairs_shows_shares_with_their_intervals() -> None:
    def an_outcome(number: int, end: repair.End) -> repair.Outcome:
        return repair.Outcome(
            name=str(number), kind="operator", half="open", end=end, seconds=number, cpu=1, said=""
        )

    ends = [*[repair.End.MENDED] * 7, repair.End.AMBIGUOUS_RIGHT, repair.End.WRONG, repair.End.REFUSED]
    lines = repair.to_table([an_outcome(number, end) for number, end in enumerate(ends)]).splitlines()
    cells = [[each.strip() for each in line.split("  ") if each] for line in lines]
    assert [line[0] for line in cells] == ["bugs", "operator", "open", "all"]
    assert cells[1][1:] == cells[3][1:]
    assert cells[1][1:4] == ["10", "80% (49% to 94%)", "10% (2% to 40%)"]
    assert cells[1][-2:] == ["4.5 s", "8.0 s"]
    assert repair.to_table([]).count("\n") == 0
