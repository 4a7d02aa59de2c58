"""Edits that add what is missing: a call around a value, a condition, a statement."""

import ast
import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from agentflow.repair.clues import NUMBERS, EditRules, Hints, find_name_types, find_types
from agentflow.repair.names import find_fields, find_names, is_field, list_functions, list_known
from agentflow.repair.sources import Code, FunctionNode, Mutation

_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_VALUES = (
    *(*_PLAIN, ast.BinOp, ast.IfExp),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.List, ast.Tuple),
)
_ANY = "object"
_CALLS: Mapping[str, tuple[str, ...]] = {
    kind: tuple(shapes.split("; "))
    for kind, shapes in {
        "str": "{}.strip(); {}.lower(); int({}); {}.upper(); float({}); len({}); {}.rstrip(); {}.title()",
        "int": "abs({}); str({}); float({}); -{}",
        "float": "round({}); int({}); abs({}); round({}, 2); -{}; math.ceil({})",
        "list": "sorted({}); set({}); len({}); list({}); {}[0]; {}[-1]; sum({}); tuple({}); reversed({})",
        "tuple": "list({}); sorted({}); {}[0]; {}[-1]; {}[1]; len({}); set({})",
        "set": "sorted({}); len({}); list({}); set({})",
        "dict": "dict({}); {}.items(); {}.values(); sorted({}); len({}); {}.copy()",
        "dict_items": "sorted({}); list({})",
        "bool": "not {}; int({})",
        _ANY: "str({}); int({}); len({}); abs({}); sorted({}); list({}); float({}); round({}); {}.strip(); "
        "{}.lower(); set({}); dict({}); -{}; tuple({}); {}[0]; {}[-1]; sum({})",
    }.items()
}
"""What is often forgotten around a value of a type, the most usual first."""
_SLICES = ("{}[1:]", "{}[:-1]", "{}[::-1]")
_SLICED = frozenset({"str", "list", "tuple"})
_EMPTY = {"list": "[]", "str": "''", "int": "0", "float": "0", "dict": "{}", "tuple": "()", "set": "set()"}
_COPIED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Delete)
_STATEMENTS = (
    *(*_COPIED, ast.Raise, ast.Return, ast.Continue, ast.Break),
    *(ast.Pass, ast.If, ast.For, ast.While, ast.With, ast.Try),
)
_MOST_PARTNERS = 8
_MOST_REUSED = 14
_MOST_CONDITIONS = 24
_MOST_OWN = 10
_WINDOW = 32
"""Places before a line, and after it, that are looked at for what may stand there too."""
_LONGEST = 30
"""Characters of an expression that may stand elsewhere in its function too."""


