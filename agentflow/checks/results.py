"""Reports of runners in XML and JSON: test ids, outcomes, counts, and the findings in what they print."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.parsers import expat

from agentflow.checks.import_errors import find_import_error, find_node_error
from agentflow.core.evidence import RED, CheckName, TestCounts, TestOutcome
from agentflow.core.regex import regex

_WORST_FIRST = (TestOutcome.ERROR, TestOutcome.FAILED, TestOutcome.SKIPPED, TestOutcome.PASSED)
_IN_XML = MappingProxyType(
    {"error": TestOutcome.ERROR, "failure": TestOutcome.FAILED, "skipped": TestOutcome.SKIPPED}
)
FINDING = regex(
    r"(?m)^[ \t]*(?P<path>[^\s:()][^:()\n]*\.\w+)"
    r"(?::\d+(?::\d+)?(?::| -)|\(\d+(?:,\d+)?\):) (?P<message>\S.*)$"
)
_LINE_NUMBER = regex(r"\bline \d+")
_REPORTERS = Path(__file__).with_name("reporters")
_NODE, _MOCHA, MINITEST = "node.mjs", "mocha.cjs", "minitest/agentflow_plugin.rb"
_NODE_PROGRAM = regex(r"\b(?:node|npm|npx|pnpm|yarn|bun|mocha|jest|vitest)\b")
_REFUSED = regex(r"--test-reporter\S* is not allowed in NODE_OPTIONS|'--test-reporter' must match")
_OUTCOMES = MappingProxyType(
    {
        "passed": TestOutcome.PASSED,
        "failed": TestOutcome.FAILED,
        "skipped": TestOutcome.SKIPPED,
        "pending": TestOutcome.SKIPPED,
        "todo": TestOutcome.SKIPPED,
        "disabled": TestOutcome.SKIPPED,
    }
)
_BYTES = 64 << 20
Outcomes = dict[str, list[TestOutcome]]


class _Refused(Exception):
    """The document uses a feature that could expand it."""


def find_worst(outcomes: Iterable[TestOutcome]) -> TestOutcome:
    """Return what a test has come to that gave several outcomes."""
    given = frozenset(outcomes)
    return next((outcome for outcome in _WORST_FIRST if outcome in given), TestOutcome.ERROR)


def read_junit(text: str) -> dict[str, TestOutcome]:
    """Return the tests of a whole JUnit document; nothing of one that is cut, damaged or has a DOCTYPE."""
    return _settle(_read_document(text).found)


def _settle(found: Outcomes) -> dict[str, TestOutcome]:
    return {test: find_worst(outcomes) for test, outcomes in found.items()}


def read_junit_failures(text: str) -> dict[str, str]:
    """Return what is said of each failing test."""
    return {test: texts[0] for test, texts in _read_document(text).failures.items()}


def read_junit_import_errors(text: str) -> dict[str, str]:
    """Return the tests that an import error ended, each with that error."""
    failures = _read_document(text).failures
    found = {test: [find_import_error(each) for each in texts] for test, texts in failures.items()}
    return {test: errors[0] for test, errors in found.items() if all(errors)}


def _read_document(text: str, identify: Callable[[Mapping[str, str]], str] | None = None) -> "_Document":
    document = _Document(identify or _test_id)
    try:
        document.read(text)
    except (expat.ExpatError, _Refused, ValueError):
        return _Document(_test_id)
    return document


class _Document:
    """The test cases of a JUnit file as they pass by."""

    def __init__(self, identify: Callable[[Mapping[str, str]], str]) -> None:
        self._identify = identify
        self.found: Outcomes = {}
        self.failures: dict[str, list[str]] = {}
        """What is said of each failure of a test."""
        self._case: str | None = None
        self._outcomes: list[TestOutcome] = []
        self._said: list[str] | None = None

    def read(self, text: str) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._read_text
        parser.Parse(text.encode("utf-8", "replace"), True)

    def _refuse(self, *_: object) -> None:
        raise _Refused

    def _begin(self, element: str, attributes: Mapping[str, str]) -> None:
        if element == "testcase":
            self._case = self._identify(attributes)
            self._outcomes = []
        elif element in _IN_XML:
            self._outcomes.append(_IN_XML[element])
            is_red = _IN_XML[element] in RED
            self._said = [attributes.get("message", ""), "\n"] if is_red else None

    def _read_text(self, text: str) -> None:
        if self._said is not None:
            self._said.append(text)

    def _end(self, element: str) -> None:
        if element in _IN_XML and self._said is not None and self._case is not None:
            self.failures.setdefault(self._case, []).append("".join(self._said))
            self._said = None
        if element == "testcase" and self._case is not None:
            outcome = find_worst(self._outcomes or [TestOutcome.PASSED])
            self.found.setdefault(self._case, []).append(outcome)
            self._case = None


def _test_id(attributes: Mapping[str, str]) -> str:
    file, name = attributes.get("file", ""), attributes.get("name", "")
    owner = attributes.get("classname", "")
    if not owner:
        return f"{name.replace('.', '/')}.py"
    module = file.removesuffix(".py").replace("/", ".")
    if file and (owner == module or owner.startswith(f"{module}.")):
        classes = owner[len(module) + 1 :].split(".")
        return "::".join([file, *filter(None, classes), name])
    return "::".join([*_guess_place(owner), name])


def _guess_place(owner: str) -> Sequence[str]:
    words = owner.split(".")
    modules = next((place for place, word in enumerate(words) if word[:1].isupper()), len(words))
    return [f"{'/'.join(words[:modules])}.py", *words[modules:]]


def count_outcomes(outcomes: Iterable[TestOutcome]) -> TestCounts:
    """Count tests by outcome."""
    number = Counter(outcomes)
    return TestCounts(
        passed=number[TestOutcome.PASSED],
        failed=number[TestOutcome.FAILED],
        skipped=number[TestOutcome.SKIPPED],
        errors=number[TestOutcome.ERROR],
    )


def count_findings(check: CheckName | None, output: str) -> dict[str, int]:
    """Count the complaints of a linter or type checker, `path: message` without any line number."""
    lines = FINDING.finditer(output) if check is not CheckName.TESTS else ()
    found = (
        f"{match['path'].strip()}: {_LINE_NUMBER.sub('line', match['message'].strip())}"
        for match in lines
        if not match["message"].startswith("note:")
    )
    return dict(Counter(found))


def is_javascript(command: str, package: Mapping[str, Any]) -> bool:
    """Return whether a command may start node."""
    return bool(package) or bool(_NODE_PROGRAM.search(command))


def install_reporters(scratch: Path, options: str) -> dict[str, str]:
    """Put our reporters into a folder, and return the variables by which node and mocha use them.

    `options` are those that node gets anyway.
    """
    copy_reporters(scratch, _NODE, _MOCHA)
    reporters = ("spec", f'"{scratch / _NODE}"')
    words = (f"--test-reporter={each} --test-reporter-destination=stdout" for each in reporters)
    return {
        "NODE_OPTIONS": " ".join(filter(None, (options, *words))),
        "MOCHA_OPTIONS": f"--reporter '{scratch / _MOCHA}'",
    }


def copy_reporters(scratch: Path, *names: str) -> None:
    """Put some of our reporters into a folder."""
    for name in names:
        place = scratch / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes((_REPORTERS / name).read_bytes())


def is_refused(output: str) -> bool:
    """Return whether node would not have our reporter: it is too old, or the command names its own."""
    return bool(_REFUSED.search(output))


def read_reports(scratch: Path, roots: Iterable[Path]) -> Mapping[str, TestOutcome] | None:
    """Return what became of each test that a runner reported; None where none reported.

    `roots` are where the repository may have lain.
    """
    found: Outcomes = {}
    begins = _list_begins(roots)
    lines = [_text(path) for path in sorted(scratch.glob("*-*-*.jsonl"))]
    wholes = [_text(path) for path in (*sorted(scratch.glob("runner*.json")), scratch / "rspec.json")]
    documents = [_text(path) for path in (*scratch.glob("runner*.xml"), *sorted(scratch.glob("left/*.xml")))]
    for text in lines:
        _add(found, _lines(text), begins)
    for text in wholes:
        _add(found, _suites(text), begins)
    for text in documents:
        cases = _read_document(text, partial(_identify_case, begins))
        for test, outcomes in cases.found.items():
            found.setdefault(test, []).extend(outcomes)
    return _settle(found) if any((*lines, *wholes, *documents)) else None


def _identify_case(begins: Sequence[str], attributes: Mapping[str, str]) -> str:
    """Return the id of a test by its file, or by its class where that is all that a runner tells."""
    owner, name = attributes.get("classname", ""), attributes.get("name", "")
    file = attributes.get("file") or owner
    return _name_test(file, [name] if owner in ("", file) else [owner, name], begins)


def read_reported_import_errors(scratch: Path, roots: Iterable[Path]) -> dict[str, str]:
    """Return the tests of JavaScript, and their files, that a missing module ended, each with that error."""
    begins, found = _list_begins(roots), dict[str, list[str]]()
    for file, names, said in _list_failures(scratch):
        found.setdefault(_name_test(file, names, begins), []).append(find_node_error(said))
    return {test: errors[0] for test, errors in found.items() if all(errors)}


def read_reported_failures(scratch: Path, roots: Iterable[Path]) -> dict[str, str]:
    """Return what is said of each failing test, where a runner reports it."""
    begins, found = _list_begins(roots), dict[str, str]()
    for file, names, said in _list_said(scratch):
        found[_name_test(str(file), [str(name) for name in names], begins)] = said
    for path in (*scratch.glob("runner*.xml"), *scratch.glob("left/*.xml")):
        cases = _read_document(_text(path), partial(_identify_case, begins))
        found |= {test: texts[0] for test, texts in cases.failures.items()}
    return found


def _list_said(scratch: Path) -> Iterator[tuple[object, list[Any], str]]:
    lines = (line for path in sorted(scratch.glob("*-*-*.jsonl")) for line in _text(path).splitlines())
    for told in map(_parse_json, lines):
        if told.get("outcome") == "failed" and told.get("said"):
            yield told.get("file", ""), _list(told.get("names")), str(told["said"])
    for path in (*sorted(scratch.glob("runner*.json")), scratch / "rspec.json"):
        whole = _parse_json(_text(path))
        for suite in _records(whole.get("testResults")):
            for test in _records(suite.get("assertionResults")):
                names = [*_list(test.get("ancestorTitles")), test.get("title", "")]
                for message in _list(test.get("failureMessages"))[:1]:
                    yield suite.get("name", ""), names, str(message)
        for example in _records(whole.get("examples")):
            for error in _records([example.get("exception")]):
                said = "\n".join(map(str, (error.get("message", ""), *_list(error.get("backtrace")))))
                yield example.get("file_path", ""), [example.get("full_description", "")], said


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _list_failures(scratch: Path) -> Iterator[tuple[str, Sequence[str], str]]:
    lines = (line for path in sorted(scratch.glob("*-*-*.jsonl")) for line in _text(path).splitlines())
    for told in map(_parse_json, lines):
        if told.get("outcome") == "failed":
            names = [str(name) for name in told.get("names", ())]
            yield str(told.get("file", "")), names, str(told.get("error", ""))
    wholes = (_parse_json(_text(path)) for path in sorted(scratch.glob("runner*.json")))
    for suite in (suite for whole in wholes for suite in _records(whole.get("testResults"))):
        if not suite.get("assertionResults"):
            yield str(suite.get("name", "")), (), str(suite.get("message", ""))


def _text(path: Path) -> str:
    is_plain = path.is_file() and not path.is_symlink() and path.stat().st_size <= _BYTES
    return path.read_text("utf-8", "replace") if is_plain else ""


def _add(
    found: Outcomes, tests: Iterable[tuple[str, Sequence[str], TestOutcome]], begins: Sequence[str]
) -> None:
    for file, names, outcome in tests:
        found.setdefault(_name_test(file, names, begins), []).append(outcome)


def _list_begins(roots: Iterable[Path]) -> tuple[str, ...]:
    return tuple(f"{place}/" for root in roots for place in (root, root.resolve()))


def _name_test(file: str, names: Sequence[str], begins: Sequence[str]) -> str:
    path = file.removeprefix("file://").removeprefix("./")
    path = next((path.removeprefix(begin) for begin in begins if path.startswith(begin)), path)
    name = " > ".join(names)
    is_file = not name or any(name == f"{begin}{path}" for begin in begins)
    return path if is_file else f"{path}::{name}"


def _lines(text: str) -> Iterator[tuple[str, Sequence[str], TestOutcome]]:
    for line in text.splitlines():
        told = _parse_json(line)
        outcome = _OUTCOMES.get(str(told.get("outcome")))
        if outcome is not None:
            yield str(told.get("file", "")), [str(name) for name in told.get("names", ())], outcome


def _suites(text: str) -> Iterator[tuple[str, Sequence[str], TestOutcome]]:
    whole = _parse_json(text)
    for example in _records(whole.get("examples")):
        outcome = _OUTCOMES.get(str(example.get("status")), TestOutcome.ERROR)
        yield str(example.get("file_path", "")), [str(example.get("full_description", ""))], outcome
    for suite in _records(whole.get("testResults")):
        file, tests = str(suite.get("name", "")), _records(suite.get("assertionResults"))
        outcomes = [_OUTCOMES.get(str(test.get("status")), TestOutcome.ERROR) for test in tests]
        for test, outcome in zip(tests, outcomes, strict=True):
            titles = test.get("ancestorTitles")
            names = [*(titles if isinstance(titles, list) else ()), test.get("title", "")]
            yield file, [str(name) for name in names], outcome
        if suite.get("status") == "failed" and TestOutcome.FAILED not in outcomes:
            yield file, (), TestOutcome.ERROR


def _parse_json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _records(found: object) -> list[dict[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
