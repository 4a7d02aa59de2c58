"""The target of a repair: the failing checks before a task, and their failing tests."""

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath

from agentflow.core.check_command import CommandPart, format_command, split_command
from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import RED, CheckName, CheckRun
from agentflow.core.record import Record
from agentflow.core.test_ids import get_test_file

ADVICE = "Set ANTHROPIC_API_KEY or choose a model with --model."
OTHER_WORK = "For other work set ANTHROPIC_API_KEY or choose a model with --model."
_VARIABLE = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)
_PYTHON = re.compile(r"^python[\d.]*$")
_CLASS = re.compile(r"\(([\w.]+)\)\s*$")
_LOADER = "unittest.loader._FailedTest."
AND = "&&"


class RepairRunner(StrEnum):
    PYTEST = "pytest"
    UNITTEST = "unittest"


class Target(Record):
    """The tests that matter, and the command that runs them."""

    interpreter: str
    runner: RepairRunner
    arguments: tuple[str, ...]
    is_module: bool
    """Started with `-m`, which puts the working folder on the import path."""
    env: Mapping[str, str]
    folder: str = ""
    """The folder in which the tests run, with a slash at its end; empty for the root."""
    failing: tuple[str, ...] = ()
    """Ids of the tests that failed before the task."""
    files: tuple[str, ...] = ()
    """The files of those tests; empty means all the check runs."""
    stalled: tuple[str, ...] = ()
    """Those of them that were ended since they did not move."""
    hangs: bool = False
    """The check ran into its time limit, so that nobody knows which of its tests fail."""


def read_target(
    root: Path, checks: Sequence[CheckRun], blocked: Mapping[CheckName, str], files: tuple[str, ...]
) -> Target:
    """Return the tests that must pass. Raises ModelRejected when there are none, or they cannot run."""
    require_able(checks, blocked)
    ran = [(run, run.evidence) for run in checks if run.evidence is not None]
    if not ran:
        said = "no checks found: the built-in repair engine can only fix Python code with failing tests"
        raise ModelRejected(said, hint=ADVICE)
    reds = [(run, record) for run, record in ran if run.check.name is CheckName.TESTS and not run.green]
    if not reds:
        counts = ran[0][0].counts
        passed = f"all {counts.passed} tests pass" if counts and counts.passed else "the checks pass"
        raise ModelRejected(f"nothing to fix: {passed}", hint=OTHER_WORK)
    record = reds[0][1]
    target = _parse_command(root, record.command)
    if record.timed_out:
        return target.replace(hangs=True)
    failing = find_failing_tests(checks)
    # one that is merely slow must not keep others from being mended
    chosen = tuple(sorted(failing - {*record.stalled} or failing))
    stalled = tuple(test for test in chosen if test in record.stalled)
    return target.replace(failing=chosen, stalled=stalled, files=locate_tests(chosen, files))


def require_able(checks: Sequence[CheckRun], blocked: Mapping[CheckName, str]) -> None:
    """Raise ModelRejected where the tests cannot run here, or nothing that ran fails and some could not."""
    tests = [run for run in checks if run.check.name is CheckName.TESTS]
    unable = [
        why
        for run in tests
        if (why := blocked.get(CheckName.TESTS) or run.check.missing or run.check.left_out)
        and not (CheckName.TESTS in blocked and run.tests_with_result)
    ]
    hint = "Install what is missing, then try again."
    if unable:
        raise ModelRejected(f"the tests cannot run here {'; '.join(f'({why})' for why in unable)}", hint=hint)
    missing = [f"{run.check.name} ({run.check.missing})" for run in checks if run.evidence is None]
    if missing and all(run.green or run.evidence is None for run in tests):
        raise ModelRejected(f"nothing that ran fails; could not run: {'; '.join(missing)}", hint=hint)


def find_failing_tests(checks: Iterable[CheckRun]) -> frozenset[str]:
    tests = (run for run in checks if run.check.name is CheckName.TESTS and not run.green)
    return frozenset[str]().union(*(run.list_ids(*RED) for run in tests))


def locate_tests(tests: Iterable[str], files: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that hold tests, by their ids; none when one of them cannot be placed."""
    found = [_find_test_file(test, files) for test in tests]
    return () if None in found else tuple(sorted({name for name in found if name}))


def _find_test_file(test: str, files: tuple[str, ...]) -> str | None:
    path = get_test_file(test)
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


def _parse_command(root: Path, command: str) -> Target:
    """Return how a command runs the tests. Raises ModelRejected for one that is not ours to run.

    Several discoveries of unittest, one a folder, count as one whose arguments stand with `&&` between them.
    """
    parts = split_command(command)
    if len(parts) == 1 and not parts[0].folder:
        parts = tuple(CommandPart(command=text) for text in command.split(f" {AND} "))
    first, *others = (_parse_run(root, part, command) for part in parts)
    for other in others:
        if first.runner is not RepairRunner.UNITTEST or other != first.replace(arguments=other.arguments):
            raise _reject_command(command)
        first = first.replace(arguments=(*first.arguments, AND, *other.arguments))
    return first


def _reject_command(command: str) -> ModelRejected:
    said = "the built-in repair engine can only fix Python code tested by one pytest or unittest command"
    return ModelRejected(f"{said}; the tests here are run by: {format_command(command)}", hint=ADVICE)


def _parse_run(root: Path, part: CommandPart, command: str) -> Target:
    try:
        words = shlex.split(part.command)
    except ValueError:
        words = []
    env = {}
    while words and (found := _VARIABLE.match(words[0])):
        env[found[1]] = found[2]
        words = words[1:]
    program, home = Path(words[0]).name if words else "", root / part.folder
    if len(words) > 2 and _PYTHON.match(program) and words[1] == "-m" and words[2] in set(RepairRunner):
        interpreter, runner, arguments = _locate(home, words[0]), RepairRunner(words[2]), words[3:]
    elif program in {"pytest", "py.test"}:
        interpreter, runner = _read_interpreter(_locate(home, words[0])), RepairRunner.PYTEST
        arguments = words[1:]
    else:
        raise _reject_command(command)
    is_module = _PYTHON.match(program) is not None
    target = Target(
        interpreter=interpreter, runner=runner, arguments=tuple(arguments), is_module=is_module, env=env
    )
    return _start_at_root(target, part.folder, command) if part.folder else target


def _start_at_root(target: Target, folder: str, command: str) -> Target:
    if target.runner is not RepairRunner.PYTEST or target.arguments != ("-q",):
        raise _reject_command(command)
    named = [f"{folder}{name}" for name in target.env.get("PYTHONPATH", "").split(":") if name]
    path = {"PYTHONPATH": ":".join([*named, folder[:-1]])}
    return target.replace(
        arguments=("--rootdir=.", "-q", folder[:-1]), folder=folder, env={**target.env, **path}
    )


def _locate(root: Path, program: str) -> str:
    """Return the program's path, links unresolved: an environment is known by where its link lies."""
    return str(root / program) if "/" in program else shutil.which(program) or program


def _read_interpreter(script: str) -> str:
    """Return the interpreter that a runner's script names, or else the one beside it."""
    try:
        first = Path(script).read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
    except OSError:
        first = ""
    words = first.removeprefix("#!").split()
    if first.startswith("#!") and words and _PYTHON.match(Path(words[0]).name):
        return words[0]
    return str(Path(script).with_name("python3"))
