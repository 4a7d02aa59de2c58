"""Finds out how this machine can confine a command, and how a command is started in its profile.

Bubblewrap where it works, else Landlock, else nothing; on macOS sandbox-exec, which is written from its
documentation and has not run on a Mac.
"""

import errno
import json
import os
import platform
import select
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentflow import process
from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.core.routing import Access
from agentflow.process import capture
from agentflow.sandbox import seccomp
from agentflow.sandbox.launch import OLDEST_LANDLOCK, find_landlock_version
from agentflow.sandbox.profile import Level, Profile
from agentflow.sandbox.seccomp import Also

_TRIAL_SECONDS = 20.0
NESTED = "--disable-userns"
"""Versions before 0.8 do not know it; the seccomp program forbids the same."""
_ALONE = (
    *("--die-with-parent", "--new-session", "--unshare-user", "--unshare-ipc", "--unshare-pid"),
    *("--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"),
)
_SYSTEM = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *("--ro-bind", "/proc/sys", "/proc/sys"),  # for a caller who is root it would be writable
)
_BUBBLEWRAP_TRIAL = (
    *(*_ALONE, "--unshare-net", "--json-status-fd", "2", *_SYSTEM),
    *("--tmpfs", "/tmp", "--", "true"),  # noqa: S108  # hidden, not used
)
_SCOPES = 6


class Ability(Record):
    """The ways in which this machine can confine commands."""

    level: Level
    bubblewrap: tuple[str, ...] = ()
    """The program, and the option it may lack."""
    reason: str = ""
    """Why it is not `full`."""
    gaps: tuple[str, ...] = ()
    """What is not isolated."""


def find_ability() -> Ability:
    if sys.platform == "darwin":
        return _find_seatbelt()
    if sys.platform != "linux" or seccomp.build_filter() is None:
        return Ability(level=Level.NONE, reason=f"none is known for {sys.platform} on {platform.machine()}")
    found, reason = _find_bubblewrap()
    if found:
        return Ability(level=Level.FULL, bubblewrap=found)
    version = find_landlock_version()
    if version < OLDEST_LANDLOCK:
        lack = "Landlock is older than Linux 6.2" if version else "the kernel has no Landlock"
        return Ability(level=Level.NONE, reason=f"{reason}; {lack}")
    return Ability(level=Level.PARTIAL, reason=reason, gaps=_list_gaps(version))


def hold_network() -> process.Program:
    """Start a process with a network that has nothing but a loopback, for commands to join; it ends with us.

    Raises OSError where no network can be had.
    """
    words = (*_BARE, "hold")
    program = process.start(Command(argv=words, cwd="/", timeout=_TRIAL_SECONDS))
    output = program.process.stdout
    assert output is not None
    if select.select((output,), (), (), _TRIAL_SECONDS)[0] and output.read(4) == b"held":
        return program
    program.end()
    raise OSError(errno.EPERM, "this machine gives commands no network to share")


def _find_seatbelt() -> Ability:
    """Return what sandbox-exec gives; no version of this has run on a Mac."""
    reason = "sandbox-exec is the sandbox of macOS, and untested"
    try:
        finished = capture(("sandbox-exec", "-p", "(version 1)(allow default)", "true"), cwd=Path("/"))
    except OSError:
        return Ability(level=Level.NONE, reason="sandbox-exec is not there")
    if finished.returncode:
        return Ability(level=Level.NONE, reason="sandbox-exec does not work here")
    return Ability(level=Level.PARTIAL, reason=reason, gaps=("other processes can be seen", "shared memory"))


def _find_bubblewrap() -> tuple[tuple[str, ...], str]:
    """Return how bubblewrap is started here, or why it cannot be."""
    program = shutil.which("bwrap")
    if program is None:
        return (), "bubblewrap (bwrap) is not installed"
    said = ""
    for words in ((program, NESTED), (program,)):
        try:
            finished = capture(
                (*words, *_BUBBLEWRAP_TRIAL), cwd=Path(tempfile.gettempdir()), timeout=_TRIAL_SECONDS
            )
        except OSError as error:
            return (), f"bubblewrap cannot be started: {error}"
        if finished.returncode == 0:
            return words, ""
        said = finished.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return (), f"bubblewrap does not work here: {said}"


def _list_gaps(version: int) -> tuple[str, ...]:
    """Return what Landlock of this version does not keep in."""
    gaps = [
        "Unix sockets of services can be reached",
        "names and sizes of hidden files can be read",
        "other processes can be seen",
        "the implementer and checks can change modes and times of your files",
        "the implementer can read secrets in folders of the repository",
    ]
    if version < _SCOPES:
        gaps.append("signals can be sent to your other processes")
    return tuple(gaps)