def _wrap(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    if not _is_value(code, node):
        return
    types = find_types(code, node, hints)
    shapes = [shape for kind in sorted(types) for shape in _CALLS.get(kind, ())] or list(_CALLS[_ANY])
    shapes += _SLICES if not types or types & _SLICED else ()
    text, plus = code.get_text(node), 0 if types else 1
    for index, shape in enumerate(dict.fromkeys(shapes)):
        is_safe = isinstance(node, _PLAIN) or not shape.startswith(("{}", "-", "not "))
        inner = text if is_safe else f"({text})"
        if isinstance(node, ast.GeneratorExp):
            inner = text if shape.startswith("{}") else text.removeprefix("(").removesuffix(")")
        kind = "missing slice" if shape.endswith("]") else "missing call"
        is_odd = index > 3 or shape == "-{}"
        yield code.swap(node, shape.format(inner), kind, 2 + plus + is_odd)


def _is_value(code: Code, node: ast.expr) -> bool:
    """Say whether an expression is read for its value, and is no callee and no part of a name."""
    parent = code.parents.get(node)
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    match parent:
        case ast.Call():
            return parent.func is not node
        case ast.Attribute():
            return False
        case ast.FormattedValue() | ast.JoinedStr() | ast.Expr() | ast.arg():
            return False
        case _:
            return node not in (getattr(parent, "returns", None), getattr(parent, "annotation", None))


def _limit(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    types = find_types(code, node, hints)
    if not _is_value(code, node) or (types and not types & NUMBERS):
        return
    text, plus, statement = code.get_text(node), 0 if types else 1, code.find_statement(node)
    names = [(name, find_name_types(code, node, name, hints)) for name in find_names(code, node)]
    partners = ["0", "1", *hints.numbers][:4]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is node:
        partners.append(code.get_text(statement.targets[0]))
    if isinstance(code.parents.get(node), ast.Subscript):
        partners += [f"len({name}) - 1" for name, kinds in names if kinds & _SLICED][:2]
    numeric = [name for name, kinds in names if kinds & NUMBERS or not hints.types]
    partners += [*numeric, *find_fields(code, node)][:_MOST_PARTNERS]
    for partner in dict.fromkeys(partners):
        for name in ("min", "max") if partner != text else ():
            is_odd = (name, partner) == ("min", "0")
            yield code.swap(node, f"{name}({text}, {partner})", "missing bound", 3 + plus + is_odd)


def _reuse(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    text = code.get_text(node)
    if not _is_value(code, node) or len(text) > 40:
        return
    types = find_types(code, node, hints)
    for other, kinds in _list_short(code, node, hints):
        is_number = bool(types & NUMBERS and kinds & NUMBERS)
        if other != text and (not types or not kinds or types & kinds or is_number):
            yield code.swap(node, other, "other expression", 4 if types and kinds else 5)
    if isinstance(node, ast.Name) and isinstance(code.parents.get(node), ast.Call):
        takers, names = list_functions(code, node, 1), find_names(code, node)[:4]
        for taker, name in itertools.product(takers, names):
            yield code.swap(node, f"{taker}({name})", "other expression", 5)


def _list_short(code: Code, node: ast.expr, hints: Hints) -> list[tuple[str, frozenset[str]]]:
    scope = code.find_scope(node)
    around = scope if isinstance(scope, FunctionNode) else code.find_statement(node) or node

    def list_all() -> list[ast.expr]:
        found = [
            each
            for each in code.walk(around)
            if isinstance(each, ast.Attribute | ast.Subscript | ast.Call | ast.BinOp | ast.Compare)
            and _is_value(code, each)
            and len(code.get_text(each)) <= _LONGEST
        ]
        return sorted(found, key=lambda each: each.lineno)

    def list_near() -> list[tuple[str, frozenset[str]]]:
        names = [*find_names(code, node), *find_fields(code, node)]
        found = {name: find_name_types(code, node, name, hints) for name in names}
        places = code.compute_once(("short", around), list_all)
        at = bisect_left(places, node.lineno, key=lambda each: each.lineno)
        near = places[max(0, at - _WINDOW) : at + _WINDOW]
        for each in sorted(near, key=lambda one: (abs(one.lineno - node.lineno), code.get_text(one))):
            found.setdefault(code.get_text(each), find_types(code, each, hints))
        return list(found.items())[:_MOST_REUSED]

    return code.compute_once(("reused", around, node.lineno), list_near)


def _add_argument(code: Code, node: ast.Call, _: Hints) -> Iterator[Mutation]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    end = code.find_span(node)[1] - 1
    if name in {"sorted", "sort"} and "reverse" not in {each.arg for each in node.keywords}:
        joint = ", " if node.args or node.keywords else ""
        for value in ("True", *[*find_names(code, node), *find_fields(code, node)][:6]):
            yield code.make_mutation((end, end), f"{joint}reverse={value}", "missing keyword", 3)
    if name == "range" and len(node.args) == 1:
        yield code.swap(node.args[0], f"1, {code.get_text(node.args[0])}", "missing start", 3)


def _extend(
    code: Code, node: ast.If | ast.While | ast.IfExp | ast.Assert, hints: Hints
) -> Iterator[Mutation]:
    if not isinstance(node, ast.Assert):
        yield from _join(code, node.test, hints)
    yield from _negate(code, node.test, 2)


def _negate(code: Code, test: ast.expr, weight: int) -> Iterator[Mutation]:
    text = code.get_text(test)
    if isinstance(test, ast.UnaryOp):
        yield code.swap(test, code.get_text(test.operand), "extra negation", 2)
    elif isinstance(test, _PLAIN):
        yield code.swap(test, f"not {text}", "missing negation", weight)
    else:
        yield code.swap(test, f"not ({text})", "missing negation", weight + 1)


def _result(code: Code, node: ast.Return, hints: Hints) -> Iterator[Mutation]:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        for weight, test in _list_conditions(code, node, hints):
            yield code.swap(node.value, test, "missing condition", weight)
    elif isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield from _join(code, node.value, hints)


def _join(code: Code, test: ast.expr, hints: Hints) -> Iterator[Mutation]:
    text = code.get_text(test)
    is_or = isinstance(test, ast.IfExp) or (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or))
    low = f"({text})" if is_or else text
    for weight, other in _list_conditions(code, test, hints):
        if other not in text:
            yield code.swap(test, f"{low} and {other}", "missing condition", weight)
            for joined in (f"{text} or {other}", f"{other} and {low}", f"{other} or {text}"):
                yield code.swap(test, joined, "missing condition", weight + 1)
    if isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from (edit.replace(weight=edit.weight + 1) for edit in _join(code, each, hints))
            yield from _negate(code, each, 3)


def _list_conditions(code: Code, node: ast.AST, hints: Hints) -> list[tuple[int, str]]:
    """Return conditions that make sense where a node stands, with their weights, the most usual first."""
    scope = code.find_scope(node)
    known = code.compute_once(("conditions", scope), lambda: _list_known_conditions(code, node))
    names = [*find_names(code, node), *find_fields(code, node)][:6]
    types = {name: find_name_types(code, node, name, hints) for name in names}
    found = [(3, text) for text in known]
    found += [(3, text) for name in names for text in (name, f"not {name}")]
    found += [(4, f"{name} is not None") for name in names]
    for name, kinds in types.items():
        if len(kinds) > 1:
            questions = [f"isinstance({name}, {kind})" for kind in sorted(kinds & _EMPTY.keys())]
            found += [(4, f"{sign}{question}") for question in questions for sign in ("", "not ")]
    found += [(4, text) for text in _list_comparisons(types)]
    return found[:_MOST_CONDITIONS]


def _list_known_conditions(code: Code, node: ast.AST) -> list[str]:
    scope = code.find_scope(node)
    names = {*list_known(code, node), "self", "len", "None", "True", "False"}
    names |= {getattr(each, "name", "") for each in code.tree.body}

    def is_in_reach(condition: ast.expr) -> bool:
        used = (each.id for each in ast.walk(condition) if isinstance(each, ast.Name))
        return all(name in names or name.isupper() for name in used)

    found = (
        code.get_text(each)
        for each in code.walk(code.find_home(node) if isinstance(scope, FunctionNode) else scope)
        if isinstance(each, ast.Compare) and is_in_reach(each)
    )
    return [text for text in dict.fromkeys(found) if len(text) < 40][:8]


def _list_comparisons(types: Mapping[str, frozenset[str]]) -> Iterator[str]:
    boxes = {"list", "dict", "set", "tuple", "str"}
    for one, kinds in types.items():
        if kinds & NUMBERS:
            yield from (f"{one} > 0", f"{one} == 0")
        for other, others in types.items():
            if one != other and others & boxes:
                yield from (f"{one} in {other}", f"{one} not in {other}")
            if one != other and kinds & NUMBERS and others & NUMBERS:
                yield from (f"{one} < {other}", f"{one} <= {other}")
            if one < other and kinds & others and not kinds & boxes - {"str"}:
                yield f"{one} == {other}"


def _filter(code: Code, node: ast.comprehension, hints: Hints) -> Iterator[Mutation]:
    end = code.find_span(node.ifs[-1] if node.ifs else node.iter)[1]
    element = getattr(code.parents.get(node), "elt", None)
    targets = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
    outer = [name for name in find_names(code, element or node.iter) if name not in targets]
    tests = [(3, target) for target in targets]
    tests += [(3, code.get_text(element))] if isinstance(element, ast.Call) else []
    for target in targets:
        types = find_name_types(code, node.iter, target, hints)
        if not types or "str" in types:
            words = ("strip", "isalnum", "isdigit", "isalpha", "isspace")
            tests += [(4, f"{target}.{word}()") for word in words]
        signs = ("==", "!=", "in", "not in")
        tests += [(4, f"{target} {sign} {name}") for name in outer[:4] for sign in signs]
        tests += [(4, f"{target} not in {name}") for name in find_fields(code, node.iter)[:3]]
        tests += [(4, f"{target} > 0"), (4, f"{target} is not None")]
    for each in ast.walk(element) if element is not None else ():
        if isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Slice):
            tests.append((4, f"{ast.unparse(each.slice)} in {ast.unparse(each.value)}"))
    joint = " and " if node.ifs else " if "
    for weight, test in tests:
        yield code.make_mutation((end, end), f"{joint}{test}", "missing condition", weight)
    for condition in node.ifs:
        yield from _negate(code, condition, 3)


def _insert(code: Code, node: ast.stmt, hints: Hints) -> Iterator[Mutation]:
    block = _find_block(code, node)
    if block is None or not isinstance(code.find_scope(node), FunctionNode):
        return
    leaves = isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)
    (start, end), between = code.find_span(node), f"{code.newline}{code.indent(node)}"
    for weight, text in _list_statements(code, node, hints):
        yield code.make_mutation((start, start), f"{text}{between}", "missing statement", weight)
        if block[-1] is node and not leaves:
            yield code.make_mutation((end, end), f"{between}{text}", "missing statement", weight)


