"""The record of a task beside its commit: kept under a ref of the repository, found by what a commit says."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentflow.core.errors import StateError, UsageError
from agentflow.core.record import Record
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.store.bundle import BUNDLE_SUFFIX, export_task
from agentflow.store.reading import is_task_id
from agentflow.workspace.git import Git

_REFS = "refs/agentflow"
_FILE = f"task{BUNDLE_SUFFIX}"
_TRAILER = re.compile(r"^Agentflow-Task: *(\S+) *$", re.MULTILINE)
_NOBODY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "agentflow"), ("EMAIL", "agentflow@localhost"), ("DATE", "@0 +0000"))
}
"""Equal records give equal commits, whoever keeps them."""


class NamedTask(Record):
    """A task that a commit, or the text of a pull request, says it rests on."""

    task_id: str
    said_by: str
    """A commit's short id, or `the description`."""
    commit: str = "HEAD"


def keep_record(git: Git, task: Path) -> str:
    """Keep a task's record in the repository under a ref of its own and return the ref's name."""
    with make_scratch_folder() as scratch:
        written = export_task(git, task, scratch / _FILE)
        blob = git.call("hash-object", "-w", "--stdin", stdin=Path(written.path).read_bytes())
    entry = b"100644 blob " + blob.strip() + b"\t" + _FILE.encode() + b"\n"
    tree = git.call("mktree", stdin=entry).decode().strip()
    commit = git.call("commit-tree", tree, "-m", f"The record of task {task.name}", env=_NOBODY)
    ref = f"{_REFS}/{task.name}"
    git.call("update-ref", ref, commit.decode().strip())
    return ref


def find_named_tasks(git: Git, base: str, text: str) -> tuple[NamedTask, ...]:
    """Return the tasks that the commits since `base` name, newest first, else the one that a text names.

    Raises UsageError where the repository has no such base.
    """
    since = f"{_resolve(git, base)}..HEAD"
    logged = git.call("log", "--topo-order", "--format=%h%x00%B%x00%x00", since).decode("utf-8", "replace")
    found: dict[str, NamedTask] = {}
    for entry in logged.split("\0\0"):
        commit, _, message = entry.strip().partition("\0")
        if task_id := _find_last(message):
            found.setdefault(task_id, NamedTask(task_id=task_id, said_by=commit, commit=commit))
    if not found and (task_id := _find_last(text)):
        return (NamedTask(task_id=task_id, said_by="the description"),)
    return tuple(found.values())


def has_record(git: Git, task: NamedTask) -> bool:
    """Tell whether this clone has a record of a task."""
    return git.has_tree(f"{_REFS}/{task.task_id}")


def _find_last(text: str) -> str:
    named = [task_id for task_id in _TRAILER.findall(text.replace("\r", "")) if is_task_id(task_id)]
    return named[-1] if named else ""


def _resolve(git: Git, name: str) -> str:
    """Return the commit that a name stands for. Raises UsageError."""
    try:
        return (
            git.call("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            .decode()
            .strip()
        )
    except StateError:
        hint = "fetch it first: a checkout of a single commit does not have it (fetch-depth: 0)"
        raise UsageError(f"this clone has no commit {name}", hint=hint) from None


@contextmanager
def open_record(git: Git, named: NamedTask) -> Iterator[Path]:
    """Yield the record of a task as a file, out of the ref that keeps it. Raises UsageError."""
    place = f"{_REFS}/{named.task_id}:{_FILE}"
    try:
        content = git.call("cat-file", "blob", place)
    except StateError:
        raise UsageError(
            f"{named.said_by} names the task {named.task_id}, but this clone has no record of it",
            hint=f"where the task ran: agentflow export {named.task_id} --ref && git push origin "
            f"{_REFS}/{named.task_id}; here: git fetch origin '+{_REFS}/*:{_REFS}/*'",
        ) from None
    with make_scratch_folder() as scratch:
        path = scratch / f"{named.task_id}{BUNDLE_SUFFIX}"
        path.write_bytes(content)
        yield path
