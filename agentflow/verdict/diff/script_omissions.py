"""What JavaScript and TypeScript leave out where something is missing or was thrown."""

import re
from collections.abc import Iterator

from agentflow.verdict.diff.conditions import (
    COMPARES,
    IT,
    JOINS,
    Asks,
    Spot,
    breaks_line,
    find_bound,
    is_plain,
    read_tokens,
    to_spot,
)
from agentflow.verdict.diff.script_parts import begin_of_operand, end_of_result, is_member, is_operand
from agentflow.verdict.tokens import OPENS, Tokens

_COMPOUND = frozenset({"if", "for", "while", "do", "switch", "try", "function", "class", "async"})
_LEAVES = frozenset({"throw", "break", "continue", "return"})
_GOES_ON = frozenset({"else", "while", "instanceof", "in", "of", "as", "satisfies", "extends", "implements"})
"""Words that begin a line and no statement."""
_HEADS = frozenset({"if", "while", "for", "with"})
_DECIDES = frozenset({*COMPARES, *JOINS, "??", "?", "!"})
"""Signs beside a value that is a condition anyway."""
_BEFORE_PATTERNS = frozenset({"const", "let", "var", "(", ","})
_CUTS = frozenset({"slice", "substring", "subarray"})
_LIMIT = re.compile(r"\d\w*|[A-Za-z_$][\w$]*(?:\.#?[\w$]+)*")
_LEFT_BY_BREAK = frozenset({"for", "while", "switch", "await"})
_COMPUTED = frozenset({"(", "[", "=", "=>", "++", "--", "await", "yield"})
_LITERAL = re.compile(r"\d[\w.]*|\x01+|true|false|null")


def find_omissions(code: Tokens) -> Iterator[Spot]:
    """Yield values that may be absent, bounds, defaults of parts, and the ends of what is tried."""
    for place, word in enumerate(code.words):
        if word == "?." and (spot := _find_absence(code, place)):
            yield spot
        elif word == "=" and _is_default(code, place):
            yield to_spot(code, place + 1, end_of_result(code, place + 1), is_arm=True)
        elif word == "try" and code.get_word(place + 1) == "{" and not is_member(code, place):
            yield from _find_end(code, place + 1)
        elif spot := _find_untouched(code, place):
            yield spot


def _find_untouched(code: Tokens, place: int) -> Spot | None:
    """Return a bound, a cut, the end of a loop or a default that may never matter, from its sign."""
    match code.words[place]:
        case "Math":
            return _find_bound(code, place)
        case ".":
            return _find_cut(code, place)
        case "for":
            return _find_end_of_loop(code, place)
        case "...":
            return _find_kept(code, place)
        case _:
            return None


def _find_cut(code: Tokens, place: int) -> Spot | None:
    """Return what is cut off at a place that can be asked for twice."""
    opening = place + 2
    if code.get_word(place + 1) not in _CUTS or code.get_word(opening) != "(":
        return None
    closing = code.partners[opening]
    signs = _find_signs(code, opening, ",")
    limit = read_tokens(code, signs[0] + 1, closing) if len(signs) == 1 else ""
    begin = begin_of_operand(code, place - 1) if is_operand(code, place - 1) else place
    begin -= code.get_word(begin - 1) == "new"
    is_whole = begin < place and code.words[begin] != "super" and "?." not in code.words[begin:place]
    if not is_whole or not _LIMIT.fullmatch(limit):
        return None
    return to_spot(code, begin, place).replace(
        around=(code.places[begin], code.find_end(closing)),
        told=read_tokens(code, begin, closing + 1),
        words=("cuts something off", ""),
        test=f"{limit} < 0 || {IT}.length > {limit}",
    )


def _find_end_of_loop(code: Tokens, place: int) -> Spot | None:
    """Return the condition of a loop with a counter that may always be left before it is false."""
    opening, body = place + 1, code.partners.get(place + 1, place) + 1
    signs = _find_signs(code, opening, ";")
    if len(signs) != 2 or signs[1] == signs[0] + 1 or code.get_word(body) != "{":
        return None
    if not any(_leaves(code, at, body) for at in code.find_places("break")):
        return None
    around = (code.places[place], code.find_end(body))
    return to_spot(code, signs[0] + 1, signs[1]).replace(around=around, words=("", "is false"))


def _leaves(code: Tokens, place: int, body: int) -> bool:
    """Return whether a `break` leaves the loop of a body, and no loop or `switch` inside of it."""
    around = code.around[place]
    while around > body:
        is_headed = code.words[around - 1] == ")"
        head = code.words[code.partners[around - 1] - 1 if is_headed else around - 1]
        if head in _LEFT_BY_BREAK or head == "do":
            return False
        around = code.around[around]
    return around == body


