"""`task`, `ask`, `demo` and `explore` run a task in this process; `commit` makes a verified one a commit.

Progress goes to stderr, the result to stdout.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from agentflow.api.boundary import TaskRequest
from agentflow.api.models import find_live
from agentflow.api.session import Ask, Session, begin_session, resume_session, run_session
from agentflow.api.undo import CommitAnswers, commit_task
from agentflow.api.wiring import prepare
from agentflow.api.worktree import describe_kept, find_main, make_worktree, remove_unused
from agentflow.cli import arguments
from agentflow.cli.printing import hint_for_session, say, say_json, show, tell_result
from agentflow.cli.prompts import agree, is_attended, settle
from agentflow.cli.run_options import LimitOptions, RunOptions
from agentflow.cli.tasks import evidence, locate_task
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.events import Replied, StoredEvent
from agentflow.core.pending import Consent
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.task import Phase, Status, TaskState
from agentflow.process import capture
from agentflow.redact import Redactor, list_some, make_visible, to_one_line
from agentflow.report.material import sum_spending
from agentflow.report.report import to_result
from agentflow.routing.classify import CLASSES, QUESTION
from agentflow.settings import find_bundled
from agentflow.store.reading import find, load_events, load_state
from agentflow.store.tasks import TaskStore
from agentflow.verdict.checking import make_overrides
from agentflow.view.board import Board
from agentflow.view.progress import Progress, open_region
from agentflow.view.status import draw_diff_row
from agentflow.view.tasks import load_snapshot
from agentflow.view.text import BLANK, Style, choose_medium, label_row, send, span
from agentflow.view.verdict import draw_verdict
from agentflow.view.words import Detail
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import PATH, read_fresh_document
from agentflow.workspace.commit import CommitResult, require_possible_commit
from agentflow.workspace.git import Git, open_repository

if TYPE_CHECKING:
    from agentflow.cli.line_editor import Steering
    from agentflow.view.region import Screen

EXAMPLE = "invoicing"
_DIFF_ROWS = 60
_AUTHOR = ("-c", "user.name=agentflow demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false")
_SIGNALS = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.TERMINATED,
}
TEXT = typer.Argument(None, metavar="TEXT", help="What to do; - reads it from stdin.")
BRANCH = typer.Option(None, "--branch", metavar="NAME", help="Commit on a new branch that begins at HEAD.")
MAX_ITERATIONS = typer.Option(
    None,
    "--max-iterations",
    min=1,
    max=1000,
    metavar="N",
    help="Attempts to pass the checks. [default: 10]",
)
FOLLOWS = typer.Option(
    None, "--follows", metavar="TASK", help="Follow up on an earlier task; one verdict covers both."
)
QUESTION_TEXT = typer.Argument(None, metavar="TEXT", help="Your question; - reads it from stdin.")


class NewTaskOptions(Record):
    max_iterations: int | None = MAX_ITERATIONS
    prove: int | None = typer.Option(
        None,
        "--prove",
        min=0,
        max=10,
        metavar="N",
        help="Rounds in which the implementer is given what no test notices. [default: 1]",
    )
    class_name: str | None = typer.Option(
        None,
        "--class",
        metavar="CLASS",
        help="trivial, exploratory, implementation, complex, research or question. [default: from the text]",
    )
    skip_check: list[str] | None = typer.Option(
        None,
        "--skip-check",
        metavar="NAME",
        help="Skip a check. This is recorded, and the result is at best exit code 4.",
    )
    reason: str = typer.Option("", "--reason", metavar="R", help="Why the check is skipped.")
    pause_after: Phase | None = typer.Option(
        None, "--pause-after", metavar="PHASE", help="Pause after this phase; `resume` continues."
    )
    plan: bool = typer.Option(
        False, "--plan", help="Explore and plan first, by roles of their own. [default: only if complex]"
    )
    review: bool | None = typer.Option(
        None,
        "--review/--no-review",
        help="Review the change, or skip the review. [default: depends on the class]",
    )
    judges: bool = typer.Option(
        False,
        "--judges",
        help="Let models judge the change, however sure agentflow is. [default: where it is not]",
    )
    sequential: bool = typer.Option(
        False, "--sequential", help="Review first, then verify, instead of both at once."
    )
    parallel: int | None = typer.Option(
        None,
        "--parallel",
        min=1,
        max=8,
        metavar="N",
        help="Let up to N implementers carry out independent steps of the plan at once. [default: 1]",
    )
    context: bool = typer.Option(
        False, "--context", help="Use the document of `explore`, if it is complete and recent."
    )
    follows: str | None = FOLLOWS

    commit: bool = typer.Option(False, "--commit", help="Commit the change if it is verified (exit code 0).")
    branch: str | None = BRANCH
    worktree: bool = typer.Option(
        False,
        "--worktree",
        help="Work in a git worktree of its own, on a new branch; your files stay as they are.",
    )

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of a request whose options have other names. Raises UsageError."""
        if self.class_name is not None and self.class_name not in CLASSES:
            raise UsageError(f"unknown class {self.class_name!r}", hint=f"classes: {', '.join(CLASSES)}")
        overrides = make_overrides(self.skip_check or [], self.reason)
        return {"named_class": self.class_name or "", "overrides": overrides}


