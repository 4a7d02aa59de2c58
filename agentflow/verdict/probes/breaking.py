"""Code that is wrong on purpose: broken functions, tests that must fail, names that do not exist."""

import ast
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from secrets import randbelow, token_hex

from agentflow.checks.run import Shown
from agentflow.core.check_command import PYTEST, CommandPart
from agentflow.core.evidence import Check, CheckName, TestOutcome
from agentflow.core.languages import SCRIPTS, find_language
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.verdict.syntax import (
    NO_PYTHON,
    AnyFunction,
    find_first_line,
    is_constant,
    parse_python,
    read_python,
    skip_docstring,
)
from agentflow.verdict.target_tests import UNITTEST, find_python_part
from agentflow.workspace.mixed_tree import ChangedTexts, find_differences

_OPENS = re.compile(
    r"""^\s*+(?!(?:if|for|while|switch|catch|else|try|do|match|loop|select|return|impl|struct|enum|trait|mod)\b)
    (?:.*\b(?:func|fn|fun|function)\b.*|.*=>\s*|[\w\s<>,.*&:$\[\]\#@]*[\w$]+\s*\(.*\)[^;=]*)\{\s*$""",
    re.VERBOSE,
)
_WHILE_TESTING = (
    "if 'pytest' not in __import__('sys').modules or 'PYTEST_CURRENT_TEST' in __import__('os').environ"
)
_TOUCH = "__import__('pathlib').Path(__file__).with_name({name!r}).touch()"


class Marks(Record):
    """Random words by which broken code shows that it was loaded and called."""

    word: str
    """The word that code prints when it is reached."""
    loaded: str
    """A file of this name appears beside Python code that was loaded."""
    reached: str
    """A file of this name appears beside Python code that was reached."""


def break_functions(path: str, text: str) -> str | None:
    """Return code in which every function fails; None if there are none or the language is unknown.

    A package may call its functions as it is loaded: under pytest those of Python fail while a test runs.
    """
    statement = _statement(path, "broken on purpose")
    if path.endswith(".py"):
        return _break_nodes(text, lambda _: True, f"{_WHILE_TESTING}: {statement}", keeps_body=True)
    lines = text.splitlines()
    openings = {at for at, line in enumerate(lines) if _OPENS.match(line)} if statement else set()
    return _insert(lines, openings, statement) if openings else None


def _statement(path: str, word: str) -> str:
    """Return the statement that makes a function fail; empty for an unknown language."""
    language = find_language(path)
    return (language.breaks or "").format(word=word) if language else ""


def break_change(change: ChangedTexts, marks: Marks) -> str:
    """Return a changed file in which each changed function fails, or which cannot be read at all."""
    if change.path.endswith(".py"):
        return _break_python(change, marks) or refuse(change.after, marks.word)
    statement = _statement(change.path, marks.word)
    return _break_braces(change, statement) or _fail_at_end(change, statement, marks.word)


def hide_from_linters(path: str, text: str) -> str:
    """Return a file of which linters say nothing; its lines keep their numbers.

    A command may run a linter before the tests, which would never begin.
    """
    return f"/* eslint-disable */ {text}" if path.endswith(SCRIPTS) and not text.startswith("#!") else text


def refuse(text: str, word: str) -> str:
    """Return a text that no program can parse."""
    return f"{text}\n)({word}\n"


def find_changed_lines(change: ChangedTexts) -> frozenset[int]:
    """Return the numbers of the added and replaced lines, and of the lines around removed ones."""
    found = find_differences(change.before.splitlines(), change.after.splitlines())
    return frozenset(line + 1 for *_, start, end in found for line in range(start, max(end, start + 1)))


def _break_python(change: ChangedTexts, marks: Marks) -> str | None:
    """Return Python in which the changed functions fail; all of them if other lines changed as well."""
    lines = _find_code_lines(change)
    touch = f"try:\n    {_TOUCH.format(name=marks.reached)}\nfinally:\n    raise RuntimeError({marks.word!r})"
    tree = read_python(change.after)
    if tree is None:
        return None
    nodes = [node for node in ast.walk(tree) if isinstance(node, AnyFunction)]
    spans = {_span(node): node for node in nodes}
    inner = {max((span for span in spans if line in range(*span)), default=None) for line in lines}
    is_all = None in inner or not inner
    broken = _break_nodes(change.after, lambda node: is_all or _span(node) in inner, touch)
    told = f"\ntry:\n    {_TOUCH.format(name=marks.loaded)}\nexcept Exception:\n    pass\n"
    return f"{broken}{told}" if broken else _break_script(change.after, lines, touch)


