"""An agent of the Agent Client Protocol: each prompt is a task or question in a process of its own."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import acp
import anyio
from acp import helpers, schema

from agentflow import __version__
from agentflow.api.decisions import answer_question, decide_approval
from agentflow.api.slash_commands import load_commands_here
from agentflow.core import events
from agentflow.core.errors import AgentflowError, Exit
from agentflow.core.evidence import Side
from agentflow.core.messages import ToolCall
from agentflow.core.pending import (
    APPROVED,
    DECISION_FORM,
    OWN_WORDS,
    Answer,
    Pending,
    PendingKind,
    Question,
    read_decision_form,
    to_letter,
)
from agentflow.core.record import encode
from agentflow.core.run import ReplyReceived, RunEntry, RunPaused
from agentflow.core.task import GateStatus, Phase, Status
from agentflow.core.tool import Category, Effect, Subject, Tool, list_edits
from agentflow.mcp.own_command import EndedCommand, run_own_command
from agentflow.parse import decode_or_none
from agentflow.redact import make_visible, to_one_line
from agentflow.routing.classify import QUESTION
from agentflow.settings import load_settings
from agentflow.store.journal import read_run_entries
from agentflow.store.reading import find, load_events, parse_event
from agentflow.store.sessions import SavedSession, create_session, find_session, load_sessions, save_session
from agentflow.tools.registry import make_standard_toolbox
from agentflow.view.status import draw_pending
from agentflow.view.tasks import Snapshot, load_snapshot
from agentflow.view.text import PLAIN_TEXT, render
from agentflow.view.verdict import draw_verdict
from agentflow.view.words import Detail
from agentflow.workspace.git import Git, open_repository

_REPLACES = ("old_string", "new_string")
_WRITES = "content"
"""The inputs in which a call says what goes and what comes."""


class Updates:
    """Turns the events of one task into updates; it knows where the route stands and which checks run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tools = {tool.name: tool for tool in make_standard_toolbox().tools}
        self._phases: dict[Phase, schema.PlanEntryStatus] = {}
        self._checks: dict[tuple[str, str, Side], str] = {}
        self.has_streamed = False

    def draw(self, stamped: events.StoredEvent, folder: Path) -> Iterator[helpers.SessionUpdate]:
        match stamped.event:
            case events.Classified() | events.PhaseStarted() | events.PhaseEnded() as event:
                yield self._draw_plan(event)
            case events.Replied() if self.has_streamed:
                self.has_streamed = False
            case events.Replied(text=said) | events.Warned(message=said) if said.strip():
                yield helpers.update_agent_message_text(f"{make_visible(said.strip())}\n\n")
            case events.ToolStarted() | events.ToolBlocked() as event:
                yield self._start_call(event, folder)
            case events.ToolFinished() as event:
                told = to_content(event.summary)
                yield helpers.update_tool_call(event.call_id, status=_to_status(event.is_error), content=told)
            case events.CheckStarted() as event:
                yield self._start_check(event)
            case events.EvidenceRecorded(check=str()) as event:
                yield self._end_check(event)
            case _:
                pass

    def _draw_plan(
        self, event: events.Classified | events.PhaseStarted | events.PhaseEnded
    ) -> helpers.SessionUpdate:
        match event:
            case events.Classified(steps=steps):
                self._phases = {phase: self._phases.get(phase, "pending") for phase in steps}
            case events.PhaseStarted(phase=phase):
                self._phases[phase] = "in_progress"
            case events.PhaseEnded(phase=phase, status=GateStatus.PASSED | GateStatus.SKIPPED):
                self._phases[phase] = "completed"
            case events.PhaseEnded(phase=phase):
                self._phases[phase] = "pending"
        return helpers.update_plan(
            helpers.plan_entry(one.value, status=status) for one, status in self._phases.items()
        )

    def _start_call(
        self, event: events.ToolStarted | events.ToolBlocked, folder: Path
    ) -> helpers.SessionUpdate:
        tool = self._tools.get(event.tool)
        if isinstance(event, events.ToolBlocked):
            return helpers.start_tool_call(
                event.call_id,
                event.tool,
                kind=_choose_kind(tool),
                status="failed",
                content=to_content(event.reason),
            )
        subject = make_visible(event.subject)
        is_file = tool is not None and tool.rule_subject is Subject.PATH
        place = str(self._root / event.subject)
        return helpers.start_tool_call(
            event.call_id,
            f"{event.tool} {subject}".strip(),
            kind=_choose_kind(tool),
            status="in_progress",
            content=self._draw_edit(event, folder) if _choose_kind(tool) == "edit" else None,
            locations=[schema.ToolCallLocation(path=place)] if is_file and event.subject else None,
        )

    def _draw_edit(self, event: events.ToolStarted, folder: Path) -> list[helpers.ToolCallContentVariant]:
        call = _find_call(folder, event.run, event.call_id)
        place, drawn = str(self._root / event.subject), list[helpers.ToolCallContentVariant]()
        for each in list_edits(call.input if call else {}):
            said = {key: make_visible(value) for key, value in each.items() if isinstance(value, str)}
            old, new = (said.get(name) for name in _REPLACES)
            new = said.get(_WRITES) if new is None else new
            drawn += [] if new is None else [helpers.tool_diff_content(place, new, old)]
        return drawn

    def _start_check(self, event: events.CheckStarted) -> helpers.SessionUpdate:
        call_id = f"check-{len(self._checks) + 1}"
        self._checks[event.check, event.command, event.code] = call_id
        before = " before the change" if event.code is Side.BASE else ""
        title = f"{event.check}{before}: {make_visible(event.command)}"
        return helpers.start_tool_call(call_id, title, kind="execute", status="in_progress")

    def _end_check(self, event: events.EvidenceRecorded) -> helpers.SessionUpdate:
        key = (event.check or "", event.command, event.code)
        told = to_content(f"{event.evidence}: {event.summary}")
        status = _to_status(event.exit_code != 0)
        if call_id := self._checks.get(key):
            return helpers.update_tool_call(call_id, status=status, content=told)
        title = f"{event.check}: {make_visible(event.command)}"
        return helpers.start_tool_call(event.evidence, title, kind="execute", status=status, content=told)


