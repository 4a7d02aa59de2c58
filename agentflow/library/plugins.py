"""A plugin: a folder with roles, skills, commands, hooks and MCP servers; and a user's copies of plugins."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.record import Record, encode
from agentflow.core.regex import regex
from agentflow.frontmatter import write_atomic
from agentflow.library.skill_file import SKILL_FILE
from agentflow.parse import decode, parse
from agentflow.settings import PLUGIN_MANIFEST
from agentflow.trust import fingerprint_file, require_content

SERVERS = ".mcp.json"
MAX_PLUGIN_FILES = 3_000
MAX_PLUGIN_BYTES = 100_000_000
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SKIPPED = (".git",)
_LINKED = "is a link that leads out of the plugin"
_Places = str | tuple[str, ...] | None
_FILE_MODE, _RUN_MODE = 0o400, 0o500
"""Read-only: nothing that a plugin runs changes what was shown."""
_COMPILED = "__pycache__"
"""What Python writes beside the scripts that it runs."""


class _Manifest(Record, rename={"servers": "mcpServers"}):
    name: str
    version: str = ""
    description: str = ""
    agents: _Places = None
    skills: _Places = None
    commands: _Places = None
    hooks: str | tuple[str, ...] | dict[str, Any] | None = None
    servers: str | tuple[str, ...] | dict[str, Any] | None = None


_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(_Manifest))
_UNUSED_KEYS = ("lspServers", "outputStyles", "settings", "themes", "monitors", "channels")
_UNUSED_FILES = (".lsp.json", "settings.json", "output-styles", "bin", "themes", "monitors")
"""Parts of a plugin that other tools read and agentflow ignores."""


class Plugin(Record):
    name: str
    root: Path
    origin: str
    version: str = ""
    description: str = ""
    agents: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()
    commands: tuple[Path, ...] = ()
    hooks: tuple[Path, ...] = ()
    servers: tuple[Path, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def manifest(self) -> Path:
        return self.root / PLUGIN_MANIFEST


def read_plugin(root: Path, origin: str) -> Plugin:
    """Return the plugin in a folder. Raises InvalidFile for a wrong manifest and for a link out of it."""
    source = root / PLUGIN_MANIFEST
    top = decode(dict[str, Any], require_content(source), str(source))
    said = parse(_Manifest, {key: value for key, value in top.items() if key in _KEYS}, str(source))
    if not _NAME.fullmatch(said.name):
        raise InvalidFile(str(source), f"name: {said.name!r} must be letters, digits, dots and hyphens")
    paths = _Paths(root=root, source=str(source))
    unused = (
        *(key for key in _UNUSED_KEYS if key in top),
        *(n for n in _UNUSED_FILES if (root / n).exists()),
    )
    return Plugin(
        name=said.name,
        root=root,
        origin=origin,
        version=said.version,
        description=" ".join(said.description.split()),
        agents=paths.list_texts("agents", said.agents),
        commands=paths.list_texts("commands", said.commands),
        skills=paths.list_skills(said.skills),
        hooks=paths.list_files("hooks", "hooks/hooks.json", said.hooks),
        servers=paths.list_files("mcpServers", SERVERS, said.servers),
        unused=unused,
    )


class _Paths(Record):
    root: Path
    source: str

    def list_texts(self, key: str, named: _Places) -> tuple[Path, ...]:
        """Return Markdown files: those that the manifest names, else those of the usual folder."""
        places = [self.root / key] if named is None else [self.find(key, name) for name in _to_names(named)]
        found = (path for place in places for path in self._list_below(place, "*.md"))
        return tuple(dict.fromkeys(path for path in found if path.name != "README.md"))

    def list_skills(self, named: _Places) -> tuple[Path, ...]:
        """Return folders with a SKILL.md: those of the usual folder, and those that the manifest adds."""
        places = [self.root / "skills", *(self.find("skills", name) for name in _to_names(named or ()))]
        found = (path.parent for place in places for path in self._list_below(place, SKILL_FILE))
        return tuple(dict.fromkeys(found))

    def list_files(
        self, key: str, usual: str, named: str | tuple[str, ...] | dict[str, Any] | None
    ) -> tuple[Path, ...]:
        """Return the usual file, if any, with those that the manifest names, or the manifest itself."""
        found = list(self._list_below(self.root / usual, usual))
        if isinstance(named, dict):
            if key == "hooks" and isinstance(named.get(key), dict):
                raise InvalidFile(self.source, "hooks: write the events directly below this key")
            found.append(self.root / PLUGIN_MANIFEST)
        else:
            found += [self.find(key, name) for name in _to_names(named or ())]
        return tuple(dict.fromkeys(found))

    def find(self, key: str, name: str) -> Path:
        """Return the place of a name in the manifest. Raises InvalidFile unless it is one of the plugin."""
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or name.startswith("~") or "\0" in name:
            raise InvalidFile(self.source, f"{key}: {name} is not a path inside the plugin")
        place = self.root / pure
        if not place.exists():
            raise InvalidFile(self.source, f"{key}: there is no {name}")
        self._require_inside(place)
        return place

    def _list_below(self, place: Path, pattern: str) -> Iterator[Path]:
        if os.path.lexists(place):
            self._require_inside(place)
        if place.is_file():
            yield place
            return
        for path in sorted(place.rglob(pattern)):
            self._require_inside(path)
            yield path

    def _require_inside(self, place: Path) -> None:
        if not place.resolve().is_relative_to(self.root.resolve()):
            raise InvalidFile(str(place), _LINKED)


def _to_names(named: str | Iterable[str]) -> tuple[str, ...]:
    return (named,) if isinstance(named, str) else tuple(named)


def hash_files(root: Path) -> dict[str, str]:
    """Return the SHA-256 of every file by path. Raises InvalidFile for links out of it and for too much."""
    found: dict[str, str] = {}
    size = 0
    for path in _walk(root):
        raw = require_content(path)
        size += len(raw)
        found[path.relative_to(root).as_posix()] = hashlib.sha256(raw).hexdigest()
        if len(found) > MAX_PLUGIN_FILES or size > MAX_PLUGIN_BYTES:
            limits = f"{MAX_PLUGIN_FILES:,} files or {MAX_PLUGIN_BYTES:,} bytes"
            raise InvalidFile(str(root), f"has more than {limits}")
    return found


def _walk(root: Path) -> Iterator[Path]:
    """Yield the files of a folder, without git's own. Raises InvalidFile for a link out of it."""
    top = root.resolve()
    for inside, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for path in (Path(inside, name) for name in (*folders, *sorted(files))):
            if path.is_symlink() and (path.is_dir() or not path.resolve().is_relative_to(top)):
                raise InvalidFile(str(path), "is a link to a folder" if path.is_dir() else _LINKED)
        yield from (Path(inside, name) for name in sorted(files) if name not in _SKIPPED)


