"""Code against the checks, and lines of the checks that weaken them, as the text of a change shows them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath

from agentflow.core.languages import is_source, may_be_shell
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk, Remark, Tampering
from agentflow.frontmatter import read_yaml
from agentflow.verdict.diff.known_values import (
    COMMON,
    Known,
    find_asking_rows,
    find_copied_rows,
    find_knowing_lines,
)
from agentflow.verdict.diff.python_tests import compare_tests
from agentflow.verdict.diff.switches import find_careless_comparisons, find_switches, is_setting_row
from agentflow.verdict.same.comments import list_code_lines
from agentflow.verdict.surface import Kind
from agentflow.workspace.mixed_tree import find_differences

_SNAPSHOT = re.compile(
    r".*(?:\.snap|\.ambr|\.approved\.\w+)|(?:.*/)?(?:__snapshots__|golden|cassettes|expected)/.*"
)
_LITERAL = re.compile(
    r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d{2,}(?:\.\d+)?|\"[^\"\n]{3,}\"|'[^'\n]{3,}')(?![\w.])"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ROW_FILES = (
    *(".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".csv", ".tsv", ".txt", ".xml", ".md", ".rst"),
)
_KEY = re.compile(r"[\"'](?:\d+)[\"']\s*:\s*-?\d")
"""A row of data that leads from a number to a number."""
_EXAMPLE = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|\w\([^()\n]*\)|[\[{][^\]}\n]*[\]}]")
"""What people quote: a call, or data."""
_TOLD = re.compile(r"(?<![\w'./#-])\w+(?:\.\w+)*(?![\w'/-])")
_SEVERAL = 3
"""Literals of the tests on one line, or on neighbouring ones, before code is said to know them."""


class _Where(StrEnum):
    SURFACE = "surface"
    CODE = "code"


class _Rule(Record):
    kind: str
    place: _Where
    files: str
    lines: tuple[str, ...]
    sure: bool = False


class TextDiff(Record):
    """A file before and after a change; empty text for none."""

    path: str
    before: str
    after: str
    kind: Kind | None
    """The reason why it is a check file; None for the product."""
    findings: tuple[Remark, ...] = ()
    """What the change did in it to the checks, or against them."""


def find_tampering(
    changed: Sequence[TextDiff], tests: Sequence[str] = (), spoken: Sequence[str] = ()
) -> tuple[Remark, ...]:
    """Return all that a change did to the checks, or to code against them, by path and line.

    `tests` are texts of tests, whose values code should not know, unless lines for people speak of them.
    """
    given = (*tests, *(each.before + each.after for each in changed if each.kind))
    known = frozenset(literal for text in given for literal in _literals(text))
    product = [each for each in changed if not each.kind]
    values = Known(given, [each.before for each in product], spoken)
    found = [finding for each in changed for finding in _look(each, known, values)]
    found += [finding for each in product for finding in _find_known_text(each, given, product)]
    unique: dict[tuple[str, str, int | None], Remark] = {}
    for each in sorted(found, key=lambda each: not each.is_sure):
        unique.setdefault((each.kind, each.path, each.line), each)
    return tuple(sorted(unique.values(), key=lambda each: (each.path, each.line or 0, each.kind)))


def list_told(texts: Iterable[str]) -> frozenset[str]:
    """Return the words and numbers that texts for people speak of, examples left out."""
    return frozenset(word for text in texts for word in _TOLD.findall(_EXAMPLE.sub("", text)))


def _look(changed: TextDiff, known: frozenset[str], values: Known) -> Iterator[Remark]:
    added = _lines_added(changed)
    place = _Where.SURFACE if changed.kind else _Where.CODE
    for rule in _rules():
        if rule.place is place and re.fullmatch(rule.files, changed.path):
            pattern = _either(rule.lines)
            is_new = not pattern.search(changed.before)
            for line, text in added:
                if pattern.search(text) and not _is_raised(rule, changed, text):
                    is_setting = rule.kind == "detects" and is_setting_row(text, pattern)
                    kind = Tampering.SETTING if is_setting else Tampering[rule.kind.upper()]
                    yield _to_finding(
                        kind, changed, line, text, rule.sure and (is_new or place is _Where.SURFACE)
                    )
    if place is _Where.CODE:
        yield from _find_repeated(changed, added, known)
        yield from _find_knowing(changed, added, values)
        yield from find_careless_comparisons(changed.path, changed.before, changed.after)
    elif _SNAPSHOT.fullmatch(changed.path) and changed.before:
        yield Remark(kind=Tampering.REFRESHED, path=changed.path, line=None, text="")
    elif changed.path.endswith(".py"):
        yield from compare_tests(changed.path, changed.before, changed.after)


def _is_raised(rule: _Rule, changed: TextDiff, text: str) -> bool:
    """Return whether a line of a check's settings only has a higher number than before."""
    if not (rule.sure and changed.kind):
        return False
    old = (line for line in changed.before.splitlines() if _NUMBER.sub("", line) == _NUMBER.sub("", text))
    numbers = [float(each) for each in _NUMBER.findall(text)]
    return any([float(each) for each in _NUMBER.findall(line)] < numbers for line in old)


