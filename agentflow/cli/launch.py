"""Runs a task in this process: progress on stderr, the result on stdout."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agentflow.api.models import stream_model
from agentflow.api.session import Ask, Order, Session, begin_session, resume_session, run_session
from agentflow.api.wiring import prepare
from agentflow.cli.printing import say_json, show, tell_edits
from agentflow.cli.prompts import agree, is_attended, settle
from agentflow.cli.tasks import find_task_folder
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.events import Replied, StoredEvent
from agentflow.core.pending import Consent
from agentflow.core.record import encode, to_builtins
from agentflow.core.task import Status, TaskState
from agentflow.redact import Redactor, make_visible
from agentflow.report.material import sum_spending
from agentflow.report.report import to_result
from agentflow.store.reading import find, load_events, load_state
from agentflow.store.tasks import TaskStore
from agentflow.view.board import Board
from agentflow.view.progress import Progress, open_region
from agentflow.view.tasks import load_snapshot
from agentflow.view.text import BLANK, Style, choose_medium, label_row, send, span, write_lines
from agentflow.view.words import Detail
from agentflow.workflow.crew import Crew
from agentflow.workspace.git import Git

if TYPE_CHECKING:
    from agentflow.cli.steering import Steering

_SIGNALS = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.TERMINATED,
}


class Job(Order):
    """A task with the options for its display."""

    json: bool = False
    events: str | None = None
    """A file's path, or `-` for stdout."""
    stream: bool = False
    """Show the model's replies as they arrive, and every step."""
    detail: Detail = Detail.BRIEF
    plain: bool = False

    @property
    def ask(self) -> Ask | None:
        """The function that asks a person, or None where nobody can be asked."""
        return _ask if is_attended(self.consent) else None


def _ask(store: TaskStore) -> bool:
    return is_attended(Consent.SUSPEND) and settle(store)


def launch(folder: Path, job: Job, steering: "Steering | None" = None) -> int:
    """Run a new task, which a person may steer from a session, and return its exit code."""
    job, warnings = _expand(folder, job) if job.text.startswith("/") else (job, ())
    setup = prepare(folder, job.model, job.text, job.wish.replace(agree=agree))
    setup = setup.replace(warnings=(*setup.warnings, *warnings))
    _require_outside(setup.git, job.events)
    with _open_events(job.events) as sink, begin_session(setup, job) as session:
        return _drive(session, job, sink, steering)


def launch_in_worktree(
    folder: Path, job: Job, branch: str | None, *, commit: Callable[[Path, int], None] | None
) -> int:
    """Run a new task in a worktree of its own, commit it there if asked to, and say how that went."""
    from agentflow.api.worktree import make_worktree, remove_unused

    made = make_worktree(folder, branch)
    send("".join(make_visible(f"{warning}\n") for warning in made.warnings), sys.stderr)
    try:
        code = launch(made.start, job.replace(task_id=made.task_id))
        if commit is not None:
            commit(made.root, code)
    finally:
        remove_unused(made)
    _tell_worktree(made.root, made.task_id, job)
    return code


def _tell_worktree(root: Path, task_id: str, job: Job) -> None:
    from agentflow.api.worktree import describe_kept

    kept = describe_kept(root, task_id)
    if kept is None or job.json or job.detail is Detail.VERDICT:
        return
    told = (
        ("worktree", f"{kept.path} on branch {kept.branch}", "  your own files were not changed"),
        ("take over", kept.take_over, ""),
        ("remove", kept.remove, "  and the record of the task with it"),
    )
    stream = sys.stderr if job.events == "-" else sys.stdout
    show((label_row(name, span(text), span(more, Style.DIM)) for name, text, more in told if text), stream)


def _expand(folder: Path, job: Job) -> tuple[Job, tuple[str, ...]]:
    from agentflow.api.slash_commands import expand_command

    found = expand_command(folder, job.text, job.wish.replace(agree=agree))
    if found is None:
        return job, ()
    return job.replace(text=found.text, invoked=found.invoked), found.warnings


def relaunch(start: Path, task_id: str | None, job: Job, steering: "Steering | None" = None) -> int:
    """Continue a saved task and return its exit code. Raises TaskOver, or Suspended while it waits."""
    from agentflow.api.worktree import open_home

    git = open_home(start, task_id)
    _require_outside(git, job.events)
    found = find_task_folder(git.root, task_id)
    tell_edits(git.root, found)
    job = job.replace(wish=job.wish.replace(agree=agree))
    with (
        _open_events(job.events) as sink,
        resume_session(git, found.name, job, job.ask, is_named=bool(task_id)) as session,
    ):
        code = _drive(session, job, sink, steering)
    _tell_worktree(git.root, found.name, job)
    return code