STARTED = (b'"exit-code"', b"started")
"""The words in the status of a started command: that of bubblewrap, and that of `launch.py`."""
_LIMITED = (
    "/bin/sh",
    "-c",
    '{ ulimit -S -f 2097152; ulimit -S -u 4096 || ulimit -S -p 4096; } 2>/dev/null; exec "$@"',
    "sh",
)
"""1 GiB in a file. Processes are counted by `process.py`; this limit is for when that is too slow."""
_START = "import sys; sys.path.append(sys.argv.pop(1)); import launch; launch.become_command()"
"""It imports `launch.py`, since a script would be compiled for every command."""
_BARE = (sys.executable, "-I", "-S", "-B", "-c", _START, str(Path(__file__).parent))
"""The Python that prepares a process, without what other packages would load into it."""
_DEVICES = ("null", "zero", "full", "random", "urandom")


class StartDescriptors(Record):
    """The descriptors that a sandboxed command is started with."""

    filter: int
    status: int

    def read_status(self) -> bytes:
        """Return what was written about the start of the command."""
        return os.pread(self.status, 1 << 16, 0)


@contextmanager
def open_descriptors(profile: Profile, ability: Ability) -> Iterator[StartDescriptors]:
    """Yield the descriptors of one command."""
    also = () if ability.level is Level.FULL else _unknown_to_landlock(profile)
    opened = StartDescriptors(filter=os.memfd_create("filter", 0), status=os.memfd_create("status", 0))
    try:
        os.write(opened.filter, seccomp.build_filter(also) or b"")
        os.lseek(opened.filter, 0, os.SEEK_SET)
        yield opened
    finally:
        os.close(opened.filter)
        os.close(opened.status)


def _unknown_to_landlock(profile: Profile) -> frozenset[Also]:
    """Return what the filter has to refuse; who may write also sets modes and times, of any file of yours."""
    wanted = {Also.INTERNET: not profile.network, Also.ATTRIBUTES: profile.access is Access.READ}
    return frozenset(one for one, is_wanted in wanted.items() if is_wanted)


def confine_command(
    command: Command,
    profile: Profile,
    ability: Ability,
    opened: StartDescriptors,
    overlay: tuple[str, str] | None = None,
) -> Command:
    inner = (*_LIMITED, *command.argv)
    if ability.level is Level.FULL:
        sockets = () if profile.network else find_listening_sockets(profile)
        descriptors = ("--seccomp", str(opened.filter), "--json-status-fd", str(opened.status))
        words = (*ability.bubblewrap, *build_bubblewrap_arguments(profile, sockets), *descriptors, "--")
        for layer in (*profile.layers.values(), *((overlay,) if overlay else ())):
            words = (*build_mount_words(*layer), *words)
        words = (*_BARE, "cache", *profile.cache, *words) if profile.cache else words
        words = (*_BARE, "join", str(profile.joined), *words) if profile.joined else words
    else:
        spec = {"rights": _list_rights(profile), "filter": opened.filter, "status": opened.status}
        words = (*_BARE, "restrict", json.dumps(spec))
    return command.replace(argv=(*words, *inner), descriptors=(opened.filter, opened.status))


def confine_on_mac(command: Command, profile: Profile) -> Command:
    inner = (*_LIMITED, *command.argv)
    return command.replace(argv=("sandbox-exec", "-p", write_seatbelt_rules(profile), *inner))


def build_mount_words(lower: str, scratch: str) -> tuple[str, ...]:
    """Return the words that mount an overlay for the command whose words follow."""
    return (*_BARE, "overlay", lower, scratch)


