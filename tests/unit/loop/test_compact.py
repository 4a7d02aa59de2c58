"""A conversation is made shorter before it would not fit: what goes, what stays, and what bounds it."""

import hashlib
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentflow.core.errors import ModelUnavailable, PromptTooLong
from agentflow.core.events import Compacted
from agentflow.core.fold import RECALL_TOOL
from agentflow.core.hook import Hook, HookResult
from agentflow.core.messages import SUMMARIZER, ContextLimits, Reply, Request, ToolCall, ToolResult, Usage
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import encode
from agentflow.core.run import HistoryCompacted, Run
from agentflow.core.tool import Category, Effect, Output, Retention, Tool, ToolContext
from agentflow.loop.run import run_agent
from agentflow.model.scripted import Entry, Match, ScriptedCall, ScriptedModel, Turn
from tests.unit.loop.stage import Prompter, Stage, Wanted, call, script, submit, turn

LISTED = re.compile(r"^- c1-(\d+)-1 Look x\d+: saw x", re.MULTILINE)
SMALL = ContextLimits(context=8_000)
"""Compacted at 6,000 tokens, which are 24,000 characters, to 3,000."""
SUMMARY = {"facts": ["saw x"], "goals": ["go on"], "open_questions": ["why"], "discarded": ["y"]}
SUMMARIZES = Entry(
    turns=(Turn(tools=(ScriptedCall(name="SubmitSummary", input=SUMMARY),), usage=Usage(input=70, output=7)),)
    * 20,
    match=Match(role=SUMMARIZER),
)


