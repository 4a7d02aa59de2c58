"""What Python code chooses without a condition.

Defaults, bounds and cuts, ignored errors, operations that change nothing, rounds of a loop.
"""

import ast
from collections.abc import Callable, Iterable

from agentflow.core.record import Record
from agentflow.verdict.syntax import get_last_word

_SIGNS_SHOWN = 60
CHOOSERS = """
def {word}_default(part, call, *given):
    is_known = call in (next, getattr, __import__("os").getenv)
    if not is_known and not isinstance(getattr(call, "__self__", None), __import__("typing").Mapping):
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
{word}_operator = __import__("operator")
def {word}_operation(part, operate, left, right, told=set()):
    found = operate(left, right)
    if part in told:
        return found
    try:
        if found is left and type(left).__hash__ is None:
            {word}(part, 0, str)
        is_other, is_other_too = found != left, found != right
        if is_other:
            {word}(part, True)
        if is_other_too:
            {word}(part, False)
        if is_other and is_other_too:
            told.add(part)
    except Exception:
        {word}(part, 0, str)
    return found
def {word}_rounds(part, items):
    if type(items) is not range:
        {word}(part, 0, str)
        return items
    def give():
        for place in items:
            if place == items[-1]:
                {word}(part, True)
            yield place
    return give()
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
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitXor: "xor",
}


class ValueChoice(Record):
    """Code that chooses, and what it does where it chooses one or the other, in words."""

    stand_in: str
    words: tuple[str, str]
    """The second is empty where no test need show it."""
    list_arguments: Callable[[], Iterable[ast.expr]]
    """Returns what it chooses from; parts of that may be rewritten before."""
    operator: str = ""
    """Its name in the module of operators; empty for anything else."""

    def to_call(self, word: str, number: int) -> ast.Call:
        """Return the call of what stands in for it."""
        name, module = (_name(f"{word}_{part}") for part in (self.stand_in, "operator"))
        operate = [ast.Attribute(value=module, attr=self.operator, ctx=ast.Load())] if self.operator else []
        arguments = [ast.Constant(value=number), *operate, *self.list_arguments()]
        return ast.Call(func=name, args=arguments, keywords=[])


def find_choice(node: ast.AST, tell: Callable[[ast.expr], str]) -> ValueChoice | None:
    """Return what code chooses, its operands as they are told; None where there is nothing to choose."""
    match node:
        case ast.Subscript(slice=ast.Slice(upper=ast.expr() as stop, step=None) as cut, ctx=ast.Load()):
            return None if isinstance(stop, ast.UnaryOp) or _is_none(stop) else _choose_cut(node, cut)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and not _is_text(left):
            words = (f"is not `{tell(left)}`", f"is not `{tell(right)}`" if isinstance(op, ast.Mult) else "")
            return None if _is_fixed(left) and _is_fixed(right) else _choose_change(node, words)
        case ast.AugAssign(target=ast.Name(id=name), op=op) if type(op) in _OPERATORS:
            return _choose_change(node, (f"changes `{name}`", ""))
        case ast.Call(func=called, args=given, keywords=[]) if not any(map(_is_many, given)):
            return _find_in_call(node, get_last_word(called), tell)
        case _:
            return None


def find_ignored(node: ast.expr) -> ValueChoice | None:
    """Return what a block chooses that ignores errors: whether there are any."""
    if not isinstance(node, ast.Call) or get_last_word(node.func) != "suppress":
        return None
    return ValueChoice(stand_in="ignored", words=("stops an error", ""), list_arguments=lambda: (node,))


def find_rounds(node: ast.For) -> ValueChoice | None:
    """Return what a loop chooses that may be left early: its number of rounds, where it has one."""
    if not any(map(_may_leave, node.body)):
        return None
    return ValueChoice(
        stand_in="rounds", words=("gets to the last round", ""), list_arguments=lambda: (node.iter,)
    )


def _may_leave(node: ast.AST, is_inner: bool = False) -> bool:
    """Return whether a part of a loop may leave it; of an inner loop only a return does."""
    match node:
        case ast.Break():
            return not is_inner
        case ast.Return():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return False
        case _:
            is_inner = is_inner or isinstance(node, ast.For | ast.AsyncFor | ast.While)
            return any(_may_leave(each, is_inner) for each in ast.iter_child_nodes(node))


def _choose_cut(node: ast.Subscript, cut: ast.Slice) -> ValueChoice:
    none = ast.Constant(value=None)
    return ValueChoice(
        stand_in="cut",
        words=("cuts something off", ""),
        list_arguments=lambda: (node.value, cut.lower or none, cut.upper or none),
    )


def _choose_change(node: ast.BinOp | ast.AugAssign, words: tuple[str, str]) -> ValueChoice:
    """Return what an operation chooses: its result is another one than an operand."""
    name = _OPERATORS[type(node.op)]
    if isinstance(node, ast.BinOp):
        return ValueChoice(
            stand_in="operation",
            words=words,
            operator=name,
            list_arguments=lambda: (node.left, node.right),
        )
    target = _name(ast.unparse(node.target))
    return ValueChoice(
        stand_in="operation",
        words=words,
        operator=f"i{name.removesuffix('_')}",
        list_arguments=lambda: (target, node.value),
    )


def _find_in_call(node: ast.Call, name: str, tell: Callable[[ast.expr], str]) -> ValueChoice | None:
    is_name, given = isinstance(node.func, ast.Name), node.args
    if name in _BOUNDS and is_name and len(given) == len({*map(ast.dump, given)}) == 2:
        words = (f"is `{tell(given[0])}`", f"is `{tell(given[1])}`")
        return ValueChoice(stand_in="bound", words=words, list_arguments=lambda: (node.func, *node.args))
    if _DEFAULTS.get(name) != len(given) or _is_none(given[-1]) or (is_name and name in _METHODS):
        return None
    words = ("takes its default", "does not take its default")
    return ValueChoice(stand_in="default", words=words, list_arguments=lambda: (node.func, *node.args))


def _name(name: str) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Load())


def shorten(text: str) -> str:
    """Return code as it is told, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= _SIGNS_SHOWN else f"{text[:_SIGNS_SHOWN]}..."


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_fixed(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_fixed(node.operand))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_many(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)
