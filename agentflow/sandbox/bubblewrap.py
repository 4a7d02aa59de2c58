"""A profile as arguments of bubblewrap."""

import os
from collections.abc import Iterable
from pathlib import Path

from agentflow.sandbox.profile import Access, Profile

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
_SOCKETS = Path("/proc/net/unix")


def arguments(profile: Profile, sockets: Iterable[Path] = ()) -> tuple[str, ...]:
    """Return what bubblewrap is told; later mounts lie over earlier ones."""
    words = [*_ALONE, *(() if profile.network else ("--unshare-net",)), *_SYSTEM]
    for place in profile.hidden:
        words += ["--tmpfs", str(place)]
    for place in profile.readable:
        is_link = place.is_symlink()
        words += ["--symlink", str(place.readlink())] if is_link else ["--ro-bind-try", str(place)]
        words.append(str(place))
    mount = "--ro-bind" if profile.access in (Access.READ, Access.COPY) else "--bind"
    words += [mount, str(profile.source), str(profile.root)]
    for place in _holding(profile):
        words += ["--bind", str(place), str(place)]
    for place in profile.protected:
        real = Path(os.path.realpath(place))  # where a link leads that only claims to be an environment
        if _is_seen(real, profile, profile.root):
            words += ["--ro-bind-try", str(real), str(place)]
    for place in profile.writable:
        words += ["--bind", str(place), str(place)]
    for place in (*profile.masked, *sockets):
        words += ["--tmpfs"] if place.is_dir() else ["--ro-bind", "/dev/null"]
        words.append(str(place))
    return (*words, "--chdir", profile.cwd)


def _holding(profile: Profile) -> list[Path]:
    """Return the folders of what is masked or protected, the outer ones first: a mount cannot be renamed.

    The next command would find what lies in them under another name.
    """
    if profile.access is not Access.WRITE:
        return []
    found = {folder for place in (*profile.masked, *profile.protected) for folder in place.parents}
    inside = [folder for folder in found if profile.root in folder.parents]
    return sorted(inside, key=lambda folder: len(folder.parts))


def listening(profile: Profile) -> tuple[Path, ...]:
    """Return the sockets of services that a command could talk to although it cannot write there."""
    try:
        lines = _SOCKETS.read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return ()
    names = {words[7] for line in lines if len(words := line.split(maxsplit=7)) > 7}
    places = {Path(os.path.realpath(name)) for name in names if name.startswith("/")}
    tops = () if profile.access is Access.THROW_AWAY else (profile.root,)
    return tuple(sorted(place for place in places if _is_seen(place, profile, *tops) and place.is_socket()))


def _is_seen(place: Path, profile: Profile, *tops: Path) -> bool:
    hidden = any(place.is_relative_to(top) for top in profile.hidden)
    return not hidden or any(place.is_relative_to(top) for top in (*profile.readable, *tops))
