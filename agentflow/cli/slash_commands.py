"""`commands`: the texts that are called as `/name`, and where they come from."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import say, say_json, show

if TYPE_CHECKING:
    from agentflow.library.slash_commands import PromptCommand

commands = typer.Typer(
    help="List the commands that you can call as /name.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@commands.callback()
def top() -> None:
    """List the commands that you can call as /name."""


@commands.command(name="list", epilog="Example: agentflow commands list --json")
def list_prompt_commands(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the commands with their arguments and where they come from."""
    from agentflow.api.slash_commands import is_counting, load_commands_here
    from agentflow.view.text import Style, column, line, span
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    found = load_commands_here(root)
    rows = [_to_row(command, counts=is_counting(root, command)) for command in found.all]
    if json:
        say_json(rows)
        return
    if not rows:
        say("There are no commands here. A file .claude/commands/NAME.md is called as /NAME.")
    for row in rows:
        called = f"/{row['name']} {row['argument_hint']}".rstrip()
        state = row["source"] if row["trusted"] else f"{row['source']}, not trusted: agentflow trust"
        place = f"{state}, {row['folder']}" if row["folder"] else state
        show([line(column(called, 32, Style.BOLD), span(f"  {row['description']}"), hang=4)])
        show([line("  ", span(place, Style.DIM), hang=4)])
    for warning in found.warnings:
        show([line(span(f"! {warning}", Style.WARN), hang=2)])


def _to_row(command: "PromptCommand", *, counts: bool) -> dict[str, Any]:
    return {
        "name": command.called,
        "description": command.description,
        "argument_hint": command.hint,
        "tools": None if command.tools is None else [str(rule) for rule in command.tools],
        "model": command.model,
        "folder": command.folder,
        "source": f"plugin {command.plugin}" if command.plugin else command.origin,
        "path": str(command.path),
        "trusted": counts,
    }
