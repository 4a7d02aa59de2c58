"""A task for another machine: packing it, carrying it out there, and checking what comes back."""

import io
import os
import tarfile
from functools import partial
from pathlib import Path

import anyio

from agentflow import __version__
from agentflow.batch.folder import (
    BUNDLE,
    TaskFolder,
    drop_missing_links,
    prepare_clone,
    remove_clone,
    report_unbegun,
    require_environment,
)
from agentflow.batch.plan import SCRIPT_PREFIX, BatchTask
from agentflow.batch.results import RESULT, BatchResult, add_lost
from agentflow.batch.run import LIMITS_FOLDER, BatchOptions, do_task
from agentflow.core.errors import ConfigError, Exit
from agentflow.core.pending import Budget
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.model.retry import SharedLimits, share_limits
from agentflow.parse import decode
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.settings import find_folders
from agentflow.store.bundle import PATCH, unpack_task
from agentflow.store.reading import load_state
from agentflow.trust import load_trust, record_trust

_CLONE, _CHECK, _SCRIPT_FILE = "clone", "check", "script.yaml"
"""What is sent to a machine."""


class _Assignment(Record):
    task: BatchTask
    share: Budget
    options: BatchOptions
    trusted: dict[str, str]
    """What a person trusts in the repository, by content."""


def pack_parcel(folder: TaskFolder, share: Budget, options: BatchOptions) -> tuple[bytes, bytes]:
    """Return the assignment of a machine and the files for it. Raises ConfigError or UsageError."""
    task = folder.task
    here = task.replace(environment="")  # that is a matter of the machine
    folder.place.mkdir(parents=True, exist_ok=True)
    prepare_clone(TaskFolder(task=here, place=folder.place))
    check = task.check.folder if task.check else ""
    model = task.model or options.model or ""
    script = model.removeprefix(SCRIPT_PREFIX) if model.startswith(SCRIPT_PREFIX) else ""
    parcel = io.BytesIO()
    with tarfile.open(fileobj=parcel, mode="w") as packed:
        for name, place in ((_CLONE, str(folder.clone)), (_CHECK, check), (_SCRIPT_FILE, script)):
            if place:
                packed.add(place, name)
    trusted = load_trust(find_folders(os.environ).config, folder.clone).files
    remove_clone(folder)
    hidden = (str(folder.place.parent), *options.hidden)
    told = options.replace(
        model=model or None, hidden=hidden, limits=SharedLimits(), cluster=None, is_tied=True
    )
    assignment = _Assignment(task=task, share=share, options=told, trusted=trusted)
    return encode(assignment), parcel.getvalue()


def do_here(version: str, assignment: bytes, parcel: bytes) -> dict[str, bytes]:
    """Do a task on this machine of a cluster, and return the files that it leaves, by name."""
    with make_scratch_folder() as scratch:
        if version != __version__:
            host = os.uname().nodename
            problem = f"{host} has agentflow {__version__}, and the batch was begun by {version}"
            task = BatchTask(text="-", repository="-")
            unbegun = report_unbegun(TaskFolder(task=task, place=scratch), Exit.CONFIG, problem)
            return {RESULT: encode(unbegun)}
        given = decode(_Assignment, assignment, "assignment")
        folder = TaskFolder(task=_locate(given, scratch), place=scratch / given.task.id)
        share_limits(scratch / LIMITS_FOLDER, given.options.limits)
        prepare = partial(_unpack, parcel=parcel, scratch=scratch, trusted=given.trusted)
        try:
            anyio.run(do_task, folder, given.share, given.options, prepare)
        finally:
            remove_clone(folder)
        found = (folder.place / name for name in (RESULT, PATCH, BUNDLE))
        return {place.name: place.read_bytes() for place in found if place.is_file()}


def _locate(given: _Assignment, scratch: Path) -> BatchTask:
    task, model = given.task, given.options.model
    if model and model.startswith(SCRIPT_PREFIX):
        model = f"{SCRIPT_PREFIX}{scratch / _SCRIPT_FILE}"
    check = task.check
    if check is not None and check.folder:
        check = check.replace(folder=str(scratch / _CHECK))
    return task.replace(model=model, check=check)


def _unpack(folder: TaskFolder, parcel: bytes, scratch: Path, trusted: dict[str, str]) -> None:
    require_environment(folder.task)
    with tarfile.open(fileobj=io.BytesIO(parcel)) as packed:
        packed.extractall(scratch, filter="tar")
    (scratch / _CLONE).rename(folder.clone)
    drop_missing_links(folder.clone)
    if trusted:
        record_trust(find_folders(os.environ).config, folder.clone, trusted)


def accept_files(folder: TaskFolder, files: dict[str, bytes], options: BatchOptions) -> BatchResult:
    """Keep what a task left on its machine, and return its result. Raises ConfigError for a misfit."""
    result = decode(BatchResult, files[RESULT], f"the result of {folder.task.id}")
    if BUNDLE in files or result.task_id is not None:
        with make_scratch_folder() as scratch:
            (scratch / "task").mkdir()
            (scratch / BUNDLE).write_bytes(files.get(BUNDLE, b""))
            task_id = unpack_task(scratch / BUNDLE, scratch / "task")
            status = load_state(scratch / "task").status
        if (task_id, status) != (result.task_id, result.status):
            raise ConfigError("what came back from its machine is of another task, or of another result")
    for name in (PATCH, BUNDLE):
        (folder.place / name).unlink(missing_ok=True)
        if name in files:
            write_atomic(folder.place / name, files[name], mode=0o644)
    if not result.is_settled:
        add_lost(folder.place, result.usage)  # it will be begun anew
    is_script = result.model.startswith(SCRIPT_PREFIX)
    return result.replace(
        id=folder.task.id,
        model=(folder.task.model or options.model or "") if is_script else result.model,
        group=folder.task.group,
        repository=folder.task.repository,
        folder=str(folder.place),
    )
