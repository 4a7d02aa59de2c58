"""JavaScript: jest, Vitest, node:test, mocha, Bun, Deno, scripts of package.json; and whatever prints TAP."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from agentflow.core.evidence import TestCounts, TestOutcome, TestResults
from agentflow.core.regex import regex
from agentflow.runners.runner import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    TestRunner,
    count_outcomes,
    count_tests,
)

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


def _read(rows: Sequence[str]) -> TestResults | None:
    """Return what was printed in any of these ways; names count before sums, the last sum before others."""
    sums = (*(_last(each, rows) for each in (_JEST, _VITEST)), *(_blocks(each, rows) for each in _IN_BLOCKS))
    found = next((each for each in sums if each is not None), None)
    tap = _read_tap(rows)
    return tap or (TestResults(counts=_add_up(found)) if found is not None else None)


def _last(pattern: re.Pattern[str], rows: Sequence[str]) -> dict[str, int] | None:
    found = [sums for row in rows if (sums := pattern.fullmatch(row))]
    if not found:
        return None
    parts = {part["word"]: int(part["number"]) for part in _PART.finditer(found[-1]["parts"])}
    return parts if sum(parts.values()) == int(found[-1]["total"]) else None


def _blocks(pattern: re.Pattern[str], rows: Sequence[str]) -> dict[str, int] | None:
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
    return count_outcomes(number.elements())


def _read_tap(rows: Sequence[str]) -> TestResults | None:
    points = [point for row in rows if (point := _TAP.fullmatch(row))]
    plans = [int(plan["number"]) for row in rows if (plan := _TAP_PLAN.fullmatch(row))]
    # ava tells of what was left over, such as a rejection that nothing handled, behind its plan
    is_whole = len(points) >= sum(plans) and all(each["word"] != "ok" for each in points[sum(plans) :])
    if not plans or not is_whole or any(map(_TAP_BAIL.fullmatch, rows)):
        return None
    return count_tests(dict(_points(points)))


def _points(points: Iterable[re.Match[str]]) -> Iterator[tuple[str, TestOutcome]]:
    """Yield each point by its name; of several with one name, all but the first have a number, too."""
    seen = Counter[str]()
    for point in points:
        name = (point["test"] or "").strip() or "point"
        seen[name] += 1
        is_left_out = _LEFT_OUT.match(point["directive"] or "")
        outcome = SKIPPED if is_left_out else PASSED if point["word"] == "ok" else FAILED
        yield name if seen[name] == 1 else f"{name} #{seen[name]}", outcome


_PLACE = r"(?:node (?:--[\w=-]+ )*)?(?:(?:\./)?node_modules/(?:\.bin/|jest/bin/|vitest/))?"
STARTS_NODE = regex(r"\b(?:node|npm|npx|pnpm|yarn|bun|mocha|jest|vitest)\b")
JEST = TestRunner(
    name="jest",
    program=rf"{_PLACE}jest(?:\.m?js)?",
    report="--json --outputFile={place}.json",
    one={"jest": "{} FILE -t NAME"},
    several="|",
)
VITEST = TestRunner(
    name="vitest",
    program=rf"{_PLACE}vitest(?:\.m?js)?",
    report="--reporter=default --reporter=json --outputFile.json={place}.json",
    one={"vitest": "{} FILE -t NAME"},
    several="|",
)
MOCHA = TestRunner(
    name="mocha",
    program=rf"{_PLACE}_?mocha(?:\.js)?",
    report="--reporter {folder}/mocha.cjs",
    prints=r" (?:--reporter|-R)[ =](?:spec|dot|min|list|progress|nyan|landing|tap)\b",
    one={"mocha": "{} FILE -g NAME"},
    several="|",
)
NODE_TEST = TestRunner(
    name="node",
    program=r"(?:node|tsx)(?: --?[\w-]+(?:[= ][\w./@-]+)?)*? --test",
    one={"node --test": "{} FILE"},
    several=" ",
)
TAPE = TestRunner(name="tape", program=rf"{_PLACE}(?:tape|tap)", one={"tape": "{} FILE"}, several=" ")
UVU = TestRunner(
    name="uvu",
    program=rf"{_PLACE}uvu",
    total=r"(?:[•✘] )+ *\((?P<passed>\d+) / (?P<total>\d+)\)",
    adds_up=True,
)
AVA = TestRunner(name="ava", program=rf"{_PLACE}ava", report="--tap", one={"ava": "{} FILE"}, several=" ")
PACKAGE_SCRIPTS = TestRunner(
    name="scripts of package.json",
    one={
        "npm test": "{} -- FILE",
        **dict.fromkeys(("pnpm test", "yarn test", "bun run test"), "{} FILE"),
    },
    read=_read,
    is_reported=True,
)
BUN_TEST = TestRunner(
    name="bun",
    program="bun test",
    report="--reporter=junit --reporter-outfile={place}.xml",
    one={"bun test": "{} FILE -t NAME"},
    several="|",
)
DENO_TEST = TestRunner(
    name="deno",
    program="deno test",
    report="--junit-path={place}.xml",
    total=r"(?:ok|FAILED) \| (?P<passed>\d+) passed(?: \([^)]*\))? \| (?P<failed>\d+) failed"
    r"(?: \([^)]*\))?(?: \| (?P<skipped>\d+) ignored)?.*",
    one={"deno test": "{} FILE --filter NAME"},
)
