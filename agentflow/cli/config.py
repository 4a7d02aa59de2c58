"""`config`: each setting and where it came from."""

from pathlib import Path
from typing import Any

import typer

from agentflow.cli.printing import say, say_json

FOLDER = typer.Option(Path(), "-C", help="The repository.", metavar="DIR")


def config(
    explain: bool = typer.Option(False, "--explain", help="Also capabilities, limits, hooks and rules."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    folder: Path = FOLDER,
) -> None:
    """Show each setting and where it came from."""
    from agentflow.core.record import encode

    rows = _settings()
    parts = _explained(folder) if explain else {}
    if json:
        say_json({"settings": rows, **parts})
        return
    for row in rows:
        say(f"{row['key']:<16} {encode(row['value']).decode():<24} {row['source']}")
    for title, lines in parts.items():
        say(f"\n{title}")
        for line in lines:
            say(f"  {line}")


def _settings() -> list[dict[str, Any]]:
    import os

    from agentflow.core.record import plain
    from agentflow.settings import Settings, folders, load_settings

    defaults, found = plain(Settings()), plain(load_settings(os.environ))
    path = str(folders(os.environ).config)
    return [
        {"key": key, "value": value, "source": "default" if value == defaults[key] else path}
        for key, value in found.items()
    ]


def _explained(folder: Path) -> dict[str, list[str]]:
    """Return what `standard` means, role by role, with the hooks and rules that count here."""
    from agentflow.cli.boundary import Wish
    from agentflow.cli.wiring import prepare, shared_capabilities
    from agentflow.compose.profiles import Kit, listing, standard_capabilities

    setup = prepare(folder, "repair", "fix the failing tests", Wish(must_run=True))
    kit = Kit(model=setup.model, models={}, toolbox=setup.toolbox, events=_nobody)
    standard = standard_capabilities(setup.roles.part("implementer"), kit)
    limits = [
        f"{role.name}: {role.limits.turns} turns, {role.limits.tool_calls} tool calls"
        for role in setup.roles.all
    ]
    rules = [f"{name} {rule}" for name in ("deny", "ask", "allow") for rule in getattr(setup.rules, name)]
    return {
        "capabilities": list(
            listing((*standard, *shared_capabilities(setup.hooks, setup.rules, setup.settings.approvals)))
        ),
        "limits": limits,
        "hooks": [f"{hook.point} {hook.name} ({hook.origin.name.lower()})" for hook in setup.hooks],
        "rules": rules,
        "notes": list(setup.warnings),
    }


def _nobody(_: object) -> None:
    """Take an event for nobody."""
