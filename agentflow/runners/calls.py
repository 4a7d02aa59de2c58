"""What a command of tests comes to: the steps of its scripts, and those of them that run tests."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agentflow.core.check_command import join_parts, split_command
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.runners.runner import TestRunner
from agentflow.runners.scripts import ReadFile, find_script
from agentflow.runners.table import list_runners

_MOST_SCRIPTS = 6
"""A script may call itself."""
_QUOTED = r"""'[^']*'|"[^"]*"|\\."""
_STEP = regex(rf"""(?:{_QUOTED}|[^'"\\&]|(?<!&)&(?!&))+""")
_PIPED = regex(rf"""(?:{_QUOTED}|[^'"\\|]|\|\|)+""")
_REST = r"""(?:'[^']*'|"[^"`$]*"|[^;&|<>()`$'"])*"""
_FORMATTER = regex(r"[\w@./ =:-]+")
_COVERAGE = regex(r"(?:npx )?(?:nyc|c8)(?: --?[\w-]+(?:=\S+)?)* ")
_BEGIN = (
    r"(?:(?:npx )?cross-env )?(?:\w+=[\w./:-]+ )*"
    rf"(?P<coverage>{_COVERAGE.pattern})?(?:(?:npx|bunx) (?:--no-install )?|pnpm (?:exec )?|yarn )?"
)
_OWN_REPORT = regex(
    r"--(?:json|outputFile|reporters?|reporter-outfile|junit-path|log-junit)\b|--watch(?!=false)| -- "
)


class Call(Record):
    """One step, which runs tests if its runner is known."""

    command: str
    runner: TestRunner | None = None
    options: str | None = None
    """What stands between the whole command and options for this step; None where none reach it."""
    is_edited: bool = False
    """It is without what hides its tests: a formatter behind a pipe, a reporter of its own."""
    is_script: bool = False
    """A script of package.json has it, which finds the programs of its packages."""

    @property
    def form(self) -> str:
        """How its runner runs one test; empty where that is not known."""
        return next(iter(self.runner.one.values()), "") if self.runner else ""

    @property
    def bare(self) -> str:
        """It without what measures coverage, of which some tests have too little, and what only looks."""
        if self.runner is None:
            return self.command
        found = _COVERAGE.sub("", self.command, count=1)
        return regex(self.runner.program).sub(rf"\g<0>{self.runner.bare}", found, count=1)


def list_calls(command: str, read: ReadFile, folder: str = "", most: int = _MOST_SCRIPTS) -> tuple[Call, ...]:
    """Return the steps of a command in a folder, each script by what it runs."""
    texts = _STEP.findall(command)
    texts = [text.strip() for text in texts] if "&&".join(texts) == command else [command]
    found = list[Call]()
    for at, text in enumerate(texts):
        script = find_script(text, read, folder) if most else None
        if script is None:
            found.append(_read_call(text, is_last=at == len(texts) - 1))
            continue
        for body in script.bodies:
            reaches = body == script.body and at == len(texts) - 1
            for call in list_calls(body, read, folder, most - 1):
                is_open = reaches and call.options is not None and script.separator is not None
                options = f"{script.separator}{call.options}" if is_open else None
                found.append(call.replace(options=options, is_script=True))
    return tuple(found)


def _read_call(text: str, *, is_last: bool) -> Call:
    start, *others = (each.strip() for each in _PIPED.findall(text) or [text])
    runner = find_runner(start) if all(map(_FORMATTER.fullmatch, others)) else None
    if runner is None:
        return Call(command=text)
    shown = regex(runner.prints).sub("", start) if runner.prints else start
    options = "" if is_last and not others else None
    return Call(command=shown, runner=runner, options=options, is_edited=bool(others) or shown != start)


def find_runner(call: str) -> TestRunner | None:
    """Return the runner that a step is one run of."""
    found = (
        each
        for each in list_runners()
        if each.program and regex(rf"{_BEGIN}(?:{each.program})(?: {_REST})?").fullmatch(call)
    )
    return next(found, None)


def join_calls(calls: Iterable[Call], folder: str = "") -> str:
    """Return one command that runs steps one after the other in a folder, as a script would."""
    steps = tuple(calls)
    up = ("../" * depth for depth in range(folder.count("/") + 1))
    places = ":".join(f"$PWD/{each}node_modules/.bin" for each in up)
    start = (f'export PATH="{places}:$PATH"',) if any(each.is_script for each in steps) else ()
    return " && ".join((*start, *(each.command for each in steps)))


def add_reports(command: str, read: ReadFile, scratch: Path) -> str:
    """Return a command in which each call of a known runner tells of its tests: in a report, or in TAP."""
    parts = split_command(command)
    numbers = (scratch / (f"runner-{at}" if at else "runner") for at in range(99))
    return join_parts(
        part.replace(command=_report(part.command, part.folder, read, numbers)) for part in parts
    )


def _report(command: str, folder: str, read: ReadFile, places: Iterator[Path]) -> str:
    calls = list_calls(command, read, folder)
    asked = {at: _ask(each, next(places)) for at, each in enumerate(calls) if _may_report(each)}
    hidden = [each for each in calls if each.is_edited]
    if not (asked or hidden):
        return command
    (at, options), *others = asked.items() or [(0, "")]
    reach = calls[at].options
    if not (others or hidden) and reach is not None:
        return f"{command}{reach}{options}"
    told = (each.replace(command=each.command + asked.get(at, "")) for at, each in enumerate(calls))
    return join_calls(told, folder)


def _may_report(call: Call) -> bool:
    return bool(call.runner and call.runner.report and not _OWN_REPORT.search(call.command))


def _ask(call: Call, place: Path) -> str:
    assert call.runner is not None
    report, folder = shlex.quote(str(place)), shlex.quote(str(place.parent))
    return f" {call.runner.report.format(place=report, folder=folder)}"


Narrow = Callable[[Call], str]
"""How a call of a known runner is made to run some tests."""


def list_ways(command: str, read: ReadFile, folder: str, narrow: Narrow) -> tuple[str, ...]:
    """Return commands for the first call of a runner: alone, then behind ever more of the steps before it."""
    calls = list_calls(command, read, folder)
    at = next((at for at, each in enumerate(calls) if each.runner), None)
    if at is None:
        return ()
    run = calls[at].replace(command=narrow(calls[at]))
    return tuple(join_calls((*calls[start:at], run), folder) for start in range(at, -1, -1))
