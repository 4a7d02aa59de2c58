"""Go: `go test`, which tells each event as JSON when it is asked to."""

import json
from collections.abc import Sequence
from types import MappingProxyType

from agentflow.core.check_command import CommandWords, count_variables
from agentflow.core.evidence import TestOutcome, TestResults
from agentflow.core.languages import CheckRule
from agentflow.core.regex import regex
from agentflow.runners.runner import ERROR, FAILED, PASSED, SKIPPED, TestRunner, count_tests

_WORDS = MappingProxyType({"pass": PASSED, "fail": FAILED, "skip": SKIPPED})
_BROKEN = regex(r"FAIL\t(?P<package>\S+) \[(?:build|setup) failed\]")
_VERBOSE = regex(r" *--- (?P<word>PASS|FAIL|SKIP): (?P<test>\S+) \(\d+\.\d+s\)")
_END = regex(r"(?:ok  |FAIL)\t(?P<package>\S+)\t\S+.*")


def ask_for_json(words: CommandWords) -> CommandWords:
    at = count_variables(words) + 2
    is_go = words[at - 2 : at] == ("go", "test") and "-json" not in words
    return (*words[:at], "-json", *words[at:]) if is_go else words


def undo_json(output: str) -> str:
    """Return what `go test -json` printed as `go test -v` would have printed it."""
    rows = ((row, _read_event(row)) for row in output.splitlines(keepends=True))
    return "".join(str(event.get("Output", "")) if event else row for row, event in rows)


def read_go_events(output: str) -> TestResults | None:
    """Return the tests of `go test -json`, a package that did not load among them."""
    events = [event for row in output.splitlines() if (event := _read_event(row))]
    found: dict[str, TestOutcome] = {}
    for event in events:
        outcome, package = _WORDS.get(event["Action"]), event.get("Package", "")
        if outcome and event.get("Test"):
            found[f"{package}::{event['Test']}"] = outcome
        elif outcome is FAILED and not any(
            end is FAILED for test, end in found.items() if test.startswith(f"{package}::")
        ):
            found[f"{package}::*"] = ERROR
    broken = (_BROKEN.fullmatch(row) for row in output.splitlines())
    found |= {f"{row['package']}::*": ERROR for row in broken if row}
    return count_tests(found) if events else None


def _read_event(row: str) -> dict[str, str]:
    if not row.startswith('{"') or '"Action":' not in row:
        return {}
    try:
        event = json.loads(row)
    except ValueError:
        return {}
    return event if isinstance(event.get("Action"), str) else {}


def _read_verbose(rows: Sequence[str]) -> TestResults | None:
    """Return the tests that `go test -v` printed; a result counts once its package has ended."""
    found: dict[str, TestOutcome] = {}
    open_tests: dict[str, TestOutcome] = {}
    for row in rows:
        if test := _VERBOSE.fullmatch(row):
            open_tests[test["test"]] = _WORDS[test["word"].lower()]
        elif end := _END.fullmatch(row):
            found |= {f"{end['package']}::{name}": outcome for name, outcome in open_tests.items()}
            open_tests = {}
    return count_tests(found) if found and any(row.startswith("=== RUN ") for row in rows) else None


GO_TEST = TestRunner(
    name="go",
    language="Go",
    rules=(
        CheckRule(
            command="go test ./...",
            manifest=("go.mod",),
            files="**/*_test.go",
            programs=(("go", "install the Go toolchain"),),
        ),
    ),
    named=r"\bgo test\b",
    program="go test",
    bare=" -vet=off",
    one={"go test": "{} PACKAGE -run FUNCTION"},
    several="|",
    tell=ask_for_json,
    read=_read_verbose,
)
