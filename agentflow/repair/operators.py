"""Single edits of operators, constants and operands."""

import ast
import re
from collections.abc import Iterator, Mapping

from agentflow.repair.code import Code, Mutation

_TOKEN = re.compile(
    rb"not\s+in\b|is\s+not\b|\bin\b|\bis\b|\band\b|\bor\b|(?:\*\*|//|<<|>>|[-+*/%@&|^])=?|[<>!=]=|[<>]|="
)
_COMPARE: Mapping[type[ast.AST], tuple[tuple[str, int], ...]] = {
    ast.Lt: (("<=", 1), (">", 3), (">=", 3)),
    ast.LtE: (("<", 1), (">=", 3), (">", 3)),
    ast.Gt: ((">=", 1), ("<", 3), ("<=", 3)),
    ast.GtE: ((">", 1), ("<=", 3), ("<", 3)),
    ast.Eq: (("!=", 2), ("<=", 3), (">=", 3)),
    ast.NotEq: (("==", 2), ("<", 3), (">", 3)),
    ast.Is: (("is not", 1), ("==", 3)),
    ast.IsNot: (("is", 1), ("!=", 3)),
    ast.In: (("not in", 1),),
    ast.NotIn: (("in", 1),),
}
_ARITHMETIC: Mapping[type[ast.AST], tuple[tuple[str, int], ...]] = {
    ast.Add: (("-", 1), ("*", 2)),
    ast.Sub: (("+", 1), ("%", 3)),
    ast.Mult: (("/", 2), ("+", 2), ("**", 3), ("//", 3)),
    ast.Div: (("//", 1), ("*", 2), ("%", 3)),
    ast.FloorDiv: (("/", 1), ("%", 2), ("*", 2)),
    ast.Mod: (("//", 2), ("/", 2), ("*", 3)),
    ast.Pow: (("*", 2),),
    ast.BitAnd: (("|", 1), ("^", 2), ("and", 3)),
    ast.BitOr: (("&", 1), ("^", 2), ("or", 3)),
    ast.BitXor: (("|", 1), ("&", 1)),
    ast.LShift: ((">>", 1),),
    ast.RShift: (("<<", 1),),
}
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
_COUNTED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)


def operator_mutations(code: Code, node: ast.AST) -> Iterator[Mutation]:
    """Return the edits of one node that exchange, add or drop an operator or a number."""
    match node:
        case ast.Compare():
            yield from _comparison(code, node)
        case ast.BinOp():
            yield from _arithmetic(code, node)
        case ast.AugAssign():
            yield from _assignment(code, node)
        case ast.BoolOp():
            yield from _logic(code, node)
        case ast.UnaryOp():
            yield code.swap(node, code.text(node.operand), "extra negation", 2)
        case ast.Constant():
            yield from _constant(code, node)
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            yield from _condition(code, node.test)
        case _:
            pass  # it has nothing to exchange
    yield from _increments(code, node)


def _between(
    code: Code, pair: tuple[ast.expr, ast.expr], choices: tuple[tuple[str, int], ...], kind: str
) -> Iterator[Mutation]:
    """Return the edits of the operator that stands between two operands."""
    found = _TOKEN.search(code.raw, code.span(pair[0])[1], code.span(pair[1])[0])
    if found:
        yield from (code.mutation(found.span(), text, kind, weight) for text, weight in choices)


def _comparison(code: Code, node: ast.Compare) -> Iterator[Mutation]:
    operands = [node.left, *node.comparators]
    for index, operator in enumerate(node.ops):
        pair = (operands[index], operands[index + 1])
        yield from _between(code, pair, _COMPARE[type(operator)], "comparison")


def _arithmetic(code: Code, node: ast.BinOp) -> Iterator[Mutation]:
    yield from _between(code, (node.left, node.right), _ARITHMETIC.get(type(node.op), ()), "operator")
    left, right = code.text(node.left), code.text(node.right)
    is_step = isinstance(node.right, ast.Constant) and node.right.value == 1
    yield code.swap(node, left, "extra increment" if is_step else "extra operand", 1 if is_step else 3)
    yield code.swap(node, right, "extra operand", 4)
    are_simple = isinstance(node.left, _SIMPLE) and isinstance(node.right, _SIMPLE)
    if are_simple and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
        yield code.exchanged(node.left, node.right, "swapped operands")
    if isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod):
        for each in (node.left, node.right):
            yield from _stepped(code, each)


def _stepped(code: Code, operand: ast.expr) -> Iterator[Mutation]:
    if isinstance(operand, ast.Name | ast.Attribute | ast.Call):
        yield code.swap(operand, f"({code.text(operand)} + 1)", "missing increment", 3)
        yield code.swap(operand, f"({code.text(operand)} - 1)", "missing decrement", 3)


def _assignment(code: Code, node: ast.AugAssign) -> Iterator[Mutation]:
    choices = tuple(
        (f"{text}=", weight) for text, weight in _ARITHMETIC.get(type(node.op), ()) if not text.isalpha()
    )
    yield from _between(code, (node.target, node.value), (*choices, ("=", 3)), "operator")


def _logic(code: Code, node: ast.BoolOp) -> Iterator[Mutation]:
    other = "or" if isinstance(node.op, ast.And) else "and"
    for index in range(len(node.values) - 1):
        yield from _between(code, (node.values[index], node.values[index + 1]), ((other, 1),), "logic")
    for index, value in enumerate(node.values):
        rest = [code.text(each) for each in node.values if each is not value]
        joined = (" and " if other == "or" else " or ").join(rest)
        yield code.swap(node, joined, "extra condition", 2 + min(index, 1))


def _constant(code: Code, node: ast.Constant) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool):
        yield code.swap(node, str(not value), "constant", 1)
    elif isinstance(value, int) and code.text(node).isdecimal():
        yield code.swap(node, str(value + 1), "constant", 1)
        yield code.swap(node, str(value - 1), "constant", 1)


def _condition(code: Code, test: ast.expr) -> Iterator[Mutation]:
    if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        yield code.swap(test, f"not {code.text(test)}", "missing negation", 2)
    elif isinstance(test, ast.BoolOp):
        yield code.swap(test, f"not ({code.text(test)})", "missing negation", 3)


def _increments(code: Code, node: ast.AST) -> Iterator[Mutation]:
    for each, weight in _slots(node):
        if isinstance(each, _COUNTED) and not isinstance(getattr(each, "op", None), ast.BitAnd | ast.BitOr):
            yield code.swap(each, f"{code.text(each)} + 1", "missing increment", weight)
            yield code.swap(each, f"{code.text(each)} - 1", "missing decrement", weight)


def _slots(node: ast.AST) -> Iterator[tuple[ast.expr | None, int]]:
    """Return the operands of a node that may be off by one."""
    match node:
        case ast.Return() | ast.Assign():
            yield node.value, 2
        case ast.Tuple():
            yield from ((each, 3) for each in node.elts)
        case ast.Slice():
            yield from ((node.lower, 2), (node.upper, 2))
        case ast.Subscript() if not isinstance(node.slice, ast.Slice):
            yield node.slice, 3
        case ast.Call():
            yield from ((argument, 2) for argument in node.args)
        case ast.Compare():
            yield from ((each, 3) for each in (node.left, *node.comparators))
        case _:
            return
