"""A person's commands for a task: `resume`, `answer`, `approve`, `deny`, `cancel` and `undo`."""

from pathlib import Path

import typer

from agentflow.api.decisions import answer_question, decide_approval, parse_edited_input, send_message
from agentflow.api.worktree import find_pending
from agentflow.cli import arguments
from agentflow.cli.printing import say, tell_edits, tell_result
from agentflow.cli.run_options import RunOptions
from agentflow.cli.tasks import locate_task, split_task_id
from agentflow.core.errors import UsageError
from agentflow.core.pending import Answer
from agentflow.core.task import Status

PENDING = typer.Argument(..., metavar="ID", help="The id of what waits; `agentflow status` shows it.")
OF_TASK = typer.Option(
    None, "--task", metavar="TASK", help="The task, if not the newest with that id; its beginning is enough."
)
BY = typer.Option("", "--by", metavar="NAME", help="Your name, recorded with the decision.")
COMMENT = typer.Option("", "--comment", metavar="TEXT", help="A remark, recorded with the decision.")


def resume_task(
    run: RunOptions,
    task_id: str | None = arguments.TASK,
    network: bool = arguments.NETWORK,
    folder: Path = arguments.FOLDER,
) -> int:
    """Continue a stopped, killed or waiting task from where it left off.

    A task that came with the repository is continued only if you name it and its model.
    """
    from agentflow.cli.task import relaunch

    return relaunch(folder, task_id, run.make_request(network=network))


def approve(
    pending_id: str = PENDING,
    args: str | None = typer.Option(
        None, "--args", metavar="JSON", help="Make the call with this input instead."
    ),
    by: str = BY,
    comment: str = COMMENT,
    task_id: str | None = OF_TASK,
    folder: Path = arguments.FOLDER,
) -> None:
    """Approve a tool call or changed checks that wait for you. Then continue with `resume`."""
    decision = Answer(approved=True, input=parse_edited_input(args), by=by, comment=comment)
    _decide(folder, pending_id, task_id, decision)


def deny(
    pending_id: str = PENDING,
    reason: str = typer.Option(
        ..., "--reason", metavar="R", help="The model reads this as the result of the call."
    ),
    by: str = BY,
    comment: str = COMMENT,
    task_id: str | None = OF_TASK,
    folder: Path = arguments.FOLDER,
) -> None:
    """Deny a tool call or changed checks that wait for you. Then continue with `resume`."""
    _decide(folder, pending_id, task_id, Answer(approved=False, text=reason, by=by, comment=comment))


def answer_task(
    run: RunOptions,
    words: list[str] = typer.Argument(
        ...,
        metavar="[TASK] CHOICE|TEXT",
        help="An option's letter, or your own words. [default task: the newest that asks]",
    ),
    folder: Path = arguments.FOLDER,
) -> int:
    from agentflow.cli.task import relaunch

    task_id, said = split_task_id(folder, words)
    if not said:
        raise UsageError(f"say what the answer to {task_id} is", hint="agentflow status shows what it asks")
    git, found = locate_task(folder, task_id, prefer=lambda task: bool(task.pending))
    answer_question(git, found, said)
    return relaunch(git.root, found.name, run.make_request())


def stop_task(
    task_id: str | None = arguments.TASK,
    folder: Path = arguments.FOLDER,
) -> None:
    """Stop a task. `resume` can still continue it. The task may be running in another terminal."""
    from agentflow.api.undo import OPEN, cancel_task

    git, found = locate_task(folder, task_id, prefer=lambda task: task.status in OPEN)
    ending = cancel_task(git.root, found.name)
    said = "cancelled"
    if ending.is_pending:
        said = "was told to stop and is still ending"
    elif ending.status is not Status.CANCELLED:
        said = f"had ended before: {ending.status.replace('_', ' ')}; nothing was cancelled"
    say(f"{found.name} {said}")


def say_to_task(
    words: list[str] = typer.Argument(
        ...,
        metavar="[TASK] TEXT",
        help="What the working role should know. [default task: the newest]",
    ),
    folder: Path = arguments.FOLDER,
) -> None:
    task_id, said = split_task_id(folder, words)
    if not said:
        raise UsageError(f"say what {task_id} should be told", hint="agentflow say TASK use the new parser")
    git, found = locate_task(folder, task_id, prefer=lambda task: task.active)
    send_message(git, found, " ".join(said))
    say(f"{found.name} will read it before its next turn")


def _decide(folder: Path, pending_id: str, task_id: str | None, decision: Answer) -> None:
    git, found = find_pending(folder, pending_id, task_id)
    tell_edits(git.root, found)
    decided = decide_approval(git, found, pending_id, decision)
    then = f". Continue with: agentflow resume {decided.task_id}"
    if decided.was_decided:
        then = f". It is of task {decided.task_id}; name another with --task TASK"
    say(decided.tell() + ("" if decided.approvals_left else then))


def restore_files(
    task_id: str | None = arguments.TASK,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only show what would change."),
    force: bool = typer.Option(
        False, "--force", help="Also restore files that you changed after the task; your version is kept."
    ),
    json: bool = arguments.JSON,
    folder: Path = arguments.FOLDER,
) -> None:
    from agentflow.api.undo import undo

    git, found = locate_task(folder, task_id, goes_on=True)
    result = undo(found.name, folder=git.root, dry_run=dry_run, force=force)
    tell_result(result, result.describe(), json=json)
