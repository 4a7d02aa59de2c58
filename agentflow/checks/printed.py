"""Tests as runners print them, read strictly: by name where one is printed, else by the runner's own sums."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from agentflow.checks.import_errors import find_import_error
from agentflow.checks.results import Outcomes, count_outcomes, find_worst, make_results
from agentflow.checks.runners import TEST_RUNNERS
from agentflow.core.evidence import TestCounts, TestOutcome, TestResults
from agentflow.core.regex import regex
from agentflow.redact import strip_colours

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome
_GO_WORDS = MappingProxyType({"pass": PASSED, "fail": FAILED, "skip": SKIPPED})
_GO_TEST = regex(r"(?P<start>(?:^|[;&|{(] *)(?:\w+=\S+ )*go test)(?= |$)(?![^;&|]* -json\b)")
_GO_BROKEN = regex(r"FAIL\t(?P<package>\S+) \[(?:build|setup) failed\]")
_GO_VERBOSE = regex(r" *--- (?P<word>PASS|FAIL|SKIP): (?P<test>\S+) \(\d+\.\d+s\)")
_GO_END = regex(r"(?:ok  |FAIL)\t(?P<package>\S+)\t\S+.*")
_CARGO_TARGET = regex(
    r" +(?:Running (?:unittests )?\S+ \(\S*/(?P<crate>[^/]+?)-[0-9a-f]+(?:\.exe)?\)|Doc-tests (?P<doc>\S+))"
)
_CARGO_BEGIN = regex(r"running (?P<number>\d+) tests?")
_CARGO_TEST = regex(r"test (?P<test>\S.*?)(?: - should panic)? \.\.\. (?P<word>ok|FAILED|ignored)(?:[,<].*)?")
_CARGO_END = regex(
    r"test result: (?:ok|FAILED)\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; "
    r"(?P<skipped>\d+) ignored;.*"
)
_CARGO_BROKEN = regex(r"error: could not compile `(?P<crate>[\w-]+)` \(lib(?: test)?\).*")
_CARGO_WORDS = MappingProxyType({"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED})
_LINE = regex(r" \(line \d+\)")
_CTEST = regex(
    r" *\d+/\d+ +Test +#\d+: (?P<test>.+?) \.*(?P<word> +Passed|\*\*\*[A-Za-z]+(?: [A-Za-z]+)*"
    r"(?: \(Disabled\))?) +\d+\.\d+ sec"
)
_CTEST_END = regex(r"\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<number>\d+)")
_CTEST_NONE = regex(r"No tests were found!!!")
_TAP = regex(
    r"(?P<word>not ok|ok)(?: +(?P<number>\d+))?(?: +(?:- )?(?P<test>[^#\n]*?))?(?P<directive> *#.*)?"
)
_TAP_PLAN = regex(r"1\.\.(?P<number>\d+)(?: +#.*)?")
_TAP_BAIL = regex(r"Bail out!.*")
_LEFT_OUT = regex(r"(?i) *# *(?:skip|todo)")
_JEST = regex(r"Tests: +(?P<parts>(?:\d+ \w+, )*)(?P<total>\d+) total")
_VITEST = regex(r" +Tests +(?P<parts>\d+ \w+(?: \| \d+ \w+)*) \((?P<total>\d+)\)")
_NODE = regex(r"[#ℹ] (?P<word>pass|fail|cancelled|skipped|todo) (?P<number>\d+)")  # noqa: RUF001
_MOCHA = regex(r"  (?P<number>\d+) (?P<word>passing|pending|failing)(?: \(\d+\w+\))?")
_BUN = regex(r" (?P<number>\d+) (?P<word>pass|fail|skip|todo)")
_IN_BLOCKS = (_NODE, _MOCHA, _BUN)
_PART = regex(r"(?P<number>\d+) (?P<word>\w+)")
_WORDS: Mapping[str, TestOutcome] = MappingProxyType(
    {
        **dict.fromkeys(("pass", "passed", "passing"), PASSED),
        **dict.fromkeys(("fail", "failed", "failing", "cancelled"), FAILED),
        **dict.fromkeys(("skipped", "skip", "todo", "pending"), SKIPPED),
    }
)
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
        "ok": PASSED,
        "expected": SKIPPED,  # a red test marked so would else turn green
        "unexpected": FAILED,
        "skipped": SKIPPED,
    }
)


def drop_colours(output: str) -> str:
    return strip_colours(output).replace("\r\n", "\n")


def ask_for_json(command: str) -> str:
    """Return a command in which `go test` tells each event as JSON."""
    return _GO_TEST.sub(r"\g<start> -json", command)


def undo_json(output: str) -> str:
    """Return what `go test -json` printed as `go test -v` would have printed it."""
    rows = ((row, _event(row)) for row in output.splitlines(keepends=True))
    return "".join(str(event.get("Output", "")) if event else row for row, event in rows)


def read_go(output: str) -> TestResults | None:
    """Return the tests of `go test -json`, a package that did not load among them."""
    events = [event for row in output.splitlines() if (event := _event(row))]
    found: dict[str, TestOutcome] = {}
    for event in events:
        outcome, package = _GO_WORDS.get(event["Action"]), event.get("Package", "")
        if outcome and event.get("Test"):
            found[f"{package}::{event['Test']}"] = outcome
        elif outcome is FAILED and not any(
            end is FAILED for test, end in found.items() if test.startswith(f"{package}::")
        ):
            found[f"{package}::*"] = ERROR
    broken = (_GO_BROKEN.fullmatch(row) for row in output.splitlines())
    found |= {f"{row['package']}::*": ERROR for row in broken if row}
    return _to_told(found) if events else None


def _event(row: str) -> dict[str, str]:
    if not row.startswith('{"') or '"Action":' not in row:
        return {}
    try:
        event = json.loads(row)
    except ValueError:
        return {}
    return event if isinstance(event.get("Action"), str) else {}


def read_printed(text: str, *, is_reported: bool = False) -> TestResults | None:
    """Return what all runners printed of their tests, in a text without colours; None where none did.

    Those of JavaScript, TAP, and mere sums are left aside where a report tells of tests.
    """
    readers: list[Callable[[list[str]], TestResults | None]] = [_read_go_verbose, _read_cargo, _read_ctest]
    readers += [] if is_reported else [_read_javascript, _read_totals]
    rows = text.splitlines()
    return join_told(each for reader in readers if (each := reader(rows)))


def join_told(parts: Iterable[TestResults]) -> TestResults | None:
    """Return what several runners told as one; None where none told anything."""
    found = list(parts)
    if not found:
        return None
    outcomes = {test: outcome for each in found for test, outcome in each.outcomes.items()}
    numbers = [each.counts for each in found if each.counts]
    errors = {test: error for each in found for test, error in each.import_errors.items()}
    said = {test: text for each in found for test, text in each.failures.items()}
    return TestResults(outcomes=outcomes, counts=_sum(numbers), import_errors=errors, failures=said)


def _sum(numbers: list[TestCounts]) -> TestCounts:
    words = ("passed", "failed", "skipped", "errors")
    return TestCounts(**{word: sum(getattr(each, word) for each in numbers) for word in words})


def _to_told(outcomes: Mapping[str, TestOutcome]) -> TestResults:
    return TestResults(outcomes=outcomes, counts=count_outcomes(outcomes.values()))


def _read_go_verbose(rows: list[str]) -> TestResults | None:
    """Return the tests that `go test -v` printed; a result counts once its package has ended."""
    found: dict[str, TestOutcome] = {}
    open_tests: dict[str, TestOutcome] = {}
    for row in rows:
        if test := _GO_VERBOSE.fullmatch(row):
            open_tests[test["test"]] = _GO_WORDS[test["word"].lower()]
        elif end := _GO_END.fullmatch(row):
            found |= {f"{end['package']}::{name}": outcome for name, outcome in open_tests.items()}
            open_tests = {}
    return _to_told(found) if found and any(row.startswith("=== RUN ") for row in rows) else None


def _read_cargo(rows: list[str]) -> TestResults | None:
    """Return the tests of `cargo test`; only their numbers where a list and its sum disagree."""
    found: dict[str, list[TestOutcome]] = {}
    numbers: list[TestCounts] = []
    is_whole, crate = True, ""
    begun: list[tuple[str, TestOutcome]] | None = None
    expected = 0
    for row in rows:
        if target := _CARGO_TARGET.match(row):
            crate = target["crate"] or target["doc"]
        elif begin := _CARGO_BEGIN.fullmatch(row):
            begun, expected = [], int(begin["number"])
        elif begun is not None and len(begun) < expected and (test := _CARGO_TEST.fullmatch(row)):
            begun.append((f"{crate}::{_LINE.sub('', test['test'])}", _CARGO_WORDS[test["word"]]))
        elif begun is not None and (end := _CARGO_END.fullmatch(row)):
            number = _add_up({word: int(end[word]) for word in ("passed", "failed", "skipped")})
            is_whole &= count_outcomes(outcome for _, outcome in begun) == number
            numbers.append(number)
            for name, outcome in begun:
                found.setdefault(name, []).append(outcome)
            begun = None
    if not numbers:
        return None
    broken = {
        f"{end['crate'].replace('-', '_')}::*": ERROR for row in rows if (end := _CARGO_BROKEN.match(row))
    }
    outcomes = {name: find_worst(several) for name, several in found.items()} | broken
    number = _sum([*numbers, count_outcomes(broken.values())])
    return TestResults(outcomes=outcomes if is_whole else {}, counts=number)


def _read_ctest(rows: list[str]) -> TestResults | None:
    ends = [end for row in rows if (end := _CTEST_END.fullmatch(row))]
    if not ends:
        return _to_told({}) if any(map(_CTEST_NONE.fullmatch, rows)) else None
    found = {test["test"]: _of_ctest(test["word"]) for row in rows if (test := _CTEST.fullmatch(row))}
    failed, number = int(ends[-1]["failed"]), int(ends[-1]["number"])
    red = sum(outcome is FAILED for outcome in found.values())
    if red == failed and len(found) >= number:
        return _to_told(found)
    return TestResults(counts=TestCounts(passed=number - failed, failed=failed))


def _of_ctest(word: str) -> TestOutcome:
    if word.strip() == "Passed":
        return PASSED
    return SKIPPED if "Skipped" in word or "Disabled" in word else FAILED


def _read_totals(rows: list[str]) -> TestResults | None:
    numbers: list[TestCounts] = []
    for runner in TEST_RUNNERS:
        pattern = regex(runner.total) if runner.total else None
        found = [_count_total(each) for row in rows if pattern and (each := pattern.fullmatch(row))]
        numbers += found if runner.adds_up else found[-1:]
    return TestResults(counts=_sum(numbers)) if numbers else None


def _count_total(told: re.Match[str]) -> TestCounts:
    """Return the numbers of a sum; what is in none of its parts has passed."""
    number = {word: int(said or 0) for word, said in told.groupdict().items()}
    failed, errors = number.get("failed", 0), number.get("errors", 0) + number.get("invalid", 0)
    skipped = number.get("skipped", 0) + number.get("omitted", 0)
    total = sum(number.get(word, 0) for word in ("total", "doctests", "properties"))
    passed = number.get("passed") or max(0, total - failed - errors - skipped)
    return TestCounts(passed=passed, failed=failed, skipped=skipped, errors=errors)


def _read_javascript(rows: list[str]) -> TestResults | None:
    """Return what a runner of JavaScript printed, or whatever else prints TAP; the last sum counts."""
    sums = (*(_last(each, rows) for each in (_JEST, _VITEST)), *(_blocks(each, rows) for each in _IN_BLOCKS))
    found = next((each for each in sums if each is not None), None)
    tap = _read_tap(rows)
    return tap or (TestResults(counts=_add_up(found)) if found is not None else None)


def _last(pattern: re.Pattern[str], rows: list[str]) -> dict[str, int] | None:
    found = [sums for row in rows if (sums := pattern.fullmatch(row))]
    if not found:
        return None
    parts = {part["word"]: int(part["number"]) for part in _PART.finditer(found[-1]["parts"])}
    return parts if sum(parts.values()) == int(found[-1]["total"]) else None


def _blocks(pattern: re.Pattern[str], rows: list[str]) -> dict[str, int] | None:
    parts: dict[str, int] = {}
    for row in rows:
        if part := pattern.fullmatch(row):
            parts = {} if part["word"] in ("pass", "passing") else parts
            parts[part["word"]] = int(part["number"])
    return parts if parts.keys() & {"pass", "passing"} else None


def _add_up(parts: Mapping[str, int]) -> TestCounts:
    number = Counter[TestOutcome]()
    for word, times in parts.items():
        number[_WORDS.get(word, ERROR)] += times
    return count_outcomes(number)


def _read_tap(rows: list[str]) -> TestResults | None:
    points = [point for row in rows if (point := _TAP.fullmatch(row))]
    plans = [int(plan["number"]) for row in rows if (plan := _TAP_PLAN.fullmatch(row))]
    if not plans or sum(plans) != len(points) or any(map(_TAP_BAIL.fullmatch, rows)):
        return None
    return _to_told(dict(_points(points)))


def _points(points: Iterable[re.Match[str]]) -> Iterator[tuple[str, TestOutcome]]:
    """Yield each point by its name; of several with one name, all but the first have a number, too."""
    seen = Counter[str]()
    for point in points:
        name = (point["test"] or "").strip() or "point"
        seen[name] += 1
        is_left_out = _LEFT_OUT.match(point["directive"] or "")
        outcome = SKIPPED if is_left_out else PASSED if point["word"] == "ok" else FAILED
        yield name if seen[name] == 1 else f"{name} #{seen[name]}", outcome


def read_verbose_unittest(text: str) -> TestResults:
    """Return the tests of one or several runs; nothing unless the last one printed its summary."""
    pieces = _SUMMARY.split(text)
    if len(pieces) == 1 or _HEADER.search(pieces[-1]):
        return TestResults()
    found, errors = defaultdict[str, list[TestOutcome]](list), defaultdict[str, list[str]](list)
    for part, number in zip(pieces[:-1:2], pieces[1::2], strict=True):
        for name, outcomes in _outcomes(part, ran=int(number)).items():
            found[name].append(find_worst(outcomes))
    blocks = list(_BLOCK.finditer(text))
    for block, end in zip(blocks, [*(each.start() for each in blocks), len(text)][1:], strict=True):
        errors[_test_id(block)].append(find_import_error(_SUMMARY.split(text[block.end() : end])[0]))
    return make_results(found, errors) if found else TestResults()


def _outcomes(part: str, ran: int) -> Outcomes:
    """Return the tests of one run; where none ran, whatever looks like one was printed by something else."""
    first = _BLOCK.search(part)
    bad: Outcomes = {}
    for block in _BLOCK.finditer(part):
        bad.setdefault(_test_id(block), []).append(ERROR if block["kind"] == "ERROR" else FAILED)
    return (_flow(part[: first.start()] if first else part) if ran else {}) | bad


def _flow(text: str) -> Outcomes:
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
    name, dotted = place["name"], place["dotted"]
    return dotted if dotted.endswith(f".{name}") else f"{dotted}.{name}"
