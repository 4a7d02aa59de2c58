"""Hooks, from settings files or from code."""

from agentflow.compose.channels import HookChannel
from agentflow.core.hook import Hook
from agentflow.core.record import Record


class UseHooks(Record):
    hooks: tuple[Hook, ...]

    def install_hooks(self, hooks: HookChannel) -> None:
        hooks.add(*self.hooks)
