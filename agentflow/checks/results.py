"""Reports of runners in XML and JSON: test ids, outcomes, counts, and the findings in what they print."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_NODE, _MOCHA, _WHOLE = "node.mjs", "mocha.cjs", "runner.json"
_NODE_PROGRAM = regex(r"\b(?:node|npm|npx|pnpm|yarn|bun|mocha|jest|vitest)\b")
_SCRIPT = regex(r"(?:npm|pnpm|yarn|bun run) test")
_ALONE = regex(
    r"(?:cross-env )?(?:\w+=[\w./:-]+ )*(?:npx (?:--no-install )?|pnpm exec |yarn )?"
    r"(?:node (?:--[\w=-]+ )*)?(?:(?:\./)?node_modules/(?:\.bin/|jest/bin/|vitest/))?"
    r"(?P<runner>jest|vitest)(?:\.m?js)?(?: [^;&|<>()`$]*)?"
)
"""A command that is nothing but one run of one of these."""
_OWN_REPORT = regex(r"--(?:json|outputFile|reporters?)\b|--watch(?!=false)| -- ")
_OPTIONS = MappingProxyType(
    {
        "jest": "--json --outputFile={place}",
        "vitest": "--reporter=default --reporter=json --outputFile.json={place}",
    }
)
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
    return {name: find_worst(outcomes) for name, outcomes in _read_document(text).found.items()}


def read_junit_import_errors(text: str) -> dict[str, str]:
    """Return the tests that an import error ended, each with that error."""
    failures = _read_document(text).failures
    found = {test: [find_import_error(each) for each in texts] for test, texts in failures.items()}
    return {test: errors[0] for test, errors in found.items() if all(errors)}


def _read_document(text: str) -> "_Document":
    document = _Document()
    try:
        document.read(text)
    except (expat.ExpatError, _Refused, ValueError):
        return _Document()
    return document


class _Document:
    """The test cases of a JUnit file as they pass by."""

    def __init__(self) -> None:
        self.found: dict[str, list[TestOutcome]] = {}
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
            self._case = _test_id(attributes)
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
    """Return `path::Class::test[param]` of a test case in pytest's xunit1 form."""
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
    """Return path and classes of a test that is defined in another file than its class."""
    words = owner.split(".")
    modules = next((place for place, word in enumerate(words) if word[:1].isupper()), len(words))
    return [f"{'/'.join(words[:modules])}.py", *words[modules:]]


def count_outcomes(outcomes: Mapping[str, TestOutcome]) -> TestCounts:
    """Count tests by outcome."""
    number = Counter(outcomes.values())
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
    for name in (_NODE, _MOCHA):
        (scratch / name).write_bytes((_REPORTERS / name).read_bytes())
    reporters = ("spec", f'"{scratch / _NODE}"')
    words = (f"--test-reporter={each} --test-reporter-destination=stdout" for each in reporters)
    return {
        "NODE_OPTIONS": " ".join(filter(None, (options, *words))),
        "MOCHA_OPTIONS": f"--reporter '{scratch / _MOCHA}'",
    }


def is_refused(output: str) -> bool:
    """Return whether node would not have our reporter: it is too old, or the command names its own."""
    return bool(_REFUSED.search(output))


def add_report(command: str, package: Mapping[str, Any], scratch: Path) -> str:
    """Return a command that is one run of jest or vitest with what makes it write a report beside."""
    scripts = package.get("scripts")
    script = scripts.get("test") if isinstance(scripts, dict) else None
    is_script = bool(_SCRIPT.fullmatch(command)) and isinstance(script, str)
    body = str(script).strip() if is_script else command
    found = _ALONE.fullmatch(body)
    if found is None or _OWN_REPORT.search(body):
        return command
    separator = " --" if is_script and command.startswith("npm") else ""
    return f"{command}{separator} {_OPTIONS[found['runner']].format(place=scratch / _WHOLE)}"


def read_reports(scratch: Path, roots: Iterable[Path]) -> Mapping[str, TestOutcome] | None:
    """Return what became of each test that a runner reported; None where none reported.

    `roots` are where the repository may have lain.
    """
    found: Outcomes = {}
    begins = _list_begins(roots)
    texts = [_text(path) for path in sorted(scratch.glob("*-*-*.jsonl"))]
    for text in texts:
        _add(found, _lines(text), begins)
    whole = _text(scratch / _WHOLE)
    _add(found, _suites(whole), begins)
    is_told = bool(whole) or any(texts)
    return {test: find_worst(outcomes) for test, outcomes in found.items()} if is_told else None


def read_reported_import_errors(scratch: Path, roots: Iterable[Path]) -> dict[str, str]:
    """Return the tests of JavaScript, and their files, that a missing module ended, each with that error."""
    begins, found = _list_begins(roots), dict[str, list[str]]()
    for file, names, said in _list_failures(scratch):
        found.setdefault(_name_test(file, names, begins), []).append(find_node_error(said))
    return {test: errors[0] for test, errors in found.items() if all(errors)}


def _list_failures(scratch: Path) -> Iterator[tuple[str, Sequence[str], str]]:
    """Yield what failed by a reporter of ours, and the files that jest or vitest could not load."""
    lines = (line for path in sorted(scratch.glob("*-*-*.jsonl")) for line in _text(path).splitlines())
    for told in map(_parse_json, lines):
        if told.get("outcome") == "failed":
            names = [str(name) for name in told.get("names", ())]
            yield str(told.get("file", "")), names, str(told.get("error", ""))
    for suite in _records(_parse_json(_text(scratch / _WHOLE)).get("testResults")):
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
    """Return the id of a test, or of a file that stands for all of its tests."""
    path = file.removeprefix("file://")
    path = next((path.removeprefix(begin) for begin in begins if path.startswith(begin)), path)
    name = " > ".join(names)
    is_file = not name or any(name == f"{begin}{path}" for begin in begins)
    return path if is_file else f"{path}::{name}"


def _lines(text: str) -> Iterator[tuple[str, Sequence[str], TestOutcome]]:
    """Yield the tests that one of our reporters wrote down, one a line."""
    for line in text.splitlines():
        told = _parse_json(line)
        outcome = _OUTCOMES.get(str(told.get("outcome")))
        if outcome is not None:
            yield str(told.get("file", "")), [str(name) for name in told.get("names", ())], outcome


def _suites(text: str) -> Iterator[tuple[str, Sequence[str], TestOutcome]]:
    """Yield the tests of a report in jest's form, and each file that failed otherwise."""
    for suite in _records(_parse_json(text).get("testResults")):
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
