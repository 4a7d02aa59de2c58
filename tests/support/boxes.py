"""Sandboxes for the modules that run commands."""

import os
from pathlib import Path

from agentflow.sandbox.confine import Ability, find_ability
from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox


def boxed(root: Path) -> Sandbox:
    """The sandbox that this machine can hold, around a repository."""
    return Sandbox(root=root.resolve(), ability=find_ability())


def landlocked(root: Path) -> Sandbox:
    """The sandbox of a machine without bubblewrap."""
    return Sandbox(root=root.resolve(), ability=Ability(level=Level.PARTIAL))


def unboxed(root: Path) -> Sandbox:
    """No sandbox."""
    return Sandbox(root=root.resolve(), ability=Ability(level=Level.NONE))


def without_bubblewrap(place: Path) -> str:
    """Return a PATH with every program of the real one but bubblewrap."""
    folder = place / "programs"
    folder.mkdir()
    for entry in os.environ["PATH"].split(os.pathsep):
        for program in Path(entry).iterdir() if Path(entry).is_dir() else ():
            link = folder / program.name
            if program.name != "bwrap" and not link.is_symlink() and os.access(program, os.X_OK):
                link.symlink_to(program.resolve())
    return str(folder)
