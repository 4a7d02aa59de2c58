"""What the program told a role, read from the Markdown of its first message."""

import re
from collections.abc import Iterable, Iterator

from agentflow.core.record import Record

_FENCE = re.compile(r"^(`{3,}|~{3,})")
_HEADING = re.compile(r"^## +(.+?)\s*$")
_FAILED = re.compile(r"^Iteration (\d+) failed")
_CHECK = re.compile(
    r"^- (?P<name>\w+): (?P<color>red|green)\b.*?\bevidence (?P<id>ev-\d+)"
    r"(?:, output in (?P<output>\.claude/agentflow/[\w-]+/evidence/ev-\d+\.out))?"
)
_NOT_RUN = re.compile(r"^- (\w+): not run (\(.+\))$")
Sections = tuple[tuple[str, list[str]], ...]


class Shown(Record):
    """One check as the brief tells of it."""

    name: str
    is_green: bool
    evidence: str
    output: str | None
    """Path of its output; the record and the test ids lie beside it."""


class Brief(Record):
    """The parts of a brief that matter here."""

    before: tuple[Shown, ...]
    failed: tuple[tuple[Shown, ...], ...]
    """The checks of each failed iteration, in order."""
    after: tuple[Shown, ...]
    not_run: tuple[str, ...] = ()
    """Checks that lack a tool, and which one."""


def read_brief(text: str) -> Brief:
    """Return what a brief says; what is quoted between fences is never taken for its own words."""
    sections = tuple(_sections(text))
    failed = [(int(found[1]), body) for title, body in sections if (found := _FAILED.match(title))]
    return Brief(
        before=_shown(_below(sections, "Checks before")),
        failed=tuple(_shown(body) for _, body in sorted(failed)),
        after=_shown(_below(sections, "Checks after")),
        not_run=tuple(
            f"{found[1]} {found[2]}"
            for line in _below(sections, "Checks before")
            if (found := _NOT_RUN.match(line))
        ),
    )


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Return each second-level heading with the lines below it that are not quoted."""
    title, body = "", list[str]()
    for line in _own(text):
        heading = _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        yield title, body
        title, body = heading[1], []
    yield title, body


def _own(text: str) -> Iterator[str]:
    """Return each line that neither stands in a fence nor is one."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            fence = "" if _closes(line.rstrip(), fence) else fence
        elif found:
            fence = found[1]
        else:
            yield line


def _closes(bare: str, fence: str) -> bool:
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def _below(sections: Sections, title: str) -> Iterator[str]:
    """Return the lines below each heading that begins so."""
    return (line for name, body in sections if name.startswith(title) for line in body)


def _shown(lines: Iterable[str]) -> tuple[Shown, ...]:
    return tuple(
        Shown(
            name=found["name"],
            is_green=found["color"] == "green",
            evidence=found["id"],
            output=found["output"],
        )
        for line in lines
        if (found := _CHECK.match(line))
    )
