"""Single edits without another name: operators, constants, guards, returns and jumps."""

import ast
import re
from collections.abc import Iterator, Mapping

from agentflow.repair.sources import Code, FunctionNode, Mutation

_TOKEN = re.compile(
    rb"not\s+in\b|is\s+not\b|\bin\b|\bis\b|\band\b|\bor\b|(?:\*\*|//|<<|>>|[-+*/%@&|^])=?|[<>!=]=|[<>]|="
)

_COMPARE: Mapping[type[ast.AST], tuple[tuple[str, int], ...]] = {
    ast.Lt: (("<=", 1), (">", 3), (">=", 3)),
    ast.LtE: (("<", 1), (">=", 3), (">", 3)),
    ast.Gt: ((">=", 1), ("<", 3), ("<=", 3)),
    ast.GtE: ((">", 1), ("<=", 3), ("<", 3)),
    ast.Eq: (("!=", 2), ("<=", 3), (">=", 3), ("<", 3), (">", 3), ("in", 3)),
    ast.NotEq: (("==", 2), ("<", 3), (">", 3), ("not in", 3)),
    ast.Is: (("is not", 1), ("==", 3)),
    ast.IsNot: (("is", 1), ("!=", 3)),
    ast.In: (("not in", 1),),
    ast.NotIn: (("in", 1),),
}

_ARITHMETIC: Mapping[type[ast.AST], tuple[tuple[str, int], ...]] = {
    ast.Add: (("-", 1), ("*", 2), ("/", 3), ("//", 3), ("%", 4), ("|", 4)),
    ast.Sub: (("+", 1), ("%", 3), ("*", 2), ("//", 3), ("/", 3), ("&", 4)),
    ast.Mult: (("/", 2), ("+", 2), ("**", 3), ("//", 3), ("-", 2), ("%", 3)),
    ast.Div: (("//", 1), ("*", 2), ("%", 3), ("-", 2), ("+", 3)),
    ast.FloorDiv: (("/", 1), ("%", 2), ("*", 2), ("-", 3), ("+", 3)),
    ast.Mod: (("//", 2), ("/", 2), ("*", 3), ("-", 3), ("+", 3)),
    ast.Pow: (("*", 2), ("//", 3), ("+", 3)),
    ast.BitAnd: (("|", 1), ("-", 2), ("and", 3), ("^", 3)),
    ast.BitOr: (("&", 1), ("-", 2), ("or", 3), ("^", 3), ("+", 3)),
    ast.BitXor: (("|", 1), ("&", 1)),
    ast.LShift: ((">>", 1),),
    ast.RShift: (("<<", 1),),
}

_IDLE = ("*", "/", "//", "**")
"""Operators that do nothing with a 1 on their right; that operand is dropped by an edit of its own."""

_COUNTED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)

_CAUGHT = ("KeyError", "ValueError", "IndexError", "TypeError", "AttributeError", "LookupError", "OSError")

_EMPTY = ("None", "0", "[]", "''")

_DROPPABLE = (ast.Expr, ast.Assign, ast.AugAssign)


def mutate_operators(code: Code, node: ast.AST) -> Iterator[Mutation]:
    """Yield the edits of one node that exchange, add or drop an operator or a number."""
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
            yield code.swap(node, code.get_text(node.operand), "extra negation", 2)
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
    """Yield the edits of the operator that stands between two operands."""
    found = _TOKEN.search(code.raw, code.find_span(pair[0])[1], code.find_span(pair[1])[0])
    if found:
        yield from (code.make_mutation(found.span(), text, kind, weight) for text, weight in choices)


def _comparison(code: Code, node: ast.Compare) -> Iterator[Mutation]:
    operands = [node.left, *node.comparators]
    for index, operator in enumerate(node.ops):
        pair = (operands[index], operands[index + 1])
        yield from _between(code, pair, _COMPARE[type(operator)], "comparison")


