"""What a tier's list of models is for: the next one answers where one fails, and nothing else moves on."""

import pytest

from agentflow.core.errors import ModelRefused, ModelRejected, ModelUnavailable
from agentflow.settings import Price, Settings
from tests.contract.conftest import KEY, QUICK, Ask, request
from tests.support.messages_server import Answer, Asked, Plays, Policy, Raw, refuses, text

GOOD = Plays((text("Done."),))
LISTED = QUICK.replace(models={"deep": ("model-1", "model-2", "model-3"), "fast": "other"})
BUSY = refuses(529, "overloaded_error", "busy")


def by_model(**answers: Answer) -> Policy:
    """Return a server on which each model answers in its own way, and any other one well."""
    return lambda asked: answers.get(asked.body["model"].replace("-", "_"), GOOD)


def models(asked: list[Asked]) -> list[str]:
    return [each.body["model"] for each in asked]


def test_a_limit_that_passes_does_not_leave_the_model(ask: Ask) -> None:
    limited = refuses(429, "rate_limit_error", retry_after="0")
    said = ask(limited, limited, GOOD, settings=LISTED)
    assert models(said.asked) == ["model-1"] * 3
    assert [(event.attempt, event.model) for event in said.retried] == [(1, ""), (2, "")]
    assert said.reply.model == "model-1"


UNFIT: dict[str, Answer] = {
    "not there": refuses(404, "not_found_error", "model: model-1"),
    "not able to take it": refuses(400, "invalid_request_error", "max_tokens: too many for this model"),
    "not there, as an event": Raw(b'{"type":"error","error":{"type":"not_found_error","message":"no"}}'),
}


@pytest.mark.parametrize("answer", UNFIT.values(), ids=UNFIT)
def test_a_model_that_cannot_take_it_is_asked_once_and_the_next_one_answers(ask: Ask, answer: Answer) -> None:
    said = ask(policy=by_model(model_1=answer), settings=LISTED)
    assert said.reply.model == "model-2"
    assert models(said.asked) == ["model-1", "model-2"]
    ((attempt, model, seconds),) = [(event.attempt, event.model, event.seconds) for event in said.retried]
    assert (attempt, model, seconds) == (1, "model-2", 0)
    first, second = (each.body for each in said.asked)
    assert {**first, "model": ""} == {**second, "model": ""}


def test_a_model_that_stays_busy_is_left_after_all_tries_and_each_is_told(ask: Ask) -> None:
    said = ask(policy=by_model(model_1=BUSY), settings=LISTED)
    assert said.reply.model == "model-2"
    assert models(said.asked) == ["model-1"] * 6 + ["model-2"]
    assert [(event.attempt, event.model) for event in said.retried] == [
        *((number, "") for number in range(1, 6)),
        (6, "model-2"),
    ]
    assert "529: busy (6 tries)" in said.retried[-1].reason


def test_a_wait_that_is_too_long_goes_to_the_next_one(ask: Ask) -> None:
    hours = refuses(429, "rate_limit_error", retry_after="7200")
    said = ask(policy=by_model(model_1=hours), settings=LISTED)
    assert models(said.asked) == ["model-1", "model-2"]
    assert "7200 seconds" in said.retried[0].reason


def test_what_was_given_up_is_not_asked_again(ask: Ask) -> None:
    gone = refuses(404, "not_found_error")
    said = ask(policy=by_model(model_1=gone, model_2=gone), settings=LISTED, requests=(request(), request()))
    assert models(said.asked) == ["model-1", "model-2", "model-3", "model-3"]
    assert [event.model for event in said.retried] == ["model-2", "model-3"]


def test_when_the_last_one_fails_that_is_the_error(ask: Ask) -> None:
    said = ask(BUSY, settings=LISTED)
    assert isinstance(said.error, ModelUnavailable)
    assert models(said.asked)[-1] == "model-3"
    assert len(said.asked) == 18


LASTING: dict[str, Answer] = {
    "a wrong key": refuses(401, "authentication_error", f"invalid key {KEY}"),
    "a key without the right": refuses(403, "permission_error"),
    "an empty account": refuses(402, "billing_error"),
    "a redirect": Raw(b"", 307, (("location", "http://127.0.0.1:9/"),)),
    "a page": Raw(b"<html>", 200, (("content-type", "text/html"),)),
    "a refusal": Plays((), stop="refusal"),
    "a full window": Plays((), stop="model_context_window_exceeded"),
}


@pytest.mark.parametrize("answer", LASTING.values(), ids=LASTING)
def test_what_another_model_would_not_mend_ends_it(ask: Ask, answer: Answer) -> None:
    said = ask(answer, GOOD, settings=LISTED)
    assert isinstance(said.error, ModelRefused | ModelRejected)
    assert len(said.asked) == 1
    assert said.retried == []


def test_the_key_is_in_no_word_about_a_fallback(ask: Ask) -> None:
    said = ask(policy=by_model(model_1=refuses(404, "not_found_error", f"no {KEY}")), settings=LISTED)
    assert KEY not in str(said.events)
    assert "[redacted]" in said.retried[0].reason


def test_each_model_costs_what_it_costs(ask: Ask) -> None:
    price = Price(input=1, output=0, cache_read=0, cache_write=0)
    priced: Settings = LISTED.replace(prices={"model-2": price})
    said = ask(policy=by_model(model_1=refuses(404, "not_found_error")), settings=priced)
    assert said.reply.usage.cost_usd == pytest.approx(10 / 1_000_000)


def test_an_id_of_no_list_has_no_fallback(ask: Ask) -> None:
    said = ask(refuses(404, "not_found_error"), settings=LISTED, requests=(request(model="model-2"),))
    assert isinstance(said.error, ModelRefused | ModelRejected)
    assert len(said.asked) == 1
