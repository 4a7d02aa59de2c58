"""A person's request, and the sandbox that the machine, the settings and the request make of it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from agentflow.core.errors import NoSandbox
from agentflow.core.pending import Budget, Consent, Override
from agentflow.core.record import Record
from agentflow.core.task import Invocation, Phase, TaskState
from agentflow.parse import expand_home
from agentflow.permissions.rules import Rules
from agentflow.permissions.user_rules import build_exceptions
from agentflow.sandbox.confine import Ability, find_ability
from agentflow.sandbox.environment import find_build_cache
from agentflow.sandbox.profile import SHARED, Level, SandboxOpenings
from agentflow.sandbox.protection import clear_leftovers
from agentflow.sandbox.run import Sandbox
from agentflow.settings import Caller, Confinement, Settings, load_settings
from agentflow.view.words import Detail
from agentflow.workspace.git import Git
from agentflow.workspace.path_guard import is_secret

_INSTALLED = frozenset({*SHARED, ".git", "__pycache__", ".tox", ".nox", "target"})
_HINT = "install bubblewrap (bwrap), or run this without a sandbox: --no-sandbox"
_STRENGTH = (Level.NONE, Level.PARTIAL, Level.FULL)


class TaskRequest(Record):
    """A task, what it may do and use, and how it is shown; other commands say what their sandbox needs."""

    text: str = ""
    invoked: Invocation | None = None
    """The command that became the text, if any."""
    model: str | None = None
    max_iterations: int | None = None
    consent: Consent = Consent.SUSPEND
    pause_after: Phase | None = None
    no_sandbox: bool = False
    network: bool = False
    must_run: bool = False
    """Everything it runs is trusted, so it also runs without a sandbox."""
    agree: Callable[[str], bool] | None = None
    """Asks a person, with the reason, whether commands may run without a sandbox."""
    budget: Budget = Budget()
    overrides: tuple[Override, ...] = ()
    named_class: str = ""
    """The class of the task; empty: its wording decides."""
    plan: bool = False
    """Explorer and planner work first, also where the class needs neither."""
    plan_mode: bool = False
    """Nothing changes before a person agrees to a plan; the conversation that made it then goes on."""
    review: bool | None = None
    """The person's wish for a review; None: as the class requires."""
    judges: bool = False
    """Models judge the change, however sure the program is."""
    sequential: bool = False
    prove: int | None = None
    """Rounds in which the implementer is given what no test notices; None: as the settings say."""
    parallel: int | None = None
    """Implementers at the same time; None: as the settings say."""
    context: bool = False
    """Use an earlier deep exploration."""
    focus: str | None = None
    """The folder to explore in depth; None for a task."""
    follows: str | None = None
    """The task of the same session that this one goes on from."""
    task_id: str = ""
    """The id of the new task; empty makes one."""
    memory: bool = True
    """Recall earlier tasks, and leave something for later ones, unless the settings say no."""
    asked_by: str = ""
    """What else than the person wrote the text."""
    json: bool = False
    events: str | None = None
    """A file's path, or `-` for stdout."""
    stream: bool = False
    """Show the model's replies as they arrive, and every step."""
    detail: Detail = Detail.BRIEF
    plain: bool = False


_PLAIN = TaskRequest()


def open_sandbox(git: Git, request: TaskRequest = _PLAIN) -> Sandbox:
    return make_sandbox(git.root, load_settings(os.environ), request, git.folders)


def make_sandbox(root: Path, settings: Settings, request: TaskRequest, git: tuple[Path, ...] = ()) -> Sandbox:
    """Return the sandbox for commands at a root; `git` are git's own folders. Raises NoSandbox."""
    network = (Caller.IMPLEMENTER, Caller.CHECKS) if request.network else ()
    opened = SandboxOpenings(
        network=(*settings.network, *network),
        readable=tuple(expand_home(path).absolute() for path in settings.readable),
        environment={name: os.environ[name] for name in settings.environment if name in os.environ},
        names=settings.unprotected,
    )
    return Sandbox(
        root=root,
        ability=_find_ability(settings, request),
        opened=opened,
        git=git,
        build_cache=find_build_cache(root, os.environ),
    )


def hide_secrets(sandbox: Sandbox, git: Git, rules: Rules) -> Sandbox:
    """Return a sandbox that keeps roles from reading files with secrets, if it isolates them at all."""
    if sandbox.level is Level.NONE:
        return sandbox
    others = git.call("ls-files", "-z", "--others", "--directory").split(b"\0")
    # a committed file is no secret of this machine, except `.env` files
    names = [os.fsdecode(name) for name in (*others, *git.list_tracked_settings()) if name]
    files = (file for name in names for file in _list_files(git.root, name))
    are_open = build_exceptions(rules, git.root)
    secrets = (git.root / file for file in files if is_secret(file) and not are_open("Read", file))
    masked = (git.source.kept, *(path for path in secrets if not path.is_symlink()))
    return sandbox.replace(opened=sandbox.opened.replace(masked=masked))


def _list_files(root: Path, name: str) -> Iterator[str]:
    if not name.endswith("/"):
        yield name
        return
    if name.rstrip("/").rpartition("/")[2] in _INSTALLED:
        return
    for folder, inner, files in os.walk(root / name):
        inner[:] = [each for each in inner if each not in _INSTALLED]
        yield from (os.path.relpath(os.path.join(folder, each), root) for each in files)  # noqa: PTH118


def _find_ability(settings: Settings, request: TaskRequest) -> Ability:
    if request.no_sandbox:
        return Ability(level=Level.NONE, reason="--no-sandbox")
    if settings.sandbox is Confinement.OFF:
        return Ability(level=Level.NONE, reason="config.yaml says sandbox: off")
    found = find_ability()
    if found.level is not Level.NONE or request.must_run:
        return found
    if settings.sandbox is Confinement.ASK and request.agree and request.agree(found.reason):
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
