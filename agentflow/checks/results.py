"""Reports of runners in XML and JSON: test ids, outcomes, counts, and the findings in what they print."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.parsers import expat

from agentflow.core.evidence import RED, CheckName, TestOutcome, TestResults
from agentflow.core.regex import regex
from agentflow.runners.import_errors import find_import_error, find_node_error
from agentflow.runners.runner import Outcomes, find_worst, make_results

_IN_XML = MappingProxyType(
    {"error": TestOutcome.ERROR, "failure": TestOutcome.FAILED, "skipped": TestOutcome.SKIPPED}
)
_FINDING = regex(
    r"(?m)^[ \t]*(?P<path>[^\s:()][^:()\n]*\.\w+)"
    r"(?::(?P<line>\d{1,9})(?::\d+)?(?::| -)|\((?P<row>\d{1,9})(?:,\d+)?\):) (?P<message>\S.*)$"
)
_POINTED = regex(
    r"(?m)^(?!(?:warning|note|help)\b)(?P<message>\S[^\n]*)\n"
    r"[ \t]*--> (?P<path>[^\s:][^:\n]*):(?P<line>\d{1,9})(?P<row>)(?::\d+)?$"
)
"""As rustc and ruff print: the message, then an arrow to its place."""
_LINE_NUMBER = regex(r"\bline \d+")
_REPORTERS = Path(__file__).with_name("reporters")
_NODE, _MOCHA, MINITEST = "node.mjs", "mocha.cjs", "minitest/agentflow_plugin.rb"
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
_Case = tuple[str, Sequence[str], TestOutcome, str, str]
"""The file and names of a test, its outcome, the missing module that failed it, and the failure itself."""


class _Refused(Exception):
    """The document uses a feature that could expand it."""


def read_junit(text: str) -> TestResults:
    """Return the tests of a whole JUnit document; nothing of one that is cut, damaged or has a DOCTYPE."""
    document = _read_document(text, _test_id)
    errors = {test: list(map(find_import_error, said)) for test, said in document.failures.items()}
    return make_results(document.found, errors, {test: said[0] for test, said in document.failures.items()})


def _read_document(text: str, identify: Callable[[Mapping[str, str]], str]) -> "_Document":
    document = _Document(identify)
    try:
        document.read(text)
    except (expat.ExpatError, _Refused, ValueError):
        return _Document(identify)
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


def count_findings(check: CheckName | None, output: str) -> dict[str, int]:
    """Count the complaints of a linter or type checker, `path: message` without any line number."""
    found = list_findings(output) if check is not CheckName.TESTS else ()
    return dict(Counter(f"{path}: {_LINE_NUMBER.sub('line', message)}" for path, _, message in found))


def list_findings(output: str) -> Iterator[tuple[str, int, str]]:
    for match in chain(_FINDING.finditer(output), _POINTED.finditer(output)):
        if not match["message"].startswith("note:"):
            yield match["path"].strip(), int(match["line"] or match["row"]), match["message"].strip()


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
    for name in names:
        place = scratch / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes((_REPORTERS / name).read_bytes())


def is_refused(output: str) -> bool:
    """Return whether node would not have our reporter: it is too old, or the command names its own."""
    return bool(_REFUSED.search(output))


def read_reports(scratch: Path, roots: Iterable[Path]) -> TestResults | None:
    """Return what became of each test that a runner reported; None where none reported.

    `roots` are where the repository may have lain. Of the import errors those of JavaScript are told.
    """
    found, errors = defaultdict[str, list[TestOutcome]](list), defaultdict[str, list[str]](list)
    begins = tuple(f"{place}/" for root in roots for place in (root, root.resolve()))
    lines = [_text(path) for path in sorted(scratch.glob("*-*-*.jsonl"))]
    wholes = [_text(path) for path in (*sorted(scratch.glob("runner*.json")), scratch / "rspec.json")]
    documents = [_text(path) for path in (*scratch.glob("runner*.xml"), *sorted(scratch.glob("left/*.xml")))]
    failures = dict[str, str]()
    for file, names, outcome, error, said in chain(*map(_lines, lines), *map(_suites, wholes)):
        test = _name_test(file, names, begins)
        found[test].append(outcome)
        if outcome in RED:
            errors[test].append(find_node_error(error))
        if said:
            failures.setdefault(test, said)
    for text in documents:
        document = _read_document(text, partial(_identify_case, begins))
        failures |= {test: texts[0] for test, texts in document.failures.items()}
        for test, outcomes in document.found.items():
            found[test].extend(outcomes)
    return make_results(found, errors, failures) if any((*lines, *wholes, *documents)) else None


def _identify_case(begins: Sequence[str], attributes: Mapping[str, str]) -> str:
    """Return the id of a test by its file, or by its class where that is all that a runner tells."""
    owner, name = attributes.get("classname", ""), attributes.get("name", "")
    file = attributes.get("file") or owner
    return _name_test(file, [name] if owner in ("", file) else [owner, name], begins)


def _text(path: Path) -> str:
    is_plain = path.is_file() and not path.is_symlink() and path.stat().st_size <= _BYTES
    return path.read_text("utf-8", "replace") if is_plain else ""


def _name_test(file: str, names: Sequence[str], begins: Sequence[str]) -> str:
    path = file.removeprefix("file://").removeprefix("./")
    path = next((path.removeprefix(begin) for begin in begins if path.startswith(begin)), path)
    name = " > ".join(names)
    is_file = not name or any(name == f"{begin}{path}" for begin in begins)
    return path if is_file else f"{path}::{name}"


def _lines(text: str) -> Iterator[_Case]:
    for told in map(_parse_json, text.splitlines()):
        outcome = _OUTCOMES.get(str(told.get("outcome")))
        if outcome is not None:
            names = [str(name) for name in told.get("names", ())]
            yield (
                str(told.get("file", "")),
                names,
                outcome,
                str(told.get("error", "")),
                str(told.get("said", "")),
            )


def _suites(text: str) -> Iterator[_Case]:
    whole = _parse_json(text)
    for example in _records(whole.get("examples")):
        outcome = _OUTCOMES.get(str(example.get("status")), TestOutcome.ERROR)
        (error,) = _records([example.get("exception")]) or ({},)
        said = "\n".join(map(str, (error.get("message", ""), *_list(error.get("backtrace")))))
        yield str(example.get("file_path", "")), [str(example.get("full_description", ""))], outcome, "", said
    for suite in _records(whole.get("testResults")):
        file, tests = str(suite.get("name", "")), _records(suite.get("assertionResults"))
        outcomes = [_OUTCOMES.get(str(test.get("status")), TestOutcome.ERROR) for test in tests]
        for test, outcome in zip(tests, outcomes, strict=True):
            names = [*_list(test.get("ancestorTitles")), test.get("title", "")]
            said = next(map(str, _list(test.get("failureMessages"))), "")
            yield file, [str(name) for name in names], outcome, "", said
        if suite.get("status") == "failed" and TestOutcome.FAILED not in outcomes:
            yield file, (), TestOutcome.ERROR, "" if tests else str(suite.get("message", "")), ""


def _parse_json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _records(found: object) -> list[dict[str, Any]]:
    return [each for each in _list(found) if isinstance(each, dict)]
