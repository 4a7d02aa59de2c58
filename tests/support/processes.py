"""What runs on this machine, seen from outside every sandbox."""

from pathlib import Path


def processes(words: str) -> set[int]:
    """Return the processes that run exactly this command."""
    return {int(place.parent.name) for place in Path("/proc").glob("[0-9]*/cmdline") if _said(place) == words}


def _said(place: Path) -> str:
    try:
        return place.read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""  # it ended while we looked
