"""Run a command in the sandbox: the one call for everything that a model, a check or a repository causes.

`guess_reason` says what of a failure the sandbox may have caused.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Self

from agentflow import process
from agentflow.core.errors import NoSandbox
from agentflow.core.evidence import Command, Execution, ProgramOutput
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.routing import Access
from agentflow.sandbox import throwaway
from agentflow.sandbox.confine import (
    STARTED,
    Ability,
    StartDescriptors,
    confine_command,
    confine_on_mac,
    open_descriptors,
)
from agentflow.sandbox.environment import (
    OFFLINE,
    BuildCache,
    CacheFill,
    find_outer_path,
    find_variables,
    is_python_environment,
)
from agentflow.sandbox.profile import (
    ACCESS,
    CHECKS,
    Level,
    Profile,
    SandboxOpenings,
    find_protected_names,
    is_protected,
)
from agentflow.sandbox.protection import HiddenPlaces, find_hidden_places, find_links, set_aside_new_names
from agentflow.sandbox.throwaway import View, is_scratch, make_scratch_folder

IsCancelled = Callable[[], bool]
_INSIDE = "/tmp"  # noqa: S108  # a file system of the sandbox's own


class Sandbox(Record):
    """The place where the commands of one caller run, with no more rights than its profile gives."""

    root: Path
    ability: Ability
    opened: SandboxOpenings = SandboxOpenings()
    who: str = CHECKS
    """A role's part in the pipeline, or `checks`."""
    writable: tuple[Path, ...] = ()
    """Folders beside the repository that a command may write."""
    layer: tuple[str, str] | None = None
    """The files below and the folders of a layer, which is mounted at one of these folders."""
    view: View | None = None
    git: tuple[Path, ...] = ()
    """Where git keeps its files: read by every command, written by none."""
    build_cache: BuildCache | None = None
    """What the repository's compiler has compiled; commands get a layer above it."""
    lent_cache: tuple[str, str] | None = None
    """That cache and the folders of the layer, while a command runs."""
    joined: int | None = None
    """The process whose network commands enter, in place of one of their own each."""
    discards: bool = False
    """Whatever a command writes is gone at its end, also where the caller's commands may write."""

    @property
    def place(self) -> Path:
        return self.root if self.view is None or self.level is Level.FULL else self.view.place

    @property
    def folders(self) -> tuple[Path, ...]:
        """The places of those files outside the sandbox; a later folder overrides an earlier one."""
        return (self.root,) if self.view is None else self.view.folders

    @property
    def level(self) -> Level:
        return self.ability.level

    @property
    def access(self) -> Access:
        """The access that the caller's commands have to the repository, as far as the level allows it."""
        access = Access.THROW_AWAY if self.discards else ACCESS.get(self.who, Access.READ)
        if access is not Access.LAYER:
            return access
        return Access.THROW_AWAY if self.level is Level.FULL and self.view is None else Access.READ

    @property
    def is_sealed(self) -> bool:
        """Return whether nothing that a command does lasts in the repository or gets out of the sandbox."""
        is_kept = self.access in (Access.READ, Access.THROW_AWAY) and self.view is None
        return self.level is Level.FULL and is_kept and self.who not in self.opened.network

    def of(self, who: str | None, *writable: Path) -> Self:
        return self.replace(who=who or "", writable=writable)

    def switch_to_view(self, view: View) -> Self:
        return self.replace(view=view)

    def share_network(self, holder: int, *, discards: bool) -> Self:
        """Return the sandbox whose commands are in the network that a process holds.

        A caller for whom the user opened the network stays in that of the machine.
        """
        joined = None if self.who in self.opened.network else holder
        return self.replace(joined=joined, discards=discards)

    def find_hidden_places(self) -> HiddenPlaces:
        return find_hidden_places(self.root, os.environ, (*self.opened.readable, *self.git))

    def run(self, command: Command, sink: Path, cancelled: IsCancelled = lambda: False) -> Execution:
        """Run a command to its end, its output going to `sink`; nothing it started outlives the call.

        Raises OSError when the program cannot be started, and NoSandbox when the sandbox cannot be set up.
        """
        told = {} if self.level is Level.NONE or self.who in self.opened.network else OFFLINE
        env = {**told, **find_variables(self.root), **self.opened.environment, **command.env}
        command = command.replace(env=env)
        cache = self.build_cache
        if cache is not None and self.level is Level.FULL and cache.rule.variable not in command.env:
            with make_scratch_folder() as scratch:
                view = throwaway.make_overlay_view(cache.folder, scratch)
                lent = self.replace(writable=(*self.writable, view.place), lent_cache=view.overlay)
                env = {**command.env, cache.rule.variable: str(view.place)}
                return lent.run(command.replace(env=env), sink, cancelled)
        if self.access is Access.WRITE:
            root = self.root if self.view is None else self.view.place
            names = find_protected_names(root)
            with set_aside_new_names(root, names, sink.with_suffix(".set-aside"), self.opened.names) as aside:
                finished = self._run(command, sink, cancelled, names)
            notes = (f"{name} is protected: commands cannot create it, so it was set aside" for name in aside)
            return finished.replace(notes=(*finished.notes, *notes))
        return self._run(command, sink, cancelled, ())

    def plan_fill(self) -> CacheFill | None:
        """Return what is to be compiled before checks run, for a cache that they share, if anything is."""
        with suppress(OSError):
            is_used = self.build_cache is not None and self.level is Level.FULL
            return self.build_cache.plan_fill(self.root) if self.build_cache and is_used else None
        return None

    def fill_build_cache(self, cancelled: IsCancelled = lambda: False) -> None:
        """Let the compiler do once what it would do for every check; nothing of the repository runs.

        What fails here fails in a check as well, which says so.
        """
        cache, fill = self.build_cache, self.plan_fill()
        if cache is None or fill is None:
            return
        with suppress(OSError), make_scratch_folder() as scratch:
            cache.folder.mkdir(parents=True, exist_ok=True)
            env = {cache.rule.variable: str(cache.folder), "PATH": find_outer_path(self.root)}
            end, code = time.monotonic() + fill.seconds, None
            for line in cache.rule.fill:
                left = max(0.1, end - time.monotonic())
                command = Command(argv=tuple(line.split()), cwd=str(cache.module), timeout=left, env=env)
                code = self.of(None, cache.folder).run(command, scratch / "output", cancelled).exit_code
            fill.keep(is_filled=code == 0)  # the last command compiles all that the others do

    @contextmanager
    def start(self, command: Command, aside: Path) -> Iterator[process.Program]:
        """Yield a program that runs beside us, with the rights of a reader and the folders it may write.

        Protected names that it makes there go to `aside`. Raises OSError when it cannot be started.
        """
        command = command.replace(env={**self.opened.environment, **command.env})
        with ExitStack() as stack:
            if any(place.is_relative_to(self.root) for place in self.writable):
                stack.enter_context(self.guard_names(aside))
            if self.level is not Level.NONE:
                command, _ = stack.enter_context(self.confine_reader(command))
            program = process.start(command)
            stack.callback(program.end)
            yield program

    def exchange(
        self, command: Command, given: bytes, readable: Iterable[Path], cancelled: IsCancelled = lambda: False
    ) -> ProgramOutput:
        """Give a program its input and return what it said; it has the rights of a reader, and no network.

        It may also read hidden places that are named. Raises OSError when it cannot be started, and NoSandbox
        where it cannot be kept in.
        """
        if self.level is Level.NONE:
            raise NoSandbox(f"there is none: {self.ability.reason}")
        opened = self.opened.replace(network=(), readable=(*self.opened.readable, *readable))
        env = {**find_variables(self.root), **self.opened.environment, **command.env}
        reader = self.of(None).replace(opened=opened)
        with reader.confine_reader(command.replace(env=env)) as (confined, descriptors):
            said = process.exchange(confined, given, cancelled)
            if descriptors is not None and said.exit_code is not None:
                _require_start(descriptors, said.stderr.decode("utf-8", "replace"))
        return said

    @contextmanager
    def confine_reader(self, command: Command) -> Iterator[tuple[Command, StartDescriptors | None]]:
        """Yield a command as it is started with the rights of a reader, and what tells of its start."""
        with nullcontext() if self.level is Level.FULL else make_scratch_folder() as scratch:
            profile = self._profile(command, Access.READ, self.root, scratch)
            temporary = _INSIDE if scratch is None else str(scratch)
            command = command.replace(env={**self._home(temporary), "TMPDIR": temporary, **command.env})
            if sys.platform == "darwin":
                yield confine_on_mac(command, profile), None
                return
            with open_descriptors(profile, self.ability) as opened:
                yield confine_command(command, profile, self.ability, opened), opened

    def guard_names(self, aside: Path) -> AbstractContextManager[list[str]]:
        """Return the context in which new protected names are set aside at its end."""
        return set_aside_new_names(self.root, find_protected_names(self.root), aside, self.opened.names)

    def _run(self, command: Command, sink: Path, cancelled: IsCancelled, names: Collection[str]) -> Execution:
        if self.view is not None:
            return self._run_on_view(command, sink, cancelled, self.view)
        if self.level is Level.NONE:
            return process.run(command, sink, cancelled)
        if self.access is Access.THROW_AWAY:
            with make_scratch_folder() as scratch:
                return self._run_on_throwaway(command, sink, cancelled, scratch)
        return self._run_in_place(command, sink, cancelled, self.access, names)

    def _run_in_place(
        self, command: Command, sink: Path, cancelled: IsCancelled, access: Access, names: Collection[str]
    ) -> Execution:
        # bubblewrap has a folder in memory
        with nullcontext() if self.level is Level.FULL else make_scratch_folder() as folder:
            profile = self._profile(command, access, self.root, folder)
            profile = profile.replace(protected=self._list_protected(names))
            return self._run_inside(command, sink, cancelled, profile, self.layer)

    def _run_on_view(self, command: Command, sink: Path, cancelled: IsCancelled, view: View) -> Execution:
        """Run a command on a copy of the caller's; its changes there stay."""
        if self.level is not Level.FULL:
            throwaway.link_left_out(self.root, view.place, view.shown)
        home = view.place if Path(command.cwd).is_relative_to(view.place) else self.root
        below = Path(command.cwd).relative_to(home)
        command = command.replace(cwd=str((self.root if self.level is Level.FULL else view.place) / below))
        if self.level is Level.NONE:
            return process.run(command, sink, cancelled)
        with make_scratch_folder() as scratch:
            profile = self._profile_view(command, view, scratch)
            layered = profile.replace(layers=self._make_layers(view, scratch))
            with suppress(NoSandbox):  # there are file systems above which no layer can be
                return self._run_inside(command, sink, cancelled, layered, view.overlay)
            return self._run_inside(command, sink, cancelled, profile, view.overlay)

    def _make_layers(self, view: View, scratch: Path) -> dict[Path, tuple[str, str]]:
        """Make a layer above each folder of the repository that is seen in a view; what it gets is lost."""
        if view.layer is None or self.level is not Level.FULL:
            return {}
        own = (self.root / name for name in view.shown if not (self.root / name).is_symlink())
        folders = [place for place in own if place.is_dir() and not is_python_environment(place)]
        views = (throwaway.make_overlay_view(place, scratch / f"{n}") for n, place in enumerate(folders))
        return {each.folder: each.overlay for each in views if each.overlay}

    def _profile_view(self, command: Command, view: View, scratch: Path) -> Profile:
        """Return the profile of a command on a copy, with the protected names of the repository."""
        protected = tuple(self.root / name for name in view.shown)
        access = self.access if self.access in (Access.READ, Access.WRITE) else Access.THROW_AWAY
        if access is Access.WRITE and self.level is Level.FULL:  # the repository's own are mounted there
            protected += self._list_protected(find_protected_names(self.root))
        elif access is Access.WRITE:
            protected = tuple(view.place / name for name in find_protected_names(view.place))
        place = Path(".git/objects", throwaway.HISTORY)
        is_own = access is not Access.WRITE  # a writer's copy shows the repository's own folder there
        has_git = is_own and self.git and self.level is Level.FULL and (view.top / place).is_dir()
        elsewhere = {self.root / place: self.git[-1] / "objects"} if has_git else {}
        profile = self._profile(command, access, view.place, scratch)
        return profile.replace(protected=protected, elsewhere=elsewhere)

    def _run_on_throwaway(
        self, command: Command, sink: Path, cancelled: IsCancelled, scratch: Path
    ) -> Execution:
        """Run a command on a view of the repository, an overlay if that can be had.

        Who only looks gets no copy, which takes seconds for each command, and writes no foreign file.
        """
        is_looking = ACCESS.get(self.who) is Access.LAYER
        if self.level is Level.FULL and (is_looking or not throwaway.has_foreign_files(self.root)):
            view = throwaway.make_overlay_view(self.root, scratch)
            profile = self._profile(command, Access.THROW_AWAY, view.place, None)
            try:
                finished = self._run_inside(command, sink, cancelled, profile, view.overlay)
                changed = throwaway.find_overlay_changes(self.root, view.top)
                return finished.replace(changed=tuple(sorted(changed)))
            except NoSandbox:
                pass  # no overlay on this file system
        if is_looking:
            return self._run_in_place(command, sink, cancelled, Access.READ, ())
        copied = throwaway.copy_repository(self.root, scratch / "copy")
        profile = self._profile(command, Access.THROW_AWAY, copied, scratch)
        if self.level is Level.PARTIAL:
            command = self._move_command(command, copied)
            profile = profile.replace(cwd=command.cwd)
        finished = self._run_inside(command, sink, cancelled, profile)
        return finished.replace(changed=tuple(sorted(throwaway.find_copy_changes(self.root, copied))))

    def _move_command(self, command: Command, copied: Path) -> Command:
        """Return a command that runs in a copy at another place, and imports from there."""
        throwaway.link_left_out(self.root, copied, throwaway.list_uncopied(self.root))
        declared = command.env.get("PYTHONPATH", "")
        entries = [str(copied / "src"), str(copied), *filter(None, declared.split(os.pathsep))]
        below = Path(command.cwd).relative_to(self.root)
        env = {**command.env, "PYTHONPATH": os.pathsep.join(entries)}
        return command.replace(cwd=str(copied / below), env=env)

    def _profile(self, command: Command, access: Access, source: Path, scratch: Path | None) -> Profile:
        places = self.find_hidden_places()
        masked = () if self.who == CHECKS else self.opened.masked  # of roles alone
        return Profile(
            root=self.root,
            source=source,
            access=access,
            cwd=command.cwd,
            network=self.who in self.opened.network,
            hidden=places.hidden,
            readable=places.readable,
            protected=self._list_protected((".git",) if access is Access.THROW_AWAY else ()),
            masked=tuple(place for place in masked if place.exists()),
            writable=(*self.writable, *((scratch,) if scratch else ())),
            cache=self.lent_cache,
            joined=self.joined,
        )

    def _list_protected(self, names: Collection[str]) -> tuple[Path, ...]:
        """Return what protected names stand for in the repository; a link itself cannot be mounted."""
        wanted = [name for name in sorted(names) if is_protected(name, self.opened.names)]
        paths = (self.root / name for name in wanted)
        kept = [path.parent if path.name.lower() == "head" else path for path in paths]
        kept += [place for place in self.git if place != self.root / ".git"]
        kept += [real for _, real in find_links(self.root, wanted)]
        return tuple(dict.fromkeys(real for place in kept if self.root in (real := place.resolve()).parents))

    def _home(self, temporary: str) -> dict[str, str]:
        """Return a home that can be entered, where the user's cannot be replaced by an empty one."""
        return {} if self.level is Level.FULL else {"HOME": temporary}

    def _run_inside(
        self,
        command: Command,
        sink: Path,
        cancelled: IsCancelled,
        profile: Profile,
        overlay: tuple[str, str] | None = None,
    ) -> Execution:
        temporary = _INSIDE if self.level is Level.FULL else str(profile.writable[-1])
        own = {"TMPDIR": temporary, "GOCACHE": f"{temporary}/go-build"}  # go ends where it may not write
        command = command.replace(env={**self._home(temporary), **own, **command.env})
        if sys.platform == "darwin":
            return process.run(confine_on_mac(command, profile), sink, cancelled)
        with open_descriptors(profile, self.ability) as opened:
            finished = process.run(
                confine_command(command, profile, self.ability, opened, overlay), sink, cancelled
            )
            if finished.exit_code is not None:
                _require_start(opened, finished.tail)
        return finished


