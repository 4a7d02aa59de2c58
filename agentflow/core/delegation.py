"""What passes between a run and the roles it gives work to, or hands its conversation to."""

from agentflow.core.messages import Usage
from agentflow.core.record import Record


class Delegated(Record):
    """What a sub-agent came to."""

    run: int
    agent: str
    usage: Usage
    answer: str | None = None
    """Its text, where that is meant to be the answer of the run that asked."""
    halt: str | None = None
    """Why a hook ends the whole task."""


class HandOff(Record):
    """To whom a role hands the conversation, and why."""

    to: str
    reason: str


class Saved(Record):
    """What a direct answer spared the run that asked; it is no part of the usage."""

    tokens_not_resent: int
    """Measured: what the request after it would have sent again."""
    synthesis_avoided: int
    """Estimated: the tokens of the answer that nobody had to write once more."""
    estimated: tuple[str, ...] = ("synthesis_avoided",)


class Tally(Record):
    """What counts against the limits of whoever is acting."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0
    cost: float = 0

    def since(self, before: "Tally") -> "Tally":
        """Return what was used after an earlier tally."""
        used = {name: getattr(self, name) - getattr(before, name) for name in self.__struct_fields__}
        return Tally(**used)
