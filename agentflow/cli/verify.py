"""`verify`, `ci`, `replay`, `export` and `import`: what needs no model, and tasks that others can verify.

`ci` reads what GitHub wrote of an event into a file; no text of it reaches a shell.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path

import anyio
import typer

from agentflow.api.boundary import TaskRequest, describe_sandbox, open_sandbox, sweep_leftovers
from agentflow.api.decisions import explain_foreign
from agentflow.api.verification import (
    VerificationRow,
    choose_exit,
    list_untrusted_checks,
    reverify_records,
    run_checks,
    summarize_checks,
    summarize_records,
)
from agentflow.api.wiring import Setup, assemble, make_task, prepare
from agentflow.api.worktree import open_home
from agentflow.checks.interchange import convert_to_sarif, to_junit_xml
from agentflow.cli.arguments import FOLDER, JSON, MODEL, NO_SANDBOX, read_words
from agentflow.cli.printing import require_folders, say, show, tell_result, write_result
from agentflow.cli.prompts import agree
from agentflow.cli.tasks import find_task_folder
from agentflow.core.check_command import format_command
from agentflow.core.errors import ConfigError, Exit, StateError, UsageError
from agentflow.core.events import PersonSaid, StateChanged, StoredEvent, TaskEnded, TaskStarted
from agentflow.core.evidence import Check
from agentflow.core.fold import begin_run
from agentflow.core.pending import Consent
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import ChecksBeside, Status, TaskState, gather_parts
from agentflow.core.verdict import count_mutants
from agentflow.model.scripted import normalize_recording
from agentflow.parse import decode, fit
from agentflow.redact import to_one_line
from agentflow.sandbox.run import Sandbox
from agentflow.store.bundle import open_task
from agentflow.store.journal import load_runs, read_messages
from agentflow.store.reading import TASKS, find, fold_state, load_events
from agentflow.store.tasks import TaskStore
from agentflow.view.text import clip, find_width, send, span
from agentflow.workflow.crew import Recorded
from agentflow.workflow.gates import go_on, record_answer
from agentflow.workflow.run import run_phases
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.working_copy import lay_out, share_environments

RECORDED = typer.Argument(
    None,
    metavar="TASK|FILE|RANGE",
    help="A task, or a file that `export` wrote: run its commands again and compare. "
    "With --mutants: a commit, or A..B.",
)
QUICK = typer.Option(False, "--quick", help="Run only lint, format and the tests of changed files.")
CHECKS_JUNIT = typer.Option(None, "--junit", metavar="FILE", help="Write the results as JUnit XML.")
CHECKS_SARIF = typer.Option(None, "--sarif", metavar="FILE", help="Write the findings as SARIF.")
DRY_RUN = typer.Option(False, "--dry-run", help="Only list the checks and their commands.")
MUTANTS = typer.Option(False, "--mutants", help="Show which changed lines no test would notice.")
CHECKS_NETWORK = typer.Option(False, "--network", help="Let the checks reach the network.")


def verify_here(
    task_id: str | None = RECORDED,
    quick: bool = QUICK,
    junit: Path | None = CHECKS_JUNIT,
    sarif: Path | None = CHECKS_SARIF,
    dry_run: bool = DRY_RUN,
    mutants: bool = MUTANTS,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = CHECKS_NETWORK,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Run this repository's checks, or re-run the checks recorded for a task.

    No model is asked and no file is changed. With TASK or an exported FILE, the recorded commands run
    again on fresh copies: exit code 0 means that every result is as recorded and that the files here are
    those that were judged. With --mutants, one small edit after the other is made in a copy of the changed
    code (of the files here since the last commit, or of RANGE), and the tests run: 4 if they miss one.
    """
    require_folders(junit, sarif)
    git = open_home(folder, task_id) if task_id and not mutants else open_repository(folder)
    sandbox = open_sandbox(git, TaskRequest(no_sandbox=no_sandbox, network=network, agree=agree))
    if not json:
        for said in (*sweep_leftovers(), describe_sandbox(sandbox), *list_untrusted_checks(sandbox.root)):
            say(said)
        if not dry_run and (fill := sandbox.plan_fill()):
            say(fill.describe())
    if mutants:
        return _show_mutants(sandbox, git, task_id or "", sarif, json=json)
    shown = []
    found = run_checks(sandbox, is_quick=quick, dry_run=dry_run, during=_announce)
    for row in reverify_records(sandbox, task_id) if task_id else found:
        shown.append(row)
        if not json:
            show(row.lines)
    _write_interchange(shown, junit, sarif)
    summary = summarize_records(shown) if task_id else summarize_checks(shown, dry_run=dry_run)
    tell_result([row.values for row in shown], (summary,), json=json)
    return choose_exit(shown)


