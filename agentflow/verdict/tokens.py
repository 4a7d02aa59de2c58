"""Programs in other languages than Python: their tokens, and the conditions and arms among these."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

from agentflow.core.languages import C_FAMILY, JAVASCRIPT, RUST, Lexer, find_lexer
from agentflow.core.record import Record
from agentflow.core.regex import regex

_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in some compilers only."""
OPENS: Mapping[str, str] = MappingProxyType({"(": ")", "[": "]", "{": "}"})
CLOSES = frozenset(OPENS.values())


def split_program(path: str, text: str) -> list[tuple[str, str]] | None:
    """Return a program's comments, strings and code, by kind; None if they cannot be told apart."""
    language = find_lexer(path)
    if language is None or _CONTROL.search(text) or re.search(language.odd, text):
        return None
    parts = list(_split(language, text))
    return parts if "".join(part for _, part in parts) == text else None


def _split(language: Lexer, text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a file up to the first that no rule matches."""
    pattern, place = _pattern(language), 0
    while found := pattern.match(text, place):
        yield found.lastgroup or "", found[0]
        place = found.end()


@cache
def _pattern(language: Lexer) -> re.Pattern[str]:
    strings = "|".join(language.strings)
    return re.compile(
        rf"(?P<comment>{language.comment})|(?P<string>{strings})|(?P<code>{language.code})", re.DOTALL
    )


def blank_out(path: str, text: str, string: str = " ") -> str | None:
    """Return a program with blanks for its comments and a sign for each of its strings' characters.

    Its lines are kept. None where it cannot be read.
    """
    parts = split_program(path, text)
    if parts is None:
        return None
    signs = {"comment": " ", "string": string}
    return "".join(re.sub(r"[^\n]", signs[kind], part) if kind in signs else part for kind, part in parts)


class Tokens(Record):
    """A program as tokens, with what brackets enclose each."""

    path: str
    text: str
    bare: str
    """The text with signs for comments and strings, of which the tokens are pieces."""
    words: tuple[str, ...]
    places: tuple[int, ...]
    """The offset of each token in the text."""
    partners: Mapping[int, int]
    """The matching bracket of each bracket."""
    around: tuple[int, ...]
    """The innermost bracket in which each token stands; -1 for none."""

    @property
    def is_c(self) -> bool:
        return self.path.endswith(C_FAMILY)

    @property
    def is_rust(self) -> bool:
        return self.path.endswith(RUST)

    @property
    def is_javascript(self) -> bool:
        return self.path.endswith(JAVASCRIPT)

    def get_word(self, place: int) -> str:
        """Return a token; empty where there is none."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def find_end(self, place: int) -> int:
        """Return the offset in the text at which a token ends."""
        return self.places[place] + len(self.words[place])

    def find_places(self, name: str) -> list[int]:
        return [place for place, word in enumerate(self.words) if word == name]


def to_tokens(path: str, text: str, bare: str, token: re.Pattern[str]) -> Tokens | None:
    """Return a program as the tokens of its bare text; None where its brackets do not match."""
    found = list(token.finditer(bare))
    words = tuple(each[0] for each in found)
    partners, around, opened = dict[int, int](), list[int](), list[int]()
    for place, word in enumerate(words):
        if word in CLOSES:
            if not opened or OPENS[words[opened[-1]]] != word:
                return None
            begin = opened.pop()
            partners |= {begin: place, place: begin}
        around.append(opened[-1] if opened else -1)
        if word in OPENS:
            opened.append(place)
    if opened:
        return None
    places = tuple(each.start() for each in found)
    return Tokens(
        path=path, text=text, bare=bare, words=words, places=places, partners=partners, around=tuple(around)
    )


_TOKEN = re.compile(
    r"[A-Za-z_$][\w$]*|\d[\w.]*|\x01+|'[a-z_]\w*|<<=|>>>=?|>>=|\*\*=?|\.\.[.=]?|===|!==|=>|->|::|&&=?|\|\|=?|\?\?=?"
    r"|\?\.|<=|>=|==|!=|<<|>>|\+\+|--|[-+*/%&|^]=|[^\s\w]"
)
_COMPARES = frozenset({"==", "!=", "===", "!==", "<", ">", "<=", ">=", "instanceof"})
_ANGLES = frozenset({"<", ">"})
_JOINS = frozenset({"&&", "||"})
_ASSIGNS = frozenset(
    {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**=", "&&=", "||=", "??="}
)
_ENDS = frozenset({",", ";", ":", "?", "=>", "??", "..", "..=", *_JOINS, *_ASSIGNS})
_BITS = frozenset({"|", "&", "^"})
"""Operators that bind looser than a comparison in C and JavaScript, and tighter in Rust."""
_BEFORE = frozenset({"return", "if", "while", "match", "in", "else", "case", "throw", "yield", "do", "const"})
_BEFORE_CLOSURES = frozenset({"", "(", ",", "=", "move", "return", "{", "=>"})
_ARMS = frozenset({"case", "default", "=>", "else", "if", "for"})
_ASKS = frozenset({"if", "while"})
_GOES_ON = re.compile(r"[-+*/%&|^=<>?:,.(\[{!~]$")
_WENT_ON = re.compile(r"\s*[-+*/%&|^=<>?:,.)\]]")
_ODD = frozenset({"let", "await", "yield", "function", "class", "\\"})
"""Words that make a part of a line more than a condition."""
_SETTINGS = "env"
"""Variables of a run: a feature that they switch has to be tried with and without."""
_CHAIN = frozenset({".", "?.", "::"})


class Spot(Record):
    """A condition or an arm, by its place in a program."""

    start: int
    end: int
    around: tuple[int, int]
    """The place with the token before and the token behind it, by whose text it is known."""
    is_arm: bool = False
    closes: bool = True
    """An arm that is an expression needs brackets of its own."""


def read_code(path: str, text: str) -> Tokens | None:
    """Return a program as tokens; None where it cannot be told for certain what is code."""
    bare = blank_out(path, text, "\x01")
    if bare is None:
        return None
    if path.endswith(C_FAMILY):
        bare = re.sub(r"(?m)^[ \t]*#[^\n]*", lambda found: " " * len(found[0]), bare)
    return to_tokens(path, text, bare, _TOKEN)


def _to_spot(code: Tokens, start: int, end: int, *, is_arm: bool = False, closes: bool = True) -> Spot:
    """Return the place of some tokens; an arm is known by the line in which it begins."""
    first, last = code.places[start], code.find_end(end - 1)
    before, behind = code.places[max(start - 1, 0)], code.find_end(min(end, len(code.words) - 1))
    around = (code.text.rfind("\n", 0, first) + 1, last) if is_arm else (before, behind)
    return Spot(start=first, end=last, around=around, is_arm=is_arm, closes=closes)


def _is_apart(code: Tokens, place: int) -> bool:
    """Return whether a token has blanks on both sides."""
    around = code.bare[code.places[place] - 1 : code.places[place]] + code.bare[code.find_end(place) :][:1]
    return len(around) == 2 and not around.strip()


def _breaks_line(code: Tokens, place: int) -> bool:
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
            if (start, end) not in seen and _is_plain(code, start, end):
                seen.add((start, end))
                yield _to_spot(code, start, end)
    if code.is_c or code.is_rust:
        yield from _find_arms(code)


def find_comparisons(code: Tokens) -> Iterator[Spot]:
    """Yield what is compared for equality, wherever it stands."""
    for place, word in enumerate(code.words):
        if word in ("==", "==="):
            yield _to_spot(code, *_extend(code, place))


def _find_parts(code: Tokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield the conditions, from one token to another, that a token is the sign of."""
    is_script = code.is_javascript
    is_clear = word not in _ANGLES or is_script or code.path.endswith(".c") or _is_apart(code, place)
    if word in _COMPARES and is_clear:
        parts: Iterable[tuple[int, int]] = [_extend(code, place)]
    else:
        parts = _find_in_script(code, place, word) if is_script else _find_in_others(code, place, word)
    yield from (part for part in parts if not (is_script and _is_told_by_node(code, *part)))


def _find_in_script(code: Tokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield what is negated, and what becomes a number."""
    if word == "!" and code.get_word(place - 1) != "!" and code.get_word(place + 1) != "!":
        yield place, _end_of_operand(code, place + 1)
    elif word == "(" and code.get_word(place - 1) == "Number":
        yield place + 1, code.partners[place]


def _find_in_others(code: Tokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield what is joined, what is asked, and what stands before a question mark of C."""
    is_c = code.is_c
    if word in _JOINS and not _is_closure(code, place):
        yield from (_extend(code, place - 1), _extend(code, place + 1))
    elif word == "?" and is_c:
        yield _extend(code, place - 1)
    elif word in _ASKS:
        part = _extend(code, place + 2 if is_c else place + 1)
        if code.get_word(part[1]) in (")", "{", *_JOINS):
            yield part


def _is_told_by_node(code: Tokens, start: int, end: int) -> bool:
    """Return whether node counts what follows a condition of JavaScript both ways."""
    before, after = code.get_word(start - 1), code.get_word(end)
    is_part = start > 0 and not _is_left_end(code, start - 1, start)
    if is_part or _SETTINGS in code.words[start:end]:
        return False
    is_head = before == "(" and after == ")" and code.get_word(start - 2) in (*_ASKS, "for")
    return after in ("?", *_JOINS) or is_head or _is_in_loop_head(code, start)


def _is_in_loop_head(code: Tokens, place: int) -> bool:
    around = code.around[place]
    return around > 0 and code.get_word(around) == "(" and code.get_word(around - 1) in ("for", "await")


def _extend(code: Tokens, place: int) -> tuple[int, int]:
    """Return the part around a token that binds tighter than what joins conditions."""
    if place >= len(code.words) or place < 0:
        return 0, 0
    if code.words[place] in CLOSES:
        place = code.partners[place]
    start = place
    while start > 0 and not _is_left_end(code, start - 1, start):
        start -= 1
        start = code.partners[start] if code.words[start] in CLOSES else start
    end = place
    while end < len(code.words) and not _is_right_end(code, end, place):
        end = (code.partners[end] if code.words[end] in OPENS else end) + 1
    return start, end


def _is_left_end(code: Tokens, before: int, place: int) -> bool:
    word = code.words[before]
    if word in OPENS or _is_end(code, word) or word in _BEFORE:
        return True
    if word in _BITS and not (code.is_rust and word != "|"):
        return True
    is_block = word == "}" and not code.is_javascript
    return is_block or (code.is_javascript and _breaks_line(code, place))


def _is_right_end(code: Tokens, place: int, first: int) -> bool:
    word = code.words[place]
    if word in CLOSES or _is_end(code, word):
        return True
    if word in ("{", "|") if code.is_rust else word in _BITS and place > first:
        return True
    return code.is_javascript and place > first and _breaks_line(code, place)


def _is_end(code: Tokens, word: str) -> bool:
    """Return whether a token parts two conditions; a question mark of Rust only passes an error on."""
    return word in _ENDS and not (word == "?" and code.is_rust)


def _is_closure(code: Tokens, place: int) -> bool:
    return code.is_rust and code.words[place] == "||" and code.get_word(place - 1) in _BEFORE_CLOSURES


def _end_of_operand(code: Tokens, place: int) -> int:
    """Return where an operand ends: a name or a bracket with all that is called and read of it."""
    while code.get_word(place) in ("!", "-", "+", "typeof", "await", "new"):
        place += 1
    place = code.partners.get(place, place) + 1
    while code.get_word(place) in _CHAIN or code.get_word(place) in ("(", "["):
        place = code.partners[place] + 1 if code.get_word(place) in OPENS else place + 2
    return place


def _is_plain(code: Tokens, start: int, end: int) -> bool:
    """Return whether a part is one expression inside a function."""
    words = code.words[start:end]
    is_odd = not words or not _ODD.isdisjoint(words) or _is_in_loop_head(code, start)
    is_type = code.is_rust and ("->" in words or code.get_word(start - 1) == "const")
    return not is_odd and not is_type and _is_in_function(code, start)


def _is_in_function(code: Tokens, place: int) -> bool:
    """Return whether a token stands in a block; in Rust a module's or a constant's does not count."""
    around, is_inside = code.around[place], code.is_javascript
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


def _find_arms(code: Tokens) -> Iterator[Spot]:
    """Yield the arms of a `match` or `switch`, and the blocks of its patterns and its default."""
    for place, word in enumerate(code.words):
        if word not in _ARMS or not _is_in_function(code, place):
            continue
        if code.is_c and word in ("case", "default") and code.get_word(code.around[place]) == "{":
            end = next((at for at in range(place, len(code.words)) if code.words[at] == ":"), 0)
            if end:
                yield _to_spot(code, place, end + 1, is_arm=True, closes=False)
        elif code.is_rust and word == "=>" and code.get_word(place + 1) == "{":
            yield _to_spot(code, place, place + 2, is_arm=True, closes=False)
        elif code.is_rust and word == "=>":
            yield _to_spot(code, place + 1, _end_of_arm(code, place + 1), is_arm=True)
        elif code.is_rust and (end := _find_block(code, place, word)):
            yield _to_spot(code, place, end + 1, is_arm=True, closes=False)


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