def _break_script(text: str, lines: Collection[int], touch: str) -> str:
    """Return Python without functions that fails at its first changed statement."""
    first, rows = min(lines, default=1), text.splitlines()
    meant = (each for each in ast.parse(text).body if (each.end_lineno or 0) >= first and not _is_head(each))
    node = next(meant, None)
    at = find_first_line(node) - 1 if node else len(rows)
    return "\n".join((*rows[:at], touch, *rows[at:], ""))


def _is_head(node: ast.stmt) -> bool:
    """Return whether a statement must stay first in its file."""
    return is_constant(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _find_code_lines(change: ChangedTexts) -> set[int]:
    """Return the changed lines that hold code."""
    texts = change.after.splitlines()
    lines = {line for line in find_changed_lines(change) if line <= len(texts)}
    return {
        line for line in lines if texts[line - 1].strip() and not texts[line - 1].lstrip().startswith("#")
    }


def _span(node: AnyFunction) -> tuple[int, int]:
    return find_first_line(node), (node.end_lineno or node.lineno) + 1


def _break_nodes(
    text: str, is_meant: Callable[[AnyFunction], bool], statement: str, *, keeps_body: bool = False
) -> str | None:
    """Return code in which some functions run a statement alone, or before all else."""
    try:
        tree = ast.parse(text)
        meant = [node for node in ast.walk(tree) if isinstance(node, AnyFunction) and is_meant(node)]
        for node in meant:
            at = skip_docstring(node)
            rest = node.body[at:] if keeps_body else []
            node.body = [*node.body[:at], *ast.parse(statement).body, *rest]
        return ast.unparse(tree) if meant else None
    except NO_PYTHON:
        return None


def _break_braces(change: ChangedTexts, statement: str) -> str | None:
    """Return code whose changed functions begin with a failing statement; None if one has no opening line."""
    if not statement:
        return None
    lines = change.after.splitlines()
    openings = {
        _find_opening(lines, line - 1) for line in find_changed_lines(change) if _is_code(lines, line - 1)
    }
    if not openings or None in openings:
        return None
    return _insert(lines, openings, statement)


def _insert(lines: list[str], openings: Collection[int | None], statement: str) -> str:
    """Return lines with a statement added behind some of them."""
    return "".join(
        f"{text}\n{statement}\n" if at in openings else f"{text}\n" for at, text in enumerate(lines)
    )


def _is_code(lines: list[str], at: int) -> bool:
    return at < len(lines) and bool(lines[at].strip(" \t{}();,")) and not lines[at].lstrip().startswith("//")


def _find_opening(lines: list[str], at: int) -> int | None:
    """Return the line that opens the function around a line."""
    depth = _indent(lines[at])
    for above in range(at, -1, -1):
        if above != at and (not lines[above].strip() or _indent(lines[above]) >= depth):
            continue
        if _OPENS.match(lines[above]):
            return above
        depth = min(depth, _indent(lines[above]))
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fail_at_end(change: ChangedTexts, statement: str, word: str) -> str:
    """Return a file that fails when it is run, or that cannot be parsed."""
    text, language = change.after, find_language(change.path)
    match language.fails_at if language else "":
        case "end":
            return f"{text}\n{statement}\n"
        case "begin":
            first, _, rest = text.partition("\n")
            return f"{first}\n{statement}\n{rest}" if first.startswith("#!") else f"{statement}\n{text}"
        case _:
            return refuse(text, word)


def has_mark(name: str, word: str, shown: Shown, said: str) -> bool:
    """Return whether a run created a file of this name or printed the word."""
    return word in said or any(path.endswith(name) for path in shown.execution.changed)


_TEXT = """\
import contextlib
import importlib
import unittest

for module in {modules}:
    with contextlib.suppress(Exception):
        importlib.import_module(module)


def test_{word}():
    assert module == {number}


class Test{word}(unittest.TestCase):
    def test_{word}_raises(self):
        raise ValueError
"""
_METHOD = """
    def test_{word}_{place}(self):
        self.{claim}
"""
_PAIRS = (
    "{number}, {other}",
    "'{word}', '{number}'",
    "{number}.5, {other}.5",
    "b'{word}', b'{number}'",
    "[{number}], [{other}]",
    "['{word}'], ['{number}']",
    "({number},), ({other},)",
    "{{'{word}': {number}}}, {{'{word}': {other}}}",
    "{{{number}}}, {{{other}}}",
    "None, '{word}'",
    "True, False",
)
_CLAIMS = (
    *(f"assertEqual({pair})" for pair in _PAIRS),
    *("assertTrue(False)", "assertFalse(True)", "assertNotEqual('{word}', '{word}')"),
    *("assertIs('{word}', None)", "assertIsNot(None, None)"),
    *("assertIsNone('{word}')", "assertIsNotNone(None)", "assertIsInstance('{word}', int)"),
    *("assertIn({number}, [{other}])", "assertNotIn('{word}', ['{word}'])"),
    *("assertGreater({number}, {other})", "assertLess({other}, {number})"),
    *("assertAlmostEqual({number}.5, {other}.5)", "assertRegex('{word}', '^{number}')"),
    "assertRaises(ValueError, str)",
)
"""One is softened where the others may not be, and for one kind of value."""
_NO_TESTS = 5
"""How pytest ends where no test runs, and unittest from Python 3.12 on; before, that was a success."""
_MOST = 40
_IMPORT_PATH = regex(r"\bPYTHONPATH=(\S+)")


class Canary(Record):
    """A file of tests that always fail, and the check that runs only this file."""

    path: str
    text: str
    check: Check


def make_canary(check: Check, beside: str, changed: Iterable[str]) -> Canary | None:
    """Return a canary beside a test, which loads the changed code; None for an unknown runner."""
    part = find_python_part(check, beside)
    if check.name is not CheckName.TESTS or part is None:
        return None
    pytest = PYTEST.fullmatch(part.command)
    found = pytest or UNITTEST.fullmatch(part.command)
    assert found is not None
    tops = _list_import_folders(part)
    modules = sorted(module for path in changed for module in _modules(path, tops))
    # nobody can be in its way, or spare it by what it is named and compares
    number = randbelow(10_000)
    names = {"word": f"t{token_hex(6)}g", "number": number, "other": number + 2 + randbelow(10_000)}
    claims = (claim.format(**names) for claim in _CLAIMS)
    methods = (_METHOD.format(**names, place=place, claim=claim) for place, claim in enumerate(claims))
    text = _TEXT.format(**names, modules=modules) + "".join(methods)
    path = str(PurePosixPath(beside).with_name(f"test_{names['word']}.py"))
    words = shlex.quote(path.removeprefix(part.folder))
    option = "--tb=no" if pytest else "-v"
    if not pytest and found["search"].startswith("-v 2"):  # Django takes modules
        option, words = "-v 2", words.removesuffix(".py").replace("/", ".")
    command = f"{found['start']} {option} {words}"
    return Canary(
        path=path,
        text=text,
        check=check.replace(command=part.replace(command=command).text),
    )


def is_silent(shown: Shown) -> bool:
    """Return whether the runner reported success although tests had to fail, or found none of them."""
    is_empty = shown.execution.exit_code == _NO_TESTS and not shown.outcomes
    return is_empty or shown.execution.exit_code == 0 or TestOutcome.PASSED in shown.outcomes.values()


def _list_import_folders(part: CommandPart) -> tuple[str, ...]:
    """Return the folders that a part of a check imports from beside the root, inner ones first."""
    named = [folder for value in _IMPORT_PATH.findall(part.command) or ["src"] for folder in value.split(":")]
    own = [part.folder[:-1]] if part.folder else []
    return (*(f"{part.folder}{folder}" for folder in named), *own)


def _modules(path: str, tops: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dotted names under which a file may be imported."""
    top = next((f"{folder}/" for folder in tops if path.startswith(f"{folder}/")), "")
    place = PurePosixPath(path.removeprefix(top))
    if place.suffix != ".py":
        return ()
    parts = place.parent.parts if place.name == "__init__.py" else (*place.parent.parts, place.stem)
    return (".".join(parts),) if parts and all(part.isidentifier() for part in parts) else ()


class Planted(Record):
    """A function that contains an undefined name."""

    place: str
    """The file and the function, by which it is found on another tree."""
    word: str


def plant_names(texts: Mapping[str, str], word: str) -> tuple[dict[str, str | None], tuple[Planted, ...]]:
    """Return Python files with an undefined name in each function, and the place of each."""
    files, found = dict[str, str | None](), list[Planted]()
    for path, text in texts.items():
        lines = text.splitlines(keepends=True)
        for name, node in reversed(list(_functions(text))):
            if len(found) < _MOST and (line := _find_place(node)):
                planted = Planted(place=f"{path}: {name}", word=f"{word}_{len(found)}_")
                indent = " " * node.body[-1].col_offset
                lines.insert(line - 1, f"{indent}{planted.word}\n")
                found.append(planted)
        files[path] = "".join(lines)
    return files, tuple(found)


def _functions(text: str) -> Iterator[tuple[str, AnyFunction]]:
    """Yield the functions of a module and the methods of its classes."""
    for node in parse_python(text).body:
        if isinstance(node, AnyFunction):
            yield node.name, node
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, AnyFunction):
                yield f"{getattr(node, 'name', '')}.{inner.name}", inner


def _find_place(node: AnyFunction) -> int | None:
    """Return the line before which a statement can be inserted; None where there is no such line."""
    at = skip_docstring(node)
    body = node.body[at:]
    if not body or body[0].lineno in (node.lineno, node.body[0].end_lineno if at else 0):
        return None
    return find_first_line(body[0])
