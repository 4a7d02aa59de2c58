"""`trust` and `plugins`: shows what foreign files would do, and records that a person trusts them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.api.trust import (
    list_hook_notes,
    list_items,
    list_plugin_items,
    list_untrusted,
    load_trust_here,
)
from agentflow.cli.arguments import FOLDER, JSON, make_group
from agentflow.cli.printing import say, say_json, show, tell_result
from agentflow.core.errors import AgentflowError, ConfigError, Exit, UsageError
from agentflow.core.record import to_builtins
from agentflow.library.plugins import InstalledPlugin, Plugin, PluginStore
from agentflow.parse import expand_home
from agentflow.redact import format_count, list_some
from agentflow.settings import find_folders
from agentflow.trust import record_trust
from agentflow.view.text import Line, draw_entry
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.api.plugins import PluginCandidate


def trust(
    yes: bool = typer.Option(False, "--yes", help="Trust everything that is shown, without asking."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    root = open_repository(folder).root
    found, notes = list_items(root), list_hook_notes(root)
    invalid = sorted({item.file for item in found if item.problem})
    valid = tuple(item for item in found if item.file not in invalid)
    left = frozenset(list_untrusted(root)).intersection(valid)
    if not json:
        known = load_trust_here(root).files
        for item in found:
            standing = "trusted" if item not in left else "changed" if item.file in known else "new"
            mark = "invalid" if item.problem else standing
            show(draw_entry(item.file, f"{item.kind}, {mark}", [item.does]))
        for note in notes:
            say(f"note: {note}")
    question = f"trust {format_count(len({item.file for item in left}), 'file')} as shown?"
    agreed = bool(left) and (yes or (not json and _ask(question)))
    if agreed:
        record_trust(find_folders(os.environ).config, root, {item.file: item.sha256 for item in valid})
    trusted = frozenset(valid) if agreed else frozenset(valid) - left
    if json:
        items = [{**to_builtins(item), "trusted": item in trusted} for item in found]
        say_json({"root": str(root), "items": items, "notes": list(notes)})
    elif valid or not invalid:
        say(_describe_outcome(bool(left), agreed, len(valid)))
    else:
        say("Nothing was trusted.")
    if invalid:
        names, hint = list_some(invalid), "`agentflow check` says what to fix"
        raise ConfigError(f"not valid, so not trusted: {names}", hint=hint)
    return Exit.VERIFIED if agreed or not left else Exit.CONFIG


def _ask(question: str) -> bool:
    return sys.stdin.isatty() and typer.confirm(question, default=False, err=True)


def _describe_outcome(had_left: bool, agreed: bool, count: int) -> str:
    if agreed:
        what = ("1 entry", "it") if count == 1 else (f"{count} entries", "any of them")
        return f"Trusted {what[0]}. If {what[1]} changes, you will be asked again."
    if had_left:
        return "Nothing was trusted. Without a terminal, use `agentflow trust --yes`."
    return "Everything is trusted." if count else "Nothing in this repository needs your trust."


AGREE = typer.Option(False, "--yes", help="Agree to everything that is shown, without asking.")
PLUGIN = typer.Argument(..., metavar="NAME", help="A name from `list`.")
plugins = make_group()


@plugins.command(name="add", epilog="Example: agentflow plugins add ./review-kit")
def add_plugin(
    source: str = typer.Argument(
        ..., metavar="SOURCE", help="A folder, a git address (#REF for a branch or tag), or a marketplace."
    ),
    name: str = typer.Argument("", metavar="[NAME]", help="The plugin's name in a marketplace."),
    yes: bool = AGREE,
) -> int:
    """Show what a plugin contains and runs, and add it if you agree. Its files are copied."""
    from agentflow.api.plugins import fetch_plugin, require_new_name

    with fetch_plugin(_to_absolute(source), name) as candidate:
        require_new_name(candidate)
        return _decide(candidate, (), yes=yes)


@plugins.command(name="list", epilog="Example: agentflow plugins list --json")
def list_plugins(json: bool = JSON) -> None:
    """List the plugins, what each contains, and changed files."""
    from agentflow.api.plugins import open_store

    rows = [_to_plugin_row(plugin, open_store()) for plugin in open_store().load()]
    lines = [one for row in rows for one in _draw_plugin(row)]
    none = ["No plugin was added. `agentflow plugins add SOURCE` adds one."]
    tell_result(rows, lines or none, json=json)


def _to_plugin_row(plugin: InstalledPlugin, store: PluginStore) -> dict[str, Any]:
    changed, parts = store.find_changed(plugin), dict[str, int]()
    try:
        parts = parts if changed else _count_parts(store.read(plugin))
    except AgentflowError as error:
        changed = (str(error),)
    keys = ("name", "version", "source", "entry", "commit")
    return {**{key: getattr(plugin, key) for key in keys}, "parts": parts, "changed": list(changed)}


def _count_parts(plugin: Plugin) -> dict[str, int]:
    return {
        "agent": len(plugin.agents),
        "skill": len(plugin.skills),
        "command": len(plugin.commands),
        "hook file": len(plugin.hooks),
        "server": sum(item.kind == "server" for item in list_plugin_items(plugin)),
    }


def _draw_plugin(row: dict[str, Any]) -> Iterator[Line]:
    brings = ", ".join(format_count(count, part) for part, count in row["parts"].items() if count)
    state = f"CHANGED, nothing runs: {row['changed'][0]}" if row["changed"] else brings or "nothing"
    source = f"from {row['source']} {row['entry']} {row['commit'][:12]}".rstrip()
    return draw_entry(row["name"], row["version"], (state, source))


@plugins.command(name="update", epilog="Example: agentflow plugins update review-kit")
def update_plugin(name: str = PLUGIN, yes: bool = AGREE) -> int:
    """Fetch a plugin again and show what changed. The new files are used if you agree."""
    from agentflow.api.plugins import fetch_plugin, open_store, require_installed

    before = require_installed(name)
    with fetch_plugin(before.source, before.entry) as candidate:
        if candidate.plugin.name != name:
            raise UsageError(f"{before.source} is now the plugin {candidate.plugin.name}")
        changed = open_store().find_changed(before)
        differences = (*candidate.list_differences(before), *(f"! {file}" for file in changed))
        if not differences:
            say(f"{name} is unchanged.")
            return Exit.VERIFIED
        return _decide(candidate, differences, yes=yes)


@plugins.command(name="remove", epilog="Example: agentflow plugins remove review-kit")
def remove_plugin(name: str = PLUGIN) -> None:
    """Remove a plugin and its copied files."""
    from agentflow.api.plugins import open_store, require_installed

    require_installed(name)
    open_store().remove(name)
    say(f"Removed {name}.")


def _to_absolute(source: str) -> str:
    """Return a folder's whole path, so that it is found again from elsewhere; an address as it is."""
    place = expand_home(source)
    return str(place.resolve()) if place.exists() else source


def _decide(candidate: "PluginCandidate", differences: tuple[str, ...], *, yes: bool) -> int:
    from agentflow.api.plugins import open_store

    record = candidate.record
    say(f"{record.name} {record.version} from {record.source} {record.commit[:12]}".rstrip())
    for item in candidate.items:
        show(draw_entry(item.file, item.kind, [item.does]))
    for difference in differences:
        say(f"changed      {difference}")
    if not (yes or _ask(f"use {record.name} as shown, in every repository?")):
        say("Nothing was changed. Without a terminal, use --yes.")
        return Exit.CONFIG
    open_store().install(record, candidate.folder)
    say(f"Added {record.name}. If one of its files changes, nothing runs until you update or remove it.")
    return Exit.VERIFIED
