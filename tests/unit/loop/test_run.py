from itertools import pairwise
from threading import Barrier

import pytest

from agentflow.core.events import Asked, Replied, RunEnded, RunStarted, ToolFinished
from agentflow.core.messages import Notice, Speaker, ToolResult, Usage
from agentflow.core.run import CallAnswered, MessageAdded, ReplyReceived, Run, RunEntry, RunOutcome
from agentflow.loop.next_step import Step
from agentflow.model.scripted import ScriptedCall, Turn
from tests.unit.loop.stage import CHANGE, Stage, call, submit, turn

ASK, ACT, REMIND, FINALIZE, CLOSE = Step.ASK, Step.ACT, Step.REMIND, Step.FINALIZE, Step.CLOSE


def results_of(run: Run) -> list[str]:
    return [
        part.content
        for message in run.messages
        if message.speaker is Speaker.USER
        for part in message.parts
        if isinstance(part, ToolResult)
    ]


def test_steps_of_a_run_that_looks_changes_and_submits(stage: Stage) -> None:
    turns = (turn(call("Look"), call("Look"), call("Change"), call("Change")), submit())
    assert stage.steps(*turns) == [ASK, ACT, ACT, ACT, ASK, ACT, CLOSE]


def test_steps_of_a_run_that_talks_is_reminded_and_submits_wrongly_once(stage: Stage) -> None:
    wrong = turn(ScriptedCall(name="SubmitChange", input={"summary": ""}))
    assert stage.steps(Turn(text="all done"), wrong, submit()) == [
        ASK, REMIND, ASK, ACT, ASK, ACT, CLOSE,
    ]  # fmt: skip


def test_steps_of_a_run_that_reaches_its_limit(stage: Stage) -> None:
    stage.role = stage.role.replace(limits=stage.role.limits.replace(tool_calls=2))
    turns = (turn(call("Change"), call("Change"), call("Change")), submit())
    assert stage.steps(*turns) == [ASK, ACT, ACT, ACT, FINALIZE, ASK, ACT, CLOSE]


def test_a_run_takes_the_steps_of_the_trace(stage: Stage) -> None:
    turns = (turn(call("Look"), call("Change")), Turn(text="done"), submit())
    stage.steps(*turns)
    walked, stage.journal.entries = untimed(stage.journal.entries), []
    stage.play(*turns)
    assert untimed(stage.journal.entries) == walked


def untimed(entries: list[RunEntry]) -> list[RunEntry]:
    timed = (CallAnswered, ReplyReceived)
    return [entry.replace(seconds=0) if isinstance(entry, timed) else entry for entry in entries]


class TestToolLimit:
    @pytest.fixture(autouse=True)
    def limited(self, stage: Stage) -> None:
        stage.role = stage.role.replace(limits=stage.role.limits.replace(tool_calls=2))

    @pytest.mark.parametrize("name", ["Look", "Change"])
    def test_the_call_beyond_it_is_skipped(self, stage: Stage, name: str) -> None:
        stage.play(turn(call(name, "a"), call(name, "b"), call(name, "c")), submit())
        assert [result.is_error for result in stage.results] == [False, False, True, False]
        assert "skipped" in stage.results[2].content
        assert sorted(span.word for span in stage.spans) == ["a", "b"]

    def test_the_next_request_has_one_notice_and_forces_the_submission(self, stage: Stage) -> None:
        first, second = stage.requests(turn(call("Look"), call("Look"), call("Look")), submit())
        assert (first.force, second.force) == (None, "SubmitChange")
        assert "limit" in second.messages[-1].text
        assert second.messages[-1].speaker is Speaker.USER
        notices = [e.notice for e in stage.journal.entries if isinstance(e, MessageAdded)]
        assert notices == [Notice.BRIEF, Notice.FINALIZE]

    def test_tools_and_prompt_stay_so_that_the_prefix_stays(self, stage: Stage) -> None:
        first, second = stage.requests(turn(call("Look"), call("Look"), call("Look")), submit())
        assert (first.system, first.tools) == (second.system, second.tools)
        assert second.messages[: len(first.messages)] == first.messages

    def test_a_submission_after_it_counts(self, stage: Stage) -> None:
        assert stage.play(turn(call("Look"), call("Look")), submit()).outcome is RunOutcome.SUBMITTED

    def test_another_call_after_it_ends_the_run(self, stage: Stage) -> None:
        run = stage.play(turn(call("Look"), call("Look")), turn(call("Look", "late")), submit())
        assert run.outcome is RunOutcome.TOOL_LIMIT
        assert "late" not in {span.word for span in stage.spans}

    def test_submitting_beside_the_last_calls_is_not_skipped(self, stage: Stage) -> None:
        both = turn(call("Change"), call("Change"), *submit().tools)
        assert stage.play(both).outcome is RunOutcome.SUBMITTED

    def test_refused_and_malformed_calls_use_nothing_up(self, stage: Stage) -> None:
        run = stage.play(turn(call("Nothing"), call("Look", word=3), call("Look", "a")), submit())
        assert run.tool_calls == 1


