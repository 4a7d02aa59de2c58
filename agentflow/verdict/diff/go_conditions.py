"""Conditions and arms of Go, found by their tokens."""

import re
from collections.abc import Collection, Iterator

from agentflow.verdict.diff.conditions import COMPARES, JOINS, Asks, Spot, find_bound, to_spot
from agentflow.verdict.tokens import CLOSES, OPENS, Tokens

_STOPS = frozenset(
    {
        *(",", ";", ":", "=", ":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "..."),
        *("return", "if", "else", "for", "switch", "case", "go", "defer", "range", "func", "select", *JOINS),
    }
)
"""Tokens that are no part of a condition beside them."""
_HEADS = frozenset({"if", "for", "switch", "select", "func"})
"""Words whose block begins on their line."""
_LAST = re.compile(r"\w+|[)\]}]|\+\+|--|\x01+")
"""Tokens with which a line of Go may end a statement."""
_PART_OF_TYPE = re.compile(r"[A-Za-z_]\w*|[.*]")
_PASSED_ON = re.compile(
    r"\{\s*return (?:(?:nil|false|-?[01]|\"\"|[\w.*\[\]]+\{\}), )*"
    r"(?:err|fmt\.Errorf\(\"[^\"\n]*%w[^\"\n]*\"[^\n]*\berr\))\s*\}"
)
"""A block that passes on an error of another function, as an exception is in other languages."""
_MESSAGE = re.compile(r"func \([^()]*\) Error\(\) string \{\s*return [^\n]*?\s*\}\n")
"""The method that every kind of error has to have."""


def find_go_spots(code: Tokens) -> Iterator[Spot]:
    """Yield what may come out in two ways, and the arms and functions that may run or not."""
    seen = set[tuple[int, int]]()
    for place, word in enumerate(code.words):
        block = find_go_block(code, place) if word in _HEADS else 0
        if word == "if" and _passes_on(code, block):
            seen.add((_skip_first(code, place, block), block))
        for start, end in _find_parts(code, place, block):
            if start < end and (start, end) not in seen and _is_in_function(code, start):
                seen.add((start, end))
                yield to_spot(code, start, end)
        if (choice := _find_choice(code, place)) and _is_in_function(code, place):
            yield choice
        if (end := _find_arm(code, place, block)) and code.get_word(end) != "}":
            yield to_spot(code, place, end, is_arm=True, closes=False)


def _find_choice(code: Tokens, place: int) -> Spot | None:
    """Return what chooses without a condition: one of two bounds, or to go on after a fault."""
    if code.get_word(place - 1) in (".", "defer"):
        return None
    if code.words[place : place + 3] == ("recover", "(", ")"):
        return to_spot(code, place, place + 3).replace(asks=Asks.FAULT, words=("stops a fault", ""))
    return find_bound(code, place, place)


def _find_parts(code: Tokens, place: int, block: int) -> Iterator[tuple[int, int]]:
    """Yield the conditions, from one token to another, that a token is the sign of."""
    word = code.words[place]
    if word in JOINS:
        yield from (_extend(code, place - 1), _extend(code, place + 1))
    elif word in COMPARES and not (word in "<>" and code.get_word(place + 1) == "-"):
        yield _extend(code, place)
    elif word in ("if", "for") and block:
        start = _skip_first(code, place, block)
        part = _extend(code, start)
        if "range" not in code.words[place:block] and code.get_word(part[1]) in (";", "{"):
            yield part


def _find_arm(code: Tokens, place: int, block: int) -> int:
    """Return the token behind which an arm begins that a token is the head of; 0 for another token."""
    match code.words[place]:
        case "case" | "default":
            end = place
            while code.get_word(end) not in ("", ":", *CLOSES):
                end = code.partners.get(end, end) + 1
            return end + 1 if code.get_word(end) == ":" else 0
        case "else" if code.get_word(place + 1) == "{":
            return place + 2
        case "func" if _MESSAGE.match(code.text, code.places[place]):
            return 0
        case "for" | "func" if block:
            return block + 1
        case _:
            return 0


def find_go_block(code: Tokens, place: int) -> int:
    """Return the brace that begins the block of a head; 0 where it has none."""
    at, is_function = place + 1, code.words[place] == "func"
    if is_function and code.get_word(place - 1) == "]" and not _ends_line(code, place):
        return 0  # a list of functions
    while at < len(code.words) and code.words[at] not in (":", *CLOSES) and not _ends_line(code, at):
        is_type = code.words[at - 1] in ("interface", "struct")
        if code.words[at] == "{" and not is_type and (is_function or not _is_value(code, at)):
            return at
        at = code.partners.get(at, at) + 1
    return 0


def _is_value(code: Tokens, place: int) -> bool:
    """Return whether a brace begins a value, since the type before it has brackets."""
    before = place - 1
    while _PART_OF_TYPE.fullmatch(code.get_word(before)):
        before -= 1
    return code.get_word(place - 1) == "}" or (code.get_word(before) == "]" and before < place - 1)


def _skip_first(code: Tokens, place: int, block: int) -> int:
    """Return where the condition of a head begins: behind the statement that may stand before it."""
    behind = [at + 1 for at in range(place, block) if code.words[at] == ";" and _is_beside(code, at, place)]
    return behind[0] if behind else place + 1


def _is_beside(code: Tokens, place: int, other: int) -> bool:
    return code.around[place] == code.around[other]


def _passes_on(code: Tokens, block: int) -> bool:
    """Return whether a block does nothing but pass on the error that its condition asks for."""
    if not block or code.words[block - 3 : block] != ("err", "!=", "nil"):
        return False
    return bool(_PASSED_ON.fullmatch(code.text[code.places[block] : code.find_end(code.partners[block])]))


def _extend(code: Tokens, place: int) -> tuple[int, int]:
    """Return the part around a token up to what joins conditions, or to the ends of its statement."""
    place = code.partners[place] if code.get_word(place) in CLOSES else place
    start, end = place, place
    while start > 0 and not _is_stop(code, start - 1, OPENS) and not _ends_line(code, start):
        start = code.partners[start - 1] if code.words[start - 1] in CLOSES else start - 1
    while end < len(code.words) and not _is_stop(code, end, CLOSES) and not _is_block(code, end):
        if end > place and _ends_line(code, end):
            break
        end = code.partners.get(end, end) + 1
    return start, end


def _is_stop(code: Tokens, place: int, brackets: Collection[str]) -> bool:
    return code.words[place] in _STOPS or code.words[place] in brackets


def _is_block(code: Tokens, place: int) -> bool:
    """Return whether a brace begins a block, and no value."""
    at = place
    while code.words[place] == "{" and at > 0 and not _ends_line(code, at):
        word = code.words[at - 1]
        if word in _HEADS:
            return True
        if word in OPENS:
            return False
        at = code.partners[at - 1] if word in CLOSES else at - 1
    return False


def _ends_line(code: Tokens, place: int) -> bool:
    """Return whether a statement ends before a token, since a line ends there."""
    between = code.bare[code.find_end(place - 1) : code.places[place]]
    return "\n" in between and _LAST.fullmatch(code.words[place - 1]) is not None


def _is_in_function(code: Tokens, place: int) -> bool:
    around = code.around[place]
    while around >= 0 and code.around[around] >= 0:
        around = code.around[around]
    return around >= 0 and code.words[around] == "{"
