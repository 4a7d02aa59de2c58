"""Conditions and arms of JavaScript and TypeScript; by the tokens around them they are told from types."""

import re
from collections.abc import Iterator

from agentflow.verdict.diff.conditions import (
    ANGLE_BRACKETS,
    COMPARES,
    JOINS,
    Asks,
    Spot,
    breaks_line,
    end_of_operand,
    extend,
    is_apart,
    is_plain,
    to_spot,
)
from agentflow.verdict.tokens import CLOSES, OPENS, Tokens

_SETS = frozenset({"??=", "||=", "&&="})
"""What is right of them is taken only for some values of what is left."""
_ASKS = frozenset({"if", "while"})
_BEFORE_BLOCKS = frozenset({"else", "try", "do", "finally"})
_HEADS = frozenset({*_ASKS, "for", "await", "switch", "with"})
_SAYS_OPTIONAL = frozenset({":", ",", ")", ";", "]", "}", "="})
_KEYWORDS = frozenset(
    {"return", "typeof", "case", "in", "of", "void", "throw", "await", "yield", "else", "do", "is", "keyof"}
)
_STATEMENTS = frozenset(
    {
        *("if", "for", "while", "do", "switch", "try", "with", "let", "const", "var"),
        *("return", "throw", "break", "continue"),
    }
)
_NO_RESULT = frozenset(
    {
        *("class", "interface", "enum", "namespace", "module", "type", "extends", "implements", "else"),
        *("try", "finally", "do", "return", "=", ",", ";", "(", "[", "{", "?"),
    }
)
"""Tokens that do not stand between the parameters of a function and its body."""
_BEFORE_VALUES = frozenset({"=", "(", "[", ",", "return", "default", "??", *_SETS, *JOINS})
_NEVER = re.compile(r"[\s{:]*const \w+: never = [\w.]+;\s*throw\b[^;]*;[\s}]*")
"""What stands where the types leave no value that could arrive."""
_GIVES_UP = re.compile(r"[\s{:]*(?:return |throw )?(?P<name>\w+)\((?P<value>\w*)[^;]*\);[\s}]*")
_NAMED_NEVER = re.compile(r"(?i)never|unreachable|exhausti")
_DEMANDS_NEVER = re.compile(r"\(\s*\w+: never\b[^{}]*\{\s*throw\b[^;]*;?\s*\}")
"""A function that no value can be given to, and that throws."""
_CONSTANT = re.compile(r"true|false|[\d.]+")
_TYPE = re.compile(r"(?m)^\s*(?:export\s+|declare\s+)*(?:type|interface)\s+[\w$]")
_IDLE = re.compile(r"[\s{}();:]*(?:\bbreak\b[\s;}]*)?")


def find_script_parts(code: Tokens) -> Iterator[Spot]:
    """Yield what may come out in two ways, and the arms of which one is taken."""
    seen = set[tuple[int, int]]()
    for place, word in enumerate(code.words):
        for start, end in _find_conditions(code, place, word):
            is_constant = _CONSTANT.fullmatch(" ".join(code.words[start:end]))
            if (start, end) not in seen and is_plain(code, start, end) and not is_constant:
                seen.add((start, end))
                yield to_spot(code, start, end).replace(asks=_find_question(code, start, end))
        yield from _find_arms(code, place, word)


def _find_question(code: Tokens, start: int, end: int) -> Asks:
    is_number = code.get_word(start - 2) == "Number" and code.get_word(end) == ")"
    other = Asks.ABSENCE if code.get_word(end) == "??" else Asks.TRUTH
    return Asks.TRUTH_OF_BOOLEANS if is_number or _is_behind_sign(code, start) else other


