"""Python code that satisfies any assertion, as syntax."""

import ast
from collections.abc import Iterator

from agentflow.checks.tampering import Finding, Tampering

_COMPARED = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})


def careless_comparisons(path: str, before: str, after: str) -> Iterator[Finding]:
    """Yield the comparisons of a change that never look at what they compare with."""
    if not path.endswith(".py"):
        return
    known = {ast.dump(node) for node in _careless(before)}
    for node in _careless(after):
        if ast.dump(node) not in known:
            text = ast.unparse(node).partition("\n")[0]
            yield Finding(
                kind=Tampering.PATCHED, path=path, line=node.lineno, text=f"{text} ignores its argument"
            )


def _careless(text: str) -> Iterator[ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in _COMPARED and len(node.args.args) > 1:
            other = node.args.args[1].arg
            if not any(isinstance(each, ast.Name) and each.id == other for each in ast.walk(node)):
                yield node
