"""The files that configure MCP servers, read into entries: where each runs, and what it may touch."""

import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record, map_texts, to_builtins
from agentflow.core.regex import regex
from agentflow.parse import Mismatch, decode, fit
from agentflow.redact import KEY_VARIABLES
from agentflow.settings import PLUGIN_MANIFEST
from agentflow.trust import read_content

SERVERS_FILE = ".mcp.json"
SERVERS_KEY = "mcpServers"
PLUGIN_ROOT = "CLAUDE_PLUGIN_ROOT"
DEFAULT_CALL_SECONDS = 300.0
_NAME = regex(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*", re.ASCII)
"""No two underscores together, none at an end: `mcp__a` would be a rule for other servers too."""
_LONGEST_NAME = 64
_VARIABLE = regex(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}", re.ASCII)
_SECRET = regex(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_SHORTEST_SECRET = 8
DISABLED = "is disabled"
_SUPPORTED = ("stdio", "http", "streamable-http", "streamableHttp")


class ServerSource(StrEnum):
    """The place where a server is configured; of one name, the first in this order counts."""

    LOCAL = "local"
    """The user, for this repository only."""
    PROJECT = "project"
    """The repository, once it is trusted."""
    USER = "user"
    PLUGIN = "plugin"


class ServerFile(Record):
    path: Path
    source: ServerSource
    prefix: str = ""
    """What the names of a plugin's servers begin with."""
    variables: Mapping[str, str] = {}
    """What can be named in it as `${NAME}` beside the environment, and is told to its servers: folders."""


class ServerEntry(Record):
    """A server that is configured: a command to start, or an address to ask."""

    name: str
    source: ServerSource
    file: str
    command: tuple[str, ...] = ()
    """The program and its arguments; empty for a server that is asked over HTTP."""
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    network: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    """Hidden places that it may read."""
    timeout: float = DEFAULT_CALL_SECONDS
    problem: str = ""
    raw: str = ""
    does: str = ""
    """What happens when it is used, for the person who trusts it."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that it is given under a name such as TOKEN, which no text of it may hold."""
        named = (*self.env.items(), *self.headers.items())
        values = (value.removeprefix("Bearer ") for key, value in named if _SECRET.search(key))
        return tuple(value for value in values if len(value) >= _SHORTEST_SECRET)


class _RawEntry(Record):
    type: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    network: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    timeout: float = DEFAULT_CALL_SECONDS * 1000
    """Milliseconds, as other programs say it."""
    disabled: bool = False


class ServerEntries(Record):
    all: tuple[ServerEntry, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[ServerEntry, ...]:
        return tuple(entry for entry in self.all if not entry.problem)


def read_entries(places: Iterable[ServerFile], root: Path) -> ServerEntries:
    """Return the servers of all existing files; of two with one name, the entry of the higher file."""
    found: dict[str, ServerEntry] = {}
    warnings: list[str] = []
    order = list(ServerSource)
    for place in sorted(places, key=lambda each: order.index(each.source)):
        try:
            table = _read_table(place, root)
        except (InvalidFile, OSError) as error:
            warnings.append(f"MCP servers left out: {error}")
            continue
        for name, value in table.items():
            entry = _read_entry(place, root, f"{place.prefix}{name}", value, warnings)
            found.setdefault(entry.name, entry)
    wrong = (each for each in found.values() if each.problem and each.problem != DISABLED)
    warnings += [f"{each.file}: MCP server {json.dumps(each.name)}: {each.problem}" for each in wrong]
    return ServerEntries(all=tuple(found.values()), warnings=tuple(dict.fromkeys(warnings)))


def _read_table(place: ServerFile, root: Path) -> dict[str, Any]:
    if not place.path.is_file():
        return {}
    top: Any = decode(dict[str, Any], read_content(place.path).removeprefix(BOM_UTF8), str(place.path))
    for key in ("projects", str(root)) if place.source is ServerSource.LOCAL else ():
        top = top.get(key, {}) if isinstance(top, dict) else {}
    # a plugin's own file may name its servers at the top; its manifest names other things there
    is_bare = place.source is ServerSource.PLUGIN and place.path.name != "plugin.json"
    table = top.get(SERVERS_KEY, top if is_bare else {}) if isinstance(top, dict) else {}
    if not isinstance(table, dict):
        raise InvalidFile(str(place.path), f"{SERVERS_KEY}: must be an object of servers")
    return table


def _read_entry(place: ServerFile, root: Path, name: str, value: object, warnings: list[str]) -> ServerEntry:
    bare = ServerEntry(name=name, source=place.source, file=str(place.path), raw=json.dumps(value))
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        problem = "its name may hold letters, digits, hyphens and single underscores between them"
        return bare.replace(problem=problem)
    if isinstance(value, dict):  # without the keys that only other programs know
        value = {key: item for key, item in value.items() if key in _RawEntry.__struct_fields__}
    try:
        written = fit(_RawEntry, value)
    except Mismatch as error:
        return bare.replace(problem=f"{error}; it is left out")
    known = {**os.environ, "CLAUDE_PROJECT_DIR": str(root), **place.variables}
    if place.source is ServerSource.PROJECT:  # a repository names no key of the model
        known = {key: text for key, text in known.items() if not _is_model_key(key)}

    def put(found: re.Match[str]) -> str:
        text = known.get(found[1]) or found[2]
        if text is None:
            is_key = _is_model_key(found[1])
            why = "is a key of the model, which no repository gets" if is_key else "is not set"
            warnings.append(f"{place.path}: MCP server {name}: {found[1]} {why}")
        return found[0] if text is None else text

    filled = fit(_RawEntry, map_texts(to_builtins(written), lambda text: _VARIABLE.sub(put, text)))
    folders = place.variables.values() if place.source is ServerSource.PLUGIN else ()
    return bare.replace(
        command=(filled.command, *filled.args) if filled.command else (),
        env={**place.variables, **filled.env},
        cwd=filled.cwd,
        url=filled.url,
        headers=filled.headers,
        network=filled.network,
        writable=filled.writable,
        readable=(*filled.readable, *folders),
        timeout=filled.timeout / 1000,
        problem=_find_problem(written),
        does=_describe(name, written),
    )


def _describe(name: str, written: _RawEntry) -> str:
    if written.url:
        return f"asks the MCP server {name} at {written.url}"
    given = [f"with {', '.join(sorted(written.env))}"] if written.env else []
    given += ["on the network"] if written.network else []
    given += [f"writing {', '.join(written.writable)}"] if written.writable else []
    given += [f"reading {', '.join(written.readable)}"] if written.readable else []
    return " ".join((f"starts the MCP server {name}: {written.command}", *written.args, *given))


def _is_model_key(name: str) -> bool:
    return name in KEY_VARIABLES and not name.startswith(("GITHUB", "GH_"))


def _find_problem(written: _RawEntry) -> str:
    if written.disabled:
        return DISABLED
    if written.url and not written.type:
        return 'has a url and no type; add "type": "http"'
    if written.type == "sse":
        return 'type sse is not supported; use "type": "http" where the server has it'
    if written.type and written.type not in _SUPPORTED:
        return f"type {written.type!r} is not supported; known are stdio and http"
    if bool(written.command) == bool(written.url):
        return "needs a command to start, or a url with a type"
    is_address = written.url.startswith(("http://", "https://", "${"))
    return "" if is_address or not written.url else "its url is not an http address"


def find_project_file(root: Path) -> ServerFile:
    """Return the repository's own file of servers, which may be that of a plugin at its root."""
    is_plugin = (root / PLUGIN_MANIFEST).is_file()
    variables = {PLUGIN_ROOT: str(root)} if is_plugin else {}
    return ServerFile(path=root / SERVERS_FILE, source=ServerSource.PROJECT, variables=variables)


def list_server_scripts(entry: ServerEntry, root: Path) -> tuple[str, ...]:
    places = ((root / word).resolve() for word in entry.command if word and "\0" not in word)
    inside = (place for place in places if place.is_relative_to(root.resolve()) and place.is_file())
    return tuple(dict.fromkeys(place.relative_to(root.resolve()).as_posix() for place in inside))
