"""The tests that prove a change, expecting something else than they should."""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from agentflow.core.evidence import CheckName, CheckRun
from agentflow.core.probe import ProbeKind
from agentflow.core.record import Record
from agentflow.verdict.breaking import SOURCES
from agentflow.verdict.ground import Ground, function_of, lies_in
from agentflow.verdict.narrow import narrowed
from agentflow.verdict.oracle import Clone, clone_tests
from agentflow.verdict.probe import Probe, make_word, with_patience
from agentflow.verdict.proofs import proof
from agentflow.verdict.surface import Kind, kind_of

_FILE_BYTES = 1_000_000
_MOST_CLONES = 20
_MOST_FILES = 500
_OTHERS = (SOURCES | {".bats", ".t", ""}) - {".py"}
"""Endings of files that may hold tests of other languages."""
_SLOW = 20.0
"""Seconds of all tests from which on one direction has to do."""


def oracle_probes(ground: Ground) -> tuple[Probe, ...]:
    """Return the probes of what the proving tests expect: clones in Python, else files of another text."""
    final = ground.tests
    if final is None or final.evidence is None or ground.case.is_blocked(final):
        return ()
    return tuple(_cloned(ground, final) if _by_file(ground) else _rewritten(ground, final))


def _cloned(ground: Ground, final: CheckRun) -> Iterator[Probe]:
    """Yield the proving tests of Python with clones that expect something else."""
    word, names = make_word(), {*ground.proving}
    files, clones = dict[str, str | None](), list[Clone]()
    for path, tests in _by_file(ground).items():
        (text,) = ground.git.texts([f"{ground.trees[1]}:{path}"], _FILE_BYTES)
        cloned = clone_tests(text, {*map(function_of, tests)}, word, _MOST_CLONES - len(clones))
        if cloned is not None:
            files[path] = cloned.text
            clones += cloned.clones
            by_function = {function_of(test): test.partition("[")[0] for test in tests}
            names |= {_renamed(by_function, word, name) for name in cloned.names}
    made = Probe(
        kind=ProbeKind.ORACLE,
        check=narrowed(final.check, names),
        tree=ground.trees[1],
        files=files,
        tests=ground.proving,
        clones=tuple(clones),
    )
    if clones:
        yield with_patience(final, made)


def _by_file(ground: Ground) -> dict[str, list[str]]:
    """Return the proving tests by the Python file that holds them."""
    python = [path for path in ground.git.paths(ground.trees[1]) if path.endswith(".py")]
    found: dict[str, list[str]] = {}
    for test in sorted(ground.proving):
        path = next((each for each in python if lies_in(test, (each,))), None)
        if path is not None:
            found.setdefault(path, []).append(test)
    return found


def _renamed(tests: dict[str, str], word: str, name: str) -> str:
    """Return the id of a clone beside its test."""
    function = name.rpartition(f"_{word}_")[0]
    return f"{tests[function].removesuffix(function)}{name}"


def _rewritten(ground: Ground, final: CheckRun) -> Iterator[Probe]:
    """Yield the tests with other literals expected, once above and once below what they expect."""
    if final.evidence is None or not (ground.proving or CheckName.TESTS in proof(ground.case)):
        return
    word, texts = make_word(), _test_texts(ground)
    found = {path: find_expected(path, text, ground.proving) for path, text in texts.items()}
    places = [(path, each) for path, spots in found.items() for each in spots]
    directions = (1,) if final.evidence.seconds > _SLOW else (1, -1)
    for direction in directions if places else ():
        made = Probe(
            kind=ProbeKind.ORACLE,
            check=final.check,
            tree=ground.trees[1],
            files={
                path: expect_other(text, found[path], word, direction)
                for path, text in texts.items()
                if found[path]
            },
            subjects=tuple(f"{path}:{each.line}" for path, each in places),
            tests=frozenset(each.test for _, each in places if each.test),
        )
        yield with_patience(final, made)


def _test_texts(ground: Ground) -> dict[str, str]:
    """Return the files that may hold tests of other languages, and their texts.

    Where tests have names, any code may hold them: only lines of a named test are looked at.
    """
    tree, surface = ground.trees[1], ground.task.surface
    found = (path for path in ground.git.paths(tree) if PurePosixPath(path).suffix in _OTHERS)
    paths = [path for path in found if ground.proving or kind_of(path, surface) is Kind.TESTS]
    texts = ground.git.texts([f"{tree}:{path}" for path in paths[:_MOST_FILES]], _FILE_BYTES)
    return dict(zip(paths, texts, strict=False))


