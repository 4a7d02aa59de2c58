"""`status`, `log` and `evidence`: they read a task's files and never need its process."""

from pathlib import Path

import typer

from agentflow.cli.options import FOLDER, JSON, TASK
from agentflow.cli.printing import say, say_json, say_line, show, tell_edits


def status(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Show how a task stands."""
    from agentflow.core.record import plain
    from agentflow.core.task import FRONTMATTER_KEYS
    from agentflow.store.locks import is_at_work
    from agentflow.view.render import picture
    from agentflow.view.snapshot import load

    root, found = _task(folder, task_id)
    snapshot = load(found)
    if json:
        state = plain(snapshot.state)
        say_json({key: state[key] for key in FRONTMATTER_KEYS})
    else:
        show(picture(snapshot, at_work=is_at_work(root)))


def log(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Show what happened in a task."""
    from agentflow.store.journal import lines
    from agentflow.store.reading import EVENTS, events
    from agentflow.view.story import Story

    _, found = _task(folder, task_id)
    if json:
        whole = b"".join(line + b"\n" for _, line in lines(found / EVENTS))
        say_line(whole.decode("utf-8").removesuffix("\n"))
        return
    tell = Story()
    show(line for event in events(found) for line in tell(event))


def evidence(
    task_id: str | None = TASK,
    evidence_id: str | None = typer.Argument(None, metavar="ID", help="One record, such as ev-0001."),
    export: Path | None = typer.Option(
        None, "--export", metavar="FILE", help="Write all of it, for `verify FILE` in another clone."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show the commands a task ran. With ID, show one of them with its output."""
    from agentflow.store.bundle import packed
    from agentflow.view.records import evidence_detail, evidence_table
    from agentflow.view.snapshot import load, output_tail

    if task_id is not None and task_id.startswith("ev-"):
        task_id, evidence_id = None, task_id
    root = _task(folder, task_id)[1]
    if export is not None:
        packed(root, export)
        say(f"written: {export}; `agentflow verify FILE` looks at it in another clone")
        return
    snapshot = load(root)
    if evidence_id is None:
        found = snapshot.evidence
    else:
        found = tuple(record for record in snapshot.evidence if record.id == evidence_id)
        if not found:
            _no_such_evidence(evidence_id)
    if json:
        say_json(found if evidence_id is None else found[0])
    elif evidence_id is None:
        show(evidence_table(snapshot))
    else:
        show(evidence_detail(found[0], output_tail(snapshot.folder, evidence_id)))


def _no_such_evidence(evidence_id: str) -> None:
    from agentflow.core.errors import TaskNotFound

    raise TaskNotFound(f"there is no evidence {evidence_id} in this task", hint="agentflow evidence lists it")


def _task(folder: Path, task_id: str | None) -> tuple[Path, Path]:
    """Return the repository's root and a task's folder in it."""
    from agentflow.cli.tasks import folder_of
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    found = folder_of(root, task_id)
    tell_edits(root, found)
    return root, found
