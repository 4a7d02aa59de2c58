"""Single edits of whole statements: one inserted, two exchanged, one moved out of a block or into it."""

import ast
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from agentflow.repair.clues import NUMBERS, Hints, Rule, find_name_types
from agentflow.repair.conditions import list_conditions
from agentflow.repair.sources import Code, FunctionNode, Mutation
from agentflow.repair.wrapping import find_names, list_known

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Return, ast.Delete, ast.Continue, ast.Break)

_COPIED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Delete)

_MOST_OWN = 10
_MOST_OTHER = 8
_MOST_GUARDS = 10


def _insert(code: Code, node: ast.stmt, hints: Hints) -> Iterator[Mutation]:
    """Yield a statement added before a statement, and after it where a block ends with it."""
    block = find_block(code, node)
    if block is None or not isinstance(code.find_scope(node), FunctionNode):
        return
    is_last = block[-1] is node and not isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)
    for weight, text in _list_statements(code, node, hints):
        if text.startswith(("return", "raise", "continue", "break")):
            continue  # nothing after it would run
        yield _before(code, node, text, weight)
        if is_last:
            yield _after(code, node, text, weight)
    if is_last:
        yield from (_after(code, node, text, 5) for text in _list_exits(code, node))
    if isinstance(node, ast.Pass):
        yield from (
            code.swap(node, text, "missing statement", 4) for _, text in _list_statements(code, node, hints)
        )


def _before(code: Code, node: ast.stmt, text: str, weight: int) -> Mutation:
    start = code.find_span(node)[0]
    return code.make_mutation(
        (start, start), f"{text}{_newline(code)}{code.indent(node)}", "missing statement", weight
    )


def _after(code: Code, node: ast.stmt, text: str, weight: int) -> Mutation:
    end = code.find_span(node)[1]
    return code.make_mutation(
        (end, end), f"{_newline(code)}{code.indent(node)}{text}", "missing statement", weight
    )


def _newline(code: Code) -> str:
    return "\r\n" if b"\r\n" in code.raw else "\n"


def find_block(code: Code, node: ast.stmt) -> list[ast.stmt] | None:
    """Return the block in which a statement has its own line; None if it shares the header's line."""
    parent = code.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            return block if not code.indent(node).strip() else None
    return None


def _list_statements(code: Code, node: ast.stmt, hints: Hints) -> list[tuple[int, str]]:
    """Return statements that may be missing where one stands, with their weights."""
    scope, home = code.find_scope(node), code.find_home(node)
    found = list(code.compute_once(("own", scope), lambda: _list_own(code, scope)))
    found += code.compute_once(("resets", scope), lambda: _list_resets(code, scope, home))
    if isinstance(home, ast.ClassDef):
        found += _list_of_class(code, node, home)
    found += [(4, text) for text in _list_growth(code, node, hints)]
    if isinstance(node, ast.Pass):
        raised = [code.get_text(each) for each in code.walk(code.tree) if isinstance(each, ast.Raise)]
        found += [(4, text) for text in dict.fromkeys(raised)]
        kinds = dict.fromkeys(text.partition("(")[0] for text in raised)
        found += [(5, f"{kind}({word!r})") for kind in kinds for word in hints.words]
    return found


def _list_own(code: Code, scope: ast.AST) -> list[tuple[int, str]]:
    """Return the first statements of a function, which may stand in it once more."""
    own = (
        code.get_text(each)
        for each in code.walk(scope)
        if isinstance(each, _COPIED) and not _is_docstring(each)
    )
    found = [(4, text) for text in dict.fromkeys(own) if "\n" not in text][:_MOST_OWN]
    taken = (
        code.get_text(each) for each in code.walk(scope) if isinstance(each, ast.Call) and _is_taking(each)
    )
    return [*found, *((4, text) for text in dict.fromkeys(taken) if (4, text) not in found)]


