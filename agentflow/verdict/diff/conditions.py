"""Conditions and arms of C, C++ and Rust, found by their tokens, and what bounds those of scripts."""

import re
from collections.abc import Collection, Iterator
from enum import StrEnum

from agentflow.core.record import Record
from agentflow.verdict.tokens import CLOSES, OPENS, Tokens

COMPARES = frozenset({"==", "!=", "===", "!==", "<", ">", "<=", ">=", "instanceof"})
ANGLE_BRACKETS = frozenset({"<", ">"})
JOINS = frozenset({"&&", "||"})
ASSIGNS = frozenset(
    {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**=", "&&=", "||=", "??="}
)
_ENDS = frozenset({",", ";", ":", "?", "=>", "??", "..", "..=", "...", *JOINS, *ASSIGNS})
BITS = frozenset({"|", "&", "^"})
"""Operators that bind looser than a comparison in C and JavaScript, and tighter in Rust."""
_BEFORE = frozenset({"return", "if", "while", "match", "in", "else", "case", "throw", "yield", "do", "const"})
_BEFORE_IN_SCRIPTS = frozenset({*_BEFORE, "default"} - {"match", "in"})
_BEFORE_CLOSURES = frozenset({"", "(", ",", "=", "move", "return", "{", "=>"})
_ARMS = frozenset({"case", "default", "=>", "else", "if", "for"})
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


def find_spots(code: Tokens) -> Iterator[Spot]:
    """Yield what may come out in two ways, and the arms of which one is taken."""
    seen = set[tuple[int, int]]()
    for place, word in enumerate(code.words):
        for start, end in _find_parts(code, place, word):
            if (start, end) not in seen and is_plain(code, start, end):
                seen.add((start, end))
                yield to_spot(code, start, end)
    yield from _find_arms(code)


def find_comparisons(code: Tokens) -> Iterator[Spot]:
    """Yield what is compared for equality, wherever it stands."""
    for place, word in enumerate(code.words):
        if word in ("==", "==="):
            yield to_spot(code, *extend(code, place))


def _find_parts(code: Tokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield the conditions, from one token to another, that a token is the sign of."""
    if word in COMPARES:
        if word not in ANGLE_BRACKETS or code.path.endswith(".c") or is_apart(code, place):
            yield extend(code, place)
    elif word in JOINS and not _is_closure(code, place):
        yield from (extend(code, place - 1, ()), extend(code, place + 1, ()))
    elif word == "?" and code.is_c:
        yield extend(code, place - 1, ())
    elif word in _ASKS:
        part = extend(code, place + 2 if code.is_c else place + 1, ())
        if code.get_word(part[1]) in (")", "{", *JOINS):
            yield part


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


def _is_closure(code: Tokens, place: int) -> bool:
    return code.is_rust and code.words[place] == "||" and code.get_word(place - 1) in _BEFORE_CLOSURES


def end_of_operand(code: Tokens, place: int) -> int:
    """Return where an operand ends: a name or a bracket with all that is called and read of it."""
    signs = ("!", "-", "+", "--", "++", "typeof", "await", "new")
    while code.get_word(place) in signs and code.get_word(place + 1) != ".":
        place += 1
    place = code.partners.get(place, place) + 1
    while code.get_word(place) in ("(", "[", *_CHAIN) or (code.is_script and code.get_word(place) == "!"):
        is_name = code.get_word(place) in _CHAIN and code.get_word(place + 1) not in OPENS
        place = code.partners.get(place, place + is_name) + 1
    return place


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


def find_bound(code: Tokens, begin: int, place: int) -> Spot | None:
    """Return the two values of which one decides, for a name that may be `min` or `max`."""
    name, opening = code.get_word(place), place + 1
    if name not in ("min", "max") or code.get_word(opening) != "(":
        return None
    closing = code.partners[opening]
    signs = [
        at for at in range(opening, closing) if code.words[at] in (",", "...") and code.around[at] == opening
    ]
    if len(signs) != 1 or code.words[signs[0]] != "," or signs[0] == closing - 1:
        return None
    words = [
        f"is `{read_tokens(code, *ends)}`" for ends in ((opening + 1, signs[0]), (signs[0] + 1, closing))
    ]
    return to_spot(code, opening + 1, closing).replace(
        around=(code.places[begin], code.find_end(closing)),
        asks=Asks.ORDER,
        told=read_tokens(code, begin, closing + 1),
        words=tuple(words if name == "min" else words[::-1]),
    )


def read_tokens(code: Tokens, start: int, end: int) -> str:
    """Return some tokens as they are written, on one line."""
    return " ".join(code.text[code.places[start] : code.find_end(end - 1)].split())


def _find_arms(code: Tokens) -> Iterator[Spot]:
    """Yield the arms of a `match` or a `switch`, and the blocks of patterns and of what else is left."""
    for place, word in enumerate(code.words):
        if word not in _ARMS or not _is_in_function(code, place):
            continue
        if code.is_c and word in ("case", "default") and code.get_word(code.around[place]) == "{":
            end = next((at for at in range(place, len(code.words)) if code.words[at] == ":"), 0)
            if end:
                yield to_spot(code, place, end + 1, is_arm=True, closes=False)
        elif code.is_rust and word == "=>" and code.get_word(place + 1) == "{":
            yield to_spot(code, place, place + 2, is_arm=True, closes=False)
        elif code.is_rust and word == "=>":
            yield to_spot(code, place + 1, _end_of_arm(code, place + 1), is_arm=True)
        elif code.is_rust and (end := _find_block(code, place, word)):
            yield to_spot(code, place, end + 1, is_arm=True, closes=False)


def _end_of_arm(code: Tokens, place: int) -> int:
    """Return where the expression of an arm ends."""
    while place < len(code.words) and code.words[place] != "," and code.words[place] not in CLOSES:
        place = code.partners.get(place, place) + 1
    return place


def _find_block(code: Tokens, place: int, word: str) -> int:
    """Return where a block of `else`, `if let` or `for` begins; 0 for another token."""
    follows = code.get_word(place + 1)
    if word not in ("else", "if", "for") or (word == "if" and follows != "let"):
        return 0
    if word == "else":
        return place + 1 if follows == "{" else 0
    return next((at for at in range(place, len(code.words)) if code.words[at] == "{"), 0)


def is_on(spot: Spot, text: str, lines: Collection[int]) -> bool:
    """Return whether a place touches one of some lines."""
    first = text.count("\n", 0, spot.start) + 1
    return any(line in lines for line in range(first, text.count("\n", 0, spot.end) + 2))
