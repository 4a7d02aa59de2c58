"""`resume`, `answer`, `approve`, `deny` and `cancel`: from any terminal, any day."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.options import EVENTS, FOLDER, MODEL, NETWORK, NO_INPUT, NO_SANDBOX, ONE_JSON, TASK, YES
from agentflow.cli.printing import say, tell_edits

if TYPE_CHECKING:
    from agentflow.core.pending import Answer

PENDING = typer.Argument(..., metavar="ID", help="What is pending, as `agentflow status` shows it.")
BY = typer.Option("", "--by", metavar="NAME", help="Who decides.")
COMMENT = typer.Option("", "--comment", metavar="TEXT", help="Kept beside the decision.")


def resume(
    task_id: str | None = TASK,
    model: str | None = MODEL,
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = NETWORK,
    json: bool = ONE_JSON,
    events: str | None = EVENTS,
    folder: Path = FOLDER,
) -> int:
    """Continue a stopped, killed or waiting task. It goes on from where it left off.

    A task that came with the repository is continued only if you name it and its model.
    """
    from agentflow.api.boundary import Wish
    from agentflow.cli.launch import Job, relaunch
    from agentflow.cli.words import consent_of

    consent = consent_of(yes=yes, no_input=no_input)
    wish = Wish(no_sandbox=no_sandbox, network=network)
    return relaunch(folder, task_id, Job(model=model, consent=consent, json=json, events=events, wish=wish))


def approve(
    pending_id: str = PENDING,
    args: str | None = typer.Option(None, "--args", metavar="JSON", help="The input to make the call with."),
    by: str = BY,
    comment: str = COMMENT,
    folder: Path = FOLDER,
) -> None:
    """Approve what waits for you. `resume` then goes on."""
    from agentflow.api.decisions import edited_input
    from agentflow.core.pending import Answer

    _decide(folder, pending_id, Answer(approved=True, input=edited_input(args), by=by, comment=comment))


def deny(
    pending_id: str = PENDING,
    reason: str = typer.Option(..., "--reason", metavar="R", help="Told to the model as the call's result."),
    by: str = BY,
    comment: str = COMMENT,
    folder: Path = FOLDER,
) -> None:
    """Deny what waits for you. `resume` then goes on."""
    from agentflow.core.pending import Answer

    _decide(folder, pending_id, Answer(approved=False, text=reason, by=by, comment=comment))


def answer(
    words: list[str] = typer.Argument(
        ...,
        metavar="[TASK] CHOICE|TEXT",
        help="An option, or words of your own; to the newest task that asks.",
    ),
    folder: Path = FOLDER,
) -> int:
    """Answer what a task asks, and go on."""
    from agentflow.api.decisions import answer_question
    from agentflow.cli.launch import Job, relaunch
    from agentflow.cli.tasks import folder_of, named_before
    from agentflow.core.errors import UsageError
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    task_id, said = named_before(git.root, words)
    if not said:
        raise UsageError(f"say what the answer to {task_id} is", hint="agentflow status shows what it asks")
    found = folder_of(git.root, task_id, prefer=lambda task: bool(task.pending))
    tell_edits(git.root, found)
    answer_question(folder, found.name, said)
    return relaunch(folder, found.name, Job())


def cancel(
    task_id: str | None = TASK,
    folder: Path = FOLDER,
) -> None:
    """Stop a task. It may run in another terminal; `resume` can still go on with it."""
    from agentflow.api.cancelling import OPEN, cancel_task
    from agentflow.cli.tasks import folder_of
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    found = folder_of(root, task_id, prefer=lambda task: task.status in OPEN)
    tell_edits(root, found)
    ending = cancel_task(folder, found.name)
    said = "was asked to stop, and is still ending" if ending.is_pending else str(ending.status)
    say(f"{found.name} {said}")


def _decide(folder: Path, pending_id: str, decision: "Answer") -> None:
    from agentflow.api.decisions import decide, find_pending
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    tell_edits(root, find_pending(root, pending_id))
    told = decide(folder, pending_id, decision)
    if told.before:
        say(f"{pending_id} was decided before: {told.word}")
    else:
        say(f"{pending_id} {told.word}; agentflow resume {told.task_id} goes on")
