"""Single edits of whole statements: guards, returns, jumps."""

import ast
from collections.abc import Iterator

from agentflow.repair.code import Code, FunctionNode, Mutation

_CAUGHT = ("KeyError", "ValueError", "IndexError", "TypeError", "AttributeError", "LookupError", "OSError")
_EMPTY = ("None", "0", "[]", "''")
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign)


def statement_mutations(code: Code, node: ast.AST) -> Iterator[Mutation]:
    """Return the edits of one statement that add, drop or exchange it."""
    match node:
        case ast.Break() | ast.Continue():
            yield code.swap(node, "continue" if isinstance(node, ast.Break) else "break", "jump", 2)
        case ast.ExceptHandler():
            yield from _caught(code, node)
        case ast.If(orelse=[]):
            yield code.swap(node.test, "True", "extra guard", 3)
            yield code.swap(node.test, "False", "extra guard", 4)
        case ast.Return(value=ast.expr()):
            yield from _returned(code, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _entry(code, node)
        case ast.For():
            yield from _loop(code, node)
        case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod()):
            yield from _division(code, node)
        case _:
            yield from _dropped(code, node)


def _caught(code: Code, node: ast.ExceptHandler) -> Iterator[Mutation]:
    if isinstance(node.type, ast.Name) and node.type.id in _CAUGHT:
        for name in _CAUGHT:
            if name != node.type.id:
                yield code.swap(node.type, name, "exception", 3)


def _returned(code: Code, node: ast.Return) -> Iterator[Mutation]:
    assert node.value is not None
    names = [
        each.id
        for each in ast.walk(code.scope(node))
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    fitting = [] if isinstance(node.value, ast.Name) else list(dict.fromkeys(names))[:4]
    for name in fitting:
        yield code.swap(node.value, name, "return value", 3)
    if isinstance(node.value, ast.Compare | ast.Call):
        yield code.swap(node.value, f"not {code.text(node.value)}", "missing negation", 3)


def _entry(code: Code, node: FunctionNode) -> Iterator[Mutation]:
    """Guard a function's parameters, or return what its last line computes."""
    last = node.body[-1]
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant | ast.Yield | ast.Await):
        start = code.span(last)[0]
        yield code.mutation((start, start), "return ", "missing return", 2)
    first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
    names = [
        each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in {"self", "cls"}
    ]
    for name in names[:3]:
        for test in (f"not {name}", f"{name} is None"):
            for value in dict.fromkeys((*_constants(node), *_EMPTY, name)):
                yield _guard(code, first, test, f"return {value}")


def _constants(node: FunctionNode) -> Iterator[str]:
    """Return the plain values that a function returns somewhere."""
    for each in ast.walk(node):
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Constant):
            yield ast.unparse(each.value)


def _loop(code: Code, node: ast.For) -> Iterator[Mutation]:
    if isinstance(node.target, ast.Name):
        for test in (f"not {node.target.id}", f"{node.target.id} is None"):
            yield _guard(code, node.body[0], test, "continue")


def _division(code: Code, node: ast.BinOp) -> Iterator[Mutation]:
    statement = code.statement(node)
    is_plain = isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.Expr)
    if is_plain and statement is not None and isinstance(code.scope(node), FunctionNode):
        for value in ("0", "None"):
            yield _guard(code, statement, f"not {code.text(node.right)}", f"return {value}", 2)


def _guard(code: Code, statement: ast.stmt, test: str, action: str, weight: int = 4) -> Mutation:
    start = code.span(statement)[0]
    indent = code.indent(statement)
    newline = "\r\n" if b"\r\n" in code.raw else "\n"
    step = "\t" if indent.startswith("\t") else "    "
    text = f"if {test}:{newline}{indent}{step}{action}{newline}{indent}"
    return code.mutation((start, start), text, "missing guard", weight)


def _dropped(code: Code, node: ast.AST) -> Iterator[Mutation]:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, _SIMPLE) and not is_docstring and isinstance(code.scope(node), FunctionNode):
        yield code.swap(node, "pass", "extra statement", 4)
