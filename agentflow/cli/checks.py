"""`verify` and `check`: the repository's checks without a model, and our own files."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentflow.cli.options import FOLDER, JSON, NO_SANDBOX, TASK
from agentflow.cli.printing import say, say_json, show

if TYPE_CHECKING:
    from agentflow.core.evidence import Check


def verify(
    task_id: str | None = typer.Argument(
        None, metavar="TASK|FILE", help="A task, or an exported record: run its evidence again and compare."
    ),
    quick: bool = typer.Option(False, "--quick", help="Lint, format and tests of changed files only."),
    junit: Path | None = typer.Option(None, "--junit", metavar="FILE", help="Write what ran as JUnit XML."),
    sarif: Path | None = typer.Option(None, "--sarif", metavar="FILE", help="Write complaints as SARIF."),
    dry_run: bool = typer.Option(False, "--dry-run", help="List the checks and their commands only."),
    no_sandbox: bool = NO_SANDBOX,
    network: bool = typer.Option(False, "--network", help="Let the checks reach the network."),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Run this repository's checks, or a task's recorded ones again. No model is asked, nothing is changed.

    Without TASK, run the checks of this repository, as a task would. With TASK or an exported FILE, run
    the commands of its evidence again on fresh copies: 0 means that each shows what was recorded, and that
    the files here are those which were judged.
    """
    from agentflow.api.boundary import Wish, bounded, notice, swept
    from agentflow.api.proving import examined, verdict_words
    from agentflow.api.verification import exit_of, interchanged, rows, summary, unused
    from agentflow.cli.asking import agree

    sandbox = bounded(folder, Wish(no_sandbox=no_sandbox, network=network, agree=agree))
    if not json:
        for said in (*swept(), notice(sandbox), *unused(sandbox.root)):
            say(said)
    shown = []
    found = rows(sandbox, is_quick=quick, dry_run=dry_run, during=_announced)
    for row in examined(sandbox, task_id) if task_id else found:
        shown.append(row)
        if not json:
            show(row.lines)
    interchanged(shown, junit, sarif)
    if json:
        say_json([row.told for row in shown])
    else:
        show((verdict_words(shown) if task_id else summary(shown, dry_run=dry_run),))
    return exit_of(shown)


@contextmanager
def _announced(check: "Check") -> Iterator[None]:
    """Say what is running, at a terminal only, and take it back."""
    from agentflow.view.terminal import send, width_of
    from agentflow.view.text import clip, span

    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    width = max(20, (width_of(sys.stderr) or 80) - 1)
    send(clip(span(f"… {check.name}  {check.command}").text, width), sys.stderr)
    try:
        yield
    finally:
        send("\r\x1b[K", sys.stderr)


def replay(
    task_id: str | None = TASK,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Run a task again from recorded replies. It runs in a copy, without model or network.

    0 means that the same requests came to the same verdict, 1 says where it first went another way.
    """
    from agentflow.cli.replaying import replay as replayed
    from agentflow.core.errors import Exit

    found = replayed(folder, task_id)
    if json:
        say_json(found)
    elif found.difference:
        say(f"differs: {found.difference}")
    else:
        say(f"the same: {found.events} events, {found.status} (exit {found.exit_code})")
    return Exit.NOT_VERIFIED if found.difference else Exit.VERIFIED


def check(json: bool = JSON, folder: Path = FOLDER) -> int:
    """Validate settings, roles, skills, hooks. Permission rules and the scripts of hooks are examined too."""
    from agentflow.cli.problems import ERROR
    from agentflow.cli.validation import validate
    from agentflow.core.errors import Exit
    from agentflow.view.words import plural

    found = validate(folder)
    counts = {"agents": found.agents, "skills": found.skills, "hooks": found.hooks, "commands": 0}
    if json:
        say_json({"problems": found.problems, "counts": counts})
    else:
        for problem in found.problems:
            say(problem.text)
        numbers = {"role file": found.agents, "skill": found.skills, "hook": found.hooks}
        looked_at = ", ".join(plural(number, noun) for noun, number in numbers.items())
        say(f"{looked_at}, {plural(len(found.problems), 'problem')}")
    return Exit.CONFIG if any(problem.severity == ERROR for problem in found.problems) else Exit.VERIFIED
