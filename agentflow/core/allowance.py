"""What a person allows a task beyond the rules, and what they let it use up."""

from agentflow.core.evidence import CheckName
from agentflow.core.record import Record


class Override(Record):
    """A check that a person says need not hold."""

    check: CheckName
    reason: str
    by: str
    """Who said so: a person, or a file that one trusts."""
    risk: str
    """What nobody looks at now."""


class Budget(Record):
    """What a task may use up as a whole; None is no limit."""

    cost: float | None = None
    """USD."""
    tokens: int | None = None
    seconds: float | None = None
    """In one go; a task that waited or was stopped begins anew."""