def test_turns_are_bounded_too(stage: Stage) -> None:
    stage.role = stage.role.replace(limits=stage.role.limits.replace(turns=2, tool_calls=99))
    run = stage.play(*[turn(call("Look"))] * 50)
    assert (run.outcome, run.turns) == (RunOutcome.TURN_LIMIT, 3)


def test_a_model_that_calls_tools_for_ever_is_stopped(stage: Stage) -> None:
    run = stage.play(*[turn(call("Look"), call("Change"))] * 200)
    assert run.outcome is RunOutcome.TOOL_LIMIT
    assert len(stage.spans) == stage.role.limits.tool_calls


def test_three_turns_without_a_call_that_can_be_made_lead_to_the_last_one(stage: Stage) -> None:
    run = stage.play(*[turn(call("Nothing"), ScriptedCall(name="Look"))] * 5)
    assert (run.outcome, run.turns) == (RunOutcome.CONFUSED, 4)


def test_a_call_that_is_made_forgives_the_stumbles_before_it(stage: Stage) -> None:
    wrong = turn(call("Nothing"))
    run = stage.play(wrong, wrong, turn(call("Look")), wrong, wrong, submit())
    assert run.outcome is RunOutcome.SUBMITTED


def test_calls_after_a_submission_are_skipped(stage: Stage) -> None:
    run = stage.play(turn(*submit().tools, call("Change", "late"), call("Look", "late")))
    assert run.outcome is RunOutcome.SUBMITTED
    assert stage.spans == []
    assert [result.is_error for result in stage.results] == [False, True, True]


def test_a_second_submission_changes_nothing(stage: Stage) -> None:
    run = stage.play(turn(*submit(summary="first").tools, *submit(summary="second").tools))
    assert run.changes["change"]["summary"] == "first"


def test_a_wrong_submission_gets_one_repair(stage: Stage) -> None:
    wrong = turn(ScriptedCall(name="SubmitChange", input={"summary": "x", "files": "no list of"}))
    blank = turn(ScriptedCall(name="SubmitChange", input={}))
    assert stage.play(blank, submit()).outcome is RunOutcome.SUBMITTED
    assert stage.play(blank, blank, submit()).outcome is RunOutcome.INVALID_SUBMISSION
    assert stage.play(wrong).outcome is RunOutcome.SUBMITTED


def test_a_role_that_never_submits_is_reminded_once(stage: Stage) -> None:
    requests = stage.requests(Turn(text="done"), Turn(text="really done"), submit())
    assert len(requests) == 2
    assert "SubmitChange" in requests[1].messages[-1].text


def test_a_role_without_a_submission_ends_with_its_answer(stage: Stage) -> None:
    stage.submit = None
    run = stage.play(turn(call("Look")), Turn(text="it is in a.py"))
    assert run.outcome is RunOutcome.ANSWERED
    assert run.messages[-1].text == "it is in a.py"


@pytest.mark.parametrize(
    "text",
    [
        'Here it is:\n```json\n{"summary": "done", "files": []}\n```\nBye.',
        '```\n{"summary": "done", "files": []}\n```',
        'I am done. {"summary": "done", "files": []} Thank you.',
        '{"summary": "done", "files": []}',
        '```json\n{"other": 1}\n```\n```json\n{"summary": "done", "files": []}\n```',
    ],
)
def test_a_submission_in_prose_counts(stage: Stage, text: str) -> None:
    run = stage.play(Turn(text=text))
    assert run.outcome is RunOutcome.SUBMITTED
    assert run.changes["change"]["summary"] == CHANGE["summary"]


@pytest.mark.parametrize(
    "text",
    ["done", '{"summary": 3, "files": []}', '{"summary": "x"}', "{not json}", '["summary"]', "}{", "```{```"],
)
def test_prose_that_does_not_fit_is_no_submission(stage: Stage, text: str) -> None:
    assert stage.play(Turn(text=text), Turn(text=text)).outcome is RunOutcome.NO_SUBMISSION