def _choose_kind(tool: Tool | None) -> schema.ToolKind:
    if tool is None or tool.category in (Category.STATE, Category.ASK, Category.AGENT):
        return "other" if tool is None else "think"
    if tool.category is Category.NET:
        return "fetch"
    match tool.effect:
        case Effect.EXECUTE:
            return "execute"
        case Effect.WRITE:
            return "edit"
        case Effect.READ:
            return "read" if tool.rule_subject is Subject.PATH else "search"


def _to_status(is_error: bool) -> schema.ToolCallStatus:
    return "failed" if is_error else "completed"


def to_content(text: str) -> list[helpers.ToolCallContentVariant] | None:
    return [helpers.tool_content(helpers.text_block(make_visible(text)))] if text else None


def find_waiting_call(folder: Path, pending_id: str) -> str | None:
    """Return the id of the call that a pending item is about; None where it is about no call."""
    found = None
    for entry in _read_entries(folder, "*.jsonl", b'"RunPaused"'):
        if isinstance(entry, RunPaused) and entry.pending.id == pending_id and not entry.inside:
            found = entry.call_id
    return found


def _find_call(folder: Path, run: int, call_id: str) -> ToolCall | None:
    with suppress(OSError, AgentflowError):  # the call is shown without its diff
        for entry in _read_entries(folder, f"{run}-*.jsonl", b'"ReplyReceived"', call_id.encode()):
            parts = entry.reply.parts if isinstance(entry, ReplyReceived) else ()
            calls = (part for part in parts if isinstance(part, ToolCall))
            return next((call for call in calls if call.id == call_id), None)
    return None


def _read_entries(folder: Path, names: str, *signs: bytes) -> Iterator[RunEntry]:
    for path in (folder / "runs").glob(names):
        yield from read_run_entries(path, *signs)


