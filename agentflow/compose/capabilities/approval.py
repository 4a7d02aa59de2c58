"""The user's permission rules and approval modes, as a hook before each tool call."""

import sys

from agentflow.compose.channels import HookChannel
from agentflow.core.hook import RULES, Decision, Hook, HookEvent, HookResult, Point, ToolUse
from agentflow.core.record import Record
from agentflow.permissions.conditions import Asked, Modes, asks
from agentflow.permissions.exceptions import question
from agentflow.permissions.ruling import Rules, ruling


class Approval(Record):
    """Denies a call, or has somebody asked, where a rule or an approval mode says so."""

    rules: Rules
    tools: Modes = {}
    """When somebody is asked, by tool; a function may decide too."""
    roles: Modes = {}

    def install_hooks(self, hooks: HookChannel) -> None:
        last = -sys.maxsize  # after every hook that may change the input
        hooks.add(Hook(name=RULES, point=Point.PRE_TOOL_USE, body=self._rule_on, priority=last))

    def _rule_on(self, event: HookEvent) -> HookResult:
        assert isinstance(event.payload, ToolUse)
        use = event.payload
        found = ruling(self.rules, use.tool_name, use.tool_input, event.scene.cwd)
        if found.decision < Decision.ASK and (why := self._asked(event, use)) is not None:
            return HookResult(decision=Decision.ASK, reason=why)
        return HookResult(decision=found.decision, reason=f"rule {found.rule}" if found.rule else None)

    def _asked(self, event: HookEvent, use: ToolUse) -> str | None:
        """Return why a call needs a person although no rule says so."""
        asked = Asked(tool=use.tool_name, role=event.scene.actor.name, args=use.tool_input)
        modes = (self.tools.get(asked.tool), self.roles.get(asked.role))
        reasons = (asks(mode, asked) for mode in modes)
        path = str(use.tool_input.get("file_path", ""))
        return next(filter(None, reasons), None) or question(self.rules, use.tool_name, path, event.scene.cwd)
