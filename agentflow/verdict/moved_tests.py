"""Tests that go on under another name or in another file, word for word: a pure function of the texts."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence


def moved_tests(
    lost: Collection[str], news: Collection[str], texts: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Return which of the lost tests stand among the new ones with the same body and the same case.

    `texts` are the changed files of tests, each before and after. A new test takes the place of one only.
    """
    before = [each for old, _ in texts for each in _functions(old)]
    after = [each for _, new in texts for each in _functions(new)]
    found, free = set[str](), set(news)
    for test in sorted(lost):
        name, case = _parts(test)
        bodies = {body for known, body in before if known == name}
        heirs = {known for known, body in after if body in bodies}
        place = next((new for new in sorted(free) if _parts(new)[1] == case and _parts(new)[0] in heirs), "")
        if place:
            free.remove(place)
            found.add(test)
    return frozenset(found)


def _parts(test: str) -> tuple[str, str]:
    """Return the function of a test and its case, by pytest's id of it or by unittest's."""
    whole, bracket, case = test.partition("[")
    return re.split(r"::|\.", whole)[-1], bracket + case


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each function, and all of it but its name; nothing of what is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = (node.args, *node.decorator_list, *node.body)
            yield node.name, "\n".join(map(ast.dump, parts))