def _find_conditions(code: Tokens, place: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield the conditions, from one token to another, that a token is the sign of."""
    if (word in COMPARES and _is_operator(code, place)) or (word == "in" and _asks_for_key(code, place)):
        yield extend(code, place)
    elif word in (*JOINS, "??") or (word == "?" and _is_question(code, place)):
        yield extend(code, place - 1, ())
    elif word == "!" and code.get_word(place - 1) != "!":
        if not _ends_operand(code, place - 1):
            yield place, end_of_operand(code, place + 1)
    elif word in _ASKS and code.get_word(place + 1) == "(" and not is_member(code, place):
        yield extend(code, code.partners[place + 1] - 1, ())
    elif word == "(" and code.get_word(place - 1) == "Number":
        yield place + 1, code.partners[place]
    elif word == "+" and _is_sign(code, place):
        end = end_of_operand(code, place + 1)
        is_whole = code.words[place + 1] == "(" and code.partners[place + 1] == end - 1
        yield place + 1 + is_whole, end - is_whole


def _is_behind_sign(code: Tokens, start: int) -> bool:
    at = start - 1 - (code.get_word(start - 1) == "(")
    return code.get_word(at) == "+" and _is_sign(code, at)


def _is_sign(code: Tokens, place: int) -> bool:
    """Return whether a plus makes a number of what follows, such as of a comparison."""
    is_first = not is_operand(code, place - 1) and code.get_word(place - 1) not in ("++", "--")
    return is_first and code.get_word(place + 1) not in ("+", "++", "-", "--", "!")


def _is_operator(code: Tokens, place: int) -> bool:
    """Return whether a sign compares; an angle bracket of a type is one of a pair, or begins a line."""
    if code.words[place] not in ANGLE_BRACKETS or not code.has_types:
        return code.get_word(place - 1) not in ("as", ".", "?.")
    if _begins_line(code, place) or not (is_apart(code, place) or _is_single(code, place)):
        return False
    return is_operand(code, place - 1) or code.get_word(place - 1) == "!"


def _is_single(code: Tokens, place: int) -> bool:
    """Return whether nothing stands between the same brackets that an angle bracket could be paired with."""
    step = 1 if code.words[place] == "<" else -1
    at, open_ones = place + step, 1
    while 0 <= at < len(code.words) and code.words[at] not in (";", *JOINS):
        word = code.words[at]
        if at in code.partners and (code.partners[at] - at) * step < 0:
            return True
        open_ones += step * (word.count("<") - word.count(">") * (word != "=>"))
        if open_ones <= 0:
            return False
        at = code.partners.get(at, at) + step
    return True


def _asks_for_key(code: Tokens, place: int) -> bool:
    """Return whether `in` asks; behind the first name in square brackets it lists the keys of a type."""
    around = code.around[place]
    is_mapped = code.has_types and code.get_word(around) == "[" and around == place - 2
    return is_operand(code, place - 1) and not is_mapped and not is_member(code, place)


def _begins_line(code: Tokens, place: int) -> bool:
    return not code.bare[: code.places[place]].rpartition("\n")[2].strip()


def is_member(code: Tokens, place: int) -> bool:
    return code.get_word(place - 1) in (".", "?.")


def is_operand(code: Tokens, place: int) -> bool:
    """Return whether a token is the last one of an operand."""
    word = code.get_word(place)
    is_name = re.fullmatch(r"#?[\w$]+", word) is not None and word not in _KEYWORDS
    return is_name or word in CLOSES or word.startswith("\x01")


def _ends_operand(code: Tokens, place: int) -> bool:
    """Return whether an operand ends with a token, and what follows stands close to it."""
    return is_operand(code, place) and code.find_end(place) == code.places[place + 1]


def _is_question(code: Tokens, place: int) -> bool:
    """Return whether a question mark asks; it may also say that something is optional, or choose a type."""
    if not code.has_types:
        return True
    follows = code.get_word(place + 1)
    is_close = code.bare[code.places[place] - 1].strip() != ""
    if follows in _SAYS_OPTIONAL or (is_close and follows in ("(", "<") and _names_member(code, place)):
        return False
    at, depth = place - 1, 0
    while at >= 0:
        word = code.words[at]
        if word == "extends" and not is_member(code, at):
            return False
        if (not depth and word in (",", ":", "?", "=", ";", *JOINS)) or word in OPENS:
            return True
        depth = max(depth + word.count(">") * (word != "=>") - word.count("<"), 0)
        at = code.partners[at] - 1 if word in CLOSES else at - 1
    return True


def _names_member(code: Tokens, place: int) -> bool:
    """Return whether a name before a token begins a member of a type or a class, and not a statement."""
    at, around = begin_of_operand(code, place - 1), code.around[place]
    while is_operand(code, at - 1) and code.words[at - 1] not in CLOSES:
        at -= 1
    is_first = code.get_word(at - 1) in ("{", "}", ";", ",") or _begins_line(code, at)
    return is_first and code.get_word(around) == "{" and not _is_block(code, around)


def _is_block(code: Tokens, place: int) -> bool:
    """Return whether a brace opens a block of statements."""
    is_headed = code.get_word(place - 1) == ")" and code.get_word(code.partners[place - 1] - 1) in _HEADS
    return is_headed or code.get_word(place - 1) in _BEFORE_BLOCKS or is_body(code, place)


def begin_of_operand(code: Tokens, place: int) -> int:
    """Return where an operand begins that ends with a token, such as a call of a member."""
    place = code.partners[place] if code.words[place] in CLOSES else place
    while place > 0 and (
        is_member(code, place)
        or code.words[place] in (".", "?.")
        or (code.words[place] in ("(", "[") and is_operand(code, place - 1))
    ):
        place -= 1 + (code.words[place - 1] == "!")  # nothing is negated before a dot
        place = code.partners[place] if code.words[place] in CLOSES else place
    return place


def _find_arms(code: Tokens, place: int, word: str) -> Iterator[Spot]:
    """Yield what a token begins that is run in some cases only."""
    if word in ("case", "default") and _is_in_switch(code, place):
        colon = _find_colon(code, place)
        end = _end_of_case(code, colon)
        if colon and word == "case":
            yield _to_block(code, place, colon, end)
        elif colon:
            yield from _to_arm(code, place, colon, end)
    elif word == "{" and place and is_body(code, place):
        yield from _to_arm(code, place, place, code.partners[place])
    elif word in _SETS or (word == ")" and _leads_to_expression(code, place)):
        yield to_spot(code, place + 1, end_of_result(code, place + 1), is_arm=True)
    elif word == "=>" and code.get_word(place + 1) != "{" and _is_function(code, place):
        end = end_of_result(code, place + 1)
        if _are_paired(code, place + 1, end):
            yield to_spot(code, place + 1, end, is_arm=True)


def _leads_to_expression(code: Tokens, place: int) -> bool:
    """Return whether a bracket ends the head of a loop whose body is an expression without braces."""
    is_loop = _begins_loop(code, code.partners[place] - 1)
    return is_loop and code.get_word(place + 1) not in (";", "{", *_STATEMENTS)


def _begins_loop(code: Tokens, place: int) -> bool:
    """Return whether a token is the last one before the head of a loop over values or with a counter."""
    place -= code.get_word(place) == "await"
    return code.get_word(place) == "for" and not is_member(code, place)


def _to_arm(code: Tokens, first: int, opening: int, end: int) -> Iterator[Spot]:
    """Yield an arm behind a brace or a colon, unless it does nothing or is there for no value at all."""
    spot = _to_block(code, first, opening, end)
    begin, last = code.find_end(opening), spot.around[1]
    text = code.bare[begin:last]
    head = code.text[code.text.rfind("\n", 0, code.places[first]) + 1 : last + 1]
    is_idle = _IDLE.fullmatch(text) or text.lstrip().startswith("\x01")
    if not (is_idle or _is_for_no_value(code, first, code.text[begin:last]) or _DEMANDS_NEVER.search(head)):
        yield spot


def _is_for_no_value(code: Tokens, first: int, text: str) -> bool:
    """Return whether TypeScript lets no value reach an arm: it is handed to what takes none.

    Of a function of another file only its name tells, so that it has to end a `switch` over that value.
    """
    found = _GIVES_UP.fullmatch(text) if code.has_types else None
    if found is None:
        return code.has_types and _NEVER.fullmatch(text) is not None
    name = re.escape(found["name"])
    if re.search(rf"\b(?:function|const|let|var)\s+{name}\b", code.text):
        return re.search(rf"\b{name}\s*(?:=\s*)?\(\s*\w+\s*:\s*never\b", code.text) is not None
    around = code.around[first]
    is_last = code.words[first] == "default" and code.get_word(around - 1) == ")"
    subject = code.get_word(code.partners[around - 1] + 1) if is_last else ""
    return found["value"] == subject and _NAMED_NEVER.search(found["name"]) is not None


def _to_block(code: Tokens, first: int, opening: int, end: int) -> Spot:
    """Return the arm behind a brace or a colon, known by its whole text."""
    spot = to_spot(code, first, opening + 1, is_arm=True, closes=False)
    return spot.replace(around=(spot.around[0], code.places[min(end, len(code.places) - 1)]))


def _is_in_switch(code: Tokens, place: int) -> bool:
    around = code.around[place]
    head = code.partners.get(around - 1, 0)
    return code.get_word(around) == "{" and head > 0 and code.get_word(head - 1) == "switch"


def _find_colon(code: Tokens, place: int) -> int:
    """Return the colon that ends the head of a case; 0 if there is none."""
    depth = 0
    for at in range(place, len(code.words)):
        word = code.words[at]
        if code.around[at] == code.around[place]:
            if word == ":" and not depth:
                return at
            depth += (word == "?") - (word == ":")
    return 0


def _end_of_case(code: Tokens, colon: int) -> int:
    """Return the token behind the statements of a case."""
    for at in range(colon + 1, len(code.words)):
        is_next = code.words[at] in ("case", "default") and code.around[at] == code.around[colon]
        if is_next or at == code.partners[code.around[colon]]:
            return at
    return len(code.words)


def is_body(code: Tokens, place: int) -> bool:
    """Return whether a brace opens the body of a function, of a loop over values, or of a `catch`."""
    before = code.words[place - 1]
    if before == "=>":
        return not _is_type_of_members(code, place)
    if before == ")":
        return _is_body_behind(code, code.partners[place - 1])
    if before == "catch":
        return True
    is_typed = code.has_types and (is_operand(code, place - 1) or before.startswith(">"))
    closing = _find_result(code, place) if is_typed else 0
    return closing > 0 and _is_body_behind(code, code.partners[closing])


def _is_body_behind(code: Tokens, opening: int) -> bool:
    """Return whether brackets, from their opening, hold the parameters of the body behind them."""
    at = opening - 1
    word = code.get_word(at)
    if word in _HEADS and not is_member(code, at):
        return _begins_loop(code, at)
    while re.fullmatch(r"[\w$.]+", code.get_word(at)) and code.get_word(at) not in ("extends", "function"):
        at -= 1
    return code.get_word(at) != "extends"


def _is_type_of_members(code: Tokens, place: int) -> bool:
    """Return whether a brace opens a type that lists members."""
    at = place + 1 + (code.get_word(place + 1) == "readonly")
    is_name = code.get_word(at) != "default" and code.get_word(at + 1) in (":", "?")
    return code.has_types and (is_name or code.get_word(at) == "[")


def _is_function(code: Tokens, place: int) -> bool:
    """Return whether an arrow is one of a function, and not of its type."""
    if not code.has_types:
        return True
    begin = _begin_of_function(code, place)
    around, before = code.around[begin], code.get_word(begin - 1)
    is_call = code.get_word(around) == "(" and _ends_operand(code, around - 1)
    is_listed = code.get_word(around) in ("[", "{") and _is_value(code, around)
    if before in ("(", ",", "["):
        return is_call or is_listed
    return _is_value(code, begin)


def _begin_of_function(code: Tokens, place: int) -> int:
    """Return the first token of a function, from its arrow."""
    at = place - 1
    if code.words[at] != ")":
        at = _find_result(code, place) or at
    at = code.partners[at] if code.words[at] == ")" else at
    return at - 1 if code.get_word(at - 1) == "async" else at


def _find_result(code: Tokens, place: int) -> int:
    """Return the bracket that closes the parameters before the type of a result; 0 if there is none."""
    at, depth = place - 1, 0
    while at > 0:
        word = code.words[at]
        depth = max(depth + word.count(">") * (word != "=>") - word.count("<"), 0)
        if word == ":" and code.get_word(at - 1) == ")":
            return at - 1 if at < place - 1 else 0
        is_block = word == "}" and "\n" in code.bare[code.find_end(at) : code.places[at + 1]]
        if (word in _NO_RESULT and not (depth and word == ",")) or word.startswith("\x01") or is_block:
            return 0
        at = code.partners[at] - 1 if word in CLOSES else at - 1
    return 0


def _is_value(code: Tokens, place: int) -> bool:
    """Return whether what begins at a token is a value, and not a type."""
    before, around = code.get_word(place - 1), code.around[place]
    if before == ":":
        return code.get_word(around) == "{" and _is_value(code, around)
    if before == "," and not (code.get_word(around) in ("(", "[") and _are_paired(code, around, place)):
        return False
    start = place - 1
    while start >= 0 and code.words[start] not in (";", "{", "}"):
        start -= 1
    statement = code.bare[code.find_end(start) if start >= 0 else 0 : code.places[place]]
    return before in _BEFORE_VALUES and not _TYPE.search(statement)


def end_of_result(code: Tokens, place: int) -> int:
    """Return where the expression ends that a function returns."""
    at, asked, angles = place, 0, 0
    while at < len(code.words) and code.words[at] not in (";", *CLOSES):
        word = code.words[at]
        is_end = word == "," or (word == ":" and not asked)
        if (is_end and not angles) or (at > place and not angles and breaks_line(code, at)):
            break
        asked += (word == "?") - (word == ":")
        angles += _turn(code, at)
        at = code.partners.get(at, at) + 1
    return at


def _turn(code: Tokens, place: int) -> int:
    """Return how many angle brackets of types a token opens, less those that it closes."""
    word = code.words[place]
    is_type = code.has_types and set(word) <= {"<", ">"} and not _is_operator(code, place)
    return word.count("<") - word.count(">") if is_type else 0


def _are_paired(code: Tokens, first: int, end: int) -> bool:
    """Return whether each angle bracket of a type is closed among some tokens."""
    return not sum(_turn(code, at) for at in range(first, end))
