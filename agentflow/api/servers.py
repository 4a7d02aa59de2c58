"""The MCP servers that count in a repository, and what a task is given of them."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentflow.api.content import has_plugins
from agentflow.core.errors import InvalidFile
from agentflow.core.events import Warned
from agentflow.core.messages import ToolResult, ToolSpec
from agentflow.core.ports import ToolSource
from agentflow.core.role import Role
from agentflow.core.tool import Output, Tool
from agentflow.mcp.entries import (
    SERVERS_FILE,
    ServerEntries,
    ServerEntry,
    ServerFile,
    ServerSource,
    find_project_file,
    list_server_scripts,
    read_entries,
)
from agentflow.model.tiers import REPAIR
from agentflow.parse import decode
from agentflow.permissions.rules import SERVER_PREFIX, parse_rules
from agentflow.sandbox.run import Sandbox
from agentflow.settings import Settings, find_folders
from agentflow.store.journal import load_runs
from agentflow.store.reading import find
from agentflow.store.tasks import TaskStore
from agentflow.trust import TrustRecord, load_trust, read_content

if TYPE_CHECKING:
    from agentflow.mcp.servers import ServerPlace

_ON, _OFF, _ALL = "enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"
_SHARED = ("ListMcpResources", "ReadMcpResource", "GetMcpPrompt")
"""The tools that all servers have together."""
UNTRUSTED = "waits for your trust: agentflow trust"


def find_accepted_file() -> Path:
    return find_folders(os.environ).config.parent / "trust" / "mcp-tools.json"


def _list_server_files(root: Path) -> Iterator[ServerFile]:
    """Yield the files that may configure servers here; those of plugins are named `plugin_PLUGIN_SERVER`."""
    own = find_folders(os.environ).claude.with_name(".claude.json")
    yield ServerFile(path=own, source=ServerSource.LOCAL)
    yield find_project_file(root)
    yield ServerFile(path=own, source=ServerSource.USER)
    if has_plugins(root):
        from agentflow.api.plugins import list_plugin_servers

        yield from list_plugin_servers(root)


def load_entries(root: Path) -> ServerEntries:
    """Return the servers that are configured here; one of the repository can be used once it is trusted."""
    found = read_entries(tuple(_list_server_files(root)), root)
    trusted = load_trust(find_folders(os.environ).config, root)
    is_on = _read_choices(root, trusted)
    everyone = tuple(_judge(entry, is_on, root) for entry in found.all)
    return found.replace(all=everyone)


def _judge(entry: ServerEntry, choices: dict[str, Any], root: Path) -> ServerEntry:
    if entry.source is not ServerSource.PROJECT or entry.problem:
        return entry
    if entry.name in choices[_OFF]:
        return entry.replace(problem=f"is named in {_OFF}")
    if choices[_ON] and not choices[_ALL] and entry.name not in choices[_ON]:
        return entry.replace(problem=f"is not named in {_ON}")
    return entry if _is_trusted_server(entry, root) else entry.replace(problem=UNTRUSTED)


def _is_trusted_server(entry: ServerEntry, root: Path) -> bool:
    trusted = load_trust(find_folders(os.environ).config, root)
    files = (SERVERS_FILE, *list_server_scripts(entry, root))
    return entry.source is not ServerSource.PROJECT or all(map(trusted.covers, files))


def _read_choices(root: Path, trusted: TrustRecord) -> dict[str, Any]:
    """Return which servers of the repository are switched on or off; untrusted files may only switch off."""
    claude = find_folders(os.environ).claude
    names = (".claude/settings.json", ".claude/settings.local.json")
    files = [(claude / "settings.json", True), *((root / name, trusted.covers(name)) for name in names)]
    tables = [(_read_object(path), is_believed) for path, is_believed in files]
    local = _read_object(claude.with_name(".claude.json")).get("projects", {})
    tables.append((local.get(str(root), {}) if isinstance(local, dict) else {}, True))
    return {
        _OFF: {name for table, _ in tables for name in _list_names(table, _OFF)},
        _ON: {name for table, is_believed in tables if is_believed for name in _list_names(table, _ON)},
        _ALL: any(table.get(_ALL) is True for table, is_believed in tables if is_believed),
    }


def _list_names(table: dict[str, Any], key: str) -> list[str]:
    found = table.get(key)
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _read_object(path: Path) -> dict[str, Any]:
    """Return the object in a settings file, or an empty one; its own readers report a wrong file."""
    try:
        return decode(dict[str, Any], read_content(path), str(path)) if path.is_file() else {}
    except (InvalidFile, OSError):
        return {}


def set_server_rules(role: Role, settings: Settings) -> Role:
    """Return a role with the rules about MCP tools that the user's settings give it. Raises InvalidFile."""
    given = settings.mcp_tools.get(role.name)
    if given is None:
        return role
    source = str(find_folders(os.environ).config)
    rules = parse_rules(list(given), source)
    if other := [rule for rule in rules if not rule.tool.startswith(SERVER_PREFIX)]:
        raise InvalidFile(source, f"mcp_tools.{role.name}: {other[0]} is not a rule such as mcp__server")
    own = (rule for rule in role.tools if not rule.tool.startswith(SERVER_PREFIX))
    return role.replace(tools=(*own, *rules))


def open_servers(
    entries: tuple[ServerEntry, ...], model: str, sandbox: Sandbox, store: TaskStore
) -> ToolSource | None:
    """Return the source of a task's MCP tools; in a replay they are those of the recorded task."""
    if model.startswith("replay:"):
        return RecordedServers(find(sandbox.root, model.removeprefix("replay:")))
    if not entries or model == REPAIR:  # which asks nobody
        return None
    from agentflow.mcp.servers import Servers

    place = place_servers(sandbox, store.folder / "outputs")
    return Servers(entries, place, lambda message: store.emit(Warned(message=message)))


def place_servers(sandbox: Sandbox, logs: Path) -> "ServerPlace":
    from agentflow.mcp.servers import ServerPlace

    may_start = partial(_is_trusted_server, root=sandbox.root)
    return ServerPlace(sandbox=sandbox, logs=logs, accepted=find_accepted_file(), may_start=may_start)


class RecordedServers:
    """The tools of servers as a saved task had them, with the results that are recorded."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Start nothing."""
        yield

    async def open_tools(self, role: Role) -> tuple[Tool, ...]:
        specs, results = dict[str, ToolSpec](), dict[str, ToolResult]()
        for run in load_runs(self._folder):
            if run.head.role == role.part:
                specs.update(
                    (spec.name, spec)
                    for spec in run.head.tools
                    if spec.name.startswith(SERVER_PREFIX) or spec.name in _SHARED
                )
            parts = (*(part for message in run.all_messages for part in message.parts), *run.answers)
            results.update((part.call_id, part) for part in parts if isinstance(part, ToolResult))
        if not specs:
            return ()
        from agentflow.mcp.tools import make_recorded_tools

        return make_recorded_tools(specs.values(), lambda call_id: self._answer(results, call_id))

    def _answer(self, results: dict[str, ToolResult], call_id: str) -> Output:
        found = results.get(call_id)
        if found is None:
            return Output(content="no result of this call is recorded", is_error=True)
        whole = self._folder / "outputs" / f"{call_id}.out"
        text = whole.read_text("utf-8") if whole.is_file() else found.content
        return Output(content=text, is_error=found.is_error)
