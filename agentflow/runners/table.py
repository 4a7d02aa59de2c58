"""All runners of tests: what makes a command of any of them report, and what any of them printed."""

import os
import pkgutil
import re
import shlex
from collections.abc import Callable, Sequence
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

from agentflow.core.check_command import CommandWords, edit_runs
from agentflow.core.evidence import TestCounts, TestResults
from agentflow.core.regex import regex
from agentflow.redact import strip_colours
from agentflow.runners.c import read_sums
from agentflow.runners.runner import TestRunner, add_counts, count_sum, join_results


@cache
def list_runners() -> tuple[TestRunner, ...]:
    """Return the runners that the modules beside this one define, in the order of their names."""
    place = Path(__file__).parent
    modules = (import_module(f"agentflow.runners.{each.name}") for each in pkgutil.iter_modules([str(place)]))
    return tuple(each for module in modules for each in vars(module).values() if isinstance(each, TestRunner))


def find_named_runners(command: str) -> tuple[TestRunner, ...]:
    """Return the runners that a command names, of those of which more is known than how they report."""
    return tuple(each for each in list_runners() if each.named and regex(each.named).search(command))


def tell_each_test(command: str) -> str:
    tellers = [each.tell for each in list_runners() if each.tell]

    def tell(words: CommandWords) -> CommandWords:
        return reduce(lambda found, ask: ask(found), tellers, words)

    return edit_runs(command, tell)


def keep_reports(command: str, scratch: Path) -> str:
    """Return a command that puts the reports which runners leave in the repository into a folder of ours."""
    mine = (each for each in list_runners() if any(start in command for start in each.one))
    found = [each.leaves for each in mine if each.leaves]
    if not found:
        return command
    began, place = scratch / "began", scratch / "left"
    began.touch()
    place.mkdir()
    paths = " -o ".join(f"-path {shlex.quote(each)}" for each in found)
    copy = """'for f; do cp "$f" "$0/$(printf %s "$f" | tr / _)"; done'"""
    find = f"find . \\( {paths} \\) -newer {shlex.quote(str(began))} -exec sh -c {copy}"
    return f"({command}); r=$?; {find} {shlex.quote(str(place))} {{}} +; exit $r"


def make_variables(scratch: Path, known: Callable[[str], str]) -> dict[str, str]:
    """Return the variables by which runners report into a folder; `known` tells what they hold anyway."""
    variables = (pair for each in list_runners() for pair in each.variables.items())
    given = {name: value.format(place=scratch) for name, value in variables}
    return {
        name: (os.pathsep if name == "RUBYLIB" else " ").join(filter(None, (value, known(name))))
        for name, value in given.items()
    }


def get_form(command: str) -> str:
    """Return how a command runs one test: `{}` for the command, placeholders in capitals; or nothing."""
    forms = (
        form
        for each in list_runners()
        for start, form in each.one.items()
        if regex(rf"(?<!\w){re.escape(start)}").search(command)
    )
    return next(forms, "")


def drop_colours(output: str) -> str:
    return strip_colours(output).replace("\r\n", "\n")


def read_printed(text: str, *, is_reported: bool = False) -> TestResults | None:
    """Return what all runners printed of their tests, in a text without colours; None where none did.

    Where a report tells of tests, mere sums are left aside, and so is what runners print that report.
    """
    rows = text.splitlines()
    readers = [each.read for each in list_runners() if each.read and not (is_reported and each.is_reported)]
    readers += [] if is_reported else [_read_totals]
    found = join_results(each for read in readers if (each := read(rows)))
    return found or (None if is_reported else read_sums(rows))


def _read_totals(rows: Sequence[str]) -> TestResults | None:
    numbers: list[TestCounts] = []
    for runner in list_runners():
        pattern = regex(runner.total) if runner.total else None
        found = [count_sum(each) for row in rows if pattern and (each := pattern.fullmatch(row))]
        numbers += found if runner.adds_up else found[-1:]
    return TestResults(counts=add_counts(numbers)) if numbers else None