def _require_start(opened: StartDescriptors, said: str) -> None:
    """Raise NoSandbox where a command was not started, for the reason that was printed."""
    if not any(word in opened.read_status() for word in STARTED):
        raise NoSandbox(f"the sandbox could not be set up: {said.strip()}")


NETWORK_FAILURE = regex(
    r"[Nn]etwork is unreachable|ENETUNREACH|EAI_AGAIN|ENOTFOUND|[Nn]ame resolution|Name or service not known"
    r"|[Cc]ould not resolve|Failed to establish a new connection|dial tcp"
    r"|Network access disabled by the environment|ENOTCACHED|ERR_PNPM_NO_OFFLINE"
    r"|blocked because of your configuration|--offline was specified"
    r"|[Nn]etwork connectivity is disabled|Network disabled|disabled by GOPROXY=off"
    r"|/cache/download/[^\n]* read-only file system"  # Go, before it looks at GOPROXY
)
_REFUSED = regex(
    r"no such file|not found|filenotfound|cannot find|does not exist|not permitted"
    r"|permission ?(?:denied|error)"
    r"|can(?:not|'t) (?:open|access|read|stat)|ENOENT|EACCES|EPERM",
    re.IGNORECASE,
)
"""How programs say that a file is not there, or not theirs to read."""
_READ_ONLY = "read-only file system"
_PATH = regex(r"'(/[^']+)'|\"(/[^\"]+)\"|(/[^\s'\":;,()\[\]]+)")


