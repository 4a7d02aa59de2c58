"""`verify`, `export` and `import`: checks without a model, and a task as one file for others to verify."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import FOLDER, JSON, NO_SANDBOX
from agentflow.cli.printing import require_folders, say, say_json, show, write_result
from agentflow.cli.tasks import find_task_folder
from agentflow.core.errors import UsageError
from agentflow.core.evidence import Check
from agentflow.core.record import encode
from agentflow.core.several import describe_several
from agentflow.view.text import clip, find_width, send, span

if TYPE_CHECKING:
    from agentflow.api.verification import VerificationRow
    from agentflow.workspace.git import Git


RECORDED = typer.Argument(
    None,
    metavar="TASK|FILE",
    help="A task, or a file that `export` wrote: run its commands again and compare.",
)
QUICK = typer.Option(False, "--quick", help="Run only lint, format and the tests of changed files.")
CHECKS_JUNIT = typer.Option(None, "--junit", metavar="FILE", help="Write the results as JUnit XML.")
CHECKS_SARIF = typer.Option(None, "--sarif", metavar="FILE", help="Write the findings as SARIF.")
DRY_RUN = typer.Option(False, "--dry-run", help="Only list the checks and their commands.")
CHECKS_NETWORK = typer.Option(False, "--network", help="Let the checks reach the network.")


def verify_here(
    task_id: str | None = RECORDED,
    quick: bool = QUICK,
    junit: Path | None = CHECKS_JUNIT,
    sarif: Path | None = CHECKS_SARIF,
    dry_run: bool = DRY_RUN,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = CHECKS_NETWORK,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Run this repository's checks, or re-run the checks recorded for a task.

    No model is asked and no file is changed. With TASK or an exported FILE, the recorded commands run
    again on fresh copies: exit code 0 means that every result is as recorded and that the files here are
    those that were judged.
    """
    from agentflow.api.boundary import Wish, describe_sandbox, open_sandbox, sweep_leftovers
    from agentflow.api.verification import (
        choose_exit,
        list_untrusted_checks,
        reverify_records,
        run_checks,
        summarize_checks,
        summarize_records,
    )
    from agentflow.api.worktree import open_home
    from agentflow.cli.prompts import agree
    from agentflow.workspace.git import open_repository

    require_folders(junit, sarif)
    git = open_home(folder, task_id) if task_id else open_repository(folder)
    sandbox = open_sandbox(git, Wish(no_sandbox=no_sandbox, network=network, agree=agree))
    if not json:
        for said in (*sweep_leftovers(), describe_sandbox(sandbox), *list_untrusted_checks(sandbox.root)):
            say(said)
        if not dry_run and (fill := sandbox.plan_fill()):
            say(fill.describe())
    shown = []
    found = run_checks(sandbox, is_quick=quick, dry_run=dry_run, during=_announce)
    for row in reverify_records(sandbox, task_id) if task_id else found:
        shown.append(row)
        if not json:
            show(row.lines)
    _write_interchange(shown, junit, sarif)
    if json:
        say_json([row.values for row in shown])
    else:
        show((summarize_records(shown) if task_id else summarize_checks(shown, dry_run=dry_run),))
    return choose_exit(shown)


def _write_interchange(
    rows: "Sequence[VerificationRow]", junit: Path | None, sarif_file: Path | None
) -> None:
    from agentflow.checks.interchange import junit_xml, sarif

    ran = [row.ran for row in rows if row.ran is not None]
    if junit is not None:
        write_result(junit, junit_xml(ran))
    if sarif_file is not None:
        write_result(sarif_file, encode(sarif(ran)).decode() + "\n")


@contextmanager
def _announce(check: Check) -> Iterator[None]:
    """Say what is running, at a terminal only, and take it back."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    width = max(20, (find_width(sys.stderr) or 80) - 1)
    send(clip(span(f"… {check.name}  {describe_several(check.command)}").text, width), sys.stderr)
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

    Secrets are removed. `verify FILE` and `replay FILE` work in any clone that has the commit.
    """
    from agentflow.store.bundle import export_task
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    found = find_task_folder(git.root, task_id)
    if ref:
        if attestation is not None:
            raise UsageError("an attestation needs a file: leave out --ref, or export twice")
        _keep(git, found, json=json)
        return
    written = export_task(git, found, target)
    if attestation is not None:
        from agentflow.store.bundle import make_statement

        write_result(attestation, encode(make_statement(git, found, Path(written.path))).decode() + "\n")
    if json:
        say_json(written)
    else:
        say(
            f"Wrote {written.path} ({written.address[:16]}). Check it with `agentflow verify {written.path}`."
        )


def _keep(git: "Git", task: Path, *, json: bool) -> None:
    from agentflow.ci.review import keep_record

    kept = keep_record(git, task)
    if json:
        say_json({"task_id": task.name, "ref": kept})
    else:
        say(f"Kept the task in {kept}. Send it with: git push origin {kept}")


def import_bundle(
    source: Path = typer.Argument(..., metavar="FILE", help="A file that `export` or a batch wrote."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Read a task from a file into this repository, if the file is undamaged.

    No file of the repository is changed; the change is in `change.patch` in the task's folder.
    """
    from agentflow.store.bundle import import_task
    from agentflow.workspace.git import open_repository

    found = import_task(open_repository(folder), source)
    if json:
        say_json(found)
    else:
        say(f"Imported the task {found.task_id}. See it with `agentflow status {found.task_id}`.")