def _is_taking(node: ast.Call) -> bool:
    """Say whether a call takes an element away, which may be all that is wanted of it."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "pop"


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _list_resets(code: Code, scope: ast.AST, home: ast.AST) -> list[tuple[int, str]]:
    """Return what `__init__` gives each field that a function does not set, lighter where it sets others.

    A flag may get its other value too, which is lightest beside another field where no method does that.
    """
    start = next(
        (each for each in getattr(home, "body", ()) if getattr(each, "name", "") == "__init__"), None
    )
    if start is None or start is scope:
        return []
    given = [each for each in code.walk(start) if isinstance(each, ast.Assign) and _is_field(each.targets[0])]
    set_here = {code.get_text(each.targets[0]) for each in code.walk(scope) if isinstance(each, ast.Assign)}
    all_set = Counter(
        code.get_text(each.targets[0]) for each in code.walk(home) if isinstance(each, ast.Assign)
    )
    weight = 2 if any(code.get_text(each.targets[0]) in set_here for each in given) else 6
    found = []
    for each in given:
        name, value = code.get_text(each.targets[0]), each.value
        if name in set_here or any(isinstance(part, ast.Name) for part in ast.walk(value)):
            continue
        found.append((weight, code.get_text(each)))
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            found.append((2 + (all_set[name] > 1) + (weight > 2), f"{name} = {not value.value}"))
    return found


def _is_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _list_of_class(code: Code, node: ast.stmt, home: ast.ClassDef) -> list[tuple[int, str]]:
    """Return statements of the class's other methods, and calls of these, that make sense in this one."""
    scope = code.find_scope(node)
    names = {*list_known(code, node), "self"}
    return code.compute_once(("of class", scope), lambda: _find_of_class(code, scope, home, names))


