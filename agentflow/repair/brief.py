"""What the program told a role, read from the Markdown of its first message."""

import re
from collections.abc import Iterator

from agentflow.core.record import Record

_FENCE = re.compile(r"^(`{3,}|~{3,})")
_HEADING = re.compile(r"^## +(.+?)\s*$")
_FAILED = re.compile(r"^Iteration (\d+) failed")
_CHECK = re.compile(
    r"^- (?P<name>\w+): (?P<color>red|green)\b.*?\bevidence (?P<id>ev-\d+)"
    r"(?:, output in (?P<output>\.claude/agentflow/[\w-]+/evidence/ev-\d+\.out))?"
)
_NOT_RUN = re.compile(r"^- (\w+): not run (\(.+\))$")
_COMMAND = re.compile(r"^\s+`+\s?(.+?)\s?`+\s*$")
_FAILING = re.compile(r"^\s+failing: (.+)$")
_MORE = re.compile(r" and \d+ more$")


class Shown(Record):
    """One check as the brief tells of it."""

    name: str
    is_green: bool
    evidence: str
    output: str | None
    """Path of its output; the record and the test ids lie beside it."""
    command: str = ""
    failing: tuple[str, ...] = ()


class Brief(Record):
    """The parts of a brief that matter here."""

    task: str
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
        task=text.removeprefix("# Task").partition("\n## ")[0].strip(),
        before=_checks(sections, "Checks before"),
        failed=tuple(tuple(_shown(body)) for _, body in sorted(failed)),
        after=_checks(sections, "Checks after"),
        not_run=tuple(
            said for title, body in sections if title.startswith("Checks before") for said in _not_run(body)
        ),
    )


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Return each second-level heading with the lines below it."""
    title, body = "", list[str]()
    for line, is_quoted in _lines(text):
        heading = None if is_quoted else _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        yield title, body
        title, body = heading[1], []
    yield title, body


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return each line, and whether it stands in a fence or is one."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            yield line, True
            fence = "" if line.rstrip() == fence or _closes(line, fence) else fence
        else:
            fence = found[1] if found else ""
            yield line, bool(found)


def _closes(line: str, fence: str) -> bool:
    bare = line.rstrip()
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def _checks(sections: tuple[tuple[str, list[str]], ...], title: str) -> tuple[Shown, ...]:
    return tuple(shown for name, body in sections if name.startswith(title) for shown in _shown(body))


def _shown(body: list[str]) -> Iterator[Shown]:
    current: Shown | None = None
    for line, is_quoted in _lines("\n".join(body)):
        if is_quoted:
            continue
        if found := _CHECK.match(line):
            if current is not None:
                yield current
            current = Shown(
                name=found["name"],
                is_green=found["color"] == "green",
                evidence=found["id"],
                output=found["output"],
            )
        elif current is not None:
            current = _detailed(current, line)
    if current is not None:
        yield current


def _not_run(body: list[str]) -> Iterator[str]:
    for line, is_quoted in _lines("\n".join(body)):
        if not is_quoted and (found := _NOT_RUN.match(line)):
            yield f"{found[1]} {found[2]}"


def _detailed(shown: Shown, line: str) -> Shown:
    if found := _COMMAND.match(line):
        return shown.replace(command=found[1])
    if found := _FAILING.match(line):
        return shown.replace(failing=tuple(_MORE.sub("", found[1]).split(", ")))
    return shown
