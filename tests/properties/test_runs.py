"""Whatever a model does, a run ends within its bounds, and its file holds all of it."""

import tempfile
from pathlib import Path

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentflow.core.messages import ToolCall
from agentflow.core.run import Run
from agentflow.loop.agent import open_run
from agentflow.loop.next_step import MAX_INVALID_TURNS, Step, choose_next_step
from agentflow.loop.run import NODES
from agentflow.model.scripted import ScriptedCall, Turn
from agentflow.store.journal import RunFile, load_run
from tests.unit.loop.stage import CHANGE, Stage, script

CALLS = st.sampled_from(
    [
        ScriptedCall(name="Look", input={"word": "a"}),
        ScriptedCall(name="Look", input={"word": "b", "tags": ["t"]}),
        ScriptedCall(name="Change", input={"word": "c"}),
        ScriptedCall(name="Broken", input={"word": "d"}),
        ScriptedCall(name="Refusing", input={"word": "é\u2028"}),
        ScriptedCall(name="Nothing"),
        ScriptedCall(name="Look", input={"word": 3}),
        ScriptedCall(name="SubmitChange", input=CHANGE),
        ScriptedCall(name="SubmitChange", input={"summary": ""}),
    ]
)
TEXTS = st.sampled_from(["", "thinking", '```json\n{"summary": "s", "files": ["a"]}\n```', "{"])
TURNS = st.builds(Turn, text=TEXTS, tools=st.lists(CALLS, max_size=4).map(tuple))
LIMITS = st.integers(min_value=1, max_value=4)


def walked(script_turns: list[Turn], root: Path, **limits: int) -> list[tuple[Run, bytes]]:
    """Take each step, and keep the run and the bytes of its file after it."""
    stage = Stage(root, **limits)
    path = root / "1-implementer.jsonl"
    agent = stage.agent(script(*script_turns), RunFile(path, lambda _: None))
    seen: list[tuple[Run, bytes]] = []

    async def walk() -> None:
        run = open_run(agent, "do it")
        while (step := choose_next_step(run, agent.role.limits)) is not Step.END:
            seen.append((run, path.read_bytes()))
            run = await NODES[step](agent, run)
        seen.append((run, path.read_bytes()))

    anyio.run(walk)
    return seen


CALMLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@CALMLY
@given(st.lists(TURNS, max_size=6), LIMITS, LIMITS)
def test_the_file_gives_back_the_run_after_every_step(turns: list[Turn], most: int, calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, (run, written) in enumerate(walked(turns, Path(folder), turns=most, tool_calls=calls)):
            path = Path(folder) / f"{number}.jsonl"
            path.write_bytes(written + b'{"type":"Torn')
            assert load_run(path) == run


@CALMLY
@given(st.lists(TURNS, max_size=8), LIMITS, LIMITS)
def test_a_run_ends_within_its_bounds(turns: list[Turn], most: int, calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = walked(turns, Path(folder), turns=most, tool_calls=calls)[-1][0]
    assert run.outcome is not None
    assert run.tool_calls <= calls
    assert run.turns <= most + 2
    assert run.invalid_turns <= MAX_INVALID_TURNS


@CALMLY
@given(st.lists(TURNS, max_size=6), LIMITS)
def test_every_call_has_its_result_right_after_it(turns: list[Turn], calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = walked(turns, Path(folder), tool_calls=calls)[-1][0]
    for message, after in zip(run.messages, run.messages[1:], strict=False):
        if message.calls:
            assert [part.call_id for part in after.parts if hasattr(part, "call_id")] == [
                call.id for call in message.calls
            ]
    asked = [part.id for message in run.messages for part in message.parts if isinstance(part, ToolCall)]
    assert len(asked) == len(set(asked))