def _find_repeated(
    changed: TextDiff, added: Sequence[tuple[int, str]], known: frozenset[str]
) -> Iterator[Remark]:
    """Yield where code gained several of the very values that the tests use."""
    shared = [(line, text) for line, text in added if not known.isdisjoint(_literals(text))]
    values = {value for _, text in shared for value in _literals(text)} & known
    odd = {value for value in values if value.isdigit() and int(value) not in COMMON}
    if len(values) >= _SEVERAL:
        line, text = next(((at, text) for at, text in shared if any(each in text for each in odd)), shared[0])
        yield _to_finding(Tampering.KNOWS_INPUTS, changed, line, text, is_sure=len(odd) >= _SEVERAL)


def _literals(text: str) -> list[str]:
    """Return the numbers and strings that a text spells out, a number in one way only."""
    found = _LITERAL.findall(text)
    return [str(int(each, 16)) if each[:2] in ("0x", "0X") else each for each in found]


def _to_finding(kind: Tampering, changed: TextDiff, line: int, text: str, is_sure: bool) -> Remark:
    return Remark(kind=kind, path=changed.path, line=line, text=text.strip(), is_sure=is_sure)


def _find_knowing(changed: TextDiff, added: Sequence[tuple[int, str]], known: Known) -> Iterator[Remark]:
    """Yield the conditions and tables of new code that hold values of the tests or look at no input."""
    texts = (changed.before, changed.after)
    rows = [row for row in added if not changed.path.endswith(_ROW_FILES) or _KEY.search(row[1])]
    for line, text in find_knowing_lines(changed.path, texts, rows, known):
        yield _to_finding(Tampering.KNOWS_INPUTS, changed, line, text, is_sure=True)
    for line, text, is_setting in find_switches(*texts) if changed.path.endswith(".py") else ():
        kind = Tampering.SETTING if is_setting else Tampering.DETECTS
        yield _to_finding(kind, changed, line, text, is_sure=True)


def _find_known_text(changed: TextDiff, tests: Sequence[str], code: list[TextDiff]) -> Iterator[Remark]:
    """Yield where a new data file or script contains values of the tests, or digests of them."""
    ending = PurePosixPath(changed.path).suffix
    is_table = not changed.before and (ending in _ROW_FILES or not is_source(changed.path))
    pairs = [(each.before, each.after) for each in code if is_source(each.path)]
    for line, text in find_copied_rows(changed.after, tests, pairs) if is_table else ():
        yield _to_finding(Tampering.KNOWS_INPUTS, changed, line, text, is_sure=True)
    for line, text in find_asking_rows(_lines_added(changed), tests) if may_be_shell(changed.path) else ():
        yield _to_finding(Tampering.DETECTS, changed, line, text, is_sure=True)


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
    """Return what was inserted, replaced and deleted, counted from 0 in the file as it is now."""
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