def _drive(session: Session, job: Job, sink: BinaryIO | None, steering: "Steering | None") -> int:
    store = session.store
    with ExitStack() as stack:
        medium = choose_medium(sys.stderr, os.environ)
        if job.plain:
            medium = medium.replace(live=False)
        if job.stream:
            shown = Redactor(partial(_tell_streamed, sink) if sink and job.events == "-" else _show)
            stack.callback(shown.finish)
            model = stream_model(session.setup.model, shown.add)
            session = session.replace(setup=session.setup.replace(model=model))
            store.observers.append(lambda told: shown.finish() if isinstance(told.event, Replied) else None)
            medium = medium.replace(live=False)
        if job.detail is not Detail.VERDICT:
            is_brief = job.detail is Detail.BRIEF and not job.stream
            screen = (
                open_region(store.folder, medium, sys.stderr)
                if steering is None
                else steering.open_screen(store, medium)
            )
            progress = Progress(sys.stderr, medium, screen, is_brief=is_brief, board=Board.of(store.task))
            store.observers.append(stack.enter_context(progress))
        if sink is not None:
            store.observers.append(stack.enter_context(_copy_events(store, sink)))
        crew, task = run_session(
            session,
            ask=job.ask if steering is None else steering.ask,
            signals=_SIGNALS,
            pauses=None if steering is None else steering.pauses,
        )
    _print_result(crew, task, job, is_session=steering is not None)
    assert task.ending is not None
    return task.ending.exit_code


def _tell_streamed(sink: BinaryIO, text: str) -> None:
    """Write text as it comes among the events, for a program that shows it."""
    if text:
        _pass_on(encode({"type": "TextStreamed", "text": text}) + b"\n", sink)


def _show(text: str) -> None:
    send(make_visible(text), sys.stderr)


@contextmanager
def _copy_events(store: TaskStore, sink: BinaryIO) -> Iterator[Callable[[StoredEvent], None]]:
    is_read = True

    def copy(_: StoredEvent) -> None:
        nonlocal is_read
        new = source.read()
        if is_read:
            is_read = _pass_on(new, sink)

    with (store.folder / "events.jsonl").open("rb") as source:
        yield copy


@contextmanager
def _open_events(target: str | None) -> Iterator[BinaryIO | None]:
    if target is None:
        yield None
        return
    try:
        file = open(1 if target == "-" else target, "wb", buffering=0, closefd=target != "-")  # noqa: SIM115  # stdout has no path
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}") from None
    with file:
        yield file


def _pass_on(lines: bytes, sink: BinaryIO) -> bool:
    """Write events; a reader who has gone, or a full disk, is no reason to end the task."""
    try:
        sink.write(lines)
    except OSError:
        return False
    return True


def _make_own_diff(crew: Crew, task: TaskState) -> str:
    """Return the change of a task; none where a follow-up was stopped before it changed what was there."""
    is_over = task.status in {Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT}
    if task.follows and not is_over and load_state(find(crew.git.root, task.follows)).tree == task.tree:
        return ""
    return crew.make_diff(task)


def _print_result(crew: Crew, task: TaskState, job: Job, *, is_session: bool) -> None:
    from agentflow.api.worktree import find_main
    from agentflow.view.verdict import draw_verdict, name_as_slash_commands

    if job.json:
        from agentflow.api.worktree import describe_kept

        spent = sum_spending(load_events(crew.store.folder))
        kept = describe_kept(crew.git.root, task.task_id)
        result = to_result(task, crew.gather_material(task), crew.list_changes(task), spent)
        say_json({**result, "worktree": to_builtins(kept)} if kept else result)
        return
    stream = sys.stderr if job.events == "-" else sys.stdout
    medium, root = choose_medium(stream, os.environ), crew.git.root
    is_here = any(Path.cwd().is_relative_to(place) for place in (root, find_main(root)))
    elsewhere = "" if is_here else str(root)
    snapshot, diff = load_snapshot(crew.store.folder), _make_own_diff(crew, task)
    told = draw_verdict(snapshot, diff, elsewhere, job.detail, is_styled=stream.isatty())
    told = tuple(map(name_as_slash_commands, told)) if is_session else told
    write_lines((BLANK, *told) if medium.live and job.detail is Detail.FULL else told, stream, medium)


_OURS = (1, 2)


def _require_outside(git: Git, events: str | None) -> None:
    for place in _list_places(events):
        if not place.is_relative_to(git.root) or place.is_dir():
            continue
        name = place.relative_to(git.root).as_posix()
        if git.drop_ignored([f"A {name}"]):
            raise UsageError(
                f"the output would go to {name} and change the files that are judged",
                hint="write it outside the repository, or let git ignore it",
            )


def _list_places(events: str | None) -> Iterator[Path]:
    for descriptor in _OURS:
        # only Linux tells where a stream leads
        place = Path(f"/proc/self/fd/{descriptor}")
        if place.is_file():
            yield place.resolve()
    if events not in (None, "-"):
        yield Path(events).resolve()
