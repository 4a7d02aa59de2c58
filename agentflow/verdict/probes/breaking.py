"""Code that is wrong on purpose: broken functions, tests that must fail, names that do not exist."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from secrets import randbelow, token_hex

from agentflow.core.evidence import Check, CheckName, CheckRun, TestOutcome
from agentflow.core.languages import SCRIPTS
from agentflow.core.record import Record
from agentflow.languages.grammars import parse_source
from agentflow.mutants.edits import list_result_types
from agentflow.runners.python import list_import_folders, run_file
from agentflow.runners.selection import find_python_part

_WHILE_TESTING = (
    "if 'pytest' not in __import__('sys').modules or 'PYTEST_CURRENT_TEST' in __import__('os').environ: "
)


def give_defaults(path: str, text: str, *, is_other: bool = False) -> str | None:
    """Return code in which every function ends at once with a default result; None where that is unknown.

    With `is_other` it is another one, where the language has any.
    A package may call its functions as it is loaded: under pytest those of Python do so while a test runs.
    """
    tree = parse_source(path, text)
    wanted = (tree.grammar.other_return if is_other else tree.grammar.early_return) if tree else ""
    if tree is None or not wanted or not tree.nodes["body"]:
        return None
    others = dict(tree.grammar.other_results if is_other else ())
    source = bytearray(tree.text)
    for node in reversed(tree.nodes["body"]):
        kinds = list_result_types(tree, node.parent) if node.parent else []
        results = ", ".join(others.get(kind) or tree.grammar.defaults[0].format(type=kind) for kind in kinds)
        statement = wanted.format(results=results)
        inside = node.start_byte + (source[node.start_byte : node.start_byte + 1] == b"{")
        begin = source[source.rfind(b"\n", 0, inside) + 1 : inside].decode()
        behind = "; "
        if path.endswith(".py"):
            statement, behind = f"{_WHILE_TESTING}{statement}", f"\n{begin}"
            if begin.strip():  # all in one line
                behind = f"\n{begin[: -len(begin.lstrip())]} "
                statement = f"{behind}{statement}"
        source[inside:inside] = f"{statement}{behind}".encode()
    return source.decode("utf-8", "replace")


def hide_from_linters(path: str, text: str) -> str:
    """Return a file of which linters say nothing; its lines keep their numbers.

    A command may run a linter before the tests, which would never begin.
    """
    return f"/* eslint-disable */ {text}" if path.endswith(SCRIPTS) and not text.startswith("#!") else text


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
    tops = list_import_folders(part)
    modules = sorted(module for path in changed for module in _modules(path, tops))
    # nobody can be in its way, or spare it by what it is named and compares
    number = randbelow(10_000)
    names = {"word": f"t{token_hex(6)}g", "number": number, "other": number + 2 + randbelow(10_000)}
    claims = (claim.format(**names) for claim in _CLAIMS)
    methods = (_METHOD.format(**names, place=place, claim=claim) for place, claim in enumerate(claims))
    text = _TEXT.format(**names, modules=modules) + "".join(methods)
    path = str(PurePosixPath(beside).with_name(f"test_{names['word']}.py"))
    alone = run_file(part, path)
    return Canary(path=path, text=text, check=check.replace(command=alone.text)) if alone else None


def is_silent(shown: CheckRun) -> bool:
    """Return whether the runner reported success although tests had to fail, or found none of them."""
    is_empty = shown.execution.exit_code == _NO_TESTS and not shown.outcomes
    return is_empty or shown.execution.exit_code == 0 or TestOutcome.PASSED in shown.outcomes.values()


def _modules(path: str, tops: tuple[str, ...]) -> tuple[str, ...]:
    top = next((f"{folder}/" for folder in tops if path.startswith(f"{folder}/")), "")
    place = PurePosixPath(path.removeprefix(top))
    if place.suffix != ".py":
        return ()
    parts = place.parent.parts if place.name == "__init__.py" else (*place.parent.parts, place.stem)
    return (".".join(parts),) if parts and all(part.isidentifier() for part in parts) else ()
