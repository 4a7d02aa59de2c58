"""From a role and a list of capabilities to an agent."""

from dataclasses import dataclass
from typing import Self

from agentflow.compose.channels import Capability, channels_of
from agentflow.compose.draft import Draft
from agentflow.compose.profiles import Kit, standard_capabilities
from agentflow.core.role import Role
from agentflow.loop.agent import Agent, Surroundings


@dataclass(frozen=True, slots=True)
class AgentBuilder:
    """An agent to be: capabilities are added, nothing is ever changed."""

    _role: Role
    _around: Surroundings
    _capabilities: tuple[Capability, ...] = ()

    @classmethod
    def base(cls, role: Role, around: Surroundings) -> Self:
        """Begin with no tool, no hook, no prompt, no model and no observer."""
        return cls(role, around)

    @classmethod
    def standard(cls, role: Role, around: Surroundings, kit: Kit) -> Self:
        """Begin with the capabilities that `profiles.py` lists."""
        return cls(role, around, standard_capabilities(role, kit))

    def with_capability(self, capability: Capability) -> Self:
        """Return a builder with one more. Raises ConfigError for what installs nothing."""
        channels_of(capability)
        return type(self)(self._role, self._around, (*self._capabilities, capability))

    def build(self) -> Agent:
        """Return the agent; the same builder always gives an equal one. Raises ConfigError for a conflict."""
        draft = Draft(self._capabilities)
        model, model_id = draft.model()
        tools = draft.tools(model, model_id)
        return Agent(
            role=self._role,
            model=model,
            model_id=model_id,
            system=draft.system(tools),
            submit=draft.submit(),
            tools=tools,
            hooks=draft.hooks(),
            observe=draft.observer(),
            around=self._around,
        )
