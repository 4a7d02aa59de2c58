"""Laws of the dispatcher: order, stickiness, merging, pipelines, patches."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentflow.core.evidence import ProgramOutput
from agentflow.core.hook import Decision, Hook, HookResult, OnError, Origin, Script
from agentflow.core.points import HookEvent, Point, ToolDone, ToolUse
from agentflow.core.record import copy_shared
from agentflow.hooks.chain import Chain
from agentflow.hooks.command import read_output
from agentflow.hooks.entries import is_name_match
from tests.unit.hooks.stage import BASH, a_scene, denied, fire, function

SCENE = a_scene(Path(tempfile.gettempdir()))
TEXTS = st.none() | st.text(max_size=5)
ANSWERS = st.builds(
    HookResult,
    decision=st.sampled_from(Decision),
    reason=TEXTS,
    context=TEXTS,
    halt=TEXTS,
    notice=TEXTS,
    updated_input=st.none() | st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
)
POLICIES = st.none() | st.sampled_from(OnError)


def crash(_: HookEvent) -> HookResult:
    raise ValueError("lost")


def answering(answer: HookResult) -> Any:
    return lambda _: answer


HOOKS = st.builds(
    lambda body, priority, origin, policy: function(body, priority=priority, origin=origin, on_error=policy),
    st.builds(answering, ANSWERS) | st.just(crash) | st.just(lambda _: None),
    st.integers(-2, 2),
    st.sampled_from(Origin),
    POLICIES,
)


def named(count: int) -> list[Hook]:
    return [function(lambda _: None, name=str(number)) for number in range(count)]


@pytest.mark.parametrize("origin", list(Origin))
def test_a_hundred_equal_priorities_keep_their_order(origin: Origin) -> None:
    hooks = [hook.replace(origin=origin) for hook in named(100)]
    assert Chain(hooks).hooks == tuple(hooks)


@given(st.lists(HOOKS, max_size=8), st.data())
@settings(deadline=None, max_examples=60)
def test_a_denial_is_never_lost(hooks: list[Hook], draw: st.DataObject) -> None:
    deny = function(answering(HookResult(decision=Decision.DENY, reason="never")), name="deny")
    deny = deny.replace(priority=draw.draw(st.integers(-3, 3)), origin=draw.draw(st.sampled_from(Origin)))
    order = draw.draw(st.permutations([deny, *hooks]))
    decision = fire(SCENE, *order)
    assert denied(decision)
    assert "never" in decision.reasons


@given(st.lists(HOOKS, min_size=1, max_size=6), st.data())
@settings(deadline=None, max_examples=60)
def test_what_is_decided_does_not_depend_on_the_order(hooks: list[Hook], draw: st.DataObject) -> None:
    one = fire(SCENE, *hooks)
    other = fire(SCENE, *draw.draw(st.permutations(hooks)))
    assert (one.decision, sorted(one.reasons)) == (other.decision, sorted(other.reasons))
    assert sorted(one.contexts) == sorted(other.contexts)
    assert (one.halt is None) == (other.halt is None)
    assert sorted(one.notices) == sorted(other.notices)


@given(st.lists(HOOKS, min_size=1, max_size=6))
@settings(deadline=None, max_examples=60)
def test_one_more_hook_never_makes_it_milder(hooks: list[Hook]) -> None:
    steps = [fire(SCENE, *hooks[: count + 1]) for count in range(len(hooks))]
    decisions = [step.decision for step in steps]
    assert decisions == sorted(decisions)
    assert [step.halt is not None for step in steps] == sorted(step.halt is not None for step in steps)


@given(st.lists(HOOKS, max_size=8), st.lists(HOOKS, max_size=8))
@settings(deadline=None)
def test_merging_keeps_both_lists_in_their_order(first: list[Hook], second: list[Hook]) -> None:
    both = Chain((*first, *second)).hooks
    assert len(both) == len(first) + len(second)
    for part in (first, second):
        ranked = sorted(part, key=lambda hook: (-hook.priority, hook.origin))
        assert [hook for hook in both if any(hook is each for each in part)] == ranked
    assert list(both) == sorted(both, key=lambda hook: (-hook.priority, hook.origin))


@given(st.lists(st.text("xyz", min_size=1, max_size=2), min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_a_pipeline_is_the_composition_of_its_functions(letters: list[str]) -> None:
    def adding(more: str) -> Any:
        def add(event: HookEvent) -> HookResult:
            assert isinstance(event.payload, ToolDone)
            return HookResult(updated_output=event.payload.tool_response + more)

        return add

    hooks = [function(adding(more), point=Point.POST_TOOL_USE) for more in letters]
    printed = "a.py"
    done = ToolDone(**copy_shared(BASH, ToolDone), tool_response=printed)
    assert fire(SCENE, *hooks, payload=done).updated_output == printed + "".join(letters)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)), min_size=1, max_size=5))
@settings(deadline=None, max_examples=60)
def test_the_last_whole_input_of_functions_holds(inputs: list[dict[str, int]]) -> None:
    hooks = [function(answering(HookResult(updated_input=each))) for each in inputs]
    assert fire(SCENE, *hooks).updated_input == inputs[-1]


@given(
    st.binary(max_size=60), st.sampled_from([None, 0, 1, 2, 126, 127, 255]), st.sampled_from(sorted(Point))
)
@settings(deadline=None, max_examples=120)
def test_no_output_is_too_odd_to_be_understood(stdout: bytes, code: int | None, point: Point) -> None:
    hook = Hook(name="x", point=point, body=Script(command="x"))
    said = ProgramOutput(exit_code=code, timed_out=False, stdout=stdout, stderr=stdout, flooded=False)
    answer = read_output(hook, said)
    assert code not in (None, 126, 127) or answer.broken


KEYS = ["decision", "reason", "continue", "hookSpecificOutput", "bail", "updated_input", "systemMessage", "x"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["deny", "allow", "block", "PreToolUse", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*KEYS, "hookEventName", "permissionDecision"]), inner, max_size=4)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), st.sampled_from(sorted(Point)))
@settings(deadline=None, max_examples=120)
def test_json_of_any_shape_is_an_answer_or_a_named_problem(answer: dict[str, Any], point: Point) -> None:
    hook = Hook(name="x", point=point, body=Script(command="x"))
    stdout = json.dumps(answer).encode()
    heard = read_output(
        hook, ProgramOutput(exit_code=0, timed_out=False, stdout=stdout, stderr=b"", flooded=False)
    )
    assert (heard.trouble is None) or (heard.broken and heard.result == HookResult())
    if answer.get("decision") == "deny" and point is Point.PRE_TOOL_USE and heard.result != HookResult():
        said = (answer.get("hookSpecificOutput") or {}).get("permissionDecision") or answer.get("bail")
        assert said or heard.result.decision is Decision.DENY


@given(st.text(st.sampled_from("abAB_-09"), min_size=1), st.text("abAB_-09 |,.*"))
def test_a_plain_matcher_names_itself_and_nothing_else(name: str, other: str) -> None:
    assert is_name_match(name, name)
    assert is_name_match(name, other) is (name == other)


def test_the_shared_call_is_unchanged() -> None:
    assert ToolUse(tool_name="Bash", tool_input={"command": "ls", "timeout": 5}, tool_use_id="call-1") == BASH
