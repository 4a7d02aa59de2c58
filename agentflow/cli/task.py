"""`task`, `ask`, `demo` and `explore` begin a task; `commit` makes a verified one a commit."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import (
    EVENTS_FILE,
    FOLDER,
    JSON,
    MAX_COST,
    MAX_TOKENS,
    MODEL,
    NETWORK,
    NO_INPUT,
    NO_SANDBOX,
    ONE_JSON,
    PLAIN,
    QUIET,
    STREAM,
    TASK,
    TIMEOUT,
    VERBOSE,
    YES,
    check_class,
    choose_consent,
    choose_detail,
    find_phase,
    read_words,
)
from agentflow.cli.printing import say, say_json, show
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.pending import Budget
from agentflow.process import capture
from agentflow.redact import list_some, make_visible, to_one_line
from agentflow.settings import find_bundled
from agentflow.view.text import line, send, span

if TYPE_CHECKING:
    from agentflow.api.undo import CommitAnswers
    from agentflow.workspace.commit import CommitResult

EXAMPLE = "invoicing"
_DIFF_ROWS = 60
_AUTHOR = ("-c", "user.name=agentflow demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false")


TEXT = typer.Argument(None, metavar="TEXT", help="What to do; - reads it from stdin.")
QUESTION_TEXT = typer.Argument(None, metavar="TEXT", help="Your question; - reads it from stdin.")
MAX_ITERATIONS = typer.Option(
    None, "--max-iterations", min=1, max=1000, metavar="N", help="Attempts to pass the checks. [default: 10]"
)
PROVE = typer.Option(
    None,
    "--prove",
    min=0,
    max=10,
    metavar="N",
    help="Rounds in which the implementer is given what no test notices. [default: 1]",
)
CLASS = typer.Option(
    None,
    "--class",
    metavar="CLASS",
    help="trivial, exploratory, implementation, complex, research or question. [default: from the text]",
)
SKIP_CHECK = typer.Option(
    None,
    "--skip-check",
    metavar="NAME",
    help="Skip a check. This is recorded, and the result is at best exit code 4.",
)
REASON = typer.Option("", "--reason", metavar="R", help="Why the check is skipped.")
PAUSE_AFTER = typer.Option(
    None, "--pause-after", metavar="PHASE", help="Pause after this phase; `resume` continues."
)
REVIEW = typer.Option(
    None,
    "--review/--no-review",
    help="Review the change, or skip the review. [default: depends on the class]",
)
SEQUENTIAL = typer.Option(False, "--sequential", help="Review first, then verify, instead of both at once.")
PARALLEL = typer.Option(
    None,
    "--parallel",
    min=1,
    max=8,
    metavar="N",
    help="Let up to N implementers carry out independent steps of the plan at once. [default: 1]",
)
CONTEXT = typer.Option(
    False, "--context", help="Use the document of `explore`, if it is complete and recent."
)
FOLLOWS = typer.Option(
    None, "--follows", metavar="TASK", help="Follow up on an earlier task; one verdict covers both."
)
COMMIT = typer.Option(False, "--commit", help="Commit the change if it is verified (exit code 0).")
NEW_BRANCH = typer.Option(
    None, "--branch", metavar="NAME", help="Commit it on a new branch that begins at HEAD."
)
WORKTREE = typer.Option(
    False,
    "--worktree",
    help="Work in a git worktree of its own, on a new branch; your files stay as they are.",
)


def task(
    words: list[str] | None = TEXT,
    model: str | None = MODEL,
    max_iterations: int | None = MAX_ITERATIONS,
    prove: int | None = PROVE,
    max_cost: float | None = MAX_COST,
    max_tokens: int | None = MAX_TOKENS,
    timeout: float | None = TIMEOUT,
    class_name: str | None = CLASS,
    skip_check: list[str] | None = SKIP_CHECK,
    reason: str = REASON,
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = NETWORK,
    json: bool = ONE_JSON,
    events: str | None = EVENTS_FILE,
    pause_after: str | None = PAUSE_AFTER,
    review: bool | None = REVIEW,
    sequential: bool = SEQUENTIAL,
    parallel: int | None = PARALLEL,
    context: bool = CONTEXT,
    follows: str | None = FOLLOWS,
    commit: bool = COMMIT,
    branch: str | None = NEW_BRANCH,
    worktree: bool = WORKTREE,
    stream: bool = STREAM,
    quiet: bool = QUIET,
    verbose: bool = VERBOSE,
    plain: bool = PLAIN,
    folder: Path = FOLDER,
) -> int:
    """Carry out a task and verify the result with the repository's own checks.

    The text needs no quotes. Options may stand before or after it; everything after -- is text.
    Exit code 0 means verified.
    """
    from agentflow.api.boundary import Wish
    from agentflow.cli.launch import Job, launch, launch_in_worktree
    from agentflow.verdict.checking import make_overrides

    job = Job(
        text=read_words(words or []),
        model=model,
        max_iterations=max_iterations,
        prove=prove,
        json=json,
        events=events,
        consent=choose_consent(yes=yes, no_input=no_input),
        pause_after=find_phase(pause_after),
        stream=stream,
        detail=choose_detail(quiet=quiet, verbose=verbose),
        plain=plain,
        wish=Wish(no_sandbox=no_sandbox, network=network),
        named_class=check_class(class_name),
        review=review,
        sequential=sequential,
        parallel=parallel,
        context=context,
        follows=follows,
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=timeout),
        overrides=make_overrides(skip_check or [], reason),
    )
    if worktree:
        return launch_in_worktree(folder, job, branch, commit=_commit_newest if commit or branch else None)
    if not (commit or branch is not None):
        return launch(folder, job)
    _require_possible_commit(folder, branch)
    code = launch(folder, job)
    _commit_newest(folder, code, branch)
    return code


def _require_possible_commit(folder: Path, branch: str | None) -> None:
    from agentflow.workspace.commit import require_possible_commit
    from agentflow.workspace.git import open_repository

    require_possible_commit(open_repository(folder), branch)


def _commit_newest(folder: Path, code: int, branch: str | None = None) -> None:
    from agentflow.api.undo import commit_task

    if code == Exit.VERIFIED:
        committed = commit_task(folder, branch=branch, answers=_ask_at_terminal())
        told = f"committed {committed.commit[:10]} {committed.subject}"
    else:
        told = "not committed: the change is not verified without a caveat"
    send(make_visible(f"{told}\n"), sys.stderr)


def _ask_at_terminal(*, caveat: bool = False, hook_changes: bool = False) -> "CommitAnswers":
    from agentflow.api.undo import CommitAnswers
    from agentflow.view.status import style_diff_row

    def confirm(question: str) -> bool:
        return sys.stdin.isatty() and sys.stderr.isatty() and typer.confirm(question, default=False, err=True)

    def accept_diff(diff: str) -> bool:
        show((line(span(row, style_diff_row(row))) for row in diff.splitlines()[:_DIFF_ROWS]), sys.stderr)
        return hook_changes or confirm("A git hook changed this after verification. Commit it like this?")

    return CommitAnswers(
        accept_caveat=lambda caveats: (
            caveat or confirm(f"The task ended with a caveat: {make_visible(caveats)}. Commit it?")
        ),
        accept_diff=accept_diff,
    )


def ask(
    words: list[str] | None = QUESTION_TEXT,
    model: str | None = MODEL,
    max_cost: float | None = MAX_COST,
    max_tokens: int | None = MAX_TOKENS,
    timeout: float | None = TIMEOUT,
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    json: bool = ONE_JSON,
    events: str | None = EVENTS_FILE,
    stream: bool = STREAM,
    quiet: bool = QUIET,
    verbose: bool = VERBOSE,
    plain: bool = PLAIN,
    folder: Path = FOLDER,
) -> int:
    """Answer a question about this repository. No file is changed.

    The text needs no quotes. Options may stand before or after it; everything after -- is text.
    Exit code 0 means answered.
    """
    from agentflow.api.boundary import Wish
    from agentflow.cli.launch import Job, launch
    from agentflow.routing.classify import QUESTION

    job = Job(
        text=read_words(words or [], example="agentflow ask where are discounts computed?"),
        model=model,
        json=json,
        events=events,
        consent=choose_consent(yes=yes, no_input=no_input),
        stream=stream,
        detail=choose_detail(quiet=quiet, verbose=verbose),
        plain=plain,
        wish=Wish(no_sandbox=no_sandbox),
        named_class=QUESTION,
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=timeout),
    )
    return launch(folder, job)


def demo(
    target: Path | None = typer.Argument(
        None,
        metavar="DIR",
        help="Where to put the example; a new or empty folder. [default: a temporary one]",
    ),
    json: bool = ONE_JSON,
    quiet: bool = QUIET,
    verbose: bool = VERBOSE,
) -> int:
    """Fix a real bug in a bundled example, without a key or a network."""
    from agentflow.api.boundary import Wish
    from agentflow.cli.launch import Job, launch
    from agentflow.cli.tasks import evidence
    from agentflow.store.reading import find

    folder = _make_demo(target)
    job = Job(
        text="make the failing tests pass",
        model="repair",
        json=json,
        detail=choose_detail(quiet=quiet, verbose=verbose),
        wish=Wish(must_run=True),
    )
    code = launch(folder, job)
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
    path: Path = EXPLORED,
    focus: str | None = FOCUS,
    refresh: bool = REFRESH,
    model: str | None = MODEL,
    json: bool = ONE_JSON,
    events: str | None = EVENTS_FILE,
    quiet: bool = QUIET,
    verbose: bool = VERBOSE,
) -> int:
    """Explore a repository in depth and write down what was found.

    Writes .claude/deep-dive.local.md and changes nothing else. `task --context` uses that document until
    it is 50 commits old.
    """
    from agentflow.cli.launch import Job, launch
    from agentflow.workflow.deep import PATH, read_fresh_document
    from agentflow.workspace.git import open_repository

    git = open_repository(path)
    part = _find_part(git.root, path, focus)
    known, _ = read_fresh_document(git, part)
    if known and not refresh:
        say(f"{PATH} is complete and recent; use --refresh to explore again")
        return 0
    text = f"explore {part or 'the repository'} in depth"
    detail = choose_detail(quiet=quiet, verbose=verbose)
    return launch(git.root, Job(text=text, model=model, json=json, events=events, detail=detail, focus=part))


def _find_part(root: Path, path: Path, focus: str | None) -> str:
    place = (path / focus if focus else path).resolve()
    if not place.is_relative_to(root) or not place.is_dir():
        raise UsageError(f"{focus or path} is not a folder of this repository")
    return "" if place == root else place.relative_to(root).as_posix()


BRANCH = typer.Option(None, "--branch", metavar="NAME", help="Commit on a new branch that begins at HEAD.")
ACCEPT_CAVEAT = typer.Option(False, "--accept-caveat", help="Commit although the task ended with a caveat.")
ACCEPT_HOOK_CHANGES = typer.Option(
    False, "--accept-hook-changes", help="Commit what git hooks change, which was not verified."
)


def commit(
    task_id: str | None = TASK,
    branch: str | None = BRANCH,
    accept_caveat: bool = ACCEPT_CAVEAT,
    accept_hook_changes: bool = ACCEPT_HOOK_CHANGES,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Commit exactly what a verified task changed. Your other changes are left alone.

    The repository's git hooks run, as in `git commit`.
    """
    from agentflow.api.undo import commit_task
    from agentflow.api.worktree import open_home
    from agentflow.cli.tasks import find_task_folder

    root = open_home(folder, task_id).root
    found = find_task_folder(root, task_id, prefer=lambda task: task.tree != task.base_tree)
    answers = _ask_at_terminal(caveat=accept_caveat, hook_changes=accept_hook_changes)
    committed = commit_task(root, found.name, branch=branch, answers=answers)
    if json:
        say_json(committed)
    else:
        _tell_commit(committed)


def _tell_commit(committed: "CommitResult") -> None:
    say(f"committed  {committed.commit[:10]} on {committed.branch or 'no branch'}: {committed.subject}")
    for path in committed.files:
        say(f"  {to_one_line(path)}")
    if not committed.branch:
        say("HEAD is on no branch: git switch -c NAME keeps the commit on one.")
    if committed.changed_by_hooks:
        names = list_some(committed.files_changed_by_hooks)
        say(f"A git hook changed {names} after verification; agentflow verify runs the checks on it.")
