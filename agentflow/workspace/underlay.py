"""The files of a tree as a folder: written in full, or as a layer above those of another tree."""

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from agentflow.core.errors import StateError
from agentflow.core.record import Record
from agentflow.process import capture
from agentflow.sandbox.confine import mounting
from agentflow.sandbox.scratch import scratch_folder
from agentflow.sandbox.throwaway import View, layered
from agentflow.workspace.apart import indexed, secluded
from agentflow.workspace.git import ChangeKind, Git

WRITE = ("checkout-index", "-a", "-f", "-u", "-q")
"""How git writes all files that its index knows."""


class Written(Record):
    """Files of a tree in a folder, and how git is asked of them."""

    view: View
    git: Git
    env: Mapping[str, str]


def write(git: Git, tree: str, outer: Path) -> Written:
    """Write all files of a tree somewhere below a folder; no filter has a say."""
    view = View(folder=outer / "files" / git.root.name)
    view.folder.mkdir(parents=True)
    env = indexed(git.call, git.source, tree, outer / "git", view.folder)
    git.call(*WRITE, env=env)
    return Written(view=view, git=git, env=env)


class Underlay:
    """The files of one tree, written once: those of any other can be a layer above them."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = Lock()
        self._opened = ExitStack()
        self._below: Written | None = None
        self._tree = ""
        self._is_mountable = False

    def below(self, tree: str) -> Written:
        """Return the files that are there: those of the tree that was the first to be asked for."""
        with self._lock:
            if self._below is None:
                outer = self._opened.enter_context(scratch_folder())
                self._below, self._tree = write(self._git, tree, outer), tree
                self._is_mountable = _is_mountable(self._below.view.folder, outer / "trial")
            return self._below

    def layer(self, tree: str, outer: Path) -> Written | None:
        """Put the files of a tree above those here, the layer below a folder; None where that cannot be."""
        below = self.below(tree)
        if not (self._is_mountable and self._fits(tree)):
            return None
        view = layered(below.view.folder, outer / "layer")
        env = secluded(self._git.source, outer / "layer/git", view.place)
        shutil.copyfile(below.env["GIT_INDEX_FILE"], env["GIT_INDEX_FILE"])
        git = self._git.replace(within=mounting(str(view.folder), str(outer / "layer")))
        # where nothing is gone, the layer is its files; to mount it costs a start of Python
        writer, work = (self._git, view.top) if self._stays(tree) else (git, view.place)
        try:
            writer.call("read-tree", "-m", "-u", tree, env={**env, "GIT_WORK_TREE": str(work)})
        except StateError:
            return None
        return Written(view=view, git=git, env=env)

    def _fits(self, tree: str) -> bool:
        """Return whether files that are the same in a tree are written in the same encoding here."""
        changed = (change.path for change in self._git.changes(self._tree, tree))
        return not any(path.rpartition("/")[2] == ".gitattributes" for path in changed)

    def _stays(self, tree: str) -> bool:
        """Return whether a tree has all files that are here, though some with another content."""
        kept = (ChangeKind.ADDED, ChangeKind.MODIFIED)
        return all(change.kind in kept for change in self._git.changes(self._tree, tree))

    def close(self) -> None:
        """Remove the files; they are written again if they are needed."""
        self._below = None
        self._opened.close()


def _is_mountable(files: Path, scratch: Path) -> bool:
    words = (*mounting(str(layered(files, scratch).folder), str(scratch)), "true")
    return capture(words, cwd=files).returncode == 0
