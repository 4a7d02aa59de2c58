"""What a role file says, as capabilities: its prompt, its tools, the way its run ends."""

from agentflow.compose.channels import ContextChannel, ToolChannel
from agentflow.core.record import Record
from agentflow.core.role import SUBMITTED_BY, Role
from agentflow.core.tool import Tool
from agentflow.loop.context import prompt_text
from agentflow.tools.registry import Toolbox

FIRST = 100
"""The place of the role's own prompt; other sections stand below it."""
LAST = -100
"""The place of the submission protocol."""


class RolePrompt(Record):
    """Puts the body of the role file at the head of the system prompt."""

    role: Role

    def install_context(self, context: ContextChannel) -> None:
        context.add_prompt(self.role.prompt, priority=FIRST)


class RoleTools(Record):
    """Offers the tools that the role file lists."""

    role: Role
    toolbox: Toolbox

    def install_tools(self, tools: ToolChannel) -> None:
        offered = self.toolbox.offered(self.role)
        tools.add(*(tool for tool in offered if tool.input not in SUBMITTED_BY))


class Submission(Record):
    """Offers the tool that ends the run, and tells the role of it in words no role file can lose."""

    tool: Tool

    def install_tools(self, tools: ToolChannel) -> None:
        tools.end_with(self.tool)

    def install_context(self, context: ContextChannel) -> None:
        context.add(prompt_text("protocol.md").format(submit=self.tool.name), priority=LAST)
