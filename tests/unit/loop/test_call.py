from pathlib import Path

import anyio
import pytest

from agentflow.core.events import ToolBlocked, ToolStarted
from agentflow.core.messages import DEFAULT_ROOM, Reply, ToolCall
from agentflow.core.role import ToolRule
from agentflow.core.run import RunOutcome
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.loop.run import run_agent
from agentflow.model.scripted import ScriptedCall
from agentflow.store.journal import RunFile, load_run
from agentflow.store.ledger import EvidenceLedger
from agentflow.tools.files import READ
from tests.support.records import an_execution
from tests.unit.loop.stage import CHANGE, Stage, Wanted, a_tool, call, script, submit, turn
from tests.unit.verdict.cases import a_task

TAKES = "takes word, seconds (optional), count (optional), tags (optional)"


def printing(wanted: Wanted, context: ToolContext) -> Output:
    """Print a word."""
    sink = context.shell.outputs / f"{context.call_id}.out"
    execution = an_execution(sink, wanted.word, command=f"echo {wanted.word}")
    return Output(content="printed", execution=execution, clipped=wanted.count > 1)


PRINT = Tool(name="Print", category=Category.SHELL, effect=Effect.EXECUTE, input=Wanted, call=printing)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            call("Nothing"),
            "There is no tool Nothing. Your tools: Look, Change, Broken, Refusing, SubmitChange",
        ),
        (ScriptedCall(name="Peek"), "You do not have Peek. Your tools: Look,"),
        (ScriptedCall(name="SubmitPlan"), "You do not have SubmitPlan. Your tools: Look,"),
        (ScriptedCall(name="Look"), f"object missing required field `word`. Look {TAKES}"),
        (call("Look", word=3.5), f"word: expected `str`, got `float`. Look {TAKES}"),
        (call("Look", count="many"), f"count: expected `int`, got `str`. Look {TAKES}"),
        (call("Look", count=-1), f"count: expected `int` >= 0. Look {TAKES}"),
        (call("Look", colour="red"), f"object contains unknown field `colour`. Look {TAKES}"),
        (call("Broken", "a", seconds=0.05), "Broken failed: KeyError: 'at'"),
        (call("Refusing", "a"), "no a in t"),
    ],
)
def test_what_goes_wrong_is_one_error_result(stage: Stage, wrong: ScriptedCall, said: str) -> None:
    run = stage.play(turn(wrong, call("Look", "after")), submit())
    (result, after) = stage.results[:2]
    assert result.is_error
    assert said in result.content
    assert after.content == "saw after"
    assert run.outcome is RunOutcome.SUBMITTED


def test_every_call_of_a_bad_turn_has_its_own_result(stage: Stage) -> None:
    stage.play(turn(call("Nothing"), ScriptedCall(name="Look"), call("Broken")), submit())
    results = stage.results[:3]
    assert all(result.is_error for result in results)
    assert len({result.call_id for result in results}) == 3


def test_a_foreign_tool_is_told_with_its_owner(stage: Stage) -> None:
    stage.play(turn(ScriptedCall(name="Peek")), submit())
    assert [(e.tool, e.role, e.owner) for e in stage.of(ToolBlocked)] == [("Peek", "builder", "explorer")]


def test_a_tool_that_nobody_has_is_told_too(stage: Stage) -> None:
    stage.play(turn(call("Nothing", "a")), submit())
    (blocked,) = stage.of(ToolBlocked)
    assert (blocked.tool, blocked.owner) == ("Nothing", None)
    assert blocked.reason.startswith("There is no tool Nothing. Your tools: Look")


def test_a_tool_outside_the_list_of_the_role_is_refused_at_the_call(stage: Stage) -> None:
    stage.role = stage.role.replace(tools=(ToolRule(tool="Change"),))
    stage.play(turn(call("Look", "a"), call("Change", "b")), submit())
    assert [span.word for span in stage.spans] == ["b"]
    assert [e.tool for e in stage.of(ToolBlocked)] == ["Look"]


def test_a_submission_of_another_part_is_refused(stage: Stage) -> None:
    stage.role = stage.role.replace(part="planner")
    run = stage.play(submit())
    assert run.changes == {}
    assert not run.submitted


def test_a_refused_call_is_never_started(stage: Stage) -> None:
    stage.play(turn(call("Nothing"), ScriptedCall(name="Look")), submit())
    assert [event.tool for event in stage.of(ToolStarted)] == ["SubmitChange"]


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a\0b"])
def test_a_path_that_leads_out_is_an_error_result(stage: Stage, path: str) -> None:
    stage.extra = (READ,)
    stage.role = stage.role.replace(tools=(ToolRule(tool="Read", pattern="**"),))
    stage.play(turn(ScriptedCall(name="Read", input={"file_path": path})), submit())
    assert stage.results[0].is_error