def _find_block(code: Code, node: ast.stmt) -> list[ast.stmt] | None:
    """Return the block in which a statement has its own line; None if it shares the header's line."""
    parent = code.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            return block if not code.indent(node).strip() else None
    return None


def _list_statements(code: Code, node: ast.stmt, hints: Hints) -> list[tuple[int, str]]:
    scope, home = code.find_scope(node), code.find_home(node)
    found = list(code.compute_once(("own", scope), lambda: _list_own(code, scope)))
    found += code.compute_once(("resets", scope), lambda: _list_resets(code, scope, home))
    known = list_known(code, node)
    for method in home.body if isinstance(home, ast.ClassDef) else ():
        if isinstance(method, FunctionNode) and method is not scope and not method.decorator_list:
            given = [each.arg for each in method.args.args[1:]]
            if not method.name.startswith("__") and known.issuperset(given) and len(given) <= 3:
                found.append((4, f"self.{method.name}({', '.join(given)})"))
    return [*found, *((4, text) for text in _list_growth(code, node, hints))]


def _list_own(code: Code, scope: ast.AST) -> list[tuple[int, str]]:
    """Return the first statements of a function, which may stand in it once more, and what it takes away."""
    own = (
        code.get_text(each)
        for each in code.walk(scope)
        if isinstance(each, _COPIED) and not _is_docstring(each)
    )
    taken = (
        code.get_text(each)
        for each in code.walk(scope)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "pop"
    )
    first = [text for text in dict.fromkeys(own) if "\n" not in text][:_MOST_OWN]
    return [(4, text) for text in dict.fromkeys((*first, *taken))]


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _list_resets(code: Code, scope: ast.AST, home: ast.AST) -> list[tuple[int, str]]:
    """Return what `__init__` gives each field that a function does not set, lighter where it sets others.

    A flag may get its other value too, which is lightest beside another field where no method does that.
    """
    methods = {getattr(each, "name", ""): each for each in getattr(home, "body", ())}
    start = methods.get("__init__", scope)
    if start is scope:
        return []
    assigned = [each for each in code.walk(start) if isinstance(each, ast.Assign)]
    given = {code.get_text(each.targets[0]): each for each in assigned if is_field(each.targets[0])}
    set_here = {code.get_text(each.targets[0]) for each in code.walk(scope) if isinstance(each, ast.Assign)}
    all_set = Counter(
        code.get_text(each.targets[0]) for each in code.walk(home) if isinstance(each, ast.Assign)
    )
    weight = 2 if given.keys() & set_here else 6
    found = []
    for name, each in given.items():
        if name in set_here or any(isinstance(part, ast.Name) for part in ast.walk(each.value)):
            continue
        found.append((weight, code.get_text(each)))
        if isinstance(each.value, ast.Constant) and isinstance(each.value.value, bool):
            found.append((2 + (all_set[name] > 1) + (weight > 2), f"{name} = {not each.value.value}"))
    return found


