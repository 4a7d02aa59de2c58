from pathlib import Path

import anyio
import pytest

from agentflow.core.errors import ConfigError, InvalidFile, ModelRefused, ModelUnavailable
from agentflow.core.messages import Message, Reply, Request, Speaker, Stop, Text, ToolCall, Usage
from agentflow.model.scripted import Entry, Match, ScriptedCall, ScriptedModel, Turn, load_script
from agentflow.model.tiers import choose_model_id, find_tier


def asked(run: int = 1, turns: int = 0, said: str = "do it", **changes: object) -> Request:
    told = Message(speaker=Speaker.USER, parts=(Text(text=said),))
    replied = Message(speaker=Speaker.ASSISTANT, parts=(Text(text="ok"),))
    request = Request(
        role="implementer",
        agent="builder",
        run=run,
        iteration=1,
        model="model-1",
        system="You build.",
        tools=(),
        messages=(told, *[replied, told] * turns),
        replies=turns,
    )
    return request.replace(**changes)


def entry(text: str, **match: object) -> Entry:
    return Entry(turns=(Turn(text=text), Turn(text=f"{text} again")), match=Match().replace(**match))


def said(model: ScriptedModel, request: Request) -> str:
    reply = anyio.run(model.complete, request)
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({}, True),
        ({"role": "implementer"}, True),
        ({"role": "planner"}, False),
        ({"agent": "builder"}, True),
        ({"agent": "implementer"}, False),
        ({"iteration": 1}, True),
        ({"iteration": 2}, False),
        ({"contains": "do it"}, True),
        ({"contains": "You build"}, True),
        ({"contains": "nothing"}, False),
        ({"role": "implementer", "iteration": 2}, False),
    ],
)
def test_an_entry_plays_for_the_runs_it_matches(match: dict[str, object], fits: bool) -> None:
    assert said(ScriptedModel("s", (entry("hit", **match),)), asked()) == ("hit" if fits else "")


def test_entries_are_tried_in_order_and_used_up() -> None:
    model = ScriptedModel("s", (entry("other", role="planner"), entry("first"), entry("second")))
    assert [said(model, asked(run)) for run in (1, 2, 3)] == ["first", "second", ""]
    assert said(model, asked(4, role="planner")) == "other"


def test_a_run_stays_with_its_entry() -> None:
    model = ScriptedModel("s", (entry("a"), entry("b")))
    assert said(model, asked(1)) == "a"
    assert said(model, asked(2)) == "b"
    assert said(model, asked(1, turns=1)) == "a again"


def test_equal_entries_are_used_one_by_one() -> None:
    model = ScriptedModel("s", (entry("a"), entry("a")))
    assert [said(model, asked(run)) for run in (1, 2, 3)] == ["a", "a", ""]


def test_the_turn_follows_from_the_request_so_that_asking_again_gives_the_same() -> None:
    model = ScriptedModel("s", (entry("a"),))
    assert said(model, asked(turns=1)) == "a again"
    assert said(model, asked(turns=0)) == "a"


def test_after_the_last_turn_comes_an_empty_final_one() -> None:
    model = ScriptedModel("s", (entry("a"),))
    assert anyio.run(model.complete, asked(turns=2)) == Reply(parts=(), model="model-1")


def test_an_entry_that_an_earlier_process_played_is_not_played_again() -> None:
    model = ScriptedModel("s", (entry("a"), entry("b")))
    model.recall(asked(1))
    assert said(model, asked(2)) == "b"


def test_calls_have_ids_of_their_own_and_the_usage_of_the_script() -> None:
    turn = Turn(
        text="t",
        tools=(ScriptedCall(name="Read", input={"a": 1}), ScriptedCall(name="Read")),
        usage=Usage(input=900, output=20),
    )
    reply = anyio.run(ScriptedModel("s", (Entry(turns=(turn,)),)).complete, asked(3))
    assert reply.parts == (
        Text(text="t"),
        ToolCall(id="s3-1-1", name="Read", input={"a": 1}),
        ToolCall(id="s3-1-2", name="Read", input={}),
    )
    assert (reply.stop, reply.usage, reply.model) == (
        Stop.TOOL_USE, Usage(input=900, output=20), "model-1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelRefused), (401, ModelRefused), (404, ModelRefused), (408, ModelUnavailable),
        (429, ModelUnavailable), (500, ModelUnavailable), (529, ModelUnavailable), (600, ModelRefused),
    ],
)  # fmt: skip
def test_an_error_of_a_provider_is_raised(status: int, kind: type[Exception]) -> None:
    model = ScriptedModel("s", (Entry(turns=(Turn(error=status),)),))
    with pytest.raises(kind, match=str(status)):
        anyio.run(model.complete, asked())


def test_each_reply_waits_for_its_delay() -> None:
    model = ScriptedModel("s", (Entry(turns=(Turn(text="a"),), delay=0.2),))

    async def timed() -> float:
        begin = anyio.current_time()
        await model.complete(asked())
        return anyio.current_time() - begin

    assert 0.2 <= anyio.run(timed) < 20


def test_any_task_is_taken() -> None:
    assert ScriptedModel("s", ()).explain_refusal("anything") is None


def test_a_script_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(
        "- match: {role: implementer, iteration: 1}\n  delay: 0.5\n  turns:\n"
        '    - text: "no"\n      tools: [{name: Edit, input: {file_path: a, replace_all: true}}]\n'
        "      usage: {input: 900, output: 20}\n    - error: 529\n"
    )
    model = load_script(str(path))
    assert model.name == f"script:{path}"
    reply = anyio.run(model.complete, asked())
    assert reply.parts[1] == ToolCall(id="s1-1-1", name="Edit", input={"file_path": "a", "replace_all": True})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- turns: [{txt: a}]\n", "txt"),
        ("- match: {rule: a}\n  turns: []\n", "rule"),
        ("- {}\n", "turns"),
        ("turns: []\n", "expected a list"),
        ("- turns: [\n", "script.yaml:"),
        ("- turns: [{error: many}]\n", "turns[0].error"),
    ],
)
def test_a_script_that_is_wrong_names_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(InvalidFile) as caught:
        load_script(str(path))
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_empty_script_plays_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("")
    assert said(load_script(str(tmp_path / "s")), asked()) == ""


def test_a_script_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the script"):
        load_script(str(tmp_path / "nowhere"))
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(InvalidFile, match="is not UTF-8 text"):
        load_script(str(tmp_path / "bytes"))


@pytest.mark.parametrize(
    ("named", "tier_name"),
    [
        ("opus", "deep"),
        ("sonnet", "fast"),
        ("haiku", "fast"),
        ("deep", "deep"),
        ("fast", "fast"),
        ("my-1", "my-1"),
    ],
)
def test_a_name_of_a_public_role_file_is_a_tier(named: str, tier_name: str) -> None:
    assert find_tier(named) == tier_name


@pytest.mark.parametrize("named", ["opus", "deep"])
def test_one_line_of_the_settings_changes_a_tier(named: str) -> None:
    assert choose_model_id(named, {"deep": "mine"}) == "mine"
    assert choose_model_id(named, {"fast": "mine"}) == choose_model_id("deep", {}) != "mine"


def test_a_full_id_stands_for_itself() -> None:
    assert choose_model_id("vendor-model-9", {"deep": "mine"}) == "vendor-model-9"


def test_the_shipped_tiers_differ() -> None:
    assert choose_model_id("deep", {}) != choose_model_id("fast", {})