_VIA = "in the editor"
_YES, _NO, _ALWAYS = "yes", "no", "always"
_RESUME = "resume"
_MODE, _MODEL = "mode", "model"
_PLAN, _CHANGE = "plan", "change"
_MODES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ask": ("Answers questions and changes no file", ("task", "--class", QUESTION)),
    _PLAN: ("Shows a plan and changes nothing until you agree", ("plan",)),
    _CHANGE: ("Changes files and verifies the result", ("task",)),
}
"""What each mode says of itself, and the command of its tasks."""
_OWN_MODEL = "as configured"
_CHOICES = (
    ("Allow", _YES, "allow_once"),
    ("Allow this call from now on", _ALWAYS, "allow_always"),
    ("Deny", _NO, "reject_once"),
)
_MOST_SHOWN = 200
"""Characters of a message in the list of sessions."""


class _Chat:
    def __init__(self, git: Git, saved: SavedSession, model: str) -> None:
        self.git = git
        self.saved = saved
        self.chosen = {_MODE: _CHANGE, _MODEL: model}
        self.allowed: set[str] = set()
        """The calls that a person always allows, by `Pending.identity`."""
        self.work: anyio.CancelScope | None = None

    @property
    def modes(self) -> schema.SessionModeState:
        listed = [
            schema.SessionMode(id=name, name=name, description=said) for name, (said, _) in _MODES.items()
        ]
        return schema.SessionModeState(current_mode_id=self.chosen[_MODE], available_modes=listed)

    @property
    def options(self) -> list[Any]:
        settings = load_settings(os.environ)
        named = (ids if isinstance(ids, str) else ids[0] for ids in settings.models.values())
        models = dict.fromkeys((_OWN_MODEL, self.chosen[_MODEL], "anthropic", *named, "repair"))
        offered: dict[str, dict[str, str | None]] = {
            _MODE: {name: said for name, (said, _) in _MODES.items()},
            _MODEL: dict.fromkeys(models),
        }
        return [
            schema.SessionConfigOptionSelect(
                id=name,
                name=name.capitalize(),
                category=name,  # type: ignore[arg-type]  # both are categories of the protocol
                type="select",
                current_value=self.chosen[name],
                options=[
                    schema.SessionConfigSelectOption(value=value, name=value, description=said)
                    for value, said in values.items()
                ],
            )
            for name, values in offered.items()
        ]

    def add_task(self, task_id: str, text: str) -> None:
        """Record a task that the session began, so that `agentflow --continue` knows it too."""
        if task_id not in self.saved.tasks:
            self.saved = self.saved.add_task(task_id, to_one_line(text, _MOST_SHOWN))
            save_session(self.git.root, self.saved)

    def load_last(self) -> Snapshot | None:
        return load_snapshot(find(self.git.root, self.saved.tasks[-1])) if self.saved.tasks else None


