"""The folder of one task of a batch: its clone while it runs, then its patch, its record and its result."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agentflow.batch.results import BatchResult
from agentflow.batch.task import BatchTask
from agentflow.core.errors import AgentflowError, ConfigError, Exit
from agentflow.core.record import Record
from agentflow.core.task import Status, TaskState
from agentflow.frontmatter import write_atomic
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.profile import SHARED
from agentflow.settings import folders
from agentflow.store.bundle import PATCH, make_patch, pack_task
from agentflow.store.reading import events, list_tasks, load_state
from agentflow.trust import drop_trust, load_trust, record_trust
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.git_fetch import check_out, commit_files, is_address

BUNDLE = "task.agentflow"


class TaskFolder(Record):
    """A task and the folder in which it is done."""

    task: BatchTask
    place: Path

    @property
    def clone(self) -> Path:
        """Where the task works."""
        return self.place / "work"


@contextmanager
def try_lock(folder: TaskFolder) -> Iterator[int | None]:
    """Yield the descriptor of a task's lock, or None while another process has it.

    The command that does the task inherits it: when the batch is killed, the lock is that command's.
    """
    folder.place.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder.place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
    else:
        yield lock
    finally:
        os.close(lock)


def prepare_clone(folder: TaskFolder) -> None:
    """Make the clone of a task, whole or not at all. Raises UsageError or ConfigError."""
    begun = folder.place / "work.new"
    remove_clone(folder)
    shutil.rmtree(begun, ignore_errors=True)
    begun.mkdir()
    try:
        _fill(folder.task, begun)
    except AgentflowError:
        shutil.rmtree(begun, ignore_errors=True)
        raise
    if not is_address(folder.task.repository):
        _share(Path(folder.task.repository), begun, folder.clone)
    begun.rename(folder.clone)


def _fill(task: BatchTask, begun: Path) -> None:
    """Put the files that a task begins with into a folder, as a repository with one commit."""
    source = Path(task.repository)
    require_environment(task)
    if is_address(task.repository) or (source / ".git").exists():
        check_out(task.repository, task.commit, begun)
        if task.edits:
            shutil.rmtree(begun / ".git")  # the commit would tell what was edited
    elif task.commit:
        raise ConfigError(f"{task.repository} is not a git repository, so it has no commit {task.commit}")
    else:
        shutil.copytree(source, begun, symlinks=True, dirs_exist_ok=True)
    _apply_edits(begun, task)
    if not (begun / ".git").exists():
        commit_files(begun)


def require_environment(task: BatchTask) -> None:
    """Raise ConfigError where the Python environment of a task is not on this machine."""
    if task.environment and not is_python_environment(task.environment):
        raise ConfigError(
            f"it needs a Python environment with the packages of {task.repository} in {task.environment}; "
            f"make one with python -m venv {task.environment} and install them there"
        )


def _apply_edits(root: Path, task: BatchTask) -> None:
    """Replace the texts that a task says. Raises ConfigError for one that is not there once."""
    for edit in task.edits:
        place = root / edit.file
        try:
            text = place.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise ConfigError(f"{task.id}: edits: {edit.file} is not a file in {task.repository}") from None
        if text.count(edit.old) != 1:
            raise ConfigError(f"{task.id}: edits: the old text is not once in {edit.file}: {edit.old[:60]!r}")
        place.write_text(text.replace(edit.old, edit.new), "utf-8")


def _share(source: Path, begun: Path, clone: Path) -> None:
    """Let a clone use the installed environments of its source, and what a person trusts there by content."""
    found = [name for name in SHARED if (source / name).is_dir() and not os.path.lexists(begun / name)]
    for name in found:
        (begun / name).symlink_to((source / name).resolve(), target_is_directory=True)
    if found:
        (begun / ".git/info").mkdir(exist_ok=True)
        with (begun / ".git/info/exclude").open("a", encoding="utf-8") as file:
            file.writelines(f"/{name}\n" for name in found)
    config = folders(os.environ).config
    if trusted := load_trust(config, source).files:
        record_trust(config, clone, trusted)


def drop_missing_links(clone: Path) -> None:
    """Remove from a clone the links to installed environments that this machine does not have."""
    for name in SHARED:
        if (clone / name).is_symlink() and not (clone / name).exists():
            (clone / name).unlink()


def find_environment_variables(folder: TaskFolder) -> dict[str, str]:
    """Return the variables that give a task's commands the packages and the Python of its source."""
    task = folder.task
    links = (folder.clone / name for name in SHARED)
    shown = os.pathsep.join(str(link.resolve()) for link in links if link.is_symlink())
    named = Path(task.environment or "/")
    own = {"VIRTUAL_ENV": str(named)} if is_python_environment(named) else {}
    return {"AGENTFLOW_SHOWN": shown, **own}


def remove_clone(folder: TaskFolder) -> None:
    """Remove a task's clone, and what was trusted of it."""
    if folder.clone.exists():
        drop_trust(folders(os.environ).config, folder.clone)
        shutil.rmtree(folder.clone, ignore_errors=True)


def read_clone_state(folder: TaskFolder) -> TaskState | None:
    """Return the state of the task in a clone, or None before it has begun. Raises CorruptState."""
    found = list_tasks(folder.clone)
    if not found:
        return None
    place = _find_record(folder, found[-1])
    return load_state(place)


def _find_record(folder: TaskFolder, task_id: str) -> Path:
    return folder.clone / ".claude/agentflow" / task_id


def collect_result(folder: TaskFolder, state: TaskState) -> BatchResult:
    """Return the result of a task as its record tells it; its patch and its record are kept beside it."""
    git = open_repository(folder.clone)
    record = _find_record(folder, state.task_id)
    changed: tuple[str, ...] = ()
    patch = make_patch(git, state)
    if state.base_tree and state.tree:
        write_atomic(folder.place / PATCH, patch, mode=0o644)
        changed = tuple(change.path for change in git.changes(state.base_tree, state.tree))
    pack_task(record, folder.place / BUNDLE, patch)
    ending = state.ending
    return BatchResult(
        id=folder.task.id,
        status=state.status,
        exit_code=ending.exit_code if ending else Exit.SUSPENDED,
        reason=ending.reason if ending else "waits for a person" if state.pending else "",
        group=folder.task.group,
        repository=folder.task.repository,
        commit=_read_commit(git),
        task_id=state.task_id,
        task_complexity=state.task_complexity,
        model=state.model,
        caveats=state.verdict.caveats if state.verdict else (),
        files_changed=changed,
        usage=state.usage,
        seconds=_measure_seconds(record),
        folder=str(folder.place),
    )


def _read_commit(git: Git) -> str:
    return git.call("rev-parse", "HEAD").decode().strip()


def _measure_seconds(record: Path) -> float:
    """Return the seconds between the first and the last event of a task."""
    told = [datetime.fromisoformat(one.at) for one in events(record)]
    return round((told[-1] - told[0]).total_seconds(), 3)


def report_unbegun(folder: TaskFolder, code: int, reason: str) -> BatchResult:
    """Return the result of a task that could not begin."""
    task = folder.task
    return BatchResult(
        id=task.id,
        status=Status.ERROR,
        exit_code=code,
        reason=reason,
        group=task.group,
        repository=task.repository,
        folder=str(folder.place),
    )
