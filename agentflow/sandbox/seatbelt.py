"""A profile in the language of macOS's sandbox-exec. Written from its documentation; not yet run on a Mac."""

from collections.abc import Iterable
from pathlib import Path

from agentflow.sandbox.profile import Access, Profile

_BASE = """\
(version 1)
(deny default)
(allow process-exec process-fork signal (target same-sandbox))
(allow sysctl-read mach-lookup ipc-posix-shm)
(allow file-read* file-map-executable)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))"""
"""`deny default` covers the network and every write; later rules win."""


def rules(profile: Profile) -> str:
    """Return the profile that sandbox-exec is given."""
    lines = [_BASE]
    lines += _lines("deny file-read* file-write*", profile.hidden)
    lines += _lines("allow file-read*", (*profile.readable, profile.source, profile.root, *profile.writable))
    writes = () if profile.access in (Access.READ, Access.COPY) else (profile.source,)
    lines += _lines("allow file-write*", (*writes, *profile.writable))
    lines += _lines("deny file-write*", profile.protected)
    if profile.network:
        lines.append("(allow network*)")
    return "\n".join(lines)


def _lines(rule: str, places: Iterable[Path]) -> list[str]:
    return [f"({rule} (subpath {_quoted(place)}))" for place in places]


def _quoted(place: Path) -> str:
    text = str(place).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
