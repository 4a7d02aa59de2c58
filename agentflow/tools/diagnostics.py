"""What an edit broke: lines that no longer parse, and what the language's own fast checker newly says."""

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from agentflow.core.errors import AgentflowError, ToolError
from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.tool import ToolContext
from agentflow.languages.grammars import find_broken_lines
from agentflow.redact import strip_colours
from agentflow.sandbox.environment import find_variables

_SECONDS = 2.0
_MOST_CHARS = 1_000_000
_MOST = 5
_FINDING = regex(
    r"(?m)^(?:vet: )?(?:\./)?(?P<path>[^:\n(]+)"
    r"(?::(?P<line>\d+)(?::\d+)?:?|\((?P<at>\d+),\d+\):?) (?P<said>\S.*)$"
)
_NUMBER = regex(r"\d+")


class _Checker(Record):
    """A program that says quickly what is wrong with one file."""

    words: tuple[str, ...]
    """How it is started, `{}` the file and `{folder}` its folder."""
    suffixes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    """The files that configure it, each with a text that only then stands in it."""
    needs_settings: bool = False
    is_told: bool = True
    """It reads the text from its input; else the file, with all that it belongs to."""


_JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
_CHECKERS = (
    _Checker(
        words=("ruff", "check", "--no-cache", "--output-format=concise", "--stdin-filename={}", "-"),
        suffixes=(".py", ".pyi"),
        settings=(("pyproject.toml", "[tool.ruff"), ("ruff.toml", ""), (".ruff.toml", "")),
    ),
    _Checker(
        words=("flake8", "--stdin-display-name={}", "-"),
        suffixes=(".py", ".pyi"),
        settings=((".flake8", ""), ("setup.cfg", "[flake8]"), ("tox.ini", "[flake8]")),
        needs_settings=True,
    ),
    _Checker(
        words=("tsc", "--noEmit", "--pretty", "false"),
        suffixes=_JAVASCRIPT[4:],
        settings=(("tsconfig.json", ""),),
        needs_settings=True,
        is_told=False,
    ),
    _Checker(words=("gofmt", "-e", "-l"), suffixes=(".go",)),
    _Checker(
        words=("go", "vet", "./{folder}"),
        suffixes=(".go",),
        settings=(("go.mod", ""),),
        needs_settings=True,
        is_told=False,
    ),
    _Checker(  # where the repository's own target folder cannot be written
        words=("cargo", "check", "-q", "--offline", "--message-format=short", "--target-dir=/tmp/target"),
        suffixes=(".rs",),
        settings=(("Cargo.lock", ""),),
        needs_settings=True,
        is_told=False,
    ),
)


def describe_new_problems(path: str, before: str, after: str, context: ToolContext) -> str:
    """Return a line for each problem that an edit brought, each with a line feed before it.

    Nothing runs outside the sandbox, nothing can be written, and whatever fails here says nothing.
    """
    if max(len(before), len(after)) > _MOST_CHARS:
        return ""
    old, broken = find_broken_lines(path, before), find_broken_lines(path, after)
    if broken and len(broken) > len(old):
        return f"\n! {path}:{min(broken - old or broken)}: it no longer parses from here"
    both = (_choose_checker(path, context, is_told=is_told) for is_told in (True, False))
    return "".join(_describe(each, path, before, after, context) for each in both if each)


def _describe(checker: _Checker, path: str, before: str, after: str, context: ToolContext) -> str:
    name = checker.words[0]
    try:
        found = [*_list_new(checker, path, before, after, context)]
    except TimeoutError:
        context.shell.slow_checkers.add(name)
        return f"\n! {name}: no answer within {_SECONDS:g} s, not asked again"
    except (OSError, AgentflowError):  # the program or the sandbox could not be started
        return ""
    rest = [f"… and {len(found) - _MOST} more"] if len(found) > _MOST else []
    return "".join(f"\n! {name}: {line}" for line in (*found[:_MOST], *rest))


def _choose_checker(path: str, context: ToolContext, *, is_told: bool) -> _Checker | None:
    """Return the installed checker of a file or of its project, a configured one first, but no slow one."""
    suffix = PurePosixPath(path).suffix
    able = [
        each
        for each in _CHECKERS
        if suffix in each.suffixes
        and each.is_told is is_told
        and each.words[0] not in context.shell.slow_checkers
        and _find_program(each.words[0], context)
    ]
    configured = [each for each in able if _is_configured(each, context)]
    return next(iter((*configured, *(each for each in able if not each.needs_settings))), None)


def _is_configured(checker: _Checker, context: ToolContext) -> bool:
    for name, text in checker.settings:
        try:
            if text in context.workspace.read(name).decode("utf-8", "replace"):
                return True
        except ToolError:
            continue
    return False


def _list_new(checker: _Checker, path: str, before: str, after: str, context: ToolContext) -> Iterator[str]:
    """Yield what a checker says of a text and did not say of the one before. Raises TimeoutError."""
    until = time.monotonic() + _SECONDS
    now, old, kept = _ask(checker, path, after, context, until), Counter[str](), Counter[str]()
    if now and before and checker.is_told:
        old = Counter(_NUMBER.sub("", said) for _, said in _ask(checker, path, before, context, until))
    elif not checker.is_told:  # it would have to be asked before the edit: what it says of other lines is old
        kept = Counter(before.splitlines())
    lines = after.splitlines()
    for line, said in now:
        key = _NUMBER.sub("", said)
        if old[key] > 0:
            old[key] -= 1
        elif not kept or "".join(lines[line - 1 : line]) not in kept:
            yield f"{path}:{line}: {said}"


def _ask(
    checker: _Checker, path: str, text: str, context: ToolContext, until: float
) -> list[tuple[int, str]]:
    """Return what a checker says of a file, each with its line. Raises TimeoutError."""
    root = context.workspace.root
    program, *words = checker.words
    command = Command(
        argv=(
            str(_find_program(program, context)),
            *(word.format(path, folder=PurePosixPath(path).parent) for word in words),
        ),
        cwd=str(root),
        timeout=max(until - time.monotonic(), 0.01),
    )
    given = text.encode("utf-8", "replace") if checker.is_told else b""
    said = context.shell.runner.exchange(command, given, (), context.cancelled)
    if said.timed_out:
        raise TimeoutError
    printed = strip_colours((said.stdout + b"\n" + said.stderr).decode("utf-8", "replace"))
    found = [
        (int(each["line"] or each["at"]), each["said"])
        for each in _FINDING.finditer(printed)
        if checker.is_told or each["path"] == path
    ]
    return [*found, *((1, "not formatted") for line in printed.splitlines() if line == "<standard input>")]


def _find_program(name: str, context: ToolContext) -> str | None:
    root = context.workspace.root
    return shutil.which(name, path=f"{root}/node_modules/.bin:{find_variables(root)['PATH']}")
