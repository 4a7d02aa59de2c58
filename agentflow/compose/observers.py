"""Everybody who is told what happens in a run, as one observer."""

from agentflow.core.events import Event, RunStarted, Warned
from agentflow.core.ports import Observer
from agentflow.redact import one_line


class Audience:
    """Writes each event down, then tells each observer in turn; one that raises is told no more in that run.

    What a record raises goes through: an event that cannot be written down must not be lost in silence.
    """

    def __init__(self, records: tuple[Observer, ...], observers: tuple[Observer, ...]) -> None:
        self.records = records
        self.observers = observers
        self._present = observers

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, RunStarted):
            self._present = self.observers
        for record in self.records:
            record(event)
        for message in sorted(self._tell(event)):
            self(Warned(message=message))

    def _tell(self, event: Event) -> list[str]:
        """Tell everyone present, and return what is to be said of those who failed."""
        present, failures = [], []
        for observer in self._present:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001  # whoever looks on cannot break the run
                failures.append(
                    f"{name_of(observer)} is told no more: {type(error).__name__}: {one_line(str(error))}"
                )
            else:
                present.append(observer)
        self._present = tuple(present)
        return failures

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Audience):
            return NotImplemented
        return (self.records, self.observers) == (other.records, other.observers)

    def __hash__(self) -> int:
        return hash((self.records, self.observers))


def name_of(observer: Observer) -> str:
    """Return what an observer is called: its function's name, or its type's."""
    return str(getattr(observer, "__qualname__", type(observer).__name__))
