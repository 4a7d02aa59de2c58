"""`agentflow` alone at a terminal: a session of questions, tasks and follow-ups; and the list of sessions."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import split as split_words
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from agentflow.api.boundary import TaskRequest
from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import hint_for_session, say, say_error, show, suggest, tell_error, tell_result
from agentflow.core.errors import AgentflowError, Exit, InvalidFile, TaskNotFound, UsageError
from agentflow.core.messages import Usage, sum_usage
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.redact import format_count, format_money, list_some, to_one_line
from agentflow.store.reading import find, list_tasks, load_state
from agentflow.store.sessions import (
    SavedSession,
    create_session,
    find_session,
    load_sessions,
    save_session,
)
from agentflow.store.task_file import format_plan
from agentflow.view.status import draw_diff_row
from agentflow.view.text import BLANK, Line, line, tabulate
from agentflow.view.words import RESUMABLE, format_local
from agentflow.workspace.git import Git, open_repository

if TYPE_CHECKING:
    from agentflow.cli.line_editor import LineEditor, Steering

_LAST = "LAST"
PLAN_COMMAND = "/plan"
_HELP = (
    "A message is a question or a task. A task continues the one before: one verdict covers both.",
    "Enter sends, Esc Enter breaks the line, @ completes files.",
    "A working role reads what you type before its next turn.",
    "Shift-Tab plans first: you agree to a plan before anything changes.",
    "Esc or Ctrl-C pauses (go on, correct, stop), twice stops at once.",
)


class Chat(Record):
    """A session as it runs: the repository, what was done, and how it is shown."""

    root: Path
    saved: SavedSession
    run: Callable[[Sequence[str]], int]
    """Runs a command of agentflow and tells its errors."""
    steering: "Steering"
    model: str | None = None
    default_model: str = ""
    around: str = ""
    """The sandbox and the checks, in short."""
    plain: bool = False
    over: int | None = None
    """The exit code of the session, once it is over."""


class SlashCommand(NamedTuple):
    """A command of the session; `run` takes the words after its name."""

    summary: str
    run: Callable[[Chat, list[str]], Chat]


def _summarize_commands(root: Path) -> dict[str, str]:
    """Return the summary of each command: of the session, which win over the user's, and of skills."""
    from agentflow.api.content import load_skills_here
    from agentflow.api.slash_commands import load_commands_here

    skills = {f"/{skill.name}": f"skill: {skill.description}" for skill in load_skills_here(root)[0].all}
    brought = {f"/{command.called}": command.description for command in load_commands_here(root).all}
    ours = {name: row.summary for rows in COMMAND_GROUPS.values() for name, row in rows.items()}
    return {**ours, **brought, **skills, **ours}


def _resume(chat: Chat, words: list[str]) -> Chat:
    from agentflow.cli.task import relaunch

    request = TaskRequest(model=words[0] if words else None, plain=chat.plain)
    return _end_if_terminated(chat, relaunch(chat.root, _require_last(chat), request, chat.steering))


def _end_if_terminated(chat: Chat, code: int) -> Chat:
    return chat.replace(over=code) if code == Exit.TERMINATED else chat


def _run(chat: Chat, *words: str) -> int:
    return chat.run([*words, "-C", str(chat.root)])


def _pass_to(*command: str) -> Callable[[Chat, list[str]], Chat]:
    """Return a command of the session that runs one of agentflow; `_LAST` in it is the last task."""

    def run(chat: Chat, words: list[str]) -> Chat:
        with hint_for_session():
            _run(chat, *(_require_last(chat) if word is _LAST else word for word in command), *words)
        return chat

    return run


def _require_last(chat: Chat) -> str:
    if not chat.saved.tasks:
        raise UsageError("this session has no task yet", hint="type one, or leave with /quit")
    return chat.saved.tasks[-1]


def _recall_unfinished(chat: Chat) -> TaskState | None:
    """Return the last task if it can be continued; None without one and where it cannot be read."""
    try:
        task = load_state(find(chat.root, chat.saved.last)) if chat.saved.last else None
    except AgentflowError:
        return None
    return task if task and (task.status in RESUMABLE or task.active) else None


