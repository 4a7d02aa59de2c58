"""Where temporary files go while a test looks."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_files_in(folder: Path | None) -> Iterator[None]:
    """Have temporary files made in a folder; None is the one that the environment names now."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder) if folder else None
    try:
        yield
    finally:
        tempfile.tempdir = before
