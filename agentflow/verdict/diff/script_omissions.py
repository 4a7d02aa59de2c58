"""What JavaScript and TypeScript leave out where something is missing or was thrown."""

from collections.abc import Iterator

from agentflow.verdict.diff.conditions import (
    COMPARES,
    JOINS,
    Asks,
    Spot,
    breaks_line,
    find_bound,
    is_plain,
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


def find_omissions(code: Tokens) -> Iterator[Spot]:
    """Yield values that may be absent, bounds, defaults of parts, and the ends of what is tried."""
    for place, word in enumerate(code.words):
        if word == "?." and (spot := _find_absence(code, place)):
            yield spot
        elif word == "=" and _is_default(code, place):
            yield to_spot(code, place + 1, end_of_result(code, place + 1), is_arm=True)
        elif word == "try" and code.get_word(place + 1) == "{" and not is_member(code, place):
            yield from _find_end(code, place + 1)
        elif (
            word == "Math"
            and code.get_word(place + 1) == "."
            and (bound := find_bound(code, place, place + 2))
        ):
            yield bound


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