def _load_last(chat: Chat) -> TaskState:
    return load_state(find(chat.root, _require_last(chat)))


def _begin_anew(chat: Chat, _: list[str]) -> Chat:
    saved = chat.saved.replace(last=None)
    if saved.tasks:
        save_session(chat.root, saved)
    return chat.replace(saved=saved)


def _commit(chat: Chat, words: list[str]) -> Chat:
    code = _run(chat, "commit", _require_last(chat), *words)
    return _begin_anew(chat, words) if code == Exit.VERIFIED else chat


def _undo(chat: Chat, words: list[str]) -> Chat:
    code = _run(chat, "undo", _require_last(chat), *words)
    if code != Exit.VERIFIED or "--dry-run" in words:
        return chat
    before = _load_last(chat).session.follows
    saved = chat.saved.replace(last=before)
    save_session(chat.root, saved)
    return chat.replace(saved=saved)


def _show_diff(chat: Chat, _: list[str]) -> Chat:
    task, diff = _load_last(chat), ""
    if task.base_tree and task.tree:
        diff = open_repository(chat.root).make_diff(task.base_tree, task.tree)
    show(map(draw_diff_row, diff.splitlines() or ["the last task changed no file"]))
    return chat


def _plan(chat: Chat, words: list[str]) -> Chat:
    """Plan a change first; without words, show the plan of the last task."""
    if words:
        return _run_message(chat, " ".join(words), plan_mode=True)
    plan = _load_last(chat).plan
    say(format_plan(plan) if plan else "the last task made no plan")
    return chat


def _show_cost(chat: Chat, _: list[str]) -> Chat:
    spent: list[Usage] = []
    for task_id, said in zip(chat.saved.tasks, chat.saved.said, strict=True):
        try:
            spent.append(load_state(find(chat.root, task_id)).usage)
            told = _describe_usage(spent[-1])
        except AgentflowError:
            told = "cannot be read"
        say(f"  {told:<44} {to_one_line(said, 60)}")
    say(f"{format_count(len(chat.saved.tasks), 'task')}: {_describe_usage(sum_usage(spent))}")
    return chat


def _describe_usage(usage: Usage) -> str:
    cached = f" ({usage.cache_read:,} of them from the cache)" if usage.cache_read else ""
    sent = usage.input + usage.cache_read + usage.cache_write
    return f"{sent:,} in{cached}, {usage.output:,} out, cost {format_money(usage.cost_usd)}"


def _choose_model(chat: Chat, words: list[str]) -> Chat:
    from agentflow.api.models import choose_tiers, list_tier_models
    from agentflow.model.tiers import MODEL_ADVICE, parse_choice
    from agentflow.settings import choose_model_name, load_settings

    settings = load_settings(os.environ)
    name = choose_model_name(words[0] if words else chat.model, settings, os.environ)
    if parse_choice(name).is_live or name == "repair":
        tiers = list_tier_models(name, choose_tiers(settings, name))
        told = ", ".join(f"{tier} {model}" for tier, model in tiers.items())
    else:
        told = "recorded replies, no live model"
    chat = chat.replace(model=words[0]) if words else chat
    say(f"model: {name} ({told})")
    if not words:
        show([line(f"/model NAME chooses another. {MODEL_ADVICE[0].upper()}{MODEL_ADVICE[1:]}", hang=2)])
    return chat


def _show_help(chat: Chat, _: list[str]) -> Chat:
    groups = {
        title: {name: command.summary for name, command in rows.items()}
        for title, rows in COMMAND_GROUPS.items()
    }
    ours = {name for rows in groups.values() for name in rows}
    brought = {name: told for name, told in _summarize_commands(chat.root).items() if name not in ours}
    groups["Yours, the repository's and skills"] = {
        name: to_one_line(told, 100) for name, told in brought.items()
    }
    show(map(line, _HELP))
    for title, rows in groups.items():
        told = (line(f"  {name:<11} {text}", hang=14) for name, text in rows.items())
        show((BLANK, line(title), *told) if rows else ())
    return chat


def _quit(chat: Chat, _: list[str]) -> Chat:
    return chat.replace(over=Exit.VERIFIED)