def task(
    how: NewTaskOptions,
    limits: LimitOptions,
    run: RunOptions,
    words: list[str] | None = TEXT,
    network: bool = arguments.NETWORK,
    folder: Path = arguments.FOLDER,
) -> int:
    """Carry out a task and verify the result with the repository's own checks.

    The text needs no quotes. Options may stand before or after it; everything after -- is text.
    Exit code 0 means verified.
    """
    text = arguments.read_words(words or [])
    request = run.make_request(how, text=text, network=network, **how.to_fields(), **limits.to_fields())
    is_committed = how.commit or how.branch is not None
    if how.worktree:
        return _launch_in_worktree(folder, request, how.branch, is_committed=is_committed)
    if is_committed:
        require_possible_commit(open_repository(folder), how.branch)
    code = launch(folder, request)
    if is_committed:
        _commit_newest(folder, code, how.branch)
    return code


def _commit_newest(folder: Path, code: int, branch: str | None = None) -> None:
    if code == Exit.VERIFIED:
        committed = commit_task(folder, branch=branch, answers=_ask_at_terminal())
        said = f"committed {committed.commit[:10]} {committed.subject}"
    else:
        said = "not committed: the change is not verified without a caveat"
    send(make_visible(f"{said}\n"), sys.stderr)


def _ask_at_terminal(*, caveat: bool = False, hook_changes: bool = False) -> CommitAnswers:
    """Return the answers that options give; a person at a terminal is asked for the others."""

    def confirm(question: str) -> bool:
        return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(question, default=False, err=True)

    def accept_diff(diff: str) -> bool:
        show(map(draw_diff_row, diff.splitlines()[:_DIFF_ROWS]), sys.stderr)
        return hook_changes or confirm("A git hook changed this after verification. Commit it like this?")

    return CommitAnswers(
        accept_caveat=lambda caveats: (
            caveat or confirm(f"The task ended with a caveat: {make_visible(caveats)}. Commit it?")
        ),
        accept_diff=accept_diff,
    )


def ask(
    limits: LimitOptions,
    run: RunOptions,
    words: list[str] | None = QUESTION_TEXT,
    folder: Path = arguments.FOLDER,
) -> int:
    """Answer a question about this repository. No file is changed.

    The text needs no quotes. Options may stand before or after it; everything after -- is text.
    Exit code 0 means answered.
    """
    text = arguments.read_words(words or [], example="agentflow ask where are discounts computed?")
    return launch(folder, run.make_request(text=text, named_class=QUESTION, **limits.to_fields()))


