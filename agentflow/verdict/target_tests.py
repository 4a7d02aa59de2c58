"""Target tests: which tests a task must make pass, and checks narrowed to them."""

import shlex
from collections.abc import Collection
from functools import partial
from itertools import pairwise

from agentflow.checks.repository import join_commands
from agentflow.core.evidence import Check, CheckName
from agentflow.core.regex import regex
from agentflow.core.test_ids import find_id_prefix, find_test_files, get_test_file
from agentflow.routing.clauses import Targets, find_targets
from agentflow.workspace.git import Git

PYTEST = regex(r"(?:^|\{ )(?P<start>[^{};|&]*\bpytest(?: -q(?=$|;)| --rootdir=\. -q(?= [^ ;]+$)))")
"""The run of pytest in a command; where it is of a project in a folder, without the folder."""

UNITTEST = regex(r"(?:^|\{ )(?P<start>[^{};|&]* -m unittest) (?P<search>discover -v\b[^{};|&]*)")

_OR = " or "
_OPTIONS = ("-", "@")
"""Signs with which an option or a file of options begins."""
_MOST_NAMES = 50
_MOST_CHARS = 20_000
"""A command is one argument of `bash -c`."""
_ONE = {
    "go test ./...": "go test ./FOLDER -run NAME",
    "cargo test": "{} NAME",
    "npm test": "{} -- FILE",
    **dict.fromkeys(("pnpm test", "yarn test", "bun run test"), "{} FILE"),
    "mvn": "{} -Dtest=CLASS#METHOD",
    "gradle": "{} --tests CLASS.METHOD",
}
"""The forms in which other runners select one test, by a part of their command."""
_IDENTIFIER = regex(r"[A-Za-z_]\w*")
_FILE_BYTES = 1_000_000


def find_target_tests(git: Git, before: str | None, text: str, failing: frozenset[str]) -> Targets:
    """Return the failing tests that a task must make pass."""
    return find_targets(text, failing, partial(_find_by_names, git, before, failing))


def _find_by_names(
    git: Git, tree: str | None, tests: frozenset[str], names: frozenset[str]
) -> frozenset[str]:
    """Return the tests whose files contain one of the names."""
    if tree is None:
        return frozenset()
    files = find_test_files(git.list_paths(tree), tests)
    texts = git.read_files(tree, sorted({*files.values()}), _FILE_BYTES)
    found = {path for path, text in texts.items() if names & set(_IDENTIFIER.findall(text))}
    return frozenset(test for test in tests if files.get(test) in found)


def narrow(check: Check, tests: Collection[str]) -> Check:
    """Return a check that runs only these tests; the same check for an unknown runner."""
    if found := PYTEST.search(check.command):
        runs = [found["start"] + _by_file(tests)]
    else:
        parts = UNITTEST.finditer(check.command)
        runs = [f"{part['start']} {part['search'].rstrip()}{_by_id(tests)}" for part in parts]
    is_fit = (
        check.name is CheckName.TESTS
        and tests
        and runs
        and not any(test.startswith(_OPTIONS) for test in tests)
    )
    command = join_commands(runs) if is_fit else ""
    return check.replace(command=command) if 0 < len(command) < _MOST_CHARS else check


def narrow_quietly(check: Check, tests: Collection[str]) -> Check:
    """Return the narrowed check without pytest's tracebacks, which take as long as a short test."""
    narrowed = narrow(check, tests)
    is_pytest = narrowed != check and PYTEST.search(check.command)
    return narrowed.replace(command=f"{narrowed.command} --tb=no") if is_pytest else narrowed


def describe_one_test(check: Check) -> str:
    """Return the command for one test, with placeholders in capitals; empty for an unknown runner."""
    if found := PYTEST.search(check.command):
        return f"{found['start'].strip()} FILE -k NAME"
    if found := UNITTEST.search(check.command):
        return f"{found['start'].strip()} {found['search'].rstrip()} -k NAME"
    form = next((form for start, form in _ONE.items() if start in check.command), "")
    return form.format(check.command)


def read_tests(command: str) -> frozenset[str]:
    """Return the tests that a narrowed command runs; none for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return frozenset()
    chosen = [after.removesuffix(";") for word, after in pairwise(words) if word == "-k"]
    if "unittest" in words:
        return frozenset(chosen)
    files = words[words.index("-q") + 1 :] if "-q" in words else []
    if not chosen:
        return frozenset(files)
    names = chosen[-1].split(_OR)
    return frozenset(f"{file}::{name}" for file in files[: files.index("-k")] for name in names)


def _by_file(tests: Collection[str]) -> str:
    """Return the files of tests and a filter by name."""
    names = sorted({_name(test) for test in tests})
    files = "".join(f" {shlex.quote(file)}" for file in sorted({get_test_file(test) for test in tests}))
    if len(names) > _MOST_NAMES or not all(map(str.isidentifier, names)):
        return files
    return f"{files} -k {shlex.quote(_OR.join(names))}"


def _name(test: str) -> str:
    """Return the function of a test, without its case; empty where a whole file is meant."""
    return test.partition("::")[2].partition("[")[0].rpartition("::")[2]


def _by_id(tests: Collection[str]) -> str:
    return "".join(
        f" -k {shlex.quote(each)}" for each in sorted({find_id_prefix(test) or test for test in tests})
    )
