"""When a request is sent again, how long we wait, and when we give up; on a clock that only we move."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest

from agentflow.core.errors import ModelError, ModelRefused, ModelRejected, ModelUnavailable
from agentflow.model.retry import MAX_BAD_REPLIES, parse_retry_after, persist, to_status_error, to_type_error
from agentflow.model.wire import BadReply, TryFailed
from agentflow.settings import Retry

FAST = Retry(tries=6, base_seconds=0.002, max_seconds=0.01)
Told = list[tuple[int, str, float]]


def persisted(failures: Sequence[ModelError], retry: Retry = FAST) -> tuple[str | ModelError, int, Told]:
    """Return what came of a request that first fails so, how often it was sent, and what was told."""
    left, told = list(failures), Told()
    sent = 0

    async def attempt() -> str:
        nonlocal sent
        sent += 1
        if left:
            raise left.pop(0)
        return "done"

    async def run() -> str | ModelError:
        try:
            return await persist(attempt, retry, lambda *each: told.append(each))
        except ModelError as error:
            return error

    return anyio.run(run), sent, told


def test_a_failure_that_passes_is_told_and_forgotten() -> None:
    result, sent, told = persisted([TryFailed("busy"), TryFailed("gone")])
    assert (result, sent) == ("done", 3)
    assert [(number, reason) for number, reason, _ in told] == [(1, "busy"), (2, "gone")]


def test_a_rejection_is_final() -> None:
    result, sent, told = persisted([ModelRejected("no")])
    assert isinstance(result, ModelRejected)
    assert (sent, told) == (1, [])


def test_it_is_given_up_only_after_all_tries_and_half_of_the_longest_time() -> None:
    retry = Retry(tries=4, base_seconds=0.02, max_seconds=0.05)

    async def run() -> float:
        begin = anyio.current_time()

        async def attempt() -> str:
            raise TryFailed("busy")

        with pytest.raises(ModelUnavailable, match="busy"):
            await persist(attempt, retry, lambda *_: None)
        return anyio.current_time() - begin

    assert min(anyio.run(run) for _ in range(10)) >= (0.02 + 0.04 + 0.05) / 2


def test_by_default_it_takes_at_least_six_tries_and_two_minutes() -> None:
    default = Retry()
    pauses = [
        min(default.max_seconds, default.base_seconds * 2**number) for number in range(default.tries - 1)
    ]
    assert default.tries >= 6
    assert sum(pauses) / 2 >= 120


def test_the_pauses_are_jitter_below_a_doubling_bound() -> None:
    _, _, told = persisted([TryFailed("busy")] * 5)
    bounds = (0.002, 0.004, 0.008, 0.01, 0.01)
    assert all(0 <= pause <= bound for (_, _, pause), bound in zip(told, bounds, strict=True))
    pauses = {persisted([TryFailed("busy")] * 5)[2][4][2] for _ in range(8)}
    assert len(pauses) > 1


def test_what_the_server_asks_for_is_waited() -> None:
    result, _, told = persisted([TryFailed("busy", retry_after=0.05)])
    assert result == "done"
    assert told == [(1, "busy", 0.05)]


@pytest.mark.parametrize("asked", [901.0, 86_400.0, float("inf")])
def test_a_wait_that_is_too_long_is_not_begun(asked: float) -> None:
    result, sent, _ = persisted([TryFailed("busy", retry_after=asked)])
    assert isinstance(result, ModelUnavailable)
    assert f"{asked:.0f} seconds" in str(result)
    assert sent == 1


def test_bad_replies_are_asked_for_again_only_a_few_times() -> None:
    result, sent, _ = persisted([BadReply("cut")] * 10)
    assert isinstance(result, ModelUnavailable)
    assert sent == MAX_BAD_REPLIES


def test_one_try_is_one_try() -> None:
    result, sent, told = persisted([TryFailed("busy")], Retry(tries=1))
    assert isinstance(result, ModelUnavailable)
    assert (str(result), sent, told) == ("busy", 1, [])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_these_statuses_may_pass(status: int) -> None:
    assert isinstance(to_status_error(status, "", None), TryFailed)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422])
def test_these_statuses_will_not(status: int) -> None:
    assert isinstance(to_status_error(status, "", None), ModelRefused | ModelRejected)


@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("overloaded_error", True),
        ("rate_limit_error", True),
        ("api_error", True),
        ("timeout_error", True),
        ("something_new", True),
        ("", True),
        ("invalid_request_error", False),
        ("authentication_error", False),
        ("permission_error", False),
        ("not_found_error", False),
        ("billing_error", False),
    ],
)
def test_an_error_event_is_judged_by_its_type(kind: str, *, passes: bool) -> None:
    assert isinstance(to_type_error(kind, "x"), TryFailed) is passes


@pytest.mark.parametrize(
    ("header", "expected"),
    [(None, None), ("7", 7), ("0.5", 0.5), ("-3", 0), ("soon", None), ("", None), ("nan", 0)],
)
def test_retry_after_is_a_number(header: str | None, expected: float | None) -> None:
    assert parse_retry_after(header) == expected


@pytest.mark.parametrize(("ahead", "least", "most"), [(90, 85, 90), (-90, 0, 0)])
def test_retry_after_is_a_date(ahead: int, least: float, most: float) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead), usegmt=True)
    found = parse_retry_after(date)
    assert found is not None
    assert least <= found <= most
