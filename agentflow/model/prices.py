"""What tokens cost, and how many fit: as the user says, else as the vendor's list says that is shipped."""

from datetime import date
from functools import cache
from pathlib import Path

from agentflow.core.messages import Reply, Served, Usage
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
