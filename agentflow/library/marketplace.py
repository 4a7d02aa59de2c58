"""A marketplace: a file that lists plugins and says where each of them lies."""

from pathlib import Path, PurePosixPath
from typing import Any

from agentflow.core.errors import InvalidFile, UsageError
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.wording import list_some
from agentflow.parse import decode
from agentflow.trust import content

MARKETPLACE = ".claude-plugin/marketplace.json"
_MOST_NAMES = 20
_REPOSITORY = regex(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")
_OWN = ("source", "category", "tags", "strict")
"""Keys of an entry that are about the marketplace; the others are a manifest."""


class PluginSource(Record):
    """Where the files of a plugin lie."""

    address: str = ""
    """Of a git repository; empty for a folder beside the marketplace."""
    reference: str = ""
    folder: str = ""
    """The plugin's folder in there."""
    manifest: dict[str, Any] = {}
    """What the marketplace says of it, for a plugin without a manifest of its own."""


def find_marketplace(place: Path) -> Path | None:
    """Return the marketplace file that a path names, or that a folder holds."""
    if place.is_file():
        return place
    found = place / MARKETPLACE
    return found if found.is_file() else None


def choose_entry(path: Path, name: str) -> PluginSource:
    """Return where the plugin of a name lies; without a name, the only one.

    Raises UsageError with the names there are, and InvalidFile for a wrong file.
    """
    top = decode(dict[str, Any], content(path), str(path))
    listed = top.get("plugins")
    if not isinstance(listed, list):
        raise InvalidFile(str(path), "plugins: must be a list")
    entries = {str(entry.get("name")): entry for entry in listed if isinstance(entry, dict)}
    if len(entries) < len(listed):
        raise InvalidFile(str(path), "plugins: each needs a name of its own")
    chosen = name or (next(iter(entries)) if len(entries) == 1 else "")
    if chosen not in entries:
        names = list_some(sorted(entries), _MOST_NAMES)
        said = f"there is no plugin {name} in it" if name else "which one"
        raise UsageError(f"{path} lists {names}: {said}", hint="agentflow plugins add SOURCE NAME")
    metadata = top.get("metadata")
    base = metadata.get("pluginRoot", "") if isinstance(metadata, dict) else ""
    return _read_entry(entries[chosen], chosen, str(base), str(path))


def _read_entry(entry: dict[str, Any], name: str, base: str, source: str) -> PluginSource:
    said = entry.get("source")
    manifest = {key: value for key, value in entry.items() if key not in _OWN}
    where = f"plugins.{name}.source"
    if isinstance(said, str):
        folder = said if said.startswith("./") or not base else f"{base}/{said}"
        return PluginSource(folder=_require_below(folder, where, source), manifest=manifest)
    if not isinstance(said, dict):
        raise InvalidFile(source, f"{where}: must be a path or an object")
    kind = said.get("source")
    if kind == "npm":
        raise InvalidFile(source, f"{where}: npm is not supported; name a git address or a folder")
    if kind not in ("github", "url", "git-subdir", "git"):
        raise InvalidFile(source, f"{where}: {kind!r} is none of github, url, git-subdir")
    address = str(said.get("url", ""))
    if kind == "github":
        repository = str(said.get("repo", ""))
        if not _REPOSITORY.fullmatch(repository):
            raise InvalidFile(source, f"{where}.repo: {repository!r} is not owner/name")
        address = f"https://github.com/{repository}.git"
    return PluginSource(
        address=address,
        reference=str(said.get("sha") or said.get("ref") or ""),
        folder=_require_below(str(said.get("path", "")), where, source),
        manifest=manifest,
    )


def _require_below(folder: str, where: str, source: str) -> str:
    pure = PurePosixPath(folder)
    if pure.is_absolute() or ".." in pure.parts or "\0" in folder:
        raise InvalidFile(source, f"{where}: {folder} leads out of the repository")
    return str(pure)
