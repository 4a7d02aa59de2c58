from pathlib import Path

import anyio
import pytest

from agentflow.core.messages import Reply, ToolCall, ToolResult
from agentflow.core.run import CallAnswered, CallsStarted, ReplyReceived, RequestSent, Run
from agentflow.loop.agent import Agent, note, open_run
from agentflow.loop.run import continue_run, settle_calls
from agentflow.store.journal import RunFile, load_run
from tests.unit.loop.stage import Stage, script, submit, turn


def begun(agent: Agent, *names: str, started: tuple[str, ...]) -> Run:
    """Return a run whose process died after these calls had begun."""
    calls = tuple(ToolCall(id=name, name=name, input={"word": "x"}) for name in names)
    run = note(agent, open_run(agent, "do it"), RequestSent(turn=1))
    run = note(agent, run, ReplyReceived(reply=Reply(parts=calls)))
    return note(agent, run, CallsStarted(calls=started))


@pytest.mark.parametrize(
    ("started", "settled"),
    [
        (("Change",), ["Change"]),
        (("Look",), []),
        (("Look", "Change"), ["Change"]),
        (("Nothing",), []),
        ((), []),
    ],
)
def test_a_call_that_could_have_changed_something_is_not_made_again(
    stage: Stage, started: tuple[str, ...], settled: list[str]
) -> None:
    agent = stage.agent(script())
    settle_calls(agent, begun(agent, "Look", "Change", "Nothing", started=started))
    assert [result.call_id for result in stage.results] == settled
    assert all(result.is_error and "interrupted" in result.content for result in stage.results)
    assert stage.spans == []


def test_a_call_that_has_its_answer_keeps_it(stage: Stage) -> None:
    agent = stage.agent(script())
    run = begun(agent, "Change", "Refusing", started=("Change",))
    run = note(agent, run, CallAnswered(result=ToolResult(call_id="Change", content="changed x")))
    settle_calls(agent, run.replace(started=("Change", "Refusing")))
    assert [(result.call_id, result.is_error) for result in stage.results] == [
        ("Change", False),
        ("Refusing", True),
    ]


def test_the_run_goes_on_after_an_interrupted_call(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    agent = stage.agent(script(turn(), submit()), RunFile(path, lambda _: None))
    begun(agent, "Change", "Look", started=("Change",))
    loaded = load_run(path)
    assert loaded is not None
    run = anyio.run(continue_run, agent, loaded, None)
    assert run.submitted
    assert load_run(path) == run
    assert [span.word for span in stage.spans] == ["x"]
