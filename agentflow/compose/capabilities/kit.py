"""What a kit holds, as capabilities: who answers, the hooks, the task's own record of what happens."""

from agentflow.compose.channels import HookChannel, ModelChannel, ObserverChannel, ToolChannel
from agentflow.core.hook import Hook
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.tools.recall import RECALL


class UseModel(Record):
    model: Model
    model_id: str

    def install_model(self, model: ModelChannel) -> None:
        model.use(self.model, self.model_id)


class RecallOutputs(Record):
    """Lets a role read again what was left out of a long result."""

    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(RECALL)


class UseHooks(Record):
    """Brings hooks, from settings files or from code."""

    hooks: tuple[Hook, ...]

    def install_hooks(self, hooks: HookChannel) -> None:
        hooks.add(*self.hooks)


class EventLog(Record):
    """Has every event written down before anyone else is told."""

    record: Observer

    def install_observer(self, observers: ObserverChannel) -> None:
        observers.keep(self.record)