def _show_mutants(sandbox: Sandbox, git: Git, revisions: str, sarif: Path | None, *, json: bool) -> int:
    from agentflow.api.mutation import MutationRequest, describe_mutation, find_mutation

    request = MutationRequest(revisions=revisions, tell=lambda said: None if json else say(said))
    found = find_mutation(sandbox, git, request)
    if sarif is not None:
        from agentflow.ci.review import list_survivors, to_sarif

        write_result(sarif, encode(to_sarif(tuple(list_survivors(found.mutants)))).decode() + "\n")
    result = {**count_mutants(found.mutants), "unread": list(found.unread)}
    tell_result(result, describe_mutation(found), json=json)
    return Exit.CAVEAT if found.is_open else Exit.VERIFIED


def _write_interchange(rows: Sequence[VerificationRow], junit: Path | None, sarif_file: Path | None) -> None:
    ran = [row.ran for row in rows if row.ran is not None]
    if junit is not None:
        write_result(junit, to_junit_xml(ran))
    if sarif_file is not None:
        write_result(sarif_file, encode(convert_to_sarif(ran)).decode() + "\n")


@contextmanager
def _announce(check: Check) -> Iterator[None]:
    """Say what is running, at a terminal only, and take it back."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    width = max(20, (find_width(sys.stderr) or 80) - 1)
    send(clip(span(f"… {check.name}  {format_command(check.command)}").text, width), sys.stderr)
    try:
        yield
    finally:
        send("\r\x1b[K", sys.stderr)


ONE_TASK = typer.Argument(..., metavar="TASK", help="A task's id or its beginning.")
BUNDLE_FILE = typer.Argument(None, metavar="FILE", help="The file. [default: the id with .agentflow]")
REF = typer.Option(
    False, "--ref", help="Keep it in the repository instead, as refs/agentflow/TASK, to push beside a commit."
)
ATTESTATION = typer.Option(
    None, "--attestation", metavar="FILE", help="Also write the verdict as an in-toto statement, unsigned."
)


def export_bundle(
    task_id: str = ONE_TASK,
    target: Path | None = BUNDLE_FILE,
    ref: bool = REF,
    attestation: Path | None = ATTESTATION,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Write a task into one file: its record, evidence, change and model replies.

    What holds a secret is left out. `verify FILE` and `replay FILE` work in any clone that has the commit.
    """
    from agentflow.store.bundle import export_task

    git = open_repository(folder)
    found = find_task_folder(git.root, task_id)
    if ref:
        if attestation is not None:
            raise UsageError("an attestation needs a file: leave out --ref, or export twice")
        from agentflow.ci.review import keep_record

        kept = keep_record(git, found)
        said = f"Kept the task in {kept}. Send it with: git push origin {kept}"
        tell_result({"task_id": found.name, "ref": kept}, (said,), json=json)
        return
    written = export_task(git, found, target)
    if attestation is not None:
        from agentflow.store.bundle import make_statement

        write_result(attestation, encode(make_statement(git, found, Path(written.path))).decode() + "\n")
    rows = [f"Left out, for a secret in it: {', '.join(written.left_out)}."] if written.left_out else []
    rows += [
        f"Wrote {written.path} ({written.address[:16]}). Check it with `agentflow verify {written.path}`."
    ]
    tell_result(written, rows, json=json)


