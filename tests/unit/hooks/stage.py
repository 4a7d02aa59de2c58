"""A scene, a payload for each point, and hooks to ask."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import anyio

from agentflow.api.hooks import make_payload
from agentflow.core import points
from agentflow.core.hook import POINTS, Decision, Hook, HookDecision, HookFunction, OnError, Origin, Script
from agentflow.core.messages import Reply, Text
from agentflow.core.points import Actor, Point, Scene
from agentflow.core.record import Record
from agentflow.core.task import Phase
from agentflow.hooks.chain import Chain
from tests.support.records import a_request, user

GUARDED = frozenset(point for point, rules in POINTS.items() if rules.can_block and rules.takes_scripts)
FUNCTIONS_ONLY = frozenset(point for point, rules in POINTS.items() if not rules.takes_scripts)
BASH = points.ToolUse(tool_name="Bash", tool_input={"command": "ls", "timeout": 5}, tool_use_id="call-1")
REQUEST = a_request(user("hello"), role="planner", agent="planner")
REPLY = Reply(parts=(Text(text="hello"),))
_CHOSEN: Mapping[Point, Record] = {
    Point.PRE_TOOL_USE: BASH,
    Point.MODEL_REQUEST: points.RequestPayload(request=REQUEST),
    Point.MODEL_RESPONSE: points.ReplyPayload(reply=REPLY),
}
PAYLOADS: Mapping[Point, Record] = MappingProxyType(
    {point: _CHOSEN.get(point) or make_payload(rules.payload, {}) for point, rules in POINTS.items()}
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
    scene: Scene, *hooks: Hook, point: Point | None = None, payload: Record | None = None
) -> HookDecision:
    """Ask hooks, at the point of the first."""
    at = point or hooks[0].point
    said = payload or PAYLOADS[at]
    return anyio.run(Chain(hooks).fire, at, scene, lambda: said)


def denied(decision: HookDecision) -> bool:
    return decision.decision is Decision.DENY


Ask = Callable[..., HookDecision]
