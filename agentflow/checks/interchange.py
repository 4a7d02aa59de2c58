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


class JunitCase(Record):
    owner: str
    name: str
    outcome: TestOutcome
    message: str = ""
    seconds: float = 0


class JunitSuite(Record):
    name: str
    cases: tuple[JunitCase, ...]
    seconds: float = 0
    printed: str = ""


def write_junit(title: str, suites: Sequence[JunitSuite]) -> str:
    every = [case for suite in suites for case in suite.cases]
    seconds = sum(suite.seconds for suite in suites)
    top = ET.Element("testsuites", {"name": title, **_count(every, seconds)})
    for suite in suites:
        skipped = str(sum(case.outcome is TestOutcome.SKIPPED for case in suite.cases))
        numbers = {**_count(suite.cases, suite.seconds), "skipped": skipped}
        element = ET.SubElement(top, "testsuite", {"name": suite.name, **numbers})
        for case in suite.cases:
            known = {"classname": make_visible(case.owner), "name": make_visible(case.name)}
            shown = ET.SubElement(element, "testcase", {**known, "time": f"{case.seconds:.3f}"})
            if case.outcome is not TestOutcome.PASSED:
                is_red = case.outcome is not TestOutcome.SKIPPED
                kind = {"type": str(case.outcome)} if is_red else {}
                said = make_visible(case.message or case.outcome)
                ET.SubElement(shown, _ELEMENT[case.outcome], {"message": said, **kind})
        if suite.printed:
            ET.SubElement(element, "system-out").text = make_visible(suite.printed)
    ET.indent(top)
    return ET.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _count(cases: Sequence[JunitCase], seconds: float) -> dict[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(outcomes.count(TestOutcome.FAILED)),
        "errors": str(outcomes.count(TestOutcome.ERROR)),
        "time": f"{seconds:.3f}",
    }


def to_junit_xml(ran: Sequence[Ran]) -> str:
    """Return a test suite for each check: its tests where the runner tells them, else the check as one."""
    suites = [
        JunitSuite(
            name=each.check.name,
            cases=tuple(_cases(each)),
            seconds=each.shown.execution.seconds if each.shown else 0,
            printed=each.shown.execution.tail if each.shown and not each.holds else "",
        )
        for each in ran
    ]
    return write_junit("agentflow verify", suites)


def _cases(ran: Ran) -> Iterator[JunitCase]:
    whole = JunitCase(
        owner=ran.check.name, name=ran.check.command, outcome=TestOutcome.PASSED, message=ran.why
    )
    if ran.shown is None:
        yield whole.replace(outcome=TestOutcome.SKIPPED if ran.holds else TestOutcome.ERROR)
        return
    for name, outcome in sorted(ran.shown.outcomes.items()):
        owner, _, last = name.rpartition("::") if "::" in name else name.rpartition(".")
        owner = owner or ran.check.name
        yield JunitCase(owner=owner, name=last, outcome=outcome, message=ran.why)
    if not ran.shown.outcomes or (not ran.holds and not {*RED} & {*ran.shown.outcomes.values()}):
        yield whole.replace(outcome=TestOutcome.PASSED if ran.holds else TestOutcome.FAILED)


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
