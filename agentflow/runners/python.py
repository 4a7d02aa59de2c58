"""Python: pytest, unittest, and unittest as Django starts it."""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from agentflow.core.check_command import CommandPart, CommandWords, edit_runs
from agentflow.core.evidence import TestOutcome, TestResults
from agentflow.core.regex import regex
from agentflow.runners.import_errors import find_import_error
from agentflow.runners.runner import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    Outcomes,
    TestRunner,
    find_worst,
    make_results,
)

_QUIET = "-q"
_KEPT = ("--doctest-modules", "--doctest-glob=", "--import-mode=")
"""Options of pytest that decide how tests are found; so does `-m` with its value."""
_PLACE = regex(r"--ignore=\S+|[\w./][\w./@%+:,-]*")
_SEARCHES = (("discover", "-v"), ("-v", "2"))
_VERBOSE = ("-v", "--verbose", "--verbosity")
_STARTER = regex(r"(?:\b(?:uv run --no-sync|poetry run) )?(?:[^\s;{}]*/)?\bpython[\d.]* (?:-m )?")
_IMPORT_PATH = regex(r"\bPYTHONPATH=(\S*)")


class PythonRun(NamedTuple):
    """A run of tests that can be narrowed, by the words of its command."""

    start: CommandWords
    """What starts it, with what decides how tests are found."""
    search: CommandWords
    """Where pytest looks for them, or how unittest does."""
    is_pytest: bool

    @property
    def is_django(self) -> bool:
        return self.search[:2] == _SEARCHES[1]


@cache
def read_python_run(part: CommandPart) -> PythonRun | None:
    """Return how a part of a check runs Python tests; None where it does more, or other things."""
    words = part.words
    at = _find_quiet(words)
    if at and all(map(_PLACE.fullmatch, words[(end := _skip_kept(words, at)) :])):
        return PythonRun(words[:end], words[end:], is_pytest=True)
    start = _find_unittest(words)
    is_known = start > 2 and words[start : start + 2] in _SEARCHES
    return PythonRun(words[:start], words[start:], is_pytest=False) if is_known else None


def _find_quiet(words: CommandWords) -> int:
    """Return the place behind `pytest -q` in a command; 0 where it has none."""
    pairs = enumerate(pairwise(words))
    found = (at + 2 for at, (name, option) in pairs if _is(name, "pytest") and option == _QUIET)
    return next(found, 0)


def _skip_kept(words: CommandWords, at: int) -> int:
    while at < len(words) and (words[at].startswith(_KEPT) or words[at] == "-m"):
        at += 1 + (words[at] == "-m")
    return at


def _find_unittest(words: CommandWords) -> int:
    """Return the place behind the words that start unittest; 0 where there are none."""
    found = (
        at + 2
        for at, (one, two) in enumerate(pairwise(words))
        if (one, two) == ("-m", "unittest") or (_is(one, "manage.py") and two == "test")
    )
    return next(found, 0)


def _is(word: str, name: str) -> bool:
    return word.rpartition("/")[2] == name


def name_each_test(words: CommandWords) -> CommandWords:
    at = _find_unittest(words)
    if not at or any(word.partition("=")[0] in _VERBOSE for word in words[at:]):
        return words
    is_discovery = words[at - 1] == "unittest" and words[at : at + 1] == ("discover",)
    option = ("-v",) if words[at - 1] == "unittest" else ("-v", "2")
    return (*words[: at + is_discovery], *option, *words[at + is_discovery :])


def add_options(command: str, options: str) -> str:
    def add(words: CommandWords) -> CommandWords:
        at = _find_quiet(words)
        return (*words[:at], options, *words[at:]) if at else words

    return edit_runs(command, add)


def keep_root(part: CommandPart, find_root: Callable[[str], str]) -> CommandPart:
    """Return a part in which pytest has root and settings of a whole run, whatever places it is given.

    A nearer manifest would be taken else, and give other ids to the same tests.
    """
    at = _find_quiet(part.words)
    is_some = at and any(word[0].isalnum() or word[0] in "._" for word in part.words[at:])
    return part.replace(command=add_options(part.command, find_root(part.folder))) if is_some else part


def add_import_path(command: str, folder: str) -> str:
    """Return a command that sets an import path of its own, with a folder in front of it."""
    return _IMPORT_PATH.sub(
        lambda found: f"PYTHONPATH={os.pathsep.join(filter(None, (folder, found[1])))}", command
    )


