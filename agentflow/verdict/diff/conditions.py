"""Where new conditions and arms of C, C++, JavaScript and Rust stand, by their tokens."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from agentflow.core.languages import C_FAMILY, JAVASCRIPT, RUST
from agentflow.core.record import Record
from agentflow.verdict.same.comments import split_program

_TOKEN = re.compile(
    r"[A-Za-z_$][\w$]*|\d[\w.]*|\x01+|'[a-z_]\w*|<<=|>>>=?|>>=|\*\*=?|\.\.[.=]?|===|!==|=>|->|::|&&=?|\|\|=?|\?\?=?"
    r"|\?\.|<=|>=|==|!=|<<|>>|\+\+|--|[-+*/%&|^]=|[^\s\w]"
)
_OPENS: Mapping[str, str] = {"(": ")", "[": "]", "{": "}"}
_COMPARES = frozenset({"==", "!=", "===", "!==", "<", ">", "<=", ">=", "instanceof"})
_ANGLES = frozenset({"<", ">"})
_JOINS = frozenset({"&&", "||"})
_ASSIGNS = frozenset(
    {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**=", "&&=", "||=", "??="}
)
_ENDS = frozenset({",", ";", ":", "?", "=>", "??", "..", "..=", *_JOINS, *_ASSIGNS})
_BITS = frozenset({"|", "&", "^"})
"""They bind looser than a comparison in C and JavaScript, and tighter in Rust."""
_BEFORE = frozenset({"return", "if", "while", "match", "in", "else", "case", "throw", "yield", "do", "const"})
_ARMS = frozenset({"case", "default", "=>", "else", "if", "for"})
_ASKS = frozenset({"if", "while"})
_GOES_ON = re.compile(r"[-+*/%&|^=<>?:,.(\[{!~]$")
_WENT_ON = re.compile(r"\s*[-+*/%&|^=<>?:,.)\]]")
_ODD = frozenset({"let", "await", "yield", "function", "class", "\\"})
"""What makes a part of a line more than a condition."""
_SETTINGS = "env"
"""Variables of a run: a feature that they switch has to be tried with and without."""
_CHAIN = frozenset({".", "?.", "::"})


class Spot(Record):
    """A condition or an arm, by its place in a program."""

    start: int
    end: int
    around: tuple[int, int]
    """The same with what stands before and behind it, by which it is known."""
    is_arm: bool = False
    closes: bool = True
    """An arm that is an expression needs brackets of its own."""


class CodeTokens:
    """A program as tokens, with what brackets enclose each."""

    def __init__(self, path: str, text: str, masked: str) -> None:
        self.path, self.text, self._masked = path, text, masked
        self.is_c, self.is_rust = path.endswith(C_FAMILY), path.endswith(RUST)
        self.is_script = path.endswith(JAVASCRIPT)
        found = list(_TOKEN.finditer(masked))
        self.words = tuple(each[0] for each in found)
        self.places = tuple(each.start() for each in found)
        self.ends = tuple(each.end() for each in found)
        self.partners: dict[int, int] = {}
        self.around: list[int] = []
        self.is_whole = self._pair()

    def _pair(self) -> bool:
        opened = list[int]()
        for place, word in enumerate(self.words):
            if word in _OPENS.values():
                if not opened or _OPENS[self.words[opened[-1]]] != word:
                    return False
                begin = opened.pop()
                self.partners |= {begin: place, place: begin}
            self.around.append(opened[-1] if opened else -1)
            if word in _OPENS:
                opened.append(place)
        return not opened

    def to_spot(self, start: int, end: int, *, is_arm: bool = False, closes: bool = True) -> Spot:
        """Return the place of some tokens; an arm is known by the line in which it begins."""
        first, last = self.places[max(start - 1, 0)], self.ends[min(end, len(self.ends) - 1)]
        around = (
            (self.text.rfind("\n", 0, self.places[start]) + 1, self.ends[end - 1])
            if is_arm
            else (first, last)
        )
        return Spot(
            start=self.places[start], end=self.ends[end - 1], around=around, is_arm=is_arm, closes=closes
        )

    def word(self, place: int) -> str:
        return self.words[place] if 0 <= place < len(self.words) else ""

    def is_apart(self, place: int) -> bool:
        """Tell whether a token has blanks on both sides."""
        around = (
            self._masked[self.places[place] - 1 : self.places[place]] + self._masked[self.ends[place] :][:1]
        )
        return len(around) == 2 and not around.strip()

    def breaks_line(self, place: int) -> bool:
        """Tell whether a statement of JavaScript may end before a token, since a line ends there."""
        if self.word(self.around[place]) not in ("", "{") or place < 1:
            return False
        between = self._masked[self.ends[place - 1] : self.places[place]]
        is_going_on = _GOES_ON.search(self.words[place - 1]) or _WENT_ON.match(
            self._masked[self.places[place] :]
        )
        return "\n" in between and not is_going_on


def read_code(path: str, text: str) -> CodeTokens | None:
    """Return a program as tokens; None where it cannot be told for certain what is code."""
    parts = split_program(path, text)
    if parts is None:
        return None
    masked = "".join(_mask(kind, part) for kind, part in parts)
    if path.endswith(C_FAMILY):
        masked = re.sub(r"(?m)^[ \t]*#[^\n]*", lambda found: " " * len(found[0]), masked)
    code = CodeTokens(path, text, masked)
    return code if code.is_whole else None


def _mask(kind: str, part: str) -> str:
    sign = {"comment": " ", "string": "\x01"}.get(kind, "")
    return re.sub(r"[^\n]", sign, part) if sign else part


def find_spots(code: CodeTokens) -> Iterator[Spot]:
    """Yield what may come out in two ways, and the arms of which one is taken."""
    seen = set[tuple[int, int]]()
    for place, word in enumerate(code.words):
        for start, end in _find_parts(code, place, word):
            if (start, end) not in seen and _is_plain(code, start, end):
                seen.add((start, end))
                yield code.to_spot(start, end)
    if code.is_c or code.is_rust:
        yield from _find_arms(code)


def find_comparisons(code: CodeTokens) -> Iterator[Spot]:
    """Yield what is compared for equality, wherever it stands."""
    for place, word in enumerate(code.words):
        if word in ("==", "==="):
            yield code.to_spot(*_extend(code, place))


def _find_parts(code: CodeTokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield the conditions, from one token to another, that a token is the sign of."""
    is_script = code.is_script
    is_clear = word not in _ANGLES or is_script or code.path.endswith(".c") or code.is_apart(place)
    if word in _COMPARES and is_clear:
        parts: Iterable[tuple[int, int]] = [_extend(code, place)]
    else:
        parts = _find_in_script(code, place, word) if is_script else _find_in_others(code, place, word)
    yield from (part for part in parts if not (is_script and _is_told_by_node(code, *part)))


