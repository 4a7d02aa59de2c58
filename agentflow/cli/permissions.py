"""`permissions test`: how a command would be decided, part by part."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.options import FOLDER, JSON
from agentflow.cli.printing import say_json, show

if TYPE_CHECKING:
    from agentflow.permissions.explain import Explanation
    from agentflow.view.text import Line

permissions = typer.Typer(help="The permission rules: test.", no_args_is_help=True, rich_markup_mode=None)


@permissions.callback()
def top() -> None:
    """Look at the permission rules."""


@permissions.command(name="test")
def explained(
    command: str = typer.Argument(..., metavar="CMD", help="A shell command, quoted as one word."),
    role: str = typer.Option("implementer", "--role", help="Whose call it would be.", metavar="R"),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Explain how a command would be decided. Each part, the rule, its file; nothing is run."""
    from agentflow.cli.content import load_content
    from agentflow.cli.wiring import rules_here
    from agentflow.permissions.explain import explain
    from agentflow.tools.registry import standard
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    answer = explain(load_content(root, standard()).role(role), rules_here(root), command, root)
    if json:
        say_json(answer)
        return
    show(_lines(answer))


def _lines(answer: "Explanation") -> Iterator["Line"]:
    """Yield the decision with its reason, and below it each part; a reason is said once."""
    from agentflow.view.text import Style, column, line, span

    styles = {"allow": Style.GOOD, "ask": Style.WARN, "deny": Style.BAD}
    yield line(span(answer.decision, styles[answer.decision]), span(f": {answer.reason}"), hang=2)
    for part in answer.parts:
        rule = "" if part.rule == answer.reason and part.source else part.rule.partition("; ")[0]
        yield line("  ", column(part.decision, 6, styles[part.decision]), span(part.part), hang=10)
        yield line(" " * 8, span(", ".join(filter(None, (rule, part.source))), Style.DIM), hang=10)
