"""`agentflow` alone at a terminal: a session of questions, tasks and follow-ups; and the list of sessions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import split as split_words
from typing import TYPE_CHECKING, NamedTuple

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.core.errors import AgentflowError, Exit
from agentflow.core.record import Record
from agentflow.store.sessions import SavedSession, find_session, load_sessions, new_session, save_session
from agentflow.view.words import plural

if TYPE_CHECKING:
    from agentflow.core.task import TaskState

_PROMPT = "> "
_HELP = (
    "A message is a question or a task. A task goes on from the one before: one verdict covers both.",
    "Enter sends, Esc Enter breaks the line, @ completes files. Ctrl-C stops the work, /resume continues it.",
)


class Chat(Record):
    """A session as it runs: the repository, what was done, and how it is shown."""

    root: Path
    saved: SavedSession
    run: Callable[[Sequence[str]], int]
    """Runs a command of agentflow and tells its errors."""
    model: str | None = None
    plain: bool = False
    is_over: bool = False


class SlashCommand(NamedTuple):
    """A command of the session; `run` takes the words after its name."""

    summary: str
    run: Callable[[Chat, list[str]], Chat]


def open_session(folder: Path, run: Callable[[Sequence[str]], int], *, goes_on: bool, plain: bool) -> int:
    """Talk with a person until they leave: each message is a question, a task or a follow-up."""
    from agentflow.cli.line_editor import make_line_editor
    from agentflow.cli.printing import say
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    saved = find_session(git.root, None) if goes_on else new_session()
    chat = Chat(root=git.root, saved=saved, plain=plain, run=run)
    editor = make_line_editor(git, _summarize_commands(git.root), plain=plain)
    say(f"agentflow in {git.root}")
    say("Type a question or a task. /help lists commands, /quit leaves.")
    if goes_on:
        say(f"Continuing session {saved.session_id}, {plural(len(saved.tasks), 'task')}.")
    while not chat.is_over:
        try:
            typed = editor.prompt(_PROMPT, bottom_toolbar=_describe(chat)).strip()
        except KeyboardInterrupt:
            continue  # the line is given up, not the session
        except EOFError:
            break
        if typed:
            chat = _handle(chat, typed)
    if chat.saved.tasks:
        say("Continue with: agentflow --continue")
    return Exit.VERIFIED


def _summarize_commands(root: Path) -> dict[str, str]:
    """Return what each command does: the user's, the repository's and those of a session, which win."""
    from agentflow.api.slash_commands import load_commands_here

    brought = {f"/{command.called}": command.description for command in load_commands_here(root).all}
    return {**brought, **{name: command.summary for name, command in SLASH_COMMANDS.items()}}


def _handle(chat: Chat, typed: str) -> Chat:
    """Run a command or a message; an error ends that, not the session."""
    from agentflow.cli.printing import tell_error

    try:
        name, *words = _split(typed)
        if name in SLASH_COMMANDS:
            return SLASH_COMMANDS[name].run(chat, words)
        return _run_message(chat, typed)
    except AgentflowError as error:
        tell_error(error)
        return chat


def _split(typed: str) -> list[str]:
    if not typed.startswith("/"):
        return [""]
    try:
        return split_words(typed)
    except ValueError:  # a quote that is not closed
        return typed.split()


def _run_message(chat: Chat, text: str) -> Chat:
    """Run a message as a task that follows the last one."""
    from agentflow.cli.launch import Job, launch
    from agentflow.redact import one_line
    from agentflow.store.reading import tasks

    known = tasks(chat.root)
    job = Job(text=text, model=chat.model, plain=chat.plain, follows=chat.saved.last)
    try:
        launch(chat.root, job)
    finally:
        for task_id in tasks(chat.root)[len(known) :]:
            chat = chat.replace(saved=chat.saved.add_task(task_id, one_line(text, 200)))
            save_session(chat.root, chat.saved)
    return chat


def _run_on_last(*command: str) -> Callable[[Chat, list[str]], Chat]:
    """Return a command of the session that runs a command of agentflow on the last task."""

    def run(chat: Chat, words: list[str]) -> Chat:
        chat.run([*command, _require_last(chat), *words, "-C", str(chat.root)])
        return chat

    return run


def _run_and_begin_anew(*command: str) -> Callable[[Chat, list[str]], Chat]:
    """Return the same for a command after which the next task begins a change of its own."""

    def run(chat: Chat, words: list[str]) -> Chat:
        code = chat.run([*command, _require_last(chat), *words, "-C", str(chat.root)])
        return _begin_anew(chat, words) if code == Exit.VERIFIED else chat

    return run


def _run_plainly(*command: str) -> Callable[[Chat, list[str]], Chat]:
    """Return a command of the session that runs a command of agentflow with the words as they are."""

    def run(chat: Chat, words: list[str]) -> Chat:
        chat.run([*command, *words, "-C", str(chat.root)])
        return chat

    return run


def _require_last(chat: Chat) -> str:
    from agentflow.core.errors import UsageError

    if not chat.saved.tasks:
        raise UsageError("this session has no task yet", hint="type one, or leave with /quit")
    return chat.saved.tasks[-1]


def _last_state(chat: Chat) -> "TaskState":
    from agentflow.store.reading import events, find, fold_state

    folder = find(chat.root, _require_last(chat))
    return fold_state(folder, tuple(events(folder)))


def _begin_anew(chat: Chat, _: list[str]) -> Chat:
    saved = chat.saved.replace(last=None)
    if saved.tasks:
        save_session(chat.root, saved)
    return chat.replace(saved=saved)


def _undo(chat: Chat, words: list[str]) -> Chat:
    """Undo the last task alone; the next message goes on from the one before it."""
    code = chat.run(["undo", _require_last(chat), *words, "-C", str(chat.root)])
    if code != Exit.VERIFIED or "--dry-run" in words:
        return chat
    before = _last_state(chat).follows
    saved = chat.saved.replace(last=before)
    save_session(chat.root, saved)
    return chat.replace(saved=saved)


def _show_diff(chat: Chat, _: list[str]) -> Chat:
    from agentflow.cli.printing import show
    from agentflow.view.status import diff_style
    from agentflow.view.text import line, span
    from agentflow.workspace.git import open_repository

    task = _last_state(chat)
    diff = open_repository(chat.root).diff(task.base_tree, task.tree) if task.base_tree and task.tree else ""
    rows = diff.splitlines() or ["the last task changed no file"]
    show(line(span(row, diff_style(row))) for row in rows)
    return chat


def _show_plan(chat: Chat, _: list[str]) -> Chat:
    from agentflow.cli.printing import say
    from agentflow.store.task_file import format_plan

    plan = _last_state(chat).plan
    say(format_plan(plan) if plan else "the last task made no plan")
    return chat


def _show_cost(chat: Chat, _: list[str]) -> Chat:
    from agentflow.cli.printing import say
    from agentflow.core.messages import total
    from agentflow.store.reading import events, find, fold_state

    folders = [find(chat.root, task_id) for task_id in chat.saved.tasks]
    usage = total(fold_state(folder, tuple(events(folder))).usage for folder in folders)
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    say(f"{plural(len(folders), 'task')}, {usage.input:,} tokens in, {usage.output:,} out, {cost}")
    return chat


def _choose_model(chat: Chat, words: list[str]) -> Chat:
    from agentflow.cli.printing import say

    if words:
        chat = chat.replace(model=words[0])
    say(f"model: {chat.model or 'as configured'}")
    return chat


def _show_help(chat: Chat, _: list[str]) -> Chat:
    from agentflow.cli.printing import say

    for row in _HELP:
        say(row)
    for name, summary in _summarize_commands(chat.root).items():
        say(f"  {name:<11} {summary}")
    return chat


def _quit(chat: Chat, _: list[str]) -> Chat:
    return chat.replace(is_over=True)


SLASH_COMMANDS = {
    "/help": SlashCommand("Show this list.", _show_help),
    "/status": SlashCommand("Show how the last task ended or where it stands.", _run_on_last("status")),
    "/diff": SlashCommand("Show the change so far.", _show_diff),
    "/evidence": SlashCommand("Show the commands that the last task ran.", _run_on_last("evidence")),
    "/log": SlashCommand("Show the last task step by step.", _run_on_last("log")),
    "/plan": SlashCommand("Show the plan of the last task.", _show_plan),
    "/cost": SlashCommand("Show what this session used.", _show_cost),
    "/model": SlashCommand("Show or choose the model: /model NAME.", _choose_model),
    "/undo": SlashCommand("Undo the last task; the ones before it stay.", _undo),
    "/commit": SlashCommand("Commit the change; then begin a new one.", _run_and_begin_anew("commit")),
    "/new": SlashCommand("Begin a new change: the next task follows no other.", _begin_anew),
    "/resume": SlashCommand("Continue the last task where it stopped.", _run_on_last("resume")),
    "/approve": SlashCommand("Approve what waits: /approve ID.", _run_plainly("approve")),
    "/deny": SlashCommand("Deny what waits: /deny ID --reason R.", _run_plainly("deny")),
    "/config": SlashCommand("Show each setting and its source.", _run_plainly("config", "--explain")),
    "/quit": SlashCommand("Leave. `agentflow --continue` comes back.", _quit),
}


def _describe(chat: Chat) -> str:
    """Return the line below the input."""
    last = f", last {_last_state(chat).status}" if chat.saved.tasks else ""
    goes_on = "the next message goes on from it" if chat.saved.last else "the next message begins a change"
    count = plural(len(chat.saved.tasks), "task")
    return f" {count}{last}; {goes_on}; model {chat.model or 'as configured'} "


def sessions(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the sessions of this repository. `agentflow --continue` takes up the newest."""
    from agentflow.cli.printing import say, say_json
    from agentflow.core.wording import list_some
    from agentflow.workspace.git import open_repository

    found = tuple(load_sessions(open_repository(folder).root))
    if json:
        say_json(found)
        return
    for one in found:
        count = plural(len(one.tasks), "task")
        say(f"{one.session_id}  {one.started_at[:16]}  {count:<9} {list_some(one.said, 3, ' · ')}")
    if not found:
        say("there is no session in this repository; agentflow alone starts one")
