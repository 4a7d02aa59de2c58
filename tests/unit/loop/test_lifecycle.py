"""The points from the loop: their order, what each may return, and that they cost nothing unused."""

import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentflow.core import points
from agentflow.core.errors import ModelRefused
from agentflow.core.events import Asked, Replied, RunEnded, Warned
from agentflow.core.hook import Decision, Hook, HookDecision, HookFunction, HookResult
from agentflow.core.messages import Message, Notice, Reply, Speaker, Stop, Text, ToolCall, ToolResult, Usage
from agentflow.core.points import HookEvent, Point
from agentflow.core.ports import Observer
from agentflow.core.record import Record
from agentflow.core.run import MessageAdded, RequestSent, RunOutcome, RunStopped
from agentflow.hooks.chain import Chain
from agentflow.loop.run import run_agent
from agentflow.model.scripted import Turn
from tests.unit.hooks.stage import FUNCTIONS_ONLY
from tests.unit.loop.stage import Prompter, Spoken, Stage, call, script, submit, turn

ALL = (*sorted(FUNCTIONS_ONLY), Point.PRE_TOOL_USE, Point.POST_TOOL_USE, Point.POST_TOOL_USE_FAILURE)


def hook(point: Point, body: HookFunction) -> Hook:
    return Hook(name="guard", point=point, body=body)


def listening(seen: list[HookEvent]) -> tuple[Hook, ...]:
    return tuple(hook(point, seen.append) for point in ALL)


def said(event: HookEvent) -> str:
    match event.payload:
        case points.TurnPayload(turn=number):
            return f"{event.point} {number}"
        case points.ToolUse() | points.ToolDone() | points.ToolFailed():
            return f"{event.point} {event.payload.tool_name}"
        case points.Concluded(outcome=outcome):
            return f"{event.point} {outcome}"
        case _:
            return str(event.point)


def test_the_order_of_a_run_of_two_turns_that_submits(stage: Stage) -> None:
    seen: list[HookEvent] = []
    stage.hooks = listening(seen)
    stage.play(turn(call("Look"), call("Refusing")), submit())
    assert [said(event) for event in seen] == [
        "RunStart",
        "TurnStart 1",
        "ModelRequest",
        "ModelResponse",
        "PreToolUse Look",
        "PostToolUse Look",
        "PreToolUse Refusing",
        "PostToolUseFailure Refusing",
        "TurnEnd 1",
        "TurnStart 2",
        "ModelRequest",
        "ModelResponse",
        "PreToolUse SubmitChange",
        "PostToolUse SubmitChange",
        "TurnEnd 2",
        "RunEnd submitted",
    ]


def test_the_order_of_a_run_whose_second_request_fails(stage: Stage) -> None:
    seen: list[HookEvent] = []
    stage.hooks = listening(seen)
    with pytest.raises(ModelRefused):
        stage.play(turn(call("Look")), Turn(error=400))
    assert [said(event) for event in seen][-6:] == [
        "PostToolUse Look",
        "TurnEnd 1",
        "TurnStart 2",
        "ModelRequest",
        "Error",
        "RunEnd error",
    ]
    assert seen[-2].payload == points.Failed(error="the model answered with error 400")
    (ended,) = stage.of(RunEnded)
    assert (ended.outcome, ended.turns) == (RunOutcome.ERROR, 1)


def test_a_reply_without_calls_ends_its_turn_too(stage: Stage) -> None:
    seen: list[HookEvent] = []
    stage.hooks = (hook(Point.TURN_END, seen.append),)
    stage.play(Turn(text="done"), submit())
    assert [event.payload for event in seen] == [points.TurnPayload(turn=1), points.TurnPayload(turn=2)]


def test_what_a_hook_adds_to_a_run_stands_after_its_brief(stage: Stage) -> None:
    stage.hooks = (hook(Point.RUN_START, lambda _: HookResult(context="mind the gap")),)
    run = stage.play(submit())
    assert [message.text for message in run.messages[:2]] == ["do it", "mind the gap"]
    notices = [entry.notice for entry in stage.journal.entries if isinstance(entry, MessageAdded)]
    assert notices == [Notice.BRIEF, Notice.HOOK]


def test_what_a_hook_adds_as_a_run_ends_is_kept_and_changes_no_outcome(stage: Stage) -> None:
    stage.submit = None
    stage.hooks = (hook(Point.RUN_END, lambda _: HookResult(context="seen by the guard")),)
    run = stage.play(Turn(text="it is in a.py"))
    assert (run.outcome, run.messages[-1].text) == (RunOutcome.ANSWERED, "seen by the guard")


@pytest.mark.parametrize(("point", "requests"), [(Point.TURN_START, 0), (Point.TURN_END, 1)])
def test_a_turn_may_be_the_last_one(stage: Stage, point: Point, requests: int) -> None:
    stage.hooks = (hook(point, lambda _: HookResult(stop="that is enough")),)
    run = stage.play(turn(call("Look")), submit())
    assert (run.outcome, run.stop, run.turns) == (RunOutcome.STOPPED, "that is enough", requests)
    assert [e.reason for e in stage.journal.entries if isinstance(e, RunStopped)] == ["that is enough"]