def _arithmetic(code: Code, node: ast.BinOp) -> Iterator[Mutation]:
    left, right = code.get_text(node.left), code.get_text(node.right)
    is_step = isinstance(node.right, ast.Constant) and node.right.value == 1
    choices = _ARITHMETIC.get(type(node.op), ())
    choices = tuple(each for each in choices if not is_step or each[0] not in _IDLE)
    yield from _between(code, (node.left, node.right), choices, "operator")
    yield code.swap(node, left, "extra increment" if is_step else "extra operand", 1 if is_step else 3)
    yield code.swap(node, right, "extra operand", 4)
    if isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod):
        is_odd = not isinstance(
            node.op, ast.Mult
        )  # what is divided is off by one more often than the divisor
        yield from _step(code, node.left, 3)
        yield from _step(code, node.right, 3 + is_odd)


def _step(code: Code, operand: ast.expr, weight: int) -> Iterator[Mutation]:
    if isinstance(operand, ast.Name | ast.Attribute | ast.Call):
        yield code.swap(operand, f"({code.get_text(operand)} + 1)", "missing increment", weight)
        yield code.swap(operand, f"({code.get_text(operand)} - 1)", "missing decrement", weight)


def _assignment(code: Code, node: ast.AugAssign) -> Iterator[Mutation]:
    choices = tuple(
        (f"{text}=", weight) for text, weight in _ARITHMETIC.get(type(node.op), ()) if not text.isalpha()
    )
    yield from _between(code, (node.target, node.value), (*choices, ("=", 3)), "operator")


_GATHERING = (("+=", 2), ("-=", 3), ("*=", 3), ("//=", 3), ("|=", 5), ("/=", 4), ("%=", 4))


def _accumulate(code: Code, node: ast.Assign, target: ast.expr) -> Iterator[Mutation]:
    """Yield an assignment that adds to what is there instead of replacing it."""
    if isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
        yield from _between(code, (target, node.value), _GATHERING, "operator")
    if isinstance(target, ast.Subscript):
        owner, key = code.get_text(target.value), code.get_text(target.slice)
        start = code.find_span(node.value)[0]
        yield code.make_mutation((start, start), f"{owner}.get({key}, 0) + ", "missing term", 4)


def _access(code: Code, node: ast.Subscript) -> Iterator[Mutation]:
    """Yield another way to take an element of a collection."""
    if not isinstance(node.slice, ast.Slice | ast.Tuple):
        owner, key = code.get_text(node.value), code.get_text(node.slice)
        for shape in ("{}.get({})", "{}.pop({})", "{}.get({}, 0)", "{}.get({}, [])", "{}.pop({}, None)"):
            yield code.swap(node, shape.format(owner, key), "wrong access", 4)


def _logic(code: Code, node: ast.BoolOp) -> Iterator[Mutation]:
    other = "or" if isinstance(node.op, ast.And) else "and"
    for index in range(len(node.values) - 1):
        yield from _between(code, (node.values[index], node.values[index + 1]), ((other, 1),), "logic")
    for index, value in enumerate(node.values):
        rest = [code.get_text(each) for each in node.values if each is not value]
        joined = (" and " if other == "or" else " or ").join(rest)
        yield code.swap(node, joined, "extra condition", 2 + min(index, 1))


def _constant(code: Code, node: ast.Constant) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool):
        yield code.swap(node, str(not value), "constant", 1)
    elif isinstance(value, int) and code.get_text(node).isdecimal():
        yield code.swap(node, str(value + 1), "constant", 1)
        yield code.swap(node, str(value - 1), "constant", 1)


def _condition(code: Code, test: ast.expr) -> Iterator[Mutation]:
    if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        yield code.swap(test, f"not {code.get_text(test)}", "missing negation", 2)
    elif isinstance(test, ast.BoolOp):
        yield code.swap(test, f"not ({code.get_text(test)})", "missing negation", 3)


def _increments(code: Code, node: ast.AST) -> Iterator[Mutation]:
    for each, weight in _slots(node):
        if isinstance(each, _COUNTED) and not isinstance(getattr(each, "op", None), ast.BitAnd | ast.BitOr):
            yield code.swap(each, f"{code.get_text(each)} + 1", "missing increment", weight)
            yield code.swap(each, f"{code.get_text(each)} - 1", "missing decrement", weight)


def _slots(node: ast.AST) -> Iterator[tuple[ast.expr | None, int]]:
    """Yield the operands of a node that may be off by one."""
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


