"""Handing a conversation over: what changes, what stays, and what nobody gains by it."""

from pathlib import Path

import anyio
import pytest

from agentflow.core.events import HandedOff
from agentflow.core.fold import advance
from agentflow.core.run import HandedOver, Run, RunOutcome
from agentflow.loop.run import continue_run
from agentflow.model.messages import MessagesApi
from agentflow.model.scripted import Entry, ScriptedCall, ScriptedModel, Turn
from tests.unit.compose.crew import Household, delegate, hand, named, plays
from tests.unit.loop.stage import CHANGE, call, turn

FIRST = named("first", "Look", "Fetch", "handoff_to_second", model="m-1", limits={"turns": 2})
SECOND = named(
    "second", "Look", "Change", "Run", "Fetch", "handoff_to_third", model="m-2", limits={"turns": 3}
)
THIRD = named("third", "Look", "handoff_to_second")
DONE = Turn(text="done")


@pytest.fixture
def crew(tmp_path: Path) -> Household:
    return Household(tmp_path, SECOND, THIRD)


def play(crew: Household, *turns: Turn) -> Run:
    return crew.play(FIRST, plays("first", *turns))


def test_the_next_request_has_the_new_prompt_and_tools_and_the_old_history(crew: Household) -> None:
    run = play(crew, turn(call("Look", "a"), text="let me see"), hand("second"), DONE)
    before, handing, after = crew.requests
    assert (handing.system.startswith("You are first."), handing.model) == (True, "m-1")
    assert (after.system.startswith("You are second."), after.agent, after.model) == (True, "second", "m-2")
    assert [tool.name for tool in after.tools] == ["Fetch", "Look", "handoff_to_third"]
    assert after.messages[: len(handing.messages)] == handing.messages
    assert before.messages == handing.messages[: len(before.messages)]
    assert (run.outcome, run.head.agent, len(crew.journals)) == (RunOutcome.ANSWERED, "second", 1)


def test_the_tools_of_the_first_are_refused_afterwards(crew: Household) -> None:
    first = named("first", "Look", "Change", "handoff_to_third")
    crew.play(first, plays("first", hand("third"), turn(call("Change"), call("Look", "a")), DONE))
    assert crew.results()[1:] == ["There is no tool Change. Your tools: Look, handoff_to_second", "saw a"]


def test_nobody_gains_an_effect_that_the_first_lacks(crew: Household) -> None:
    run_it = ScriptedCall(name="Run", input={"command": "rm x"})
    play(crew, hand("second"), turn(call("Change"), run_it, call("Fetch", "a")), DONE)
    assert crew.results()[1:] == [
        "There is no tool Change. Your tools: Fetch, Look, handoff_to_third",
        "There is no tool Run. Your tools: Fetch, Look, handoff_to_third",
        "saw a",
    ]


def test_the_patterns_of_the_first_hold_for_whoever_goes_on(crew: Household) -> None:
    first = named("first", "Run(ls *)", "handoff_to_second")
    commands = turn(*(ScriptedCall(name="Run", input={"command": line}) for line in ("rm x", "ls x")))
    crew.play(first, plays("first", hand("second"), commands, DONE))
    assert crew.results()[1:] == [
        "first may not run rm x; it may run ls *, and commands that only read",
        "ran ls x",
    ]


def test_what_the_first_cannot_fetch_nobody_fetches(crew: Household) -> None:
    first = named("first", "Look", "handoff_to_second")
    crew.play(first, plays("first", hand("second"), DONE))
    assert "Fetch" not in {tool.name for tool in crew.requests[-1].tools}


def test_limits_count_from_the_handoff(crew: Household) -> None:
    looks = [turn(call("Look"))] * 9
    run = play(crew, turn(call("Look")), hand("second"), *looks)
    assert (run.outcome, run.turns) == (RunOutcome.TURN_LIMIT, 2 + 3 + 1)


def test_the_conversation_may_be_handed_on_and_back_but_not_for_ever(crew: Household) -> None:
    passing = [hand(name) for _ in range(6) for name in ("second", "third")]
    run = play(crew, *passing)
    assert run.handoffs == 8
    assert [event.to for event in crew.of(HandedOff)] == ["second", "third"] * 4
    assert "handed over 8 times at most" in crew.results()[8]


def test_calls_after_a_handoff_in_the_same_turn_are_skipped(crew: Household) -> None:
    play(crew, turn(*hand("second").tools, call("Look", "late")), DONE)
    assert crew.results()[0] == "second goes on"
    assert "skipped" in crew.results()[1]


def test_who_goes_on_in_a_phase_ends_it_with_the_same_submission(crew: Household) -> None:
    first = named("first", "Look", "Change", "handoff_to_second", part="implementer")
    submits = turn(ScriptedCall(name="SubmitChange", input=CHANGE))
    run = crew.play(first, Entry(turns=(hand("second"), turn(call("Change", "a")), submits)))
    assert run.outcome is RunOutcome.SUBMITTED
    assert crew.results() == ["second goes on", "changed a", "submitted"]
    assert "SubmitChange" in crew.requests[-1].system
    assert run.head.role == "implementer"


def test_a_role_cannot_hand_over_to_whom_it_does_not_list(crew: Household) -> None:
    play(crew, hand("third"), DONE)
    assert crew.results() == ["There is no tool handoff_to_third. Your tools: Fetch, Look, handoff_to_second"]


def test_a_sub_agent_keeps_its_own_conversation(crew: Household) -> None:
    boss = named("boss", "Look", "Agent", "handoff_to_third")
    crew.play(boss, plays("boss", turn(delegate("third")), DONE), plays("third", hand("second"), DONE))
    assert crew.results(2) == ["There is no tool handoff_to_second. Your tools: Look"]


def test_a_run_that_was_cut_short_at_the_handoff_goes_on_as_the_other(crew: Household) -> None:
    turns = (turn(call("Look")), hand("second"), DONE)
    whole = play(crew, *turns)
    entries = crew.journals[1].entries
    place = next(number for number, entry in enumerate(entries) if isinstance(entry, HandedOver))
    for cut in (place, place + 1):
        run = Run(head=entries[0])  # type: ignore[arg-type]
        for entry in entries[1:cut]:
            run = advance(run, entry)
        agent = crew.agent(
            FIRST, ScriptedModel("script:memory", (plays("second", *turns), plays("first", *turns)))
        )
        again = anyio.run(continue_run, agent, run, None)
        assert (again.outcome, again.active) == (whole.outcome, "second")


def test_the_bytes_that_are_sent_begin_anew_after_a_handoff(crew: Household) -> None:
    play(crew, hand("second"), DONE)
    api = MessagesApi()
    first, second = (
        api.encode(request.replace(model="m"), stream=False, room=lambda _: 1000) for request in crew.requests
    )
    assert b"You are first." in first
    assert b"You are second." in second
    assert b"You are first." not in second
