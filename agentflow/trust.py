"""A person's trust in the files of a repository, by content: kept with the user, one file a repository."""

import hashlib
import os
import stat
from pathlib import Path

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.parse import decode

MAX_BYTES = 10_000_000
"""Larger files are not read."""


class TrustRecord(Record):
    """The files of one repository that a person has looked at, by path, with the hash of what they held."""

    root: str
    files: dict[str, str] = {}

    def covers(self, file: str) -> bool:
        """Return whether a file holds, byte for byte, what was trusted."""
        return file in self.files and self.files[file] == fingerprint_file(Path(self.root), file)


def load_trust(config: Path, root: Path) -> TrustRecord:
    """Return the trusted files of a repository. Raises InvalidFile for a record that cannot be read."""
    place = _find_record(config, root)
    if not place.is_file():
        return TrustRecord(root=str(root.resolve()))
    return decode(TrustRecord, place.read_bytes(), str(place))


def record_trust(config: Path, root: Path, files: dict[str, str]) -> None:
    """Record the trusted files of a repository with their hashes, in place of any earlier record."""
    trusted = TrustRecord(root=str(root.resolve()), files=files)
    place = _find_record(config, root)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(place, encode(trusted) + b"\n")


def drop_trust(config: Path, root: Path) -> None:
    """Forget what is trusted of a repository that is about to be removed."""
    _find_record(config, root).unlink(missing_ok=True)


def _find_record(config: Path, root: Path) -> Path:
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:32]
    return config.parent / "trust" / f"{name}.json"


def fingerprint_file(root: Path, file: str) -> str | None:
    """Return the hash of a file of a repository; None for what is no plain file in it."""
    try:
        place = (root / file).resolve()
        if not place.is_relative_to(root.resolve()):
            return None
        return hashlib.sha256(read_content(place)).hexdigest()
    except (OSError, RuntimeError, ValueError, InvalidFile):
        return None


def read_content(path: Path) -> bytes:
    """Return the bytes of a regular file of bearable size. Raises OSError, or InvalidFile for any other."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidFile(str(path), "is not a regular file")
        if status.st_size > MAX_BYTES:
            raise InvalidFile(str(path), f"has {status.st_size:,} bytes; the limit is {MAX_BYTES:,}")
        return opened.read(MAX_BYTES)


def require_content(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises InvalidFile with the reason why they cannot be read."""
    try:
        return read_content(path)
    except OSError as error:
        raise InvalidFile(str(path), f"cannot be read: {error.strerror}") from None


def require_text(path: Path, encoding: str = "utf-8-sig") -> str:
    """Return the text of a regular file. Raises InvalidFile with the reason why it cannot be read."""
    return to_text(require_content(path), path, encoding)


def to_text(raw: bytes, path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file. Raises InvalidFile with the line of a byte that is not UTF-8."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line, wrong = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise InvalidFile(str(path), f"byte 0x{wrong:02x} is not UTF-8", line=line) from None