def guess_reason(sandbox: Sandbox, output: str) -> str:
    """Return what of a failed output the sandbox may have caused, and what opens it; else empty."""
    if sandbox.level is Level.NONE:
        return ""
    return "; ".join(_reasons(sandbox, output))


def _reasons(sandbox: Sandbox, output: str) -> Iterator[str]:
    if NETWORK_FAILURE.search(output) and sandbox.who not in sandbox.opened.network:
        yield "the sandbox closes the network: --network opens it, or `network: [checks]` in config.yaml"
    lines = output.splitlines()
    for path in _find_paths(line for line in lines if _REFUSED.search(line)):
        if os.access(path, os.R_OK) and (said := explain_hidden(sandbox, path)):
            yield said
            break
    if any(map(_is_writable, _find_paths(line for line in lines if _READ_ONLY in line.lower()))):
        yield "in the sandbox everything except the repository and temporary files is read-only"


def _find_paths(lines: Iterable[str]) -> Iterator[Path]:
    """Yield the absolute paths that stand in lines."""
    found = dict.fromkeys("".join(groups) for line in lines for groups in _PATH.findall(line))
    yield from map(Path, found)


def explain_hidden(sandbox: Sandbox, path: Path) -> str:
    """Return what shows a path that is out of the reach of commands, else empty."""
    is_hidden = sandbox.level is not Level.NONE and _is_hidden(sandbox, path)
    return f"the sandbox hides {path}: `readable: [{path}]` in config.yaml shows it" if is_hidden else ""


def _is_hidden(sandbox: Sandbox, path: Path) -> bool:
    """Return whether a path is out of the reach of commands; copies of the repository are not."""
    places = sandbox.find_hidden_places()
    shown = any(path.is_relative_to(place) for place in (sandbox.root, *places.readable))
    return not shown and not is_scratch(path) and any(path.is_relative_to(top) for top in places.hidden)


def _is_writable(path: Path) -> bool:
    """Return whether a file could be written or made there outside the sandbox."""
    place = next(place for place in (path, *path.parents) if os.access(place, os.F_OK))
    return os.access(place, os.W_OK)
