"""The files of a pull request that its verified tasks account for, and those that changed outside of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from agentflow.core.errors import StateError, UsageError
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.redact import spell_bytes
from agentflow.verdict.case import find_hook_files, is_written_by_hooks
from agentflow.verdict.surface import is_document_path
from agentflow.workspace.changes import EntryChange
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import write_tree_with_entries

_SUBMODULE = b"160000"
_GONE = b"0"

ModeAndId = tuple[bytes, bytes]
"""Mode and id of a file, zeros where there is none."""
Steps = Mapping[bytes, set[tuple[ModeAndId, ModeAndId]]]
"""The changes of verified tasks to each file, as its entries before and after."""


class JudgedTask(Record):
    """A task whose record was confirmed here."""

    state: TaskState
    start: str
    """The tree of the commit where the branch of the task's commit left the base."""

    @property
    def trees(self) -> tuple[str, str]:
        """The trees from before the task and of its end."""
        return self.state.base_tree or "", self.state.tree or ""


class Coverage(Record):
    """The files that no verified task accounts for."""

    uncovered: tuple[str, ...] = ()
    """They differ from the base, and not by verified tasks alone."""
    unjudged: tuple[str, ...] = ()
    """They changed after the last time that all files were judged together."""
    merged: tuple[str, ...] = ()
    """They came from the base after that time, and no task changed them."""


def find_start(git: Git, base: str, commit: str) -> str:
    """Return the tree of the commit where the branch of a commit left the base. Raises UsageError."""
    try:
        found = git.call("merge-base", "--end-of-options", base, commit).decode().strip()
        return git.call("rev-parse", f"{found}^{{tree}}").decode().strip()
    except StateError:
        hint = "fetch all of it: a checkout of a few commits does not have it (fetch-depth: 0)"
        raise UsageError(f"this clone has no commit that {base} and {commit} share", hint=hint) from None


def lay_out_tree(git: Git, tree: str) -> str:
    """Return a commit's tree as its files lie on disk: attributes convert files, submodules are folders."""
    if git.head is None:
        return tree
    others = {entry.path for entry in git.compare(tree, git.head)}
    changed = git.compare(git.head, git.write_tree())
    modules = tuple(each.path + b"/" for each in changed if each.modes[0] == _SUBMODULE)
    lines = [
        b"%s %s\t%s" % (each.modes[1] if each.modes[1].strip(b"0") else _GONE, each.blobs[1], each.path)
        for each in changed
        if (each.modes[0].strip(b"0") or each.path.startswith(modules))
        and others.isdisjoint({each.path, *(one[:-1] for one in modules if each.path.startswith(one))})
    ]
    return write_tree_with_entries(git, tree, lines) if lines else tree


def find_coverage(git: Git, start: str, head: str, tasks: Sequence[JudgedTask]) -> Coverage:
    """Return the files whose change is not led by verified tasks that began with covered files alone."""
    able = [task for task in tasks if all(map(git.has_tree, task.trees))]
    steps = defaultdict[bytes, set[tuple[ModeAndId, ModeAndId]]](set)
    for change in (change for task in able for change in git.compare(*task.trees)):
        steps[change.path].add(_get_ends(change))
    spans = ((start, head), *((task.start, task.trees[0]) for task in able))
    uncovered = {each.path for span in spans for each in git.compare(*span) if not _is_led(each, steps)}
    if not able:
        return Coverage(uncovered=_to_names(uncovered))
    own = {each.path for each in git.compare(start, head)}
    later = min((tuple(_list_later(git, task, head)) for task in able), key=len)
    merged = {path for path in later if path not in own and path not in steps}
    documents = {path for path in later if path not in merged and is_document_path(spell_bytes(path))}
    return Coverage(
        uncovered=_to_names(uncovered | documents),
        unjudged=_to_names({*later} - merged - documents),
        merged=_to_names(merged),
    )


def _get_ends(change: EntryChange) -> tuple[ModeAndId, ModeAndId]:
    before, after = zip(change.modes, change.blobs, strict=True)
    return before, after


def _is_led(change: EntryChange, steps: Steps) -> bool:
    """Return whether steps lead from the entry before a change to the one after it."""
    first, last = _get_ends(change)
    known, found = set[ModeAndId](), {first}
    while not found <= known:
        known |= found
        found = {after for before, after in steps.get(change.path, ()) if before in known}
    return last in known


def _list_later(git: Git, task: JudgedTask, head: str) -> Iterator[bytes]:
    """Yield the files that changed after a task, except logs and caches that only its hooks wrote."""
    apart = find_hook_files(task.state)
    for each in git.compare(task.trees[1], head):
        path = spell_bytes(each.path)
        if path not in apart or not is_written_by_hooks(path):
            yield each.path


def _to_names(paths: set[bytes]) -> tuple[str, ...]:
    return tuple(map(spell_bytes, sorted(paths)))
