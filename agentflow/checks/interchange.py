"""Results of checks in the formats that other programs read: JUnit XML and SARIF 2.1.0."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from agentflow import __version__
from agentflow.checks.results import list_findings
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, TestOutcome
from agentflow.core.record import Record
from agentflow.redact import make_visible

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ELEMENT = {TestOutcome.FAILED: "failure", TestOutcome.ERROR: "error", TestOutcome.SKIPPED: "skipped"}


class Ran(Record):
    """A check and what came of it; None where it was not run."""

    check: Check
    shown: CheckRun | None
    holds: bool
    output: str = ""
    """All that it printed."""
    why: str = ""
    """The reason why the check was not run."""


def to_junit_xml(ran: Sequence[Ran]) -> str:
    """Return a test suite for each check: its tests where the runner tells them, else the check as one."""
    told = [(each, list(_cases(each)), each.shown.execution.seconds if each.shown else 0) for each in ran]
    every = [case for _, cases, _ in told for case in cases]
    took = sum(seconds for *_, seconds in told)
    top = ET.Element("testsuites", {"name": "agentflow verify", **_numbers(every, took)})
    for each, cases, seconds in told:
        numbers = {**_numbers(cases, seconds), "skipped": str(_how_many(cases, TestOutcome.SKIPPED))}
        suite = ET.SubElement(top, "testsuite", {"name": each.check.name, **numbers})
        for name, outcome in cases:
            _case(suite, each, name, outcome)
        if each.shown is not None and not each.holds:
            ET.SubElement(suite, "system-out").text = make_visible(each.shown.execution.tail)
    ET.indent(top)
    return ET.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _numbers(cases: Sequence[tuple[str, TestOutcome]], seconds: float) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(_how_many(cases, TestOutcome.FAILED)),
        "errors": str(_how_many(cases, TestOutcome.ERROR)),
        "time": f"{seconds:.3f}",
    }


def _how_many(cases: Sequence[tuple[str, TestOutcome]], wanted: TestOutcome) -> int:
    return sum(outcome is wanted for _, outcome in cases)


def _cases(ran: Ran) -> Iterator[tuple[str, TestOutcome]]:
    if ran.shown is not None and ran.shown.outcomes:
        yield from sorted(ran.shown.outcomes.items())
    if ran.shown is None:
        yield ran.check.command, TestOutcome.SKIPPED if ran.holds else TestOutcome.ERROR
    elif not ran.shown.outcomes or (not ran.holds and not {*RED} & {*ran.shown.outcomes.values()}):
        yield ran.check.command, TestOutcome.PASSED if ran.holds else TestOutcome.FAILED


def _case(suite: ET.Element, ran: Ran, name: str, outcome: TestOutcome) -> None:
    owner, _, last = name.rpartition("::") if "::" in name else name.rpartition(".")
    is_test = name != ran.check.command
    case = ET.SubElement(
        suite,
        "testcase",
        classname=make_visible(owner) if is_test and owner else ran.check.name,
        name=make_visible(last if is_test else name),
        time="0",
    )
    if outcome is TestOutcome.PASSED:
        return
    kind = {} if outcome is TestOutcome.SKIPPED else {"type": str(outcome)}
    ET.SubElement(case, _ELEMENT[outcome], {"message": make_visible(ran.why or outcome), **kind})


class SarifResult(Record):
    """One thing to look at, in the words of SARIF."""

    rule: str
    message: str
    path: str = ""
    """Relative to the repository's root; empty where it is about no file."""
    line: int = 0
    """0 for none."""
    level: str = "error"
    mark: str = ""
    """The fingerprint by which a later run finds the same result."""


def make_sarif(rules: Mapping[str, str], results: Iterable[SarifResult]) -> dict[str, Any]:
    told = [{"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()]
    driver = {"name": "agentflow", "version": __version__, "rules": told}
    run = {"tool": {"driver": driver}, "results": list(map(_to_result, results))}
    return {"version": "2.1.0", "$schema": _SCHEMA, "runs": [run]}


def _to_result(found: SarifResult) -> dict[str, Any]:
    told: dict[str, Any] = {"ruleId": found.rule, "level": found.level, "message": {"text": found.message}}
    if found.path:
        start = "file://" if found.path.startswith("/") else ""
        region = {"region": {"startLine": found.line}} if found.line else {}
        place = {"artifactLocation": {"uri": start + quote(found.path)}, **region}
        told["locations"] = [{"physicalLocation": place}]
    return {**told, **({"partialFingerprints": {"pathAndMessage/v1": found.mark}} if found.mark else {})}


def convert_to_sarif(ran: Sequence[Ran]) -> dict[str, Any]:
    """Return what linters, type checkers and builds complain of; a check that only failed is one result."""
    rules = {str(name): f"the {name} check" for name in CheckName}
    return make_sarif(rules, (result for each in ran for result in _results(each)))


def _results(ran: Ran) -> Iterator[SarifResult]:
    if ran.holds:
        return
    rule = str(ran.check.name)
    output = "" if ran.check.name is CheckName.TESTS else ran.output
    found = [*list_findings(output)]
    for path, line, text in found:
        message = make_visible(text)
        yield SarifResult(
            rule=rule,
            message=message,
            path=path.removeprefix("./"),
            line=max(1, line),
            mark=hashlib.sha256(f"{path}\n{message}".encode()).hexdigest(),
        )
    if not found:
        yield SarifResult(rule=rule, message=f"{ran.check.command}: {ran.why or 'failed'}")
