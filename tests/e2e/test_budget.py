"""What a whole task may use up (B25)."""

import time
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo


def script(**usage: float) -> list[dict[str, Any]]:
    """An honest crew each of whose replies uses so much."""
    return [
        {**entry, "turns": [{**each, "usage": usage} for each in entry["turns"]]} for entry in play.mending()
    ]


LIMITS = {
    "cost": (("--max-cost", "0.5"), {"input": 1, "cost_usd": 0.2}, "of 0.5 USD used (--max-cost)"),
    "tokens": (("--max-tokens", "250"), {"input": 90, "output": 10}, "of 250 tokens used (--max-tokens)"),
}


@pytest.mark.parametrize(("options", "usage", "said"), LIMITS.values(), ids=LIMITS)
def test_a_limit_of_the_task_ends_it_with_its_own_reason(
    new_repo: NewRepo, options: tuple[str, ...], usage: dict[str, float], said: str
) -> None:
    repo = new_repo(play.LIGHT)
    done = repo.task(*options, play.WHOLE_CREW, script=script(**usage))
    assert done.code == 3
    assert said in done.out
    state = repo.state()
    assert (state["status"], state["active"]) == ("limit", False)
    assert (repo.folder / "report.md").exists()
    assert len(repo.runs("explorer")) == 1
    assert repo.runs("verifier") == []


def test_a_single_run_is_held_to_what_is_left_of_the_task(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    endless = [
        {**play.turn(play.call("Read", file_path="calc.py")), "usage": {"input": 100}} for _ in range(20)
    ]
    done = repo.task("--max-tokens", "250", play.WHOLE_CREW, script=[play.role("explorer", *endless)])
    assert done.code == 3
    assert "of 250 tokens used (--max-tokens)" in done.out
    assert repo.state()["usage"]["input"] <= 400


@pytest.mark.parametrize(("options", "usage", "_"), LIMITS.values(), ids=LIMITS)
def test_a_limit_that_is_wide_enough_changes_nothing(
    new_repo: NewRepo, options: tuple[str, str], usage: dict[str, float], _: str
) -> None:
    wide = (options[0], str(float(options[1]) * 100).removesuffix(".0"))
    assert new_repo(play.LIGHT).task(*wide, play.WHOLE_CREW, script=script(**usage)).code == 4


def test_time_ends_a_task_with_its_partial_result(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    slow = [entry if number != 2 else {**entry, "delay": 60} for number, entry in enumerate(script())]
    began = time.monotonic()
    done = repo.task("--timeout", "4", play.WHOLE_CREW, script=slow)
    assert done.code == 3
    assert time.monotonic() - began < 40
    assert "4 s are over (--timeout)" in done.out
    assert repo.state()["status"] == "limit"
    assert repo.events("TaskEnded")[-1]["exit_code"] == 3


def test_an_unknown_price_is_said_and_not_guessed(new_repo: NewRepo) -> None:
    done = new_repo(play.LIGHT).task("--max-cost", "1", play.WHOLE_CREW, script=script(input=5))
    assert done.code == 4
    assert done.err.count("--max-cost was not enforced") == 1


@pytest.mark.parametrize("options", [("--max-tokens", "0"), ("--timeout", "-1"), ("--max-cost", "x")])
def test_a_limit_that_is_none_is_a_usage_error(new_repo: NewRepo, options: tuple[str, str]) -> None:
    assert new_repo(play.LIGHT).task(*options, play.WHOLE_CREW, script=[]).code == 2
