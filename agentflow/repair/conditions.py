"""Single edits that add, negate or drop a condition: of a branch, a loop, a comprehension, a result."""

import ast
from collections.abc import Iterator

from agentflow.repair.clues import NUMBERS, Hints, Rule, find_name_types
from agentflow.repair.sources import Code, FunctionNode, Mutation
from agentflow.repair.wrapping import find_fields, find_names, list_known

_MOST = 24

_EMPTY = {"list": "[]", "str": "''", "int": "0", "float": "0", "dict": "{}", "tuple": "()", "set": "set()"}


def _extend(code: Code, node: ast.If | ast.While | ast.IfExp, hints: Hints) -> Iterator[Mutation]:
    yield from _join(code, node.test, hints)


def _result(code: Code, node: ast.Return, hints: Hints) -> Iterator[Mutation]:
    """Add a condition to a result that is one, and a way out to any other; compute one that is fixed."""
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        for weight, test in list_conditions(code, node, hints):
            yield code.swap(node.value, test, "missing condition", weight)
    if isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield from _join(code, node.value, hints)
    elif node.value is not None and not isinstance(node.value, ast.Constant):
        yield from _choose_default(code, node, node.value, hints)


def _choose_default(code: Code, node: ast.Return, value: ast.expr, hints: Hints) -> Iterator[Mutation]:
    text = code.get_text(value)
    if isinstance(value, ast.IfExp | ast.Tuple | ast.Lambda):
        return
    others = _find_defaults(code, node, hints)
    used = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
    names = [name for name in find_names(code, node) if name in used]
    for test in [*names, *(f for f in find_fields(code, node) if f in text)][:5]:
        yield from (
            code.swap(value, f"{text} if {test} else {other}", "missing condition", 4) for other in others
        )


def _find_defaults(code: Code, node: ast.AST, hints: Hints) -> list[str]:
    """Return what a function may give where there is nothing to compute."""
    seen = find_name_types(code, node, "return", hints)
    usual = [_EMPTY[kind] for kind in sorted(seen) if kind in _EMPTY]
    return list(dict.fromkeys([*usual, "None", "0"]))[:4]


def _join(code: Code, test: ast.expr, hints: Hints) -> Iterator[Mutation]:
    """Yield a condition joined with another one by and, and by or, on either side."""
    text = code.get_text(test)
    is_or, is_and = (isinstance(test, ast.BoolOp) and isinstance(test.op, op) for op in (ast.Or, ast.And))
    for weight, other in list_conditions(code, test, hints):
        if other in text:
            continue
        low = f"({text})" if is_or or isinstance(test, ast.IfExp) else text
        yield code.swap(test, f"{low} and {other}", "missing condition", weight)
        yield code.swap(test, f"{text} or {other}", "missing condition", weight + 1)
        yield code.swap(test, f"{other} and {low}", "missing condition", weight + 1)
        if is_and or not is_or:
            yield code.swap(test, f"{other} or {text}", "missing condition", weight + 1)


def list_conditions(code: Code, node: ast.AST, hints: Hints) -> list[tuple[int, str]]:
    """Return conditions that make sense where a node stands, with their weights, the most usual first."""
    scope = code.find_scope(node)
    known = code.compute_once(("conditions", scope), lambda: _list_known_conditions(code, node))
    names = [*find_names(code, node), *find_fields(code, node)][:6]
    found = [(3, text) for text in known]
    found += [(3, text) for name in names for text in (name, f"not {name}")]
    found += [(4, f"{name} is not None") for name in names]
    found += [(4, text) for text in _list_kinds(code, node, names, hints)]
    found += [(4, text) for text in _list_comparisons(code, node, names, hints)]
    return found[:_MOST]


def _list_known_conditions(code: Code, node: ast.AST) -> list[str]:
    """Return the first comparisons of the class or module that make sense in the function around a node."""
    scope = code.find_scope(node)
    names = set(list_known(code, node)) | {"self", "len"}
    names |= {getattr(each, "name", "") for each in code.tree.body} | {"None", "True", "False"}
    found = (
        code.get_text(each)
        for each in code.walk(code.find_home(node) if isinstance(scope, FunctionNode) else scope)
        if isinstance(each, ast.Compare) and _is_in_reach(each, names)
    )
    return [text for text in dict.fromkeys(found) if len(text) < 40][:8]


