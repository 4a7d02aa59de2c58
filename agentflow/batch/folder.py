"""The folder of one task of a batch: its clone, its hidden check, and the files that the task leaves."""

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from agentflow.api.boundary import TaskRequest, open_sandbox
from agentflow.batch.plan import BatchTask, HiddenCheck
from agentflow.batch.results import BatchResult, HiddenResult
from agentflow.checks.repository import WellKnown
from agentflow.core.errors import AgentflowError, ConfigError, Exit
from agentflow.core.evidence import Check, CheckName, CheckRun, TestOutcome
from agentflow.core.record import Record, copy_shared
from agentflow.core.task import Status, TaskState
from agentflow.frontmatter import write_atomic
from agentflow.process import capture
from agentflow.redact import list_some, make_visible
from agentflow.sandbox.environment import find_variables, is_python_environment
from agentflow.sandbox.profile import SHARED
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.settings import find_folders
from agentflow.store.bundle import PATCH, make_patch, pack_task
from agentflow.store.reading import TASKS, list_tasks, load_events, load_state
from agentflow.trust import drop_trust, load_trust, record_trust
from agentflow.verdict.reverify import Copies
from agentflow.workspace.checkout_contents import fill_checkout
from agentflow.workspace.git import open_repository
from agentflow.workspace.git_fetch import check_out, commit_files, is_address

BUNDLE = "task.agentflow"


class TaskFolder(Record):
    task: BatchTask
    place: Path

    @property
    def clone(self) -> Path:
        return self.place / "work"


@contextmanager
def try_lock(place: Path) -> Iterator[int | None]:
    """Yield the lock of a folder, which a command may inherit, or None while another process has it."""
    place.mkdir(parents=True, exist_ok=True)
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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
    source = Path(task.repository)
    require_environment(task)
    if is_address(task.repository) or (source / ".git").exists():
        check_out(task.repository, task.commit, begun)
        if not is_address(task.repository):
            commit = open_repository(begun).call("rev-parse", "HEAD").decode().strip()
            fill_checkout(open_repository(source), commit, begun)
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
    config = find_folders(os.environ).config
    if trusted := load_trust(config, source).files:
        record_trust(config, clone, trusted)


def drop_missing_links(clone: Path) -> None:
    """Remove from a clone the links to installed environments that this machine does not have."""
    for name in SHARED:
        if (clone / name).is_symlink() and not (clone / name).exists():
            (clone / name).unlink()


def find_environment_variables(folder: TaskFolder) -> dict[str, str]:
    named = _find_environment(folder.task)
    shown = os.pathsep.join(map(str, _list_shared(folder)))
    return {"AGENTFLOW_SHOWN": shown, **({"VIRTUAL_ENV": str(named)} if named else {})}


def _list_shared(folder: TaskFolder) -> tuple[Path, ...]:
    links = (folder.clone / name for name in SHARED)
    return tuple(link.resolve() for link in links if link.is_symlink())


def _find_environment(task: BatchTask) -> Path | None:
    named = Path(task.environment or "/")
    return named if is_python_environment(named) else None


def _share_with_check(folder: TaskFolder, sandbox: Sandbox) -> Sandbox:
    opened, named = sandbox.opened, _find_environment(folder.task)
    readable = (*opened.readable, *_list_shared(folder), *([named] if named else []))
    own = {}
    if named:
        path = find_variables(sandbox.root)["PATH"]
        own = {"VIRTUAL_ENV": str(named), "PATH": f"{named / 'bin'}{os.pathsep}{path}"}
    return sandbox.replace(
        opened=opened.replace(readable=readable, environment={**opened.environment, **own})
    )


def remove_clone(folder: TaskFolder) -> None:
    if folder.clone.exists():
        drop_trust(find_folders(os.environ).config, folder.clone)
        shutil.rmtree(folder.clone, ignore_errors=True)


def read_clone_state(folder: TaskFolder) -> TaskState | None:
    """Return the state of the task in a clone, or None before it has begun. Raises CorruptState."""
    found = list_tasks(folder.clone)
    return load_state(_find_record(folder, found[-1])) if found else None


def _find_record(folder: TaskFolder, task_id: str) -> Path:
    return folder.clone / TASKS / task_id


