"""Edits that put something else in a place: the mutants' table, other signs, numbers, texts and orders."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from agentflow.mutants.operators import Mutant, Operator, list_mutants
from agentflow.repair.clues import EditRules, Hints, find_types
from agentflow.repair.sources import Code, Mutation, find_header_lines

_MUTANTS: Mapping[Operator, tuple[str, int]] = {
    Operator.BOUND: ("comparison", 1),
    Operator.COMPARISON: ("comparison", 4),
    Operator.LOGIC: ("logic", 1),
    Operator.BOOLEAN: ("constant", 1),
    Operator.NUMBER: ("constant", 1),
    Operator.ARITHMETIC: ("operator", 2),
    Operator.OPPOSITE: ("wrong call", 2),
    Operator.CONDITION: ("extra guard", 3),
    Operator.PART: ("extra part", 3),
    Operator.STATEMENT: ("extra statement", 4),
    Operator.CALL: ("extra call", 4),
    Operator.UNWRAPPED: ("extra slice", 4),
    Operator.PATTERN: ("pattern", 4),
}
"""The mistakes that mutants would mend, and how unusual they are; other operators only ever break code."""
_STEP = re.compile(r" [-+] 1$")
_SIGN = re.compile(rb"not\s+in\b|is\s+not\b|\bin\b|\bis\b|(?:\*\*|//|<<|>>|[-+*/%@&|^])=?|[<>!=]=|[<>]|=")
_FAMILIES = (
    *(("+,-", "", 1), ("/,//", "", 1), ("|,&", "", 1), ("^", "|,&", 1), ("<,<=", "", 1), (">,>=", "", 1)),
    *(("in,not in", "", 1), ("is,is not", "", 1), ("==,!=", "", 2), ("+,-,*", "", 2)),
    *(("*,/,//,%", "", 2), ("**", "*", 2), ("&,|", "-", 2), ("+,-,*,/,//,%", "", 3), ("*", "**", 3)),
    *(("**", "//,+", 3), ("&,|,^", "", 3), ("|", "+", 3), ("<,<=,>,>=", "", 3)),
    *(("==", "<=,>=,<,>,in", 3), ("!=", "<,>,not in", 3)),
)
"""Signs, what stands in their place where that is not one of them, and how unusual that mistake is."""
_GATHERING = (("+=", 2), ("-=", 3), ("*=", 3), ("|=", 4))
_SEPARATORS = (*" ,-_/:;.=&#|?()\n\t", "", ", ")
_USUAL = ("0", "1", "2", "-1")
_MOST_TERMS = 4
_MOST_OWN = 40
"""Numbers of a file, and texts of it, that may stand elsewhere too."""


def _mutate(code: Code, node: ast.stmt, hints: Hints) -> Iterator[Mutation]:
    def work() -> Mapping[int, list[Mutant]]:
        found: dict[int, list[Mutant]] = defaultdict(list)
        for mutant in list_mutants("code.py", code.raw.decode(), hints.lines) or ():
            found[mutant.line].append(mutant)
        return found

    by_line = code.compute_once("mutants", work)
    for mutant in (each for line in find_header_lines(node) for each in by_line.get(line, ())):
        is_shorter = len(mutant.after) < len(mutant.before)
        # sides are swapped without it; and a method of no property is true, whatever it gives
        if mutant.operator not in _MUTANTS or mutant.after.startswith("(") or mutant.before.startswith("@"):
            continue
        kind, weight = _MUTANTS[mutant.operator]
        if mutant.operator is Operator.LOGIC and is_shorter and mutant.after != "or":
            kind, weight = "extra condition", 2
        elif mutant.operator is Operator.ARITHMETIC and is_shorter:
            is_step = _STEP.sub("", mutant.before) == mutant.after
            kind, weight = ("extra increment", 1) if is_step else ("extra operand", 3)
        yield code.make_mutation((mutant.start, mutant.end), mutant.after, kind, weight)


def _signs(code: Code, node: ast.Compare | ast.BinOp | ast.AugAssign, _: Hints) -> Iterator[Mutation]:
    match node:
        case ast.Compare():
            operands = [node.left, *node.comparators]
        case ast.BinOp():
            operands = [node.left, node.right]
        case ast.AugAssign():
            operands = [node.target, node.value]
    end = "=" if isinstance(node, ast.AugAssign) else ""
    kind = "comparison" if isinstance(node, ast.Compare) else "operator"
    for left, right in pairwise(operands):
        found = _SIGN.search(code.raw, code.find_span(left)[1], code.find_span(right)[0])
        if found is None:
            continue
        sign = " ".join(found[0].decode().removesuffix(end).split())
        is_step = isinstance(right, ast.Constant) and right.value == 1
        for other, weight in _list_others(sign):
            if not (is_step and other in {"*", "/", "//", "**"}):  # they do nothing with a 1
                yield code.make_mutation(found.span(), f"{other}{end}", kind, weight)


def _list_others(sign: str) -> Iterator[tuple[str, int]]:
    done = {sign}
    for signs, others, weight in _FAMILIES:
        for other in (others or signs).split(",") if sign in signs.split(",") else ():
            if other not in done:
                done.add(other)
                yield other, weight


def _gather(code: Code, node: ast.Assign, _: Hints) -> Iterator[Mutation]:
    target, value = node.targets[0], node.value
    if len(node.targets) > 1 or not isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
        return
    start = code.find_span(value)[0]
    sign = _SIGN.search(code.raw, code.find_span(target)[1], start)
    if sign:
        yield from (code.make_mutation(sign.span(), text, "operator", weight) for text, weight in _GATHERING)
    if isinstance(target, ast.Subscript):
        owner, key = code.get_text(target.value), code.get_text(target.slice)
        yield code.make_mutation((start, start), f"{owner}.get({key}, 0) + ", "missing term", 4)


def _number(code: Code, node: ast.Constant, hints: Hints) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    is_whole = isinstance(value, int)
    near = [repr(value + step) for step in (2, -2)] if is_whole else []
    scaled = [repr(value * 10), repr(value // 10 if is_whole else value / 10)] if value else []
    own = code.compute_once("numbers", lambda: _list_constants(code, int, float))
    pools: tuple[tuple[int, Sequence[object]], ...] = (
        (1, [value + 1, value - 1] if is_whole else []),
        (2, _USUAL),
        (3, (*near, repr(-value), *scaled, *own)),
        (4, hints.numbers),
    )
    yield from _choose(code, node, pools, "constant")


def _list_constants(code: Code, *kinds: type) -> list[str]:
    found = (
        code.get_text(each)
        for each in code.walk(code.tree)
        if isinstance(each, ast.Constant)
        and type(each.value) in kinds
        and not isinstance(code.parents.get(each), ast.Expr | ast.JoinedStr)
    )
    return [each for each in dict.fromkeys(found) if len(each) < 40][:_MOST_OWN]


def _choose(
    code: Code, node: ast.expr, pools: Sequence[tuple[int, Sequence[object]]], kind: str
) -> Iterator[Mutation]:
    done = {code.get_text(node)}
    for weight, texts in pools:
        for text in map(str, texts):
            if text not in done:
                done.add(text)
                yield code.swap(node, text, kind, weight)


def _text(code: Code, node: ast.Constant, hints: Hints) -> Iterator[Mutation]:
    value, quote = node.value, code.get_text(node)[:1]
    is_plain = not isinstance(code.parents.get(node), ast.Expr | ast.JoinedStr) and quote in {"'", '"'}
    if not isinstance(value, str) or not is_plain:
        return
    literals = code.compute_once("texts", lambda: _list_constants(code, str))
    known = [str(ast.literal_eval(each)) for each in literals]
    cases = [change(value) for change in (str.lower, str.upper, str.capitalize, str.title, str.strip)]
    near = [each for each in (*known, *hints.words) if _are_alike(each, value)]
    short = _SEPARATORS if len(value) <= 2 else ()
    dropped = [value[:at] + value[at + 1 :] for at in (0, len(value) - 1)] if value else []
    pools: tuple[tuple[int, Sequence[str]], ...] = (
        (2, near),
        (3, (*cases, *short, *hints.words, *dropped)),
        (4, (f"{value} ", f" {value}", f" {value} ", *known[:12])),
    )
    quoted = [(weight, [_quote(each, quote) for each in texts]) for weight, texts in pools]
    yield from _choose(code, node, quoted, "text")


def _are_alike(one: str, other: str) -> bool:
    """Say whether two words differ by a letter or two at one place, or by case."""
    shorter = min(len(one), len(other))
    if one == other or shorter < 3:
        return False
    front = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    rest = range(shorter - front)
    back = next((at for at in rest if one[-1 - at] != other[-1 - at]), shorter - front)
    return one.lower() == other.lower() or max(len(one), len(other)) - front - back <= 2


def _quote(text: str, quote: str) -> str:
    """Return a text as a literal, in the quotes that stand there where it has none of its own."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if quote == '"' and plain[0] == "'" and '"' not in plain else plain


