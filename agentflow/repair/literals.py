"""Single edits of constants and of the parts of an expression: numbers, texts, elements, slices."""

import ast
from collections.abc import Iterator, Sequence
from itertools import combinations

from agentflow.repair.clues import Hints, Rule, find_types
from agentflow.repair.sources import Code, Mutation

_SEPARATORS = (*" ,-_/:;.=&#|?()\n\t", "", ", ")

_USUAL = ("0", "1", "2", "-1")

_MOST_TERMS = 4

_MOST_OWN = 40
"""Numbers of a file, and texts of it, that may stand elsewhere too."""

_ORDERED = ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow | ast.LShift | ast.RShift


def _number(code: Code, node: ast.Constant, hints: Hints) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    near = [repr(value + step) for step in (2, -2)] if isinstance(value, int) else []
    scaled = [repr(value * 10), repr(value // 10 if isinstance(value, int) else value / 10)] if value else []
    own = code.compute_once("numbers", lambda: _file_numbers(code))
    pools: tuple[tuple[int, Sequence[str]], ...] = (
        (2, _USUAL),
        (3, (*near, repr(-value), *scaled, *own)),
        (4, (*hints.numbers, str(value / 2), repr(value * 2))),
    )
    yield from _choose(code, node, pools, "constant")


def _file_numbers(code: Code) -> list[str]:
    """Return the numbers of a file, each once."""
    found = (
        repr(each.value)
        for each in code.walk(code.tree)
        if isinstance(each, ast.Constant) and type(each.value) in {int, float}
    )
    return list(dict.fromkeys(found))[:_MOST_OWN]


def _choose(
    code: Code, node: ast.expr, pools: Sequence[tuple[int, Sequence[str]]], kind: str
) -> Iterator[Mutation]:
    """Yield the replacements of a node by texts, each at the lightest weight that it stands under."""
    done = {code.get_text(node)}
    for weight, texts in pools:
        for text in texts:
            if text not in done:
                done.add(text)
                yield code.swap(node, text, kind, weight)


def _text(code: Code, node: ast.Constant, hints: Hints) -> Iterator[Mutation]:
    value, parent = node.value, code.parents.get(node)
    is_plain = not isinstance(parent, ast.Expr | ast.JoinedStr) and code.get_text(node)[:1] in {"'", '"'}
    if not isinstance(value, str) or not is_plain:
        return
    cases = [change(value) for change in (str.lower, str.upper, str.capitalize, str.title, str.strip)]
    near = [each for each in (*_file_texts(code), *hints.words) if _are_alike(each, value)]
    short = _SEPARATORS if len(value) <= 2 else ()
    dropped = [value[:at] + value[at + 1 :] for at in (0, len(value) - 1)] if value else []
    padded = [f"{value} ", f" {value}", f" {value} "]
    quote = code.get_text(node)[:1]
    pools = (
        (2, [_quote(each, quote) for each in near]),
        (3, [_quote(each, quote) for each in (*cases, *short, *hints.words, *dropped)]),
        (4, [_quote(each, quote) for each in (*padded, *_file_texts(code)[:12])]),
    )
    yield from _choose(code, node, pools, "text")


def _file_texts(code: Code) -> list[str]:
    """Return the short texts of a file that are no docstrings, each once."""
    return code.compute_once("texts", lambda: _find_texts(code))


def _find_texts(code: Code) -> list[str]:
    found = (
        each.value
        for each in code.walk(code.tree)
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and not isinstance(code.parents.get(each), ast.Expr)
    )
    return [each for each in dict.fromkeys(found) if len(each) < 40][:_MOST_OWN]


def _are_alike(one: str, other: str) -> bool:
    """Say whether two words differ by a letter or two at one place, or by case."""
    if one == other or min(len(one), len(other)) < 3:
        return False
    if one.lower() == other.lower():
        return True
    front = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), -1)
    front = min(len(one), len(other)) if front < 0 else front
    back, rest = 0, min(len(one), len(other)) - front
    while back < rest and one[-1 - back] == other[-1 - back]:
        back += 1
    return max(len(one), len(other)) - front - back <= 2


