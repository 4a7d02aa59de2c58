"""agentflow inside an editor, driven by the official client of the Agent Client Protocol."""

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import acp
import anyio
import anyio.to_thread
import pytest
from acp import schema

from agentflow.store.sessions import create_session, save_session
from tests.support import play
from tests.support.messages_server import Plays, serving, text, use
from tests.support.repo import NewRepo, Repo, eventually

Drive = Callable[[acp.Agent, "Editor"], Awaitable[None]]


class Editor:
    """An editor without a screen: it keeps what it is shown and answers as it is told."""

    def __init__(self, choice: str = "yes") -> None:
        self.choice = choice
        self.shown: list[Any] = []
        self.asked: list[tuple[schema.ToolCallUpdate, list[schema.PermissionOption]]] = []

    def on_connect(self, conn: acp.Agent) -> None:
        """Hear that the agent is there."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        assert session_id
        self.shown.append(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        assert session_id
        self.asked.append((tool_call, options))
        if self.choice not in {option.option_id for option in options}:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.choice)
        return schema.RequestPermissionResponse(outcome=chosen)

    def of(self, kind: type[Any]) -> list[Any]:
        """Return what was shown of one kind."""
        return [update for update in self.shown if isinstance(update, kind)]

    @property
    def text(self) -> str:
        return "".join(update.content.text for update in self.of(schema.AgentMessageChunk))


def drive(
    repo: Repo, model: str, steps: Drive, editor: Any, more: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Start the agent as an editor does, and take these steps."""

    async def run() -> None:
        env = {**repo.environment, "AGENTFLOW_MODEL": model, **more}
        words = ("-P", "-m", "agentflow", "acp")
        async with acp.spawn_agent_process(editor, sys.executable, *words, env=env, cwd=repo.root) as (
            agent,
            _,
        ):
            answered = await agent.initialize(protocol_version=1)
            assert answered.protocol_version == 1
            await steps(agent, editor)

    anyio.run(run)


def text_of(said: str) -> list[Any]:
    return [acp.text_block(said)]


