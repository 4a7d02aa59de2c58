"""`tasks`, `status`, `log` and `evidence`: they read the files of tasks; and which task a command means."""

import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import typer

from agentflow.cli.arguments import FOLDER, JSON, PLAIN, TASK
from agentflow.cli.printing import say, say_json, say_line, show, tell_edits
from agentflow.core.errors import TaskNotFound
from agentflow.core.record import to_builtins
from agentflow.core.task import FRONTMATTER_KEYS, TaskState
from agentflow.redact import make_visible, to_one_line
from agentflow.view.text import choose_medium, find_width, send

_ID_BEGINS = 4
"""Digits from which on a word before an answer can be the beginning of an id."""


def tasks(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the tasks of this repository, newest first. Each has its status, exit code and cost."""
    from agentflow.api.worktree import list_homes
    from agentflow.store import reading
    from agentflow.store.ownership import is_at_work
    from agentflow.view.tasks import describe_task, draw_tasks
    from agentflow.workspace.git import open_repository

    homes = {home: is_at_work(home) for home in list_homes(open_repository(folder).root)}
    names = sorted(((name, home) for home in homes for name in reading.list_tasks(home)), reverse=True)
    rows = tuple(describe_task(home / reading.TASKS / name, at_work=homes[home]) for name, home in names)
    if json:
        say_json(rows)
    else:
        show(draw_tasks(rows, datetime.now(UTC), find_width(sys.stdout)))


def find_task_folder(
    root: Path, task_id: str | None, prefer: Callable[[TaskState], bool] | None = None
) -> Path:
    """Return the folder of a task; where none is named take the newest, and say on stderr which that is.

    Of several tasks, the newest whose state is as preferred comes first. Raises TaskNotFound.
    """
    from agentflow.store.reading import find, try_load_state

    if task_id is not None:
        return find(root, task_id)
    found = find(root, None)
    state = try_load_state(found)  # whoever goes on with a damaged one says what is wrong
    if prefer is not None and not (state and prefer(state)):
        preferred = ((path, other) for path, other in _states(root) if prefer(other))
        found, state = next(preferred, (found, state))
    words = f": {to_one_line(state.task, 60)}" if state else ""
    send(make_visible(f"the newest task, {found.name}{words}") + "\n", sys.stderr)
    return found


def locate_task(
    folder: Path,
    task_id: str | None,
    prefer: Callable[[TaskState], bool] | None = None,
    *,
    goes_on: bool = False,
) -> tuple[Path, Path]:
    """Return the root of the repository or worktree that has a task, and the task's folder in it.

    Says on stderr what was edited by hand in that folder; see `find_task_folder` and `tell_edits`.
    """
    from agentflow.api.worktree import open_home

    root = open_home(folder, task_id).root
    found = find_task_folder(root, task_id, prefer)
    tell_edits(root, found, goes_on=goes_on)
    return root, found


def split_task_id(folder: Path, words: list[str]) -> tuple[str | None, list[str]]:
    """Return the task that the first of some words names, if it names one, and the other words."""
    from agentflow.api.worktree import list_homes
    from agentflow.store import reading
    from agentflow.workspace.git import open_repository

    first, *rest = words
    is_beginning = first[:_ID_BEGINS].isdecimal() and len(first) >= _ID_BEGINS
    homes = list_homes(open_repository(folder).root) if is_beginning else ()
    known = [name for home in homes for name in reading.list_tasks(home) if name.startswith(first)]
    is_named = is_beginning and (bool(known) or reading.is_task_id(first))
    return (first, rest) if is_named else (None, words)


def _states(root: Path) -> Iterator[tuple[Path, TaskState]]:
    """Yield the tasks that can be read, the newest first."""
    from agentflow.store import reading

    for name in reversed(reading.list_tasks(root)):
        state = reading.try_load_state(root / reading.TASKS / name)
        if state is not None:
            yield root / reading.TASKS / name, state


def status(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Show where a task stands, or how it ended."""
    from agentflow.store.ownership import is_at_work
    from agentflow.view.status import draw_status
    from agentflow.view.tasks import load_snapshot

    root, found = locate_task(folder, task_id)
    snapshot = load_snapshot(found)
    if json:
        state = to_builtins(snapshot.state)
        say_json({key: state[key] for key in FRONTMATTER_KEYS})
    else:
        show(draw_status(snapshot, at_work=is_at_work(root)))


def log(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Show what happened in a task, step by step."""
    from agentflow.store.journal import read_numbered_lines
    from agentflow.store.reading import EVENTS, load_events
    from agentflow.view.progress import Story

    _, found = locate_task(folder, task_id)
    if json:
        whole = b"".join(line + b"\n" for _, line in read_numbered_lines(found / EVENTS))
        say_line(whole.decode("utf-8").removesuffix("\n"))
        return
    tell = Story()
    show(line for event in load_events(found) for line in tell(event))


def watch(task_id: str | None = TASK, plain: bool = PLAIN, folder: Path = FOLDER) -> None:
    """Follow a task as it runs, from any terminal. Ctrl-C leaves; the task continues."""
    from agentflow.store.ownership import is_at_work
    from agentflow.store.reading import follow_events
    from agentflow.view.progress import Progress, open_region
    from agentflow.view.status import draw_status
    from agentflow.view.tasks import load_snapshot

    root, found = locate_task(folder, task_id)
    medium = choose_medium(sys.stdout, os.environ)
    medium = medium.replace(live=medium.live and not plain)
    with Progress(sys.stdout, medium, open_region(found, medium, sys.stdout)) as progress:
        for event in follow_events(found, lambda: is_at_work(root)):
            progress(event)
    show(draw_status(load_snapshot(found), at_work=is_at_work(root)))


def evidence(
    task_id: str | None = TASK,
    evidence_id: str | None = typer.Argument(None, metavar="ID", help="One record, for example ev-0001."),
    export: Path | None = typer.Option(
        None,
        "--export",
        metavar="FILE",
        help="Write the whole record to a file, for `verify FILE` in another clone.",
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show the commands that a task ran, or one of them with its output."""
    from agentflow.store.bundle import pack_record
    from agentflow.view.status import format_evidence, format_evidence_table
    from agentflow.view.tasks import load_snapshot, read_output_tail

    if task_id is not None and task_id.startswith("ev-"):
        task_id, evidence_id = None, task_id
    _, record = locate_task(folder, task_id)
    if export is not None:
        pack_record(record, export)
        say(f"Wrote {export}. Check it in another clone with `agentflow verify FILE`.")
        return
    snapshot = load_snapshot(record)
    if evidence_id is None:
        say_json(snapshot.evidence) if json else show(format_evidence_table(snapshot))
        return
    found = snapshot.find(evidence_id)
    if found is None:
        hint = "agentflow evidence lists it"
        raise TaskNotFound(f"there is no evidence {evidence_id} in this task", hint=hint)
    say_json(found) if json else show(format_evidence(found, read_output_tail(snapshot.folder, evidence_id)))
