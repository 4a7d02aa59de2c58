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
    from agentflow.api.boundary import Wish, bounded
    from agentflow.api.content import load_content
    from agentflow.api.wiring import hooks_here, rules_here
    from agentflow.core.hook import Point
    from agentflow.core.record import plain
    from agentflow.permissions.explain import explain
    from agentflow.permissions.role_rules import scope_of
    from agentflow.tools.registry import standard
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    found = load_content(root, standard()).role(role)
    runner = bounded(folder, Wish(must_run=True)).of(found.part)
    answer = explain(found, rules_here(root), command, root, scope_of(found, runner))
    hooks = [hook.name for hook in hooks_here(root)[0] if hook.point is Point.PRE_TOOL_USE]
    besides = (_reach(role), *(f"hook: {name} may still refuse it" for name in hooks))
    if json:
        say_json({**plain(answer), "besides": besides})
        return
    show(_lines(answer, besides))


def _reach(role: str) -> str:
    """Return what the sandbox lets a role's commands do, whatever the rules say."""
    from agentflow.sandbox.profile import ACCESS, Access

    reach = {
        Access.READ: "read the repository only",
        Access.WRITE: "write the repository, but for protected files such as .git and .claude",
        Access.THROW_AWAY: "work on a copy that is thrown away",
    }
    does = reach[ACCESS.get(role, Access.READ)]
    return f"sandbox: its commands {does}; without home and network, unless your settings open them"


def _lines(answer: "Explanation", besides: tuple[str, ...]) -> Iterator["Line"]:
    """Yield the decision with its reason, each part of it, and what holds besides; a reason is said once."""
    from agentflow.view.text import Style, column, line, span

    styles = {"allow": Style.GOOD, "ask": Style.WARN, "deny": Style.BAD}
    yield line(span(f"as the {answer.role}", Style.DIM))
    yield line(span(answer.decision, styles[answer.decision]), span(f": {answer.reason}"), hang=2)
    for part in answer.parts:
        rule = "" if part.rule == answer.reason and part.source else part.rule.partition("; ")[0]
        yield line("  ", column(part.decision, 6, styles[part.decision]), span(part.part), hang=10)
        yield line(" " * 8, span(", ".join(filter(None, (rule, part.source))), Style.DIM), hang=10)
    yield from (line(span(each, Style.DIM), hang=2) for each in besides)
