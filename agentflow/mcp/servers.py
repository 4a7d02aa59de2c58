"""The MCP servers of a task: started when a role first may use one, ended with the task."""

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import from_thread
from anyio.abc import TaskGroup, TaskStatus

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.evidence import Command
from agentflow.core.record import Record, encode
from agentflow.core.role import Role
from agentflow.core.routing import Access
from agentflow.core.tool import Tool
from agentflow.mcp.entries import ServerEntry, ServerSource
from agentflow.mcp.tools import CallResult, ServerListing, find_changed, make_resource_tools, make_tools
from agentflow.parse import expand_home
from agentflow.permissions.rules import EVERY_SERVER, SERVER_PREFIX, is_about_tool
from agentflow.redact import to_one_line
from agentflow.sandbox.environment import find_search_path, find_shown, find_variables
from agentflow.sandbox.profile import ACCESS, find_protected_names, is_protected
from agentflow.sandbox.run import Sandbox

if TYPE_CHECKING:
    from agentflow.mcp.client import Connection

MISSING = "MCP servers are configured, but the SDK is not installed: pip install 'agentflow[mcp]'"
MISSING_FOR_SERVER = "mcp serve needs the MCP SDK: pip install 'agentflow[mcp]'"
START_SECONDS = 30.0
_WHO = "mcp"


class ServerPlace(Record):
    sandbox: Sandbox
    logs: Path
    accepted: Path
    may_start: Callable[[ServerEntry], bool]
    """True if the files of a server are as they were trusted."""


@dataclass(slots=True)
class _Server:
    entry: ServerEntry
    connection: "Connection | None" = None
    listing: ServerListing = field(default_factory=ServerListing)
    over: anyio.Event = field(default_factory=anyio.Event)
    problem: str = ""
    was_started: bool = False
    has_restarted: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)


def has_sdk() -> bool:
    return find_spec("mcp") is not None


def find_key(entry: ServerEntry, root: Path) -> str:
    """Return the key under which a server's accepted tools are recorded; another entry has another key."""
    where = str(root) if entry.source in (ServerSource.PROJECT, ServerSource.LOCAL) else ""
    return hashlib.sha256(encode([entry.source, where, entry.name, entry.raw])).hexdigest()


