"""A task's record as one file, to be looked at in another clone."""

import io
import re
import tarfile
from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.frontmatter import write_whole

_PARTS = re.compile(
    r"events\.jsonl|task\.md|report\.md|evidence/ev-\d+(?:\.try-\d+)?\.(?:json|out|ids|reads)"
)
"""What a record is made of; the messages of the runs stay where they are."""
_ROOM = 1_000_000_000
"""Bytes that a record may have when it is unpacked."""


def pack_record(task: Path, target: Path) -> None:
    """Write a task's record into a file. Raises ConfigError."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz") as bundle:
        found = (str(path.relative_to(task)) for path in sorted(task.rglob("*")) if path.is_file())
        for name in filter(_PARTS.fullmatch, found):
            bundle.add(task / name, name, recursive=False, filter=_plain)
    try:
        write_whole(target, kept.getvalue())
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}") from None


def unpack_record(source: Path, folder: Path) -> None:
    """Write the parts of a record from a file, and nothing else, into an empty folder. Raises ConfigError."""
    (folder / "evidence").mkdir()
    try:
        with tarfile.open(source, "r:gz") as bundle:
            _unpack(bundle, folder)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        hint = "agentflow evidence TASK --export FILE writes one"
        raise ConfigError(f"{source} is no whole record: {error}", hint=hint) from None


def _unpack(bundle: tarfile.TarFile, folder: Path) -> None:
    room = _ROOM
    for member in bundle:
        room -= member.size
        if not (member.isfile() and _PARTS.fullmatch(member.name)) or room < 0:
            raise tarfile.TarError(f"it holds {member.name!r}")
        file = bundle.extractfile(member)
        (folder / member.name).write_bytes(file.read() if file else b"")


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an entry that says nothing of the person and the day."""
    return member.replace(uid=0, gid=0, uname="", gname="", mtime=0, mode=0o644, deep=False)