def tie_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that gets SIGTERM when the thread that starts it ends."""
    return (*_BARE, "tie", *words)


def _list_rights(profile: Profile) -> dict[str, Any]:
    """Return what Landlock leaves to a command."""
    avoided = {*profile.hidden, *profile.masked, Path("/dev")}
    tops = (Path("/"), *profile.readable, profile.root, profile.source)
    readable = [place for top in tops for place in _find_largest(top, avoided)]
    writable = [*profile.writable, *(Path("/dev", name) for name in _DEVICES), *_find_changeable(profile)]
    return {
        "listable": [str(profile.root)],
        "readable": [str(place) for place in readable],
        "writable": [str(place) for place in writable],
        "network": profile.network,
    }


def _find_largest(place: Path, avoided: Collection[Path]) -> Iterator[Path]:
    """Yield the largest places at or below one that hold nothing that is avoided."""
    if place in avoided or place.is_symlink():
        return
    if any(each.is_relative_to(place) for each in avoided):
        for entry in sorted(place.iterdir()):
            yield from _find_largest(entry, avoided)
    else:
        yield place


def _find_changeable(profile: Profile) -> Iterator[Path]:
    """Yield what of the repository may be written; Landlock knows no exception below a place it opens."""
    if profile.access is Access.THROW_AWAY:
        yield profile.source
    elif profile.access is Access.WRITE:
        kept = {*profile.protected, *(place for place in profile.masked if place.parent == profile.root)}
        entries = (place for place in profile.source.iterdir() if not place.is_symlink())
        yield from (place for entry in entries for place in _find_largest(entry, kept))


_SOCKETS = Path("/proc/net/unix")


def build_bubblewrap_arguments(profile: Profile, sockets: Iterable[Path] = ()) -> tuple[str, ...]:
    """Return the arguments of bubblewrap; later mounts lie over earlier ones."""
    words = [*_ALONE, *(() if profile.network or profile.joined else ("--unshare-net",)), *_SYSTEM]
    words += _hide(profile.hidden)
    for place in profile.readable:
        is_link = place.is_symlink()
        words += ["--symlink", str(place.readlink())] if is_link else ["--ro-bind-try", str(place)]
        words.append(str(place))
    mount = "--ro-bind" if profile.access in (Access.READ, Access.COPY) else "--bind"
    words += [mount, str(profile.source), str(profile.root)]
    for place, source in _list_holding_folders(profile):
        words += ["--bind", str(source), str(place)]
    for place in profile.protected:
        real = Path(os.path.realpath(place))  # where a link leads that only claims to be an environment
        if _is_seen(real, profile, profile.root):
            words += ["--ro-bind-try", str(real), str(place)]
    for place, source in profile.elsewhere.items():
        words += ["--ro-bind-try", str(source), str(place)]
    layers = [(place, Path(scratch, "merged")) for place, (_, scratch) in profile.layers.items()]
    for place, source in [*layers, *((place, place) for place in profile.writable)]:
        words += ["--bind", str(source), str(place)]
    return (*words, *_hide((*profile.masked, *sockets)), "--chdir", profile.cwd)


def _hide(places: Iterable[Path]) -> Iterator[str]:
    """Yield the words that let folders and files be seen as empty."""
    for place in places:
        yield from ("--tmpfs",) if place.is_dir() else ("--ro-bind", "/dev/null")
        yield str(place)


def _list_holding_folders(profile: Profile) -> list[tuple[Path, Path]]:
    """Return the folders of what is masked or protected, the outer ones first: a mount cannot be renamed.

    The next command would find what lies in them under another name. Each comes with the folder that stands
    there, unless a link leads to it.
    """
    if profile.access is not Access.WRITE:
        return []
    found = {folder for place in (*profile.masked, *profile.protected) for folder in place.parents}
    inside = sorted(
        (folder for folder in found if profile.root in folder.parents), key=lambda folder: len(folder.parts)
    )
    pairs = ((folder, profile.source / folder.relative_to(profile.root)) for folder in inside)
    return [(folder, real) for folder, real in pairs if real.is_dir() and real.resolve() == real]


def find_listening_sockets(profile: Profile) -> tuple[Path, ...]:
    """Return the sockets of services that a command could talk to although it cannot write there."""
    try:
        lines = _SOCKETS.read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return ()
    names = {words[7] for line in lines if len(words := line.split(maxsplit=7)) > 7}
    places = {Path(os.path.realpath(name)) for name in names if name.startswith("/")}
    is_own = profile.access is not Access.THROW_AWAY and profile.source == profile.root
    tops = (profile.root,) if is_own else ()
    return tuple(sorted(place for place in places if _is_seen(place, profile, *tops) and place.is_socket()))


def _is_seen(place: Path, profile: Profile, *tops: Path) -> bool:
    hidden = any(place.is_relative_to(top) for top in profile.hidden)
    return not hidden or any(place.is_relative_to(top) for top in (*profile.readable, *tops))


_SEATBELT = """\
(version 1)
(deny default)
(allow process-exec process-fork signal (target same-sandbox))
(allow sysctl-read mach-lookup ipc-posix-shm)
(allow file-read* file-map-executable)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))"""
"""`deny default` covers the network and every write; later rules win."""


def write_seatbelt_rules(profile: Profile) -> str:
    lines = [_SEATBELT]
    lines += _seatbelt_lines("deny file-read* file-write*", profile.hidden)
    readable = (*profile.readable, profile.source, profile.root, *profile.writable)
    lines += _seatbelt_lines("allow file-read*", readable)
    writes = () if profile.access in (Access.READ, Access.COPY) else (profile.source,)
    lines += _seatbelt_lines("allow file-write*", (*writes, *profile.writable))
    lines += _seatbelt_lines("deny file-write*", profile.protected)
    if profile.network:
        lines.append("(allow network*)")
    return "\n".join(lines)


def _seatbelt_lines(rule: str, places: Iterable[Path]) -> list[str]:
    return [f"({rule} (subpath {_quote(place)}))" for place in places]


def _quote(place: Path) -> str:
    text = str(place).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
