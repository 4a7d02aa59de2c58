"""`agents` and `tools`: what there is, and where it comes from."""

from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.printing import say, say_json

if TYPE_CHECKING:
    from agentflow.core.role import Role

JSON = typer.Option(False, "--json", help="Print JSON.")
agents = typer.Typer(help="The roles.", no_args_is_help=True, rich_markup_mode=None)
tools = typer.Typer(help="The tools.", no_args_is_help=True, rich_markup_mode=None)


@agents.command(name="list")
def list_agents(json: bool = JSON) -> None:
    """List the roles with their tier and tools."""
    rows = [_told(role) for role in _roles()]
    if json:
        say_json(rows)
        return
    for row in rows:
        say(f"{row['name']:<12} {row['tier']:<5} {row['description']}")
        say(f"{'':<12} {'':<5} {', '.join(row['tools'])}")


@agents.command(name="show")
def show_agent(name: str = typer.Argument(..., metavar="NAME"), json: bool = JSON) -> None:
    """Show a role as it would be run: its prompt, tools and limits, and the file it comes from."""
    from agentflow.core.errors import UnknownRole
    from agentflow.core.record import plain
    from agentflow.loop.context import system_prompt
    from agentflow.tools.registry import SUBMITS

    found = next((role for role in _roles() if role.name == name), None)
    if found is None:
        raise UnknownRole(f"there is no role {name}", hint="agentflow agents list shows them")
    prompt = system_prompt(found, SUBMITS.get(found.part or ""))
    if json:
        say_json({**_told(found), "limits": plain(found.limits), "prompt": prompt})
        return
    limits = f"{found.limits.turns} turns, {found.limits.tool_calls} tool calls"
    facts = (
        ("source", found.source),
        ("tier", _told(found)["tier"]),
        ("tools", ", ".join(map(str, found.tools))),
        ("limits", limits),
    )
    for label, value in facts:
        say(f"{label:<8} {value}")
    say(f"\n{prompt}")


@tools.command(name="list")
def list_tools(json: bool = JSON) -> None:
    """List the tools with their category and effect."""
    from agentflow.tools.registry import standard

    rows = [
        {
            "name": tool.name,
            "category": tool.category,
            "effect": tool.effect,
            "description": tool.description,
        }
        for tool in standard().tools
    ]
    if json:
        say_json(rows)
        return
    for row in rows:
        say(f"{row['name']:<15} {row['category']:<6} {row['effect']:<8} {row['description']}")


def _roles() -> tuple["Role", ...]:
    import os

    from agentflow.library.roles import load_roles
    from agentflow.settings import folders

    return load_roles(folders(os.environ).claude).all


def _told(role: "Role") -> dict[str, Any]:
    from agentflow.model.tiers import tier

    return {
        "name": role.name,
        "description": role.description,
        "tier": tier(role.model),
        "tools": [str(rule) for rule in role.tools],
        "skills": list(role.skills),
        "source": role.origin,
    }
