"""The words that start a command inside its profile, by what the machine has."""

import json
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.sandbox import seatbelt, seccomp
from agentflow.sandbox.bubblewrap import arguments, listening
from agentflow.sandbox.probe import Ability
from agentflow.sandbox.profile import Access, Level, Profile
from agentflow.sandbox.seccomp import Also

STARTED = (b'"exit-code"', b"started")
"""What stands in the status once a command was started: bubblewrap's word, and that of `launch.py`."""
_LIMITED = (
    "/bin/sh",
    "-c",
    '{ ulimit -S -f 2097152; ulimit -S -u 4096 || ulimit -S -p 4096; } 2>/dev/null; exec "$@"',
    "sh",
)
"""1 GiB in a file. Processes are counted by `process.py`; this limit is for when that is too slow."""
_BARE = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")))
"""The Python that prepares a process, without what other packages would load into it."""
_DEVICES = ("null", "zero", "full", "random", "urandom")


class Doors(Record):
    """The descriptors that a sandboxed command is started with."""

    filter: int
    status: int

    def said(self) -> bytes:
        """Return what was written about the start of the command."""
        return os.pread(self.status, 1 << 16, 0)


@contextmanager
def doors(profile: Profile, ability: Ability) -> Iterator[Doors]:
    """Yield the descriptors of one command."""
    also = () if ability.level is Level.FULL else _unknown_to_landlock(profile)
    opened = Doors(filter=os.memfd_create("filter", 0), status=os.memfd_create("status", 0))
    try:
        os.write(opened.filter, seccomp.program(also) or b"")
        os.lseek(opened.filter, 0, os.SEEK_SET)
        yield opened
    finally:
        os.close(opened.filter)
        os.close(opened.status)


def _unknown_to_landlock(profile: Profile) -> frozenset[Also]:
    """Return what the filter has to refuse; who may write also sets modes and times, of any file of yours."""
    wanted = {Also.INTERNET: not profile.network, Also.ATTRIBUTES: profile.access is Access.READ}
    return frozenset(one for one, is_wanted in wanted.items() if is_wanted)


def wrapped(
    command: Command,
    profile: Profile,
    ability: Ability,
    opened: Doors,
    overlay: tuple[str, str] | None = None,
) -> Command:
    """Return the command that runs another one in its profile, an overlay being mounted first."""
    inner = (*_LIMITED, *command.argv)
    if ability.level is Level.FULL:
        words = _bubblewrapped(profile, ability, opened)
        words = (*mounting(*overlay), *words) if overlay else words
    else:
        spec = {"rights": _rights(profile), "filter": opened.filter, "status": opened.status}
        words = (*_BARE, "restrict", json.dumps(spec))
    return command.replace(argv=(*words, *inner), descriptors=(opened.filter, opened.status))


def seatbelted(command: Command, profile: Profile) -> Command:
    """Return the command that runs another one in its profile on macOS."""
    inner = (*_LIMITED, *command.argv)
    return command.replace(argv=("sandbox-exec", "-p", seatbelt.rules(profile), *inner))


def mounting(lower: str, scratch: str) -> tuple[str, ...]:
    """Return the words that mount an overlay for the command whose words follow."""
    return (*_BARE, "overlay", lower, scratch)


def _bubblewrapped(profile: Profile, ability: Ability, opened: Doors) -> tuple[str, ...]:
    sockets = () if profile.network else listening(profile)
    descriptors = ("--seccomp", str(opened.filter), "--json-status-fd", str(opened.status))
    return (*ability.bubblewrap, *arguments(profile, sockets), *descriptors, "--")


def _rights(profile: Profile) -> dict[str, Any]:
    """Return what Landlock leaves to a command."""
    avoided = {*profile.hidden, *profile.masked, Path("/dev")}
    tops = (Path("/"), *profile.readable, profile.root, profile.source)
    readable = [place for top in tops for place in _largest(top, avoided)]
    writable = [*profile.writable, *(Path("/dev", name) for name in _DEVICES), *_changeable(profile)]
    return {
        "listable": [str(profile.root)],
        "readable": [str(place) for place in readable],
        "writable": [str(place) for place in writable],
        "network": profile.network,
    }


def _largest(place: Path, avoided: Collection[Path]) -> Iterator[Path]:
    """Yield the largest places at or below one that hold nothing that is avoided."""
    if place in avoided or place.is_symlink():
        return
    if any(each.is_relative_to(place) for each in avoided):
        for entry in sorted(place.iterdir()):
            yield from _largest(entry, avoided)
    else:
        yield place


def _changeable(profile: Profile) -> Iterator[Path]:
    """Yield what of the repository may be written; Landlock knows no exception below a place it opens."""
    if profile.access is Access.THROW_AWAY:
        yield profile.source
    elif profile.access is Access.WRITE:
        kept = {*profile.protected, *(place for place in profile.masked if place.parent == profile.root)}
        entries = (place for place in profile.source.iterdir() if not place.is_symlink())
        yield from (place for entry in entries for place in _largest(entry, kept))
