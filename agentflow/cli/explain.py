"""`route`, `permissions` and `hooks`: how a task, a command or a hook event is decided, without a task."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from agentflow.cli.arguments import FOLDER, JSON, make_group, read_words
from agentflow.cli.printing import say, suggest, tell_result
from agentflow.core.errors import UsageError
from agentflow.core.hook import NEVER_FIRED, POINTS, Decision, Hook, Script
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import to_builtins
from agentflow.core.routing import ROLE_OF, Access, Classification
from agentflow.core.task import Phase
from agentflow.view.text import Line, Style, column, draw_entry, label_row, line, span
from agentflow.view.words import list_reasons
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.api.hooks import KnownHook
    from agentflow.hooks.command import ScriptRun
    from agentflow.permissions.role_rules import Explanation

_MEANS = {
    "proceed": "clear enough to start",
    "assume": "starts, and states its assumptions",
    "ask": "asks one question first",
    "split": "asks one question first; better split into several tasks",
}

_ENGINE = "implementer, checks, because no model is configured: the built-in repair engine needs no other"


def route(
    words: list[str] | None = typer.Argument(None, metavar="TEXT", help="The task; - reads it from stdin."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show how a task would be classified and which roles would run. No model is asked."""
    from agentflow.api.trust import load_project_at
    from agentflow.model.tiers import REPAIR
    from agentflow.routing.classify import classify
    from agentflow.routing.clauses import load_table
    from agentflow.settings import apply_project, choose_model_name, load_settings

    settings = apply_project(load_settings(os.environ), load_project_at(folder))
    table = load_table(settings.routing)
    found = classify(read_words(words or [], "agentflow route fix the off-by-one in pager.py"), table)
    rows = _list_rows(found)
    is_change = Phase.IMPLEMENTATION in found.steps
    if is_change and choose_model_name(None, settings, os.environ) == REPAIR:
        rows.append(("here", _ENGINE))
    result = {
        "class": found.complexity,
        "route": found.route,
        "score": found.score,
        "action": found.action,
        "reasons": list(found.reasons),
        "steps": [ROLE_OF[phase] for phase in found.steps],
        "requires": list(found.requires),
        "report": found.report,
    }
    tell_result(result, (label_row(label, span(text)) for label, text in rows), json=json)


def _list_rows(found: Classification) -> list[tuple[str, str]]:
    reasons = list_reasons(found.decided, found.ambiguities)
    rows = [
        ("class", f"{found.complexity}, route {found.route.replace('_', ' ')}"),
        ("steps", _describe_way(found.steps)),
    ]
    if found.requires:
        rows.append(("requires", f"{', '.join(found.requires)}, as far as the repository has them"))
    rows.append(("ambiguity", f"{found.score}: {_MEANS[found.action]}"))
    rows += [("" if number else "why", reason) for number, reason in enumerate(reasons)]
    if found.hints:
        rows.append(("words", "; ".join(found.hints)))
    return rows


def _describe_way(steps: tuple[Phase, ...]) -> str:
    way = ", ".join(ROLE_OF[phase] for phase in steps).replace("implementer", "implementer, checks")
    return way.replace("reviewer, verifier", "reviewer and verifier")


_REACH = {
    access: f"sandbox: its commands {does}; without home and network, unless your settings open them"
    for access, does in (
        (Access.READ, "read the repository only"),
        (Access.WRITE, "write the repository, but for protected files such as .git and .claude"),
        (Access.THROW_AWAY, "work on a copy that is thrown away"),
    )
}
permissions = make_group()


