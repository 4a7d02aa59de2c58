"""`route` and `permissions test`: how a task or a command would be decided, without running it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.arguments import FOLDER, JSON, make_group, read_words
from agentflow.cli.printing import say_json, show
from agentflow.core.record import to_builtins
from agentflow.core.task import Phase
from agentflow.view.text import Line, Style, column, label_row, line, span
from agentflow.view.words import list_reasons

if TYPE_CHECKING:
    from agentflow.core.routing import Classification
    from agentflow.permissions.role_rules import Explanation
    from agentflow.sandbox.run import Sandbox


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
    """Show how a task would be classified and which roles would run. No model is asked."""
    from agentflow.api.trust import load_project_at
    from agentflow.model.tiers import REPAIR
    from agentflow.routing.classify import classify, keep_all_roles
    from agentflow.routing.table import load_table
    from agentflow.settings import apply_project, choose_model_name, load_settings

    settings = apply_project(load_settings(os.environ), load_project_at(folder))
    table = load_table(settings.routing)
    found = classify(read_words(words or [], "agentflow route fix the off-by-one in pager.py"), table)
    if json:
        say_json(describe_classification(found))
        return
    full = keep_all_roles(found, table)
    is_full = choose_model_name(None, settings, os.environ) == REPAIR and full != found
    rows = _list_rows(found)
    if is_full:
        rows.append(("here", _describe_way(_name_roles(full.steps)) + _WHOLE))
    show(label_row(label, span(text)) for label, text in rows)


def describe_classification(found: "Classification") -> dict[str, Any]:
    """Return a classification for programs."""
    return {
        "class": found.complexity,
        "route": found.route,
        "score": found.score,
        "action": found.action,
        "reasons": list(found.reasons),
        "steps": _name_roles(found.steps),
        "steps_if_failing": _name_roles(found.steps_if_failing),
        "requires": list(found.requires),
        "report": found.report,
    }


def _name_roles(steps: Iterable[Phase]) -> list[str]:
    from agentflow.core.routing import ROLE_OF

    return [ROLE_OF[phase] for phase in steps]


def _list_rows(found: "Classification") -> list[tuple[str, str]]:
    requires = f"{', '.join(found.requires)}, as far as the repository has them"
    shorter = _describe_way(_name_roles(found.steps_if_failing))
    hints = "; ".join(found.hints)
    return [
        ("class", f"{found.complexity}, route {found.route.replace('_', ' ')}"),
        ("steps", _describe_way(_name_roles(found.steps))),
        *([("", f"{shorter}, if one of its checks already fails")] if shorter else []),
        *([("requires", requires)] if found.requires else []),
        ("ambiguity", f"{found.score}: {_MEANS[found.action]}"),
        *(
            ("" if number else "why", reason)
            for number, reason in enumerate(list_reasons(found.decided, found.ambiguities))
        ),
        *([("words", hints)] if hints else []),
    ]


def _describe_way(roles: list[str]) -> str:
    """Return the roles in words, with the checks after the implementer."""
    way = ", ".join(roles).replace("implementer", "implementer, checks")
    return way.replace("reviewer, verifier", "reviewer and verifier")


permissions = make_group()


@permissions.command(name="test", epilog='Example: agentflow permissions test "git push" --role implementer')
def explain_command(
    command: str = typer.Argument(..., metavar="CMD", help="A shell command, in quotes."),
    role: str = typer.Option("implementer", "--role", help="The role that would run it.", metavar="R"),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Explain which rule decides each part of a command. Nothing is run."""
    from agentflow.api.boundary import Wish, open_sandbox
    from agentflow.api.content import load_content, load_hooks_here, load_rules_here
    from agentflow.core.points import Point
    from agentflow.permissions.role_rules import explain_call, find_scope
    from agentflow.permissions.user_rules import RuleCall
    from agentflow.tools.registry import make_standard_toolbox
    from agentflow.tools.shell import BASH
    from agentflow.workspace.git import open_repository

    git = open_repository(folder)
    root = git.root
    found = load_content(root, make_standard_toolbox()).find_role(role)
    runner = open_sandbox(git, Wish(must_run=True)).of(found.part)
    call = RuleCall(tool=BASH, given={"command": command}, root=root)
    answer = explain_call(found, load_rules_here(root), call, find_scope(found, BASH, runner))
    hooks = [hook.name for hook in load_hooks_here(root)[0] if hook.point is Point.PRE_TOOL_USE]
    besides = (_describe_reach(role, runner), *(f"hook: {name} may still refuse it" for name in hooks))
    if json:
        say_json({**to_builtins(answer), "besides": besides})
        return
    show(_draw_explanation(answer, besides))


def _describe_reach(role: str, runner: "Sandbox") -> str:
    """Return what the sandbox lets a role's commands do, independently of the rules."""
    from agentflow.api.boundary import describe_sandbox
    from agentflow.core.routing import Access
    from agentflow.sandbox.profile import ACCESS, Level

    if runner.level is Level.NONE:
        return describe_sandbox(runner)
    reach = {
        Access.READ: "read the repository only",
        Access.WRITE: "write the repository, but for protected files such as .git and .claude",
        Access.THROW_AWAY: "work on a copy that is thrown away",
    }
    does = reach[ACCESS.get(role, Access.READ)]
    return f"sandbox: its commands {does}; without home and network, unless your settings open them"


def _draw_explanation(answer: "Explanation", besides: tuple[str, ...]) -> Iterator[Line]:
    """Yield the decision with its reason, each part of it, and what holds besides; a reason is said once."""
    styles = {"allow": Style.GOOD, "ask": Style.WARN, "deny": Style.BAD}
    yield line(span(f"as the {answer.role}", Style.DIM))
    yield line(span(answer.decision, styles[answer.decision]), span(f": {answer.reason}"), hang=2)
    for part in answer.parts:
        rule = "" if part.rule == answer.reason and part.source else part.rule.partition("; ")[0]
        yield line("  ", column(part.decision, 6, styles[part.decision]), span(part.part), hang=10)
        yield line(" " * 8, span(", ".join(filter(None, (rule, part.source))), Style.DIM), hang=10)
    yield from (line(span(each, Style.DIM), hang=2) for each in besides)