def test_an_editor_sees_each_step_approves_a_call_and_goes_on_from_the_task(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.CALC), Editor()
    (repo.home / ".claude").mkdir()
    rules = {"permissions": {"ask": ["Bash(touch *)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(rules), "utf-8")
    touched = play.turn(play.call("Bash", command="touch made", description="d"), text="a file \x1b[31mfirst")
    model = repo.scripted(play.mending(touched, evidence="ev-0003"))
    ends: list[str] = []
    codes: list[str] = []
    marks: list[int] = []

    async def steps(agent: acp.Agent, editor: Editor) -> None:
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])
        link = schema.ResourceContentBlock(type="resource_link", name="c", uri=f"file://{repo.root}/calc.py")
        said = [*text_of("let add return the sum, see"), link]
        ends.append((await agent.prompt(prompt=said, session_id=session.session_id)).stop_reason)
        codes.append(repo.state()["status"])
        repo.scripted(play.crew(*play.edit("calc.py", "2 * a", "a * 2"), play.submit("calc.py")))
        follow = text_of("now also let double multiply from the right")
        ends.append((await agent.prompt(prompt=follow, session_id=session.session_id)).stop_reason)
        found = await agent.list_sessions(cwd=str(repo.root))
        codes.append(found.sessions[0].title or "")
        marks.append(len(editor.shown))
        await agent.load_session(cwd=str(repo.root), session_id=session.session_id, mcp_servers=[])

    drive(repo, model, steps, editor)

    assert ends == ["end_turn", "end_turn"]
    assert codes == ["verified", "let add return the sum, see `calc.py`"]
    (asked,) = editor.asked
    assert "touch made" in asked[0].model_dump_json()
    assert [option.kind for option in asked[1]] == ["allow_once", "allow_always", "reject_once"]
    # what was told before the question is not told again, and the call that asked is the one that ends
    assert editor.text.count("first\n") == 1
    begun = [one.tool_call_id for one in editor.of(schema.ToolCallStart)]
    assert len(begun) == len({*begun})
    assert asked[0].tool_call_id in begun
    assert {entry.status for entry in editor.of(schema.AgentPlanUpdate)[-1].entries} == {"completed"}
    calls = editor.of(schema.ToolCallStart)
    (changed, _) = (one for one in calls if one.kind == "edit" and one.content)
    assert (changed.content[0].old_text, changed.content[0].new_text) == ("a - b", "a + b")
    assert changed.locations[0].path == str(repo.root / "calc.py")
    ended = {update.tool_call_id for update in editor.of(schema.ToolCallProgress)}
    assert {one.tool_call_id for one in calls if one.status == "in_progress"} <= ended
    assert any(one.kind == "execute" and one.title.startswith("tests") for one in calls)
    assert "verified: 1 failing check now passes" in editor.text
    assert "\x1b" not in editor.text
    # the session taken up again tells both messages, and how each task ended
    editor.shown = editor.shown[marks[0] :]
    told = [one.content.text for one in editor.of(schema.UserMessageChunk)]
    assert told == ["let add return the sum, see `calc.py`", "now also let double multiply from the right"]
    assert editor.text.count("verified") >= 2
    assert f'"follows":"{repo.tasks[0].name}"' in (repo.tasks[1] / "events.jsonl").read_text("utf-8")
    assert "let add return the sum" in repo.run("sessions").out


def test_a_session_is_taken_up_although_a_task_of_it_was_removed(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.QUICK), Editor()
    saved = create_session().add_task("20260102T030405Z-gone", "fix it")
    save_session(repo.root, saved)

    async def steps(agent: acp.Agent, _: Editor) -> None:
        await agent.load_session(cwd=str(repo.root), session_id=saved.session_id, mcp_servers=[])

    drive(repo, "repair", steps, editor)
    assert [one.content.text for one in editor.of(schema.UserMessageChunk)] == ["fix it"]
    assert editor.text == "agentflow: there is no task in this repository\n"


def test_a_call_that_the_editor_denies_or_leaves_alone_is_not_made(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.QUICK), Editor("nothing")
    (repo.home / ".claude").mkdir()
    rules = {"permissions": {"ask": ["Bash(touch *)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(rules), "utf-8")
    model = repo.scripted(play.mending(play.turn(play.call("Bash", command="touch made", description="d"))))

    async def steps(agent: acp.Agent, editor: Editor) -> None:
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])
        await agent.prompt(prompt=text_of("let add return the sum"), session_id=session.session_id)
        assert repo.state()["status"] == "suspended"
        assert "agentflow approve" in editor.text
        pending = repo.state()["pending"][0]["id"]
        assert repo.run("deny", pending, "--reason", "no files").code == 0
        with pytest.raises(acp.RequestError) as unknown:
            await agent.prompt(prompt=text_of("x"), session_id="unknown")
        assert "not found" in str(unknown.value)

    drive(repo, model, steps, editor)
    assert not (repo.root / "made").exists()


def test_a_cancelled_prompt_ends_as_cancelled_and_its_task_can_be_resumed(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    script = play.mending()
    slow = [{**entry, "delay": 30} if entry["match"]["role"] == "implementer" else entry for entry in script]
    model = repo.scripted(slow)

    async def steps(agent: acp.Agent, _: Editor) -> None:
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])

        async def cancel() -> None:
            await anyio.to_thread.run_sync(
                eventually, lambda: repo.events("RunStarted")[-1]["role"] == "implementer"
            )
            await agent.cancel(session_id=session.session_id)

        async with anyio.create_task_group() as group:
            group.start_soon(cancel)
            reply = await agent.prompt(
                prompt=text_of("let add return the sum"), session_id=session.session_id
            )
            assert reply.stop_reason == "cancelled"

    drive(repo, model, steps, Editor())
    assert repo.state()["ending"]["exit_code"] == 143
    assert repo.run("resume", "--model", repo.scripted(script)).code == 0


def test_what_cannot_be_done_is_said_in_one_message(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.QUICK), Editor()
    outside = repo.home / "plain"
    outside.mkdir()

    async def steps(agent: acp.Agent, editor: Editor) -> None:
        with pytest.raises(acp.RequestError) as refused:
            await agent.new_session(cwd=str(outside), mcp_servers=[])
        assert "git" in json.dumps(refused.value.data)
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])
        reply = await agent.prompt(prompt=text_of("let add return the sum"), session_id=session.session_id)
        assert reply.stop_reason == "end_turn"
        assert "nothing.yaml" in editor.text

    drive(repo, f"script:{repo.home}/nothing.yaml", steps, editor)
    assert not repo.tasks


