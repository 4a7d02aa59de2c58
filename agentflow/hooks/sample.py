"""An event made up for a test, from the fields that its point has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agentflow.core.point_table import POINTS
from agentflow.core.points import Actor, HookEvent, Payload, Point, Scene
from agentflow.core.task import Phase
from agentflow.core.tool import Tool
from agentflow.parse import fit

SAMPLE_TOOL = "Bash"
_TASK = "20260102T030405Z-test"
_INPUTS: Mapping[str, dict[str, Any]] = {
    "Edit": {"file_path": "app.py", "old_string": "a", "new_string": "b"},
    "Write": {"file_path": "app.py", "content": "a = 1\n"},
    "Read": {"file_path": "app.py"},
}
_VALUES: Mapping[str, Any] = {
    "agent_type": "scout",
    "background_tasks": (),
    "load_reason": "session_start",
    "notification_type": "permission_prompt",
    "permission_suggestions": (),
    "reason": "verified",
    "session_crons": (),
    "source": "startup",
    "stop_hook_active": False,
    "task_subject": str(Phase.IMPLEMENTATION),
    "tool_calls": (),
    "tool_use_id": "toolu_test",
    "trigger": "auto",
}
"""What a field holds that a matcher looks at, or that is no text; others hold their own name."""


def make_sample(
    point: Point, root: Path, outputs: Path, given: Mapping[str, Any], tool: Tool | None
) -> HookEvent:
    """Return an event of a point, with what a person gives in place of what is made up.

    Raises Mismatch for a given value of another type.
    """
    rules = POINTS[point]
    names = {field.encode_name for field in msgspec.structs.fields(rules.payload)}
    tool_name = str(given.get("tool_name", SAMPLE_TOOL))
    made = {name: _VALUES.get(name, f"a {name.replace('_', ' ')}") for name in names}
    if "tool_name" in names:
        made |= {"tool_name": tool_name, "tool_input": _INPUTS.get(tool_name, {"command": "git status"})}
    made |= {key: value for key, value in given.items() if key in names}
    payload: Payload = fit(rules.payload, made)  # type: ignore[assignment]
    depth = int("agent_id" in given or point in (Point.SUBAGENT_START, Point.SUBAGENT_STOP))
    return HookEvent(
        point=point,
        payload=payload,
        scene=Scene(
            task_id=_TASK,
            cwd=root,
            transcript=outputs / "3-implementer.jsonl",
            outputs=outputs,
            phase=Phase.IMPLEMENTATION,
            iteration=1,
            actor=Actor(name=str(given.get("agent_type", "implementer")), depth=depth),
            tool=tool,
        ),
    )
