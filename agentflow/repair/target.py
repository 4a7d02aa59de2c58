"""The target of a repair: the failing checks that the prompt names, and their failing tests."""

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path, PurePosixPath

from agentflow.core.check_command import CommandPart, format_command, split_command
from agentflow.core.errors import InvalidFile, ModelRejected
from agentflow.core.evidence import RED, CheckName, Evidence
from agentflow.core.record import Record
from agentflow.core.test_ids import get_test_file
from agentflow.parse import decode

ADVICE = "Set ANTHROPIC_API_KEY or choose a model with --model."
OTHER_WORK = "For other work set ANTHROPIC_API_KEY or choose a model with --model."

_VARIABLE = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)

_PYTHON = re.compile(r"^python[\d.]*$")

_CLASS = re.compile(r"\(([\w.]+)\)\s*$")

_LOADER = "unittest.loader._FailedTest."
AND = "&&"
_FENCE = re.compile(r"^(`{3,}|~{3,})")

_HEADING = re.compile(r"^## +(.+?)\s*$")

_FAILED = re.compile(r"^Iteration (\d+) failed")

_CHECK = re.compile(
    r"^- (?P<name>\w+): (?P<color>red|green)\b(?:.*?\b(?P<passed>\d+) passed)?.*?\bevidence (?P<id>ev-\d+)"
    r"(?:, output in (?P<output>\.claude/agentflow/[\w-]+/evidence/ev-\d+\.out))?"
)

_UNABLE = re.compile(r"^- cannot run here: tests (\(.+\))$")

_NOT_RUN = re.compile(r"^- (\w+): not run (\(.+\))$")

Sections = tuple[tuple[str, list[str]], ...]


class TestsBlocked(ModelRejected):
    """The tests cannot run here, for a reason that lies outside the repository."""


class CheckLine(Record):
    """One check as the task prompt lists it."""

    name: str
    is_green: bool
    passed: str | None
    """How many tests passed."""
    evidence: str
    output: str | None
    """Path of its output; the record and the test ids lie beside it."""


class Brief(Record):
    """The parts of a brief that matter here."""

    before: tuple[CheckLine, ...]
    failed: tuple[tuple[CheckLine, ...], ...]
    """The checks of each failed iteration, in order."""
    after: tuple[CheckLine, ...]
    unable: tuple[str, ...] = ()
    """Why the tests cannot run here, whatever the code says."""
    not_run: tuple[str, ...] = ()
    """Checks that lack a tool, and which one."""


def read_brief(text: str) -> Brief:
    """Return what a brief says; what is quoted between fences is never taken for its own words."""
    sections = tuple(_sections(text))
    failed = [(int(found[1]), body) for title, body in sections if (found := _FAILED.match(title))]
    return Brief(
        before=_parse_checks(_below(sections, "Checks before")),
        failed=tuple(_parse_checks(body) for _, body in sorted(failed)),
        after=_parse_checks(_below(sections, "Checks after")),
        unable=tuple(found[1] for line in sections[0][1] if (found := _UNABLE.match(line))),
        not_run=tuple(
            f"{found[1]} {found[2]}"
            for line in _below(sections, "Checks before")
            if (found := _NOT_RUN.match(line))
        ),
    )


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each second-level heading with the lines below it that are not quoted."""
    title, body = "", list[str]()
    for line in _drop_quotes(text):
        heading = _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        yield title, body
        title, body = heading[1], []
    yield title, body


def _drop_quotes(text: str) -> Iterator[str]:
    """Yield each line that neither stands in a fence nor is one."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            fence = "" if _is_closing(line.rstrip(), fence) else fence
        elif found:
            fence = found[1]
        else:
            yield line


def _is_closing(bare: str, fence: str) -> bool:
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def _below(sections: Sections, title: str) -> Iterator[str]:
    """Return the lines below each heading that begins with a text."""
    return (line for name, body in sections if name.startswith(title) for line in body)