def looks(turns: int, count: int, word: str = "x") -> list[Turn]:
    """Return turns of one call each, whose results have 5 characters for each of the count."""
    return [turn(call("Look", f"{word}{number:03d}"[-4:], count=count // 8)) for number in range(turns)]


def played(
    stage: Stage, *turns: Turn, entries: tuple[Entry, ...] = (SUMMARIZES,)
) -> tuple[Run, list[Request]]:
    model = Prompter(ScriptedModel("script:memory", (Entry(turns=turns), *entries)))
    run = anyio.run(run_agent, stage.agent(model), "do it")
    return run, [request for request in model.requests if request.role != SUMMARIZER]


def shown(request: Request) -> list[str]:
    parts = (part for message in request.messages for part in message.parts)
    return [part.content for part in parts if isinstance(part, ToolResult)]


def texts(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def archived(request: Request) -> int:
    return sum(content.startswith("[archived") for content in shown(request))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, turns=200, tool_calls=400)
    made.room = SMALL
    return made


def test_old_outputs_become_markers_and_the_newest_stays(stage: Stage) -> None:
    run, requests = played(stage, *looks(5, 7_000), submit())
    (told,) = stage.of(Compacted)
    assert (told.archived, told.summary, run.submitted) == (("c1-1-1", "c1-2-1", "c1-3-1"), "", True)
    first, *_ = shown(requests[-1])
    assert first.startswith(
        "[archived: Look, c1-1-1, 7,000 characters; RecallOutput with call_id c1-1-1 reads it]"
    )
    assert "saw x000" in first
    assert (stage.outputs / "c1-1-1.out").read_text() == "saw x000" * 875
    assert shown(requests[-1])[-1] == "saw x004" * 875
    assert RECALL_TOOL in {tool.name for tool in requests[-1].tools}
    assert RECALL_TOOL not in {tool.name for tool in requests[0].tools}


def test_a_request_begins_with_the_one_before_it_but_for_a_compaction(stage: Stage) -> None:
    _, requests = played(stage, *looks(12, 7_000), submit())
    broken = [
        number
        for number, (one, other) in enumerate(pairwise(requests))
        if other.messages[: len(one.messages)] != one.messages
    ]
    assert len(broken) == len(stage.of(Compacted)) > 1


def test_a_batch_larger_than_the_limit_is_still_shown_and_compacted_once(stage: Stage) -> None:
    huge = turn(*(call("Look", f"y{number:03d}", count=1_000) for number in range(8)))
    _, requests = played(stage, *looks(1, 8_000), huge, submit())
    assert [len(content) for content in shown(requests[-1])[1:]] == [8_000] * 8
    assert archived(requests[-1]) == 1
    assert len(stage.of(Compacted)) == 1


def test_what_archiving_does_not_save_is_summarized_and_the_task_stays(stage: Stage) -> None:
    run, requests = played(stage, *looks(60, 960), submit())
    told = stage.of(Compacted)
    assert {event.summary for event in told} == {"model"}
    assert run.submitted
    first, second, *_ = requests[-1].messages
    assert first.text == "do it"
    for line in ("## Facts\n- saw x", "## Goals\n- go on", "## Open questions\n- why", "## Discarded\n- y"):
        assert line in second.text
    assert LISTED.search(second.text)
    assert run.usage.input == 70 * len(told)
    assert len(told) > 1
    assert all(event.usage.output == 7 for event in told)


class Failing:
    """A model that gives no summaries."""

    def __init__(self, model: Prompter, error: Exception) -> None:
        self.name = "failing"
        self._model = model
        self._error = error

    def explain_refusal(self, task: str) -> str | None:
        return self._model.explain_refusal(task)

    async def complete(self, request: Request) -> Reply:
        if request.role == SUMMARIZER:
            raise self._error
        return await self._model.complete(request)


@pytest.mark.parametrize("error", [ModelUnavailable("it is down"), TimeoutError()], ids=["down", "late"])
def test_a_failed_summary_leaves_a_list_of_the_calls(stage: Stage, error: Exception) -> None:
    model = Prompter(script(*looks(60, 960), submit()))
    run = anyio.run(run_agent, stage.agent(Failing(model, error)), "do it")
    assert run.submitted
    assert {event.summary for event in stage.of(Compacted)} == {"program"}
    assert LISTED.search(model.requests[-1].messages[1].text)
    entries = [entry for entry in stage.journal.entries if isinstance(entry, HistoryCompacted)]
    assert {entry.failure for entry in entries} <= {"it is down", "it took too long"}


def test_an_empty_summary_is_a_failed_one(stage: Stage) -> None:
    run, _ = played(stage, *looks(60, 960), submit(), entries=())
    assert run.submitted
    assert {event.summary for event in stage.of(Compacted)} == {"program"}


def test_a_request_that_is_too_long_is_compacted_and_sent_once_more(stage: Stage) -> None:
    class Strict(Prompter):
        async def complete(self, request: Request) -> Reply:
            if request.role != SUMMARIZER and len(encode(request.messages)) > 12_000:
                raise PromptTooLong("prompt is too long")
            return await super().complete(request)

    model = Strict(ScriptedModel("s", (Entry(turns=(*looks(8, 4_000), submit())), SUMMARIZES)))
    run = anyio.run(run_agent, stage.agent(model), "do it")
    assert run.submitted
    told = stage.of(Compacted)
    assert told[0].trigger == "overflow"
    assert {event.trigger for event in told[1:]} <= {"limit"}  # the rest stays below what was too long


def test_a_request_that_stays_too_long_ends_the_run(stage: Stage) -> None:
    class Never(Prompter):
        async def complete(self, request: Request) -> Reply:
            self.requests.append(request)
            raise PromptTooLong("prompt is too long")

    model = Never(script(submit()))
    with pytest.raises(PromptTooLong):
        anyio.run(run_agent, stage.agent(model), "do it")
    assert len(model.requests) == 1


def test_large_arguments_become_their_beginning_and_their_hash_once_they_were_used(stage: Stage) -> None:
    long = "z" * 2_100
    first = turn(call("Change", long), call("Refusing", long))
    _, requests = played(stage, first, *looks(4, 6_000), submit())
    parts = [part for message in requests[-1].messages for part in message.parts]
    used, refused, *_ = [part.input["word"] for part in parts if isinstance(part, ToolCall)]
    assert used.startswith("z" * 200 + "…")
    assert hashlib.sha256(long.encode()).hexdigest() in used
    assert refused == long


def keeping(stage: Stage, **retention: Any) -> None:
    def ponder(wanted: Wanted, context: ToolContext) -> Output:  # noqa: ARG001
        """Say something long."""
        return Output(content=f"begin {wanted.word}\n{'w' * 4_000}\nend {wanted.word}")

    stage.extra = tuple(
        Tool(name=name, category=Category.REPO, effect=Effect.READ, input=Wanted, call=ponder, retention=how)
        for name, how in retention.items()
    )


def test_each_tool_says_what_is_left_of_its_results(stage: Stage) -> None:
    keeping(
        stage,
        Full=Retention.KEEP_FULL,
        Structured=Retention.KEEP_STRUCTURED,
        Archived=Retention.SUMMARIZE_ARCHIVE,
        Dropped=Retention.DROP,
    )
    names = ("Full", "Structured", "Archived", "Dropped")
    _, requests = played(stage, turn(*map(call, names)), *looks(2, 7_000), submit())
    full, structured, archive, dropped, *_ = shown(requests[-1])
    assert full.endswith("end x")
    assert structured.splitlines()[1:] == ["begin x", "end x"]
    assert archive.splitlines()[1:] == ["begin x"]
    assert "make the call again" in dropped
    assert sorted(path.stem for path in stage.outputs.glob("c1-1-*.out")) == ["c1-1-2", "c1-1-3"]


def test_a_hook_keeps_the_history_as_it_is_or_is_told_of_it(stage: Stage) -> None:
    fired: list[tuple[Point, bytes]] = []

    def hear(event: HookEvent) -> HookResult | None:
        fired.append((event.point, encode(event.payload)))
        return HookResult(block="not now") if len(fired) == 1 else None

    points = (Point.PRE_COMPACT, Point.POST_COMPACT)
    stage.hooks = tuple(Hook(name="hear", point=point, body=hear) for point in points)
    _, requests = played(stage, *looks(5, 7_000), submit())
    assert [point for point, _ in fired] == [Point.PRE_COMPACT, *points]
    assert archived(requests[4]) == 0
    assert archived(requests[5]) == 4
    assert b'"trigger":"auto"' in fired[0][1]


def compactions(stage: Stage, **changes: int) -> list[Compacted]:
    stage.room = SMALL.replace(**changes)
    played(stage, *looks(3, 5_000), *looks(9, 1_100), submit())
    return stage.of(Compacted)


def test_the_newest_turns_are_archived_last(stage: Stage) -> None:
    (told,) = compactions(stage)
    assert len(told.archived) < told.turn - 4


def test_how_many_turns_are_archived_last_is_a_setting(stage: Stage) -> None:
    (told,) = compactions(stage, turns_kept=4)
    assert len(told.archived) == told.turn - 4


@pytest.mark.parametrize("changes", [{"context": 16_000}, {"trigger": 8_000}])
def test_when_a_conversation_is_compacted_is_a_setting(stage: Stage, changes: dict[str, int]) -> None:
    assert compactions(stage, **changes) == []


def test_a_result_is_as_long_as_characters_and_tokens_allow() -> None:
    limits = ContextLimits()
    assert limits.measure_result(0.25) == 32_000
    assert limits.measure_result(0.5) == 16_000
    assert limits.replace(result_chars=1_000).measure_result(0.25) == 1_000
    assert limits.replace(result_tokens=500).measure_result(0.25) == 2_000


def test_a_summary_is_no_longer_than_its_limit(stage: Stage) -> None:
    long = Entry(turns=(Turn(text="s" * 9_000),) * 9, match=Match(role=SUMMARIZER))
    stage.room = SMALL.replace(summary=300)
    _, requests = played(stage, *looks(40, 960), submit(), entries=(long,))
    assert "s" * 1_200 in texts(requests[-1])
    assert "s" * 1_201 not in texts(requests[-1])


def test_a_smaller_window_bounds_all_of_it() -> None:
    assert ContextLimits().fit_window(None).compacted_at == 72_000
    assert ContextLimits().fit_window(1_000_000).compacted_at == 72_000
    assert ContextLimits().fit_window(32_000).compacted_at == 24_000
    assert ContextLimits(context=200_000).fit_window(None).compacted_at == 150_000
    assert ContextLimits(trigger=80_000).fit_window(200_000).compacted_at == 80_000