_NUMBER = r"-?\d+(?:\.\d+)?(?![\w.])"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = rf"(?:{_NUMBER}|{_STRING}|'(?:[^'\\\n]|\\.){{2,}}')"
_MATCHER = re.compile(
    rf"\.(?:toBe|toEqual|toStrictEqual|toBeCloseTo|equals?|eql?|deepEqual|isEqualTo)\(\s*(?P<it>{_LITERAL})\s*[,)]"
)
_COMPARED = re.compile(rf"(?:[!=]==?\s*|\s(?:-eq|-ne|=)\s+)(?P<it>{_LITERAL})")
_CALL = re.compile(
    r"\b(?:\w*(?:assert|check|expect|same|equal|want|verify|near|close)\w*|is|ok)(?:[.:]+\w+)*!?\s*(?P<open>\()",
    re.IGNORECASE,
)
_WORDS = re.compile(
    rf"^\s*(?:assert|check|expect|same|equal|is)\w*\s.*(?<!\S)(?P<it>{_NUMBER}|\"[^\"$`\\]*\"|'[^']*')(?!\S)",
    re.IGNORECASE,
)
"""An assertion of a shell, which has no parentheses."""
_BEGIN = re.compile(
    r"""\bfunc\s+(?P<go>Test\w+)\s*\(|\bfn\s+(?P<rust>\w+)\s*\(
    |\b(?:test|it|specify)(?:\.\w+)*\s*\(\s*(?P<quote>['"`])(?P<js>.*?)(?P=quote)""",
    re.VERBOSE,
)
_SHELLS = (".sh", ".bash", ".bats", "")
_QUOTED = re.compile(rf"{_STRING}|'[^']*'")
_SPLIT = re.compile(rf"{_LITERAL}|[(\[{{]|[)\]}}]|,")
_STEP = 37


class Expected(Record):
    """A literal that a test expects, and where it stands."""

    test: str
    """The id of the test; empty where nobody tells one from another."""
    line: int
    span: tuple[int, int]


def find_expected(path: str, text: str, tests: Collection[str]) -> tuple[Expected, ...]:
    """Return the first expected literal of each of these tests; with none named, of each line."""
    found: dict[object, Expected] = {}
    owner: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if begin := _BEGIN.search(line):
            name = begin["go"] or begin["rust"] or begin["js"]
            owner = next((test for test in tests if test.endswith(name)), None)
        span, test = _span(path, line), owner or _named_in(line, tests)
        if span is not None and (test is not None or not tests):
            found.setdefault(test or number, Expected(test=test or "", line=number, span=span))
    return tuple(found.values())


def _named_in(line: str, tests: Collection[str]) -> str | None:
    """Return the test whose name an assertion tells itself, as in TAP."""
    names = [text[1:-1] for text in _QUOTED.findall(line) if text[1:-1].strip()]
    return next((test for test in tests for name in names if re.split("::", test)[-1] == name), None)


def expect_other(text: str, found: Collection[Expected], word: str, direction: int) -> str:
    """Return a file in which these literals are others, numbers by a step up or down."""
    lines = text.splitlines(keepends=True)
    for each in found:
        line, (start, end) = lines[each.line - 1], each.span
        lines[each.line - 1] = line[:start] + _other(line[start:end], word, direction) + line[end:]
    return "".join(lines)


def _other(literal: str, word: str, direction: int) -> str:
    if literal[0] in "\"'":
        return f"{literal[:-1]}{word}{literal[-1]}"
    whole, point, rest = literal.partition(".")
    return f"{int(whole) + direction * _STEP}{point}{rest}"


def _span(path: str, line: str) -> tuple[int, int] | None:
    """Return where the expected literal of a line stands."""
    if line.lstrip().startswith(("//", "#", "*")) or (_BEGIN.search(line) is None and "function " in line):
        return None
    is_shell = PurePosixPath(path).suffix in _SHELLS
    patterns = (_MATCHER, _COMPARED, *((_WORDS,) if is_shell else ()))
    found = (match for pattern in patterns if (match := pattern.search(line)))
    spans = ((match.start("it"), match.end("it")) for match in found)
    calls = (_argument(line, call.start("open")) for call in _CALL.finditer(line))
    return next(spans, None) or next(filter(None, calls), None)


def _argument(line: str, opening: int) -> tuple[int, int] | None:
    """Return the last argument of a call that is a literal, of the first three; a message counts last."""
    spans = [(start, end) for start, end in _arguments(line, opening) if start < end]
    literal = [span for span in spans[:3] if re.fullmatch(_LITERAL, line[slice(*span)])]
    plain = [span for span in literal if line[span[0]] not in "\"'"]
    first_two = [span for span in literal if span in spans[:2]]
    chosen = plain or first_two
    return chosen[-1] if chosen and len(spans) > 1 else None


def _arguments(line: str, opening: int) -> Iterator[tuple[int, int]]:
    """Yield where the arguments of a call stand that begins here."""
    depth, start = 0, opening + 1
    for token in _SPLIT.finditer(line, opening):
        if token[0] in ("(", "[", "{"):
            depth += 1
        elif token[0] in (")", "]", "}"):
            depth -= 1
        if depth == 0 or (depth == 1 and token[0] == ","):
            yield _stripped(line, start, token.start())
            start = token.end()
        if depth == 0:
            return


def _stripped(line: str, start: int, end: int) -> tuple[int, int]:
    text = line[start:end]
    begin = start + len(text) - len(text.lstrip())
    return begin, max(begin, start + len(text.rstrip()))
