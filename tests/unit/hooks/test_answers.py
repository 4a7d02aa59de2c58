import json
from typing import Any

import pytest

from agentflow.core.evidence import ProgramOutput
from agentflow.core.hook import Decision, Hook, HookResult, Script
from agentflow.core.points import Point
from agentflow.hooks.command import HookAnswer, read_output


def hearing(point: Point, answer: object, *, code: int = 0, stderr: bytes = b"") -> HookAnswer:
    hook = Hook(name="guard", point=point, body=Script(command="guard"))
    said = ProgramOutput(
        exit_code=code, timed_out=False, stdout=json.dumps(answer).encode(), stderr=stderr, flooded=False
    )
    return read_output(hook, said)


def result_of(point: Point, answer: dict[str, Any], *, code: int = 0) -> HookResult:
    heard = hearing(point, answer, code=code)
    assert heard.trouble is None
    return heard.result


def specific(point: Point, **fields: object) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": point, **fields}}


@pytest.mark.parametrize(
    ("word", "decision"),
    [("allow", Decision.ALLOW), ("deny", Decision.DENY), ("ask", Decision.ASK), ("defer", Decision.ASK)],
)
def test_a_permission_decision_in_the_public_form(word: str, decision: Decision) -> None:
    said = specific(
        Point.PRE_TOOL_USE,
        permissionDecision=word,
        permissionDecisionReason="because",
        updatedInput={"command": "pwd"},
        additionalContext="c",
    )
    result = result_of(Point.PRE_TOOL_USE, said)
    assert (result.decision, result.reason, result.context) == (decision, "because", "c")
    assert result.updated_input == {"command": "pwd"}


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("approve", Decision.ALLOW),
        ("block", Decision.DENY),
        ("allow", Decision.ALLOW),
        ("deny", Decision.DENY),
        ("ask", Decision.ASK),
    ],
)
def test_a_permission_decision_in_the_old_and_the_short_form(word: str, decision: Decision) -> None:
    said = {"decision": word, "reason": "r", "updated_input": {"a": 1}, "additional_context": "c"}
    result = result_of(Point.PRE_TOOL_USE, said)
    assert (result.decision, result.reason, result.updated_input, result.context) == (
        decision,
        "r",
        {"a": 1},
        "c",
    )


@pytest.mark.parametrize(("behavior", "decision"), [("allow", Decision.ALLOW), ("deny", Decision.DENY)])
def test_a_permission_request_is_answered(behavior: str, decision: Decision) -> None:
    permit = {"behavior": behavior, "message": "m", "updatedInput": {"a": 1}, "interrupt": True}
    result = result_of(Point.PERMISSION_REQUEST, specific(Point.PERMISSION_REQUEST, decision=permit))
    assert (result.decision, result.reason, result.updated_input, result.halt) == (
        decision,
        "m",
        {"a": 1},
        "m",
    )


def test_a_permission_request_ignores_exit_2() -> None:
    heard = hearing(Point.PERMISSION_REQUEST, "text", code=2, stderr=b"no")
    assert (heard.result, heard.trouble, heard.broken) == (HookResult(), "ended with 2: no", False)


@pytest.mark.parametrize(
    "point",
    [
        Point.USER_PROMPT_SUBMIT,
        Point.STOP,
        Point.SUBAGENT_STOP,
        Point.TASK_COMPLETED,
        Point.PRE_COMPACT,
    ],
)
def test_a_block_with_its_reason(point: Point) -> None:
    assert result_of(point, {"decision": "block", "reason": "not yet"}).block == "not yet"
    assert result_of(point, {"decision": "block"}).block == "blocked by hook guard"
    assert result_of(point, {"decision": "approve", "reason": "go"}) == HookResult()


def test_after_a_tool_a_block_is_feedback() -> None:
    for point in (Point.POST_TOOL_USE, Point.POST_TOOL_USE_FAILURE):
        said = {"decision": "block", "reason": "format it"} | specific(point, additionalContext="c")
        assert result_of(point, said) == HookResult(context="format it\nc")


def test_a_result_may_be_replaced() -> None:
    said = specific(Point.POST_TOOL_USE, updatedToolOutput="clean", additionalContext="c")
    assert result_of(Point.POST_TOOL_USE, said) == HookResult(updated_output="clean", context="c")


def test_a_subagent_may_be_given_its_result() -> None:
    assert result_of(Point.SUBAGENT_STOP, {"bail": True, "reason": "cached"}).bail == "cached"


def test_whatever_the_point_a_hook_may_end_the_task_and_tell_the_person() -> None:
    said = {"continue": False, "stopReason": "enough", "systemMessage": "look", "suppressOutput": True}
    for point in Point:
        result = result_of(point, said)
        assert (result.halt, result.notice) == ("enough", "look")
    assert result_of(Point.STOP, {"continue": False}).halt == "hook guard ended the task"
    assert result_of(Point.STOP, {"continue": True}) == HookResult()


def test_null_is_as_good_as_absent() -> None:
    said = dict.fromkeys(("continue", "stopReason", "decision", "reason", "hookSpecificOutput"))
    assert result_of(Point.PRE_TOOL_USE, said) == HookResult()


@pytest.mark.parametrize(
    ("point", "answer", "field"),
    [
        (Point.SESSION_START, {"decision": "block"}, "decision"),
        (Point.SESSION_START, {"updated_input": {}}, "updated_input"),
        (Point.POST_TOOL_USE, {"updated_input": {}}, "updated_input"),
        (Point.POST_TOOL_USE, {"decision": "ask"}, "decision"),
        (Point.STOP, {"decision": "ask"}, "decision"),
        (Point.STOP, {"updated_input": {}}, "updated_input"),
        (Point.PRE_TOOL_USE, {"bail": True}, "bail"),
        (Point.PRE_TOOL_USE, specific(Point.PRE_TOOL_USE, updatedToolOutput="x"), "updated_output"),
        (Point.PRE_TOOL_USE, specific(Point.POST_TOOL_USE, updatedToolOutput="x"), "hookEventName"),
        (Point.PRE_TOOL_USE, {"hookSpecificOutput": {"permissionDecision": "allow"}}, "hookEventName"),
        (Point.PRE_TOOL_USE, {"decision": "alow"}, "decision"),
        (Point.PRE_TOOL_USE, {"decison": "deny"}, "decison"),
        (Point.PRE_TOOL_USE, specific(Point.PRE_TOOL_USE, permissionDecison="deny"), "permissionDecison"),
        (Point.PRE_TOOL_USE, {"continue": "no"}, "continue"),
    ],
)
def test_a_field_that_is_not_legal_is_named(point: Point, answer: dict[str, Any], field: str) -> None:
    heard = hearing(point, answer)
    assert heard.broken
    assert heard.result == HookResult()
    assert heard.trouble is not None
    assert field in heard.trouble


def test_a_key_without_a_meaning_is_told_and_left_out() -> None:
    said = {"decision": "deny", "mood": "bad"} | specific(Point.PRE_TOOL_USE, sessionTitle="t")
    heard = hearing(Point.PRE_TOOL_USE, said)
    assert heard.result.decision is Decision.DENY
    assert heard.notices == ('field "mood" ignored', 'field "sessionTitle" ignored')


def test_an_answer_that_does_not_fit_still_blocks_with_exit_2() -> None:
    heard = hearing(Point.STOP, {"reason": 7}, code=2, stderr=b"not yet")
    assert (heard.result.block, heard.broken) == ("not yet", False)