class Servers:
    """The MCP servers of one task; `open_tools` starts those that a role may use, and gives their tools."""

    def __init__(
        self, entries: tuple[ServerEntry, ...], place: ServerPlace, warn: Callable[[str], None]
    ) -> None:
        self._entries = entries
        self._place = place
        self._tell = warn
        self._told: set[str] = set()
        self._servers: dict[str, _Server] = {}
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Let servers be started meanwhile; at the end none is left."""
        self._servers = {entry.name: _Server(entry) for entry in self._entries}
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                group.cancel_scope.cancel()

    async def open_tools(self, role: Role) -> tuple[Tool, ...]:
        """Return the tools of the servers that a role's list names; a server that fails has none."""
        wanted = list[_Server]()
        for name, server in self._servers.items():
            head, listed = f"{SERVER_PREFIX}{name}", [rule.tool for rule in role.tools]
            if any(tool in (EVERY_SERVER, head) or tool.startswith(f"{head}__") for tool in listed):
                wanted.append(server)
        if not wanted:
            return ()
        if not has_sdk():
            self._servers.clear()
            self._warn(MISSING)
            return ()
        async with anyio.create_task_group() as starting:
            for server in wanted:
                starting.start_soon(self._require_started, server)
        tools = list[Tool]()
        for server in wanted:
            made = make_tools(server.entry.name, server.listing.tools, self._call, self._warn)
            tools += (tool for told, tool in made if is_offered(role, tool, reads=told.reads))
        known = {each.entry.name: each.listing for each in wanted}
        return (*tools, *make_resource_tools(known, self._read, self._fill_prompt))

    def _warn(self, message: str) -> None:
        """Give a warning once, however many runs meet its cause."""
        if message not in self._told:
            self._told.add(message)
            self._tell(message)

    async def inspect(self, name: str) -> ServerListing:
        """Start a server and return all that it offers. Raises ToolError."""
        server = self._servers[name]
        await self._require_started(server, is_checked=False)
        if server.problem:
            raise ToolError(server.problem)
        return server.listing

    async def _require_started(self, server: _Server, *, is_checked: bool = True) -> None:
        async with server.lock:
            if server.was_started:
                return
            server.was_started = True
            await self._start(server, is_checked=is_checked)
            if server.problem and is_checked:
                self._warn(f"MCP server {server.entry.name} is not used: {server.problem}")

    async def _start(self, server: _Server, *, is_checked: bool) -> None:
        """Connect to a server in a task of its own; `problem` says why it could not be."""
        from agentflow.mcp.client import describe_failure  # noqa: PLC0415  # the SDK costs half a second

        assert self._group is not None
        if not self._place.may_start(server.entry):
            server.problem = "its files have changed since they were trusted: agentflow trust"
            return
        milliseconds = os.environ.get("MCP_TIMEOUT", "")
        seconds = int(milliseconds) / 1000 if milliseconds.isdecimal() else 0
        seconds = seconds or START_SECONDS
        server.over = anyio.Event()
        try:
            with anyio.fail_after(seconds):
                await self._group.start(self._serve, server)
        except TimeoutError:
            server.problem = f"it did not answer within {seconds:g} s"
        except Exception as error:  # noqa: BLE001  # whatever a server or the SDK does ends that server alone
            server.problem = to_one_line(describe_failure(error), 300)
        if server.problem:
            server.problem += self._read_log(server.entry.name)
            return
        for tool in map(to_one_line, server.listing.unreadable):
            self._warn(f"MCP server {server.entry.name}: tool {tool!r} has no readable description; left out")
        if is_checked:
            self._leave_out_changed(server)

    async def _serve(self, server: _Server, *, task_status: TaskStatus[None]) -> None:
        is_up = False
        try:
            async with self._connect(server.entry) as connection:
                server.listing = await connection.list_offers()
                server.connection = connection
                is_up = True
                task_status.started()
                await server.over.wait()
        except Exception:
            if not is_up:
                raise
        finally:
            server.connection = None

    def _connect(self, entry: ServerEntry) -> "AbstractAsyncContextManager[Connection]":
        from agentflow.mcp.client import connect_address, connect_command  # noqa: PLC0415

        if entry.url:
            return connect_address(entry.name, entry.url, entry.headers, entry.secrets)
        sandbox, command = confine_server(entry, self._place.sandbox)
        log = self._log(entry.name)
        return connect_command(
            entry.name, partial(sandbox.start, command, log.with_suffix(".set-aside")), log, entry.secrets
        )

    def _leave_out_changed(self, server: _Server) -> None:
        key = find_key(server.entry, self._place.sandbox.root)
        changed = find_changed(self._place.accepted, key, server.listing.tools)
        if not changed:
            return
        name = server.entry.name
        kept = tuple(tool for tool in server.listing.tools if tool.name not in changed)
        server.listing = server.listing.replace(tools=kept)
        tools = ", ".join(sorted(map(to_one_line, changed)))
        self._warn(
            f"MCP server {name}: {tools} changed since you accepted its tools, so not offered: "
            f"review with agentflow mcp test {name}, accept with --yes"
        )

    def _log(self, name: str) -> Path:
        return self._place.logs / f"mcp-{name}.log"

    def _read_log(self, name: str) -> str:
        try:
            lines = self._log(name).read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return f"; it said: {to_one_line(lines[-1], 200)}" if lines else ""

    def _call(self, server: str, tool: str, given: dict[str, Any]) -> CallResult:
        with self._guard(server):
            return from_thread.run(self._ask, server, lambda up, seconds: up.call(tool, given, seconds))

    def _read(self, server: str, uri: str) -> CallResult:
        return from_thread.run(self._ask, server, lambda up, seconds: up.read(uri, seconds))

    def _fill_prompt(self, server: str, prompt: str, given: dict[str, str]) -> CallResult:
        return from_thread.run(self._ask, server, lambda up, seconds: up.fill_prompt(prompt, given, seconds))

    def _guard(self, name: str) -> AbstractContextManager[object]:
        """Return the context that sets new protected names aside, where the server may write the tree."""
        sandbox = self._place.sandbox
        places = (Path(sandbox.root, expand_home(each)) for each in self._servers[name].entry.writable)
        if not any(place.resolve().is_relative_to(sandbox.root) for place in places):
            return nullcontext()
        return sandbox.guard_names(self._log(name).with_suffix(".set-aside"))

    async def _ask(self, name: str, ask: Callable[["Connection", float], Any]) -> CallResult:
        """Return a server's answer; one that ended is started again, once. Raises ToolError."""
        from agentflow.mcp.client import ServerEnded  # noqa: PLC0415

        server = self._servers[name]
        if server.problem:
            raise ToolError(f"MCP server {name} is no longer there: {server.problem}")
        if server.connection is None:
            raise ToolError(await self._restart(server))
        try:
            found: CallResult = await ask(server.connection, server.entry.timeout)
        except ServerEnded:
            raise ToolError(await self._restart(server)) from None
        return found

    async def _restart(self, server: _Server) -> str:
        name, said = server.entry.name, self._read_log(server.entry.name)
        async with server.lock:
            server.over.set()
            if server.has_restarted:
                server.problem = f"it ended twice{said}"
                return f"MCP server {name} ended again during the call{said}; it will not be started again"
            server.has_restarted = True
            await self._start(server, is_checked=True)
        self._warn(f"MCP server {name} ended{said}")
        again = "it was started again, the call was not repeated"
        again = f"starting it again failed: {server.problem}" if server.problem else again
        return f"MCP server {name} ended during the call{said}; {again}"


