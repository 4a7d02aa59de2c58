"""Rust: `cargo test`."""

from collections.abc import Sequence
from types import MappingProxyType

from agentflow.core.check_command import CommandWords, count_variables
from agentflow.core.evidence import TestCounts, TestOutcome, TestResults
from agentflow.core.languages import CheckRule
from agentflow.core.regex import regex
from agentflow.runners.runner import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    TestRunner,
    add_counts,
    count_outcomes,
    find_worst,
)

_TARGET = regex(
    r" +(?:Running (?:unittests )?\S+ \(\S*/(?P<crate>[^/]+?)-[0-9a-f]+(?:\.exe)?\)|Doc-tests (?P<doc>\S+))"
)
_BEGIN = regex(r"running (?P<number>\d+) tests?")
_TEST = regex(r"test (?P<test>\S.*?)(?: - should panic)? \.\.\. (?P<word>ok|FAILED|ignored)(?:[,<].*)?")
_END = regex(
    r"test result: (?:ok|FAILED)\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; "
    r"(?P<skipped>\d+) ignored;.*"
)
_BROKEN = regex(r"error: could not compile `(?P<crate>[\w-]+)` \(lib(?: test)?\).*")
_WORDS = MappingProxyType({"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED})
_LINE = regex(r" \(line \d+\)")


def _read(rows: Sequence[str]) -> TestResults | None:
    """Return the tests of `cargo test`; only their numbers where a list and its sum disagree."""
    found: dict[str, list[TestOutcome]] = {}
    numbers: list[TestCounts] = []
    is_whole, crate = True, ""
    begun: list[tuple[str, TestOutcome]] | None = None
    expected = 0
    for row in rows:
        if target := _TARGET.match(row):
            crate = target["crate"] or target["doc"]
        elif begin := _BEGIN.fullmatch(row):
            begun, expected = [], int(begin["number"])
        elif begun is not None and len(begun) < expected and (test := _TEST.fullmatch(row)):
            begun.append((f"{crate}::{_LINE.sub('', test['test'])}", _WORDS[test["word"]]))
        elif begun is not None and (end := _END.fullmatch(row)):
            number = TestCounts(
                passed=int(end["passed"]), failed=int(end["failed"]), skipped=int(end["skipped"])
            )
            is_whole &= count_outcomes(outcome for _, outcome in begun) == number
            numbers.append(number)
            for name, outcome in begun:
                found.setdefault(name, []).append(outcome)
            begun = None
    if not numbers:
        return None
    ends = (end for row in rows if (end := _BROKEN.match(row)))
    broken = {f"{end['crate'].replace('-', '_')}::*": ERROR for end in ends}
    outcomes = {name: find_worst(several) for name, several in found.items()} | broken
    number = add_counts([*numbers, count_outcomes(broken.values())])
    return TestResults(outcomes=outcomes if is_whole else {}, counts=number)


def keep_going(words: CommandWords) -> CommandWords:
    """Return a run of `cargo test` in which a red unit test does not keep the other targets from running."""
    at = count_variables(words)
    is_cargo = words[at : at + 2] == ("cargo", "test") and "--no-fail-fast" not in words
    return (*words[: at + 2], "--no-fail-fast", *words[at + 2 :]) if is_cargo else words


CARGO_TEST = TestRunner(
    name="cargo",
    language="Rust",
    rules=(
        CheckRule(
            command="cargo test",
            manifest=("Cargo.toml",),
            says=r"#\[(?:\w+::)*(?:test|rstest|test_case)\b|\bproptest!",
            programs=(("cargo", "install the Rust toolchain"),),
        ),
    ),
    named=r"\bcargo test\b",
    program="cargo test",
    one={"cargo test": "{} TARGET -- NAME"},
    several=" ",
    tell=keep_going,
    read=_read,
)
