"""Questions and approvals at a terminal."""

import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from shlex import split as split_words
from typing import Any

from agentflow.api.decisions import parse_edited_input, record_decision
from agentflow.cli.printing import show
from agentflow.core.errors import UsageError
from agentflow.core.pending import (
    APPROVED,
    EXPIRED,
    Answer,
    Consent,
    Pending,
    PendingKind,
    read_answer,
    to_letter,
)
from agentflow.core.record import encode
from agentflow.process import run_attended
from agentflow.redact import make_visible
from agentflow.store.tasks import TaskStore
from agentflow.view.status import diff_call, draw_changed_checks, draw_diff, draw_diff_row, tell_terms
from agentflow.view.text import Line, Span, Style, line, send, span
from agentflow.view.words import tell_approvals_left

_LATER = "later"
_VIA = "at the terminal"
_EDITED = {"Bash": "command", "Edit": "new_string", "Write": "content"}
"""The part of a call's input that a person would change."""
_MAX_LINES = 40
"""Shown lines of one value, until the person asks for all of it."""
_INDENT = "    "
_NO_HEAD = span("")


def is_attended(consent: Consent) -> bool:
    """Return whether a person can be asked: stdin and stderr are a terminal, and we are in its foreground."""
    if consent is not Consent.SUSPEND or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def agree(reason: str) -> bool:
    """Ask once whether commands may run without a sandbox, where there is somebody to ask."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    send(f"no sandbox: {make_visible(reason)}\nRun commands with all your rights? [y/N] ", sys.stderr)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


class StandingApprovals:
    """Approvals that hold for a whole session, and the person's editor for the input of a call."""

    def __init__(self, edit: Callable[[str], str] | None = None) -> None:
        self._calls: set[str] = set()
        self.edit = edit

    def keep(self, item: Pending) -> None:
        self._calls.add(item.identity)

    def has(self, item: Pending) -> bool:
        return item.kind is PendingKind.APPROVAL and item.needed == 1 and item.identity in self._calls


def settle(store: TaskStore, approvals: StandingApprovals | None = None) -> bool:
    """Ask about everything that is pending; return False once the person leaves something waiting."""
    root = store.folder.parents[2]
    for item in store.task.pending:
        if approvals is not None and approvals.has(item):
            record_decision(store, item, Answer(approved=True, via=f"{_VIA}, for this session"))
            continue
        try:
            decision = _Approval(item, root, approvals).ask() if item.kind in APPROVED else _ask(item, store)
        except TimeoutError:
            decision = EXPIRED
        except (KeyboardInterrupt, EOFError):
            send("\n", sys.stderr)
            decision = None
        if decision is None:
            send("  Not decided yet. /resume or agentflow resume asks again.\n", sys.stderr)
            return False
        left = record_decision(store, item, decision if decision is EXPIRED else decision.replace(via=_VIA))
        if store.task.waiting.answers.get(item.id, decision).by == EXPIRED.by:
            send(f"  Denied: {EXPIRED.text} ({EXPIRED.by}).\n", sys.stderr)
        if left:
            how = item.tell_how_to_decide(store.task.task_id)
            send(f"  {tell_approvals_left(left)}: {how}\n", sys.stderr)
            return False
    return True


class _Approval:
    """The question about one call, or about changed checks, until it is decided."""

    def __init__(self, item: Pending, root: Path, approvals: StandingApprovals | None) -> None:
        self._item = item
        self._root = root
        self._approvals = approvals
        self._is_call = item.kind is PendingKind.APPROVAL
        self._may_stand = self._is_call and item.needed == 1
        self._given: dict[str, Any] | None = None
        """The input as the person changed it."""

    def ask(self) -> Answer | None:
        """Return the decision; None leaves it waiting."""
        self._draw(_MAX_LINES)
        while True:
            show([self._list_choices()], sys.stderr)
            match typed := _read_line("approve? [l]: ", self._item.expires_at).lower():
                case "y" | "yes":
                    name = _read_line("Your name: ") if self._item.needed > 1 else ""
                    if name or self._item.needed == 1:
                        return Answer(approved=True, input=self._given, by=name)
                    send(f"  {self._item.needed} people have to approve this, each by name.\n", sys.stderr)
                case "a" if self._approvals is not None and self._may_stand:
                    self._approvals.keep(self._item)
                    return Answer(approved=True, input=self._given, comment="for this session")
                case "n" | "no":
                    reader = "the model reads" if self._is_call else "the report says"
                    return Answer(approved=False, text=_read_line(f"why not? {reader} this: "))
                case "e" if self._is_call:
                    self._edit()
                case "m":
                    self._draw(None)
                case "" | "l":
                    return None
                case _:
                    send(f"  {make_visible(repr(typed))} is none of these.\n", sys.stderr)

    def _list_choices(self) -> Line:
        choices = ["y yes", "n no"]
        if self._is_call:
            choices += ["e edit it"]
            choices += ["a always this session"] if self._approvals is not None and self._may_stand else []
        return line("  " + " · ".join((*choices, "m show all", "l later")), hang=2)

    def _draw(self, most: int | None) -> None:
        rows = tuple(_draw_item(self._item, self._root, most))
        if most is None:
            _show_pages(rows)
        else:
            show(rows, sys.stderr)

    def _edit(self) -> None:
        key = _EDITED.get(self._item.tool or "", "")
        value = self._item.input.get(key)
        before = value if isinstance(value, str) else encode(self._item.input).decode()
        edit = self._approvals.edit if self._approvals is not None else None
        said = (
            edit(before) if edit is not None else _read_line(f"{key or 'input, as JSON'}, instead of this: ")
        )
        try:
            changed = {**self._item.input, key: said} if isinstance(value, str) else parse_edited_input(said)
        except UsageError as error:
            send(f"{make_visible(str(error))}\n", sys.stderr)
            return
        if not said.strip() or changed is None:
            return
        self._given = changed
        self._item = self._item.replace(input=changed)
        self._draw(_MAX_LINES)