class InstalledPlugin(Record):
    name: str
    source: str
    entry: str = ""
    version: str = ""
    commit: str = ""
    """The commit of its repository; empty for a folder."""
    files: dict[str, str] = {}
    """Every file with the SHA-256 of what it held when a person looked at it."""


class _Record(Record):
    plugins: tuple[InstalledPlugin, ...] = ()


class PluginStore(Record):
    """The folder of the user's plugins, and the file that records them."""

    place: Path
    record: Path

    def load(self) -> tuple[InstalledPlugin, ...]:
        """Return what was added. Raises InvalidFile for a record that cannot be read."""
        if not self.record.is_file():
            return ()
        return decode(_Record, self.record.read_bytes(), str(self.record)).plugins

    def find(self, name: str) -> InstalledPlugin | None:
        return next((each for each in self.load() if each.name == name), None)

    def find_folder(self, name: str) -> Path:
        return self.place / name

    def read(self, installed: InstalledPlugin) -> Plugin:
        """Return an unchanged plugin; nothing runs without one that may guard it. Raises ConfigError."""
        changed = self.find_changed(installed)
        if changed:
            raise ConfigError(
                f"the plugin {installed.name} has changed since it was added: {changed[0]}",
                hint=f"look at it with `agentflow plugins update {installed.name}`, "
                f"or give it up with `agentflow plugins remove {installed.name}`",
            )
        return read_plugin(self.find_folder(installed.name), "plugin")

    def find_changed(self, installed: InstalledPlugin) -> tuple[str, ...]:
        """Return the files that are not as they were when the plugin was added, new ones too."""
        folder = self.find_folder(installed.name)
        changed = [
            name for name, digest in installed.files.items() if fingerprint_file(folder, name) != digest
        ]
        try:
            new = hash_files(folder).keys() - installed.files.keys()
        except InvalidFile as error:
            return (*changed, error.source)
        return (*changed, *sorted(name for name in new if _COMPILED not in name.split("/")))

    def install(self, installed: InstalledPlugin, folder: Path) -> None:
        self.place.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = self.find_folder(installed.name)
        new = kept.with_name(f".{installed.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        copy_plugin_files(folder, new, installed.files)
        others = [each for each in self.load() if each.name != installed.name]
        self._write((*others, installed))
        shutil.rmtree(kept, ignore_errors=True)
        new.rename(kept)

    def remove(self, name: str) -> None:
        self._write(each for each in self.load() if each.name != name)
        shutil.rmtree(self.find_folder(name), ignore_errors=True)

    def _write(self, plugins: Iterable[InstalledPlugin]) -> None:
        self.record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = _Record(plugins=tuple(sorted(plugins, key=lambda each: each.name)))
        write_atomic(self.record, encode(found) + b"\n")


def copy_plugin_files(source: Path, to: Path, names: Iterable[str]) -> None:
    for name in names:
        place = to / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, place)
        place.chmod(_RUN_MODE if (source / name).stat().st_mode & 0o100 else _FILE_MODE)
