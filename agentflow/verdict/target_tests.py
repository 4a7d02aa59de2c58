"""Target tests: which tests a task must make pass, and checks narrowed to them."""

import shlex
from collections.abc import Collection, Iterable
from functools import partial
from itertools import pairwise

from agentflow.checks.runners import find_form
from agentflow.core.check_command import PYTEST, CommandPart, find_part, join_parts, split_command
from agentflow.core.evidence import Check, CheckName
from agentflow.core.regex import regex
from agentflow.core.test_ids import find_id_prefix, find_test_files, get_test_file
from agentflow.routing.clauses import Targets, find_targets
from agentflow.workspace.git import Git

UNITTEST = regex(
    r"(?P<start>[^{};|&]* (?:-m unittest|manage\.py test)) (?P<search>(?:discover -v|-v 2)\b[^{};|&]*)"
)
"""The same of unittest, by itself or as Django starts it."""
_OR = " or "
_OPTIONS = ("-", "@")
"""Signs with which an option or a file of options begins."""
_MOST_NAMES = 50
_MOST_CHARS = 20_000
"""A command is one argument of `bash -c`."""
_IDENTIFIER = regex(r"[A-Za-z_]\w*")
_FILE_BYTES = 1_000_000


def find_target_tests(git: Git, before: str | None, text: str, failing: frozenset[str]) -> Targets:
    """Return the failing tests that a task must make pass."""
    return find_targets(text, failing, partial(_find_by_names, git, before, failing))


def _find_by_names(
    git: Git, tree: str | None, tests: frozenset[str], names: frozenset[str]
) -> frozenset[str]:
    if tree is None:
        return frozenset()
    files = find_test_files(git.list_paths(tree), tests)
    texts = git.read_files(tree, sorted({*files.values()}), _FILE_BYTES)
    found = {path for path, text in texts.items() if names & set(_IDENTIFIER.findall(text))}
    return frozenset(test for test in tests if files.get(test) in found)


def narrow(check: Check, tests: Collection[str], options: str = "") -> Check:
    """Return a check that runs only these tests; a part of an unknown runner runs whole, or not at all.

    `options` are given to pytest.
    """
    parts = split_command(check.command)
    if check.name is not CheckName.TESTS or not any(map(_is_python, parts)):
        return check
    owned = {part: {test for test in tests if _owns(part, parts, test)} for part in parts if _is_python(part)}
    others = {*tests}.difference(*owned.values())
    runs = [part for part in parts if owned.get(part, others)]
    is_fit = bool(runs) and not any(test.startswith(_OPTIONS) for test in tests)
    narrowed = (_narrow_part(part, owned[part], options) if part in owned else part for part in runs)
    command = join_parts(narrowed) if is_fit else ""
    return check.replace(command=command) if 0 < len(command) < _MOST_CHARS else check


def narrow_quietly(check: Check, tests: Collection[str]) -> Check:
    """Return the narrowed check without pytest's tracebacks, which take as long as a short test."""
    return narrow(check, tests, " --tb=no")


def find_python_part(check: Check, path: str) -> CommandPart | None:
    """Return the part of a check that runs the Python tests in a file, or None."""
    return find_part(filter(_is_python, split_command(check.command)), path)


def are_python_tests(check: Check, tests: Iterable[str]) -> bool:
    """Return whether a known run of Python tests, a part of a check, has each of some tests."""
    parts = split_command(check.command)
    return all(any(_is_python(part) and _owns(part, parts, test) for part in parts) for test in tests)


def _is_python(part: CommandPart) -> bool:
    return bool(PYTEST.fullmatch(part.command) or UNITTEST.fullmatch(part.command))


def _owns(part: CommandPart, parts: Iterable[CommandPart], test: str) -> bool:
    """Return whether a part runs a test: by its file, the innermost folder first, or as unittest names it.

    Where other runners run as well, a test of pytest is known by the ending of its file.
    """
    path = get_test_file(test)
    if not path.endswith(".py") and not ("::" in test and all(map(_is_python, parts))):
        return bool(UNITTEST.fullmatch(part.command)) and "::" not in test and "/" not in test
    mine = find_part(filter(_is_python, parts), path)
    return mine is not None and mine.folder == part.folder and bool(PYTEST.fullmatch(part.command))


def _narrow_part(part: CommandPart, tests: Collection[str], options: str) -> CommandPart:
    if found := PYTEST.fullmatch(part.command):
        inside = {test.removeprefix(part.folder) for test in tests}
        return part.replace(command=f"{found['start']}{_by_file(inside)}{options}")
    found = UNITTEST.fullmatch(part.command)
    assert found is not None
    named = sorted({find_id_prefix(test) or test for test in tests})
    options = "".join(f" -k {shlex.quote(each)}" for each in named)
    return part.replace(command=f"{found['start']} {found['search'].rstrip()}{options}")


def describe_one_test(check: Check) -> str:
    """Return the command for one test, with placeholders in capitals; empty for an unknown runner."""
    parts = split_command(check.command)
    found = ((part, form) for part in parts if (form := _form_of(part.command)))
    return next((part.replace(command=form).text for part, form in found), "")


def _form_of(command: str) -> str:
    if found := PYTEST.fullmatch(command):
        return f"{found['start'].strip()} FILE -k NAME"
    if found := UNITTEST.fullmatch(command):
        return f"{found['start'].strip()} {found['search'].rstrip()} -k NAME"
    return find_form(command)


def read_tests(command: str) -> frozenset[str]:
    """Return what `narrow` made a command of: its tests, and each part of another runner by its text."""
    return frozenset(test for part in split_command(command) for test in _read_part(part))


def _read_part(part: CommandPart) -> Iterable[str]:
    try:
        words = shlex.split(part.command)
    except ValueError:
        return ()
    chosen = [after for word, after in pairwise(words) if word == "-k"]
    if "unittest" in words or "manage.py" in words:
        return chosen
    if "-q" not in words:
        return (part.text,)
    files = [f"{part.folder}{word}" for word in words[words.index("-q") + 1 :]]
    if not chosen:
        return files
    names = chosen[-1].split(_OR)
    return (f"{file}::{name}" for file in files[: files.index(f"{part.folder}-k")] for name in names)


def _by_file(tests: Collection[str]) -> str:
    inside = (test.partition("::")[2].partition("[")[0] for test in tests)
    names = sorted({each.rpartition("::")[2] for each in inside})  # one is empty where a whole file is meant
    files = "".join(f" {shlex.quote(file)}" for file in sorted({get_test_file(test) for test in tests}))
    if len(names) > _MOST_NAMES or not all(map(str.isidentifier, names)):
        return files
    return f"{files} -k {shlex.quote(_OR.join(names))}"
