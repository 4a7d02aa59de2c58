"""What holds for a hook, whether its body is a function or a script."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentflow.core.hook import POINTS, Decision, Hook, HookDecision, HookResult, OnError, Script
from agentflow.core.points import Point, Scene
from tests.unit.hooks.stage import FUNCTIONS_ONLY, GUARDED, PAYLOADS, a_scene, fire

Make = Callable[..., Hook]
SHARED = sorted(set(Point) - FUNCTIONS_ONLY)
WORDS = {Decision.ALLOW: "allow", Decision.ASK: "ask", Decision.DENY: "deny"}


def as_function(point: Point, fields: dict[str, Any] | None, **options: Any) -> Hook:
    """Return a hook that answers with these fields, or fails for None."""

    def body(_: object) -> HookResult | None:
        if fields is None:
            raise RuntimeError("cannot")
        return HookResult(**fields) if fields else None

    return Hook(name="guard", point=point, body=body, **options)


def as_script(point: Point, fields: dict[str, Any] | None, **options: Any) -> Hook:
    """Return the same hook as a process that speaks the public form."""
    if fields is None:
        return Hook(name="guard", point=point, body=Script(command="exit 127"), **options)
    said = json.dumps(_public(point, fields)) if fields else ""
    return Hook(
        name="guard", point=point, body=Script(command="printf", args=("%s", said), timeout=10), **options
    )


def _public(point: Point, fields: dict[str, Any]) -> dict[str, Any]:
    specific: dict[str, Any] = {"hookEventName": point}
    said: dict[str, Any] = {"hookSpecificOutput": specific}
    for key, value in fields.items():
        if key in SPECIFIC:
            specific[SPECIFIC[key]] = value
        else:
            said |= SPOKEN[key](value)
    return said


SPECIFIC = {"context": "additionalContext", "updated_output": "updatedToolOutput"}
SPOKEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "halt": lambda value: {"continue": False, "stopReason": value},
    "notice": lambda value: {"systemMessage": value},
    "block": lambda value: {"decision": "block", "reason": value},
    "bail": lambda value: {"bail": True, "reason": value},
    "decision": lambda value: {"decision": WORDS[value]},
    "reason": lambda value: {"reason": value},
    "updated_input": lambda value: {"updated_input": value},
    "terminal": lambda value: {"terminalSequence": value},
}


@pytest.fixture(params=[as_function, as_script], ids=["function", "script"])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


@pytest.fixture(params=[0, 2], ids=["role", "child"])
def scene(request: pytest.FixtureRequest, tmp_path: Any) -> Scene:
    return a_scene(tmp_path, depth=request.param)


VALUES: dict[str, Any] = {
    "halt": "enough",
    "notice": "look",
    "context": "read the guide",
    "block": "not yet",
    "bail": "cached",
    "decision": Decision.DENY,
    "updated_input": {"command": "pwd"},
    "updated_output": "clean",
    "terminal": "\a",
}


def shown(decision: HookDecision, field: str) -> Any:
    """Return what a field of one answer came to."""
    match field:
        case "notice":
            return decision.notices
        case "terminal":
            return decision.signals
        case "context":
            return decision.contexts
        case "block":
            return (decision.decision, decision.reasons)
        case _:
            return getattr(decision, field)


def expected(field: str, value: Any) -> Any:
    match field:
        case "notice" | "context" | "terminal":
            return (value,)
        case "block":
            return (Decision.DENY, (value,))
        case _:
            return value


CASES = [(point, field) for point in SHARED for field in sorted(POINTS[point].legal) if field != "reason"]


@pytest.mark.parametrize(("point", "field"), CASES)
def test_each_legal_field_of_each_point_has_its_effect(
    make: Make, scene: Scene, point: Point, field: str
) -> None:
    value = VALUES[field]
    assert shown(fire(scene, make(point, {field: value})), field) == expected(field, value)


@pytest.mark.parametrize("decision", list(WORDS))
@pytest.mark.parametrize("point", [Point.PRE_TOOL_USE, Point.PERMISSION_REQUEST])
def test_a_call_is_decided_with_a_reason(make: Make, scene: Scene, point: Point, decision: Decision) -> None:
    decided = fire(scene, make(point, {"decision": decision, "reason": "because"}))
    assert (decided.decision, decided.reason) == (decision, "because")


@pytest.mark.parametrize("point", SHARED)
def test_a_hook_that_says_nothing_decides_nothing(make: Make, scene: Scene, point: Point) -> None:
    assert fire(scene, make(point, {})) == HookDecision()


@pytest.mark.parametrize("point", SHARED)
def test_a_hook_that_fails_blocks_where_it_guards_and_names_itself(
    make: Make, scene: Scene, point: Point
) -> None:
    decided = fire(scene, make(point, None))
    assert (decided.decision is Decision.DENY) is (point in GUARDED)
    assert decided.notices[0].startswith(f"hook guard at {point}: ")


@pytest.mark.parametrize("point", sorted(GUARDED))
def test_a_hook_may_be_told_to_fail_open(make: Make, scene: Scene, point: Point) -> None:
    decided = fire(scene, make(point, None, on_error=OnError.OPEN))
    assert (decided.decision, len(decided.notices)) == (Decision.NONE, 1)


def test_a_hook_may_be_told_to_fail_closed_where_something_can_be_blocked(make: Make, scene: Scene) -> None:
    for point in (Point.USER_PROMPT_SUBMIT, Point.POST_TOOL_USE):
        decided = fire(scene, make(point, None, on_error=OnError.CLOSED))
        assert (decided.decision is Decision.DENY) is (point in GUARDED)


def test_both_kinds_stand_in_one_order(scene: Scene) -> None:
    hooks = [
        make(Point.PRE_TOOL_USE, {"context": word}, priority=priority)
        for make, word, priority in (
            (as_script, "third", 0),
            (as_function, "fourth", 0),
            (as_function, "first", 2),
            (as_script, "second", 1),
        )
    ]
    assert fire(scene, *hooks).contexts == ("first", "second", "third", "fourth")


def test_a_matcher_holds_for_both(make: Make, scene: Scene) -> None:
    deny = make(Point.PRE_TOOL_USE, {"decision": Decision.DENY}, matcher="Edit|Write")
    assert fire(scene, deny) == HookDecision()
    edit = PAYLOADS[Point.PRE_TOOL_USE].replace(tool_name="Edit")
    assert fire(scene, deny, payload=edit).decision is Decision.DENY