def _find_in_script(code: CodeTokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield what is negated, and what becomes a number."""
    if word == "!" and code.word(place - 1) != "!" and code.word(place + 1) != "!":
        yield place, _end_of_operand(code, place + 1)
    elif word == "(" and code.word(place - 1) == "Number":
        yield place + 1, code.partners[place]


def _find_in_others(code: CodeTokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield what is joined, what is asked, and what stands before a question mark of C."""
    is_c = code.is_c
    if word in _JOINS and not _is_closure(code, place):
        yield from (_extend(code, place - 1), _extend(code, place + 1))
    elif word == "?" and is_c:
        yield _extend(code, place - 1)
    elif word in _ASKS:
        part = _extend(code, place + 2 if is_c else place + 1)
        if code.word(part[1]) in (")", "{", *_JOINS):
            yield part


def _is_told_by_node(code: CodeTokens, start: int, end: int) -> bool:
    """Tell whether node counts what follows a condition of JavaScript both ways."""
    before, after = code.word(start - 1), code.word(end)
    is_part = start > 0 and not _is_left_end(code, start - 1, start)
    if is_part or _SETTINGS in code.words[start:end]:
        return False
    is_head = before == "(" and after == ")" and code.word(start - 2) in (*_ASKS, "for")
    return after in ("?", *_JOINS) or is_head or _is_in_loop_head(code, start)


def _is_in_loop_head(code: CodeTokens, place: int) -> bool:
    around = code.around[place]
    return around > 0 and code.word(around) == "(" and code.word(around - 1) in ("for", "await")


def _extend(code: CodeTokens, place: int) -> tuple[int, int]:
    """Return the part around a token that binds tighter than what joins conditions."""
    if place >= len(code.words) or place < 0:
        return 0, 0
    if code.words[place] in _OPENS.values():
        place = code.partners[place]
    start = place
    while start > 0 and not _is_left_end(code, start - 1, start):
        start -= 1
        start = code.partners[start] if code.words[start] in _OPENS.values() else start
    end = place
    while end < len(code.words) and not _is_right_end(code, end, place):
        end = (code.partners[end] if code.words[end] in _OPENS else end) + 1
    return start, end


def _is_left_end(code: CodeTokens, before: int, place: int) -> bool:
    word, is_rust = code.words[before], code.is_rust
    if word in _OPENS or word in _ENDS - ({"?"} if is_rust else set()) or word in _BEFORE:
        return True
    if word in _BITS and not (is_rust and word != "|"):
        return True
    is_block = word == "}" and not code.is_script
    return is_block or (code.is_script and code.breaks_line(place))


def _is_right_end(code: CodeTokens, place: int, first: int) -> bool:
    word, is_rust = code.words[place], code.is_rust
    if word in _OPENS.values() or word in _ENDS - ({"?"} if is_rust else set()):
        return True
    if (word in _BITS and not is_rust and place > first) or (is_rust and word in ("{", "|")):
        return True
    return code.is_script and place > first and code.breaks_line(place)


def _is_closure(code: CodeTokens, place: int) -> bool:
    is_empty = code.words[place] == "||" and code.word(place - 1) in (
        "",
        "(",
        ",",
        "=",
        "move",
        "return",
        "{",
        "=>",
    )
    return code.is_rust and is_empty


def _end_of_operand(code: CodeTokens, place: int) -> int:
    """Return where an operand ends: a name or a bracket with all that is called and read of it."""
    while code.word(place) in ("!", "-", "+", "typeof", "await", "new"):
        place += 1
    place = code.partners.get(place, place) + 1
    while code.word(place) in _CHAIN or code.word(place) in ("(", "["):
        place = code.partners[place] + 1 if code.word(place) in _OPENS else place + 2
    return place


def _is_plain(code: CodeTokens, start: int, end: int) -> bool:
    """Tell whether a part is one expression inside a function."""
    words = code.words[start:end]
    is_odd = not words or not _ODD.isdisjoint(words) or _is_in_loop_head(code, start)
    is_type = code.is_rust and ("->" in words or code.word(start - 1) == "const")
    return not is_odd and not is_type and _is_in_function(code, start)


def _is_in_function(code: CodeTokens, place: int) -> bool:
    """Tell whether a token stands in a block of braces, and in Rust in none that is a module or constant."""
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


def _is_assertion(code: CodeTokens, place: int) -> bool:
    """Tell whether a bracket holds what is there to be true."""
    name = code.word(place - 2) if code.word(place - 1) == "!" else code.word(place - 1)
    return code.words[place] == "(" and "assert" in name


def _head_of(code: CodeTokens, place: int) -> tuple[str, ...]:
    """Return the tokens before a bracket, back to the statement before."""
    start = place
    while start > 0 and code.words[start - 1] not in (";", "{", "}"):
        start -= 1
    return code.words[start:place] if code.words[place] == "{" else ()


def _find_arms(code: CodeTokens) -> Iterator[Spot]:
    """Yield the arms of a `match` or a `switch`, and the blocks of patterns and of what else is left."""
    for place, word in enumerate(code.words):
        if word not in _ARMS or not _is_in_function(code, place):
            continue
        if code.is_c and word in ("case", "default") and code.word(code.around[place]) == "{":
            end = next((at for at in range(place, len(code.words)) if code.words[at] == ":"), 0)
            if end:
                yield code.to_spot(place, end + 1, is_arm=True, closes=False)
        elif code.is_rust and word == "=>" and code.word(place + 1) == "{":
            yield code.to_spot(place, place + 2, is_arm=True, closes=False)
        elif code.is_rust and word == "=>":
            yield code.to_spot(place + 1, _end_of_arm(code, place + 1), is_arm=True)
        elif code.is_rust and (end := _find_block(code, place, word)):
            yield code.to_spot(place, end + 1, is_arm=True, closes=False)


def _end_of_arm(code: CodeTokens, place: int) -> int:
    """Return where the expression of an arm ends."""
    while place < len(code.words) and code.words[place] != "," and code.words[place] not in _OPENS.values():
        place = code.partners.get(place, place) + 1
    return place


def _find_block(code: CodeTokens, place: int, word: str) -> int:
    """Return where a block of `else`, `if let` or `for` begins; 0 for another token."""
    follows = code.word(place + 1)
    if word not in ("else", "if", "for") or (word == "if" and follows != "let"):
        return 0
    if word == "else":
        return place + 1 if follows == "{" else 0
    return next((at for at in range(place, len(code.words)) if code.words[at] == "{"), 0)


def is_on(spot: Spot, text: str, lines: Collection[int]) -> bool:
    """Tell whether a place touches one of some lines."""
    first = text.count("\n", 0, spot.start) + 1
    return any(line in lines for line in range(first, text.count("\n", 0, spot.end) + 2))
