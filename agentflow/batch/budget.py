"""What a batch may use up as a whole: each task sets its share aside before it begins."""

from agentflow.core.messages import Usage
from agentflow.core.pending import Budget


def to_usage(share: Budget) -> Usage:
    """Return the most that a task with this share can have used."""
    return Usage(input=share.tokens or 0, cost_usd=share.cost)


class SharedBudget:
    """The part of a batch's budget that is neither used nor reserved for a running task."""

    def __init__(self, limit: Budget) -> None:
        self._limit = limit
        self._cost = limit.cost or 0.0
        self._tokens = limit.tokens or 0
        self._running = 0

    @property
    def is_idle(self) -> bool:
        """Tell whether no task has anything set aside, so that nothing more will be given back."""
        return self._running == 0

    def spend(self, used: Usage) -> None:
        """Count what an earlier run of the batch used."""
        self._cost -= used.cost_usd or 0
        self._tokens -= used.tokens

    def reserve(self, wanted: Budget, waiting: int) -> Budget | None:
        """Set aside what a task wants, or an even part of what is left; return None if that is too much.

        `waiting` tasks have not begun yet, this one among them.
        """
        cost, tokens = wanted.cost, wanted.tokens
        if self._limit.cost is not None:
            cost = self._cost / waiting if cost is None else cost
            if not 0 < cost <= self._cost:
                return None
        if self._limit.tokens is not None:
            tokens = self._tokens // waiting if tokens is None else tokens
            if not 0 < tokens <= self._tokens:
                return None
        self._take(cost or 0, tokens or 0)
        self._running += 1
        return wanted.replace(cost=cost, tokens=tokens)

    def settle(self, reserved: Budget, used: Usage) -> None:
        """Give back what was set aside for a task that has ended, but for what it used."""
        self._take((used.cost_usd or 0) - (reserved.cost or 0), used.tokens - (reserved.tokens or 0))
        self._running -= 1

    def _take(self, cost: float, tokens: int) -> None:
        self._cost -= cost
        self._tokens -= tokens
