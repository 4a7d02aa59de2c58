"""`undo`: the files as they were before a task."""

from pathlib import Path
from typing import Any

import typer

from agentflow.cli.options import FOLDER, JSON, TASK
from agentflow.cli.printing import say, say_json, tell_edits

_GET_BACK = "GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --git-path agentflow/objects) git show {}:FILE"


def undo(
    task_id: str | None = TASK,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only show what would be done."),
    force: bool = typer.Option(
        False, "--force", help="Also put back files that were changed after the task; what they hold is kept."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Restore the files to their state before a task. Your later edits are kept."""
    from agentflow.api import undoing
    from agentflow.cli.tasks import folder_of
    from agentflow.core.record import plain
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    found = folder_of(root, task_id)
    tell_edits(root, found, goes_on=True)
    told = undoing.undo(found.name, folder=folder, dry_run=dry_run, force=force)
    if json:
        say_json(told)
    else:
        _show(told.task_id, plain(told))


def _show(task_id: str, told: dict[str, Any]) -> None:
    from agentflow.api.undoing import SHOWN
    from agentflow.redact import one_line

    if told["state"] == "already_undone":
        say(f"task {task_id} was undone {told['at'] or 'before'}; nothing to do")
        return
    if told["state"] == "nothing_to_undo":
        say(f"task {task_id} left no change that is still there; nothing to do")
        return
    is_plan = told["state"] == "would_undo"
    say(f"{'would undo' if is_plan else 'undid'} task {task_id}")
    for verb in ("restored", "removed"):
        for path in told[verb]:
            note = "  (changed since)" if path in told["in_the_way"] else ""
            say(f"  {verb.removesuffix('d') if is_plan else verb:<9} {one_line(path)}{note}")
    for path in told["kept"][:SHOWN]:
        say(f"  {'keep' if is_plan else 'kept':<9} {one_line(path)}  (not changed by the task)")
    if told["in_the_way"] and told["replaced"]:
        say(f"what was there is kept: {_GET_BACK.format(told['replaced'])}")
    if is_plan and told["in_the_way"]:
        say(f"{len(told['in_the_way'])} of these changed since: it takes --force, and they are kept")