def _is_in_reach(condition: ast.expr, names: set[str]) -> bool:
    """Say whether all names of a condition are known."""
    return all(
        each.id in names or each.id.isupper() for each in ast.walk(condition) if isinstance(each, ast.Name)
    )


def _list_kinds(code: Code, node: ast.AST, names: list[str], hints: Hints) -> Iterator[str]:
    """Yield questions for the type of a name that had several."""
    for name in names:
        types = find_name_types(code, node, name, hints)
        if len(types) > 1:
            for kind in sorted(types & _EMPTY.keys()):
                yield from (f"isinstance({name}, {kind})", f"not isinstance({name}, {kind})")


def _list_comparisons(code: Code, node: ast.AST, names: list[str], hints: Hints) -> Iterator[str]:
    """Yield comparisons of two names of fitting types, and of a number with zero."""
    types = {name: find_name_types(code, node, name, hints) for name in names}
    boxes = {"list", "dict", "set", "tuple", "str"}
    for one in names:
        if types[one] & NUMBERS:
            yield from (f"{one} > 0", f"{one} == 0")
        for other in names:
            if one != other and types[other] & boxes:
                yield from (f"{one} in {other}", f"{one} not in {other}")
            if one != other and types[one] & NUMBERS and types[other] & NUMBERS:
                yield from (f"{one} < {other}", f"{one} <= {other}")
            if one < other and types[one] & types[other] and not types[one] & boxes - {"str"}:
                yield f"{one} == {other}"


def _filter(code: Code, node: ast.comprehension, hints: Hints) -> Iterator[Mutation]:
    """Yield a comprehension that leaves something out, or less."""
    end = code.find_span(node.ifs[-1] if node.ifs else node.iter)[1]
    targets = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
    tests = [(3, target) for target in targets]
    whole = code.parents.get(node)
    element = getattr(whole, "elt", None)
    if isinstance(element, ast.Call):
        tests.append((3, code.get_text(element)))
    tests += [
        (4, f"{target}.{name}()") for target in targets for name in _list_questions(code, node, target, hints)
    ]
    outer = [name for name in find_names(code, element or node.iter) if name not in targets]
    fields = find_fields(code, node.iter)
    for target in targets:
        tests += [
            (4, f"{target} {sign} {name}") for name in outer[:4] for sign in ("==", "!=", "in", "not in")
        ]
        tests += [(4, f"{target} not in {name}") for name in fields[:3]]
        tests += [(4, f"{target} > 0"), (4, f"{target} is not None")]
    subject = ast.unparse(element) if isinstance(element, ast.Subscript) else ""
    for each in ast.walk(element) if element is not None else ():
        if isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Slice):
            tests.append((4, f"{ast.unparse(each.slice)} in {ast.unparse(each.value)}"))
    joint = " and " if node.ifs else " if "
    for weight, test in tests:
        if test != subject:
            yield code.make_mutation((end, end), f"{joint}{test}", "missing condition", weight)
    for each in node.ifs:
        yield code.swap(each, f"not ({code.get_text(each)})", "missing negation", 3)


def _list_questions(code: Code, node: ast.comprehension, target: str, hints: Hints) -> tuple[str, ...]:
    """Return the questions that a text can be asked, where something may be a text."""
    types = find_name_types(code, node.iter, target, hints)
    return ("strip", "isalnum", "isdigit", "isalpha", "isspace") if not types or "str" in types else ()


def _shorten(code: Code, node: ast.BoolOp, hints: Hints) -> Iterator[Mutation]:
    """Yield a condition with one of its parts negated, or with one more for a part."""
    for each in node.values:
        yield from (edit.replace(weight=edit.weight + 1) for edit in _join(code, each, hints))
        text = code.get_text(each)
        simple = isinstance(each, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        yield code.swap(each, f"not {text}" if simple else f"not ({text})", "missing negation", 3)


def _unless(code: Code, node: ast.If | ast.While | ast.IfExp, _: Hints) -> Iterator[Mutation]:
    if isinstance(node.test, ast.Compare):
        yield code.swap(node.test, f"not ({code.get_text(node.test)})", "missing negation", 4)


CONDITION_RULES = (
    Rule((ast.If, ast.While, ast.IfExp), _extend),
    Rule((ast.If, ast.While, ast.IfExp), _unless),
    Rule((ast.Return,), _result),
    Rule((ast.comprehension,), _filter),
    Rule((ast.BoolOp,), _shorten),
)
