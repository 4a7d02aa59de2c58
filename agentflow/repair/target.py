"""The tests to mend for: how the check runs them, and the files that hold the failing ones."""

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path, PurePosixPath

from agentflow.core.errors import InvalidFile, ModelRejected
from agentflow.core.evidence import RED, CheckName, Evidence
from agentflow.core.record import Record
from agentflow.parse import decode
from agentflow.repair.brief import Brief, Shown

ADVICE = "set ANTHROPIC_API_KEY or choose a model with --model"
_VARIABLE = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)
_PYTHON = re.compile(r"^python[\d.]*$")
_CLASS = re.compile(r"\(([\w.]+)\)\s*$")
_LOADER = "unittest.loader._FailedTest."


class Runner(StrEnum):
    PYTEST = "pytest"
    UNITTEST = "unittest"


class Target(Record):
    """How to run the tests that matter."""

    interpreter: str
    runner: Runner
    arguments: tuple[str, ...]
    is_module: bool
    """Started with `-m`, which puts the working folder on the import path."""
    env: Mapping[str, str]
    failing: tuple[str, ...] = ()
    """Ids of the tests that failed before the task."""
    files: tuple[str, ...] = ()
    """The files of those tests; empty means all the check runs."""


def read_target(root: Path, brief: Brief, files: Iterable[str]) -> Target:
    """Return what has to turn green. Raises ModelRejected when that is nothing or not ours to run."""
    reds = [shown for shown in brief.before if shown.name == CheckName.TESTS and not shown.is_green]
    if not reds and brief.not_run:
        raise ModelRejected(
            f"nothing that ran fails; could not run: {'; '.join(brief.not_run)}",
            hint=f"install what is missing, or {ADVICE}",
        )
    if not reds:
        seen = "nothing fails here" if brief.before else "no check was found here"
        raise ModelRejected(f"{seen}: repair mends code against failing tests", hint=ADVICE)
    known = tuple(files)
    failing = tuple(sorted({test for shown in reds for test in failing_tests(root, shown)}))
    target = _split(root, record_of(root, reds[0]).command)
    return target.replace(failing=failing, files=files_of(failing, known))


def widened(root: Path, target: Target, brief: Brief, files: Iterable[str]) -> Target:
    """Return a target that also holds the files in which earlier attempts failed."""
    again = {test for checks in brief.failed for shown in checks for test in failing_tests(root, shown)}
    more = files_of(sorted(again), tuple(files))
    return target.replace(files=tuple(sorted({*target.files, *more})) if target.files else ())


def failing_tests(root: Path, shown: Shown) -> tuple[str, ...]:
    """Return the ids of the tests that a run showed red."""
    if shown.name != CheckName.TESTS or shown.is_green:
        return ()
    ids = _beside(root, shown, ".ids")
    if not ids.is_file():
        return ()
    lines = (line.split(" ", 1) for line in ids.read_text(encoding="utf-8").splitlines() if " " in line)
    return tuple(test for outcome, test in lines if outcome in RED)


def files_of(tests: Iterable[str], files: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that hold tests, by their ids; none when one of them cannot be placed."""
    found = [_file_of(test, files) for test in tests]
    return () if None in found else tuple(sorted({name for name in found if name}))


def _file_of(test: str, files: tuple[str, ...]) -> str | None:
    path = test.partition("::")[0]
    if path in files:
        return path
    held = _CLASS.search(test)
    parts = (held[1] if held else test).removeprefix(_LOADER).split(".")
    for length in range(len(parts), 0, -1):
        tail = PurePosixPath(*parts[:length]).with_suffix(".py") if parts[length - 1] else None
        matching = [name for name in files if tail and (name == str(tail) or name.endswith(f"/{tail}"))]
        if matching:
            return min(matching, key=lambda name: (len(name), name))
    return None


def _beside(root: Path, shown: Shown, suffix: str) -> Path:
    return (root / (shown.output or shown.evidence)).with_suffix(suffix)


def base_tree(root: Path, brief: Brief) -> str | None:
    """Return the id of the tree before the task, as the records of its first checks name it."""
    return record_of(root, brief.before[0]).tree_before if brief.before else None


def record_of(root: Path, shown: Shown) -> Evidence:
    """Return the record of a check. Raises ModelRejected when it is not there any more."""
    path = _beside(root, shown, ".json")
    try:
        return decode(Evidence, path.read_bytes(), str(path.relative_to(root)))
    except (OSError, InvalidFile) as error:
        raise ModelRejected(f"the record {shown.evidence} cannot be read: {error}", hint=ADVICE) from None


def _split(root: Path, command: str) -> Target:
    """Return how a command runs the tests. Raises ModelRejected for one that is not ours to run."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    env = {}
    while words and (found := _VARIABLE.match(words[0])):
        env[found[1]] = found[2]
        words = words[1:]
    program = Path(words[0]).name if words else ""
    if len(words) > 2 and _PYTHON.match(program) and words[1] == "-m" and words[2] in set(Runner):
        interpreter, runner, arguments = _located(root, words[0]), Runner(words[2]), words[3:]
    elif program in {"pytest", "py.test"}:
        interpreter, runner, arguments = _shebang(_located(root, words[0])), Runner.PYTEST, words[1:]
    else:
        raise ModelRejected(f"repair runs pytest and unittest only, not: {command}", hint=ADVICE)
    return Target(
        interpreter=interpreter,
        runner=runner,
        arguments=tuple(arguments),
        is_module=_PYTHON.match(program) is not None,
        env=env,
    )


def _located(root: Path, program: str) -> str:
    """Return the program's path, links unresolved: an environment is known by where its link lies."""
    return str(root / program) if "/" in program else shutil.which(program) or program


def _shebang(script: str) -> str:
    """Return the interpreter that a runner's script names, or else the one beside it."""
    try:
        first = Path(script).read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
    except OSError:
        first = ""
    words = first.removeprefix("#!").split()
    if first.startswith("#!") and words and _PYTHON.match(Path(words[0]).name):
        return words[0]
    return str(Path(script).with_name("python3"))