def _find_of_class(code: Code, scope: ast.AST, home: ast.ClassDef, names: set[str]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for method in home.body:
        if not isinstance(method, FunctionNode) or method is scope or method.name.startswith("__"):
            continue
        given = [each.arg for each in method.args.args[1:]]
        if not method.decorator_list and names.issuperset(given) and len(given) <= 3:
            found.append((4, f"self.{method.name}({', '.join(given)})"))
        found += [(5, text) for text in _copy_lines(code, method, names)]
    return list(dict.fromkeys(found))[:_MOST_OTHER]


def _copy_lines(code: Code, method: ast.AST, names: set[str]) -> Iterator[str]:
    for each in ast.walk(method):
        if isinstance(each, ast.Assign | ast.AugAssign | ast.Expr) and not _is_docstring(each):
            used = {name.id for name in ast.walk(each) if isinstance(name, ast.Name)}
            text = code.get_text(each)
            if used <= names and "\n" not in text:
                yield text


def _list_growth(code: Code, node: ast.stmt, hints: Hints) -> Iterator[str]:
    """Yield a step of a counter, and a value put into a collection, of variables of the function."""
    names = find_names(code, node)[:8]
    types = {name: find_name_types(code, node, name, hints) for name in names}
    for name in names:
        if types[name] & NUMBERS:
            yield from (f"{name} += 1", f"{name} -= 1")
        if "list" in types[name] | {"set"} and types[name] & {"list", "set"}:
            verb = "append" if "list" in types[name] else "add"
            yield from (f"{name}.{verb}({other})" for other in names[:5] if other != name)
        if "str" in types[name]:
            yield from (f'{name} = ""', f"{name} = {name}.strip()", f"{name} = {name}.lower()")


def _list_exits(code: Code, node: ast.stmt) -> Iterator[str]:
    """Yield statements that leave the loop around a block, or the function."""
    above = list(code.list_above(node))
    if any(isinstance(each, ast.For | ast.While) for each in above):
        yield from ("continue", "break")
    yield "return"
    scope = code.find_scope(node)

    def work() -> list[str]:
        found = (
            code.get_text(each) for each in code.walk(scope) if isinstance(each, ast.Return) and each.value
        )
        return list(dict.fromkeys(found))[:3]

    yield from code.compute_once(("returned", scope), work)
    yield from (f"return {name}" for name in find_names(code, node)[:4])


def _exchange(code: Code, node: ast.stmt, _: Hints) -> Iterator[Mutation]:
    """Yield a statement and the next one of its block in the other order."""
    block = find_block(code, node)
    follower = _next_of(block, node)
    if block is None or follower is None or _is_docstring(node) or isinstance(node, ast.Return | ast.Raise):
        return
    if isinstance(node, FunctionNode | ast.ClassDef) or isinstance(follower, FunctionNode | ast.ClassDef):
        return
    if isinstance(code.parents.get(follower), ast.Module):
        return
    (start, end), (begin, stop) = code.find_span(node), code.find_span(follower)
    between = code.raw[end:begin].decode("utf-8", "replace")
    text = code.get_text(follower) + between + code.get_text(node)
    yield code.make_mutation((start, stop), text, "statement order", 3)


def _next_of(block: Sequence[ast.stmt] | None, node: ast.stmt) -> ast.stmt | None:
    if block is None:
        return None
    at = block.index(node) + 1
    return block[at] if at < len(block) else None


def _move(code: Code, node: ast.stmt, _: Hints) -> Iterator[Mutation]:
    """Yield the last statement of a block moved out of it, and the one after a block moved into it."""
    block = find_block(code, node)
    if block is None or not isinstance(code.find_scope(node), FunctionNode):
        return
    parent = code.parents.get(node)
    is_last = block[-1] is node and len(block) > 1 and not getattr(parent, "orelse", [])
    if isinstance(parent, ast.For | ast.While | ast.If | ast.With) and block is parent.body and is_last:
        start, end = code.find_span(block[-2])[1], code.find_span(node)[1]
        yield code.make_mutation(
            (start, end), _at_indent(code, node, code.indent(parent)), "statement place", 3
        )
    follower = _next_of(block, node)
    if isinstance(node, ast.For | ast.While | ast.If | ast.With) and isinstance(follower, _SIMPLE):
        last = (getattr(node, "orelse", None) or node.body)[-1]
        if find_block(code, last) is not None:
            span = (code.find_span(node)[1], code.find_span(follower)[1])
            yield code.make_mutation(
                span, _at_indent(code, follower, code.indent(last)), "statement place", 3
            )


def _at_indent(code: Code, node: ast.stmt, indent: str) -> str:
    """Return a statement on a new line at another depth."""
    text = textwrap.indent(textwrap.dedent(code.indent(node) + code.get_text(node)), indent)
    return _newline(code) + text


def _leave(code: Code, node: ast.stmt, hints: Hints) -> Iterator[Mutation]:
    """Yield a way out under a condition: at the start of a loop's body, and of a function."""
    block, parent = find_block(code, node), code.parents.get(node)
    if block is None or block[0] is not node or not isinstance(parent, ast.For | ast.While | FunctionNode):
        return
    tests = [text for _, text in list_conditions(code, node, hints)][:_MOST_GUARDS]
    if isinstance(parent, FunctionNode):
        types = find_name_types(code, node, "return", hints)
        values = [repr(word) for word in hints.words[:3]] if not types or "str" in types else []
        values += hints.numbers[:3] if not types or types & NUMBERS else []
        exits = [f"return {value}" for value in dict.fromkeys(values)]
    else:
        exits = ["continue", "break"]
    indent, newline = code.indent(node), _newline(code)
    step = "\t" if indent.startswith("\t") else "    "
    start = code.find_span(node)[0]
    for way in exits:
        for test in tests:
            text = f"if {test}:{newline}{indent}{step}{way}{newline}{indent}"
            yield code.make_mutation((start, start), text, "missing guard", 5)


_ALL = (*_SIMPLE, ast.Pass, ast.If, ast.For, ast.While, ast.With, ast.Try)

STATEMENT_RULES = (
    Rule(_ALL, _insert),
    Rule(_ALL, _exchange),
    Rule(_ALL, _move),
    Rule(_ALL, _leave),
)