def _quote(text: str, quote: str) -> str:
    """Return a text as a literal, in the quotes that stand there where it has none of its own."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if quote == '"' and plain[0] == "'" and '"' not in plain else plain


def _negative(code: Code, node: ast.UnaryOp, _: Hints) -> Iterator[Mutation]:
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        yield from (code.swap(node, each, "constant", 2) for each in ("0", "1", "-2"))


def _values(code: Code, node: ast.Dict, _: Hints) -> Iterator[Mutation]:
    yield from _exchange_all(code, node.values, "swapped values", 4)


def _branches(code: Code, node: ast.IfExp, _: Hints) -> Iterator[Mutation]:
    yield code.make_mutation(
        code.find_span(node),
        f"{code.get_text(node.orelse)} if {code.get_text(node.test)} else {code.get_text(node.body)}",
        "swapped branches",
        2,
    )


def _elements(code: Code, node: ast.Tuple | ast.List, _: Hints) -> Iterator[Mutation]:
    elements = node.elts
    if any(isinstance(each, ast.Starred) for each in elements):
        return
    yield from _exchange_all(code, elements, "swapped elements", 2)
    if len(elements) > 2:
        yield from _drop_each(code, elements, "extra element", 4)


def _exchange_all(code: Code, parts: Sequence[ast.expr], kind: str, weight: int) -> Iterator[Mutation]:
    """Yield the swaps of two of a few parts that stand one after the other."""
    if len(parts) <= _MOST_TERMS:
        for left, right in combinations(parts, 2):
            yield code.exchange(left, right, kind).replace(weight=weight)


def _drop_each(code: Code, parts: Sequence[ast.expr], kind: str, weight: int) -> Iterator[Mutation]:
    for index, part in enumerate(parts):
        start, end = code.find_span(part)
        if index:
            start = code.find_span(parts[index - 1])[1]
        elif len(parts) > 1:
            end = code.find_span(parts[1])[0]
        yield code.make_mutation((start, end), "", kind, weight)


def _arguments(code: Code, node: ast.Call, _: Hints) -> Iterator[Mutation]:
    if len(node.args) > 2:
        yield code.exchange(node.args[0], node.args[2], "swapped arguments").replace(weight=3)
    if len(node.args) > 1:
        yield from _drop_each(code, node.args, "extra argument", 4)
    yield from _exchange_all(code, [each.value for each in node.keywords], "swapped arguments", 3)


def _operands(code: Code, node: ast.BinOp, hints: Hints) -> Iterator[Mutation]:
    """Exchange operands where their order matters: all but sums and products of numbers."""
    if isinstance(node.op, _ORDERED):
        if not isinstance(node.left, ast.BinOp) and not isinstance(node.right, ast.BinOp):
            is_odd = isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)
            swapped = code.exchange(node.left, node.right, "swapped operands")
            yield swapped.replace(weight=4) if is_odd else swapped
        return
    parent = code.parents.get(node)
    if not isinstance(node.op, ast.Add) or (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)):
        return
    terms = list(_terms(node))
    if not all(find_types(code, each, hints) & {"int", "float"} for each in terms):
        yield from _exchange_all(code, terms, "swapped operands", 3)
        if len(terms) > 2:
            yield from (_drop_term(code, node, each) for each in terms[1:])


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _drop_term(code: Code, node: ast.BinOp, term: ast.expr) -> Mutation:
    """Return the sum without one of its terms."""
    start, end = code.find_span(term)
    before = code.raw.rfind(b"+", code.find_span(node)[0], start)
    return code.make_mutation((max(before, code.find_span(node)[0]), end), "", "extra operand", 4)


def _slice(code: Code, node: ast.Subscript, _: Hints) -> Iterator[Mutation]:
    inner = node.slice
    if not isinstance(inner, ast.Slice):
        return
    low, high = ("" if part is None else code.get_text(part) for part in (inner.lower, inner.upper))
    step = "" if inner.step is None else f":{code.get_text(inner.step)}"
    choices = [(high, low, 2), (low, "", 2), ("", high, 2), (low, "-1", 3), ("1", high, 3)]
    choices += [(f"{low} + 1", high, 3)] if low else []
    owner = code.get_text(node.value)
    for first, last, weight in choices:
        yield code.swap(node, f"{owner}[{first}:{last}{step}]", "slice", weight)


LITERAL_RULES = (
    Rule((ast.Constant,), _number),
    Rule((ast.Constant,), _text),
    Rule((ast.UnaryOp,), _negative),
    Rule((ast.Tuple, ast.List), _elements),
    Rule((ast.Dict,), _values),
    Rule((ast.Call,), _arguments),
    Rule((ast.IfExp,), _branches),
    Rule((ast.BinOp,), _operands),
    Rule((ast.Subscript,), _slice),
)
