"""Which changes of the checks a person has to approve: a pure function of what changed and what was run."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from agentflow.checks.surface import Kind
from agentflow.checks.tampering import Finding, Tampering
from agentflow.core.evidence import RED, CheckRun
from agentflow.core.record import Record

_LOST = frozenset(
    {Tampering.TEST_GONE, Tampering.FEWER_CASES, Tampering.SKIPPED, Tampering.WEAKER, Tampering.EXPECTATION}
)
_NOT_PARSED = frozenset(
    {".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".go", ".rs", ".java", ".kt", ".rb"}
)
_VERB = re.compile(
    r"(?i)\b(?:renam|updat|rewrit|delet|remov|drop|split|mov|regenerat|refresh|skip|adjust|tid[yi]|chang|adapt"
    r"|extend|clean|correct|replac)\w*"
)
_WRONG = re.compile(
    r"(?i)\bfix\w*\b.*\b(?:wrong|incorrect|outdated|stale|expectation|assertion|snapshot|typo)\b"
)
_ABOUT_RESULTS = re.compile(r"(?i)\b(?:pass(?:es|ing)?|green|succeed\w*|fail(?:s|ed|ing)?|red|broken)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


class SurfaceChange(Record):
    """A file of the surface that differs from before."""

    path: str
    kind: Kind
    before: str
    after: str
    findings: tuple[Finding, ...] = ()


class Weakening(Record):
    """One thing about the checks that a person has to approve."""

    path: str
    """Of the file; empty where it is known only from a run."""
    said: str


class Judged(Record):
    """A check before the task, and twice after it."""

    base: CheckRun
    final: CheckRun
    """The code as it is now under the checks as they are now."""
    held: CheckRun
    """The same code under the checks as they stood before."""


def to_approve(
    task: str, changes: Sequence[SurfaceChange], judged: Iterable[Judged]
) -> tuple[Weakening, ...]:
    """Return what the change did to the checks that the task does not ask for by name."""
    is_asked_for_whole = _is_asked_for_whole(task, changes)
    found: list[Weakening] = []
    for each in judged:
        found += _lost_tests(each)
        found += [] if is_asked_for_whole else _hidden_failures(each)
    found += [weakening for change in changes for weakening in _weakened(change)]
    return tuple(dict.fromkeys(each for each in found if not _asked_for(task, each)))


def _is_asked_for_whole(task: str, changes: Sequence[SurfaceChange]) -> bool:
    """Return whether the task asks for each change of a check that there was, so that others may follow."""
    there = [Weakening(path=change.path, said="") for change in changes if change.before]
    return bool(there) and all(_asked_for(task, each) for each in there)


def _lost_tests(judged: Judged) -> Iterator[Weakening]:
    """Yield the tests that gave a result before, and would now, and are not run."""
    told = (judged.base.told - judged.final.told) & judged.held.told
    for test in sorted(told):
        now = "is skipped now" if test in judged.final.outcomes else "is gone"
        yield Weakening(path=test.partition("::")[0], said=f"{test} {now}")
    each = (judged.base, judged.final, judged.held)
    before, after, as_it_stood = (run.counts.ran if run.counts else 0 for run in each)
    if not judged.base.outcomes and after < min(before, as_it_stood):
        yield Weakening(path="", said=f"{judged.base.check.name}: {before} tests ran before, {after} now")


def _hidden_failures(judged: Judged) -> Iterator[Weakening]:
    """Yield the tests that fail as they stood before, and not as they are now."""
    base, final, held = judged.base, judged.final, judged.held
    for test in sorted(held.ids(*RED) - final.ids(*RED)):
        said = f"{test} fails as it stood before the task"
        yield Weakening(path=test.partition("::")[0], said=said)
    if held.evidence is None or held.outcomes or not final.green:
        return
    if base.outcomes or not held.green:
        yield Weakening(path="", said=f"{held.check.name} fails with the settings from before the task")


def _weakened(change: SurfaceChange) -> Iterator[Weakening]:
    """Yield what one file of the surface lost."""
    if change.kind is Kind.TESTS:
        said = [finding.said() for finding in change.findings if finding.kind in _LOST and change.before]
        if not said and _lost_words(change):
            said = [f"{change.path}: a test says less or something else"]
    elif not change.before:
        said = [finding.said() for finding in change.findings]
    elif change.path.endswith(".py") and _only_gains_fixtures(change.before, change.after):
        said = []
    else:
        said = [finding.said() for finding in change.findings] or [f"{change.path}: {change.kind} changed"]
    yield from (Weakening(path=change.path, said=each) for each in said)


def _lost_words(change: SurfaceChange) -> bool:
    """Return whether a test of a language that is not parsed here lacks what it said."""
    if PurePosixPath(change.path).suffix not in _NOT_PARSED:
        return False
    before, after = (Counter(text.split()) for text in (change.before, change.after))
    return bool(before - after)


def _only_gains_fixtures(before: str, after: str) -> bool:
    """Return whether a conftest kept all it had and gained only fixtures that a test has to ask for."""
    try:
        old, new = (Counter(map(ast.dump, ast.parse(text).body)) for text in (before, after))
        known = {name for node in ast.parse(before).body if (name := _name(node))}
        added = [node for node in ast.parse(after).body if ast.dump(node) in new - old]
    except (SyntaxError, ValueError, RecursionError):
        return False
    return not old - new and all(_is_plain(node) and _name(node) not in known for node in added)


def _name(node: ast.stmt) -> str | None:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _is_plain(node: ast.stmt) -> bool:
    """Return whether a statement cannot change a test that does not name it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    words = " ".join(map(ast.unparse, marks))
    return bool(re.fullmatch(r"(?:pytest\.)?fixture(?:\(.*\))?", words)) and "autouse" not in words


def _asked_for(task: str, weakening: Weakening) -> bool:
    """Return whether a sentence of the task asks for this very change of a check, by its name."""
    names = {re.escape(name) for name in _names(weakening)}
    if not names:
        return False
    named = re.compile(rf"(?<![\w/])(?:{'|'.join(sorted(names))})(?!\w)")
    return any(
        named.search(sentence) and _is_request(sentence) for sentence in _SENTENCE.split(task) if sentence
    )


def _is_request(sentence: str) -> bool:
    """Return whether a sentence is about changing what it names, not about what that comes to."""
    if _WRONG.search(sentence):
        return True
    return bool(_VERB.search(sentence)) and not _ABOUT_RESULTS.search(sentence)


def _names(weakening: Weakening) -> Iterable[str]:
    """Return how a task may name what was changed: the file, or a test."""
    tests = re.findall(r"\b(?:test_\w+|Test\w+|\w+_test)\b", weakening.said)
    file = PurePosixPath(weakening.path)
    return {name for name in (weakening.path, file.name if file.suffix else "", *tests) if name}
