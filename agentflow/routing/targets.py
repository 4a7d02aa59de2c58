"""What the words of a task say about how it is judged."""

import re
from collections.abc import Callable

from agentflow.core.record import Record
from agentflow.core.regex import regex

_TEXT = regex(
    r"(?:document\b|(?:add|fix|write|update|improve|correct|extend|reword|translate|remove)\s+(?:[\w'./-]+\s+){0,3}?"
    r"(?:docstrings?|comments?|readme(?:\.\w+)?|changelog(?:\.\w+)?|docs|documentation|typos?|wording|spelling)"
    r"(?=\s*(?:$|[.,;:!?)])|\s['\"`]|\s(?:in|to|for|of|on|about|at|with|from)\b))",
    re.IGNORECASE,
)
"""An order about text that only people read."""
_CHECKS = r"fail\w*|red|broken|green|pass(?:es|ing)?|tests?|checks?|suite"
_CHECK = r"(?:tests?|checks?|suite|build|ci|pipeline)"
_STATE = r"(?:fail\w*|red|broken|green|pass(?:es|ing)?)"
_ABOUT_CHECKS = regex(
    rf"\bfailing\b|\b{_CHECK}\b(?:\W+\w+){{0,4}}?\W+{_STATE}\b|\b{_STATE}\W+(?:\w+\W+)?{_CHECK}\b"
    rf"|\b(?:fix|mend|repair)\W+(?:(?:the|all|our|my|these|those)\W+)*{_CHECK}\b",
    re.IGNORECASE,
)
"""What a text says that wants checks to pass."""
_NEW_TEST = regex(
    rf"\b(?:add|write|includ|with|cover|extend)\w*\W+(?:\w+\W+){{0,3}}?{_CHECK}\b[^.;]*", re.IGNORECASE
)
"""An order for further tests, which says nothing of those that are there."""
_ABOUT_FAULTS = regex(rf"\b(?:{_CHECKS}|bugs?|fix|mend|repair)\b", re.IGNORECASE)
_NAME = regex(r"[\w./:\[\]-]{3,}")
_CODE = regex(r"`([^`\n]+)`|([A-Za-z_][\w./]*)(\()?")
_IN_CODE = regex(r"[A-Za-z_]\w{2,}")
_LIKE_CODE = regex(r"[A-Za-z_]\w*(?:[_/]|\.\w)|[a-z][A-Z]|[A-Z][a-z]+[A-Z]")


def is_about_text(order: str) -> bool:
    """Return whether an order is about documentation or comments only."""
    return bool(_TEXT.match(order))


class Targets(Record):
    """The failing tests that a task is about."""

    asked: frozenset[str] = frozenset()
    """Those that its words ask for: they have to pass."""
    guessed: frozenset[str] = frozenset()
    """Those that may show its fault: they have to pass unless something else proves the change."""


def find_targets(
    task: str, failing: frozenset[str], speaking_of: Callable[[frozenset[str]], frozenset[str]]
) -> Targets:
    """Return which of the failing tests a task has to turn green.

    Tests that the text names are asked for; else all of them where the text wants checks to pass. Where it is
    about a fault, those that speak of the code it names are guessed, or else all.
    """
    if found := find_named_tests(task, failing):
        return Targets(asked=found)
    if _ABOUT_CHECKS.search(_NEW_TEST.sub("", task)):
        return Targets(asked=failing)
    if is_about_text(task) or not _ABOUT_FAULTS.search(task):
        return Targets()
    code = find_code_names(task)
    return Targets(guessed=(speaking_of(code) if code else frozenset()) or failing)


def find_code_names(text: str) -> frozenset[str]:
    """Return the identifiers in a text: in backticks, called, or spelled as only code is."""
    found = _CODE.findall(text)
    words = [quoted or word for quoted, word, call in found if quoted or call or _LIKE_CODE.match(word)]
    return frozenset(name for word in words for name in _IN_CODE.findall(_module(word)))


def _module(word: str) -> str:
    """Return what a path is imported as; any other word as it is."""
    *folders, last = word.split("/")
    stem = last.partition(".")[0] if folders else last
    return folders[-1] if folders and stem == "__init__" else stem


def find_named_tests(task: str, tests: frozenset[str]) -> frozenset[str]:
    """Return the tests that a text names, by themselves or by their file."""
    found = (word.strip(".:-").lower() for word in _NAME.findall(task))
    words = {word for word in found if not _ABOUT_FAULTS.fullmatch(word)}
    places = {_to_module(word) for word in words if re.search(r"[./_]", word)}
    return frozenset(test for test in tests if words & _names(test) or _lies_in(test, places))


def _lies_in(test: str, places: set[str]) -> bool:
    """Return whether a test lies in one of these modules, as far as both name their folders."""
    path, _, inside = test.lower().partition("::")
    module = f".{_to_module(path) if inside else path.rsplit('.', 2)[0]}"
    return any(module.endswith(f".{place}") or f".{place}".endswith(module) for place in places)


def _to_module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _names(test: str) -> set[str]:
    """Return the ways to name a test: by id, file, class or function."""
    whole = test.lower()
    path, _, inside = whole.partition("::")
    parts = inside.split("::") if inside else whole.split(".")[-2:]
    names = {whole, *parts, *(part.split("[")[0] for part in parts)}
    return {name for name in names | ({path, path.rsplit("/", 1)[-1]} if inside else set()) if len(name) > 2}
