"""Single edits that put an expression into a call, a method, a slice or a sum, chosen by the types seen."""

import ast
import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from agentflow.repair.clues import NUMBERS, Hints, Rule, find_name_types, find_types
from agentflow.repair.sources import Code, FunctionNode, Mutation

_WRAPPED = (
    *(ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.IfExp),
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

_MOST_PARTNERS = 8

_MOST_REUSED = 14

_MOST_GIVEN = 4

_WINDOW = 32
"""Places before a line, and after it, that are looked at for what may stand there too."""

_LONGEST = 30
"""Characters of an expression that may stand elsewhere in its function too."""


def _wrap(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    """Yield an expression inside what is often forgotten around it."""
    if not is_value(code, node):
        return
    types = find_types(code, node, hints)
    shapes = [shape for kind in sorted(types) for shape in _CALLS.get(kind, ())] or list(_CALLS[_ANY])
    shapes += _SLICES if not types or types & _SLICED else ()
    text, plus = code.get_text(node), 0 if types else 1
    bare = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    for index, shape in enumerate(dict.fromkeys(shapes)):
        inner = text if bare or not shape.startswith(("{}", "-", "not ")) else f"({text})"
        if isinstance(node, ast.GeneratorExp):
            inner = text if shape.startswith("{}") else text[1:-1].strip() if text[:1] == "(" else text
        kind = "missing slice" if shape.endswith("]") else "missing call"
        is_odd = index > 3 or shape == "-{}"
        yield code.swap(node, shape.format(inner), kind, 2 + plus + is_odd)
    for name in _own_functions(code, node):
        yield code.swap(node, f"{name}({text})", "missing call", 3 + plus)


def is_value(code: Code, node: ast.expr) -> bool:
    """Say whether an expression is read for its value, and is no callee and no part of a name."""
    parent = code.parents.get(node)
    is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    is_callee = isinstance(parent, ast.Call) and parent.func is node
    others = ast.Attribute | ast.keyword | ast.FormattedValue | ast.JoinedStr | ast.Expr | ast.arg
    if isinstance(parent, ast.Attribute) and isinstance(node, ast.Name):
        return False
    is_part = isinstance(parent, others) and not isinstance(parent, ast.keyword)
    is_hint = isinstance(
        parent, FunctionNode | ast.arguments | ast.ClassDef | ast.AnnAssign | ast.Subscript
    ) and (getattr(parent, "returns", None) is node or getattr(parent, "annotation", None) is node)
    return is_read and not is_callee and not is_part and not is_hint


def _own_functions(code: Code, node: ast.expr) -> Iterator[str]:
    """Yield the functions that take one argument: the file's own, and those it calls with one."""
    yield from _list_takers(code, node)
    yield from code.compute_once("called with one", lambda: _find_called(code))


def _find_called(code: Code) -> list[str]:
    """Return some functions of others that the file calls with one argument."""
    usual = {name for shapes in _CALLS.values() for shape in shapes for name in [shape.partition("(")[0]]}
    called = (
        each.func.id
        for each in code.walk(code.tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and len(each.args) == 1
    )
    own = {each.name for each in code.tree.body if isinstance(each, FunctionNode | ast.ClassDef)}
    return [name for name in dict.fromkeys(called) if name not in usual | own and name != "range"][:4]


def _takes_one(arguments: ast.arguments) -> bool:
    given = len(arguments.posonlyargs) + len(arguments.args)
    return given - len(arguments.defaults) <= 1 <= given and not arguments.kwonlyargs


def _limit(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    """Yield a number held between bounds: max and min with a partner of the same function."""
    types = find_types(code, node, hints)
    if not is_value(code, node) or (types and not types & NUMBERS):
        return
    text, plus = code.get_text(node), 0 if types else 1
    numbers = ("0", "1", *(each for each in hints.numbers if each not in {"0", "1"}))[:4]
    for partner in (*numbers, *_partners(code, node, hints)):
        if partner != text:
            for name in ("min", "max"):
                is_odd = (name, partner) == ("min", "0")
                yield code.swap(node, f"{name}({text}, {partner})", "missing bound", 3 + plus + is_odd)


def _partners(code: Code, node: ast.expr, hints: Hints) -> Iterator[str]:
    """Yield numbers that a value may be compared with: what it is assigned to, names, the last index."""
    statement = code.find_statement(node)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is node:
        yield code.get_text(statement.targets[0])
    names = find_names(code, node)
    numeric = [name for name in names if find_name_types(code, node, name, hints) & NUMBERS]
    sized = [name for name in names if find_name_types(code, node, name, hints) & {"list", "str", "tuple"}]
    if isinstance(code.parents.get(node), ast.Subscript):
        yield from (f"len({name}) - 1" for name in sized[:2])
    fields = [text for text in find_fields(code, node) if f"{text}(".encode() not in code.raw]
    yield from [*(numeric or ([] if hints.types else names)), *fields][:_MOST_PARTNERS]


def find_names(code: Code, node: ast.AST) -> list[str]:
    """Return the parameters and variables of the function around a node, the nearest first."""
    scope, line = code.find_scope(node), getattr(node, "lineno", 0)
    return code.compute_once(("names", scope, line), lambda: _sort_names(_list_names(code, scope), line))


def _list_names(code: Code, scope: ast.AST) -> list[tuple[int, str]]:
    """Return where a function sets which name, in order of the lines."""

    def work() -> list[tuple[int, str]]:
        found = (
            (each.lineno, each.arg if isinstance(each, ast.arg) else each.id)
            for each in code.walk(scope)
            if isinstance(each, ast.arg) or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
        )
        return sorted(pair for pair in found if pair[1] not in {"self", "cls"})

    return code.compute_once(("set names", scope), work)


def _sort_names(places: list[tuple[int, str]], line: int) -> list[str]:
    """Return the names that are set near a line, the nearest first, then those that are set first of all."""
    at = bisect_left(places, (line, ""))
    near = places[max(0, at - _WINDOW) : at + _WINDOW]
    ordered = sorted((abs(place - line), name) for place, name in near)
    return list(dict.fromkeys(name for _, name in (*ordered, *places[:_WINDOW])))


def list_known(code: Code, node: ast.AST) -> frozenset[str]:
    """Return all parameters and variables of the function around a node."""
    scope = code.find_scope(node)
    return code.compute_once(
        ("known", scope), lambda: frozenset(name for _, name in _list_names(code, scope))
    )


def find_fields(code: Code, node: ast.AST) -> list[str]:
    """Return the attributes of `self` that the class around a node sets, as the code writes them."""
    home = code.find_home(node)

    def work() -> list[str]:
        found = (
            code.get_text(each)
            for each in code.walk(home)
            if isinstance(each, ast.Attribute)
            and isinstance(each.value, ast.Name)
            and each.value.id == "self"
            and isinstance(each.ctx, ast.Store)
        )
        return list(dict.fromkeys(found))

    return code.compute_once(("fields", home), work) if isinstance(home, ast.ClassDef) else []


def _add_term(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    """Yield an expression with a term added: a variable of the function of a fitting type."""
    parent = code.parents.get(node)
    is_part = isinstance(parent, ast.BinOp | ast.Call)
    is_whole = isinstance(parent, ast.Return | ast.Assign | ast.AugAssign | ast.Compare)
    is_simple = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
    if not (is_whole or (is_part and is_simple)) or not is_value(code, node):
        return
    types, text = find_types(code, node, hints), code.get_text(node)
    for name in [*find_names(code, node), *find_fields(code, node)][:_MOST_PARTNERS]:
        other = find_name_types(code, node, name, hints)
        if name == text or not is_fitting(types, other):
            continue
        signs = "+" if types & {"str", "list", "tuple"} else "+-*"
        yield from (code.swap(node, f"{text} {sign} {name}", "missing term", 4) for sign in signs)


def is_fitting(types: frozenset[str], other: frozenset[str]) -> bool:
    """Say whether two expressions may have the same type, as far as it is known."""
    return not types or not other or bool(types & other) or bool(types & NUMBERS and other & NUMBERS)


def _reuse(code: Code, node: ast.expr, hints: Hints) -> Iterator[Mutation]:
    """Yield another short expression of the function in place of one, of a fitting type."""
    if not is_value(code, node) or len(code.get_text(node)) > 40:
        return
    types, text = find_types(code, node, hints), code.get_text(node)
    for other, kinds in _short_expressions(code, node, hints):
        if other != text and is_fitting(types, kinds):
            yield code.swap(node, other, "other expression", 4 if types and kinds else 5)
    if isinstance(node, ast.Name) and isinstance(code.parents.get(node), ast.Call):
        for called in itertools.product(_list_takers(code, node), find_names(code, node)[:_MOST_GIVEN]):
            yield code.swap(node, "{}({})".format(*called), "other expression", 5)


def _list_takers(code: Code, node: ast.expr) -> list[str]:
    """Return the functions of the file that take one argument."""
    inside = code.find_scope(node)
    return [
        each.name
        for each in code.tree.body
        if isinstance(each, FunctionNode) and each is not inside and _takes_one(each.args)
    ]


def _short_expressions(code: Code, node: ast.expr, hints: Hints) -> list[tuple[str, frozenset[str]]]:
    scope = code.find_scope(node)
    around = scope if isinstance(scope, FunctionNode) else code.find_statement(node) or node

    def work() -> list[tuple[str, frozenset[str]]]:
        names = [*find_names(code, node), *find_fields(code, node)]
        found = {name: find_name_types(code, node, name, hints) for name in names}
        places = code.compute_once(("short", around), lambda: _list_short(code, around))
        at = bisect_left(places, node.lineno, key=lambda each: each.lineno)
        near = places[max(0, at - _WINDOW) : at + _WINDOW]
        for each in sorted(near, key=lambda one: (abs(one.lineno - node.lineno), code.get_text(one))):
            found.setdefault(code.get_text(each), find_types(code, each, hints))
        return list(found.items())[:_MOST_REUSED]

    return code.compute_once(("reused", around, node.lineno), work)


def _list_short(code: Code, around: ast.AST) -> list[ast.expr]:
    """Return the short expressions of a function, in order of the lines."""
    found = [
        each
        for each in code.walk(around)
        if isinstance(each, ast.Attribute | ast.Subscript | ast.Call | ast.BinOp | ast.Compare)
        and is_value(code, each)
        and len(code.get_text(each)) <= _LONGEST
    ]
    return sorted(found, key=lambda each: each.lineno)


def _keywords(code: Code, node: ast.Call, _: Hints) -> Iterator[Mutation]:
    """Yield a call with a keyword argument more or less."""
    for index, keyword in enumerate(node.keywords):
        parts: Sequence[ast.expr] = [*node.args, *(each.value for each in node.keywords[:index])]
        start = code.find_span(parts[-1])[1] if parts else code.find_span(node.func)[1] + 1
        yield code.make_mutation((start, code.find_span(keyword.value)[1]), "", "extra keyword", 3)
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    end = code.find_span(node)[1] - 1
    for given in _possible_keywords(code, node, name):
        yield code.make_mutation(
            (end, end), f", {given}" if node.args or node.keywords else given, "missing keyword", 3
        )


def _possible_keywords(code: Code, node: ast.Call, name: str) -> Iterator[str]:
    """Yield the keywords that a call lacks: usual ones, and those of the file's own functions."""
    has = {each.arg for each in node.keywords}
    names = [*find_names(code, node), *find_fields(code, node)]
    if name in {"sorted", "sort", "max", "min"} and "reverse" not in has and name[0] == "s":
        yield from ("reverse=True", *(f"reverse={each}" for each in names[:6]))
    if name in {"max", "min"} and "default" not in has and len(node.args) == 1:
        yield from ("default=0", "default=None")
    if name in {"max", "min", "sorted", "sort"} and "key" not in has:
        yield from ("key=len", "key=str.lower", "key=abs")
    known = list_known(code, node) | {*find_fields(code, node)}
    for each in code.compute_once(
        "functions", lambda: [f for f in code.walk(code.tree) if isinstance(f, FunctionNode)]
    ):
        if each.name == name and each is not code.find_scope(node):
            arguments = [argument.arg for argument in (*each.args.args, *each.args.kwonlyargs)]
            yield from (f"{given}={given}" for given in arguments if given in known and given not in has)


WRAPPING_RULES = (
    Rule(_WRAPPED, _wrap),
    Rule(_WRAPPED, _limit),
    Rule((ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp), _add_term),
    Rule((ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Call), _reuse),
    Rule((ast.Call,), _keywords),
)
