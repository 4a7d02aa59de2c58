"""The canary test, which has to fail: code under which it does not makes the runner's word worthless."""

import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath
from secrets import randbelow, token_hex

from agentflow.checks.run import Shown
from agentflow.core.evidence import Check, CheckName, TestOutcome
from agentflow.core.record import Record
from agentflow.verdict.narrow import PYTEST, UNITTEST

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


class Canary(Record):
    """A file of tests that fail whatever the code does, and the check that runs it alone."""

    path: str
    text: str
    check: Check


def make_canary(check: Check, beside: str, changed: Iterable[str]) -> Canary | None:
    """Return a canary in the folder of a test, with the changed code loaded; None for an unknown runner."""
    found = PYTEST.search(check.command) or UNITTEST.search(check.command)
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
    option = "" if found.re is PYTEST else " -v"
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
