import os
from itertools import permutations
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from agentflow.core.hook import NO_DECISION, Decision, HookDecision, HookResult, OnError, Origin
from agentflow.core.messages import Text
from agentflow.core.points import (
    HookEvent,
    Point,
    ReplyPayload,
    RequestPayload,
    Scene,
    ToolDone,
    ToolUse,
)
from agentflow.core.record import Record
from agentflow.hooks.chain import Chain
from tests.support.repo import eventually
from tests.unit.hooks.stage import BASH, GUARDED, PAYLOADS, REQUEST, denied, fire, function, script


def allow(_: HookEvent) -> HookResult:
    return HookResult(decision=Decision.ALLOW, reason="fine")


def ask(_: HookEvent) -> HookResult:
    return HookResult(decision=Decision.ASK, reason="who knows")


def deny(_: HookEvent) -> HookResult:
    return HookResult(decision=Decision.DENY, reason="never")


def silent(_: HookEvent) -> None:
    return None


def crash(_: HookEvent) -> HookResult:
    raise LookupError("lost")


async def later(_: HookEvent) -> HookResult:
    await anyio.lowlevel.checkpoint()
    return HookResult(context="waited")


def test_without_a_hook_no_payload_is_made(scene: Scene) -> None:
    def unwanted() -> Record:
        raise AssertionError

    chain = Chain((function(silent, point=Point.STOP),))
    assert anyio.run(chain.fire, Point.PRE_TOOL_USE, scene, unwanted) is NO_DECISION
    assert (chain.has(Point.STOP), chain.has(Point.PRE_TOOL_USE)) == (True, False)


@pytest.mark.parametrize("order", list(permutations([allow, ask, deny, silent, crash])))
def test_the_strictest_holds_in_any_order(scene: Scene, order: tuple[object, ...]) -> None:
    hooks = [function(body, on_error=OnError.OPEN) for body in order if callable(body)]
    assert fire(scene, *hooks).reasons == ("never",)
    milder = [hook for hook in hooks if hook.body is not deny]
    decision = fire(scene, *milder)
    assert (decision.decision, decision.reasons) == (Decision.ASK, ("who knows",))


def test_reasons_and_contexts_add_up(scene: Scene) -> None:
    def no(_: HookEvent) -> HookResult:
        return HookResult(decision=Decision.DENY, reason="nor this", context="b")

    def context(_: HookEvent) -> HookResult:
        return HookResult(context="a")

    decision = fire(scene, function(context), function(deny), function(no), function(later))
    assert decision.reason == "never\nnor this"
    assert decision.context == "a\n\nb\n\nwaited"


def test_a_denial_without_a_reason_names_its_hook(scene: Scene) -> None:
    decision = fire(scene, function(lambda _: HookResult(decision=Decision.DENY), name="guard"))
    assert decision.reason == "blocked by hook guard"


def test_the_first_halt_is_kept(scene: Scene) -> None:
    first = function(lambda _: HookResult(halt="one"))
    second = function(lambda _: HookResult(halt="two"))
    assert fire(scene, first, function(silent), second).halt == "one"


def test_order_is_priority_then_origin_then_insertion() -> None:
    low = function(silent, name="low", priority=-1)
    project = function(silent, name="project", origin=Origin.PROJECT)
    user = function(silent, name="user", origin=Origin.USER)
    first, second = function(silent, name="first"), function(silent, name="second")
    high = function(silent, name="high", priority=9, origin=Origin.PROJECT)
    chain = Chain((low, project, user, first, second, high))
    assert [hook.name for hook in chain.hooks] == ["high", "first", "second", "user", "project", "low"]


def test_functions_on_a_result_are_a_pipeline(scene: Scene) -> None:
    def adding(letter: str) -> object:
        def add(event: HookEvent) -> HookResult:
            assert isinstance(event.payload, ToolDone)
            return HookResult(updated_output=event.payload.tool_response + letter)

        return add

    hooks = [function(body, point=Point.POST_TOOL_USE) for body in map(adding, "xyz") if callable(body)]
    assert fire(scene, *hooks).updated_output == "a tool responsexyz"


def test_an_error_may_be_told_otherwise(scene: Scene) -> None:
    clear = function(lambda _: HookResult(updated_output="clear"), point=Point.POST_TOOL_USE_FAILURE)
    assert fire(scene, clear).updated_output == "clear"


def test_functions_change_request_and_reply_in_turn(scene: Scene) -> None:
    def longer(event: HookEvent) -> HookResult:
        match event.payload:
            case RequestPayload(request=request):
                return HookResult(request=request.replace(system=request.system + "+"))
            case ReplyPayload(reply=reply):
                return HookResult(reply=reply.replace(parts=(*reply.parts, Text(text="+"))))
            case _:
                raise AssertionError

    asked = fire(scene, *[function(longer, point=Point.MODEL_REQUEST)] * 2).request
    assert asked == REQUEST.replace(system=f"{REQUEST.system}++")
    replied = fire(scene, *[function(longer, point=Point.MODEL_RESPONSE)] * 2).reply
    assert replied is not None
    assert len(replied.parts) == 3


def test_a_reply_may_be_blocked_with_a_reason(scene: Scene) -> None:
    decision = fire(scene, function(lambda _: HookResult(block="a key"), point=Point.MODEL_RESPONSE))
    assert denied(decision)
    assert decision.reason == "a key"


