"""Shows tasks, from `tasks` and `status` to `report` and `stats`; and which task a command means."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from agentflow.api.worktree import list_homes, open_home
from agentflow.cli.arguments import FOLDER, JSON, PLAIN, TASK
from agentflow.cli.printing import say, say_line, show, tell_edits, tell_result, write_result
from agentflow.core.errors import InvalidFile, StateError, TaskNotFound, UsageError
from agentflow.core.record import to_builtins
from agentflow.core.task import FRONTMATTER_KEYS, TaskState
from agentflow.redact import format_count, format_money, make_visible, redact_text, to_one_line
from agentflow.store.journal import read_numbered_lines
from agentflow.store.ownership import is_at_work
from agentflow.store.reading import (
    EVENTS,
    TASKS,
    find,
    follow_events,
    is_task_id,
    list_tasks,
    load_events,
    try_load_state,
)
from agentflow.trust import read_content
from agentflow.view.status import draw_status, format_evidence, format_evidence_table
from agentflow.view.tasks import describe_task, draw_tasks, load_snapshot, name_status, read_output_tail
from agentflow.view.text import (
    BLANK,
    Line,
    Span,
    Style,
    choose_medium,
    find_width,
    line,
    send,
    span,
    tabulate,
)
from agentflow.view.words import format_whole_seconds
from agentflow.workspace.git import Git, open_repository

if TYPE_CHECKING:
    from agentflow.pages.stats import Numbers, ResultKind, Stats


_ID_BEGINS = 4
"""Digits from which on a word before an answer can be the beginning of an id."""


def tasks(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the tasks of this repository, newest first. Each has its status, exit code and cost."""
    homes = {home: is_at_work(home) for home in list_homes(open_repository(folder).root)}
    names = sorted(((name, home) for home in homes for name in list_tasks(home)), reverse=True)
    rows = tuple(describe_task(home / TASKS / name, at_work=homes[home]) for name, home in names)
    tell_result(rows, draw_tasks(rows, datetime.now(UTC), find_width(sys.stdout)), json=json)


def find_task_folder(
    root: Path, task_id: str | None, prefer: Callable[[TaskState], bool] | None = None
) -> Path:
    """Return the folder of a task; where none is named take the newest, and say on stderr which that is.

    Of several tasks, the newest whose state is as preferred comes first. Raises TaskNotFound.
    """
    if task_id is not None:
        return find(root, task_id)
    found = find(root, None)
    state = try_load_state(found)  # whoever goes on with a damaged one says what is wrong
    if prefer is not None and not (state and prefer(state)):
        paths = (root / TASKS / name for name in reversed(list_tasks(root)))
        states = ((path, other) for path in paths if (other := try_load_state(path)))
        found, state = next(((path, other) for path, other in states if prefer(other)), (found, state))
    words = f": {to_one_line(state.title, 60)}" if state else ""
    send(make_visible(f"the newest task, {found.name}{words}") + "\n", sys.stderr)
    return found


def locate_task(
    folder: Path,
    task_id: str | None,
    prefer: Callable[[TaskState], bool] | None = None,
    *,
    goes_on: bool = False,
) -> tuple[Git, Path]:
    """Return the repository or worktree that has a task, and the task's folder in it.

    Says on stderr what was edited by hand in that folder; see `find_task_folder` and `tell_edits`.
    """
    git = open_home(folder, task_id)
    found = find_task_folder(git.root, task_id, prefer)
    tell_edits(git.root, found, goes_on=goes_on)
    return git, found


def split_task_id(folder: Path, words: list[str]) -> tuple[str | None, list[str]]:
    """Return the task that the first of some words names, if it names one, and the other words."""
    first, *rest = words
    is_beginning = first[:_ID_BEGINS].isdecimal() and len(first) >= _ID_BEGINS
    homes = list_homes(open_repository(folder).root) if is_beginning else ()
    known = [name for home in homes for name in list_tasks(home) if name.startswith(first)]
    is_named = is_beginning and (bool(known) or is_task_id(first))
    return (first, rest) if is_named else (None, words)


