"""Limits of tokens and of money, and what models cost: what cannot fit is not sent."""

from typing import Any

import pytest

from tests.support import play
from tests.support.crew import honest
from tests.support.live import live
from tests.support.messages_server import (
    Answer,
    Asked,
    Plays,
    serving,
)
from tests.support.repo import NewRepo, Repo


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


def metered(asked: Asked) -> Answer:
    """Return the honest reply with the usage that a provider would count."""
    answer = honest(asked)
    assert isinstance(answer, Plays)
    return answer._replace(usage={"input_tokens": len(asked.raw) // 4, "output_tokens": 60})


def tokens(repo: Repo) -> int:
    used = repo.state()["usage"]
    return sum(used[key] for key in ("input", "output", "cache_read", "cache_write"))


def test_a_request_that_cannot_fit_is_not_sent(repo: Repo) -> None:
    with serving(policy=metered) as server:
        done = live(repo, server, "--max-tokens", "100", "make the failing tests pass")
    assert (done.code, server.asked) == (3, [])
    assert "0 of 100 tokens used, and the next request needs about" in done.out
    assert "(--max-tokens)" in done.out
    assert (repo.state()["status"], tokens(repo)) == ("limit", 0)
    assert (repo.folder / "report.md").exists()


@pytest.mark.parametrize("limit", [5_000, 8_000])
def test_what_fits_is_sent_and_the_limit_is_kept(repo: Repo, limit: int) -> None:
    with serving(policy=metered) as server:
        done = live(repo, server, "--max-tokens", str(limit), play.WHOLE_CREW)
    assert done.code == 3
    assert server.asked
    assert 0 < tokens(repo) <= limit
    assert f"of {limit} tokens used" in done.out
    used = 0
    for asked in server.asked:
        assert 0 < asked.body["max_tokens"] <= limit - used
        used += len(asked.raw) // 4 + 60


def test_a_limit_that_is_wide_enough_leaves_replies_their_length(repo: Repo) -> None:
    with serving(policy=metered) as server:
        done = live(repo, server, "--max-tokens", "1000000", "make the failing tests pass")
    assert done.code == 0, done.err
    assert {asked.body["max_tokens"] for asked in server.asked} == {16_000}


def test_a_limit_of_money_needs_a_price(repo: Repo) -> None:
    with serving(policy=metered) as server:
        done = live(repo, server, "--max-cost", "1", "make the failing tests pass")
    assert (done.code, server.asked) == (2, [])
    for word in ("--max-cost", "big-1", "small-1", "prices", "--max-tokens"):
        assert word in done.err
    assert not (repo.root / ".claude").exists()


FREE = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
DEAR = {**FREE, "input": 1000}
PRICED: dict[str, tuple[dict[str, Any], str, int]] = {
    "the users own": ({"big-1": DEAR, "small-1": FREE}, "1000", 0),
    "the users own, too dear": ({"big-1": DEAR, "small-1": FREE}, "0.5", 3),
    "free": ({"big-1": FREE, "small-1": FREE}, "0.5", 0),
}


@pytest.mark.parametrize(("prices", "most", "code"), PRICED.values(), ids=PRICED)
def test_a_limit_of_money_is_kept_where_the_price_is_known(
    repo: Repo, prices: dict[str, Any], most: str, code: int
) -> None:
    with serving(policy=metered) as server:
        done = live(repo, server, "--max-cost", most, play.WHOLE_CREW, prices=prices)
    assert done.code == code, done.err
    assert ("(--max-cost)" in done.out) is (code == 3)
    assert (repo.state()["usage"]["cost_usd"] or 0) <= float(most)


def test_the_vendors_models_have_a_price_that_settings_override(repo: Repo) -> None:
    words = ("--json", "--max-cost", "5", "--model", "claude-opus-5-5", "make the failing tests pass")
    with serving(policy=metered) as server:
        done = live(repo, server, *words, models={})
    assert done.code == 0, done.err
    used = done.json["usage"]
    assert used["cost_usd"] == pytest.approx((used["input"] * 4 + used["output"] * 20) / 1_000_000)
    with serving(policy=metered) as server:
        done = live(repo, server, *words, models={}, prices={"claude-opus-5-5": FREE})
    assert done.json["usage"]["cost_usd"] == 0


def test_the_embedded_model_costs_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert repo.task("--max-cost", "1", "--model", "repair", "make the failing tests pass").code == 0
