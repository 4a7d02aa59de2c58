"""Measures how near a red test is to what it expects; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library.
"""

from __future__ import annotations

import difflib
import re
import unittest
from numbers import Number
from typing import Any

_LONGEST = 400
_SHOWN = 120
_ERROR, _ASSERTION, _COMPARED = 0.05, 0.15, 0.2
"""What an error in the code, a failed assertion, and one of two values are worth at least."""
_DOCTEST = re.compile(r"Expected:\n(?P<wanted>.*?)\nGot:\n(?P<got>.*)", re.DOTALL)


class Nearness:
    """The last comparison of a red test; also a plugin of pytest."""

    def __init__(self) -> None:
        self.pair: tuple[Any, Any] | None = None
        self.seen: dict[str, tuple[float, str, str]] = {}

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        if op in ("==", "is"):
            self.pair = (left, right)

    def watch_unittest(self) -> None:
        before = unittest.TestCase.assertEqual
        me = self

        def compare(case: Any, first: Any, second: Any, msg: Any = None) -> None:
            try:
                before(case, first, second, msg)
            except AssertionError:
                me.pair = (first, second)
                raise

        unittest.TestCase.assertEqual = compare  # type: ignore[method-assign, assignment]

    def begin(self) -> None:
        self.pair = None

    def fail(self, test: str, error: BaseException) -> None:
        """Note how far a test came."""
        near, wanted, got = self.measure(error)
        if test not in self.seen or near > self.seen[test][0]:
            self.seen[test] = (round(near, 4), wanted, got)

    def measure(self, error: BaseException) -> tuple[float, str, str]:
        said = _DOCTEST.search(_text_of(error))
        if said:
            wanted, got = said["wanted"].strip(), said["got"].strip()
            return _COMPARED + 0.7 * rate_likeness(got, wanted), wanted[:_SHOWN], got[:_SHOWN]
        if not isinstance(error, AssertionError):
            return _ERROR, "", f"{type(error).__name__}: {_text_of(error)}"[:_SHOWN]
        if self.pair is None:
            return _ASSERTION, "", (_text_of(error).splitlines() or [""])[0][:_SHOWN]
        got, wanted = self.pair
        return _COMPARED + 0.7 * rate_likeness(got, wanted), clip_repr(wanted), clip_repr(got)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # whatever the code under test raises
        return ""


def clip_repr(value: object) -> str:
    try:
        return repr(value)[:_SHOWN]
    except Exception:  # noqa: BLE001  # whatever the code under test raises
        return f"a {type(value).__name__}"


def rate_likeness(got: Any, wanted: Any, depth: int = 0) -> float:
    """Return how alike two values are, from 0 to 1."""
    try:
        return _alike(got, wanted, depth)
    except Exception:  # noqa: BLE001  # whatever the code under test raises
        return 0.0


def _alike(got: Any, wanted: Any, depth: int) -> float:
    if isinstance(got, Number) and isinstance(wanted, Number):
        return 1.0 if got == wanted else 0.9 / (1.0 + abs(float(got) - float(wanted)))  # type: ignore[arg-type]
    if type(got) is not type(wanted) or depth > 4:
        return 0.0
    if isinstance(got, (str, bytes)):
        return difflib.SequenceMatcher(None, got[:_LONGEST], wanted[:_LONGEST], False).ratio()
    if isinstance(got, (list, tuple)):
        count = max(len(got), len(wanted), 1)
        pairs = list(zip(got, wanted))[:_LONGEST]  # noqa: B905  # Python 3.8 has no `strict`
        return 0.1 + 0.9 * sum(rate_likeness(left, right, depth + 1) for left, right in pairs) / count
    if isinstance(got, dict):
        names = [*got.keys(), *(name for name in wanted if name not in got)][:_LONGEST]
        same = (
            rate_likeness(got[name], wanted[name], depth + 1)
            for name in names
            if name in got and name in wanted
        )
        return 0.1 + 0.9 * sum(same) / max(len(names), 1)
    if isinstance(got, (set, frozenset)):
        return 0.1 + 0.9 * len(got & wanted) / max(len(got | wanted), 1)
    return 1.0 if got == wanted else 0.1
