"""The task's own record of what happens."""

from agentflow.compose.channels import ObserverChannel
from agentflow.core.ports import Observer
from agentflow.core.record import Record


class EventLog(Record):
    """Has every event written down before anyone else is told."""

    record: Observer

    def install_observer(self, observers: ObserverChannel) -> None:
        observers.keep(self.record)