def test_a_person_chooses_mode_and_model_and_allows_a_call_for_good(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.QUICK), Editor("always")
    (repo.home / ".claude").mkdir()
    rules = {"permissions": {"ask": ["Bash(touch *)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(rules), "utf-8")
    touched = play.turn(play.call("Bash", command="touch made", description="d"))
    seen: dict[str, Any] = {}

    async def steps(agent: acp.Agent, editor: Editor) -> None:
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])
        assert session.modes is not None
        seen["modes"] = [mode.id for mode in session.modes.available_modes]
        name = session.session_id
        model = repo.scripted(play.mending(touched, touched, evidence="ev-0004"))
        shown = await agent.set_config_option(config_id="model", session_id=name, value=model)
        assert shown is not None
        seen["model"] = shown.config_options[1].current_value == model
        await agent.set_session_mode(session_id=name, mode_id="ask")
        with pytest.raises(acp.RequestError):
            await agent.set_session_mode(session_id=name, mode_id="nonsense")
        await agent.prompt(prompt=text_of("let add return the sum"), session_id=name)
        seen["asked"] = (repo.state()["status"], repo.diff())
        await agent.set_session_mode(session_id=name, mode_id="plan")
        editor.choice = "no"
        await agent.prompt(prompt=text_of("let add return the sum"), session_id=name)
        await agent.prompt(prompt=text_of("/resume"), session_id=name)
        seen["planned"] = repo.diff()
        editor.choice = "always"
        await agent.prompt(prompt=text_of("A"), session_id=name)

    drive(repo, "nothing", steps, editor)
    assert seen == {
        "modes": ["ask", "plan", "change"],
        "model": True,
        "asked": ("answered", ""),
        "planned": "",
    }
    titles = [call.title for call, _ in editor.asked]
    assert titles == ["Carry out this plan?", "Carry out this plan?", "approval: Bash"]
    assert "+    return a + b" in repo.diff()


def test_text_is_shown_as_it_comes_and_once(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.QUICK), Editor()
    found = use("SubmitFindings", {"summary": "it adds", "findings": [], "open_questions": []})

    async def steps(agent: acp.Agent, _: Editor) -> None:
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])
        await agent.prompt(prompt=text_of("how does calc.py add?"), session_id=session.session_id)

    with serving(Plays((text("I looked at it."), found))) as server:
        address = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "k"}
        drive(repo, "anthropic", steps, editor, address)
    assert editor.text.count("I looked at it.") == 1
    assert editor.text.count("it adds") == 1
    assert len(editor.of(schema.AgentMessageChunk)) > 2


def test_a_question_is_answered_by_an_option_or_by_the_next_message(new_repo: NewRepo) -> None:
    repo, editor = new_repo(play.QUICK), Editor("A")
    options = [{"label": "the first", "description": "d"}, {"label": "the second", "description": "d"}]
    asks = play.turn(
        play.call("AskUserQuestion", questions=[{"question": "Which numbers?", "options": options}])
    )
    rest = play.mending()
    model = repo.scripted([{**rest[0], "turns": [asks, *rest[0]["turns"]]}, *rest[1:]])

    async def steps(agent: acp.Agent, _: Editor) -> None:
        session = await agent.new_session(cwd=str(repo.root), mcp_servers=[])
        await agent.prompt(prompt=text_of("explain how add works"), session_id=session.session_id)

    drive(repo, model, steps, editor)
    assert [option.name for option in editor.asked[0][1]] == ["the first", "the second"]
    assert repo.runs("explorer")[0].results[0]["content"] == "the first"