def is_offered(role: Role, tool: Tool, *, reads: bool) -> bool:
    """Return whether a role's list gives it a tool; `mcp__*` gives a role that reads what only reads."""
    rules = [rule for rule in role.tools if is_about_tool(rule.replace(pattern=None), tool)]
    is_named = any(rule.tool != EVERY_SERVER for rule in rules)
    return is_named or (bool(rules) and (reads or ACCESS.get(role.part or "") is Access.WRITE))


def confine_server(entry: ServerEntry, sandbox: Sandbox) -> tuple[Sandbox, Command]:
    """Return the sandbox of a server, and its command. Raises InvalidInput for a wrong folder."""
    root = sandbox.root
    is_here = entry.source in (ServerSource.PROJECT, ServerSource.LOCAL)
    env = find_variables(root) if is_here else {"PATH": find_search_path(root), "VIRTUAL_ENV": ""}
    shown = (
        *map(expand_home, entry.readable),
        *(place for word in entry.command for place in find_shown(word)),
    )
    opened = sandbox.opened.replace(
        network=(_WHO,) if entry.network else (),
        environment={},
        readable=(*sandbox.opened.readable, *shown),
    )
    cwd = entry.cwd or (str(root) if is_here else "/")
    command = Command(
        argv=entry.command,
        cwd=str(Path(root, expand_home(cwd))),
        timeout=0,
        env={**env, "CLAUDE_PROJECT_DIR": str(root), **entry.env},
    )
    return sandbox.of(_WHO, *_list_writable(entry, root)).replace(opened=opened), command


def _list_writable(entry: ServerEntry, root: Path) -> Iterator[Path]:
    names = find_protected_names(root) if entry.writable else ()
    for text in entry.writable:
        place = Path(root, expand_home(text)).resolve()
        if not place.is_dir():
            raise InvalidInput(f"writable: {text} is not a folder")
        if any(top.is_relative_to(place) for top in (root, Path.home())):
            raise InvalidInput(
                f"writable: {text} contains the repository or your home; name the folders below it"
            )
        inside = place.relative_to(root).as_posix() if place.is_relative_to(root) else ""
        held = [
            name
            for name in names
            if inside and (f"{name}/".startswith(f"{inside}/") or f"{inside}/".startswith(f"{name}/"))
        ]
        if held or (inside and is_protected(inside.partition("/")[0])):
            raise InvalidInput(f"writable: {text} contains {(held or [inside])[0]}, which is protected")
        yield place
