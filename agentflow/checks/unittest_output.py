"""What `python -m unittest -v` prints, as test ids and outcomes."""

import re
from types import MappingProxyType

from agentflow.checks.results import worst
from agentflow.core.evidence import TestOutcome
from agentflow.core.regex import regex

_SUMMARY = regex(r"(?m)^-{70}\nRan (\d+) tests? in \d+\.\d+s$")
_PLACE = r"\((?P<dotted>[\w.<>]+)\)"
_HEADER = regex(
    r"(?m)(?<![\w.])"
    r"(?P<name>test\w*|runTest|(?:setUp|tearDown)(?:Class|Module)|[\w.]+(?= \(unittest\.loader\.)"
    r"|\w+(?= \([\w.]+\)\nDoctest: ))"
    rf" {_PLACE}(?: [\[(][^\n]*?)?(?:\n[^\n]*?)? \.\.\. "
)
_BLOCK = regex(rf"(?m)^={{70}}\n(?P<kind>ERROR|FAIL|UNEXPECTED SUCCESS): (?P<name>\S+) {_PLACE}")
_STATUS = r"(?P<word>ok|expected failure|unexpected success|skipped (['\"]).*\2)$"
_WHOLE_LINE = regex(rf"(?m)^{_STATUS}")
_LINE_END = regex(rf"(?m){_STATUS}")
_IN_FLOW = MappingProxyType(
    {
        "ok": TestOutcome.PASSED,
        "expected": TestOutcome.SKIPPED,  # a red test marked so would else turn green
        "unexpected": TestOutcome.FAILED,
        "skipped": TestOutcome.SKIPPED,
    }
)


def unittest_verbose(text: str) -> dict[str, TestOutcome]:
    """Return the tests of one or several runs; nothing unless the last one printed its summary."""
    pieces = _SUMMARY.split(text)
    if len(pieces) == 1 or _HEADER.search(pieces[-1]):
        return {}
    found: dict[str, list[TestOutcome]] = {}
    for part, number in zip(pieces[:-1:2], pieces[1::2], strict=True):
        for name, outcome in _outcomes(part, ran=int(number)).items():
            found.setdefault(name, []).append(outcome)
    return {name: worst(outcomes) for name, outcomes in found.items()}


def _outcomes(part: str, ran: int) -> dict[str, TestOutcome]:
    """Return the tests of one run; where none ran, whatever looks like one was printed by something else."""
    first = _BLOCK.search(part)
    bad: dict[str, list[TestOutcome]] = {}
    for block in _BLOCK.finditer(part):
        outcome = TestOutcome.ERROR if block["kind"] == "ERROR" else TestOutcome.FAILED
        bad.setdefault(_test_id(block), []).append(outcome)
    flow = _flow(part[: first.start()] if first else part) if ran else {}
    good = {name: worst(outcomes) for name, outcomes in flow.items()}
    return good | {name: worst(outcomes) for name, outcomes in bad.items()}


def _flow(text: str) -> dict[str, list[TestOutcome]]:
    """Return what each started test is said to have come to; nothing where no word of it is found."""
    headers = list(_HEADER.finditer(text))
    bounds = [header.start() for header in headers] + [len(text)]
    found: dict[str, list[TestOutcome]] = {}
    for header, end in zip(headers, bounds[1:], strict=True):
        said = text[header.end() : end]
        status = _WHOLE_LINE.search(said) or _LINE_END.search(said)
        outcomes = found.setdefault(_test_id(header), [])
        outcomes += [_IN_FLOW[status["word"].split()[0]]] if status else []
    return found


def _test_id(place: re.Match[str]) -> str:
    """Return `module.Class.test`, from the form of Python 3.11 or the shorter one before it."""
    name, dotted = place["name"], place["dotted"]
    return dotted if dotted.endswith(f".{name}") else f"{dotted}.{name}"