COMMAND_GROUPS = {
    "Look": {
        "/status": SlashCommand(
            "Show how the last task ended or where it stands.", _pass_to("status", _LAST)
        ),
        "/why": SlashCommand("Show what decided it, and what to do next.", _pass_to("why", _LAST)),
        "/diff": SlashCommand("Show the change so far.", _show_diff),
        "/evidence": SlashCommand("Show the commands that the last task ran.", _pass_to("evidence", _LAST)),
        "/log": SlashCommand("Show the last task step by step.", _pass_to("log", _LAST)),
        "/cost": SlashCommand("Show what each task of this session used.", _show_cost),
    },
    "Decide": {
        PLAN_COMMAND: SlashCommand("Plan first: /plan TEXT, or Shift-Tab. Alone, show the last plan.", _plan),
        "/resume": SlashCommand("Continue the last task where it stopped.", _resume),
        "/approve": SlashCommand("Approve what waits: /approve ID.", _pass_to("approve")),
        "/deny": SlashCommand("Deny what waits: /deny ID --reason R.", _pass_to("deny")),
        "/undo": SlashCommand("Undo the last task; the ones before it stay.", _undo),
        "/commit": SlashCommand("Commit the change; then begin a new one.", _commit),
        "/new": SlashCommand("Begin a new change, apart from the earlier tasks.", _begin_anew),
    },
    "Session": {
        "/remember": SlashCommand("Keep a fact for later tasks: /remember TEXT.", _pass_to("learn")),
        "/model": SlashCommand("Show or choose the model: /model NAME.", _choose_model),
        "/config": SlashCommand("Show each setting and its source.", _pass_to("config", "--explain")),
        "/help": SlashCommand("Show this list.", _show_help),
        "/quit": SlashCommand("Leave. `agentflow --continue` returns to it.", _quit),
    },
}


def open_session(folder: Path, run: Callable[[Sequence[str]], int], *, goes_on: bool, plain: bool) -> int:
    """Talk with a person until they leave: each message is a question, a task or a follow-up."""
    from agentflow.cli.line_editor import LineEditor, Steering

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a session needs a terminal", hint="agentflow task TEXT works without one")
    git = open_repository(folder)
    saved = find_session(git.root, None) if goes_on else create_session()
    plain = plain or os.environ.get("TERM") == "dumb"
    if plain:
        os.environ.setdefault("NO_COLOR", "1")  # each command of the session writes without colours as well
    editor = LineEditor(git, _summarize_commands(git.root), plain=plain)
    chat = Chat(root=git.root, saved=saved, plain=plain, run=run, steering=Steering(git, editor))
    say(f"agentflow in {git.root}")
    chat = _greet(chat, git)
    say("Type a question or a task. /help lists commands, /quit leaves.")
    if goes_on:
        say(f"Continuing session {saved.session_id}, {format_count(len(saved.tasks), 'task')}.")
        _say_what_waits(chat)
    left = ""
    while chat.over is None:
        chat, left = _take_turn(chat, editor, left)
    if chat.saved.tasks:
        _say_what_waits(chat)
        say("Continue with: agentflow --continue")
    return chat.over


def _greet(chat: Chat, git: Git) -> Chat:
    from agentflow.cli.config import draw_surroundings, find_setup

    try:
        told = find_setup(git)
    except AgentflowError as error:  # the first task says it again
        tell_error(error)
        return chat
    show(draw_surroundings(told))
    checks = [check["check"] for check in told["checks"] or ()]
    level = told["sandbox"].partition(":")[0]
    around = (f"sandbox {'on' if level == 'full' else level}", list_some(checks) or "no checks")
    return chat.replace(default_model=", ".join(told["models"]), around=" · ".join(around))


def _take_turn(chat: Chat, editor: "LineEditor", left: str) -> tuple[Chat, str]:
    typed = _read_line(chat, editor, left)
    if isinstance(typed, Exit):
        return chat.replace(over=typed), ""
    chat = _handle(chat, typed) if typed else chat
    later, left = chat.steering.take_left()
    for command in later:
        if chat.over is None:
            chat = _handle(chat, command)
    if left:
        say("The task ended before a role read what you typed. It is in the input line; Enter sends it.")
    return chat, left