def _order(code: Code, node: ast.Tuple | ast.List | ast.Call, _: Hints) -> Iterator[Mutation]:
    parts = node.args if isinstance(node, ast.Call) else node.elts
    kind = "swapped arguments" if isinstance(node, ast.Call) else "swapped elements"
    if len(parts) <= _MOST_TERMS and not any(isinstance(each, ast.Starred) for each in parts):
        yield from (code.exchange(*pair, kind, 2) for pair in combinations(parts, 2))


def _order_terms(code: Code, node: ast.BinOp, hints: Hints) -> Iterator[Mutation]:
    """Exchange the terms of a sum where their order matters, and the sides of what is no sum."""
    parent = code.parents.get(node)
    if not isinstance(node.op, ast.Add):
        is_equal = isinstance(node.op, ast.Mult | ast.BitAnd | ast.BitOr | ast.BitXor)
        if not is_equal and not isinstance(node.left, ast.BinOp) and not isinstance(node.right, ast.BinOp):
            is_odd = isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)
            yield code.exchange(node.left, node.right, "swapped operands", 4 if is_odd else 2)
        return
    terms = list(_list_terms(node))
    is_part = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)
    is_number = all(find_types(code, each, hints) & {"int", "float"} for each in terms)
    if not is_part and not is_number and len(terms) <= _MOST_TERMS:
        yield from (code.exchange(*pair, "swapped operands", 3) for pair in combinations(terms, 2))


