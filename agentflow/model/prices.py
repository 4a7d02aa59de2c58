"""What tokens cost, and what is left of a task's budget: a request that cannot be paid is not sent."""

from datetime import date
from functools import cache
from pathlib import Path

from agentflow.core.errors import Exit, ModelRejected
from agentflow.core.messages import Reply, Request, Served, Usage
from agentflow.core.pending import Budget
from agentflow.core.record import Record
from agentflow.frontmatter import read_yaml
from agentflow.settings import Price, Settings

_A_MILLION = 1_000_000
_SHIPPED = "prices.yaml"


class Listed(Record):
    """Prices that were published together."""

    as_of: date
    source: str
    prices: dict[str, Price]
    windows: dict[str, int] = {}
    """Tokens of a model's context window."""


@cache
def load_price_lists() -> tuple[Listed, ...]:
    """Return the shipped lists; the file is read when the first price is asked for."""
    return read_yaml(tuple[Listed, ...], Path(__file__).with_name(_SHIPPED).read_text("utf-8"), _SHIPPED)


def find_price(model: str, kind: str, settings: Settings) -> Price | None:
    """Return what a model costs, or None where that is unknown.

    The shipped prices are of the vendor's own API; a platform may have others.
    """
    if model in settings.prices or kind != "anthropic":
        return settings.prices.get(model)
    return next((each.prices[model] for each in load_price_lists() if model in each.prices), None)


def find_window(model: str, settings: Settings) -> int | None:
    """Return how many tokens a model's context window has, or None where that is unknown."""
    if model in settings.windows:
        return settings.windows[model]
    return next((each.windows[model] for each in load_price_lists() if model in each.windows), None)


def searches(reply: Reply) -> int:
    """Return how many searches of a reply cost something."""
    served = (part for part in reply.parts if isinstance(part, Served))
    return sum(part.is_result and not part.is_error for part in served)


def add_cost(usage: Usage, price: Price | None, searched: int = 0) -> Usage:
    """Return a usage with its cost; without a price for all of it the cost stays unknown."""
    if price is None or (searched and price.search is None):
        return usage
    prompt = usage.input + usage.cache_read + usage.cache_write
    rates = price.longer if price.longer is not None and prompt > price.longer.above else price
    dollars = (
        usage.input * rates.input
        + usage.output * rates.output
        + usage.cache_read * rates.cache_read
        + usage.cache_write * rates.cache_write
    )
    return usage.replace(cost_usd=round(dollars / _A_MILLION + searched * (price.search or 0), 8))


_TOKENS_A_BYTE = 0.25
"""Of a request, as long as no reply has told how many it had."""
_LEAST_REPLY = 100
"""Tokens below which a reply says nothing of use."""
_PER_MILLION = 1_000_000


class OverBudget(ModelRejected):
    """The next request does not fit into what is left of the task's budget."""

    exit_code = Exit.LIMIT


class Meter:
    """The count of one task, shared by all its runs."""

    def __init__(self, budget: Budget, used: Usage) -> None:
        self._budget = budget
        self._tokens = used.tokens
        self._cost = used.cost_usd or 0.0
        self._rate = _TOKENS_A_BYTE

    def tokens_of(self, size: int) -> int:
        """Return the tokens of a request of so many bytes, as the replies tell."""
        return int(size * self._rate) + 1

    def reply_room(self, request: Request, size: int, price: Price | None, most: int) -> int:
        """Return the tokens that a reply may have, for a request of so many bytes. Raises OverBudget."""
        needed = self.tokens_of(size)
        room = most
        if self._budget.tokens is not None:
            room = min(room, self._budget.tokens - self._tokens - needed)
        if room < min(_LEAST_REPLY, most):
            raise OverBudget(
                f"the task's limit is reached: {self._tokens} of {self._budget.tokens} tokens used, "
                f"and the next request needs about {needed + _LEAST_REPLY} (--max-tokens)"
            )
        if self._budget.cost is None or price is None:
            return room
        return min(room, self._affordable(request, needed, price, min(_LEAST_REPLY, most)))

    def _affordable(self, request: Request, needed: int, price: Price, least: int) -> int:
        """Return how long a reply the money is enough for; what was sent before may be read from a cache."""
        assert self._budget.cost is not None
        is_new = len(request.messages) == 1
        prompt = needed * (price.input if is_new else min(price.input, price.cache_read)) / _PER_MILLION
        left = self._budget.cost - self._cost - prompt
        room = int(left * _PER_MILLION / price.output) if price.output else (_PER_MILLION if left >= 0 else 0)
        if room < least:
            wanted = prompt + least * price.output / _PER_MILLION
            raise OverBudget(
                f"the task's limit is reached: {self._cost:.4f} of {self._budget.cost:g} USD used, "
                f"and the next request costs about {wanted:.4f} (--max-cost)"
            )
        return room

    def count(self, usage: Usage) -> None:
        """Add what a try used, a failed one too."""
        self._tokens += usage.tokens
        self._cost += usage.cost_usd or 0.0

    def learn(self, size: int, usage: Usage) -> None:
        """Note how many tokens a request of so many bytes had."""
        prompt = usage.input + usage.cache_read + usage.cache_write
        if prompt and size:
            self._rate = prompt / size
