"""`undo`: the files as they were before a task."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.options import FOLDER, JSON, TASK
from agentflow.cli.printing import say, say_json

if TYPE_CHECKING:
    from agentflow.workspace.git import Git
    from agentflow.workspace.past import Kept
    from agentflow.workspace.undo import Death, Undoing

SHOWN = 20
_GET_BACK = "GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --git-path agentflow/objects) git show {}:FILE"


def undo(
    task_id: str = TASK,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only show what would be done."),
    force: bool = typer.Option(
        False, "--force", help="Also put back files that were changed after the task; what they hold is kept."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Put the files back as before a task. Later edits of yours are never lost."""
    from agentflow.store.locks import writer_lock
    from agentflow.store.reading import find
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    found = find(git.root, task_id)
    with writer_lock(git.root):
        told = _undone(git, found, dry_run=dry_run, force=force)
    if json:
        say_json({"task_id": found.name, **told})
    else:
        _show(found.name, told)


def _undone(git: "Git", folder: Path, *, dry_run: bool, force: bool) -> dict[str, Any]:
    """Undo a task, or find out what that would do; return what is told of it."""
    from agentflow.store.reading import last_sign
    from agentflow.workspace.past import Past
    from agentflow.workspace.undo import Death, Moments, put_back, undoing

    past = Past(git, folder.name)
    kept = past.load()
    if kept.replaced is not None:
        return {"state": "already_undone", "restored": [], "removed": [], "in_the_way": [], "replaced": None}
    shot = past.now(kept)
    moments = Moments(base=past.files(kept.base), last=past.files(kept.last), now=past.files(shot))
    plan = undoing(git.root, kept, moments, _death(folder, kept))
    told = _told(plan, "would_undo" if dry_run else "undone")
    if dry_run:
        return told
    if told["in_the_way"] and not force:
        _refuse(plan, folder.name)
    put_back(git, plan, moments.base)
    # what the task itself let git ignore shows only now, and of that we know no more than when it was made
    seen = moments.replace(now=past.files(past.now(kept)))
    rest = undoing(git.root, kept, seen, Death(at=last_sign(folder), in_flight=False))
    put_back(git, rest, moments.base)
    past.save(kept.replace(replaced=shot))
    return {**told, "removed": sorted({*told["removed"], *rest.removed}), "replaced": shot.tree}


def _death(folder: Path, kept: "Kept") -> "Death | None":
    """Return how a task ended that did not end by itself."""
    if not kept.is_open:
        return None
    from agentflow.core.events import CheckStarted, EvidenceRecorded
    from agentflow.store.journal import load_run
    from agentflow.store.reading import events, last_sign
    from agentflow.workspace.undo import Death

    checks = [one.event for one in events(folder) if isinstance(one.event, CheckStarted | EvidenceRecorded)]
    runs = (load_run(path) for path in (folder / "runs").glob("*.jsonl"))
    is_calling = any(run is not None and run.outcome is None and run.started for run in runs)
    is_checking = bool(checks) and isinstance(checks[-1], CheckStarted)
    return Death(at=last_sign(folder), in_flight=is_calling or is_checking)


def _told(plan: "Undoing", state: str) -> dict[str, Any]:
    ours = {*plan.changed_since, *plan.unclear}
    return {
        "state": state if plan.restored or plan.removed else "nothing_to_undo",
        "restored": sorted(plan.restored),
        "removed": list(plan.removed),
        "in_the_way": sorted(ours),
        "replaced": None,
    }


def _refuse(plan: "Undoing", task_id: str) -> None:
    from agentflow.core.errors import StateError

    reasons = (
        (plan.changed_since, "changed since the task ended"),
        (plan.unclear, "changed by its last command or after it, the task was killed at that moment"),
    )
    said = "; ".join(f"{why}: {_listed(paths)}" for paths, why in reasons if paths)
    raise StateError(
        f"nothing was undone. {said}",
        hint=f"keep what you need of them, then agentflow undo {task_id} --force",
    )


def _listed(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more


def _show(task_id: str, told: dict[str, Any]) -> None:
    from agentflow.redact import one_line

    if told["state"] == "already_undone":
        say(f"task {task_id} was undone before; nothing to do")
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
    if told["in_the_way"] and told["replaced"]:
        say(f"what was there is kept: {_GET_BACK.format(told['replaced'])}")
    if is_plan and told["in_the_way"]:
        say(f"{len(told['in_the_way'])} of these changed since: it takes --force, and they are kept")
