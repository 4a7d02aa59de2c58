"""`memory` shows and changes what earlier tasks left; `learn` adds to it."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from agentflow.api.memory import change_memory, keep_learning, list_memory, require_entry
from agentflow.cli.arguments import FOLDER, JSON, TextCommand, make_group, read_words
from agentflow.cli.printing import say, show, tell_result
from agentflow.core.errors import StateError, UsageError
from agentflow.core.record import to_builtins
from agentflow.memory.entry import EntryKind, MemoryEntry
from agentflow.memory.place import look_into_memory
from agentflow.redact import to_one_line
from agentflow.view.text import Line, Style, line, span, tabulate
from agentflow.workspace.git import open_repository

memory = make_group()
_MOST_ID = 2**63 - 1
"""What SQLite can count."""
_NUMBER = typer.Argument(..., max=_MOST_ID, metavar="ID", help="The number of an entry, as `list` shows it.")
_NUMBERS = typer.Argument(None, max=_MOST_ID, metavar="ID…", help="The numbers of entries.")
_KIND = typer.Option(None, "--kind", help="Show only this kind.")
_MOST = typer.Option(50, "-n", min=1, max=_MOST_ID, metavar="N", help="Show at most N, the newest first.")
_TEXT = typer.Argument(None, metavar="TEXT", help="The text; it needs no quotes.")
_SHOWN = 200
_EMPTY = "No memory of this repository yet. Tasks add to it, and so does `agentflow learn TEXT`."


def _tabulate(found: Iterable[tuple[MemoryEntry, str]]) -> Iterator[Line]:
    rows = []
    for entry, why in found:
        against = f"set aside: {entry.against}" if entry.against else ""
        about = "  ".join(filter(None, (entry.origin, f"({why})" if why else "", against)))
        text = f"{to_one_line(entry.text, _SHOWN)}  {about}"
        rows.append((str(entry.id), entry.kind, span(text, Style.WARN if against else Style.PLAIN)))
    return tabulate(("id", "kind", "text and source"), rows)


@memory.command("list", epilog="Example: agentflow memory list --kind learning")
def list_entries(
    kind: EntryKind | None = _KIND, most: int = _MOST, json: bool = JSON, folder: Path = FOLDER
) -> None:
    """List what is remembered of this repository."""
    found = list_memory(open_repository(folder), most, kind=kind)
    rows = _tabulate((one, "") for one in found) if found else (_EMPTY,)
    tell_result(found, rows, json=json)


@memory.command("show", epilog="Example: agentflow memory show 12")
def show_entry(number: int = _NUMBER, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Show an entry with its source."""
    with look_into_memory(open_repository(folder)) as opened:
        found = require_entry(opened, number)
    ended = f"`{found.command}` ended with {found.exit_code}" if found.command else ""
    notes = (found.origin, ended, f"set aside: {found.against}" if found.against else "")
    tell_result(found, (f"{found.kind} {found.id}", *filter(None, notes), "", found.text), json=json)


@memory.command("search", cls=TextCommand, epilog="Example: agentflow memory search rounding of discounts")
def search_entries(
    words: list[str] | None = _TEXT, kind: EntryKind | None = _KIND, json: bool = JSON, folder: Path = FOLDER
) -> None:
    """Show the ten entries that fit a text best, and why, as a task would find them."""
    text = read_words(words or [], "agentflow memory search rounding of discounts")
    with look_into_memory(open_repository(folder)) as opened:
        hits = opened.search(text, 10, kind=kind) if opened else ()
    if opened and opened.fault:
        show((line(f"searched by words alone: {opened.fault}"),), sys.stderr)
    rows = _tabulate((hit.entry, hit.why) for hit in hits) if hits else ("No entry matches.",)
    tell_result([{**to_builtins(hit.entry), "why": hit.why} for hit in hits], rows, json=json)


@memory.command("forget", epilog="Example: agentflow memory forget 12 13")
def forget_entries(
    numbers: list[int] | None = _NUMBERS,
    task: str | None = typer.Option(None, "--task", metavar="TASK", help="Delete everything from one task."),
    everything: bool = typer.Option(False, "--all", help="Delete all of this repository's memory."),
    folder: Path = FOLDER,
) -> None:
    """Delete entries for good."""
    if bool(numbers) + bool(task) + everything != 1:
        raise UsageError("say what to forget", hint="one or more IDs, --task TASK, or --all")
    with change_memory(open_repository(folder)) as opened:
        for one in numbers or ():
            require_entry(opened, one)
        count = sum(opened.forget(id=one) for one in numbers) if numbers else opened.forget(task=task)
    if task and not count:
        raise StateError(f"no entry is from task {task}", hint="agentflow memory list --json names tasks")
    say(f"Deleted {count:,} {'entry' if count == 1 else 'entries'}.")


@memory.command(
    "edit", cls=TextCommand, epilog="Example: agentflow memory edit 12 amounts are rounded half up"
)
def edit_entry(number: int = _NUMBER, words: list[str] | None = _TEXT, folder: Path = FOLDER) -> None:
    """Replace an entry's text."""
    text = read_words(words or [], "agentflow memory edit 12 amounts are rounded half up")
    with change_memory(open_repository(folder)) as opened:
        found = require_entry(opened, number)
        opened.edit(found, text)
    say(f"Changed {found.kind} {number}.")


@memory.command("export", epilog="Example: agentflow memory export --kind learning > .claude/learnings.md")
def export_entries(kind: EntryKind | None = _KIND, json: bool = JSON, folder: Path = FOLDER) -> None:
    """Print what is remembered as Markdown or JSON; `--kind learning` fits into .claude/learnings.md.

    Markdown leaves out what is set aside.
    """
    found = list_memory(open_repository(folder), kind=kind)
    rows = (_format(one) for one in found if not one.against)
    tell_result(found, rows, json=json)


def _format(one: MemoryEntry) -> str:
    first, *rest = one.text.splitlines() or [""]
    return "\n".join((f"- {first} <!-- {one.kind}, {one.origin} -->", *(f"  {row}" for row in rest)))


def learn(
    words: list[str] | None = _TEXT,
    evidence: str = typer.Option(
        "", "--evidence", metavar="ID", help="What shows it: ev-0003 of the newest task, or TASK/ev-0003."
    ),
    folder: Path = FOLDER,
) -> None:
    """Keep a fact about this repository for later tasks.

    With --evidence, it is set aside where that command passes instead of failing in a later task, or the
    reverse.
    """
    text = read_words(words or [], "agentflow learn the tests need TZ=UTC")
    kept = keep_learning(open_repository(folder), text, evidence)
    say(f"Saved as entry {kept.id}. Later tasks will see it.")