def _list_terms(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _list_terms(node.left)
        yield from _list_terms(node.right)
    else:
        yield node


def _slice(code: Code, node: ast.Subscript, _: Hints) -> Iterator[Mutation]:
    inner, owner = node.slice, code.get_text(node.value)
    if not isinstance(inner, ast.Slice):
        if isinstance(node.ctx, ast.Load) and not isinstance(inner, ast.Tuple):
            key = code.get_text(inner)
            for shape in ("{}.get({})", "{}.pop({})", "{}.get({}, 0)", "{}.get({}, [])", "{}.pop({}, None)"):
                yield code.swap(node, shape.format(owner, key), "wrong access", 4)
        return
    low, high = ("" if part is None else code.get_text(part) for part in (inner.lower, inner.upper))
    step = "" if inner.step is None else f":{code.get_text(inner.step)}"
    choices = [(high, low, 2), (low, "", 2), ("", high, 2), (low, "-1", 3), ("1", high, 3)]
    choices += [(f"{low} + 1", high, 3)] if low else []
    for first, last, weight in choices:
        yield code.swap(node, f"{owner}[{first}:{last}{step}]", "slice", weight)


def _steps(code: Code, node: ast.AST, _: Hints) -> Iterator[Mutation]:
    slots: list[tuple[ast.expr | None, int]] = []
    match node:
        case ast.Return() | ast.Assign():
            slots = [(node.value, 2)]
        case ast.Tuple():
            slots = [(each, 3) for each in node.elts]
        case ast.Slice():
            slots = [(node.lower, 2), (node.upper, 2)]
        case ast.Subscript() if not isinstance(node.slice, ast.Slice):
            slots = [(node.slice, 3)]
        case ast.Call():
            slots = [(each, 2) for each in node.args]
        case ast.Compare():
            slots = [(each, 3) for each in (node.left, *node.comparators)]
        case ast.BinOp(op=ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod()):
            is_odd = not isinstance(node.op, ast.Mult)  # what is divided is off by one more often
            slots = [(node.left, 3), (node.right, 3 + is_odd)]
        case _:
            pass  # it has no such operand
    for each, weight in slots:
        if isinstance(each, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp):
            shape = "({} {} 1)" if isinstance(node, ast.BinOp) else "{} {} 1"
            yield code.swap(each, shape.format(code.get_text(each), "+"), "missing increment", weight)
            yield code.swap(each, shape.format(code.get_text(each), "-"), "missing decrement", weight)


def _jump(code: Code, node: ast.Break | ast.Continue, _: Hints) -> Iterator[Mutation]:
    yield code.swap(node, "continue" if isinstance(node, ast.Break) else "break", "jump", 2)


EXCHANGE_RULES: EditRules = (
    ((ast.stmt,), _mutate),
    ((ast.Compare, ast.BinOp, ast.AugAssign), _signs),
    ((ast.Assign,), _gather),
    ((ast.Constant,), _number),
    ((ast.Constant,), _text),
    ((ast.Tuple, ast.List, ast.Call), _order),
    ((ast.BinOp,), _order_terms),
    ((ast.Subscript,), _slice),
    ((ast.AST,), _steps),
    ((ast.Break, ast.Continue), _jump),
)
