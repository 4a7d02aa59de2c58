"""`config`: each setting and where it came from."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import say_json, show

if TYPE_CHECKING:
    from agentflow.api.wiring import Setup
    from agentflow.settings import Settings
    from agentflow.view.text import Line


def config(
    explain: bool = typer.Option(
        False, "--explain", help="Also show capabilities, limits, hooks, rules and instructions."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show each setting and where it came from."""
    rows = _settings(folder)
    parts = _explain(folder) if explain else {}
    if json:
        say_json({"settings": rows, **parts})
        return
    show(_lines(rows, parts))


def _lines(rows: list[dict[str, Any]], parts: dict[str, list[str]]) -> Iterator["Line"]:
    """Yield what a person reads; what is not the default stands out."""
    from agentflow.view.text import BLANK, Style, column, label_row, line, span

    for row in rows:
        usual = row["source"] == "default"
        value = column(f"{_words(row['value']) or '-'}  ", 30, Style.DIM if usual else Style.BOLD)
        yield label_row(
            row["key"], value, span(row["source"], Style.DIM if usual else Style.ACCENT), width=22
        )
    for title, told in parts.items():
        yield from (BLANK, line(span(title, Style.BOLD)))
        yield from (line("  ", span(one), hang=4) for one in told or ["none"])


def _words(value: object) -> str:
    """Return a value as it would be written in the file, without what is empty."""
    if isinstance(value, dict):
        told = ", ".join(f"{key}: {_words(one)}" for key, one in value.items() if one not in (None, [], {}))
        return f"{{{told}}}" if told else ""
    if isinstance(value, list):
        return f"[{', '.join(map(_words, value))}]" if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _settings(folder: Path) -> list[dict[str, Any]]:
    """Return each setting, and the files that say what it is; what only a repository says comes last."""
    import os

    from agentflow.api.trust import load_project_at
    from agentflow.core.record import plain
    from agentflow.settings import (
        MODEL_VARIABLES,
        PROJECT_FILE,
        Project,
        Settings,
        folders,
        load_settings,
        model_name,
        tighten,
        with_project,
    )

    own, project, path = load_settings(os.environ), load_project_at(folder), str(folders(os.environ).config)
    default, mine, found = (plain(each) for each in (Settings(), own, with_project(own, project)))
    rows = {}
    for key, value in found.items():
        said = ((path, mine[key] != default[key]), (PROJECT_FILE, value != mine[key]))
        sources = [file for file, is_said in said if is_said]
        rows[key] = {"key": key, "value": value, "source": ", ".join(sources) or "default"}
    for name, value in plain(own.limits.within(None)).items():
        source = "default" if value == default["limits"].get(name) or mine["limits"][name] is None else path
        rows[f"limits.{name}"] = {"key": f"limits.{name}", "value": value, "source": source}
    unsaid = (Project(), tighten(Project(), own))
    for key, each in {"checks": project.checks, "limits": project.limits}.items():
        value = {name: one for name, one in plain(each).items() if one is not None}
        is_said = all(each != getattr(nothing, key) for nothing in unsaid)
        rows[key] = {"key": key, "value": value, "source": PROJECT_FILE if is_said else "default"}
    named = ("AGENTFLOW_MODEL", *(() if own.model else MODEL_VARIABLES))
    source = next((name for name in named if os.environ.get(name)), rows["model"]["source"])
    rows["model"] = {"key": "model", "value": model_name(None, own, os.environ), "source": source}
    return list(rows.values())


def _models(settings: "Settings") -> list[str]:
    """Return what the tiers stand for, and what that costs."""
    import os

    from agentflow.api.models import choose_tiers
    from agentflow.model.prices import find_price
    from agentflow.model.tiers import DEEP, FAST, choice_of, ids_of
    from agentflow.settings import model_name

    name = model_name(None, settings, os.environ)
    if not choice_of(name).is_live:
        return [f"{name}: for both tiers"]
    models, kind = choose_tiers(settings, name).models, choice_of(name).kind

    def add_price(model: str) -> str:
        price = find_price(model, kind, settings)
        cost = f"{price.input:g} / {price.output:g} USD a million tokens" if price else "price unknown"
        return f"{model} ({cost})"

    return [f"{tier}: {', then '.join(map(add_price, ids_of(tier, models)))}" for tier in (DEEP, FAST)]


def _instructions(setup: "Setup") -> Iterator[str]:
    """Yield the files that tell roles how to work here, with their sizes, and what is cut off."""
    from agentflow.library.instructions import MAX_IN_PROMPT, describe_reach, load_instructions
    from agentflow.workspace.path_guard import PathGuard

    workspace, left = PathGuard(setup.git.root, git=setup.git.folders), MAX_IN_PROMPT
    for each in load_instructions(workspace, workspace.files()):
        where = describe_reach(each)
        shown = len(each.text) if where else min(len(each.text), left)
        left -= 0 if where else shown
        cut = (
            f"; {each.size - shown:,} left out, a brief holds {MAX_IN_PROMPT:,}" if shown < each.size else ""
        )
        yield f"{each.path}: {where or 'in every brief'}, characters: {each.size:,}{cut}"


def _explain(folder: Path) -> dict[str, list[str]]:
    """Return what `standard` means, role by role, with the hooks and rules that count here."""
    from agentflow.api.boundary import Wish
    from agentflow.api.wiring import list_shared_capabilities, prepare
    from agentflow.cli.catalog import nobody
    from agentflow.compose.standard import Kit, describe_capabilities, list_standard_capabilities

    setup = prepare(folder, "repair", "fix the failing tests", Wish(must_run=True))
    kit = Kit(model=setup.model, models={}, toolbox=setup.toolbox, events=nobody)
    standard = list_standard_capabilities(setup.roles.part("implementer"), kit)
    shared = list_shared_capabilities(setup.hooks, setup.rules, setup.settings.approvals)
    limits = [
        f"{role.name}: {role.limits.turns} turns, {role.limits.tool_calls} tool calls"
        for role in setup.roles.all
    ]
    rules = [f"{name} {rule}" for name in ("deny", "ask", "allow") for rule in getattr(setup.rules, name)]
    return {
        "models": _models(setup.settings),
        "capabilities": list(describe_capabilities((*standard, *shared))),
        "limits": limits,
        "hooks": [f"{hook.point} {hook.name} ({hook.origin.name.lower()})" for hook in setup.hooks],
        "rules": rules,
        "instructions": list(_instructions(setup)),
        "notes": list(setup.warnings),
    }