@permissions.command(name="test", epilog='Example: agentflow permissions test "git push" --role implementer')
def explain_command(
    command: str = typer.Argument(..., metavar="CMD", help="A shell command, in quotes."),
    role: str = typer.Option("implementer", "--role", help="The role that would run it.", metavar="R"),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Explain which rule decides each part of a command. Nothing is run."""
    from agentflow.api.boundary import TaskRequest, describe_sandbox, open_sandbox
    from agentflow.api.content import load_content, load_hooks_here, load_rules_here
    from agentflow.permissions.role_rules import explain_call, is_left_to_sandbox
    from agentflow.permissions.user_rules import RuleCall
    from agentflow.sandbox.profile import Level
    from agentflow.tools.registry import make_standard_toolbox
    from agentflow.tools.shell import BASH

    git = open_repository(folder)
    root = git.root
    found = load_content(root, make_standard_toolbox()).find_role(role)
    runner = open_sandbox(git, TaskRequest(must_run=True)).of(found.part)
    call = RuleCall(tool=BASH, given={"command": command}, root=root)
    answer = explain_call(found, load_rules_here(root), call, is_held=is_left_to_sandbox(found, BASH, runner))
    reach = _REACH[runner.access]
    if runner.level is Level.NONE:
        reach = describe_sandbox(runner)
    hooks = [hook.name for hook in load_hooks_here(root)[0] if hook.point is Point.PRE_TOOL_USE]
    besides = (reach, *(f"hook: {name} may still refuse it" for name in hooks))
    tell_result({**to_builtins(answer), "besides": besides}, _draw_explanation(answer, besides), json=json)


def _draw_explanation(answer: "Explanation", besides: tuple[str, ...]) -> Iterator[Line]:
    styles = {"allow": Style.GOOD, "ask": Style.WARN, "deny": Style.BAD}
    yield line(span(f"as the {answer.role}", Style.DIM))
    yield line(span(answer.decision, styles[answer.decision]), span(f": {answer.reason}"), hang=2)
    for part in answer.parts:
        rule = "" if part.rule == answer.reason and part.source else part.rule.partition("; ")[0]
        yield line("  ", column(part.decision, 6, styles[part.decision]), span(part.part), hang=10)
        yield line(" " * 8, span(", ".join(filter(None, (rule, part.source))), Style.DIM), hang=10)
    yield from (line(span(each, Style.DIM), hang=2) for each in besides)


_EVENT = typer.Option(..., "--event", "-e", metavar="EVENT", help="The event, such as PreToolUse.")
_MOST = 2_000
"""Characters of each output that are shown."""
hooks = make_group()


@hooks.command(name="list", epilog="Example: agentflow hooks list --json")
def list_hooks(json: bool = JSON) -> None:
    """List the hooks of all files, and whether each one runs here."""
    from agentflow.api.hooks import list_known_hooks

    known, notes = list_known_hooks(_find_root())
    lines: list[Line | str] = [one for each in known for one in _draw_hook(each)]
    tell_result([_to_row(each) for each in known], [*lines, *(f"note: {note}" for note in notes)], json=json)


def _draw_hook(known: "KnownHook") -> Iterator[Line]:
    matcher = f" {known.hook.matcher}" if known.hook.matcher else ""
    state = span(known.state, Style.GOOD if known.runs else Style.WARN)
    return draw_entry(f"{known.hook.point}{matcher}", state, (known.name, span(known.hook.source, Style.DIM)))


@hooks.command(name="new", epilog="Example: agentflow hooks new PreToolUse --name no-migrations")
def new_hook(
    event: str = typer.Argument(..., metavar="EVENT", help="The event, such as PreToolUse."),
    name: str = typer.Option("", "--name", metavar="NAME", help="The script's name; the event's by default."),
    user: bool = typer.Option(False, "--user", help="Write it below your home folder, for all repositories."),
) -> None:
    """Write a working, commented hook and its entry in settings.json. No file is replaced."""
    from agentflow.api.hooks import start_hook

    script, settings = start_hook(_find_root(), _find_point(event), name, is_users=user)
    say(f"wrote {script}")
    say(f"added it to {settings}")
    say(f"try it: agentflow hooks test {script.stem} --event {event}")
    if not user:
        say("then let it run: agentflow trust")


@hooks.command(name="test", epilog="Example: agentflow hooks test no-migrations --event PreToolUse")
def try_hook(
    name: str | None = typer.Argument(None, metavar="[NAME]", help="A part of its command; all by default."),
    event: str = _EVENT,
    given: Path | None = typer.Option(
        None, "--input", metavar="FILE", help="JSON for the hook's stdin; - reads it from stdin."
    ),
    json: bool = JSON,
) -> int:
    """Run hooks on an example event and show what each decides.

    Its exit code, output, time and environment are shown as well.
    """
    from agentflow.api.hooks import list_known_hooks, make_event, open_hook_sandbox

    root, point = _find_root(), _find_point(event)
    known, _ = list_known_hooks(root)
    wanted = [each for each in known if each.hook.point is point and (name or "") in each.name]
    if not wanted:
        raise UsageError(
            f"there is no hook {name or ''} at {point}".replace("  ", " "),
            hint="agentflow hooks list shows them",
        )
    with TemporaryDirectory(prefix="agentflow-hook-") as folder:
        made = make_event(root, point, Path(folder), given)
        if any(isinstance(each.hook.body, Script) and each.hook.body.sandbox for each in wanted):
            made = made.replace(scene=made.scene.replace(runner=open_hook_sandbox(root)))
        rows = [_try(each, made) for each in wanted]
    tell_result(rows, (one for row in rows for one in _draw_trial(row)), json=json)
    return int(any(row["broken"] for row in rows))


def _find_point(event: str) -> Point:
    points = [point for point in Point if POINTS[point].takes_scripts]
    if event in points:
        return Point(event)
    if event in NEVER_FIRED:
        raise UsageError(f"{event} never happens in agentflow", hint=f"events are {', '.join(points)}")
    hint = f"events are {', '.join(points)}"
    raise UsageError(f"there is no event {event}{suggest(event, points)}", hint=hint)


def _try(known: "KnownHook", event: HookEvent) -> dict[str, Any]:
    from agentflow.hooks.chain import is_for
    from agentflow.hooks.command import encode_event, fire_script

    hook = known.hook
    row: dict[str, Any] = {"name": known.name, "event": hook.point, "state": known.state, "broken": False}
    if not known.may_be_tried:
        return {**row, "decision": "not run", "reason": "it waits for trust: agentflow trust"}
    if not is_for(hook, event):
        return {**row, "decision": "not asked", "reason": "its matcher or `if` does not fit this event"}
    assert isinstance(hook.body, Script)
    fired = fire_script(hook, hook.body, event)
    return row | _describe(hook, fired) | {"input": encode_event(event).decode().strip()}


def _describe(hook: Hook, fired: "ScriptRun") -> dict[str, Any]:
    from agentflow.hooks.chain import judge_answer

    decision, reason = judge_answer(hook, fired.answer)
    result, ended = fired.answer.result, fired.said
    effects = {
        "context": result.context,
        "updated_input": result.updated_input,
        "updated_output": result.updated_output,
        "ends_task": result.halt,
        "notice": result.notice,
    }
    is_call = "decision" in POINTS[hook.point].answers
    name = "go on" if decision is Decision.NONE else decision.name.lower() if is_call else "block"
    return {
        "decision": name,
        "reason": reason,
        "trouble": fired.answer.trouble,
        "notices": list(fired.answer.notices),
        "broken": fired.answer.broken,
        **{key: value for key, value in effects.items() if value is not None},
        "exit_code": ended.exit_code if ended else None,
        "timed_out": ended.timed_out if ended else False,
        "stdout": ended.stdout.decode("utf-8", "replace") if ended else "",
        "stderr": ended.stderr.decode("utf-8", "replace") if ended else "",
        "seconds": fired.seconds,
        "environment": dict(fired.environment),
    }


def _draw_trial(row: dict[str, Any]) -> Iterator[Line]:
    bad = row["decision"] in ("deny", "block") or row["broken"]
    yield line(span(f"{row['event']}  ", Style.BOLD), span(row["name"]))
    yield label_row("  decision", span(row["decision"], Style.BAD if bad else Style.GOOD), width=15)
    shown = ("reason", "trouble", "context", "updated_input", "updated_output", "ends_task", "notice")
    rest = ("exit_code", "seconds", "stdout", "stderr", "input", "environment")
    for key in (*shown, "notices", *rest):
        for text in _to_lines(row.get(key)):
            yield label_row(f"  {key.replace('_', ' ')}", span(text), width=15)


def _to_lines(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{key}={text}" for key, text in value.items())
    elif isinstance(value, list):
        yield from value
    elif value is not None and value != "":
        yield from str(value)[:_MOST].rstrip("\n").split("\n")


def _to_row(known: "KnownHook") -> dict[str, Any]:
    hook = known.hook
    assert isinstance(hook.body, Script)
    return {
        "event": hook.point,
        "name": known.name,
        "matcher": hook.matcher,
        "command": hook.body.command,
        "timeout": hook.body.timeout or POINTS[hook.point].timeout,
        "sandbox": hook.body.sandbox,
        "priority": hook.priority,
        "on_error": hook.on_error,
        "source": hook.origin.name.lower(),
        "file": hook.source,
        "state": known.state,
        "runs": known.runs,
    }


def _find_root() -> Path:
    return open_repository(Path.cwd()).root
