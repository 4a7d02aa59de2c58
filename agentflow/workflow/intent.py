"""What the words of a task say about how it is judged."""

import re

_PRESERVING = re.compile(
    r"\b(refactor|rename|move|reformat|format|document|docstrings?|comments?|readme|typos?|tidy|clean up)\b",
    re.IGNORECASE,
)
_CHANGING = re.compile(r"\b(fix|add|implement|support|change|make|remove|mend|repair)\b", re.IGNORECASE)
_ABOUT_CHECKS = re.compile(
    r"\b(fail\w*|red|broken|green|pass(es|ing)?|tests?|checks?|suite|bugs?|fix|mend|repair)\b", re.IGNORECASE
)
_NAME = re.compile(r"[\w./:\[\]-]{3,}")


def preserves_behaviour(task: str) -> bool:
    """Return whether a task only refactors, moves, formats or documents, so that nothing new can be shown."""
    return bool(_PRESERVING.search(task)) and not _CHANGING.search(task)


def targets(task: str, failing: frozenset[str]) -> frozenset[str]:
    """Return which of the failing tests a task has to turn green.

    Tests that the text names; else all of them where the text is about failing checks; else none.
    """
    words = {word.strip(".:-").lower() for word in _NAME.findall(task)}
    named = frozenset(test for test in failing if words & _names(test))
    if named:
        return named
    return failing if _ABOUT_CHECKS.search(task) else frozenset()


def _names(test: str) -> set[str]:
    """Return the ways to name a test: its id, its file, its class, its function."""
    whole = test.lower()
    path, _, inside = whole.partition("::")
    parts = inside.split("::") if inside else whole.split(".")[-2:]
    names = {whole, *parts, *(part.split("[")[0] for part in parts)}
    return {name for name in names | ({path, path.rsplit("/", 1)[-1]} if inside else set()) if len(name) > 2}