def test_a_pattern_is_held_against_the_path_as_git_spells_it(stage: Stage) -> None:
    (stage.root / "src").mkdir()
    (stage.root / "src/a.py").write_text("secret = 1\n", "utf-8")
    (stage.root / "docs").mkdir()
    (stage.root / "docs/link.py").symlink_to("../src/a.py")
    stage.extra = (READ,)
    stage.role = stage.role.replace(tools=(ToolRule(tool="Read", pattern="docs/**"),))
    paths = ("docs/../src/a.py", "docs/link.py", str(stage.root / "src/a.py"))
    calls = [ScriptedCall(name="Read", input={"file_path": path}) for path in paths]
    stage.play(turn(*calls), submit())
    assert [result.is_error for result in stage.results[:3]] == [True] * 3


def test_a_long_result_is_clipped_and_kept_in_full(stage: Stage) -> None:
    stage.play(turn(call("Look", "x" * 100, count=500)), submit())
    (result, _) = stage.results
    (kept,) = stage.outputs.iterdir()
    assert len(result.content) < DEFAULT_ROOM.result_chars + 200
    assert kept.read_text("utf-8") == f"saw {'x' * 100}" * 500
    assert result.call_id in result.content


def test_a_result_that_just_fits_is_left_alone(stage: Stage) -> None:
    stage.play(turn(call("Look", "x" * (DEFAULT_ROOM.result_chars - 4))), submit())
    assert len(stage.results[0].content) == DEFAULT_ROOM.result_chars
    assert list(stage.outputs.iterdir()) == []


def a_ledger(stage: Stage, root: Path) -> EvidenceLedger:
    (root / "evidence").mkdir()
    stage.extra = (PRINT,)
    return EvidenceLedger(root, a_task(), stage.events.append)


def test_a_command_becomes_evidence_that_an_agent_chose(stage: Stage, tmp_path: Path) -> None:
    stage.ledger = ledger = a_ledger(stage, tmp_path)
    stage.play(turn(call("Print", "a")), submit())
    evidence = ledger.find("ev-0001")
    assert evidence is not None
    assert (evidence.by, evidence.check, evidence.role, evidence.tree_before) == (
        "agent", None, "implementer", None,
    )  # fmt: skip
    assert list(stage.outputs.iterdir()) == []


def test_a_clipped_command_keeps_its_output_under_its_call_id(stage: Stage, tmp_path: Path) -> None:
    stage.ledger = a_ledger(stage, tmp_path)
    stage.play(turn(call("Print", "a", count=2)), submit())
    assert [kept.read_text("utf-8") for kept in stage.outputs.iterdir()] == ["a"]


def reply(*calls: ToolCall) -> Reply:
    return Reply(parts=calls)


def look(call_id: str, word: str, **more: object) -> ToolCall:
    return ToolCall(id=call_id, name="Look", input={"word": word, **more})


SUBMITS = reply(ToolCall(id="s", name="SubmitChange", input=CHANGE))


@pytest.mark.parametrize("call_id", ["../escaped", "sub/../../escaped", "{root}/escaped", "..", "a/b"])
def test_a_call_id_of_a_model_never_leads_out_of_the_outputs(stage: Stage, call_id: str) -> None:
    given = call_id.format(root=stage.outputs.parent)
    run = stage.answer(reply(look(given, "x" * 100, count=500)), SUBMITS)
    outside = [path for path in stage.outputs.parent.rglob("*escaped*") if path.parent != stage.outputs]
    assert outside == []
    assert run.outcome is RunOutcome.SUBMITTED
    assert not stage.results[0].is_error


@pytest.mark.parametrize("name", ["Look", "Change"])
def test_two_calls_of_one_id_are_both_answered(stage: Stage, name: str) -> None:
    twins = [ToolCall(id="c", name=name, input={"word": word}) for word in ("a", "b")]
    run = stage.answer(reply(*twins), SUBMITS)
    assert run.outcome is RunOutcome.SUBMITTED
    assert sorted(span.word for span in stage.spans) == ["a", "b"]


def test_an_id_used_again_leaves_earlier_evidence_as_it_was(stage: Stage, tmp_path: Path) -> None:
    stage.ledger = a_ledger(stage, tmp_path)
    again = [
        reply(ToolCall(id="c", name="Print", input={"word": word, "count": 2}))
        for word in ("first", "second")
    ]
    stage.answer(*again, SUBMITS)
    assert (tmp_path / "evidence/ev-0001.out").read_text("utf-8") == "first"


@pytest.mark.parametrize("odd", ["\udcff", "a\ud800b"])
def test_a_result_with_half_characters_can_be_written_down(stage: Stage, odd: str, tmp_path: Path) -> None:
    """The name of a file need not be text, and a tool that lists it says it as it is."""

    def listing(wanted: Wanted, context: ToolContext) -> Output:
        """List a file whose name is no text."""
        return Output(content=wanted.word + context.task_id + odd)

    stage.extra = (a_tool("List", listing),)
    path = tmp_path / "run.jsonl"
    agent = stage.agent(script(turn(call("List")), submit()), RunFile(path, lambda _: None))
    run = anyio.run(run_agent, agent, "do it")
    assert run.outcome is RunOutcome.SUBMITTED
    assert load_run(path) is not None