def _list_growth(code: Code, node: ast.stmt, hints: Hints) -> Iterator[str]:
    names = find_names(code, node)[:8]
    for name in names:
        types = find_name_types(code, node, name, hints)
        if types & NUMBERS:
            yield from (f"{name} += 1", f"{name} -= 1")
        for kind, verb in (("list", "append"), ("set", "add")):
            if kind in types:
                yield from (f"{name}.{verb}({other})" for other in names[:5] if other != name)
        if "str" in types:
            yield from (f'{name} = ""', f"{name} = {name}.strip()", f"{name} = {name}.lower()")


def _exchange(code: Code, node: ast.stmt, _: Hints) -> Iterator[Mutation]:
    block = _find_block(code, node) or []
    at = block.index(node) + 1 if block else 0
    kept = FunctionNode | ast.ClassDef
    if at in {0, len(block)} or _is_docstring(node) or isinstance(node, kept | ast.Return | ast.Raise):
        return
    follower = block[at]
    if isinstance(follower, kept) or isinstance(code.parents.get(follower), ast.Module):
        return
    yield code.exchange(node, follower, "statement order", 3)


def _guard(code: Code, node: FunctionNode | ast.For, hints: Hints) -> Iterator[Mutation]:
    first = node.body[1 if _is_docstring(node.body[0]) and len(node.body) > 1 else 0]
    if _find_block(code, first) is None:
        return
    exits: list[str] = []
    if isinstance(node, ast.For):
        names = [node.target.id] if isinstance(node.target, ast.Name) else []
    else:
        names = [each.arg for each in node.args.args if each.arg not in {"self", "cls"}][:3]
        returned = (each.value for each in code.walk(node) if isinstance(each, ast.Return))
        exits = [code.get_text(each) for each in returned if isinstance(each, ast.Constant)]
        exits += ["None", "0", "[]", "''", *hints.numbers[:3]]
    indent, start = code.indent(first), code.find_span(first)[0]
    inner = indent + ("\t" if indent.startswith("\t") else "    ")
    for name in names:
        ways = ["continue"] if isinstance(node, ast.For) else [f"return {each}" for each in (*exits, name)]
        for test, way in itertools.product((f"not {name}", f"{name} is None"), dict.fromkeys(ways)):
            text = f"if {test}:{code.newline}{inner}{way}{code.newline}{indent}"
            yield code.make_mutation((start, start), text, "missing guard", 4)


ADDITION_RULES: EditRules = (
    (_VALUES, _wrap),
    (_VALUES, _limit),
    ((*_PLAIN, ast.Constant), _reuse),
    ((ast.Call,), _add_argument),
    ((ast.If, ast.While, ast.IfExp), _extend),
    ((ast.Return,), _result),
    ((ast.comprehension,), _filter),
    (_STATEMENTS, _insert),
    (_STATEMENTS, _exchange),
    ((ast.FunctionDef, ast.AsyncFunctionDef, ast.For), _guard),
)