def _read_line(chat: Chat, editor: "LineEditor", left: str) -> str | Exit:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave_at_once)  # each task puts its own in place
    if not chat.plain:
        say()
    try:
        with _keep_terminal():
            return editor.read(below=_describe(chat), default=left).strip()
    except _Terminated:
        return Exit.TERMINATED
    except KeyboardInterrupt:
        return ""  # the line is given up, not the session
    except EOFError:
        return Exit.VERIFIED


@contextmanager
def _keep_terminal() -> Iterator[None]:
    """Put the terminal's settings back even where a signal comes just as the editor changes them."""
    import termios

    try:
        before = termios.tcgetattr(sys.stdin)
    except termios.error:  # it is gone
        yield
        return
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


class _Terminated(KeyboardInterrupt):
    """A signal ends the session while it waits for a line; only such an error leaves the event loop."""


def _leave_at_once(_number: int, _frame: object) -> NoReturn:
    raise _Terminated


def _say_what_waits(chat: Chat) -> None:
    task = _recall_unfinished(chat)
    if task is not None:
        say(f"Not finished: {to_one_line(task.title, 60)}. /resume in the session continues it.")


def _handle(chat: Chat, typed: str) -> Chat:
    try:
        name, *words = _split(typed)
        found = next((rows[name] for rows in COMMAND_GROUPS.values() if name in rows), None)
        if found is None and name and name not in (known := _summarize_commands(chat.root)):
            raise UsageError(f"there is no command {name}{suggest(name, known)}", hint="/help lists them")
        return found.run(chat, words) if found else _run_message(chat, typed)
    except AgentflowError as error:
        tell_error(error)
    except _Terminated:
        return chat.replace(over=Exit.TERMINATED)
    except KeyboardInterrupt:
        say_error("interrupted", "/resume continues a task that had begun", Exit.INTERRUPTED)
    return _recall_session(chat)


def _recall_session(chat: Chat) -> Chat:
    """Return the session as it was saved last; a task that an error cut off is in it."""
    try:
        return chat.replace(saved=find_session(chat.root, chat.saved.session_id))
    except TaskNotFound:
        return chat  # it is written with its first task
    except InvalidFile as error:
        tell_error(error)
        return chat


def _split(typed: str) -> list[str]:
    if not typed.startswith("/"):
        return [""]
    name, _, text = typed.partition(" ")
    if name == PLAN_COMMAND:
        return [name, *filter(None, [text.strip()])]
    try:
        return split_words(typed)
    except ValueError:  # a quote that is not closed
        return typed.split()


def _run_message(chat: Chat, text: str, *, plan_mode: bool = False) -> Chat:
    from agentflow.cli.task import launch

    known = set(list_tasks(chat.root))
    request = TaskRequest(text=text, model=chat.model, plain=chat.plain, follows=chat.saved.last)
    request, code = request.replace(plan_mode=plan_mode), 0
    try:
        code = launch(chat.root, request, chat.steering)
    finally:
        for task_id in (each for each in list_tasks(chat.root) if each not in known):
            chat = chat.replace(saved=chat.saved.add_task(task_id, to_one_line(text, 200)))
            save_session(chat.root, chat.saved)
    return _end_if_terminated(chat, code)


def _describe(chat: Chat) -> str:
    if _recall_unfinished(chat):
        now = "paused: /resume continues"
    else:
        now = "new change" if chat.saved.last is None else "same change, /new begins another"
    return " " + " · ".join(filter(None, (now, chat.model or chat.default_model, chat.around)))


def sessions(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the sessions of this repository. `agentflow --continue` takes up the newest."""
    known = load_sessions(open_repository(folder).root)
    for error in known.damaged:
        tell_error(error)
    cells = [
        (one.session_id, format_local(one.started_at), str(len(one.tasks)), list_some(one.said, 3, " · "))
        for one in known.readable
    ]
    rows: Iterable[Line | str] = (
        tabulate(("session", "began", "tasks", "first words"), cells) if cells else ()
    )
    if not any(known):
        rows = ("there is no session in this repository; agentflow alone starts one",)
    tell_result(known.readable, rows, json=json)