def test_scripts_start_together_and_their_patches_merge_in_order(scene: Scene) -> None:
    meet = "touch {mine}; while [ ! -e {other} ]; do sleep 0.01; done; echo '{said}'"
    first = meet.format(mine="a", other="b", said='{"updated_input": {"command": "one", "timeout": 5}}')
    second = meet.format(mine="b", other="a", said='{"updated_input": {"command": "ls", "timeout": 9}}')
    decision = fire(scene, script(first), script(second))
    assert decision.updated_input == {"command": "one", "timeout": 9}
    third = script("""echo '{"updated_input": {"command": "three"}}'""")
    assert fire(scene, script(first), script(second), third).updated_input == {"command": "three"}


def test_one_new_input_replaces_the_whole(scene: Scene) -> None:
    assert fire(scene, script("""echo '{"updated_input": {}}'""")).updated_input == {}


def test_a_function_sees_what_a_script_before_it_changed(scene: Scene) -> None:
    seen: list[object] = []

    def look(event: HookEvent) -> HookResult:
        assert isinstance(event.payload, ToolUse)
        seen.append(event.payload.tool_input["command"])
        return HookResult(updated_input={**event.payload.tool_input, "description": "d"})

    decision = fire(
        scene,
        function(look),
        script("""echo '{"updated_input": {"command": "pwd", "timeout": 5, "description": "d"}}'"""),
        function(look),
    )
    assert seen == ["ls", "pwd"]
    assert decision.updated_input == {"command": "pwd", "timeout": 5, "description": "d"}


def test_the_given_payload_is_not_changed(scene: Scene) -> None:
    before = dict(BASH.tool_input)
    fire(scene, script("""echo '{"updated_input": {"command": "x"}}'"""), script("cat; exit 1"))
    assert before == BASH.tool_input


def test_the_same_script_of_several_files_runs_once(scene: Scene) -> None:
    once = script("echo x >> log")
    fire(scene, once, once.replace(origin=Origin.USER), once.replace(origin=Origin.PROJECT, matcher="B.*"))
    assert (scene.cwd / "log").read_text() == "x\n"


def test_a_copy_that_fails_open_does_not_stand_in_for_one_that_blocks(scene: Scene) -> None:
    lax = script("exit 127", on_error=OnError.OPEN, priority=9)
    assert denied(fire(scene, lax, script("exit 127")))


@pytest.mark.parametrize("point", sorted(Point))
@pytest.mark.parametrize("policy", [None, *OnError])
def test_a_function_that_fails_follows_the_point_and_its_policy(
    scene: Scene, point: Point, policy: OnError | None
) -> None:
    decision = fire(scene, function(crash, point=point, name="broken", on_error=policy))
    assert decision.notices == (f"hook broken at {point}: failed: LookupError: lost",)
    blockable = {
        *GUARDED,
        Point.USER_PROMPT_SUBMIT,
        Point.PRE_COMPACT,
        Point.MODEL_REQUEST,
        Point.MODEL_RESPONSE,
    }
    closed = policy is OnError.CLOSED and point in blockable
    assert denied(decision) is (closed or (policy is None and point in GUARDED))


def test_an_answer_that_is_not_legal_names_hook_and_point(scene: Scene) -> None:
    wrong = function(lambda _: HookResult(updated_input={}), point=Point.SESSION_START, name="odd")
    decision = fire(scene, wrong)
    assert decision.updated_input is None
    legal = "legal are context, halt, notice, terminal"
    assert decision.notices == (f"hook odd at SessionStart: answered updated_input, {legal}",)


def test_an_answer_that_is_no_result_names_its_type(scene: Scene) -> None:
    odd: Any = lambda _: HookDecision()  # noqa: E731
    decision = fire(scene, function(odd, name="odd"))
    assert decision.notices == ("hook odd at PreToolUse: answered HookDecision",)
    assert denied(decision)


def test_a_failing_observer_changes_nothing_for_the_next(scene: Scene) -> None:
    added = function(lambda _: HookResult(context="c"), point=Point.RUN_START)
    assert fire(scene, function(crash, point=Point.RUN_START), added).contexts == ("c",)


def test_a_prompt_may_be_blocked_and_a_stop_kept_off(scene: Scene) -> None:
    for point in (Point.USER_PROMPT_SUBMIT, Point.STOP, Point.TASK_COMPLETED, Point.PRE_COMPACT):
        assert fire(scene, function(lambda _: HookResult(block="no"), point=point)).reasons == ("no",)


def test_notices_are_safe_to_print(scene: Scene) -> None:
    decision = fire(scene, function(lambda _: HookResult(notice="\x1b]52;c;eA==\x07"), point=Point.ERROR))
    assert decision.notices == (r"\x1b]52;c;eA==\x07",)


def test_a_cancelled_hook_is_cancelled_and_its_process_gone(scene: Scene) -> None:
    place = scene.cwd / "pid"

    async def cut() -> None:
        chain = Chain((script("echo $$ > pid; sleep 60", timeout=60),))
        async with anyio.create_task_group() as group:
            group.start_soon(chain.fire, Point.PRE_TOOL_USE, scene, lambda: PAYLOADS[Point.PRE_TOOL_USE])
            await anyio.to_thread.run_sync(eventually, lambda: bool(place.read_text()))
            group.cancel_scope.cancel()
        assert group.cancel_scope.cancelled_caught

    anyio.run(cut)
    pid = int(place.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