def test_prose_beside_a_call_is_no_submission(stage: Stage) -> None:
    run = stage.play(turn(call("Look"), text='{"summary": "done", "files": []}'), Turn(text="bye"))
    assert run.outcome is RunOutcome.NO_SUBMISSION


def test_four_reads_overlap_and_their_results_keep_the_order(stage: Stage) -> None:
    calls = [
        call("Look", word, seconds=pause) for word, pause in zip("abcd", (0.3, 0.1, 0.2, 0.0), strict=True)
    ]
    stage.meeting = Barrier(4, timeout=20)
    run = stage.play(turn(*calls), submit())
    assert results_of(run)[:4] == ["saw a", "saw b", "saw c", "saw d"]


def test_no_more_than_four_reads_run_at_once(stage: Stage) -> None:
    stage.meeting = Barrier(4, timeout=20)
    stage.play(turn(*(call("Look", str(number), seconds=0.1) for number in range(8))), submit())
    assert len(stage.spans) == 8
    at_once = [sum(other.begin <= span.begin < other.end for other in stage.spans) for span in stage.spans]
    assert max(at_once) == 4


def test_writes_never_overlap_and_keep_their_order(stage: Stage) -> None:
    calls = [call("Change", word, seconds=0.05) for word in "abc"]
    stage.play(turn(*calls), submit())
    assert [span.word for span in stage.spans] == ["a", "b", "c"]
    assert all(first.end <= second.begin for first, second in pairwise(stage.spans))


def test_a_write_waits_for_the_reads_before_it_and_the_reads_after_it_wait(stage: Stage) -> None:
    stage.play(
        turn(
            call("Look", "a", seconds=0.1),
            call("Look", "b", seconds=0.1),
            call("Change", "w", seconds=0.1),
            call("Look", "c"),
        ),
        submit(),
    )
    by_word = {span.word: span for span in stage.spans}
    assert max(by_word["a"].end, by_word["b"].end) <= by_word["w"].begin
    assert by_word["w"].end <= by_word["c"].begin


def test_each_call_is_written_down_before_the_next_one_starts(stage: Stage) -> None:
    stage.play(turn(call("Change", "a"), call("Change", "b")), submit())
    kinds = [type(entry).__name__ for entry in stage.journal.entries]
    assert kinds[4:8] == ["CallsStarted", "CallAnswered", "CallsStarted", "CallAnswered"]


def test_reads_have_nothing_to_be_written_down_before_they_start(stage: Stage) -> None:
    stage.play(turn(call("Look", "a"), call("Look", "b")), submit())
    kinds = [type(entry).__name__ for entry in stage.journal.entries]
    assert kinds[4:6] == ["CallAnswered", "CallAnswered"]


def test_what_happened_is_told(stage: Stage) -> None:
    usage = Usage(input=900, output=20)
    first = turn(call("Look", "a"), text="let me see\nmore").replace(usage=usage)
    stage.play(first, submit().replace(usage=usage))
    assert [event.turn for event in stage.of(Asked)] == [1, 2]
    first_reply = stage.of(Replied)[0]
    assert (first_reply.text, first_reply.calls, first_reply.usage) == ("let me see", 1, usage)
    assert [(e.tool, e.is_error, e.summary) for e in stage.of(ToolFinished)] == [
        ("Look", False, "saw a"),
        ("SubmitChange", False, ""),
    ]
    (started,), (ended,) = stage.of(RunStarted), stage.of(RunEnded)
    assert (started.role, started.agent, started.model) == ("implementer", "builder", "model-1")
    assert (ended.outcome, ended.turns, ended.tool_calls) == (RunOutcome.SUBMITTED, 2, 1)
    assert ended.usage == Usage(input=1800, output=40)


def test_a_submission_changes_the_state_with_its_answer(stage: Stage) -> None:
    stage.play(submit())
    (answered,) = (entry for entry in stage.journal.entries if isinstance(entry, CallAnswered))
    assert (list(answered.changes), answered.submitted) == (["change"], True)


def test_a_submission_behind_a_failed_edit_of_its_turn_waits(stage: Stage) -> None:
    run = stage.play(
        turn(call("Refusing", "a"), call("SubmitChange", **CHANGE)),
        turn(call("Change", "a"), call("SubmitChange", **CHANGE)),
    )
    assert run.outcome is RunOutcome.SUBMITTED
    assert run.turns == 2
    assert stage.results[1].content.startswith("not submitted: Refusing in the same turn failed")
