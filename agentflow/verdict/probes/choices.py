"""Python calls that choose between two values without a condition: defaults, bounds, cuts, ignored errors."""

import ast

from agentflow.core.record import Record
from agentflow.verdict.syntax import get_last_word

_SIGNS_SHOWN = 60
CHOOSERS = """
def {word}_default(part, call, *given):
    from collections.abc import Mapping
    is_known = call in (next, getattr, __import__("os").getenv)
    if not is_known and not isinstance(getattr(call, "__self__", None), Mapping):
        {word}(part, 0, str)
        return call(*given)
    missing = object()
    found = call(*given[:-1], missing)
    return given[-1] if {word}(part, found is missing) else found
def {word}_bound(part, call, first, second):
    found = call(first, second)
    if found is not first or found is not second:
        {word}(part, found is first, bool if call in (min, max) else str)
    return found
def {word}_cut(part, value, start, stop):
    found = value[start:stop]
    try:
        {word}(part, len(value) > stop, bool if stop >= 0 else str)
    except TypeError:
        {word}(part, 0, str)
    return found
class {word}_ignored:
    def __init__(self, part, inner):
        self.part, self.inner = part, inner
    def __enter__(self):
        return self.inner.__enter__()
    def __exit__(self, *raised):
        return {word}(self.part, bool(self.inner.__exit__(*raised)))
"""
"""What stands in for such a call, does the same, and records which of the two it was."""
_DEFAULTS = {"next": 2, "getattr": 3, "getenv": 2, "get": 2, "pop": 2}
"""Names of calls with a default as their last argument, and how many they then have."""
_METHODS = frozenset({"get", "pop"})
_BOUNDS = frozenset({"min", "max"})


class ValueChoice(Record):
    """A call or a slice that chooses, and what it does where it chooses one or the other, in words."""

    stand_in: str
    arguments: tuple[ast.expr, ...]
    words: tuple[str, str]
    """The second is empty where no test need show it."""

    def to_call(self, word: str, number: int) -> ast.Call:
        """Return the call of what stands in for it."""
        name = ast.Name(id=f"{word}_{self.stand_in}", ctx=ast.Load())
        return ast.Call(func=name, args=[ast.Constant(value=number), *self.arguments], keywords=[])


def find_choice(node: ast.AST) -> ValueChoice | None:
    """Return what a call or a slice chooses; None where there is nothing to choose."""
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(lower, ast.expr() as stop, None), ctx=ast.Load()):
            words = ("cuts something off", "")
            start = lower or ast.Constant(value=None)
            is_far = isinstance(stop, ast.UnaryOp) or _is_none(stop)
            return (
                None if is_far else ValueChoice(stand_in="cut", arguments=(value, start, stop), words=words)
            )
        case ast.Call(func=called, args=given, keywords=[]) if not any(map(_is_many, given)):
            return _find_in_call(called, given)
        case _:
            return None


def find_ignored(node: ast.expr) -> ValueChoice | None:
    """Return what a block chooses that ignores errors: whether there are any."""
    if not isinstance(node, ast.Call) or get_last_word(node.func) != "suppress":
        return None
    return ValueChoice(stand_in="ignored", arguments=(node,), words=("stops an error", ""))


def _find_in_call(called: ast.expr, given: list[ast.expr]) -> ValueChoice | None:
    name, is_name = get_last_word(called), isinstance(called, ast.Name)
    if name in _BOUNDS and is_name and len(given) == len({*map(ast.dump, given)}) == 2:
        first, second = (f"is `{shorten(ast.unparse(each))}`" for each in given)
        return ValueChoice(stand_in="bound", arguments=(called, *given), words=(first, second))
    if _DEFAULTS.get(name) != len(given) or _is_none(given[-1]) or (is_name and name in _METHODS):
        return None
    words = ("takes its default", "does not take its default")
    return ValueChoice(stand_in="default", arguments=(called, *given), words=words)


def shorten(text: str) -> str:
    """Return code as it is told."""
    return text if len(text) <= _SIGNS_SHOWN else f"{text[:_SIGNS_SHOWN]}..."


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_many(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)
