"""A task as one file: its record, or all of it with hashes; and its verdict as an unsigned attestation."""

import gzip
import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentflow import __version__
from agentflow.core.errors import ConfigError, CorruptState, Exit, InvalidFile, StateError, UsageError
from agentflow.core.record import Record, encode
from agentflow.core.task import TaskState
from agentflow.frontmatter import write_whole
from agentflow.parse import decode
from agentflow.redact import redact_bytes
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.store.ledger import find_damages
from agentflow.store.ownership import hold_writer_lock
from agentflow.store.reading import find, find_state_folder, fold_state, is_task_id, load_events, load_state
from agentflow.wording import describe_approvals
from agentflow.workspace.git import Git

BUNDLE_SUFFIX = ".agentflow"
PATCH = "change.patch"
_RECORD = re.compile(
    r"events\.jsonl|task\.md|report\.md|evidence/ev-\d+(?:\.try-\d+)?\.(?:json|out|ids|reads)"
)
"""What verifying needs."""
_REST = re.compile(r"change\.patch|runs/\d+-[\w.-]+\.jsonl")
"""What a whole task has besides: its change, and what was said to a model and came back."""
_MANIFEST = "manifest.json"
_MOST_BYTES = 1_000_000_000
_FREE_BYTES = 64_000_000
_MOST_RATIO = 200
"""A file may unpack to a thousand million bytes, beyond the first 64 million to 200 times its own size."""
_CHUNK = 1 << 20
_STATEMENT = "https://in-toto.io/Statement/v1"
_SUMMARY = "https://slsa.dev/verification_summary/v1"
_SLSA = "1.0"
_NAME = "urn:agentflow"
_WEB = ("https", "http", "ssh", "git")
_FAILED = "FAILED"


class BundleList(Record):
    """The content of a bundle: the task, and the hash of each file by its name."""

    task_id: str
    files: dict[str, str]
    version: int = 1


def pack_record(task: Path, target: Path) -> None:
    """Write a task's record into a file, without what was said to a model. Raises ConfigError."""
    _write(target, {name: (task / name).read_bytes() for name in _list_files(task, _RECORD)})


def pack_task(task: Path, target: Path, patch: bytes = b"") -> tuple[str, tuple[str, ...]]:
    """Write all of a task into a file; return the hash of its list of hashes, and the parts left out.

    A run or a patch that holds a secret is left out: changed, it would be another one. Raises ConfigError,
    also for a record that holds a secret.
    """
    parts = {}
    for name in _list_files(task, _RECORD):
        parts[name] = (task / name).read_bytes()
        if redact_bytes(parts[name]) != parts[name]:
            raise ConfigError(f"{task / name} holds a secret, so the task is not exported")
    rest = {name: (task / name).read_bytes() for name in _list_files(task, _REST)}
    rest |= {PATCH: patch} if patch else {}
    kept = {name: raw for name, raw in rest.items() if redact_bytes(raw) == raw}
    parts |= kept
    files = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(parts.items())}
    listed = encode(BundleList(task_id=task.name, files=files))
    _write(target, {_MANIFEST: listed, **{name: parts[name] for name in files}})
    return hashlib.sha256(listed).hexdigest(), tuple(sorted(rest.keys() - kept.keys()))


def _list_files(task: Path, pattern: re.Pattern[str]) -> list[str]:
    found = (
        str(path.relative_to(task)) for path in task.rglob("*") if path.is_file() and not path.is_symlink()
    )
    return sorted(filter(pattern.fullmatch, found))


