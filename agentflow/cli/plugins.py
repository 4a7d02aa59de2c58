"""`plugins`: agents, skills, commands, hooks and MCP servers that come together, added for you."""

from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.arguments import JSON
from agentflow.cli.printing import say, say_json

if TYPE_CHECKING:
    from agentflow.api.plugin_changes import PluginCandidate

AGREE = typer.Option(False, "--yes", help="Agree to everything that is shown, without asking.")
PLUGIN = typer.Argument(..., metavar="NAME", help="A name from `list`.")
plugins = typer.Typer(
    help="Add, list, update or remove plugins.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@plugins.command(name="add", epilog="Example: agentflow plugins add ./review-kit")
def add_plugin(
    source: str = typer.Argument(
        ..., metavar="SOURCE", help="A folder, a git address (#REF for a branch or tag), or a marketplace."
    ),
    name: str = typer.Argument("", metavar="[NAME]", help="The plugin's name in a marketplace."),
    yes: bool = AGREE,
) -> int:
    """Show what a plugin brings and would run, and add it if you agree. Its files are copied."""
    from agentflow.api.plugin_changes import fetch_plugin, require_new_name

    with fetch_plugin(_to_absolute(source), name) as candidate:
        require_new_name(candidate)
        return _decide(candidate, (), yes=yes)


@plugins.command(name="list", epilog="Example: agentflow plugins list --json")
def list_plugins(json: bool = JSON) -> None:
    """List the plugins with what they bring and whether their files are unchanged."""
    from agentflow.api.plugins import open_store
    from agentflow.core.errors import AgentflowError
    from agentflow.library.plugins import count_parts
    from agentflow.view.words import plural

    store = open_store()
    rows: list[dict[str, Any]] = []
    for each in store.load():
        changed = store.find_changed(each)
        parts: dict[str, int] = {}
        try:
            parts = parts if changed else count_parts(store.read(each))
        except AgentflowError as error:
            changed = (str(error),)
        row: dict[str, Any] = {
            "name": each.name,
            "version": each.version,
            "source": each.source,
            "entry": each.entry,
        }
        rows.append({**row, "commit": each.commit, "parts": parts, "changed": list(changed)})
    if json:
        say_json(rows)
        return
    for row in rows:
        brings = ", ".join(plural(count, part) for part, count in row["parts"].items() if count)
        state = f"CHANGED, nothing runs: {row['changed'][0]}" if row["changed"] else brings or "nothing"
        say(f"{row['name']} {row['version']}".rstrip())
        say(f"  {state}")
        say(f"  from {row['source']} {row['entry']} {row['commit'][:12]}".rstrip())
    if not rows:
        say("No plugin was added. `agentflow plugins add SOURCE` adds one.")


@plugins.command(name="update", epilog="Example: agentflow plugins update review-kit")
def update_plugin(name: str = PLUGIN, yes: bool = AGREE) -> int:
    """Fetch a plugin again, show what changed, and use the new files if you agree."""
    from agentflow.api.plugin_changes import fetch_plugin, require_installed
    from agentflow.api.plugins import open_store
    from agentflow.core.errors import Exit, UsageError

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
    from agentflow.api.plugin_changes import require_installed
    from agentflow.api.plugins import open_store

    require_installed(name)
    open_store().remove(name)
    say(f"Removed {name}.")


def _to_absolute(source: str) -> str:
    """Return a folder's whole path, so that it is found again from elsewhere; an address as it is."""
    from pathlib import Path

    place = Path(source).expanduser()
    return str(place.resolve()) if place.exists() else source


def _decide(candidate: "PluginCandidate", differences: tuple[str, ...], *, yes: bool) -> int:
    """Show a plugin, ask, and install it; without an answer nothing is changed."""
    import sys

    from agentflow.api.plugin_changes import install_plugin
    from agentflow.core.errors import Exit

    record = candidate.record
    say(f"{record.name} {record.version} from {record.source} {record.commit[:12]}".rstrip())
    for item in candidate.items:
        say(f"{item.kind:<12} {item.file}")
        say(f"{'':<12} may {item.does}")
    for difference in differences:
        say(f"changed      {difference}")
    question = f"use {record.name} as shown, in every repository?"
    if not (yes or (sys.stdin.isatty() and typer.confirm(question, default=False, err=True))):
        say("Nothing was changed. Without a terminal, use --yes.")
        return Exit.CONFIG
    install_plugin(candidate)
    say(f"Added {record.name}. If one of its files changes, nothing runs until you update or remove it.")
    return Exit.VERIFIED
