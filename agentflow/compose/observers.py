"""Everybody who is told what happens in a run, as one observer."""

from collections.abc import Callable

from agentflow.core.events import Event, RunStarted, Warned
from agentflow.core.ports import Observer
from agentflow.store.observers import tell


class Audience:
    """Writes each event down, then tells each observer in turn; one that raises is told no more in that run.

    What a record raises goes through: an event that cannot be written down must not be lost in silence.
    """

    def __init__(self, records: tuple[Observer, ...], observers: tuple[Observer, ...]) -> None:
        self.records = records
        self.observers = observers
        self._present = list[Callable[[Event], None]](observers)

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, RunStarted):
            self._present[:] = self.observers
        for record in self.records:
            record(event)
        for message in sorted(tell(self._present, event)):
            self(Warned(message=message))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Audience):
            return NotImplemented
        return (self.records, self.observers) == (other.records, other.observers)

    def __hash__(self) -> int:
        return hash((self.records, self.observers))