def status(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    git, found = locate_task(folder, task_id)
    snapshot = load_snapshot(found)
    state = to_builtins(snapshot.state)
    rows = draw_status(snapshot, at_work=is_at_work(git.root))
    shown = {key: state[key] for key in FRONTMATTER_KEYS}
    tell_result({**shown, "decisions": snapshot.state.decisions}, rows, json=json)


def why(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Show what decided how a task ended, and what to do next.

    It reads what the task recorded: no model is asked and no check runs.
    """
    from agentflow.report.why import explain_task
    from agentflow.view.verdict import draw_why

    git, found = locate_task(folder, task_id)
    snapshot, at_work = load_snapshot(found), is_at_work(git.root)
    state, is_named = snapshot.state, task_id is not None or json
    place = "" if folder.absolute() == Path.cwd() else f" -C {quote(str(folder))}"
    why = explain_task(state, snapshot.find, at_work=at_work, is_named=is_named, place=place)
    status, code = name_status(state, at_work=at_work), state.ending.exit_code if state.ending else None
    result = {"task_id": found.name, "status": status, "exit_code": code, **to_builtins(why)}
    tell_result(result, draw_why(state, why, at_work=at_work), json=json)


def log(task_id: str | None = TASK, json: bool = JSON, folder: Path = FOLDER) -> None:
    from agentflow.view.progress import Story

    _, found = locate_task(folder, task_id)
    if json:
        whole = b"".join(line + b"\n" for _, line in read_numbered_lines(found / EVENTS))
        say_line(whole.decode("utf-8").removesuffix("\n"))
        return
    tell = Story()
    show(line for event in load_events(found) for line in tell(event))


def watch(task_id: str | None = TASK, plain: bool = PLAIN, folder: Path = FOLDER) -> None:
    """Follow a task as it runs, from any terminal. Ctrl-C leaves; the task continues."""
    from agentflow.view.progress import Progress, open_region

    git, found = locate_task(folder, task_id)
    medium = choose_medium(sys.stdout, os.environ)
    medium = medium.replace(live=medium.live and not plain)
    with Progress(sys.stdout, medium, open_region(found, medium, sys.stdout)) as progress:
        for event in follow_events(found, lambda: is_at_work(git.root)):
            progress(event)
    show(draw_status(load_snapshot(found), at_work=is_at_work(git.root)))


def evidence(
    task_id: str | None = TASK,
    evidence_id: str | None = typer.Argument(None, metavar="ID", help="One record, for example ev-0001."),
    export: Path | None = typer.Option(
        None,
        "--export",
        metavar="FILE",
        help="Write the whole record to a file, for `verify FILE` in another clone.",
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    from agentflow.store.bundle import pack_record

    if task_id is not None and task_id.startswith("ev-"):
        task_id, evidence_id = None, task_id
    _, record = locate_task(folder, task_id)
    if export is not None:
        pack_record(record, export)
        say(f"Wrote {export}. Check it in another clone with `agentflow verify FILE`.")
        return
    snapshot = load_snapshot(record)
    if evidence_id is None:
        tell_result(snapshot.evidence, format_evidence_table(snapshot), json=json)
        return
    found = snapshot.find(evidence_id)
    if found is None:
        hint = "agentflow evidence lists it"
        raise TaskNotFound(f"there is no evidence {evidence_id} in this task", hint=hint)
    tell_result(found, format_evidence(found, read_output_tail(snapshot.folder, evidence_id)), json=json)


HTML = typer.Option(None, "--html", metavar="FILE", help="Write it as one self-contained HTML file.")
MARKDOWN = typer.Option(False, "--markdown", help="Print it as a comment for a pull request.")


def report(
    task_id: str | None = TASK,
    html: Path | None = HTML,
    markdown: bool = MARKDOWN,
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    """Show the result of a task, or write it as an HTML page or a comment for a pull request.

    Without an option it prints the report that the task wrote when it ended. The page is one file with the
    verdict, the route, the diff, the checks, the work of each role, the evidence and the cost. It can be
    written while a task runs or waits, too.
    """
    git = open_home(folder, task_id)
    found = find_task_folder(git.root, task_id)
    if html is None and not markdown:
        text = _read_report(found)
        tell_result({"task_id": found.name, "report": text}, (text.rstrip("\n"),), json=json)
        return
    from agentflow.pages.page import read_task_page

    page = read_task_page(found, git, at_work=is_at_work(git.root))
    if html is not None:
        from agentflow.pages.render import render_document

        write_result(html, render_document(page))
    if markdown:
        from agentflow.pages.markdown import format_comment

        send(format_comment(page), sys.stdout)  # it is safe already, and its own breaks are unseen characters
    elif html is not None:
        say(f"Wrote {html}.")


def _read_report(found: Path) -> str:
    try:
        text = read_content(found / "report.md").decode("utf-8", "replace")
    except (OSError, InvalidFile):
        hint = f"agentflow status {found.name} shows where it stands; report --html works at any time"
        raise StateError(f"task {found.name} has no report yet", hint=hint) from None
    return make_visible(redact_text(text))


_COLUMNS = ("tasks", "verified", "caveat", "answered", "failed", "open", "cost", "time")
_NAME = 12
_WEEKS = 26
"""Weeks that are shown; `--json` has all."""
_TOOLS = 8
_REST = 24
"""Cells of a row of the picture beside its bar."""
_WIDEST = 100


def stats(
    plot: bool = typer.Option(False, "--plot", help="Show the weeks as a picture, or write it to FILE."),
    file: Path | None = typer.Argument(
        None, metavar="[FILE.svg]", help="Where --plot writes the picture, as SVG.", show_default=False
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> None:
    from agentflow.pages.stats import read_stats

    if file is not None and not plot:
        raise UsageError(f"{file}: a file is for --plot", hint=f"agentflow stats --plot {file}")
    found = read_stats(list_homes(open_repository(folder).root))
    if file is not None:
        from agentflow.pages.picture import draw_weeks
        from agentflow.pages.templates import fill_template

        write_result(file, fill_template("pages/stats.svg", picture=draw_weeks(found), stats=found))
    rows: Iterable[Line | str] = _draw_tables(found)
    if plot:
        rows = _draw_picture(found, min(find_width(sys.stdout) or _WIDEST, _WIDEST))
    tell_result(found, rows if file is None else (f"Wrote {file}.",), json=json)


def _draw_tables(stats: "Stats") -> Iterator[Line]:
    if not (stats.total.tasks or stats.unreadable):
        yield line(span('there is no task in this repository; agentflow task "…" starts one', Style.DIM))
        return
    yield from _draw_total(stats)
    weeks = stats.weeks[-_WEEKS:]
    yield from (BLANK, *tabulate(("week", *_COLUMNS), map(_fill_cells, weeks)))
    if len(stats.weeks) > len(weeks):
        yield line(
            span(f"{format_count(len(stats.weeks) - len(weeks), 'earlier week')} not shown", Style.DIM)
        )
    yield from (BLANK, *tabulate(("route", *_COLUMNS), map(_fill_cells, stats.routes)))
    tools = [f"{name} {count:,}" for name, count in list(stats.tools.items())[:_TOOLS]]
    if tools:
        yield from (BLANK, line(span("tools   ", Style.DIM), ", ".join(tools), hang=8))
    for note in stats.notes:
        yield line(span("! ", Style.WARN), note, hang=2)
    if stats.unreadable:
        yield line(span(f"! {format_count(len(stats.unreadable), 'task')} cannot be read", Style.WARN))


def _draw_total(stats: "Stats") -> Iterator[Line]:
    all_of = stats.total
    came = ", ".join(f"{count:,} {name}" for name, count in all_of.came.items() if count)
    yield line(span(format_count(all_of.tasks, "task"), Style.BOLD), f": {came}" if came else "", hang=2)
    attempts = f"{all_of.attempts / all_of.tasks:.1f} attempts a task" if all_of.tasks else ""
    work = f"{format_whole_seconds(all_of.seconds)} of work"
    spent = (f"cost {format_money(all_of.cost_usd)}", format_count(all_of.tokens, "token"), work, attempts)
    yield line(span(", ".join(filter(None, spent)), Style.DIM), hang=2)
    if all_of.unpriced:
        yield line(span(f"the cost of {format_count(all_of.unpriced, 'task')} is not known", Style.DIM))


def _fill_cells(one: "Numbers") -> list[Span]:
    counts = (one.tasks, *one.came.values())
    cells = (span(f"{count:,}") if count else span("·", Style.DIM) for count in counts)
    cost = format_money(one.cost_usd) if one.tasks else "-"
    rest = (cost, format_whole_seconds(one.seconds))
    return [span(one.name), *cells, *(span(text, Style.DIM) for text in rest)]


def _draw_picture(stats: "Stats", width: int) -> Iterator[Line]:
    if not stats.weeks:
        yield from _draw_tables(stats)
        return
    yield from (*_draw_total(stats), BLANK)
    from agentflow.pages.stats import ResultKind

    glyphs = {
        ResultKind.VERIFIED: span("█", Style.GOOD),
        ResultKind.CAVEAT: span("▓", Style.WARN),
        ResultKind.ANSWERED: span("▒", Style.ACCENT),
        ResultKind.NOT_VERIFIED: span("░", Style.BAD),
        ResultKind.OPEN: span("·", Style.DIM),
    }
    legend = (part for came, shape in glyphs.items() for part in (shape, span(f" {came}   ", Style.DIM)))
    yield line(span("tasks a week".ljust(_NAME + 2), Style.DIM), *legend, hang=_NAME + 2)
    most = max(week.tasks for week in stats.weeks)
    for week in stats.weeks[-_WEEKS:]:
        bar = _draw_bar(week.came, glyphs, (width - _NAME - _REST) / most)
        numbers = f"  {week.tasks:,}  {format_money(week.cost_usd)}" if week.tasks else "  0"
        yield line(span(week.name.ljust(_NAME + 2)), *bar, span(numbers, Style.DIM))


def _draw_bar(
    counts: Mapping["ResultKind", int], glyphs: Mapping["ResultKind", Span], scale: float
) -> Iterable[Span]:
    """Yield the parts of a bar; rounding never makes it longer or shorter as a whole."""
    done, so_far = 0, 0
    for name, shape in glyphs.items():
        so_far += counts[name]
        end = max(round(so_far * scale), done + (1 if counts[name] else 0))
        yield shape.replace(text=shape.text * (end - done))
        done = end