def test_a_stop_beats_the_submission_of_its_turn(stage: Stage) -> None:
    stage.hooks = (hook(Point.TURN_END, lambda _: HookResult(stop="no")),)
    assert stage.play(submit()).outcome is RunOutcome.STOPPED


HALTING: tuple[tuple[Point, Any], ...] = (
    (Point.RUN_START, HookResult(halt="over")),
    (Point.TURN_START, HookResult(halt="over", stop="less")),
    (Point.MODEL_REQUEST, HookResult(halt="over")),
    (Point.MODEL_RESPONSE, HookResult(halt="over")),
    (Point.PRE_TOOL_USE, HookResult(halt="over")),
    (Point.TURN_END, HookResult(halt="over")),
    (Point.RUN_END, HookResult(halt="over")),
)


@pytest.mark.parametrize(("point", "result"), HALTING)
def test_a_hook_may_end_the_whole_task_at_each_of_them(stage: Stage, point: Point, result: Any) -> None:
    stage.hooks = (hook(point, lambda _: result),)
    run = stage.play(turn(call("Change")), submit())
    assert (run.outcome, run.halt) == (RunOutcome.HALTED, "over")


def secretive(event: HookEvent) -> HookResult | None:
    """Block a reply that holds what looks like a key."""
    assert isinstance(event.payload, points.ReplyPayload)
    parts = event.payload.reply.parts
    text = " ".join(part.text for part in parts if isinstance(part, Text))
    found = re.search(r"sk-[a-z0-9]+", text)
    return HookResult(block="a reply held what looks like a key") if found else None


def test_an_expression_blocks_a_reply_by_name_and_nothing_of_it_runs_or_stays(stage: Stage) -> None:
    stage.hooks = (hook(Point.MODEL_RESPONSE, secretive),)
    usage = Usage(input=7, output=3)
    told = turn(call("Change"), text="the key is sk-123").replace(usage=usage)
    run = stage.play(told, submit())
    assert (run.outcome, run.stop) == (
        RunOutcome.STOPPED,
        "blocked at ModelResponse: a reply held what looks like a key",
    )
    assert stage.spans == []
    assert "sk-123" not in repr(stage.journal.entries) + repr(stage.events)
    assert run.usage == usage


def test_a_reply_that_is_harmless_passes_the_same_guard(stage: Stage) -> None:
    stage.hooks = (hook(Point.MODEL_RESPONSE, secretive),)
    assert stage.play(turn(call("Change"), text="fine"), submit()).outcome is RunOutcome.SUBMITTED


def test_a_request_that_is_blocked_is_never_sent(stage: Stage) -> None:
    stage.hooks = (hook(Point.MODEL_REQUEST, lambda _: HookResult(block="no more today")),)
    model = Prompter(script(submit()))
    run = anyio.run(run_agent, stage.agent(model), "do it")
    assert (run.outcome, run.stop) == (RunOutcome.STOPPED, "blocked at ModelRequest: no more today")
    assert (model.requests, stage.of(Asked), run.turns) == ([], [], 0)


def test_a_guard_may_only_warn(stage: Stage) -> None:
    stage.hooks = (
        hook(Point.MODEL_REQUEST, lambda _: HookResult(notice="long")),
        hook(Point.MODEL_RESPONSE, lambda _: HookResult(notice="rude")),
    )
    assert stage.play(submit()).outcome is RunOutcome.SUBMITTED
    assert [event.message for event in stage.of(Warned)] == ["long", "rude"]


def test_a_changed_request_is_what_is_sent_and_the_run_says_so(stage: Stage) -> None:
    def shorter(event: HookEvent) -> HookResult:
        assert isinstance(event.payload, points.RequestPayload)
        request = event.payload.request
        return HookResult(request=request.replace(system="Be brief."))

    stage.hooks = (hook(Point.MODEL_REQUEST, shorter),)
    model = Prompter(script(submit()))
    run = anyio.run(run_agent, stage.agent(model), "do it")
    assert [request.system for request in model.requests] == ["Be brief."]
    assert run.head.system != "Be brief."
    assert [e.changed for e in stage.journal.entries if isinstance(e, RequestSent)] == [True]


def test_a_hook_cannot_send_a_call_without_its_result(stage: Stage) -> None:
    def last_only(event: HookEvent) -> HookResult:
        assert isinstance(event.payload, points.RequestPayload)
        request = event.payload.request
        return HookResult(request=request.replace(messages=request.messages[:2]))

    stage.hooks = (hook(Point.MODEL_REQUEST, last_only),)
    model = Prompter(script(turn(call("Look")), submit()))
    anyio.run(run_agent, stage.agent(model), "do it")
    (result,) = model.requests[1].messages[-1].parts
    assert isinstance(result, ToolResult)
    assert (result.is_error, result.call_id) == (True, "c1-1-1")
    assert "interrupted" in result.content
    assert ["c1-1-1" in event.message for event in stage.of(Warned)] == [True]


