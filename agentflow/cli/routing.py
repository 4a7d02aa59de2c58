"""`route`: what the words of a task would set in motion."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.options import FOLDER, JSON
from agentflow.cli.printing import say_json, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentflow.core.routing import Classification
    from agentflow.core.task import Phase

_MEANS = {
    "proceed": "clear enough to start",
    "assume": "starts, and states its assumptions",
    "ask": "asks one question first",
    "split": "asks one question first; better split into several tasks",
}

_WHOLE = ", because no model is configured and the built-in repair engine costs nothing"


def route(
    words: list[str] | None = typer.Argument(None, metavar="TEXT", help="The task; - reads it from stdin."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show how a task would be classified. Also which roles would run, and why; no model is asked."""
    import os

    from agentflow.api.trusting import project_at
    from agentflow.cli.words import text_of
    from agentflow.model.tiers import REPAIR
    from agentflow.routing.classify import classify, keep_all_roles
    from agentflow.routing.table import load_table
    from agentflow.settings import load_settings, model_name, with_project
    from agentflow.view.text import labelled, span

    settings = with_project(load_settings(os.environ), project_at(folder))
    table = load_table(settings.routing)
    found = classify(text_of(words or []), table)
    if json:
        say_json(told(found))
        return
    full = keep_all_roles(found, table)
    is_full = model_name(None, settings, os.environ) == REPAIR and full != found
    rows = [*_rows(found), *([("here", _way(_roles(full.steps)) + _WHOLE)] if is_full else [])]
    show(labelled(label, span(text)) for label, text in rows)


def told(found: "Classification") -> dict[str, Any]:
    """Return a classification for programs."""
    return {
        "class": found.complexity,
        "route": found.route,
        "score": found.score,
        "action": found.action,
        "reasons": list(found.reasons),
        "steps": _roles(found.steps),
        "steps_if_failing": _roles(found.steps_if_failing),
        "requires": list(found.requires),
        "report": found.report,
    }


def _roles(steps: "Iterable[Phase]") -> list[str]:
    from agentflow.routing.route import ROLE_OF

    return [ROLE_OF[phase] for phase in steps]


def _rows(found: "Classification") -> list[tuple[str, str]]:
    from agentflow.view.words import because, is_hint

    requires = f"{', '.join(found.requires)}, those that the repository has"
    shorter = _way(_roles(found.steps_if_failing))
    hints = "; ".join(reason for reason in found.reasons if is_hint(reason))
    return [
        ("class", f"{found.complexity}, route {found.route.replace('_', ' ')}"),
        ("steps", _way(_roles(found.steps))),
        *([("", f"{shorter}, if one of its checks already fails")] if shorter else []),
        *([("requires", requires)] if found.requires else []),
        ("ambiguity", f"{found.score}: {_MEANS[found.action]}"),
        *(("" if number else "why", reason) for number, reason in enumerate(because(found.reasons))),
        *([("words", hints)] if hints else []),
    ]


def _way(roles: list[str]) -> str:
    """Return the roles in words, with the checks behind the one that changes something."""
    way = ", ".join(roles).replace("implementer", "implementer, checks")
    return way.replace("reviewer, verifier", "reviewer and verifier")
