"""Before each request every call has its one result; whatever the messages were before."""

import anyio
from hypothesis import given
from hypothesis import strategies as st

from agentflow.core.events import Warned
from agentflow.core.messages import Message, MessagePart, Reply, Speaker, Text, ToolCall, ToolResult
from agentflow.core.run import ReplyReceived, RequestSent
from agentflow.loop.agent import note, open_run
from agentflow.loop.history import pair_results
from agentflow.loop.run import continue_run
from tests.unit.loop.stage import Prompter, Stage, script, submit, turn

USER, ASSISTANT = Speaker.USER, Speaker.ASSISTANT


def said(*parts: MessagePart) -> Message:
    return Message(speaker=USER, parts=parts)


def called(*ids: str) -> Message:
    return Message(speaker=ASSISTANT, parts=tuple(ToolCall(id=each, name="Look", input={}) for each in ids))


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, content=f"saw {call_id}")


BRIEF = said(Text(text="do it"))
MORE = Text(text="go on")


def fits(messages: tuple[Message, ...]) -> bool:
    """Return whether a provider takes these messages."""
    owed: list[str] = []
    for message in messages:
        leading = [part.call_id for part in message.parts[: len(owed)] if isinstance(part, ToolResult)]
        answered = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        if leading != owed or answered != owed or not message.parts:
            return False
        owed = [call.id for call in message.calls]
    return not owed


def test_what_is_whole_comes_back_as_it_is() -> None:
    messages = (BRIEF, called("a", "b"), said(result("a"), result("b"), MORE), called("c"), said(result("c")))
    assert pair_results(messages) == (messages, ())
    assert pair_results(messages)[0] is messages
    assert pair_results(()) == ((), ())


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages, problems = pair_results((BRIEF, called("a", "b"), said(result("b"))))
    (lost, kept) = messages[-1].parts
    assert kept == result("b")
    assert isinstance(lost, ToolResult)
    assert (lost.call_id, lost.is_error) == ("a", True)
    assert "interrupted" in lost.content
    assert problems == ("call a had no result",)


def test_a_call_at_the_very_end_gets_one_too() -> None:
    messages, problems = pair_results((BRIEF, called("a")))
    assert fits(messages)
    assert problems == ("call a had no result",)


def test_a_second_result_and_one_of_no_call_go() -> None:
    stray = said(result("a"), result("a"), result("z"), MORE)
    messages, problems = pair_results((BRIEF, called("a"), stray))
    assert messages[-1].parts == (result("a"), MORE)
    assert problems == ("2 results of no call before them",)


def test_results_come_first_and_in_the_order_of_the_calls() -> None:
    messages, problems = pair_results((BRIEF, called("a", "b"), said(MORE, result("b"), result("a"))))
    assert messages[-1].parts == (result("a"), result("b"), MORE)
    assert problems == ("results stood in the wrong place",)


def test_two_replies_in_a_row_are_kept_apart_by_the_results() -> None:
    messages, _ = pair_results((BRIEF, called("a"), called("b"), said(result("b"))))
    assert [message.speaker for message in messages] == [USER, ASSISTANT, USER, ASSISTANT, USER]
    assert fits(messages)


def test_what_was_sent_before_is_taken_as_it_is() -> None:
    broken = (BRIEF, called("a"), said(MORE), called("b"), said(result("b")))
    assert pair_results(broken, since=3) == (broken, ())
    assert pair_results(broken, since=1)[1] == ("call a had no result",)


PARTS = st.one_of(
    st.builds(Text, text=st.sampled_from(["x", "y"])), st.builds(result, st.sampled_from("abc"))
)
MESSAGES = st.lists(
    st.one_of(
        st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: said(*parts)),
        st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3).map(lambda ids: called(*ids)),
    ),
    max_size=6,
).map(tuple)


@given(MESSAGES)
def test_whatever_comes_in_fits_afterwards_and_no_text_or_call_is_lost(messages: tuple[Message, ...]) -> None:
    found, problems = pair_results(messages)
    assert fits(found)
    assert (found is messages) is (problems == ())
    assert pair_results(found) == (found, ())
    kept = [[part for message in each for part in message.parts] for each in (messages, found)]
    before, after = ([part for part in parts if not isinstance(part, ToolResult)] for parts in kept)
    assert before == after


def test_a_stored_half_turn_wedges_no_task(stage: Stage) -> None:
    model = Prompter(script(turn(), submit()))
    agent = stage.agent(model)
    run = note(agent, open_run(agent, "do it"), RequestSent(turn=1))
    run = note(agent, run, ReplyReceived(reply=script_reply()))
    broken = run.replace(messages=(*run.messages, said(MORE)), sent=3)
    ended = anyio.run(continue_run, agent, broken, None)
    assert ended.submitted
    assert fits(model.requests[0].messages)
    (warning,) = stage.of(Warned)
    assert "history repaired before the request: call c1 had no result" in warning.message


def script_reply() -> Reply:
    return Reply(parts=called("c1").calls)
