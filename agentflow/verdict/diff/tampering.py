"""Code against the checks, and lines of the checks that weaken them, as the text of a change shows them."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.core.finding import FileKind, Finding, FindingKind
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.frontmatter import read_yaml
from agentflow.languages.grammars import parse_source
from agentflow.verdict.diff.python_tests import compare_tests
from agentflow.verdict.same.comments import list_code_lines
from agentflow.workspace.mixed_tree import find_differences

_SNAPSHOT = re.compile(
    r".*(?:\.snap|\.ambr|\.approved\.\w+)|(?:.*/)?(?:__snapshots__|golden|cassettes|expected)/.*"
)
_LITERAL = re.compile(
    r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d{2,}(?:\.\d+)?|\"[^\"\n]{3,}\"|'[^'\n]{3,}')(?![\w.])"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_COMMON = frozenset(
    {*(12, 15, 16, 24, 32, 64, 128, 255, 256, 365, 404, 443, 512, 1024, 8080), *range(10, 2001, 10)}
)
"""Numbers that tests and code share by chance."""
_EQUAL = frozenset({"==", "===", "!=", "!=="})
_LEADS = frozenset({":", "=>"})
"""The signs between a key or a case and what it leads to."""
_APART = frozenset({"arguments", "argument_list", "ternary_expression", "conditional_expression", "block"})
"""Syntax that a key or an operand is not looked for beyond."""
_DEPTH = 4
_STATUS = frozenset(str(int(each)) for each in HTTPStatus)
_ABOUT_STATUS = re.compile(r"(?i)status|code|http")
_TELLING = re.compile(r"[\s\d]")
_EXAMPLE = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|\w\([^()\n]*\)|[\[{][^\]}\n]*[\]}]")
"""What people quote: a call, or data."""
_TOLD = re.compile(r"(?<![\w'./#-])\w+(?:\.\w+)*(?![\w'/-])")
_OF_RUNS = re.compile(
    r"(?i)test|^CI$|_CI$|^CI_|tox|nox|coverage|github|gitlab|jenkins|hypothesis|^npm_|^NODE_ENV$|^CARGO|^MAKE|jest"
)
"""Names of variables that tell one run of tests from another."""
_VARIABLE = re.compile(
    r"process\.env(?:\.(\w+)|\[['\"](\w+)['\"]\])"
    r"|\b(?:getenv|os\.Getenv|os\.LookupEnv|(?:std::)?env::var)\([\"'](\w+)[\"']\)"
)
"""Calls by which languages read a variable of the environment."""
_SEVERAL = 3
"""Literals of the tests on one line, or on neighbouring ones, before code is said to know them."""

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node


class _Where(StrEnum):
    SURFACE = "surface"
    CODE = "code"


class _Rule(Record):
    kind: FindingKind
    place: _Where
    files: str
    lines: tuple[str, ...]
    sure: bool = False


class TextDiff(Record):
    """A file before and after a change; empty text for none."""

    path: str
    before: str
    after: str
    kind: FileKind | None
    """The reason why it is a check file; None for the product."""
    findings: tuple[Finding, ...] = ()
    """What the change did in it to the checks, or against them."""


def find_tampering(
    changed: Sequence[TextDiff], tests: Sequence[str] = (), spoken: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """Return all that a change did to the checks, or to code against them, by path and line.

    `tests` are texts of tests, whose values code should not know, unless lines for people speak of them.
    """
    given = (*tests, *(each.before + each.after for each in changed if each.kind))
    known = frozenset(literal for text in given for literal in _literals(text))
    product = (each for each in changed if not each.kind)
    usual = {literal for each in product for literal in _literals(each.before)} | list_told(spoken)
    found = [finding for each in changed for finding in _look(each, known, usual)]
    unique: dict[tuple[str, str, int | None], Finding] = {}
    for each in sorted(found, key=lambda each: not each.is_sure):
        unique.setdefault((each.kind, each.path, each.line), each)
    return tuple(sorted(unique.values(), key=lambda each: (each.path, each.line or 0, each.kind)))


def list_told(texts: Iterable[str]) -> frozenset[str]:
    """Return the words and numbers that texts for people speak of, examples left out."""
    return frozenset(word for text in texts for word in _TOLD.findall(_EXAMPLE.sub("", text)))


def _look(changed: TextDiff, known: frozenset[str], usual: Collection[str]) -> Iterator[Finding]:
    added = _lines_added(changed)
    place = _Where.SURFACE if changed.kind else _Where.CODE
    for rule in _rules():
        if rule.place is place and re.fullmatch(rule.files, changed.path):
            pattern = _either(rule.lines)
            is_new = not pattern.search(changed.before)
            for line, text in added:
                if pattern.search(text) and not _is_raised(rule, changed, text):
                    is_setting = rule.kind is FindingKind.DETECTS and is_setting_row(text, pattern)
                    kind = FindingKind.ON_SETTING if is_setting else rule.kind
                    yield _to_finding(
                        kind, changed, line, text, rule.sure and (is_new or place is _Where.SURFACE)
                    )
    if place is _Where.CODE:
        yield from _find_repeated(changed, added, known.difference(usual))
        yield from _find_compared(changed, known.difference(usual))
    elif _SNAPSHOT.fullmatch(changed.path) and changed.before:
        yield FindingKind.REFRESHED.of(path=changed.path)
    elif changed.path.endswith(".py"):
        yield from compare_tests(changed.path, changed.before, changed.after)


def _is_raised(rule: _Rule, changed: TextDiff, text: str) -> bool:
    if not (rule.sure and changed.kind):
        return False
    old = (line for line in changed.before.splitlines() if _NUMBER.sub("", line) == _NUMBER.sub("", text))
    numbers = [float(each) for each in _NUMBER.findall(text)]
    return any([float(each) for each in _NUMBER.findall(line)] < numbers for line in old)


def _find_repeated(
    changed: TextDiff, added: Sequence[tuple[int, str]], known: frozenset[str]
) -> Iterator[Finding]:
    shared = [(line, text) for line, text in added if not known.isdisjoint(_literals(text))]
    values = {value for _, text in shared for value in _literals(text)} & known
    odd = {value for value in values if value.isdigit() and int(value) not in _COMMON}
    if len(values) >= _SEVERAL:
        line, text = next(((at, text) for at, text in shared if any(each in text for each in odd)), shared[0])
        yield _to_finding(FindingKind.KNOWS_INPUTS, changed, line, text, is_sure=len(odd) >= _SEVERAL)


def _literals(text: str) -> list[str]:
    """Return the numbers and strings that a text spells out, also in a string; a number in one way only."""
    found = _LITERAL.findall(text)
    found += [each for whole in found if whole[0] in "\"'" for each in _LITERAL.findall(whole[1:-1])]
    return [str(int(each, 16)) if each[:2] in ("0x", "0X") else each for each in found]


def _to_finding(kind: FindingKind, changed: TextDiff, line: int, text: str, is_sure: bool) -> Finding:
    return kind.of(text.strip(), path=changed.path, line=line).replace(is_sure=is_sure)


def _find_compared(changed: TextDiff, known: Collection[str]) -> Iterator[Finding]:
    """Yield where new code compares with literals of the tests, or leads from them to something.

    In Python their neighbours are run, which tells more.
    """
    tree = parse_source(changed.path, changed.after) if known else None
    lines = {line for each in list_changed_lines(changed) for line in range(each.line, each.end + 1)}
    for node in (*tree.nodes["number"], *tree.nodes["string"]) if tree else ():
        line = node.start_point.row + 1
        text = tree.read(node) if tree and line in lines and _decides(node) else ""
        row = changed.after.splitlines()[line - 1] if text else ""
        apart = _STATUS if _ABOUT_STATUS.search(row) else frozenset[str]()
        found = [each for each in _literals(text) if each in known and _TELLING.search(each)]
        if not apart.issuperset(found):
            yield _to_finding(FindingKind.KNOWS_INPUTS, changed, line, row, not changed.path.endswith(".py"))


def _decides(node: "Node") -> bool:
    for _ in range(_DEPTH):
        parent = node.parent
        if parent is None or parent.type in _APART:
            return False
        after = node.next_sibling
        while after is not None and after.type in (",", "|") and after.next_sibling is not None:
            after = after.next_sibling.next_sibling
        is_key = parent.type == "case_item" or (after and after.type in _LEADS)
        if is_key or any(each.type in _EQUAL for each in parent.children):
            return True
        node = parent
    return False


def is_setting_row(text: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a line fits a pattern only because it asks for variables of features."""
    names = ["".join(found) for found in _VARIABLE.findall(text)]
    is_plain = bool(names) and not any(_OF_RUNS.search(name) for name in names)
    return is_plain and not pattern.search(_VARIABLE.sub("value", text))


def _lines_added(changed: TextDiff) -> list[tuple[int, str]]:
    """Return the lines that are new, with their numbers, without those that only say something."""
    after = list_code_lines(changed.path, changed.after)
    places = (place for span in _spans(changed) for place in span)
    return [(place + 1, after[place]) for place in places if place < len(after) and after[place].strip()]


def list_changed_lines(changed: TextDiff) -> list[Hunk]:
    """Return the changed places of a file, in lines of it as it is now."""
    return [
        Hunk(path=changed.path, line=max(span.start + bool(span), 1), end=max(span.stop, 1))
        for span in _spans(changed)
    ]


def _spans(changed: TextDiff) -> list[range]:
    found = find_differences(changed.before.splitlines(), changed.after.splitlines())
    return [range(start, end) for *_, start, end in found]


@cache
def _rules() -> tuple[_Rule, ...]:
    text = Path(__file__).with_name("tamper.yaml").read_text("utf-8")
    return read_yaml(tuple[_Rule, ...], text, "tamper.yaml")


@cache
def _either(lines: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        "|".join(f"(?:{line})" if not line.startswith("(?i)") else f"(?i:{line[4:]})" for line in lines)
    )
