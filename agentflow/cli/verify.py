"""`verify`, `ci`, `export` and `import`: checks without a model, and tasks that others can verify.

`ci` reads what GitHub wrote of an event into a file; no text of it reaches a shell.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.api.boundary import TaskRequest, describe_sandbox, open_sandbox, sweep_leftovers
from agentflow.api.verification import (
    VerificationRow,
    choose_exit,
    list_untrusted_checks,
    reverify_records,
    run_checks,
    summarize_checks,
    summarize_records,
)
from agentflow.api.worktree import open_home
from agentflow.checks.interchange import convert_to_sarif, to_junit_xml
from agentflow.cli.arguments import FOLDER, JSON, MODEL, NO_SANDBOX, read_words
from agentflow.cli.printing import require_folders, say, show, tell_result, write_result
from agentflow.cli.prompts import agree
from agentflow.cli.tasks import find_task_folder
from agentflow.core.check_command import format_command
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.evidence import Check
from agentflow.core.pending import Consent
from agentflow.core.record import Record, encode
from agentflow.core.verdict import count_mutants
from agentflow.parse import decode
from agentflow.sandbox.run import Sandbox
from agentflow.store.reading import find
from agentflow.view.text import clip, find_width, send, span
from agentflow.workspace.git import Git, open_repository

if TYPE_CHECKING:
    from agentflow.checks.interchange import SarifResult

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


class CiDemands(Record):
    """What a pull request has to have, and how its commands run."""

    task: bool
    killed: bool
    no_sandbox: bool


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
    git, event = open_repository(folder), _read_event(os.environ)
    if event.issue:
        return _work_on_issue(git, event, label, model, no_sandbox=no_sandbox)
    start = base or event.base
    if not start:
        raise ConfigError("the base of the pull request is not known", hint="agentflow ci --base origin/main")
    demands = CiDemands(task=require, killed=require_killed, no_sandbox=no_sandbox)
    return _verify_again(git, event, start, (summary, sarif), demands)


def _verify_again(
    git: Git, event: CiEvent, base: str, targets: tuple[Path | None, Path | None], demands: CiDemands
) -> int:
    from agentflow.ci.review import PullRequestReview, find_named_tasks, review_pull_request

    named = find_named_tasks(git, base, event.description)
    code = Exit.NOT_VERIFIED if demands.task and not named else Exit.VERIFIED
    review = PullRequestReview(exit_code=code, remarks=(), text="")
    if not named:
        say("No commit of this pull request names an agentflow task, so nothing was verified.")
        if not demands.killed:
            return code
    sandbox = open_sandbox(git, TaskRequest(no_sandbox=demands.no_sandbox))
    say(describe_sandbox(sandbox))
    if named:
        review = review_pull_request(sandbox, git, base, named, show)
    if demands.killed:
        from agentflow.api.mutation import MutationRequest, describe_mutation, find_mutation
        from agentflow.ci.review import find_start, require_killed

        request = MutationRequest(revisions=f"{find_start(git, base, 'HEAD')}..HEAD", tell=say)
        show(describe_mutation(found := find_mutation(sandbox, git, request)))
        review = require_killed(review, found)
    _tell(review.remarks, review.text, targets)
    return review.exit_code


def _tell(remarks: "Sequence[SarifResult]", text: str, targets: tuple[Path | None, Path | None]) -> None:
    from agentflow.ci.review import to_annotation, to_sarif

    summary, sarif = targets
    place = summary or os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        _append(Path(place), text)
    if sarif is not None:
        write_result(sarif, encode(to_sarif(remarks)).decode())
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for remark in remarks:
            say(to_annotation(remark))


def _append(place: Path, text: str) -> None:
    try:
        with place.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"cannot write {place}: {error.strerror}") from None


def _work_on_issue(git: Git, event: CiEvent, label: str, model: str | None, *, no_sandbox: bool) -> int:
    from agentflow.api.undo import commit_task
    from agentflow.ci.review import keep_record
    from agentflow.cli.task import launch

    if event.label != label:
        say(f"The issue did not get the label {label}, so there is nothing to do.")
        return Exit.VERIFIED
    request = TaskRequest(
        text=read_words([event.text]), model=model, plain=True, consent=Consent.NO, no_sandbox=no_sandbox
    )
    code = launch(git.root, request)
    if code == Exit.VERIFIED:
        branch = f"agentflow/issue-{event.issue}"
        committed = commit_task(git.root, branch=branch)
        ref = keep_record(git, find(git.root, None))
        say(f"committed  {committed.commit[:10]} on {branch}; its record is {ref}")
        if output := os.environ.get("GITHUB_OUTPUT"):
            _append(Path(output), f"branch={branch}\nrecord={ref}\n")
    return code
