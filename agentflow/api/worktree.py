"""Tasks in a git worktree of their own: how one is made, and where the task of an id lives.

A worktree lies in `.claude/worktrees/` of the repository, with the task's files and its record; the files
of the repository itself stay as they are.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

from agentflow.api.trust import load_trust_here
from agentflow.core.errors import AgentflowError, ConfigError, StateError, TaskNotFound
from agentflow.core.record import Record
from agentflow.core.task import Status
from agentflow.frontmatter import write_whole
from agentflow.redact import list_some, to_one_line
from agentflow.sandbox.profile import SHARED
from agentflow.settings import find_folders
from agentflow.store.reading import TASKS, find, is_task_id, list_tasks, load_state, try_load_state
from agentflow.store.tasks import make_task_id
from agentflow.trust import read_content, record_trust
from agentflow.workspace.checkout_contents import fill_checkout, switch_filters_off
from agentflow.workspace.git import Git, open_repository

_WORKTREES = Path(".claude", "worktrees")
_BRANCHES = "agentflow"
_OWN_SETTINGS = (".claude/settings.local.json", "CLAUDE.local.md")
"""Files of the user's that git ignores and that say what roles may do, or how to work here."""


class Worktree(Record):
    task_id: str
    root: Path
    start: Path
    """The folder in it where the task begins, as the person stood in the repository."""
    branch: str
    main: Path
    warnings: tuple[str, ...]
    """Notes on files that it lacks."""

    @property
    def place(self) -> str:
        return self.root.relative_to(self.main).as_posix()


