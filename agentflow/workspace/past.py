"""What a repository's files were before a task and after it, kept where no cleaning of the tree reaches."""

import os
from pathlib import Path

from agentflow.core.errors import StateError
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.parse import decode
from agentflow.workspace.exact import Files, Shot, as_shot, files_of, hold, shoot, shoot_commit, unread
from agentflow.workspace.git import Git
from agentflow.workspace.ignored import precious


class Kept(Record):
    """What is kept of one task."""

    base: Shot
    """Before it; with what the user changed themselves since, while the task waited."""
    last: Shot
    """The newest that is known to be of the task's making."""
    ignored: tuple[str, ...]
    """What git ignored as the task began; a folder ends in a slash."""
    is_open: bool = True
    """The task has not come to an end of which it knows."""
    replaced: Shot | None = None
    """What was there when the task was undone."""


class Past:
    """The past of one task's files."""

    def __init__(self, git: Git, task_id: str) -> None:
        self._git = git
        self._path = git.source.kept / f"{task_id}.json"

    def load(self) -> Kept:
        """Return what is kept. Raises StateError when nothing is."""
        try:
            return decode(Kept, self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            raise StateError(
                "nothing is kept of the files before this task",
                hint=f"{self._path.parent} was removed, or the task ended before it began",
            ) from None

    def save(self, kept: Kept) -> None:
        write_atomic(self._path, encode(kept))

    def begin(self, moment: float) -> str | None:
        """Record the files before a task, or what the user did since it stopped at `moment`.

        Return the tree of the files if it was found to be that of the newest commit.
        """
        if self._path.exists():
            self._go_on(self.load(), moment)
            return None
        ignored = self._git.ignored()
        lasting = unread(self._git, precious(self._git.root, ignored))
        tree = self._git.head if self._git.is_committed() else None
        shot = (None if lasting or tree is None else shoot_commit(self._git)) or shoot(self._git, lasting)
        hold(self._git, shot)
        self.save(Kept(base=shot, last=shot, ignored=ignored))
        return tree

    def note(self, *, is_over: bool = False) -> None:
        """Record the files as the task has made them; one that ended before it began made none."""
        if not self._path.exists():
            return
        kept = self.load()
        last = shoot(self._git, self.files(kept.base))
        self.save(kept.replace(last=last, is_open=not is_over))

    def files(self, shot: Shot) -> Files:
        return files_of(self._git, shot)

    def now(self, kept: Kept) -> Shot:
        """Record the files as they are, those that the task began with or made among them."""
        return shoot(self._git, {**self.files(kept.last), **self.files(kept.base)})

    def _go_on(self, kept: Kept, moment: float) -> None:
        """Take what the user changed meanwhile as given: undoing the task will leave it."""
        shot = self.now(kept)
        base, last, now = dict(self.files(kept.base)), self.files(kept.last), self.files(shot)
        for path in base.keys() | last.keys() | now.keys():
            is_user = not kept.is_open or changed_after(self._git.root / path, moment)
            if last.get(path) == now.get(path) or not is_user:
                continue
            if path in now:
                base[path] = now[path]
            else:
                base.pop(path, None)
        rebased = as_shot(self._git, base)
        hold(self._git, rebased)
        self.save(kept.replace(base=rebased, last=shot, is_open=True, replaced=None))


def changed_after(place: Path, moment: float) -> bool:
    """Tell whether a file, or the folder that it is gone from, was changed after a moment."""
    while not os.path.lexists(place):
        place = place.parent
    return os.lstat(place).st_ctime > moment