def collect_result(folder: TaskFolder, state: TaskState) -> BatchResult:
    git = open_repository(folder.clone)
    record = _find_record(folder, state.task_id)
    changed: tuple[str, ...] = ()
    patch = make_patch(git, state)
    if state.base_tree and state.tree:
        write_atomic(folder.place / PATCH, patch, mode=0o644)
        changed = tuple(change.path for change in git.list_changes(state.base_tree, state.tree))
    pack_task(record, folder.place / BUNDLE, patch)
    ending = state.ending
    times = [datetime.fromisoformat(one.at) for one in load_events(record)]
    return BatchResult(
        **copy_shared(state, BatchResult),
        id=folder.task.id,
        exit_code=ending.exit_code if ending else Exit.SUSPENDED,
        reason=ending.reason if ending else "waits for a person" if state.pending else "",
        group=folder.task.group,
        repository=folder.task.repository,
        commit=git.call("rev-parse", "HEAD").decode().strip(),
        caveats=state.verdict.caveats if state.verdict else (),
        files_changed=changed,
        seconds=round((times[-1] - times[0]).total_seconds(), 3),
        folder=str(folder.place),
    )


def report_unbegun(folder: TaskFolder, code: int, reason: str) -> BatchResult:
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


def run_hidden_check(folder: TaskFolder, state: TaskState, switches: Collection[str]) -> HiddenResult:
    """Return whether the final files of a task pass its hidden check. Raises NoSandbox."""
    check = folder.task.check
    assert check is not None
    git = open_repository(folder.clone)
    request = TaskRequest(no_sandbox="--no-sandbox" in switches, network="--network" in switches)
    copies = Copies(git=git, sandbox=open_sandbox(git, request), said=WellKnown())
    with copies.open(state.tree or git.write_tree(), ()) as place, make_scratch_folder() as scratch:
        sandbox = _share_with_check(folder, place.sandbox)
        root = sandbox.root
        if problem := _put_files(root, check):
            return HiddenResult(resolved=False, reason=problem)
        job = Check(name=CheckName.TESTS, command=check.command, timeout=check.timeout, reason="hidden check")
        return _judge(check, place.replace(sandbox=sandbox).run(job, scratch / "output"))


def _put_files(root: Path, check: HiddenCheck) -> str:
    """Write the files of a check into a copy; return why its patch does not fit, or nothing."""
    found = sorted(Path(check.folder).rglob("*")) if check.folder else []
    own = {path.relative_to(check.folder).as_posix(): path.read_bytes() for path in found if path.is_file()}
    written = [*own.items(), *((name, text.encode()) for name, text in check.files.items())]
    for name, content in written:
        path = root / name
        if not path.parent.resolve().is_relative_to(root.resolve()):
            return f"{name} would lie outside the copy"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link
        path.write_bytes(content)
    if not check.patch:
        return ""
    words, env = ("git", "apply", "--whitespace=nowarn", "-"), {"GIT_CEILING_DIRECTORIES": str(root.parent)}
    done = capture(words, cwd=root, env=env, stdin=check.patch.encode())
    problem = done.stderr.decode("utf-8", "replace").strip()
    return f"the check's patch does not fit: {problem}" if done.returncode else ""


def _judge(check: HiddenCheck, shown: CheckRun) -> HiddenResult:
    code, ended = shown.execution.exit_code, "it took too long" if shown.execution.timed_out else ""
    if not check.tests:
        return HiddenResult(resolved=code == 0, reason=ended or make_visible(f"exit {code}"))
    wrong = [test for test in check.tests if _find_outcome(shown, test) is not TestOutcome.PASSED]
    said = ended or (f"not passed: {list_some(wrong)}" if wrong else f"{len(check.tests)} tests passed")
    return HiddenResult(resolved=not wrong and not ended, reason=make_visible(said))


def _find_outcome(shown: CheckRun, test: str) -> TestOutcome | None:
    if test in shown.outcomes:
        return shown.outcomes[test]
    found = {outcome for name, outcome in shown.outcomes.items() if name.endswith(f"::{test}")}
    return found.pop() if len(found) == 1 else None
