"""Handing a conversation over: a tool for each role that may take it."""

from functools import partial
from typing import Annotated

from msgspec import Meta

from agentflow.compose.channels import ContextChannel, Settled, ToolFactoryChannel
from agentflow.core.errors import NotAllowed
from agentflow.core.record import Record
from agentflow.core.role import HANDOFF, Role
from agentflow.core.run import HandOff
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.loop.context import prompt_text

MAX_HANDOFFS = 8


class Reason(Record):
    reason: Annotated[str, Meta(description="Why it is the other one's work, and where you stand.")]


class Hand(Record):
    """Hand this conversation over: another role goes on in your place and you are not asked again."""

    to: str

    def __call__(self, given: Reason, context: ToolContext) -> Output:
        if context.run.handoffs >= MAX_HANDOFFS:
            raise NotAllowed(f"a run is handed over {MAX_HANDOFFS} times at most: end it yourself")
        return Output(content=f"{self.to} goes on", handoff=HandOff(to=self.to, reason=given.reason))


class Handoffs(Record):
    """Offers the handoff tools that a role lists, and tells it of those who would go on."""

    role: Role
    known: tuple[Role, ...]

    @property
    def _targets(self) -> tuple[Role, ...]:
        return tuple(role for role in self.known if role.name in self.role.handoffs)

    def install_context(self, context: ContextChannel) -> None:
        if self._targets:
            listed = "\n".join(f"- {role.name}: {role.description}" for role in self._targets)
            context.add(prompt_text("handoffs.md").format(listed=listed))

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        for target in self._targets:
            factories.add(partial(_hand, target.name))


def _hand(to: str, _settled: Settled) -> Tool:
    return Tool(
        name=f"{HANDOFF}{to}", category=Category.AGENT, effect=Effect.WRITE, input=Reason, call=Hand(to=to)
    )