def _show_pages(rows: tuple[Line, ...]) -> None:
    height = max(5, shutil.get_terminal_size().lines - 2)
    for start in range(0, len(rows), height):
        show(rows[start : start + height], sys.stderr)
        is_last = start + height >= len(rows)
        if not is_last and _read_line("Enter = more, q = enough [more]: ").lower() == "q":
            return


def _ask(item: Pending, store: TaskStore) -> Answer | None:
    show(_draw_item(item, store.folder.parents[2]), sys.stderr)
    words = "an option" if item.is_closed else "an option or your own words"
    is_plan = item.kind is PendingKind.PLAN
    words += "; e edits it" if is_plan else ""
    while True:
        said = []
        for question in item.questions:
            if question.text:
                show(list(_draw_text(question.text))[:_MAX_LINES], sys.stderr)
            show(
                (
                    line(_INDENT, span(f"{to_letter(place)}  ", Style.ACCENT), span(option), hang=7)
                    for place, option in enumerate(question.options)
                ),
                sys.stderr,
            )
            typed = _read_line(f"answer, {words}; later = decide later [{item.default}]: ")
            if typed.lower() == _LATER:
                return None
            if typed.lower() == "e" and is_plan:
                _edit_file(store.locate_plan(item.id))
                break
            said.append(typed or item.default)
        if not said:
            continue
        try:
            return read_answer(item, said)
        except UsageError as error:
            send(f"{make_visible(str(error))}{f'; {error.hint}' if error.hint else ''}\n", sys.stderr)


def _edit_file(place: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        run_attended((*split_words(editor), str(place)))
    except (OSError, ValueError) as error:
        send(make_visible(f"{editor}: {error}\nSet EDITOR, or edit {place}\n"), sys.stderr)
        return
    show(_draw_text(place.read_text("utf-8", "replace").rstrip()), sys.stderr)


def _read_line(prompt: str, until: str | None = None) -> str:
    """Return the line a person types. Raises TimeoutError where that is not before a time."""
    send(prompt, sys.stderr)
    if until is not None:
        left = datetime.fromisoformat(until).timestamp() - time.time()
        if not select.select([sys.stdin], [], [], max(0, left))[0]:  # a terminal gives a line at a time
            send("\n", sys.stderr)
            raise TimeoutError
    try:
        typed = sys.stdin.readline()
    except OSError:
        raise EOFError from None
    if not typed:
        raise EOFError
    return typed.encode("utf-8", "replace").decode().strip()


def _draw_item(item: Pending, root: Path, most: int | None = None) -> Iterator[Line]:
    if item.kind is PendingKind.SURFACE:
        yield from (*draw_changed_checks(item), *draw_diff(str(item.input["diff"]).splitlines(), most))
        return
    yield line(span("? ", Style.WARN), span(item.tell_what_waits(), Style.BOLD))
    if terms := tell_terms(item):
        yield line("  ", span(terms, Style.DIM), hang=2)
    if item.kind is PendingKind.APPROVAL and (rows := diff_call(item, root)):
        yield line("  ", span(str(item.input["file_path"]), Style.ACCENT))
        yield from _cut_rows((draw_diff_row(row, _INDENT) for row in rows), most)
        return
    for key, value in item.shown_input.items():
        text = value if isinstance(value, str) else encode(value).decode()
        is_command = item.tool == "Bash" and key == "command"
        head = span("$ ", Style.DIM) if is_command else span(f"{key}: ", Style.DIM)
        style = Style.ACCENT if is_command else Style.PLAIN
        yield from _cut_rows(_draw_text(text, head, style), most)


def _cut_rows(rows: Iterable[Line], most: int | None) -> Iterator[Line]:
    known = list(rows)
    yield from known[:most]
    if most is not None and len(known) > most:
        yield line(_INDENT, span(f"… {len(known) - most} more lines, m shows them", Style.WARN))


def _draw_text(text: str, head: Span = _NO_HEAD, style: Style = Style.PLAIN) -> Iterator[Line]:
    first, *more = text.split("\n")
    yield line("  ", head, span(first, style), hang=4)
    for row in more:
        yield line(_INDENT, span(row, style), hang=4)
