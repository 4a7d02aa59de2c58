"""Where code of other languages than Python compares for equality with a number, or looks it up."""

import re
from collections.abc import Iterator, Sequence

from agentflow.core.languages import SHELL
from agentflow.core.regex import regex

_NUMBER = r"[\"']?-?(?:0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?)(?:n|_?[iuf]\d+)?[\"']?(?![\w.(\"'])"
_SEVERAL = rf"(?:{_NUMBER}\s*[,|]\s*){{0,199}}{_NUMBER}"
"""A longer list is data: to look for its end from each of its numbers takes minutes."""
_LAST = rf"(?:{_NUMBER}\s*[,|]\s*){{0,9}}{_NUMBER}"
"""The last ones of several, where the text may begin with any of them."""
_LIST = rf"[\[({{|]\s*(?P<it>{_SEVERAL})\s*,?\s*[\])}}|]"
_ASKS = r"(?:includes|indexOf|lastIndexOf|contains|Contains|has|some|any|find)\b"
_COMPARED = (
    regex(rf"[=!]==?\s*\(?\s*&?(?P<it>{_NUMBER})"),
    regex(rf"(?<![%*/+-]\s)(?<![\w.%*/+\"'-])(?P<it>{_NUMBER})\)?\s*[=!]="),
    regex(rf"\bcase\s+(?P<it>{_SEVERAL})\s*:"),
    regex(rf"\b{_ASKS}.{{0,400}}{_LIST}"),
    regex(rf"{_LIST}\)?\s*\.\s*{_ASKS}"),
    regex(rf"(?:\bObject\.is|\.equals|\.eq)\([^()\n]*?&?(?P<it>{_NUMBER})\)"),
    regex(rf"[\w\])]\s+[-^]\s+(?P<it>{_NUMBER})\)?\s*(?:\?|&&|\|\|)"),
    regex(rf"!\(\s*[\w.\[\]]+\s*[-^]\s*(?P<it>{_NUMBER})\s*\)"),
)
_RUST = (
    regex(rf"(?m)(?:^|[{{,|(])\s*(?P<it>{_LAST})\)?\s*(?:\||,[^\n=]{{0,99}}\)|if\b[^\n]{{0,199}}?)?\s*=>"),
    regex(rf"\bmatches!\([^,\n]+,\s*(?P<it>{_SEVERAL})"),
)
_SHELL = (
    regex(rf"\s(?:-eq|-ne|[!=]?=)\s+(?P<it>{_NUMBER})"),
    regex(rf"(?m)(?:^|\bin\s|;)\s*\(?(?P<it>{_SEVERAL})\)"),
)
_KEY = regex(
    rf"(?m)(?:[{{,]|^)\s*(?P<key>{_NUMBER})\s*:(?!:)\s*(?![\"'\s:])"
    rf"|\[(?P<shell>{_NUMBER})\]=(?![\"'=])"
    rf"|(?:\bMap\(\[|\bfrom\(\[|\]\s*,)\s*[\[(]\s*(?P<pair>{_NUMBER})\s*,\s*(?![\"'])"
    rf"|\.(?:set|insert|put)\(\s*(?P<put>{_NUMBER})\s*,\s*(?![\"'])"
)
"""A key of a table that leads to something else than a text."""
_VALUE = regex(r"-?(?:0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?)")
_LENGTH = regex(r"(?:\.(?:length|len\(\)|size(?:\(\))?)|\blen\([^()]*\)|\$\{#\w+\}\"?)\s*(?:[=!]*|-\w+)\s*$")
"""A number of things, with which lists that are cut into parts are compared."""


def find_compared(
    path: str, added: Sequence[tuple[int, str]]
) -> Iterator[tuple[int, str, tuple[str, ...], bool]]:
    """Yield each new line that compares with numbers: its number, its text, theirs, and if it is a table."""
    for block in _split_into_blocks(added):
        text, first = "\n".join(line for _, line in block), block[0][0]
        rows = dict(block)
        for pattern in _choose_patterns(path):
            for found in pattern.finditer(text):
                line = first + text.count("\n", 0, found.start("it"))
                if not _LENGTH.search(text[max(found.start() - 80, 0) : found.start("it")]):
                    yield line, rows[line], tuple(_VALUE.findall(found["it"])), False
        keys = [(found.start(), found[found.lastgroup or 0]) for found in _KEY.finditer(text)]
        if keys:
            line = first + text.count("\n", 0, keys[0][0] + 1)
            yield line, rows[line], tuple(_VALUE.findall(" ".join(key for _, key in keys))), True


def _choose_patterns(path: str) -> tuple[re.Pattern[str], ...]:
    if path.endswith(".rs"):
        return (*_COMPARED, *_RUST)
    return _SHELL if path.endswith(SHELL) else _COMPARED


def _split_into_blocks(added: Sequence[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield the new lines that stand together."""
    block: list[tuple[int, str]] = []
    for line, text in added:
        if block and line != block[-1][0] + 1:
            yield block
            block = []
        block.append((line, text))
    if block:
        yield block
