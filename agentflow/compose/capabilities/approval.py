"""The user's permission rules, as a hook before each tool call."""

import sys

from agentflow.compose.channels import HookChannel
from agentflow.core.hook import CallResult, Decision, Hook
from agentflow.core.points import HookEvent, Point, ToolUse
from agentflow.core.record import Record
from agentflow.permissions.exceptions import question
from agentflow.permissions.ruling import Rules, ruling


class Approval(Record):
    """Denies a call, or has somebody asked, where a rule says so."""

    rules: Rules

    def install_hooks(self, hooks: HookChannel) -> None:
        last = -sys.maxsize  # after every hook that may change the input
        hooks.add(Hook(name="permission rules", point=Point.PRE_TOOL_USE, body=self._rule_on, priority=last))

    def _rule_on(self, event: HookEvent) -> CallResult:
        assert isinstance(event.payload, ToolUse)
        use = event.payload
        decision, rule = ruling(self.rules, use.tool_name, use.tool_input, event.scene.cwd)
        if decision in (Decision.NONE, Decision.ALLOW):
            asked = question(self.rules, use.tool_name, _path(use), event.scene.cwd)
            if asked is not None:
                return CallResult(decision=Decision.ASK, reason=asked)
        return CallResult(decision=decision, reason=f"rule {rule}" if rule else None)


def _path(use: ToolUse) -> str:
    return str(use.tool_input.get("file_path", ""))