def plan(
    limits: LimitOptions,
    run: RunOptions,
    words: list[str] | None = TEXT,
    max_iterations: int | None = MAX_ITERATIONS,
    follows: str | None = FOLLOWS,
    network: bool = arguments.NETWORK,
    folder: Path = arguments.FOLDER,
) -> int:
    """Plan a change; once you agree to the plan, carry it out in the same conversation.

    Nothing can be changed before. You can edit the plan in a file, or say in words what should be different.
    Without a terminal the task waits (exit code 75) and names the command that continues it.
    """
    text = arguments.read_words(
        words or [], example="agentflow plan add a --json option to the export command"
    )
    more = {"max_iterations": max_iterations, "follows": follows, "network": network, **limits.to_fields()}
    return launch(folder, run.make_request(text=text, plan_mode=True, **more))


def demo(
    target: Path | None = typer.Argument(
        None,
        metavar="DIR",
        help="Where to put the example; a new or empty folder. [default: a temporary one]",
    ),
    json: bool = arguments.ONE_JSON,
    quiet: bool = arguments.QUIET,
    verbose: bool = arguments.VERBOSE,
) -> int:
    folder = _make_demo(target)
    request = TaskRequest(
        text="make the failing tests pass",
        model="repair",
        json=json,
        detail=arguments.choose_detail(quiet=quiet, verbose=verbose),
        must_run=True,
        memory=False,
    )
    code = launch(folder, request)
    if not (json or quiet):
        say()
        evidence(task_id=find(folder, None).name, evidence_id=None, export=None, json=False, folder=folder)
    return code


