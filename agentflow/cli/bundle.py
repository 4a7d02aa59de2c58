"""`export` and `import`: a task as one file."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import say, say_json
from agentflow.cli.tasks import folder_of

if TYPE_CHECKING:
    from agentflow.workspace.git import Git


def export_bundle(
    task_id: str = typer.Argument(..., metavar="TASK", help="A task's id or its beginning."),
    target: Path | None = typer.Argument(
        None, metavar="FILE", help="The file. [default: the id with .agentflow]"
    ),
    ref: bool = typer.Option(
        False,
        "--ref",
        help="Keep it in the repository instead, as refs/agentflow/TASK, to push beside a commit.",
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Write a task into one file: its record, evidence, change and model replies.

    Secrets are taken out. `verify FILE` and `replay FILE` work in any clone that has the commit.
    """
    from agentflow.api.bundles import export_task
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    if ref:
        _keep(git, folder_of(git.root, task_id), json=json)
        return
    written = export_task(git, folder_of(git.root, task_id), target)
    if json:
        say_json(written)
    else:
        say(
            f"Wrote {written.path} ({written.address[:16]}). Check it with `agentflow verify {written.path}`."
        )


def _keep(git: "Git", task: Path, *, json: bool) -> None:
    from agentflow.ci.records import keep_record

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
    """Put the task of a file among the tasks of this repository, once it is found undamaged.

    No file of the repository is changed; `change.patch` in the task's folder holds the change.
    """
    from agentflow.api.bundles import import_task
    from agentflow.workspace.git import open_repository

    found = import_task(open_repository(folder), source)
    if json:
        say_json(found)
    else:
        say(f"Imported the task {found.task_id}. See it with `agentflow status {found.task_id}`.")
