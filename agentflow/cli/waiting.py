"""`resume`, `answer`, `approve`, `deny` and `cancel`: from any terminal, any day."""

from pathlib import Path

import typer

from agentflow.cli.options import EVENTS, FOLDER, NETWORK, NO_INPUT, NO_SANDBOX, ONE_JSON, TASK, YES

PENDING = typer.Argument(..., metavar="ID", help="What is pending, as `agentflow status` shows it.")
BY = typer.Option("", "--by", metavar="NAME", help="Who decides.")
COMMENT = typer.Option("", "--comment", metavar="TEXT", help="Kept beside the decision.")


def resume(
    task_id: str | None = typer.Argument(None, metavar="TASK", help="A task; else the newest."),
    yes: bool = YES,
    no_input: bool = NO_INPUT,
    no_sandbox: bool = NO_SANDBOX,
    network: bool = NETWORK,
    json: bool = ONE_JSON,
    events: str | None = EVENTS,
    folder: Path = FOLDER,
) -> int:
    """Go on with a task, exactly where it was. It was stopped or killed, or what it waited for is decided."""
    from agentflow.cli.boundary import Wish
    from agentflow.cli.launch import Job, relaunch
    from agentflow.cli.words import consent_of

    consent = consent_of(yes=yes, no_input=no_input)
    wish = Wish(no_sandbox=no_sandbox, network=network)
    return relaunch(folder, task_id, Job(consent=consent, json=json, events=events, wish=wish))


def approve(
    pending_id: str = PENDING,
    args: str | None = typer.Option(None, "--args", metavar="JSON", help="The input to make the call with."),
    by: str = BY,
    comment: str = COMMENT,
    folder: Path = FOLDER,
) -> None:
    """Approve what waits for you. `resume` then goes on."""
    from agentflow.cli.decisions import decide, edited_input
    from agentflow.core.pending import Answer

    decide(folder, pending_id, Answer(approved=True, input=edited_input(args), by=by, comment=comment))


def deny(
    pending_id: str = PENDING,
    reason: str = typer.Option(..., "--reason", metavar="R", help="Told to the model as the call's result."),
    by: str = BY,
    comment: str = COMMENT,
    folder: Path = FOLDER,
) -> None:
    """Deny what waits for you. `resume` then goes on."""
    from agentflow.cli.decisions import decide
    from agentflow.core.pending import Answer

    decide(folder, pending_id, Answer(approved=False, text=reason, by=by, comment=comment))


def answer(
    task_id: str = TASK,
    words: list[str] = typer.Argument(..., metavar="CHOICE|TEXT", help="An option, or words of your own."),
    folder: Path = FOLDER,
) -> int:
    """Answer what a task asks, and go on."""
    from agentflow.cli.decisions import answer_question
    from agentflow.cli.launch import Job, relaunch

    answer_question(folder, task_id, words)
    return relaunch(folder, task_id, Job())


def cancel(
    task_id: str = TASK,
    folder: Path = FOLDER,
) -> None:
    """Stop a task. It may run in another terminal; `resume` can still go on with it."""
    from agentflow.cli.decisions import cancel_task

    cancel_task(folder, task_id)
