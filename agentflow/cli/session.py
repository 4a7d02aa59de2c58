"""`agentflow` alone at a terminal: a session of questions, tasks and follow-ups; and the list of sessions."""

import difflib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import split as split_words
from typing import TYPE_CHECKING, NoReturn

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import say, say_error, say_json, show, tell_error
from agentflow.cli.session_commands import (
    COMMAND_GROUPS,
    Chat,
    end_if_terminated,
    recall_task,
    summarize_commands,
)
from agentflow.core.errors import AgentflowError, Exit, InvalidFile, TaskNotFound, UsageError
from agentflow.redact import format_count, list_some, to_one_line
from agentflow.store.reading import list_tasks
from agentflow.store.sessions import create_session, find_session, load_sessions, save_session
from agentflow.view.words import RESUMABLE, format_local

if TYPE_CHECKING:
    from agentflow.cli.line_editor import LineEditor
    from agentflow.workspace.git import Git


def open_session(folder: Path, run: Callable[[Sequence[str]], int], *, goes_on: bool, plain: bool) -> int:
    """Talk with a person until they leave: each message is a question, a task or a follow-up."""
    from agentflow.cli.line_editor import LineEditor
    from agentflow.cli.steering import Steering
    from agentflow.workspace.git import open_repository

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a session needs a terminal", hint="agentflow task TEXT works without one")
    git = open_repository(folder)
    saved = find_session(git.root, None) if goes_on else create_session()
    plain = plain or os.environ.get("TERM") == "dumb"
    if plain:
        os.environ.setdefault("NO_COLOR", "1")  # each command of the session writes without colours as well
    editor = LineEditor(git, summarize_commands(git.root), plain=plain)
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


def _greet(chat: Chat, git: "Git") -> Chat:
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
    return chat.replace(default_model=told["model"], around=" · ".join(around))


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
    task = recall_task(chat, chat.saved.last)
    if task is None or not (task.status in RESUMABLE or task.active):
        return
    say(f"Not finished: {to_one_line(task.title, 60)}. /resume in the session continues it.")


def _handle(chat: Chat, typed: str) -> Chat:
    try:
        name, *words = _split(typed)
        found = next((rows[name] for rows in COMMAND_GROUPS.values() if name in rows), None)
        if found is None and name and name not in (known := summarize_commands(chat.root)):
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"there is no command {name}{meant}", hint="/help lists them")
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
    try:
        return split_words(typed)
    except ValueError:  # a quote that is not closed
        return typed.split()


def _run_message(chat: Chat, text: str) -> Chat:
    from agentflow.cli.launch import Job, launch

    known = set(list_tasks(chat.root))
    job = Job(text=text, model=chat.model, plain=chat.plain, follows=chat.saved.last)
    code = 0
    try:
        code = launch(chat.root, job, chat.steering)
    finally:
        for task_id in (each for each in list_tasks(chat.root) if each not in known):
            chat = chat.replace(saved=chat.saved.add_task(task_id, to_one_line(text, 200)))
            save_session(chat.root, chat.saved)
    return end_if_terminated(chat, code)


def _describe(chat: Chat) -> str:
    task = recall_task(chat, chat.saved.last)
    if task is not None and (task.status in RESUMABLE or task.active):
        now = "paused: /resume continues"
    else:
        now = "new change" if chat.saved.last is None else "same change, /new begins another"
    return " " + " · ".join(filter(None, (now, chat.model or chat.default_model, chat.around)))


def sessions(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the sessions of this repository. `agentflow --continue` takes up the newest."""
    from agentflow.workspace.git import open_repository

    found = load_sessions(open_repository(folder).root)
    for error in found.damaged:
        tell_error(error)
    if json:
        say_json(found.readable)
        return
    for one in found.readable:
        count = format_count(len(one.tasks), "task")
        say(f"{one.session_id}  {format_local(one.started_at)}  {count:<9} {list_some(one.said, 3, ' · ')}")
    if not any(found):
        say("there is no session in this repository; agentflow alone starts one")