def _find_kept(code: Tokens, place: int) -> Spot | None:
    """Return what is spread over defaults in an object, of which all may always be replaced.

    In a pattern nothing that is spread has a value or something spread before it.
    """
    opening = code.around[place]
    before = range(opening + 1, place)
    words = [code.words[at] for at in before]
    is_literal = any(
        code.words[at] == "..." or (code.words[at - 1] == ":" and _LITERAL.fullmatch(code.words[at]))
        for at in before
        if code.around[at] == opening
    )
    if code.get_word(opening) != "{" or not is_literal or not _COMPUTED.isdisjoint(words):
        return None
    defaults = code.text[code.find_end(opening) : code.places[place]]
    return to_spot(code, place + 1, end_of_result(code, place + 1)).replace(
        around=(code.places[opening], code.find_end(place + 1)),
        told=read_tokens(code, opening, code.partners[opening] + 1),
        words=("takes a default", ""),
        test=f"Object.keys({{{defaults}}}).some((key) => !(key in {{ ...{IT} }}))",
    )


def _find_signs(code: Tokens, opening: int, sign: str) -> list[int]:
    """Return where a sign parts what stands in a bracket."""
    inside = range(opening, code.partners.get(opening, opening))
    return [at for at in inside if code.words[at] == sign and code.around[at] == opening]


def _find_bound(code: Tokens, place: int) -> Spot | None:
    """Return the two values of `Math.min` or `Math.max`, of which one decides, or the several of a list."""
    name, opening = code.get_word(place + 2), place + 3
    if code.get_word(place + 1) != ".":
        return None
    if bound := find_bound(code, place, place + 2):
        return bound
    is_list = code.get_word(opening + 1) == "..." and not _find_signs(code, opening, ",")
    if name not in ("min", "max") or code.get_word(opening) != "(" or not is_list:
        return None
    closing = code.partners[opening]
    return to_spot(code, opening + 2, closing).replace(
        around=(code.places[place], code.find_end(closing)),
        told=read_tokens(code, place, closing + 1),
        words=("has several values", ""),
        test=f"!Array.isArray({IT}) || new Set({IT}).size > 1",
    )


def _find_absence(code: Tokens, place: int) -> Spot | None:
    """Return what decides the last `?.` of a chain; None where that is a condition for another reason.

    A method has to be read together with what it is called on.
    """
    if not is_operand(code, place - 1) or code.words[place - 1].startswith("\x01"):
        return None
    begin, end = begin_of_operand(code, place - 1), _end_of_chain(code, place)
    around = {code.get_word(begin - 1), code.get_word(end)}
    is_asked = code.get_word(begin - 2) in _HEADS and code.get_word(end) == ")"
    is_method = code.get_word(place + 1) == "(" and begin < place - 1
    rest = (code.words[at] for at in range(place + 1, end) if code.around[at] == code.around[place])
    is_last = "?." not in rest
    is_fit = is_last and not (is_asked or is_method or around & _DECIDES or code.get_word(begin - 1) == "new")
    if not is_fit or not is_plain(code, begin, place):
        return None
    return to_spot(code, begin, place).replace(asks=Asks.ABSENCE)


def _end_of_chain(code: Tokens, place: int) -> int:
    """Return the token behind all that is called and read from a `?.` on."""
    while code.get_word(place) in (".", "?.", "(", "["):
        is_name = code.words[place] not in OPENS and code.get_word(place + 1) not in OPENS
        place = code.partners.get(place, place + is_name) + 1
    return place


def _is_default(code: Tokens, place: int) -> bool:
    """Return whether a value is given to a part of an object for the case that it has none."""
    around = code.around[place]
    if code.get_word(around) != "{" or code.get_word(place - 2) not in ("{", ",", ":"):
        return False
    while code.get_word(around - 1) == ":" and code.get_word(code.around[around]) == "{":
        around = code.around[around]
    follows = code.get_word(code.partners[around] + 1)
    return code.get_word(around - 1) in _BEFORE_PATTERNS and follows in ("=", ",", ")", "of", ":")


def _find_end(code: Tokens, opening: int) -> Iterator[Spot]:
    """Yield the place where a block ends whose errors are caught, or its last statement if that leaves it."""
    closing = code.partners[opening]
    if code.get_word(closing + 1) != "catch" or closing == opening + 1:
        return
    last = _begin_last(code, opening)
    word, around = code.words[last], (code.places[opening - 1], code.find_end(closing - 1))
    if word == "return" and last + 1 < (end := end_of_result(code, last + 1)):
        yield to_spot(code, last + 1, end, is_arm=True).replace(around=around, asks=Asks.END)
        return
    is_inside = word in _COMPOUND or word in _LEAVES
    end = code.places[last] if is_inside else code.places[closing]
    yield Spot(start=code.places[opening], end=end, around=around, is_arm=True, closes=False, asks=Asks.END)


def _begin_last(code: Tokens, opening: int) -> int:
    """Return where the last statement of a block begins."""
    at = last = opening + 1
    while at < code.partners[opening]:
        before = code.words[at - 1]
        is_headed = before == ")" and code.get_word(code.partners[at - 1] - 1) in _HEADS
        is_next = before == ";" or (breaks_line(code, at) and not is_headed and before not in ("else", "do"))
        if is_next and code.words[at] not in _GOES_ON:
            last = at
        at = code.partners.get(at, at) + 1
    return last