def test_a_changed_reply_is_what_runs(stage: Stage) -> None:
    def softened(event: HookEvent) -> HookResult | None:
        assert isinstance(event.payload, points.ReplyPayload)
        calls = [part for part in event.payload.reply.parts if isinstance(part, ToolCall)]
        changed = tuple(part.replace(input={"word": "soft"}) for part in calls if part.name == "Change")
        return HookResult(reply=event.payload.reply.replace(parts=changed)) if changed else None

    stage.hooks = (hook(Point.MODEL_RESPONSE, softened),)
    stage.play(turn(call("Change", "hard")), submit())
    assert [span.word for span in stage.spans] == ["soft"]


def test_a_hook_that_raises_breaks_no_run(stage: Stage) -> None:
    def bug(_: HookEvent) -> None:
        raise KeyError("lost")

    stage.hooks = tuple(hook(point, bug) for point in sorted(FUNCTIONS_ONLY))
    assert stage.play(turn(call("Look")), submit()).outcome is RunOutcome.SUBMITTED
    assert {event.message for event in stage.of(Warned)} == {
        f"hook guard at {point} failed: KeyError: 'lost'".replace(" failed", ": failed", 1)
        for point in FUNCTIONS_ONLY - {Point.ERROR}
    }


@pytest.mark.parametrize("point", sorted(FUNCTIONS_ONLY - {Point.ERROR}))
def test_an_illegal_answer_names_hook_and_point(stage: Stage, point: Point) -> None:
    stage.hooks = (hook(point, lambda _: HookResult(updated_output="no")),)
    assert stage.play(submit()).outcome is RunOutcome.SUBMITTED
    assert f"hook guard at {point}: answered updated_output" in stage.of(Warned)[0].message


def test_the_end_is_told_of_a_denied_call_and_the_run_goes_on(stage: Stage) -> None:
    seen: list[HookEvent] = []
    denied = HookResult(decision=Decision.DENY, reason="not on Fridays")
    stage.hooks = (
        hook(Point.PRE_TOOL_USE, lambda e: denied if said(e).endswith(" Change") else None),
        *listening(seen),
    )
    run = stage.play(turn(call("Change")), submit())
    assert (run.outcome, stage.results[0].content) == (RunOutcome.SUBMITTED, "not on Fridays")
    ends = [event.payload for event in seen if event.point in (Point.TURN_END, Point.RUN_END)]
    assert ends == [
        points.TurnPayload(turn=1),
        points.TurnPayload(turn=2),
        points.Concluded(outcome="submitted"),
    ]


class Counted(Chain):
    """No hooks; counts how often a scene or a payload is made for them."""

    made = 0

    async def ask(
        self,
        point: Point,
        scene: Callable[[], points.Scene],
        payload: Callable[[], Record],
        observe: Observer,
    ) -> HookDecision:
        def count() -> Any:
            self.made += 1
            raise AssertionError((point, scene, payload))

        return await super().ask(point, count, count, observe)


def test_without_hooks_nothing_is_made_at_any_point(stage: Stage) -> None:
    counted = Counted()
    agent = stage.agent(script(turn(call("Look"), call("Change")), submit())).replace(hooks=counted)
    assert anyio.run(run_agent, agent, "do it").outcome is RunOutcome.SUBMITTED
    assert counted.made == 0


def test_the_hooks_of_one_point_cost_the_others_nothing(stage: Stage) -> None:
    seen: list[HookEvent] = []
    stage.hooks = (hook(Point.RUN_END, seen.append),)
    stage.play(turn(call("Look")), submit())
    assert [event.point for event in seen] == [Point.RUN_END]


def test_a_reply_that_was_cut_short_still_ends_its_turn(stage: Stage) -> None:
    seen: list[HookEvent] = []
    stage.hooks = (hook(Point.TURN_END, seen.append),)
    stage.submit = None
    reply = Reply(parts=(Text(text="I wanted to"),), stop=Stop.MAX_TOKENS)
    anyio.run(run_agent, stage.agent(Spoken(reply)), "do it")
    assert len(seen) == len(stage.of(Replied)) == 1


def test_the_brief_is_what_the_start_is_told(stage: Stage) -> None:
    seen: list[HookEvent] = []
    stage.hooks = (hook(Point.RUN_START, seen.append), hook(Point.MODEL_REQUEST, seen.append))
    stage.play(submit())
    assert seen[0].payload == points.Briefed(brief="do it")
    asking = seen[1].payload
    assert isinstance(asking, points.RequestPayload)
    assert asking.request.messages == (Message(speaker=Speaker.USER, parts=(Text(text="do it"),)),)