def make_worktree(folder: Path, branch: str | None) -> Worktree:
    """Make a worktree of the newest commit on a new branch. Raises StateError or ConfigError.

    No program that the repository's configuration names is run: no hook, no filter.
    """
    git = open_repository(folder)
    if git.head is None:
        hint = "commit your files first"
        raise StateError("there is no commit yet that a worktree could begin at", hint=hint)
    for place in (_WORKTREES.parent, _WORKTREES):
        if (git.root / place).is_symlink():
            raise ConfigError(f"{place} is a link; agentflow makes worktrees there and follows none")
    task_id = make_task_id()
    branch = branch or f"{_BRANCHES}/{task_id}"
    root = git.root / _WORKTREES / task_id
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.path.lexists(root.parent / ".gitignore"):
        write_whole(root.parent / ".gitignore", b"*\n")
    git = switch_filters_off(git)
    warnings = tuple(_find_gaps(git))
    git.call("worktree", "add", "--quiet", "--no-checkout", "-b", branch, str(root), "HEAD")
    made = open_repository(root)
    made = made.replace(options=git.options)
    made.call("read-tree", "HEAD")
    made.call("checkout-index", "--all", "--force", "--quiet", "-u")
    if empty := fill_checkout(git, "HEAD", root):
        warnings += (f"submodules are empty in the worktree: {list_some(empty)}",)
    for name in _OWN_SETTINGS:  # as far as the commit has none
        source, copy = git.root / name, root / name
        if source.is_file() and not source.is_symlink() and not os.path.lexists(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_whole(copy, read_content(source))
    record_trust(find_folders(os.environ).config, root, load_trust_here(git.root).files)
    inner = root / folder.resolve().relative_to(git.root)
    return Worktree(
        task_id=task_id,
        root=root,
        start=inner if inner.is_dir() else root,
        branch=branch,
        main=git.root,
        warnings=warnings,
    )


class KeptWorktree(Record):
    """A worktree that stays, and the commands to take its change over or to remove it."""

    path: str
    """Within the repository."""
    branch: str
    take_over: str
    """Empty where there is nothing verified to take over."""
    remove: str


def describe_kept(root: Path, task_id: str) -> KeptWorktree | None:
    """Return the worktree at a root with its next commands, or None for any other root."""
    main = find_main(root)
    if main == root:
        return None
    git = open_repository(root)
    branch = git.call("branch", "--show-current").decode("utf-8", "replace").strip()
    task = load_state(root / TASKS / task_id)
    trailer = git.call("log", "-1", "--format=%(trailers:key=Agentflow-Task,valueonly)")
    is_done = task.status in (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT) and task.tree != task.base_tree
    merge = f"git merge {quote(branch)}"
    commit = (
        "" if trailer.decode("utf-8", "replace").strip() == task_id else f"agentflow commit {task_id} && "
    )
    return KeptWorktree(
        path=root.relative_to(main).as_posix(),
        branch=branch,
        take_over=f"{commit}{merge}" if is_done and branch else "",
        remove=f"git worktree remove --force {root.name} && git branch -D {quote(branch)}",
    )


def remove_unused(worktree: Worktree) -> bool:
    """Remove a worktree in which no task began, and its branch; return whether it was removed."""
    if (worktree.root / TASKS / worktree.task_id).exists():
        return False
    git = open_repository(worktree.main)
    shutil.rmtree(worktree.root, ignore_errors=True)
    with suppress(StateError):
        git.call("worktree", "prune")
        git.call("branch", "--quiet", "-D", worktree.branch)
    return True


def _find_gaps(git: Git) -> Iterator[str]:
    status = git.call("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all")
    names = (os.fsdecode(line[3:]) for line in status.split(b"\0") if line)
    changed = [to_one_line(name) for name in names if name != ".claude/" or _has_more(git.root / name)]
    if changed:
        yield f"not in the worktree, because not committed: {list_some(changed)}"
    packages = [name for name in sorted(SHARED) if (git.root / name).is_dir()]
    if packages:
        yield f"not in the worktree, because git ignores them: {list_some(packages)}"


def _has_more(folder: Path) -> bool:
    known = {"agentflow", _WORKTREES.name, Path(_OWN_SETTINGS[0]).name}
    return any(place.name not in known and ".local." not in place.name for place in folder.iterdir())


def list_homes(root: Path) -> tuple[Path, ...]:
    """Return the folders in which tasks of a repository live: its own, then its worktrees, oldest first."""
    place = root / _WORKTREES
    if any((root / each).is_symlink() for each in (_WORKTREES.parent, _WORKTREES)) or not place.is_dir():
        return (root,)
    inner = (each for each in sorted(place.iterdir()) if (each / ".git").is_file() and not each.is_symlink())
    return (root, *(each for each in inner if _list_tasks(each)))


def _list_tasks(root: Path) -> tuple[str, ...]:
    try:
        return list_tasks(root)
    except AgentflowError:
        return ()


def open_home(folder: Path, task_id: str | None) -> Git:
    """Return the repository of a task, or the worktree of it in which the task lives; None is the newest.

    Raises TaskNotFound where an id fits tasks in several of them.
    """
    git = open_repository(folder)
    homes = list_homes(git.root)
    if len(homes) == 1:
        return git
    known = {home: _list_tasks(home) for home in homes}
    if task_id is None:
        newest = max(homes, key=lambda home: known[home][-1:] or ("",))
        return _open_worktree(git, newest)
    fitting = [home for home, names in known.items() if any(name.startswith(task_id) for name in names)]
    if len(fitting) > 1:
        hint = "name more of its id"
        raise TaskNotFound(f"{to_one_line(task_id, 60)} matches more than one task", hint=hint)
    return _open_worktree(git, fitting[0] if fitting else git.root)


def find_pending(folder: Path, pending_id: str, task_id: str | None = None) -> tuple[Git, Path]:
    """Return repository and folder of the newest task, or the named one, that waits under an id, or did.

    An older one that waits is never meant in its place: the person may not have seen that. Damaged tasks are
    passed over.
    """
    git = open_repository(folder)
    if task_id is not None:
        found = [find(open_home(folder, task_id).root, task_id)]
    else:
        found = [home / TASKS / name for home in list_homes(git.root) for name in list_tasks(home)]
        found.sort(key=lambda place: place.name.partition("-")[0])
    for place in reversed(found):
        task = try_load_state(place) if task_id is None else load_state(place)
        if task and (
            pending_id in task.waiting.answers or any(item.id == pending_id for item in task.pending)
        ):
            return _open_worktree(git, place.parents[2]), place
    raise TaskNotFound(f"nothing waits under the id {pending_id}", hint="agentflow status shows what waits")


def _open_worktree(git: Git, home: Path) -> Git:
    if home == git.root:
        return git
    opened = open_repository(home)
    if opened.root != home.resolve() or opened.folders[-1] != git.folders[-1]:
        raise StateError(f"{home} is not a worktree of this repository", hint="nothing was changed")
    return opened


def find_main(root: Path) -> Path:
    """Return the repository that a worktree of ours lies in; any other root as it is."""
    is_ours = root.parent.parts[-2:] == _WORKTREES.parts and is_task_id(root.name)
    return root.parents[2] if is_ours else root
