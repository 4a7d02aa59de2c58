"""Rates, chance and the comparison of two runs, against values from the literature."""

from pathlib import Path

import pytest

from agentflow.batch.evaluation import (
    compare_runs,
    compute_chance,
    measure_difference,
    measure_rate,
    score_groups,
)
from agentflow.batch.plan import read_plan
from agentflow.batch.results import BatchResult, HiddenResult
from agentflow.core.task import Status
from agentflow.frontmatter import read_yaml
from agentflow.model.scripted import Entry
from agentflow.settings import find_bundled

SET = find_bundled("examples") / "evaluation"


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (0, 0, 0, 1),
    ],
)
def test_the_interval_of_a_rate_is_that_of_wilson(count: int, of: int, low: float, high: float) -> None:
    found = measure_rate(count, of)
    assert [found.low, found.high] == pytest.approx([low, high], abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "p"), [(1, 9, 0.021484), (9, 1, 0.021484), (5, 5, 1.0), (0, 0, 1.0), (0, 5, 0.0625)]
)
def test_chance_is_that_of_the_exact_test_of_mcnemar(first: int, second: int, p: float) -> None:
    assert compute_chance(first, second) == pytest.approx(p, abs=5e-7)


@pytest.mark.parametrize(
    ("counts", "value", "low", "high"),
    [
        ((36, 2, 12, 0), 0.2, 0.0569, 0.3404),
        ((20, 12, 2, 16), -0.2, -0.3292, -0.0562),
        ((0, 0, 6, 0), 1, 0.448, 1),
    ],
)
def test_the_interval_of_a_paired_difference_is_that_of_newcombe(
    counts: tuple[int, int, int, int], value: float, low: float, high: float
) -> None:
    found = measure_difference(*counts)
    assert [found.value, found.low, found.high] == pytest.approx([value, low, high], abs=5e-5)


def result(name: str, code: int, resolved: bool | None, group: str = "g") -> BatchResult:
    hidden = None if resolved is None else HiddenResult(resolved=resolved, reason="")
    status = {0: Status.VERIFIED, 4: Status.VERIFIED_WITH_CAVEAT}.get(code, Status.FAILED)
    return BatchResult(
        id=name, status=status, exit_code=code, reason="", group=group, hidden=hidden, seconds=2
    )


def test_each_kind_of_end_is_counted_once() -> None:
    ends = [(0, True), (0, False), (4, False), (1, True), (1, False), (2, None)]
    run = [result(f"t{number}", code, resolved) for number, (code, resolved) in enumerate(ends)]
    (score,) = score_groups(run)
    assert (score.tasks, score.resolved.count, score.resolved.of) == (6, 2, 6)
    assert (score.falsely_verified.count, score.falsely_verified.of) == (1, 2)
    assert (score.caveats_unresolved, score.refused, score.unbegun) == (1, 2, 1)
    assert [one.group for one in score_groups([*run, result("x", 0, True, "h")])] == ["g", "h", "all"]


def test_two_runs_are_paired_by_task() -> None:
    first = [result(f"t{number}", 0, True) for number in range(8)]
    second = [result(f"t{number}", 0, number < 1) for number in range(7)]
    found = compare_runs(first, second)
    assert (found.tasks, found.both, len(found.first_only), found.unpaired) == (7, 1, 6, ("t7",))
    assert (found.is_worse, compare_runs(second, first).is_worse) == (True, False)
    assert (found.is_better, compare_runs(second, first).is_better) == (False, True)
    few = compare_runs(second[:5], first[:5])
    assert not few.is_worse
    assert not few.is_better


def test_the_shipped_set_plants_a_bug_in_each_task_and_its_script_mends_it() -> None:
    tasks = read_plan(SET / "tasks.yaml")
    script = read_yaml(tuple[Entry, ...], (SET / "scripted.yaml").read_text(), "scripted.yaml")
    groups = {task.group for task in tasks}
    assert (len(tasks), len(groups)) == (40, 5)
    for task, entry in zip(tasks, script, strict=True):
        (planted,) = task.edits
        good = (Path(task.repository) / planted.file).read_text()
        assert good.count(planted.old) == 1, task.id
        broken = good.replace(planted.old, planted.new)
        given = entry.turns[1].tools[0].input
        assert broken.count(given["old_string"]) == 1, task.id
        assert broken.replace(given["old_string"], given["new_string"]) == good, task.id
        assert entry.match.contains is not None
        assert entry.match.contains in task.text
        assert sum(entry.match.contains in other.text for other in tasks) == 1
        assert task.check is not None
        assert any(Path(task.check.folder).rglob("*hidden*")) or task.group == "c"
