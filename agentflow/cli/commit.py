"""`commit`: a verified task as one commit."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.arguments import FOLDER, JSON, TASK
from agentflow.cli.printing import say, say_json

if TYPE_CHECKING:
    from agentflow.workspace.commit import Committed

BRANCH = typer.Option(None, "--branch", metavar="NAME", help="Commit on a new branch that begins at HEAD.")


def commit(
    task_id: str | None = TASK,
    branch: str | None = BRANCH,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Commit exactly what a verified task changed. Your other changes are left alone.

    The repository's git hooks run, as in `git commit`.
    """
    from agentflow.api.commit import commit_task
    from agentflow.api.worktree import open_home
    from agentflow.cli.tasks import folder_of

    root = open_home(folder, task_id).root
    found = folder_of(root, task_id, prefer=lambda task: task.tree != task.base_tree)
    committed = commit_task(root, found.name, branch=branch)
    if json:
        say_json(committed)
    else:
        tell_commit(committed)


def tell_commit(committed: "Committed") -> None:
    """Print a commit that was made."""
    from agentflow.redact import one_line

    place = f" on {committed.branch}" if committed.branch else ""
    say(f"committed  {committed.commit[:10]}{place}: {committed.subject}")
    for path in committed.files:
        say(f"  {one_line(path)}")
    if committed.changed_by_hooks:
        say("A git hook changed what was committed: it is no longer exactly what was verified.")
