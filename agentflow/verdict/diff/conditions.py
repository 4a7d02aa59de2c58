"""Conditions and arms of C, C++ and Rust, found by their tokens, and what bounds those of scripts."""

import re
from collections.abc import Collection, Iterator
from enum import StrEnum

from agentflow.core.record import Record
from agentflow.verdict.tokens import CLOSES, OPENS, Tokens

JOINS = frozenset({"&&", "||"})
ASSIGNS = frozenset(
    {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**=", "&&=", "||=", "??="}
)
_ENDS = frozenset({",", ";", ":", "?", "=>", "??", "..", "..=", "...", *JOINS, *ASSIGNS})
BITS = frozenset({"|", "&", "^"})
"""Operators that bind looser than a comparison in C and JavaScript, and tighter in Rust."""
_BEFORE = frozenset({"return", "if", "while", "match", "in", "else", "case", "throw", "yield", "do", "const"})
_BEFORE_IN_SCRIPTS = frozenset({*_BEFORE, "default"} - {"match", "in"})
_ASKS = frozenset({"if", "while"})
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_OPERATORS = frozenset({"instanceof", "in", "of", "as", "satisfies"})
_STARTS = frozenset({*_ASKS, "for"})
_GOES_ON = re.compile(r"[-+*/%&|^=<>?:,.(\[{!~]$")
_WENT_ON = re.compile(r"\s*[-+*/%&|^=<>?:,.)\]]")
_ODD = frozenset({"let", "yield", "function", "class", "\\"})
"""Words that make a part of a line more than a condition."""
_CHAIN = frozenset({".", "?.", "::"})


IT = "\x02"
"""No character of a program."""


class Asks(StrEnum):
    """What of a value decides."""

    TRUTH = "truth"
    TRUTH_OF_BOOLEANS = "booleans"
    """Any other value is no condition."""
    ABSENCE = "absence"
    END = "end"
    """Nothing: it is enough that there is a value, since nothing before it threw."""
    ORDER = "order"
    """Which of two values is less."""
    FAULT = "fault"
    """Whether there is one, which goes no further."""


class Spot(Record):
    """A condition or an arm, by its place in a program."""

    start: int
    end: int
    around: tuple[int, int]
    """The place with the token before and the token behind it, by whose text it is known."""
    is_arm: bool = False
    closes: bool = True
    """An arm that is an expression needs brackets of its own."""
    asks: Asks = Asks.TRUTH
    told: str = ""
    """What is asked, unless it is the text from start to end."""
    words: tuple[str, str] = ("is true", "is false")
    test: str = ""
    """What is asked of a value, for which `IT` stands; empty where it is the value itself."""


def to_spot(code: Tokens, start: int, end: int, *, is_arm: bool = False, closes: bool = True) -> Spot:
    """Return the place of some tokens; an arm is known by the line in which it begins."""
    start = min(start, len(code.words) - 1)  # code may end where something has to follow
    first, last = code.places[start], code.find_end(end - 1)
    before, behind = code.places[max(start - 1, 0)], code.find_end(min(end, len(code.words) - 1))
    around = (code.text.rfind("\n", 0, first) + 1, last) if is_arm else (before, behind)
    return Spot(start=first, end=last, around=around, is_arm=is_arm, closes=closes)


def is_apart(code: Tokens, place: int) -> bool:
    """Return whether a token has blanks on both sides."""
    around = code.bare[code.places[place] - 1 : code.places[place]] + code.bare[code.find_end(place) :][:1]
    return len(around) == 2 and not around.strip()


def breaks_line(code: Tokens, place: int) -> bool:
    """Return whether a statement of JavaScript may end before a token, since a line ends there."""
    if code.get_word(code.around[place]) not in ("", "{") or place < 1:
        return False
    between = code.bare[code.find_end(place - 1) : code.places[place]]
    is_going_on = _GOES_ON.search(code.words[place - 1]) or _WENT_ON.match(code.bare[code.places[place] :])
    return "\n" in between and not is_going_on


def find_comparisons(code: Tokens) -> Iterator[Spot]:
    """Yield what is compared for equality, wherever it stands."""
    for place, word in enumerate(code.words):
        if word in ("==", "==="):
            yield to_spot(code, *extend(code, place))


def _is_in_loop_head(code: Tokens, place: int) -> bool:
    around = code.around[place]
    return around > 0 and code.get_word(around) == "(" and code.get_word(around - 1) in ("for", "await")


def extend(code: Tokens, place: int, looser: Collection[str] = BITS) -> tuple[int, int]:
    """Return the part around a token that binds tighter than what joins conditions, and than some more."""
    if place >= len(code.words) or place < 0:
        return 0, 0
    if code.words[place] in CLOSES:
        place = code.partners[place]
    start = place
    while start > 0 and not _is_left_end(code, start, looser):
        start -= 1
        start = code.partners[start] if code.words[start] in CLOSES else start
    end = place
    while end < len(code.words) and not _is_right_end(code, end, place, looser):
        end = (code.partners[end] if code.words[end] in OPENS else end) + 1
    return start, end


def _is_left_end(code: Tokens, place: int, looser: Collection[str]) -> bool:
    word = code.words[place - 1]
    if word in OPENS or _is_end(code, word) or _is_keyword(code, place - 1):
        return True
    if word == "|" if code.is_rust else word in looser:
        return True
    if not code.is_script:
        return word == "}"
    is_head = word == ")" and code.get_word(code.partners[place - 1] - 1) in _STARTS
    follows = code.words[place]
    is_block = word == "}" and _NAME.fullmatch(follows) is not None and follows not in _OPERATORS
    return is_head or is_block or breaks_line(code, place)


def _is_right_end(code: Tokens, place: int, first: int, looser: Collection[str]) -> bool:
    word = code.words[place]
    if word in CLOSES or _is_end(code, word):
        return True
    if word in ("{", "|") if code.is_rust else word in looser and place > first:
        return True
    return code.is_script and place > first and breaks_line(code, place)


def _is_keyword(code: Tokens, place: int) -> bool:
    """Return whether a token is a word behind which an expression begins; a member may have its name."""
    words = _BEFORE_IN_SCRIPTS if code.is_script else _BEFORE
    return code.words[place] in words and code.get_word(place - 1) not in _CHAIN


def _is_end(code: Tokens, word: str) -> bool:
    """Return whether a token parts two conditions; a question mark of Rust only passes an error on."""
    return word in _ENDS and not (word == "?" and code.is_rust)


def is_plain(code: Tokens, start: int, end: int) -> bool:
    """Return whether a part is one expression inside a function."""
    outer = code.around[start] if code.is_script and start < len(code.words) else None
    places = [at for at in range(start, end) if outer is None or code.around[at] == outer]
    words = [code.words[at] for at in places]
    is_odd = not words or not _ODD.isdisjoint(words) or _is_in_loop_head(code, start)
    is_type = code.is_rust and ("->" in words or code.get_word(start - 1) == "const")
    return not is_odd and not is_type and _is_in_function(code, start)


def _is_in_function(code: Tokens, place: int) -> bool:
    """Return whether a token stands in a block; in Rust a module's or a constant's does not count."""
    around, is_inside = code.around[place], code.is_script
    while around >= 0:
        is_inside = is_inside or code.words[around] == "{"
        if _is_assertion(code, around):
            return False
        head = _head_of(code, around)
        if code.is_rust and (
            not {"mod", "macro_rules"}.isdisjoint(head)
            or ("const" in head and "fn" in head)
            or "!" in head[-1:]
        ):
            return False
        around = code.around[around]
    return is_inside


def _is_assertion(code: Tokens, place: int) -> bool:
    """Return whether a bracket holds what is there to be true."""
    name = code.get_word(place - 2) if code.get_word(place - 1) == "!" else code.get_word(place - 1)
    return code.words[place] == "(" and "assert" in name


def _head_of(code: Tokens, place: int) -> tuple[str, ...]:
    """Return the tokens before a bracket, back to the statement before."""
    start = place
    while start > 0 and code.words[start - 1] not in (";", "{", "}"):
        start -= 1
    return code.words[start:place] if code.words[place] == "{" else ()


def is_on(spot: Spot, text: str, lines: Collection[int]) -> bool:
    """Return whether a place touches one of some lines."""
    first = text.count("\n", 0, spot.start) + 1
    return any(line in lines for line in range(first, text.count("\n", 0, spot.end) + 2))