def import_bundle(
    source: Path = typer.Argument(..., metavar="FILE", help="A file that `export` or a batch wrote."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Read a task from a file into this repository, if the file is undamaged.

    No file of the repository is changed; the change is in `change.patch` in the task's folder.
    """
    from agentflow.store.bundle import import_task

    found = import_task(open_repository(folder), source)
    said = f"Imported the task {found.task_id}. See it with `agentflow status {found.task_id}`."
    tell_result(found, (said,), json=json)


BASE = typer.Option(
    "", "--base", metavar="REF", help="Check the commits since this one. [default: the pull request's base]"
)
SARIF = typer.Option(None, "--sarif", metavar="FILE", help="Write the findings as SARIF.")
SUMMARY = typer.Option(
    None,
    "--summary",
    metavar="FILE",
    help="Add the Markdown report to this file. [default: $GITHUB_STEP_SUMMARY]",
)
REQUIRE = typer.Option(False, "--require", help="Exit with 1 if no commit names a task.")
REQUIRE_KILLED = typer.Option(
    False, "--require-killed", help="Exit with 1 if no test notices a small edit of the changed code."
)
LABEL = typer.Option("agentflow", "--label", metavar="NAME", help="The issue label that starts a task.")
_MOST_BYTES = 20_000_000


class CiEvent(Record):
    """A pull request, a label put on an issue, or neither."""

    base: str = ""
    """The commit that a pull request is compared with."""
    description: str = ""
    """The text of a pull request."""
    issue: int = 0
    """The number of the issue that was given a label; 0 for none."""
    label: str = ""
    text: str = ""
    """The title and the text of that issue."""


def _read_event(environ: Mapping[str, str]) -> CiEvent:
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return CiEvent()
    try:
        with Path(path).open("rb") as file:
            event: object = decode(dict[str, object], file.read(_MOST_BYTES), path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    number = _find(event, "issue", "number")
    if _text(event, "action") != "labeled" or not isinstance(number, int):
        base, description = _text(event, "pull_request", "base", "sha"), _text(event, "pull_request", "body")
        return CiEvent(base=base, description=description)
    text = f"{_text(event, 'issue', 'title')}\n\n{_text(event, 'issue', 'body')}".strip()
    return CiEvent(issue=number, label=_text(event, "label", "name"), text=text)


def _find(event: object, *keys: str) -> object:
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def _text(event: object, *keys: str) -> str:
    found = _find(event, *keys)
    return found if isinstance(found, str) else ""


def ci(
    base: str = BASE,
    summary: Path | None = SUMMARY,
    sarif: Path | None = SARIF,
    require: bool = REQUIRE,
    require_killed: bool = REQUIRE_KILLED,
    label: str = LABEL,
    model: str | None = MODEL,
    no_sandbox: bool = NO_SANDBOX,
    folder: Path = FOLDER,
) -> int:
    """Re-verify the tasks that a pull request names, without a key or a model.

    Tasks are named by Agentflow-Task trailers of commits, or by the pull request's description; their records
    are in refs/agentflow, where `export --ref` keeps them. Exit code 4 means that no verified task accounts
    for some of the changed files. Lines that no test notices are shown; with --require-killed they are looked
    for in all changed code, as by `verify --mutants`, and fail. Started by a label on an issue, it carries
    out what the issue says and commits it on a branch. Exit codes are those of `verify` and `task`.
    """
    from agentflow.api.mutation import MutationRequest, describe_mutation, find_mutation
    from agentflow.ci.review import (
        PullRequestReview,
        find_named_tasks,
        find_start,
        review_pull_request,
        to_annotation,
        to_sarif,
    )
    from agentflow.ci.review import require_killed as fail_survivors

    git, event = open_repository(folder), _read_event(os.environ)
    if event.issue:
        return _work_on_issue(git, event, label, model, no_sandbox=no_sandbox)
    start = base or event.base
    if not start:
        raise ConfigError("the base of the pull request is not known", hint="agentflow ci --base origin/main")
    named = find_named_tasks(git, start, event.description)
    code = Exit.NOT_VERIFIED if require and not named else Exit.VERIFIED
    review = PullRequestReview(exit_code=code, remarks=(), text="")
    if not named:
        say("No commit of this pull request names an agentflow task, so nothing was verified.")
        if not require_killed:
            return code
    sandbox = open_sandbox(git, TaskRequest(no_sandbox=no_sandbox))
    say(describe_sandbox(sandbox))
    if named:
        review = review_pull_request(sandbox, git, start, named, show)
    if require_killed:
        request = MutationRequest(revisions=f"{find_start(git, start, 'HEAD')}..HEAD", tell=say)
        show(describe_mutation(mutation := find_mutation(sandbox, git, request)))
        review = fail_survivors(review, mutation)
    place = summary or os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        write_result(Path(place), review.text, "a")
    if sarif is not None:
        write_result(sarif, encode(to_sarif(review.remarks)).decode())
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for remark in review.remarks:
            say(to_annotation(remark))
    return review.exit_code


def _work_on_issue(git: Git, event: CiEvent, label: str, model: str | None, *, no_sandbox: bool) -> int:
    from agentflow.api.undo import commit_task
    from agentflow.ci.review import keep_record
    from agentflow.cli.task import launch

    if event.label != label:
        say(f"The issue did not get the label {label}, so there is nothing to do.")
        return Exit.VERIFIED
    request = TaskRequest(
        text=read_words([event.text]),
        model=model,
        plain=True,
        consent=Consent.NO,
        no_sandbox=no_sandbox,
        memory=False,
    )
    code = launch(git.root, request)
    if code == Exit.VERIFIED:
        branch = f"agentflow/issue-{event.issue}"
        committed = commit_task(git.root, branch=branch)
        ref = keep_record(git, find(git.root, None))
        say(f"committed  {committed.commit[:10]} on {branch}; its record is {ref}")
        if output := os.environ.get("GITHUB_OUTPUT"):
            write_result(Path(output), f"branch={branch}\nrecord={ref}\n", "a")
    return code


_CUT = (Status.CANCELLED, Status.ERROR)
_IGNORED = frozenset(
    {
        *("Warned", "Signalled", "Retried", "Searched", "RepairTried", "Answered", "StateChanged"),
        *("Asked", "CheckStarted", "TestRunsLong", "Probing", "Probed", "TaskUndone", "MemoryRecalled"),
    }
)
"""Events about the machine, the person and the store, not about what the task did.

Checks that run at once start in any order; their results are told in the order of the checks. A request
that got no reply is made again when the task is resumed, and counts as a turn.
"""
_BEGINNINGS = frozenset({"TaskStarted", "PhaseStarted", "RunStarted", "ToolStarted"})
"""Events that a resumed task has again where it goes on with what was cut off."""
_TOLD = ("phase", "role", "tool", "check", "status", "outcome", "exit_code", "is_error", "reason", "message")
"""What two runs of a task have in common, event by event; requests are compared as they are made."""
_WIDE = 600


def replay(
    task_id: str | None = typer.Argument(
        None, metavar="TASK|FILE", help="A task, or a file that `export` wrote; the newest by default."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Run a task again from its recorded model replies and compare.

    It runs in a copy, without a model or a network. Exit code 0 means the same requests led to the same
    verdict; 1 means they did not, and the first difference is shown.
    """
    git = open_home(folder, task_id)
    if task_id is None or not Path(task_id).is_file():
        found = _replay(git, find_task_folder(git.root, task_id))
    else:
        with open_task(git.root, task_id) as path:
            found = _replay(git, path)
    same = f"the same: {found.events} events, {found.status} (exit {found.exit_code})"
    tell_result(found, (f"differs: {found.difference}" if found.difference else same,), json=json)
    return Exit.NOT_VERIFIED if found.difference else Exit.VERIFIED


class ReplayResult(Record):
    task_id: str
    status: Status
    exit_code: int
    events: int
    difference: str = ""
    """The first difference from the recorded task, or empty."""


def _replay(git: Git, path: Path) -> ReplayResult:
    happened = tuple(load_events(path))
    task = fold_state(path, happened)
    ends = _list_ends(happened)
    if task.base_tree is None or not ends or ends[-1] in (None, Status.SUSPENDED, *_CUT):
        hint = "agentflow log shows where it stopped"
        raise StateError("only a task that ran to its end can be replayed", hint=hint)
    if not git.has_tree(task.session.start_tree or task.base_tree):
        hint = "replay it in a clone that has the commit"
        raise StateError("this repository does not have the files that the task began with", hint=hint)
    with _copy_repository(git, path, task.session.start_tree or task.base_tree) as root:
        request = TaskRequest(
            text=task.task,
            model=f"replay:{path.name}",
            no_sandbox=task.sandbox == "none" and not explain_foreign(git, path),
        )
        setup = prepare(root, request)
        setup = setup.replace(sandbox=share_environments(setup.sandbox, git.root))
        store = TaskStore.create(root, _begin_again(setup, happened, task))
        ended = _run(setup, store, task, path)
        now = tuple(load_events(store.folder))
        difference = _find_difference(happened, now, (str(git.root), str(root)))
    assert ended.ending is not None
    same = (ended.status, ended.ending.exit_code) == (task.status, task.ending and task.ending.exit_code)
    if not difference and not same:
        difference = f"it ended {ended.status} in place of {task.status}"
    if difference and any(end is None or end in _CUT for end in ends[:-1]):
        difference += (
            "; this task was stopped and resumed, and what was cut off then runs to its end in a replay"
        )
    return ReplayResult(
        task_id=task.task_id,
        status=ended.status,
        exit_code=ended.ending.exit_code,
        events=len(happened),
        difference=difference,
    )


def _list_ends(happened: tuple[StoredEvent, ...]) -> list[Status | None]:
    """Return how each process that worked on a task ended its work, None where it was killed."""
    marks = [one.event for one in happened if isinstance(one.event, TaskStarted | TaskEnded)]
    return [
        following.status if isinstance(following, TaskEnded) else None
        for one, following in zip_longest(marks, marks[1:])
        if isinstance(one, TaskStarted)
    ]


def _begin_again(setup: Setup, happened: tuple[StoredEvent, ...], recorded: TaskState) -> TaskState:
    first = next(one.event.changed for one in happened if isinstance(one.event, StateChanged))
    fresh = make_task(setup, first["task"], first["max_iterations"])
    keys = ("task_id", "started_at", "model", "sandbox", "gaps")
    found = recorded.first_try and recorded.first_try.replace(refused="")
    known = recorded.replace(first_try=found).to_fields()
    kept = (
        *("surroundings", "repo_map", "instructions", "excerpts"),
        *("first_try", "recalled", "remembers", "repair_seconds"),
    )
    then = {key: known[key] for key in kept}
    fields = {**first, **{key: fresh.to_fields()[key] for key in keys}, **then}
    return fit(TaskState, gather_parts(fields))


def _run(setup: Setup, store: TaskStore, recorded: TaskState, folder: Path) -> TaskState:
    beside = recorded.beside if isinstance(recorded.beside, ChecksBeside) else None
    crew = assemble(setup, store, Consent.SUSPEND).replace(
        recorded=Recorded(
            beside=beside,
            conversation=_find_conversation(folder),
            recall_messages=_recall_messages(folder),
        ),
        grace=0 if beside else None,
        webhook=None,
        memory=None,
    )
    task = anyio.run(run_phases, crew, store.task)
    while task.status is Status.SUSPENDED:
        known = [item for item in task.pending if item.id in recorded.waiting.answers]
        if task.pending and not known:
            break
        for item in known:
            task = record_answer(task, item, recorded.waiting.answers[item.id])
        task = anyio.run(run_phases, crew, go_on(task, is_told=True))
    return task


def _find_conversation(folder: Path) -> Run | None:
    """Return the conversation that a recorded task went on with, as the end of a run."""
    heads = (run.head for run in load_runs(folder))
    head = next((head for head in heads if head.history), None)
    return begin_run(head, None).replace(outcome=RunOutcome.SUBMITTED) if head else None


def _recall_messages(folder: Path) -> Callable[[int, int], tuple[str, ...]]:
    happened = (one.event for one in load_events(folder))
    places = [(event.run, event.turn) for event in happened if isinstance(event, PersonSaid)]
    messages = tuple(zip(places, read_messages(folder), strict=False))
    return lambda run, turns: tuple(text for place, text in messages if place == (run, turns))


@contextmanager
def _copy_repository(git: Git, path: Path, tree: str) -> Iterator[Path]:
    with lay_out(git, tree) as stage:
        root = stage.view.place
        (root / ".git/info").mkdir(exist_ok=True)
        (root / ".git/info/exclude").write_text("/.venv\n/venv\n/env\n/node_modules\n", "utf-8")
        open_repository(root).call("read-tree", tree)
        shutil.copytree(path, root / TASKS / path.name)
        yield root


def _find_difference(
    then: tuple[StoredEvent, ...], now: tuple[StoredEvent, ...], roots: tuple[str, ...]
) -> str:
    one, other = _split_by_run(then, roots), _split_by_run(now, roots)
    for run in sorted({*one, *other}):
        for a, b in zip_longest(one.get(run, []), other.get(run, []), fillvalue="nothing"):
            if a != b:
                where = f"run {run}" if run else "the task"
                return f"{where}: {to_one_line(b, _WIDE)} in place of {to_one_line(a, _WIDE)}"
    return ""


def _split_by_run(happened: tuple[StoredEvent, ...], roots: tuple[str, ...]) -> dict[int, list[str]]:
    """Return the events of each run in their order, those of the task itself under 0.

    Calls of one turn that only read are made at once and end in any order: they stand by their ids.
    However often a task was stopped, it begins once and ends once, and so does each part of it.
    """
    streams: dict[int, list[tuple[str, str]]] = {}
    last = max((one.seq for one in happened if isinstance(one.event, TaskEnded)), default=None)
    for one in happened:
        kind = type(one.event).__name__
        if kind in _IGNORED or (kind == "TaskEnded" and one.seq != last):
            continue
        told = to_builtins(one.event)
        words = (kind, *(str(told[key]) for key in _TOLD if told.get(key) not in (None, "")))
        text = normalize_recording(" ".join(words), roots)
        stream = streams.setdefault(told.get("run", 0), [])
        row = (told.get("call_id", ""), text)
        if kind not in _BEGINNINGS or row not in stream:
            stream.append(row)
    ordered: dict[int, list[str]] = {}
    for run, stream in streams.items():
        for is_call, stretch in groupby(stream, key=lambda row: row[0] != ""):
            rows = list(stretch)
            if is_call:
                rows.sort(key=itemgetter(0))
            ordered.setdefault(run, []).extend(text for _, text in rows)
    return ordered