def list_import_folders(part: CommandPart) -> tuple[str, ...]:
    """Return the folders that a part of a check imports from beside the root, inner ones first."""
    named = [folder for value in _IMPORT_PATH.findall(part.command) or ["src"] for folder in value.split(":")]
    own = [part.folder[:-1]] if part.folder else []
    return (*(f"{part.folder}{folder}" for folder in named if folder), *own)


def drop_interpreter(command: str) -> str:
    """Return a command without the part that starts Python, which differs between machines."""
    return _STARTER.sub("", command)


def run_file(part: CommandPart, path: str) -> CommandPart | None:
    """Return a part that runs only the tests of a file in its folder; pytest prints no tracebacks of them."""
    run, name = read_python_run(part), shlex.quote(path.removeprefix(part.folder))
    if run is None:
        return None
    option = "--tb=no" if run.is_pytest else "-v"
    if run.is_django:  # which takes modules
        option, name = "-v 2", name.removesuffix(".py").replace("/", ".")
    return part.replace(command=" ".join((*run.start, option, name)))


_SUMMARY = regex(r"(?m)^-{70}\nRan (\d+) tests? in \d+\.\d+s$")
_DOTTED = r"\((?P<dotted>[\w.<>]+)\)"
_HEADER = regex(
    r"(?m)(?<![\w.])"
    r"(?P<name>test\w*|runTest|(?:setUp|tearDown)(?:Class|Module)|[\w.]+(?= \(unittest\.loader\.)"
    r"|\w+(?= \([\w.]+\)\nDoctest: ))"
    rf" {_DOTTED}(?: [\[(][^\n]*?)?(?:\n[^\n]*?)? \.\.\. "
)
_BLOCK = regex(rf"(?m)^={{70}}\n(?P<kind>ERROR|FAIL|UNEXPECTED SUCCESS): (?P<name>\S+) {_DOTTED}")
_STATUS = r"(?P<word>ok|expected failure|unexpected success|skipped (['\"]).*\2)$"
_WHOLE_LINE = regex(rf"(?m)^{_STATUS}")
_LINE_END = regex(rf"(?m){_STATUS}")
_IN_FLOW = MappingProxyType(
    {
        "ok": PASSED,
        "expected": SKIPPED,  # a red test marked so would else turn green
        "unexpected": FAILED,
        "skipped": SKIPPED,
    }
)


def read_verbose_unittest(text: str) -> TestResults:
    """Return the tests of one or several runs; nothing unless the last one printed its summary."""
    pieces = _SUMMARY.split(text)
    if len(pieces) == 1 or _HEADER.search(pieces[-1]):
        return TestResults()
    found, errors = defaultdict[str, list[TestOutcome]](list), defaultdict[str, list[str]](list)
    for part, number in zip(pieces[:-1:2], pieces[1::2], strict=True):
        for name, outcomes in _outcomes(part, ran=int(number)).items():
            found[name].append(find_worst(outcomes))
    blocks = list(_BLOCK.finditer(text))
    for block, end in zip(blocks, [*(each.start() for each in blocks), len(text)][1:], strict=True):
        errors[_test_id(block)].append(find_import_error(_SUMMARY.split(text[block.end() : end])[0]))
    return make_results(found, errors) if found else TestResults()


def _outcomes(part: str, ran: int) -> Outcomes:
    """Return the tests of one run; where none ran, whatever looks like one was printed by something else."""
    first = _BLOCK.search(part)
    bad: Outcomes = {}
    for block in _BLOCK.finditer(part):
        bad.setdefault(_test_id(block), []).append(ERROR if block["kind"] == "ERROR" else FAILED)
    return (_flow(part[: first.start()] if first else part) if ran else {}) | bad


def _flow(text: str) -> Outcomes:
    """Return what each started test is said to have come to; nothing where no word of it is found."""
    headers = list(_HEADER.finditer(text))
    bounds = [header.start() for header in headers] + [len(text)]
    found: Outcomes = {}
    for header, end in zip(headers, bounds[1:], strict=True):
        said = text[header.end() : end]
        status = _WHOLE_LINE.search(said) or _LINE_END.search(said)
        outcomes = found.setdefault(_test_id(header), [])
        outcomes += [_IN_FLOW[status["word"].split()[0]]] if status else []
    return found


def _test_id(place: re.Match[str]) -> str:
    name, dotted = place["name"], place["dotted"]
    return dotted if dotted.endswith(f".{name}") else f"{dotted}.{name}"


PYTEST = TestRunner(name="pytest", named=r"\bpytest\b", tells_all=True)
UNITTEST = TestRunner(
    name="unittest", named=r"-m unittest\b|\bmanage\.py test\b", tells_all=True, tell=name_each_test
)
