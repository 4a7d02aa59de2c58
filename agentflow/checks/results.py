"""What runners print or write, as test ids, outcomes, counts and findings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from xml.parsers import expat

from agentflow.core.evidence import TestCounts, TestOutcome
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


class _Refused(Exception):
    """The document uses a feature that could expand it."""


def worst(outcomes: Iterable[TestOutcome]) -> TestOutcome:
    """Return what a test has come to that gave several outcomes."""
    given = frozenset(outcomes)
    return next((outcome for outcome in _WORST_FIRST if outcome in given), TestOutcome.ERROR)


def junit(text: str) -> dict[str, TestOutcome]:
    """Return the tests of a whole JUnit document; nothing of one that is cut, damaged or has a DOCTYPE."""
    document = _Document()
    try:
        document.read(text)
    except (expat.ExpatError, _Refused, ValueError):
        return {}
    return {name: worst(outcomes) for name, outcomes in document.found.items()}


class _Document:
    """The test cases of a JUnit file as they pass by."""

    def __init__(self) -> None:
        self.found: dict[str, list[TestOutcome]] = {}
        self._case: str | None = None
        self._outcomes: list[TestOutcome] = []

    def read(self, text: str) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.Parse(text.encode("utf-8", "replace"), True)

    def _refuse(self, *_: object) -> None:
        raise _Refused

    def _begin(self, element: str, attributes: Mapping[str, str]) -> None:
        if element == "testcase":
            self._case = _test_id(attributes)
            self._outcomes = []
        elif element in _IN_XML:
            self._outcomes.append(_IN_XML[element])

    def _end(self, element: str) -> None:
        if element == "testcase" and self._case is not None:
            outcome = worst(self._outcomes or [TestOutcome.PASSED])
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
    return "::".join([*_guessed(owner), name])


def _guessed(owner: str) -> Sequence[str]:
    """Return path and classes of a test that is defined in another file than its class."""
    words = owner.split(".")
    modules = next((place for place, word in enumerate(words) if word[:1].isupper()), len(words))
    return [f"{'/'.join(words[:modules])}.py", *words[modules:]]


def counts(outcomes: Mapping[str, TestOutcome]) -> TestCounts:
    """Count tests by outcome."""
    number = Counter(outcomes.values())
    return TestCounts(
        passed=number[TestOutcome.PASSED],
        failed=number[TestOutcome.FAILED],
        skipped=number[TestOutcome.SKIPPED],
        errors=number[TestOutcome.ERROR],
    )


def findings(output: str) -> dict[str, int]:
    """Count the complaints of linters and type checkers, `path: message` without any line number."""
    found = (
        f"{match['path'].strip()}: {_LINE_NUMBER.sub('line', match['message'].strip())}"
        for match in FINDING.finditer(output)
        if not match["message"].startswith("note:")
    )
    return dict(Counter(found))
