"""What tokens cost, where the user has said so."""

from agentflow.core.messages import Usage
from agentflow.settings import Price

_A_MILLION = 1_000_000


def priced(usage: Usage, price: Price | None) -> Usage:
    """Return a usage with its cost; without a price the cost stays unknown."""
    if price is None:
        return usage
    dollars = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    )
    return usage.replace(cost_usd=round(dollars / _A_MILLION, 8))
