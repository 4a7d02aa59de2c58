"""A batch as one HTML page that needs nothing else: counts, and what came of each task."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from agentflow.batch.folder import TaskFolder
from agentflow.batch.plan import BatchTask
from agentflow.batch.results import BatchResult
from agentflow.batch.run import BatchOutcome
from agentflow.core.errors import AgentflowError, ConfigError, Exit
from agentflow.core.record import Record
from agentflow.core.task import Status
from agentflow.core.verdict import explain_caveat
from agentflow.frontmatter import write_atomic
from agentflow.pages.page import read_task_page
from agentflow.pages.render import render_document, wrap_document
from agentflow.pages.templates import fill_template
from agentflow.redact import format_count, format_money, to_one_line
from agentflow.store.bundle import PATCH
from agentflow.store.reading import find
from agentflow.view.words import format_duration, style_status
from agentflow.workspace.git import open_repository

_TASK_PAGE = "report.html"
_TEXT = 240
_TONES = {Exit.VERIFIED: "good", Exit.CAVEAT: "warn"}
_MARKS = {"good": "✓", "warn": "!", "bad": "✗"}
_TONE_ORDER = ("good", "warn", "accent", "bad", "")


class BatchRow(Record):
    id: str
    text: str
    group: str
    result: BatchResult | None
    links: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        return self.result.status.replace("_", " ") if self.result else "not done"

    @property
    def tone(self) -> str:
        return style_status(self.result.status).name.lower() if self.result else ""

    @property
    def caveats(self) -> tuple[tuple[str, str], ...]:
        return tuple((word, explain_caveat(word)) for word in self.result.caveats) if self.result else ()

    @property
    def is_short(self) -> bool:
        done = self.result
        is_unresolved = done is not None and done.hidden is not None and not done.hidden.resolved
        return done is None or done.exit_code != Exit.VERIFIED or is_unresolved


def write_batch_page(target: Path, plan: Path, tasks: Sequence[BatchTask], outcome: BatchOutcome) -> None:
    """Write the page of a batch, and one beside each task whose clone was kept. Raises ConfigError."""
    found = {result.id: result for result in outcome.results}
    rows = list[BatchRow]()
    for task in tasks:
        result, text = found.get(task.id), to_one_line(task.text, _TEXT)
        links = tuple(_list_links(task, Path(result.folder), target)) if result and result.folder else ()
        rows.append(BatchRow(id=task.id, text=text, group=task.group, result=result, links=links))
    try:
        write_atomic(target, _render(plan.name, rows, outcome).encode(), mode=0o644)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}") from None


def _list_links(task: BatchTask, place: Path, target: Path) -> Iterator[tuple[str, str]]:
    with suppress(AgentflowError, OSError):
        git = open_repository(TaskFolder(task=task, place=place).clone)
        page = read_task_page(find(git.root, None), git, at_work=False)
        write_atomic(place / _TASK_PAGE, render_document(page).encode(), mode=0o644)
    for words, name in (("report", _TASK_PAGE), ("patch", PATCH)):
        file = place / name
        if file.is_file() and file.stat().st_size:
            yield words, f"./{quote(os.path.relpath(file, target.absolute().parent))}"


def _render(name: str, rows: Sequence[BatchRow], outcome: BatchOutcome) -> str:
    short = tuple(row for row in rows if row.is_short)
    whole = tuple(row for row in rows if not row.is_short)
    tone = _TONES.get(outcome.exit_code, "bad")
    verified = sum(result.status is Status.VERIFIED for result in outcome.results)
    headline = f"{verified} of {format_count(len(rows), 'task')} verified"
    body = fill_template(
        "pages/batch.html",
        title=name,
        tone=tone,
        mark=_MARKS[tone],
        headline=headline,
        exit_code=int(outcome.exit_code),
        shares=tuple(_list_shares(rows)),
        facts=tuple(_list_facts(outcome.results)),
        groups=(("What falls short", short), ("Verified", whole)),
        has_hidden=any(result.hidden for result in outcome.results),
    )
    return wrap_document(f"{headline}: {name}", body, f"the results of {name}")


def _list_shares(rows: Sequence[BatchRow]) -> Iterator[tuple[str, str, int, float, float]]:
    """Yield how tasks ended: words, tone, number, and begin and width in a bar of 100."""
    counted = Counter((row.words, row.tone) for row in rows)
    order = sorted(counted, key=lambda one: (_TONE_ORDER.index(one[1]), -counted[one]))
    begin = 0.0
    for words, tone in order:
        width = 100 * counted[words, tone] / len(rows)
        yield words, tone, counted[words, tone], round(begin, 3), round(width, 3)
        begin += width


def _list_facts(results: Sequence[BatchResult]) -> Iterator[tuple[str, str]]:
    hidden = [result.hidden for result in results if result.hidden is not None]
    if hidden:
        yield "Resolved, by hidden checks", f"{sum(one.resolved for one in hidden)} of {len(hidden)}"
    costs = [result.usage.cost_usd for result in results if result.usage.cost_usd is not None]
    least = "at least " if 0 < len(costs) < len(results) else ""
    yield "Time of all tasks", format_duration(sum(result.seconds for result in results))
    yield "Tokens", f"{sum(result.usage.tokens for result in results):,}"
    yield "Cost", least + format_money(sum(costs) if costs else None)
    yield "Model", ", ".join(sorted({result.model for result in results if result.model})) or "none"
