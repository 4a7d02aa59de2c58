"""What is planted to see a checker look: a canary test that must fail, and unknown names in functions."""

import ast
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from secrets import randbelow, token_hex

from agentflow.checks.run import Shown
from agentflow.core.evidence import Check, CheckName, TestOutcome
from agentflow.core.record import Record
from agentflow.verdict.target_tests import PYTEST, UNITTEST

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

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_MOST = 40


class Canary(Record):
    """A file of tests that fail whatever the code does, and the check that runs it alone."""

    path: str
    text: str
    check: Check


def make_canary(check: Check, beside: str, changed: Iterable[str]) -> Canary | None:
    """Return a canary in the folder of a test, with the changed code loaded; None for an unknown runner."""
    pytest = PYTEST.search(check.command)
    found = pytest or UNITTEST.search(check.command)
    if check.name is not CheckName.TESTS or found is None:
        return None
    modules = sorted(module for path in changed for module in _modules(path))
    # nobody can be in its way, or spare it by what it is named and compares
    number = randbelow(10_000)
    names = {"word": f"t{token_hex(6)}g", "number": number, "other": number + 2 + randbelow(10_000)}
    claims = (claim.format(**names) for claim in _CLAIMS)
    methods = (_METHOD.format(**names, place=place, claim=claim) for place, claim in enumerate(claims))
    text = _TEXT.format(**names, modules=modules) + "".join(methods)
    path = str(PurePosixPath(beside).with_name(f"test_{names['word']}.py"))
    option = "" if pytest else " -v"
    return Canary(
        path=path,
        text=text,
        check=check.replace(command=f"{found['start']}{option} {shlex.quote(path)}"),
    )


def is_silent(shown: Shown) -> bool:
    """Return whether the runner did not tell that tests failed which had to."""
    return shown.execution.exit_code == 0 or TestOutcome.PASSED in shown.outcomes.values()


def _modules(path: str) -> tuple[str, ...]:
    """Return as what a file of code may be imported."""
    place = PurePosixPath(path.removeprefix("src/"))
    if place.suffix != ".py":
        return ()
    parts = place.parent.parts if place.name == "__init__.py" else (*place.parent.parts, place.stem)
    return (".".join(parts),) if parts and all(part.isidentifier() for part in parts) else ()


class Planted(Record):
    """A function with a name in it that is defined nowhere."""

    place: str
    """The file and the function, by which it is found on another tree."""
    word: str


def plant_names(texts: Mapping[str, str], word: str) -> tuple[dict[str, str | None], tuple[Planted, ...]]:
    """Return Python files with an unknown name first in each function, and where each name stands."""
    files, found = dict[str, str | None](), list[Planted]()
    for path, text in texts.items():
        lines = text.splitlines(keepends=True)
        for name, node in reversed(list(_functions(text))):
            if len(found) < _MOST and (line := _first_line(node)):
                planted = Planted(place=f"{path}: {name}", word=f"{word}_{len(found)}_")
                indent = " " * node.body[-1].col_offset
                lines.insert(line - 1, f"{indent}{planted.word}\n")
                found.append(planted)
        files[path] = "".join(lines)
    return files, tuple(found)


def _functions(text: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions of a module and of its classes, in their order."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            yield node.name, node
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, _FUNCTIONS):
                yield f"{getattr(node, 'name', '')}.{inner.name}", inner


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int | None:
    """Return the line before which another statement may stand; None where there is no such line."""
    is_told = ast.get_docstring(node, clean=False) is not None
    body = node.body[1:] if is_told else node.body
    if not body or body[0].lineno == node.lineno or (is_told and body[0].lineno == node.body[0].end_lineno):
        return None
    first = body[0]
    marks = first.decorator_list if isinstance(first, (*_FUNCTIONS, ast.ClassDef)) else []
    return min([first.lineno, *(each.lineno for each in marks)])
