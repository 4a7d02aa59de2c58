"""What this machine can hold: found out by really running it."""

import platform
import shutil
import sys
import tempfile
from pathlib import Path

from agentflow.core.record import Record
from agentflow.process import capture
from agentflow.sandbox import landlock, seccomp
from agentflow.sandbox.bubblewrap import NESTED
from agentflow.sandbox.profile import Level

_SECONDS = 20.0
_TRIAL = (
    *("--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net", "--cap-drop", "ALL"),
    *("--new-session", "--unshare-uts", "--unshare-ipc", "--unshare-cgroup-try", "--json-status-fd", "2"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
    *("--tmpfs", "/tmp", "--", "true"),  # noqa: S108  # hidden, not used
)
_SCOPES = 6


class Ability(Record):
    """How commands can be kept in here."""

    level: Level
    bubblewrap: tuple[str, ...] = ()
    """The program, and the option it may lack."""
    reason: str = ""
    """Why it is not `full`."""
    gaps: tuple[str, ...] = ()
    """What is not isolated."""


def probe() -> Ability:
    """Return what works here."""
    if sys.platform == "darwin":
        return _seatbelt()
    if sys.platform != "linux" or seccomp.program() is None:
        return Ability(level=Level.NONE, reason=f"none is known for {sys.platform} on {platform.machine()}")
    found, reason = _bubblewrap()
    if found:
        return Ability(level=Level.FULL, bubblewrap=found)
    version = landlock.version()
    if version < landlock.OLDEST:
        lack = "Landlock is older than Linux 6.2" if version else "the kernel has no Landlock"
        return Ability(level=Level.NONE, reason=f"{reason}; {lack}")
    return Ability(level=Level.PARTIAL, reason=reason, gaps=_gaps(version))


def _seatbelt() -> Ability:
    """Return what sandbox-exec gives; no version of this has run on a Mac."""
    reason = "sandbox-exec is the sandbox of macOS, and untested"
    try:
        finished = capture(("sandbox-exec", "-p", "(version 1)(allow default)", "true"), cwd=Path("/"))
    except OSError:
        return Ability(level=Level.NONE, reason="sandbox-exec is not there")
    if finished.returncode:
        return Ability(level=Level.NONE, reason="sandbox-exec does not work here")
    return Ability(level=Level.PARTIAL, reason=reason, gaps=("other processes can be seen", "shared memory"))


def _bubblewrap() -> tuple[tuple[str, ...], str]:
    """Return how bubblewrap is started here, or why it cannot be."""
    program = shutil.which("bwrap")
    if program is None:
        return (), "bubblewrap (bwrap) is not installed"
    said = ""
    for words in ((program, NESTED), (program,)):
        try:
            finished = capture((*words, *_TRIAL), cwd=Path(tempfile.gettempdir()), timeout=_SECONDS)
        except OSError as error:
            return (), f"bubblewrap cannot be started: {error}"
        if finished.returncode == 0:
            return words, ""
        said = finished.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return (), f"bubblewrap does not work here: {said}"


def _gaps(version: int) -> tuple[str, ...]:
    """Return what Landlock of this version does not keep in."""
    gaps = [
        "Unix sockets of services can be reached",
        "names and sizes of hidden files can be asked for",
        "other processes can be seen",
        "the implementer and checks can change modes and times of your files",
        "the implementer can read secrets in folders of the repository",
    ]
    if version < _SCOPES:
        gaps.append("your other processes can be sent signals")
    return tuple(gaps)
