"""`report`: what a task came to, to read and to hand on."""

import sys
from pathlib import Path

import typer

from agentflow.cli.arguments import FOLDER, JSON, TASK
from agentflow.cli.printing import say, say_json, write_result

HTML = typer.Option(None, "--html", metavar="FILE", help="Write it as one HTML file that needs nothing else.")
MARKDOWN = typer.Option(False, "--markdown", help="Print it as a comment for a pull request.")


def report(
    task_id: str | None = TASK,
    html: Path | None = HTML,
    markdown: bool = MARKDOWN,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show what a task came to, or write it as an HTML page or a comment for a pull request.

    Without an option it prints the report that the task wrote as it ended. The page is one file with the
    verdict, the route, the diff, the checks, the work of each role, the evidence and the cost; a task that
    runs or waits has one too.
    """
    from agentflow.api.worktree import open_home
    from agentflow.cli.tasks import folder_of

    git = open_home(folder, task_id)
    found = folder_of(git.root, task_id)
    if html is None and not markdown:
        text = _read_report(found)
        say_json({"task_id": found.name, "report": text}) if json else say(text.rstrip("\n"))
        return
    from agentflow.pages.page import read_task_page
    from agentflow.store.ownership import is_at_work

    page = read_task_page(found, git, at_work=is_at_work(git.root))
    if html is not None:
        from agentflow.pages.render import render_document

        write_result(html, render_document(page))
    if markdown:
        from agentflow.pages.markdown import format_comment
        from agentflow.view.text import send

        send(
            format_comment(page), sys.stdout
        )  # nothing in it is foreign any more but unseen breaks of its own
    elif html is not None:
        say(f"Wrote {html}.")


def _read_report(found: Path) -> str:
    """Return the report that a task wrote as it ended. Raises StateError where there is none."""
    from agentflow.core.errors import InvalidFile, StateError
    from agentflow.redact import redact_text, visible
    from agentflow.trust import content

    try:
        text = content(found / "report.md").decode("utf-8", "replace")
    except (OSError, InvalidFile):
        hint = f"agentflow status {found.name} shows where it stands; report --html works at any time"
        raise StateError(f"task {found.name} has no report yet", hint=hint) from None
    return visible(redact_text(text))