def mutate_access(code: Code, node: ast.AST) -> Iterator[Mutation]:
    """Yield the edits of one node that add to a place, or take an element of a collection otherwise."""
    match node:
        case ast.Assign(targets=[target]):
            yield from _accumulate(code, node, target)
        case ast.Subscript(ctx=ast.Load()):
            yield from _access(code, node)
        case _:
            return


def mutate_statements(code: Code, node: ast.AST) -> Iterator[Mutation]:
    """Yield the edits of one statement that add, drop or exchange it."""
    match node:
        case ast.Break() | ast.Continue():
            yield code.swap(node, "continue" if isinstance(node, ast.Break) else "break", "jump", 2)
        case ast.ExceptHandler():
            yield from _exchange_exception(code, node)
        case ast.If(orelse=[]):
            yield code.swap(node.test, "True", "extra guard", 3)
            yield code.swap(node.test, "False", "extra guard", 4)
        case ast.Return(value=ast.expr()):
            yield from _exchange_result(code, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _entry(code, node)
        case ast.For():
            yield from _loop(code, node)
        case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod()):
            yield from _division(code, node)
        case _:
            yield from _drop(code, node)


def _exchange_exception(code: Code, node: ast.ExceptHandler) -> Iterator[Mutation]:
    if isinstance(node.type, ast.Name) and node.type.id in _CAUGHT:
        for name in _CAUGHT:
            if name != node.type.id:
                yield code.swap(node.type, name, "exception", 3)


def _exchange_result(code: Code, node: ast.Return) -> Iterator[Mutation]:
    assert node.value is not None
    scope = code.find_scope(node)

    def work() -> list[str]:
        names = (
            each.id
            for each in code.walk(scope)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )
        return list(dict.fromkeys(names))[:4]

    fitting = [] if isinstance(node.value, ast.Name) else code.compute_once(("results", scope), work)
    for name in fitting:
        yield code.swap(node.value, name, "return value", 3)
    if isinstance(node.value, ast.Compare | ast.Call):
        yield code.swap(node.value, f"not {code.get_text(node.value)}", "missing negation", 3)


def _entry(code: Code, node: FunctionNode) -> Iterator[Mutation]:
    """Guard a function's parameters, or return what its last line computes."""
    last = node.body[-1]
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant | ast.Yield | ast.Await):
        start = code.find_span(last)[0]
        yield code.make_mutation((start, start), "return ", "missing return", 2)
    first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
    names = [
        each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in {"self", "cls"}
    ]
    for name in names[:3]:
        for test in (f"not {name}", f"{name} is None"):
            for value in dict.fromkeys((*_constants(node), *_EMPTY, name)):
                yield _guard(code, first, test, f"return {value}")


def _constants(node: FunctionNode) -> Iterator[str]:
    """Yield the plain values that a function returns somewhere."""
    for each in ast.walk(node):
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Constant):
            yield ast.unparse(each.value)


def _loop(code: Code, node: ast.For) -> Iterator[Mutation]:
    if isinstance(node.target, ast.Name):
        for test in (f"not {node.target.id}", f"{node.target.id} is None"):
            yield _guard(code, node.body[0], test, "continue")


def _division(code: Code, node: ast.BinOp) -> Iterator[Mutation]:
    statement = code.find_statement(node)
    is_plain = isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.Expr)
    if is_plain and statement is not None and isinstance(code.find_scope(node), FunctionNode):
        for value in ("0", "None"):
            yield _guard(code, statement, f"not {code.get_text(node.right)}", f"return {value}", 2)


def _guard(code: Code, statement: ast.stmt, test: str, action: str, weight: int = 4) -> Mutation:
    start = code.find_span(statement)[0]
    indent = code.indent(statement)
    newline = "\r\n" if b"\r\n" in code.raw else "\n"
    step = "\t" if indent.startswith("\t") else "    "
    text = f"if {test}:{newline}{indent}{step}{action}{newline}{indent}"
    return code.make_mutation((start, start), text, "missing guard", weight)


def _drop(code: Code, node: ast.AST) -> Iterator[Mutation]:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, _DROPPABLE) and not is_docstring and isinstance(code.find_scope(node), FunctionNode):
        yield code.swap(node, "pass", "extra statement", 4)
