"""The sandbox of one command: from the machine's abilities, the user's settings and the command line."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from agentflow.core.errors import NoSandbox
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.parse import expand_home
from agentflow.permissions.rules import Rules
from agentflow.permissions.user_rules import build_exceptions
from agentflow.sandbox.build_cache import find_build_cache
from agentflow.sandbox.confine import Ability, find_ability
from agentflow.sandbox.profile import SHARED, Level, SandboxOpenings
from agentflow.sandbox.protection import clear_leftovers
from agentflow.sandbox.run import Sandbox
from agentflow.settings import Caller, Confinement, Settings, load_settings
from agentflow.workspace.git import Git
from agentflow.workspace.path_guard import is_secret

_INSTALLED = frozenset({*SHARED, ".git", "__pycache__", ".tox", ".nox", "target"})
_HINT = "install bubblewrap (bwrap), or run this without a sandbox: --no-sandbox"
_STRENGTH = (Level.NONE, Level.PARTIAL, Level.FULL)


def _agree_never(_: str) -> bool:
    return False


class Wish(Record):
    """The options of a command line about the sandbox."""

    no_sandbox: bool = False
    network: bool = False
    must_run: bool = False
    """Everything it runs is trusted, so it also runs without a sandbox."""
    agree: Callable[[str], bool] = _agree_never
    """Asks a person, with the reason, whether commands may run without a sandbox."""


def open_sandbox(git: Git, wish: Wish) -> Sandbox:
    """Return the sandbox for a repository's commands. Raises NoSandbox."""
    return make_sandbox(git.root, load_settings(os.environ), wish, git.folders)


def make_sandbox(root: Path, settings: Settings, wish: Wish, git: tuple[Path, ...] = ()) -> Sandbox:
    """Return the sandbox for commands at a root; `git` are git's own folders. Raises NoSandbox."""
    network = (Caller.IMPLEMENTER, Caller.CHECKS) if wish.network else ()
    opened = SandboxOpenings(
        network=(*settings.network, *network),
        readable=tuple(expand_home(path).absolute() for path in settings.readable),
        environment={name: os.environ[name] for name in settings.environment if name in os.environ},
        names=settings.unprotected,
    )
    return Sandbox(
        root=root,
        ability=_find_ability(settings, wish),
        opened=opened,
        git=git,
        build_cache=find_build_cache(root, os.environ),
    )


def hide_secrets(sandbox: Sandbox, git: Git, rules: Rules) -> Sandbox:
    """Return a sandbox that keeps roles from reading files with secrets, if it isolates them at all."""
    if sandbox.level is Level.NONE:
        return sandbox
    return sandbox.replace(opened=sandbox.opened.replace(masked=_find_secrets(git, rules)))


def _find_secrets(git: Git, rules: Rules) -> tuple[Path, ...]:
    """Return the paths that hold secrets: our store of snapshots, and files by name unless a rule opens them.

    A committed file is no secret of this machine, except `.env` files.
    """
    others = git.call("ls-files", "-z", "--others", "--directory").split(b"\0")
    kept = git.list_tracked_settings()
    found = [os.fsdecode(name) for name in (*others, *kept) if name]
    names = (file for name in found for file in _list_files(git.root, name))
    are_open = build_exceptions(rules, git.root)
    places = (git.root / name for name in names if is_secret(name) and not are_open("Read", name))
    return (git.source.kept, *(place for place in places if not place.is_symlink()))


def _list_files(root: Path, name: str) -> Iterator[str]:
    if not name.endswith("/"):
        yield name
        return
    if name.rstrip("/").rpartition("/")[2] in _INSTALLED:
        return
    for folder, inner, files in os.walk(root / name):
        inner[:] = [each for each in inner if each not in _INSTALLED]
        yield from (os.path.relpath(os.path.join(folder, each), root) for each in files)  # noqa: PTH118


def _find_ability(settings: Settings, wish: Wish) -> Ability:
    if wish.no_sandbox:
        return Ability(level=Level.NONE, reason="--no-sandbox")
    if settings.sandbox is Confinement.OFF:
        return Ability(level=Level.NONE, reason="config.yaml says sandbox: off")
    found = find_ability()
    if found.level is not Level.NONE or wish.must_run:
        return found
    if settings.sandbox is Confinement.ASK and wish.agree(found.reason):
        return found
    raise NoSandbox(f"no sandbox: {found.reason}", hint=_HINT)


def describe_sandbox(sandbox: Sandbox) -> str:
    """Return one line about how well commands are isolated."""
    ability = sandbox.ability
    match ability.level:
        case Level.FULL:
            opened = sorted(set(sandbox.opened.network))
            return f"sandbox: full{', network open for ' if opened else ''}{', '.join(opened)}"
        case Level.PARTIAL:
            return f"sandbox: partial ({ability.reason}); not isolated: {'; '.join(ability.gaps)}"
        case Level.NONE:
            return f"NOT SANDBOXED ({ability.reason}): commands run with all your rights"


def record_weakest_sandbox(task: TaskState, sandbox: Sandbox) -> TaskState:
    """Return a continued task with the weakest sandbox level that it ever ran at."""
    before = Level(task.sandbox)
    weakest = min(before, sandbox.level, key=_STRENGTH.index)
    gaps = tuple(dict.fromkeys((*task.gaps, *sandbox.ability.gaps)))
    return task.replace(sandbox=weakest, gaps=gaps if weakest is Level.PARTIAL else ())


def sweep_leftovers() -> tuple[str, ...]:
    """Remove what killed commands left; return a line for each protected path among it."""
    return tuple(
        f"{path} is protected: a killed command had created it, so it was set aside"
        for path in clear_leftovers()
    )
