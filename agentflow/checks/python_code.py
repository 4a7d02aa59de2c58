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


def _careless(text: str) -> Iterator[ast.FunctionDef | ast.Lambda]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if name in _COMPARED:
                found: list[ast.AST] = [node]
            case ast.Dict(keys=keys, values=values):
                found = [value for key, value in zip(keys, values, strict=True) if _is_comparison(key)]
            case _:
                continue
        yield from (
            each for each in found if isinstance(each, ast.FunctionDef | ast.Lambda) if _ignores(each)
        )


def _is_comparison(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value in _COMPARED


def _ignores(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a comparison never names what it compares with."""
    others = [given.arg for given in node.args.args[1:2]]
    return bool(others) and not any(
        isinstance(each, ast.Name) and each.id in others for each in ast.walk(node)
    )
