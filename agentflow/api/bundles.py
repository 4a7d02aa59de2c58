"""A task as one file: out of a repository, into one, or only opened."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentflow.core.errors import ConfigError, UsageError
from agentflow.core.record import Record
from agentflow.sandbox.throwaway import scratch_folder
from agentflow.store.bundle import BUNDLE_SUFFIX, pack_task, unpack_task
from agentflow.store.ownership import writer_lock
from agentflow.store.reading import events, find, fold_state, state_folder
from agentflow.workspace.git import Git

_DIFF = ("-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames")


class Bundle(Record):
    """A bundle that was written, or a task that came out of one."""

    task_id: str
    path: str
    address: str = ""
    """The hash of its list of hashes; equal bundles have equal addresses."""


def make_patch(git: Git, record: Path) -> bytes:
    """Return the change of a task as a patch, empty where its trees are not in this repository."""
    task = fold_state(record, tuple(events(record)))
    trees = (task.base_tree or "", task.tree or "")
    return git.call("diff-tree", *_DIFF, *trees) if all(map(git.has_tree, trees)) else b""


def export_task(git: Git, record: Path, target: Path | None) -> Bundle:
    """Write a task into a file, by default one in the current folder with its name. Raises ConfigError."""
    path = target or Path(f"{record.name}{BUNDLE_SUFFIX}")
    address = pack_task(record, path, make_patch(git, record))
    return Bundle(task_id=record.name, path=str(path), address=address)


def import_task(git: Git, source: Path) -> Bundle:
    """Put the task of a file among those of a repository. Raises ConfigError, UsageError or TaskLocked."""
    with writer_lock(git.root), scratch_folder() as scratch:
        task_id = unpack_task(source, scratch)
        place = state_folder(git.root) / task_id
        if os.path.lexists(place):
            raise UsageError(f"the task {task_id} is in this repository already")
        begun = place.with_name(f".{task_id}.new")
        shutil.rmtree(begun, ignore_errors=True)
        try:
            shutil.copytree(scratch, begun)
            begun.rename(place)
        except OSError as error:
            shutil.rmtree(begun, ignore_errors=True)
            raise ConfigError(f"cannot write {place}: {error.strerror or error}") from None
    return Bundle(task_id=task_id, path=str(place))


@contextmanager
def open_task(root: Path, named: str) -> Iterator[Path]:
    """Yield the folder of a task, or of the one in a file. Raises TaskNotFound or ConfigError."""
    if not Path(named).is_file():
        yield find(root, named)
        return
    with scratch_folder() as scratch:
        begun = scratch / "task"
        begun.mkdir()
        yield begun.rename(scratch / unpack_task(Path(named), begun))
