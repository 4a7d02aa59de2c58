"""Questions and approvals at a terminal."""

import os
import sys
from collections.abc import Iterator

from agentflow.api.decisions import record_decision
from agentflow.core.errors import UsageError
from agentflow.core.pending import (
    APPROVED,
    Answer,
    Consent,
    Pending,
    PendingKind,
    Question,
    read_answer,
    to_letter,
)
from agentflow.core.record import encode
from agentflow.redact import visible
from agentflow.store.tasks import TaskStore
from agentflow.view.status import draw_changed_checks
from agentflow.view.text import Line, Style, choose, line, send, span, write

SUSPEND = "s"
_MAX_LINES = 40
"""Of one value; all of it is in `agentflow status --json`."""
_INDENT = "    "


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
    send(f"no sandbox: {visible(reason)}\nRun commands with all your rights? [y/N] ", sys.stderr)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def settle(store: TaskStore) -> bool:
    """Ask about everything that is pending; return False once the person would rather leave it waiting."""
    for item in store.task.pending:
        write(draw_item(item), sys.stderr, choose(sys.stderr, os.environ))
        try:
            decision = _approval(item) if item.kind in APPROVED else _answer(item)
        except (KeyboardInterrupt, EOFError):
            send("\n", sys.stderr)
            return False
        if decision is None:
            return False
        record_decision(store, item, decision.replace(by="a person at the terminal"))
    return True


def _approval(item: Pending) -> Answer | None:
    reader = "the report says" if item.kind is PendingKind.SURFACE else "the model reads"
    while True:
        said = _read_line("approve? y = yes, n = no, s = leave it waiting [s]: ").lower()
        if said in {"y", "yes"}:
            return Answer(approved=True)
        if said in {"n", "no"}:
            return Answer(approved=False, text=_read_line(f"why not? {reader} this: "))
        if said in {"", SUSPEND}:
            return None


def _answer(item: Pending) -> Answer | None:
    """Return the answer to all questions, asked again until it is one; None leaves them waiting."""
    words = "an option" if item.is_closed else "an option or your own words"
    while True:
        said = []
        for question in item.questions:
            write(_question(question), sys.stderr, choose(sys.stderr, os.environ))
            typed = _read_line(f"answer, {words}; s = leave it waiting [{item.default}]: ")
            if typed.lower() == SUSPEND:
                return None
            said.append(typed or item.default)
        try:
            return read_answer(item, said)
        except UsageError as error:
            send(f"{visible(str(error))}{f'; {error.hint}' if error.hint else ''}\n", sys.stderr)


def _read_line(prompt: str) -> str:
    """Return a line that the person types. Raises EOFError at the end of the terminal."""
    send(prompt, sys.stderr)
    try:
        typed = sys.stdin.readline()
    except OSError:
        raise EOFError from None
    if not typed:
        raise EOFError
    return typed.encode("utf-8", "replace").decode().strip()


def draw_item(item: Pending) -> Iterator[Line]:
    """Yield what is to be decided, with the whole input: what is approved is what was seen."""
    if item.kind is PendingKind.SURFACE:
        yield from draw_changed_checks(item)
        return
    yield line(span("? ", Style.WARN), span(f"{item.kind} {item.id}: {item.tool or ''}", Style.BOLD))
    for key, value in item.shown_input.items():
        yield from _value(key, value if isinstance(value, str) else encode(value).decode())


def _question(question: Question) -> Iterator[Line]:
    if question.text:
        yield from _value("", question.text)
    for place, option in enumerate(question.options):
        yield line(_INDENT, span(f"{to_letter(place)}  ", Style.ACCENT), span(option), hang=7)


def _value(key: str, text: str) -> Iterator[Line]:
    rows = text.split("\n")
    head = [span(f"{key}: ", Style.DIM)] if key else []
    yield line("  ", *head, span(rows[0]), hang=4)
    for row in rows[1:_MAX_LINES]:
        yield line(_INDENT, span(row), hang=4)
    if len(rows) > _MAX_LINES:
        more = f"… {len(rows) - _MAX_LINES} more lines, see agentflow status --json"
        yield line(_INDENT, span(more, Style.WARN))
