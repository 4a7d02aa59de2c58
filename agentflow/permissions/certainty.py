"""What the parser and bash could read differently, and what bash evaluates beyond its syntax, is refused."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentflow.permissions.words import TooComplex

if TYPE_CHECKING:
    from agentflow.permissions.shell import Node

BLANK = re.compile(rb"[ \t\n]*(?:(?:[ \t]\\\n|\\\n[ \t])[ \t\n]*)*")
"""White space to bash; a continued line only beside a blank, since without one it continues a word."""
NOTHING = re.compile(rb"")
_ARITHMETIC = frozenset(
    {
        *("binary_expression", "unary_expression", "postfix_expression", "parenthesized_expression"),
        *("number", "variable_name", "word", "compound_statement", "test_command", "arithmetic_expansion"),
    }
)
_EXPANDED = re.compile(r"\$\w+|\$\{\w+\}|\\[^\n]")
"""What is replaced in a here-document without running anything."""
_FILLING = frozenset({b"read", b"mapfile", b"readarray", b"printf", b"getopts"})
"""Commands that give a variable any text."""


def require_no_gaps(node: "Node", allowed: re.Pattern[bytes] = BLANK) -> None:
    """Refuse bytes between two nodes that are not white space to bash."""
    raw, at = node.text or b"", 0
    for child in node.children:
        if allowed.fullmatch(raw[at : child.start_byte - node.start_byte]) is None:
            raise TooComplex("it cannot be parsed with certainty")
        at = child.end_byte - node.start_byte


def require_word_start(node: "Node", raw: bytes) -> None:
    """Refuse a comment that bash may take for a part of a word."""
    before = raw[: node.start_byte][-1:]
    if node.type == "comment" and before not in (b"", b" ", b"\t", b"\n", b";"):
        raise TooComplex("where a comment begins is not clear")


def require_certain_end(heredoc: "Node") -> None:
    """Refuse a here-document that may end elsewhere, or whose text the shell would change."""
    parts = {child.type: (child.text or b"").decode() for child in heredoc.children}
    start, body = parts.get("heredoc_start", ""), parts.get("heredoc_body", "")
    name = start.strip("'\"").removeprefix("\\")
    is_plain = re.fullmatch(r"\w+", name) and parts.get("heredoc_end", "").strip() == name
    if not is_plain or any(line.strip() == name for line in body.splitlines()):
        raise TooComplex("the end of a here-document is not clear")
    if start == name and re.search(r"[`$\\]", _EXPANDED.sub("", body)):
        raise TooComplex("a here-document with expansions is not judged; quote its delimiter")


def in_quotes(text: str) -> str:
    """Return what text in double quotes means. Raises TooComplex where the parser missed an expansion."""
    if re.search(r"(?<!\\)(?:\\\\)*(?:`|\$[({\w])", text):
        raise TooComplex("an expansion in quotes is not clear")
    return re.sub(r'\\(?:\n|(["\\$`]))', lambda found: found[1] or "", text)


def require_plain_numbers(top: "Node") -> None:
    """Refuse arithmetic over anything but numbers, and variables that only ever hold numbers.

    The shell runs commands that stand in what the variables of arithmetic hold.
    """
    sums = [node for node in below(top) if node.type == "arithmetic_expansion" or _is_sum(node)]
    inside = {part.type for node in sums for part in below(node) if part.is_named}
    if not inside <= _ARITHMETIC:
        raise TooComplex("arithmetic over expansions is not judged")
    if inside & {"variable_name", "word"} and not all(map(_gives_numbers, below(top))):
        raise TooComplex("arithmetic over variables that may hold text is not judged")


def below(node: "Node") -> Iterator["Node"]:
    """Yield a node and all below it."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(found.children)


def _is_sum(node: "Node") -> bool:
    return node.type in ("compound_statement", "test_command") and node.children[0].text == b"(("


def _gives_numbers(node: "Node") -> bool:
    """Tell whether a node can give a variable nothing but a number."""
    if node.type == "variable_assignment":
        value = node.child_by_field_name("value")
        return value is not None and value.type in ("number", "arithmetic_expansion")
    fills = node.type == "command_name" and node.text in _FILLING
    return node.type != "for_statement" and not fills