class EditorAgent:
    """The methods that an editor calls, by the names of the protocol."""

    def __init__(self, model: str | None = None) -> None:
        self._model = model or _OWN_MODEL
        self._chats: dict[str, _Chat] = {}
        self._client: acp.Client
        self._shows_forms = False

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(
        self, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """Say what we can do; version 1 is the only one that we speak."""
        asks = client_capabilities.elicitation if client_capabilities else None
        self._shows_forms = asks is not None and asks.form is not None
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
            ),
            agent_info=schema.Implementation(name="agentflow", title="agentflow", version=__version__),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        chat = _Chat(_open(cwd), create_session(), self._model)
        self._chats[chat.saved.session_id] = chat
        await self._offer_commands(chat)
        return schema.NewSessionResponse(
            session_id=chat.saved.session_id, modes=chat.modes, config_options=chat.options
        )

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        """Take an earlier session up: tell again what was said and how each task ended."""
        git = _open(cwd)
        try:
            chat = _Chat(git, find_session(git.root, session_id), self._model)
        except AgentflowError as error:
            raise acp.RequestError.invalid_params({"message": str(error)}) from None
        self._chats[session_id] = chat
        for task_id, said in zip(chat.saved.tasks, chat.saved.said, strict=True):
            await self._client.session_update(session_id, helpers.update_user_message_text(said))
            try:
                ended = _describe_end(git, load_snapshot(find(git.root, task_id)))
            except AgentflowError as error:
                ended = f"agentflow: {error}\n"
            await self._say(chat, ended)
        await self._offer_commands(chat)
        return schema.LoadSessionResponse(modes=chat.modes, config_options=chat.options)

    async def set_session_mode(
        self, mode_id: str, session_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        await self.set_config_option(_MODE, session_id, mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        chat = self._require_chat(session_id)
        is_offered = config_id == _MODEL or (config_id == _MODE and value in _MODES)
        if not is_offered or not isinstance(value, str):
            raise acp.RequestError.invalid_params({"message": f"{config_id} cannot be {value}"})
        await self._switch(chat, config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=chat.options)

    async def _switch(self, chat: _Chat, name: str, value: str) -> None:
        chat.chosen[name] = value
        if name == _MODE:
            mode = schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=value)
            await self._show(chat, mode)
        shown = schema.ConfigOptionUpdate(session_update="config_option_update", config_options=chat.options)
        await self._show(chat, shown)

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        if cwd is None:
            return schema.ListSessionsResponse(sessions=[])
        found = load_sessions(_open(cwd).root).readable
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=one.session_id,
                    cwd=cwd,
                    title="; ".join(one.said[:1]),
                    updated_at=one.started_at,
                )
                for one in found
            ]
        )

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> schema.PromptResponse:
        chat = self._require_chat(session_id)
        if chat.work is not None:
            raise acp.RequestError.invalid_request({"message": "this session is at work; cancel it first"})
        chat.work = anyio.CancelScope()
        with chat.work as scope:
            try:
                await self._work(chat, _to_text(prompt, chat.git.root))
            except AgentflowError as error:
                await self._say(chat, f"agentflow: {error}" + (f"\n{error.hint}" if error.hint else ""))
            finally:
                chat.work = None
        return schema.PromptResponse(stop_reason="cancelled" if scope.cancel_called else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if (chat := self._chats.get(session_id)) and chat.work:
            chat.work.cancel()

    def _require_chat(self, session_id: str) -> _Chat:
        if session_id not in self._chats:
            raise acp.RequestError.resource_not_found(session_id)
        return self._chats[session_id]

    async def _offer_commands(self, chat: _Chat) -> None:
        own = schema.AvailableCommand(name=_RESUME, description="continue the last task of this session")
        offered = [
            schema.AvailableCommand(name=one.called, description=make_visible(one.description))
            for one in load_commands_here(chat.git.root).all
        ]
        await self._show(chat, helpers.update_available_commands([own, *offered]))

    async def _show(self, chat: _Chat, update: helpers.SessionUpdate | schema.ConfigOptionUpdate) -> None:
        await self._client.session_update(chat.saved.session_id, update)

    async def _say(self, chat: _Chat, text: str) -> None:
        await self._show(chat, helpers.update_agent_message_text(make_visible(text)))

    async def _work(self, chat: _Chat, text: str) -> None:
        before = chat.load_last()
        is_resumed = text == f"/{_RESUME}"
        is_answer = before and before.state.pending and before.state.pending[0].kind not in APPROVED
        if before and is_answer and not is_resumed:
            answer_question(chat.git, before.folder, (text,))
        if before and (is_answer or is_resumed):
            ended = await self._run(chat, ("resume", before.state.task_id))
        else:
            follows = ("--follows", chat.saved.last) if chat.saved.last else ()
            words = _MODES[chat.chosen[_MODE]][1]
            ended = await self._run(chat, (*words, *follows, "-"), text)
        while ended.code == Exit.SUSPENDED and (last := chat.load_last()):
            if not (last.state.pending and await self._settle(chat, last)):
                break
            ended = await self._run(chat, ("resume", last.state.task_id))
        last = chat.load_last()
        if last is None or last.state.ending is None or last.state.ending.exit_code != ended.code:
            await self._say(chat, "\n".join(ended.told))  # it did not begin: a message says why
        else:
            await self._say(chat, _describe_end(chat.git, last))

    async def _run(self, chat: _Chat, words: tuple[str, ...], text: str = "") -> EndedCommand:
        updates = Updates(chat.git.root)
        is_new = words[0] != "resume"
        told = 0
        for earlier in () if is_new else load_events(find(chat.git.root, words[1])):
            told = earlier.seq
            tuple(updates.draw(earlier, find(chat.git.root, words[1])))

        async def show(line: str) -> None:
            raw = decode_or_none(line) or {}
            if raw.get("type") == "TextStreamed":
                updates.has_streamed = True
                await self._say(chat, raw["text"])
                return
            stamped = parse_event(line.encode())
            if stamped and stamped.seq <= told:
                return
            task_id = raw.get("task_id", "")
            if is_new:
                chat.add_task(task_id, text)
            for update in updates.draw(stamped, find(chat.git.root, task_id)) if stamped else ():
                own = {}  # a session has many tasks, whose calls have the same ids
                if isinstance(update, schema.ToolCallStart | schema.ToolCallProgress):
                    own = {"tool_call_id": f"{task_id}/{update.tool_call_id}"}
                await self._show(chat, update.model_copy(update=own))

        model = ("--model", chat.chosen[_MODEL]) if chat.chosen[_MODEL] != _OWN_MODEL else ()
        argv = (words[0], "-q", "--plain", "--stream", "--events=-", *model, *words[1:])
        return await run_own_command(chat.git.root, argv, text, on_output=show)

    async def _agree_on_plan(self, chat: _Chat, task_id: str, item: Pending) -> bool:
        """Ask the person about a plan; where they do not agree, their next message corrects it."""
        call = schema.ToolCallUpdate(
            tool_call_id=f"{task_id}/{item.id}",
            title="Carry out this plan?",
            kind="switch_mode",
            status="pending",
            content=to_content(str(item.input["plan"])),
        )
        choices = (("Carry it out", _YES, "allow_once"), ("Not now", _NO, "reject_once"))
        if await self._request(chat, call, choices) in (None, _NO):
            said = "Nothing was changed. Say in the next message what should be different; "
            await self._say(chat, f"\n{said}`/{_RESUME}` shows the plan again.\n")
            return False
        answer_question(chat.git, find(chat.git.root, task_id), (item.default,))
        await self._switch(chat, _MODE, _CHANGE)
        return True

    async def _settle(self, chat: _Chat, last: Snapshot) -> bool:
        """Ask the person about everything that a task waits for; False where something stays undecided."""
        for item in last.state.pending:
            if item.kind in APPROVED:
                takes_form = item.kind is PendingKind.SURFACE or item.needed > 1
                ask = self._ask_by_form if takes_form else self._ask_about_call
                decision = await ask(chat, last, item)
                if decision is None:
                    return False
                made = decide_approval(chat.git, last.folder, item.id, decision, seen=item.identity)
                if made.approvals_left:
                    how = item.tell_how_to_decide(last.state.task_id)
                    await self._say(chat, f"\n{made.tell()}, in a terminal: `{how}`\n")
                    return False
                continue
            if item.kind is PendingKind.PLAN:
                if not await self._agree_on_plan(chat, last.state.task_id, item):
                    return False
                continue
            words = [await self._ask(chat, item, question) for question in item.questions]
            if not all(words):
                await self._say(chat, "\nAnswer in the next message.")
                return False
            answer_question(chat.git, last.folder, [word for word in words if word])
        return True

    async def _ask_about_call(self, chat: _Chat, _last: Snapshot, item: Pending) -> Answer | None:
        call = item.identity
        said = _YES if call in chat.allowed else await self._choose(chat, item, "", _CHOICES)
        if said is None:
            return None
        if said == _ALWAYS:
            chat.allowed.add(call)
        return Answer(approved=said != _NO, text="denied in the editor" if said == _NO else "", via=_VIA)

    async def _ask_by_form(self, chat: _Chat, last: Snapshot, item: Pending) -> Answer | None:
        """Return a person's decision; an editor may allow calls unasked, and gives no name without a form."""
        text = make_visible(render(draw_pending(last.state.replace(pending=(item,))), PLAIN_TEXT, None))
        if self._shows_forms:
            form = schema.ElicitationSchema.model_validate(DECISION_FORM)
            mode = schema.ElicitationFormSessionMode(session_id=chat.saved.session_id, requested_schema=form)
            said = await self._client.create_elicitation(text, mode)
            filled = said.content if isinstance(said, schema.AcceptElicitationResponse) else None
            if decision := read_decision_form(filled, _VIA):
                return decision
        await self._say(chat, f"\n```text\n{text}```\nDecide in a terminal, then send `/{_RESUME}` here.\n")
        return None

    async def _ask(self, chat: _Chat, item: Pending, question: Question) -> str | None:
        options = tuple(
            (option, to_letter(place), "allow_once")
            for place, option in enumerate(question.options)
            if not option.endswith(OWN_WORDS)
        )
        return await self._choose(chat, item, question.text, options) if options else None

    async def _choose(
        self, chat: _Chat, item: Pending, text: str, options: tuple[tuple[str, str, Any], ...]
    ) -> str | None:
        shown = [
            f"{key}: {value if isinstance(value, str) else encode(value).decode()}"
            for key, value in item.shown_input.items()
        ]
        last = chat.load_last()
        assert last is not None
        call_id = find_waiting_call(last.folder, item.id)
        call = schema.ToolCallUpdate(
            tool_call_id=f"{last.folder.name}/{call_id or item.id}",
            title=make_visible(f"{item.kind}: {text or item.tool or item.id}"),
            status="pending",
            content=to_content("\n".join(shown)),
            raw_input=item.input,
        )
        return await self._request(chat, call, options)

    async def _request(
        self, chat: _Chat, call: schema.ToolCallUpdate, options: tuple[tuple[str, str, Any], ...]
    ) -> str | None:
        offered = [
            schema.PermissionOption(name=make_visible(name), option_id=key, kind=kind)
            for name, key, kind in options
        ]
        reply = await self._client.request_permission(chat.saved.session_id, call, offered)
        said = reply.outcome.option_id if isinstance(reply.outcome, schema.AllowedOutcome) else None
        status: schema.ToolCallStatus = "failed" if said in (None, _NO) else "completed"
        await self._show(chat, helpers.update_tool_call(call.tool_call_id, status=status))
        return said


def _open(cwd: str) -> Git:
    try:
        return open_repository(Path(cwd))
    except AgentflowError as error:
        raise acp.RequestError.invalid_params({"message": str(error)}) from None


def _to_text(prompt: list[Any], root: Path) -> str:
    """Return the text of a prompt; a linked file is named, an embedded one is given with its text."""
    parts = list[str]()
    for block in prompt:
        match block:
            case schema.TextContentBlock(text=text):
                parts.append(text)
            case schema.ResourceContentBlock(uri=uri):
                parts.append(f"`{_name_file(uri, root)}`")
            case schema.EmbeddedResourceContentBlock(
                resource=schema.TextResourceContents(uri=uri, text=text)
            ):
                parts.append(f"\n`{_name_file(uri, root)}`:\n```\n{text}\n```")
            case _:
                parts.append("")
    return " ".join(part.strip(" ") for part in parts).strip()


def _name_file(uri: str, root: Path) -> str:
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    return path.relative_to(root).as_posix() if parts.scheme == "file" and path.is_relative_to(root) else uri


def _describe_end(git: Git, last: Snapshot) -> str:
    state = last.state
    diff = git.make_diff(state.base_tree, state.tree) if state.base_tree and state.tree else ""
    text = render(draw_verdict(last, diff, detail=Detail.BRIEF), PLAIN_TEXT, None).strip()
    return f"\n{text}\n" if state.status is Status.ANSWERED else f"\n```text\n{text}\n```\n"


def serve_editor(model: str | None) -> None:
    anyio.run(acp.run_agent, EditorAgent(model))  # type: ignore[arg-type]  # it calls what is there
