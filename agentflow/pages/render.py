"""The page of a task as HTML: the parts that a live view replaces one by one, and the whole as one file."""

from collections.abc import Mapping
from pathlib import Path

from agentflow.pages.page import TaskPage


def read_style() -> str:
    """Return the style sheet of all pages."""
    return (Path(__file__).parent / "page.css").read_text("utf-8")


def render_parts(page: TaskPage, evidence_link: str = "#{}") -> Mapping[str, str]:  # noqa: ARG001
    """Return the HTML of each element of the page, by its id, in the order of the page."""
    return {"head": f'<section id="head">{page.task_id}</section>'}