def _write(target: Path, parts: Mapping[str, bytes]) -> None:
    """Write an archive that says nothing of the person and the day: equal parts give equal bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.USTAR_FORMAT) as bundle,
    ):
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            bundle.addfile(member, io.BytesIO(content))
    try:
        write_whole(target, packed.getvalue(), mode=0o644)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}") from None


def unpack_record(source: Path, folder: Path) -> None:
    """Write the parts of a record or a task into an empty folder, and nothing else. Raises ConfigError."""
    hint = "agentflow export TASK FILE writes one, or agentflow evidence TASK --export FILE"
    try:
        found = _unpack(source, folder)
        if _MANIFEST in found:
            _require_listed(folder, found)
    except (tarfile.TarError, EOFError, OSError, ValueError, InvalidFile) as error:
        problem = getattr(error, "strerror", None) or error
        raise ConfigError(f"{source} is not a complete record: {problem}", hint=hint) from None


def unpack_task(source: Path, folder: Path) -> str:
    """Write a whole task into an empty folder and return its id.

    Raises ConfigError for anything but a bundle whose files are those of its list and agree with its events.
    """
    unpack_record(source, folder)
    if not (folder / _MANIFEST).is_file():
        raise ConfigError(
            f"{source} holds a record without its list of hashes", hint="agentflow export writes both"
        )
    listed = _read_manifest(folder)
    (folder / _MANIFEST).unlink()
    try:
        happened = tuple(load_events(folder))
        task = fold_state(folder, happened)
        broken = next(find_damages(folder, happened, task), None)
    except (CorruptState, OSError) as error:
        raise ConfigError(f"{source} is forged or damaged: {str(error).replace(f'{folder}/', '')}") from None
    if broken is not None:
        raise ConfigError(f"{source} is forged or damaged: {broken.problem}")
    if task.task_id != listed.task_id or not is_task_id(task.task_id):
        raise ConfigError(f"{source} is forged or damaged: its events are of another task than it says")
    return task.task_id


def _read_manifest(folder: Path) -> BundleList:
    listed = decode(BundleList, (folder / _MANIFEST).read_bytes(), _MANIFEST)
    if listed.version != 1:
        raise InvalidFile(_MANIFEST, f"version {listed.version} was written by a newer agentflow")
    return listed


def _require_listed(folder: Path, found: set[str]) -> None:
    """Raise ValueError unless the files of a bundle are exactly those that its list says."""
    files = _read_manifest(folder).files
    if odd := sorted(found.symmetric_difference({_MANIFEST, *files})):
        raise ValueError(f"{odd[0]!r} is in its list or in it, but not in both")
    for name, digest in files.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ValueError(f"{name} was changed")


def _unpack(source: Path, folder: Path) -> set[str]:
    """Write the files of an archive into a folder and return their names."""
    room = min(_MOST_BYTES, max(_FREE_BYTES, source.stat().st_size * _MOST_RATIO))
    plain = folder / ".unpacked"
    try:
        with gzip.open(source) as packed, plain.open("wb") as file:
            for chunk in _read_within(packed, room):
                file.write(chunk)
        with tarfile.open(plain, "r:") as bundle:
            return _take_members(bundle, folder)
    finally:
        plain.unlink(missing_ok=True)


def _read_within(packed: gzip.GzipFile, room: int) -> Iterator[bytes]:
    """Yield what a packed file holds. Raises TarError once that is more than there is room for."""
    while chunk := packed.read(_CHUNK):
        room -= len(chunk)
        if room < 0:
            raise tarfile.TarError("it unpacks to far more than such a file needs")
        yield chunk


def _take_members(bundle: tarfile.TarFile, folder: Path) -> set[str]:
    """Write the members of an archive, each once. Raises TarError for one that is no part of a task."""
    found: set[str] = set()
    for member in bundle:
        name = member.name
        is_part = name == _MANIFEST or _RECORD.fullmatch(name) or _REST.fullmatch(name)
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or not is_part or name in found:
            raise tarfile.TarError(f"it holds {name!r}" + " twice" * (name in found))
        found.add(name)
        (folder / name).parent.mkdir(exist_ok=True)
        held = bundle.extractfile(member)
        with (folder / name).open("wb") as file:
            shutil.copyfileobj(held or io.BytesIO(), file)
    return found


_DIFF = ("-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames")


class Bundle(Record):
    """A bundle that was written, or a task that came out of one."""

    task_id: str
    path: str
    address: str = ""
    """The hash of its list of hashes; equal bundles have equal addresses."""
    left_out: tuple[str, ...] = ()
    """The parts that hold a secret."""


def make_patch(git: Git, task: TaskState) -> bytes:
    """Return the change of a task as a patch, empty where its trees are not in this repository."""
    trees = (task.base_tree or "", task.tree or "")
    return git.call("diff-tree", *_DIFF, *trees) if all(map(git.has_tree, trees)) else b""


def find_wrong_patch(git: Git, folder: Path, task: TaskState) -> str | None:
    """Return why a task's patch is not its change, or nothing; None where there is nothing to compare."""
    if not (folder / PATCH).is_file() or not git.has_tree(task.base_tree or ""):
        return None
    try:
        made = git.apply_patch(task.base_tree or "", (folder / PATCH).read_bytes())
    except StateError as error:
        return f"{PATCH} cannot be applied: {error}"
    return "" if made == task.tree else f"{PATCH} makes another tree than the one that was judged"