def _parse_checks(lines: Iterable[str]) -> tuple[CheckLine, ...]:
    return tuple(
        CheckLine(
            name=found["name"],
            is_green=found["color"] == "green",
            passed=found["passed"],
            evidence=found["id"],
            output=found["output"],
        )
        for line in lines
        if (found := _CHECK.match(line))
    )


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


def read_target(root: Path, brief: Brief, files: Iterable[str]) -> Target:
    """Return the tests that must pass. Raises ModelRejected when there are none, or TestsBlocked."""
    if brief.unable:
        raise TestsBlocked(
            f"the tests cannot run here {'; '.join(brief.unable)}",
            hint="Install what is missing, then try again.",
        )
    reds = [shown for shown in brief.before if shown.name == CheckName.TESTS and not shown.is_green]
    if not reds and brief.not_run:
        raise TestsBlocked(
            f"nothing that ran fails; could not run: {'; '.join(brief.not_run)}",
            hint="Install what is missing, then try again.",
        )
    if not brief.before:
        said = "no checks found: the built-in repair engine can only fix Python code with failing tests"
        raise ModelRejected(said, hint=ADVICE)
    if not reds:
        passed = f"all {count} tests pass" if (count := brief.before[0].passed) else "the checks pass"
        raise ModelRejected(f"nothing to fix: {passed}", hint=OTHER_WORK)
    known = tuple(files)
    record = read_record(root, reds[0])
    target = _parse_command(root, record.command)
    if record.timed_out:
        return target.replace(hangs=True)
    failing = {test for shown in reds for test in find_failing_tests(root, shown)}
    # one that is merely slow must not keep others from being mended
    chosen = tuple(sorted(failing - {*record.stalled} or failing))
    stalled = tuple(test for test in chosen if test in record.stalled)
    return target.replace(failing=chosen, stalled=stalled, files=locate_tests(chosen, known))


def widen_target(
    root: Path, target: Target, failed: Iterable[Iterable[CheckLine]], files: Iterable[str]
) -> Target:
    """Return a target that also holds the files in which earlier attempts failed."""
    again = {test for checks in failed for shown in checks for test in find_failing_tests(root, shown)}
    more = locate_tests(sorted(again), tuple(files))
    return target.replace(files=tuple(sorted({*target.files, *more})) if target.files else ())


def find_failing_tests(root: Path, shown: CheckLine) -> tuple[str, ...]:
    """Return the ids of the tests that a run showed red."""
    if shown.name != CheckName.TESTS or shown.is_green:
        return ()
    ids = _beside(root, shown, ".ids")
    if not ids.is_file():
        return ()
    lines = (line.split(" ", 1) for line in ids.read_text(encoding="utf-8").splitlines() if " " in line)
    return tuple(test for outcome, test in lines if outcome in RED)


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


def _beside(root: Path, shown: CheckLine, suffix: str) -> Path:
    return (root / (shown.output or shown.evidence)).with_suffix(suffix)


def read_base_tree(root: Path, brief: Brief) -> str | None:
    """Return the id of the tree before the task, as the records of its first checks name it."""
    return read_record(root, brief.before[0]).tree_before if brief.before else None


def read_record(root: Path, shown: CheckLine) -> Evidence:
    """Return the record of a check. Raises ModelRejected when it is not there any more."""
    path = _beside(root, shown, ".json")
    try:
        return decode(Evidence, path.read_bytes(), str(path.relative_to(root)))
    except (OSError, InvalidFile) as error:
        raise ModelRejected(f"the record {shown.evidence} cannot be read: {error}", hint=ADVICE) from None


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
    """Return how a part of a command runs tests. Raises ModelRejected."""
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
        interpreter, runner, arguments = (
            _read_interpreter(_locate(home, words[0])),
            RepairRunner.PYTEST,
            words[1:],
        )
    else:
        raise _reject_command(command)
    target = Target(
        interpreter=interpreter,
        runner=runner,
        arguments=tuple(arguments),
        is_module=_PYTHON.match(program) is not None,
        env=env,
    )
    return _start_at_root(target, part.folder, command) if part.folder else target


def _start_at_root(target: Target, folder: str, command: str) -> Target:
    """Return a target for a project whose tests are collected from the root. Raises ModelRejected."""
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
