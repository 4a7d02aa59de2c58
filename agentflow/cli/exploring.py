"""`explore`: a repository from many angles at once."""

from pathlib import Path

import typer

from agentflow.cli.options import EVENTS, MODEL, ONE_JSON
from agentflow.cli.printing import say


def explore(
    path: Path = typer.Argument(Path(), metavar="PATH", help="A repository, or a folder in one."),
    focus: str | None = typer.Option(None, "--focus", metavar="PATH", help="Only this part of it."),
    refresh: bool = typer.Option(False, "--refresh", help="Explore again; the old document is put aside."),
    model: str | None = MODEL,
    json: bool = ONE_JSON,
    events: str | None = EVENTS,
) -> int:
    """Explore a repository in depth. Writes `.claude/deep-dive.local.md` and changes nothing else.

    `task --context` uses the document until it is 50 commits old.
    """
    from agentflow.cli.launch import Job, launch
    from agentflow.workflow.deep import PATH, read_fresh_document
    from agentflow.workspace.git import open_repository

    git = open_repository(path)
    part = _part(git.root, path, focus)
    known, _ = read_fresh_document(git, part)
    if known and not refresh:
        say(f"{PATH} is complete and not stale; --refresh explores again")
        return 0
    text = f"explore {part or 'the repository'} in depth"
    return launch(git.root, Job(text=text, model=model, json=json, events=events, focus=part))


def _part(root: Path, path: Path, focus: str | None) -> str:
    """Return the folder to explore, relative to the root; empty for all. Raises UsageError."""
    from agentflow.core.errors import UsageError

    place = (path / focus if focus else path).resolve()
    if not place.is_relative_to(root) or not place.is_dir():
        raise UsageError(f"{focus or path} is not a folder of this repository")
    return "" if place == root else place.relative_to(root).as_posix()