def _make_demo(target: Path | None) -> Path:
    if target is None:
        folder = Path(tempfile.mkdtemp(prefix="agentflow-demo-"))
    else:
        folder = target.absolute()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{target} is not an empty folder", hint="name a new one, or none at all")
    try:
        shutil.copytree(find_bundled("examples") / EXAMPLE, folder, dirs_exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {folder}: {error.strerror}") from None
    for words in (("init", "-q"), ("add", "-A"), (*_AUTHOR, "commit", "-q", "--no-verify", "-m", "Start")):
        finished = capture(("git", *words), cwd=folder)
        if finished.returncode:
            raise ConfigError(f"git {words[0]} failed: {finished.stderr.decode('utf-8', 'replace').strip()}")
    send(f"demo repository: {folder}\n", sys.stderr)
    return folder


EXPLORED = typer.Argument(Path(), metavar="PATH", help="A repository, or a folder in it.")
FOCUS = typer.Option(None, "--focus", metavar="PATH", help="Explore only this part.")
REFRESH = typer.Option(False, "--refresh", help="Explore again; the old document is kept under another name.")


def explore(
    run: RunOptions, path: Path = EXPLORED, focus: str | None = FOCUS, refresh: bool = REFRESH
) -> int:
    """Explore a repository in depth and write down what was found.

    Writes .claude/deep-dive.local.md and changes nothing else. `task --context` uses that document until
    it is 50 commits old.
    """
    git = open_repository(path)
    place = (path / focus if focus else path).resolve()
    if not place.is_relative_to(git.root) or not place.is_dir():
        raise UsageError(f"{focus or path} is not a folder of this repository")
    part = "" if place == git.root else place.relative_to(git.root).as_posix()
    known, _ = read_fresh_document(git, part)
    if known and not refresh:
        say(f"{PATH} is complete and recent; use --refresh to explore again")
        return 0
    return launch(git.root, run.make_request(text=f"explore {part or 'the repository'} in depth", focus=part))


ACCEPT_CAVEAT = typer.Option(False, "--accept-caveat", help="Commit although the task ended with a caveat.")
ACCEPT_HOOK_CHANGES = typer.Option(
    False, "--accept-hook-changes", help="Commit what git hooks change, which was not verified."
)


def commit(
    task_id: str | None = arguments.TASK,
    branch: str | None = BRANCH,
    accept_caveat: bool = ACCEPT_CAVEAT,
    accept_hook_changes: bool = ACCEPT_HOOK_CHANGES,
    json: bool = arguments.JSON,
    folder: Path = arguments.FOLDER,
) -> None:
    """Commit exactly what a verified task changed. Your other changes are left alone.

    The repository's git hooks run, as in `git commit`.
    """
    git, found = locate_task(folder, task_id, prefer=lambda task: task.tree != task.base_tree)
    answers = _ask_at_terminal(caveat=accept_caveat, hook_changes=accept_hook_changes)
    committed = commit_task(git.root, found.name, branch=branch, answers=answers)
    tell_result(committed, _describe_commit(committed), json=json)


def _describe_commit(committed: CommitResult) -> Iterator[str]:
    yield f"committed  {committed.commit[:10]} on {committed.branch or 'no branch'}: {committed.subject}"
    yield from (f"  {to_one_line(path)}" for path in committed.files)
    if not committed.branch:
        yield "HEAD is on no branch: git switch -c NAME keeps the commit on one."
    if committed.changed_by_hooks:
        names = list_some(committed.files_changed_by_hooks)
        yield f"A git hook changed {names} after verification; agentflow verify runs the checks on it."


def _choose_ask(consent: Consent) -> Ask | None:
    """Return the function that asks a person, or None where nobody can be asked."""
    return (lambda store: is_attended(Consent.SUSPEND) and settle(store)) if is_attended(consent) else None


def launch(folder: Path, request: TaskRequest, steering: "Steering | None" = None) -> int:
    """Run a new task, which a person may steer from a session, and return its exit code."""
    request, warnings = request.replace(agree=agree), tuple[str, ...]()
    if request.text.startswith("/"):
        from agentflow.api.slash_commands import expand_command

        request, warnings = expand_command(folder, request)
    setup = prepare(folder, request)
    setup = setup.replace(warnings=(*setup.warnings, *warnings))
    _require_outside(setup.git, request.events)
    with _open_events(request.events) as sink, begin_session(setup, request) as session:
        return _drive(session, request, sink, steering)


def _launch_in_worktree(folder: Path, request: TaskRequest, branch: str | None, *, is_committed: bool) -> int:
    made = make_worktree(folder, branch)
    send("".join(make_visible(f"{warning}\n") for warning in made.warnings), sys.stderr)
    try:
        code = launch(made.start, request.replace(task_id=made.task_id))
        if is_committed:
            _commit_newest(made.root, code)
    finally:
        remove_unused(made)
    _tell_worktree(made.root, made.task_id, request)
    return code


def _tell_worktree(root: Path, task_id: str, request: TaskRequest) -> None:
    kept = describe_kept(root, task_id)
    if kept is None or request.json or request.detail is Detail.VERDICT:
        return
    rows = (
        ("worktree", f"{kept.path} on branch {kept.branch}", "  your own files were not changed"),
        ("take over", kept.take_over, ""),
        ("remove", kept.remove, "  and the record of the task with it"),
    )
    stream = sys.stderr if request.events == "-" else sys.stdout
    show((label_row(name, span(text), span(more, Style.DIM)) for name, text, more in rows if text), stream)


def relaunch(
    start: Path, task_id: str | None, request: TaskRequest, steering: "Steering | None" = None
) -> int:
    """Continue a saved task and return its exit code. Raises TaskOver, or Suspended while it waits."""
    git, found = locate_task(start, task_id)
    _require_outside(git, request.events)
    request = request.replace(agree=agree)
    ask, is_named = _choose_ask(request.consent), bool(task_id)
    with (
        _open_events(request.events) as sink,
        resume_session(git, found.name, request, ask, is_named=is_named) as session,
    ):
        code = _drive(session, request, sink, steering)
    _tell_worktree(git.root, session.store.folder.name, request)
    return code


def _drive(session: Session, request: TaskRequest, sink: BinaryIO | None, steering: "Steering | None") -> int:
    store = session.store
    with ExitStack() as stack:
        medium = choose_medium(sys.stderr, os.environ)
        if request.plain:
            medium = medium.replace(live=False)
        if request.stream:
            shown = Redactor(partial(_tell_streamed, sink if request.events == "-" else None))
            stack.callback(shown.finish)
            if live := find_live(session.setup.model):
                setup = session.setup.replace(model=live.stream_to(shown.add))
                session = session.replace(setup=setup)
            store.observers.append(lambda told: shown.finish() if isinstance(told.event, Replied) else None)
            medium = medium.replace(live=False)
        if request.detail is not Detail.VERDICT:
            is_brief = request.detail is Detail.BRIEF and not request.stream
            if steering is None:
                screen: Screen | None = open_region(store.folder, medium, sys.stderr)
            else:
                screen = steering.open_screen(store, medium)
            progress = Progress(sys.stderr, medium, screen, is_brief=is_brief, board=Board.of(store.task))
            store.observers.append(stack.enter_context(progress))
        if sink is not None:
            store.observers.append(stack.enter_context(_copy_events(store, sink)))
        crew, task = run_session(
            session,
            ask=_choose_ask(request.consent) if steering is None else steering.ask,
            signals=_SIGNALS,
            pauses=None if steering is None else steering.pauses,
        )
    _print_result(crew, task, request, is_session=steering is not None)
    assert task.ending is not None
    return task.ending.exit_code


def _tell_streamed(sink: BinaryIO | None, text: str) -> None:
    """Write text as it comes, for a program among the events."""
    if sink is None:
        send(make_visible(text), sys.stderr)
    elif text:
        _pass_on(encode({"type": "TextStreamed", "text": text}) + b"\n", sink)


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


def _is_unchanged(crew: Crew, task: TaskState) -> bool:
    """Return whether a follow-up was stopped before it changed what was there."""
    is_over = task.status in {Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT}
    return bool(
        task.session.follows
        and not is_over
        and load_state(find(crew.git.root, task.session.follows)).tree == task.tree
    )


def _print_result(crew: Crew, task: TaskState, request: TaskRequest, *, is_session: bool) -> None:
    if request.json:
        spent = sum_spending(load_events(crew.store.folder))
        kept = describe_kept(crew.git.root, task.task_id)
        result = to_result(task, crew.gather_material(task), crew.list_changes(task), spent)
        say_json({**result, "worktree": to_builtins(kept)} if kept else result)
        return
    stream = sys.stderr if request.events == "-" else sys.stdout
    medium, root = choose_medium(stream, os.environ), crew.git.root
    is_here = any(map(Path.cwd().is_relative_to, (root, find_main(root))))
    elsewhere = "" if is_here else str(root)
    snapshot = load_snapshot(crew.store.folder)
    diff = "" if _is_unchanged(crew, task) else crew.make_diff(task)
    rows = draw_verdict(snapshot, diff, elsewhere, request.detail, is_styled=stream.isatty())
    with hint_for_session() if is_session else nullcontext():
        show((BLANK, *rows) if medium.live and request.detail is Detail.FULL else rows, stream)


def _require_outside(git: Git, events: str | None) -> None:
    """Raise UsageError where the output or the events would change the judged files all the time."""
    streams = (Path(f"/proc/self/fd/{number}") for number in (1, 2))  # only Linux tells where one leads
    places = [stream.resolve() for stream in streams if stream.is_file()]
    if events not in (None, "-"):
        places.append(Path(events).resolve())
    for place in places:
        if not place.is_relative_to(git.root) or place.is_dir():
            continue
        name = place.relative_to(git.root).as_posix()
        if git.drop_ignored([f"A {name}"]):
            hint = "write it outside the repository, or let git ignore it"
            raise UsageError(f"the output would go to {name} and change the files that are judged", hint=hint)
