"""A scene, a payload for each point, and hooks to ask."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import anyio

from agentflow.core import points
from agentflow.core.hook import POINTS, Decision, Hook, HookDecision, HookFunction, OnError, Origin, Script
from agentflow.core.messages import Reply, Text
from agentflow.core.points import Actor, Payload, Point, Scene
from agentflow.core.task import Phase
from agentflow.hooks.chain import Chain
from tests.support.records import a_request, user

GUARDED = frozenset(point for point, rules in POINTS.items() if rules.can_block and rules.takes_scripts)
FUNCTIONS_ONLY = frozenset(point for point, rules in POINTS.items() if not rules.takes_scripts)
BASH = points.ToolUse(tool_name="Bash", tool_input={"command": "ls", "timeout": 5}, tool_use_id="call-1")
REQUEST = a_request(user("hello"), role="planner", agent="planner")
REPLY = Reply(parts=(Text(text="hello"),))
PAYLOADS: Mapping[Point, Payload] = MappingProxyType(
    {
        Point.SESSION_START: points.SessionStarted(source="startup", model="repair"),
        Point.SESSION_END: points.SessionEnded(reason="verified"),
        Point.INSTRUCTIONS_LOADED: points.InstructionsRead(
            file_path="/r/CLAUDE.md", memory_type="Project", load_reason="session_start"
        ),
        Point.USER_PROMPT_SUBMIT: points.Prompt(prompt="mend it"),
        Point.USER_PROMPT_EXPANSION: points.CommandCalled(
            command_name="look", command_args="", command_source="user", prompt="/look"
        ),
        Point.PRE_TOOL_USE: BASH,
        Point.PERMISSION_REQUEST: points.PermissionAsked(
            **{k: getattr(BASH, k) for k in BASH.__struct_fields__}
        ),
        Point.PERMISSION_DENIED: points.CallDenied(
            tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="call-1", reason="denied: no"
        ),
        Point.POST_TOOL_USE: points.ToolDone(
            tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="call-1", tool_response="a.py"
        ),
        Point.POST_TOOL_USE_FAILURE: points.ToolFailed(
            tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="call-1", error="no"
        ),
        Point.POST_TOOL_BATCH: points.BatchDone(
            tool_calls=(
                points.BatchCall(
                    tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="call-1", tool_response="a.py"
                ),
            )
        ),
        Point.SUBAGENT_START: points.SubagentStarted(agent_id="2", agent_type="scout"),
        Point.SUBAGENT_STOP: points.SubagentStopped(
            agent_id="2", agent_type="scout", last_assistant_message="found"
        ),
        Point.TASK_CREATED: points.PhaseWork(task_subject="planning", task_description="mend it"),
        Point.TASK_COMPLETED: points.PhaseWork(task_subject="planning", task_description="mend it"),
        Point.PRE_COMPACT: points.Compacting(trigger="auto"),
        Point.POST_COMPACT: points.CompactionDone(trigger="auto", compact_summary="s"),
        Point.STOP: points.Stopped(last_assistant_message="done"),
        Point.STOP_FAILURE: points.StopFailed(error="server_error", error_details="overloaded"),
        Point.NOTIFICATION: points.Notified(message="look", notification_type="idle"),
        Point.RUN_START: points.Briefed(brief="mend it"),
        Point.RUN_END: points.Concluded(outcome="submitted"),
        Point.TURN_START: points.TurnPayload(turn=1),
        Point.TURN_END: points.TurnPayload(turn=1),
        Point.MODEL_REQUEST: points.RequestPayload(request=REQUEST),
        Point.MODEL_RESPONSE: points.ReplyPayload(reply=REPLY),
        Point.ERROR: points.Failed(error="overloaded"),
    }
)


def a_scene(folder: Path, *, name: str = "implementer", depth: int = 0) -> Scene:
    return Scene(
        task_id="20260102T030405Z-1f2e",
        cwd=folder,
        transcript=folder / "runs" / "3-implementer.jsonl",
        outputs=folder / "outputs",
        phase=Phase.IMPLEMENTATION,
        iteration=2,
        actor=Actor(name=name, depth=depth),
    )


def function(
    body: HookFunction,
    *,
    point: Point = Point.PRE_TOOL_USE,
    name: str = "f",
    priority: int = 0,
    origin: Origin = Origin.BUILT_IN,
    on_error: OnError | None = None,
) -> Hook:
    return Hook(name=name, point=point, body=body, priority=priority, origin=origin, on_error=on_error)


def script(
    command: str,
    *,
    point: Point = Point.PRE_TOOL_USE,
    args: tuple[str, ...] | None = None,
    timeout: float | None = 10,
    matcher: str = "",
    condition: str | None = None,
    priority: int = 0,
    on_error: OnError | None = None,
) -> Hook:
    body = Script(command=command, args=args, timeout=timeout, condition=condition)
    return Hook(
        name=command[:40], point=point, body=body, matcher=matcher, priority=priority, on_error=on_error
    )


def fire(
    scene: Scene, *hooks: Hook, point: Point | None = None, payload: Payload | None = None
) -> HookDecision:
    """Ask hooks, at the point of the first."""
    at = point or hooks[0].point
    said = payload or PAYLOADS[at]
    return anyio.run(Chain(hooks).fire, at, scene, lambda: said)


def denied(decision: HookDecision) -> bool:
    return decision.decision is Decision.DENY


Ask = Callable[..., HookDecision]
