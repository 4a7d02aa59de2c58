"""What tokens cost, where the user has said so."""

from agentflow.core.messages import Reply, Served, Usage
from agentflow.settings import Price

_A_MILLION = 1_000_000


def searches(reply: Reply) -> int:
    """Return how many searches of a reply cost something."""
    served = (part for part in reply.parts if isinstance(part, Served))
    return sum(part.is_result and not part.is_error for part in served)


def priced(usage: Usage, price: Price | None, searched: int = 0) -> Usage:
    """Return a usage with its cost; without a price for all of it the cost stays unknown."""
    if price is None or (searched and price.search is None):
        return usage
    dollars = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    )
    return usage.replace(cost_usd=round(dollars / _A_MILLION + searched * (price.search or 0), 8))