def export_task(git: Git, record: Path, target: Path | None) -> Bundle:
    """Write a task into a file, by default one in the current folder with its name. Raises ConfigError."""
    path = target or Path(f"{record.name}{BUNDLE_SUFFIX}")
    task = load_state(record)
    address, left_out = pack_task(record, path, make_patch(git, task))
    return Bundle(task_id=record.name, path=str(path), address=address, left_out=left_out)


def import_task(git: Git, source: Path) -> Bundle:
    """Put the task of a file among those of a repository. Raises ConfigError, UsageError or TaskLocked."""
    with hold_writer_lock(git.root), make_scratch_folder() as scratch:
        task_id = unpack_task(source, scratch)
        if problem := find_wrong_patch(git, scratch, load_state(scratch)):
            raise ConfigError(f"{source} is forged or damaged: {problem}")
        place = find_state_folder(git.root) / task_id
        if os.path.lexists(place):
            raise UsageError(f"the task {task_id} is already in this repository")
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
    with make_scratch_folder() as scratch:
        begun = scratch / "task"
        begun.mkdir()
        yield begun.rename(scratch / unpack_task(Path(named), begun))


def make_statement(git: Git, record: Path, bundle: Path) -> dict[str, Any]:
    """Return what a task's record says of its final files; the bundle that holds the record is its proof.

    Raises StateError for a task without a verdict on files.
    """
    happened = tuple(load_events(record))
    task = fold_state(record, happened)
    if task.ending is None or task.verdict is None or task.tree is None:
        raise StateError(f"task {task.task_id} has no verdict yet, so there is nothing to attest")
    is_passed = task.ending.exit_code == Exit.VERIFIED
    about = f"{_NAME}:task:{task.task_id}"
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    checks = [f"{item.check.name}: {item.check.command}" for item in task.final]
    return {
        "_type": _STATEMENT,
        "subject": list(_list_subjects(git, task.tree)),
        "predicateType": _SUMMARY,
        "predicate": {
            "verifier": {"id": f"{_NAME}:verifier", "version": {"agentflow": __version__}},
            "timeVerified": happened[-1].at,
            "resourceUri": _find_address(git) or about,
            "policy": {"uri": f"{_NAME}:required-checks", "annotations": {"checks": checks}},
            "inputAttestations": [{"uri": about, "name": bundle.name, "digest": {"sha256": digest}}],
            "verificationResult": "PASSED" if is_passed else _FAILED,
            "verifiedLevels": ["AGENTFLOW_VERIFIED" if is_passed else _FAILED],
            "slsaVersion": _SLSA,
            f"{_NAME}:verdict": {
                "status": task.status,
                "exitCode": int(task.ending.exit_code),
                "reason": task.ending.reason,
                "caveats": list(task.verdict.caveats),
                "approvals": list(describe_approvals(task.verdict)),
            },
        },
    }


def _list_subjects(git: Git, tree: str) -> Iterator[dict[str, Any]]:
    """Yield the judged tree, and the newest commit where it holds exactly that."""
    yield {"name": "tree", "digest": {"gitTree": tree}}
    if git.head == tree:
        yield {"name": "commit", "digest": {"gitCommit": git.call("rev-parse", "HEAD").decode().strip()}}


def _find_address(git: Git) -> str:
    """Return where the repository comes from, without names and passwords; empty where that is no address."""
    try:
        parts = urlsplit(git.call("config", "--get", "remote.origin.url").decode().strip())
        port = f":{parts.port}" if parts.port else ""
    except (StateError, ValueError):
        return ""
    if parts.scheme not in _WEB or not parts.hostname:
        return ""
    return f"git+{parts.scheme}://{parts.hostname}{port}{parts.path}"
