"""Commands, their results, and the checks that they are run for."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from agentflow.core.check_command import CommandPart, join_parts, split_command
from agentflow.core.record import Record


class Command(Record):
    """A command to run: `argv` without a shell, in a folder, within `timeout` seconds."""

    argv: tuple[str, ...]
    cwd: str
    timeout: float
    env: Mapping[str, str] = {}
    """Added to the inherited variables."""
    descriptors: tuple[int, ...] = ()
    """Of ours, that it gets beside its standard streams."""
    most_tasks: int = 2_048
    """Processes and threads that it may have at once; with more it is killed."""


class Execution(Record):
    """A finished command, whoever ran it."""

    command: str
    cwd: str
    exit_code: int | None
    """None when a signal ended it."""
    timed_out: bool
    started_at: str
    seconds: float
    stdout_sha256: str
    """Of everything it printed, stdout and stderr as they came."""
    bytes: int
    output: str
    """Path of the file that holds what it printed."""
    tail: str = ""
    """The last part of the output, decoded."""
    changed: tuple[str, ...] = ()
    """What it changed in a throw-away view of the repository: A, M or D, and the path."""
    notes: tuple[str, ...] = ()
    """Remarks beside its output, for people."""
    sandbox: str = "none"
    """The sandbox level it ran at."""
    stalled: tuple[str, ...] = ()
    """Tests that were ended since they used the processor for far longer than any before them."""
    matched: tuple[str, ...] = ()
    """Functions of which a case has another name in each run, so that it is known by their number."""


class ProgramOutput(Record):
    """The answer of a program that was given input."""

    exit_code: int | None
    """None when a signal ended it."""
    timed_out: bool
    stdout: bytes
    """The first 64 KiB, as of stderr."""
    stderr: bytes
    flooded: bool
    """It printed more than that, or so much that it was stopped."""


class CheckName(StrEnum):
    """The kinds of required check, in the order they are run."""

    LINT = "lint"
    FORMAT = "format"
    """Separate in `verify --quick` only; in a task it is part of `lint`."""
    TYPES = "types"
    BUILD = "build"
    TESTS = "tests"


class By(StrEnum):
    """The chooser of a command; only the program's evidence can pass a gate."""

    PROGRAM = "program"
    AGENT = "agent"


class Side(StrEnum):
    """The version of code or checks: that of the start (`base`) or of now (`final`)."""

    BASE = "base"
    FINAL = "final"


class Fault(StrEnum):
    """A reason to run a failed check again; any other failure counts."""

    TIMEOUT = "timeout"
    FLAKY = "flaky"
    NETWORK = "network"
    RESOURCES = "resources"


class Surface(Record):
    """The paths that belong to the checks, beside those that their names tell."""

    named: tuple[str, ...] = ()
    """By a check, or by the settings of a runner."""
    added: tuple[str, ...] = ()
    """The user's globs of further files."""
    removed: tuple[str, ...] = ()
    """The user's globs of files that do not belong."""
    folders: tuple[str, ...] = ()
    """Dot folders whose Python tests belong; those of other dot folders are run by nobody."""
    observed: dict[str, str] = {}
    """Further paths that belong by what ran, each with the reason."""
    product: dict[str, str] = {}
    """Files beside sources that the product reads, each with the reason."""
    read: tuple[str, ...] = ()
    """Files beside sources that code of the product was seen to read, whoever else does."""
    unread: tuple[str, ...] = ()
    """New files of `product` that no check was seen to read."""
    late: tuple[str, ...] = ()
    """The paths of `observed` and `product` that only a run on the change revealed."""
    own: tuple[str, ...] = ()
    """Names of the standard library and of test runners that the repository itself used before the task."""
    is_watched: bool = False
    """True if every file that the tests opened before the task is known."""
    gap: str = ""
    """Why `is_watched` is False."""
    has_doctests: bool = False
    """True if a check runs examples in docstrings."""
    parted: tuple[str, ...] = ()
    """Python files of the product in which tests were run."""


class Check(Record):
    """A command that must hold in this repository."""

    name: CheckName
    command: str
    """For `bash -c`, in the repository's root."""
    timeout: float
    """Seconds."""
    reason: str
    """Why it is required, for people."""
    missing: str | None = None
    """The program it needs and this machine lacks, with an install hint; then it cannot run."""
    left_out: str | None = None
    """As `missing`, for one part of the command; the other parts run."""
    required: bool = False
    """True if the settings name it under `required`."""

    @property
    def parts(self) -> tuple[CommandPart, ...]:
        """Its command as it is read: what runs in which folder."""
        return split_command(self.command)

    def run_parts(self, parts: Iterable[CommandPart]) -> "Check":
        return self.replace(command=join_parts(parts))

    @property
    def only_looks(self) -> bool:
        """True if it reads the code, runs none of it, and nobody insists on it.

        In six of eleven public repositories a linter was absent, or red before the task: as a caveat it
        forbade 0 for every change, and said nothing about any.
        """
        return self.name in (CheckName.LINT, CheckName.FORMAT, CheckName.TYPES) and not self.required


class TestOutcome(StrEnum):
    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"
    FLAKY = "flaky"
    """Red in one run and passed in another, on one tree."""


RED = (TestOutcome.FAILED, TestOutcome.ERROR)

STALL_SECONDS = 10.0
"""The processor time that a test may use before it can count as stalled."""


def find_longest(seconds: float) -> float:
    """Return the processor time for one test of a proving run, by that of all tests on the current code."""
    return STALL_SECONDS + 1.5 * seconds


class TestCounts(Record):
    __test__ = False

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0
    ids_file: str | None = None
    """Path in the task folder of `<outcome> <test id>` lines."""
    is_printed: bool = False
    """Read from the output alone, where the code under test may write as well."""

    @property
    def ran(self) -> int:
        """Tests that gave a result; a skipped one gave none."""
        return self.passed + self.failed + self.errors

    @property
    def is_mostly_skipped(self) -> bool:
        return self.skipped > self.ran > 0


class Try(Record):
    """An earlier run of a check on the same tree; the check then ran again."""

    fault: Fault
    """Why this run does not count."""
    exit_code: int | None
    timed_out: bool
    started_at: str
    seconds: float
    stdout_sha256: str
    output: str
    """Path in the task folder of what it printed."""


class Evidence(Record):
    """One executed command, bound to the tree it ran on; the record of CONTRACT section 5."""

    id: str
    task_id: str
    iteration: int
    role: str | None
    by: By
    check: CheckName | None
    command: str
    cwd: str
    exit_code: int | None
    """None when it was killed by a signal or never ended."""
    timed_out: bool
    started_at: str
    seconds: float
    stdout_sha256: str
    bytes: int
    tree_before: str | None
    """None for a command an agent chose: nothing is judged by it."""
    tree_after: str | None
    surface: Side
    code: Side
    sandbox: str
    changed: tuple[str, ...] = ()
    """What it changed in a throw-away view of the repository: A, M or D, and the path."""
    tests: TestCounts | None = None
    tries: tuple[Try, ...] = ()
    """The runs of this check on this tree before this one."""
    flaky: tuple[str, ...] = ()
    """The tests with mixed results among all these runs; the check's name where the runner tells none."""
    surroundings: str = ""
    """A fingerprint of what the result depends on beside the tree."""
    reads_file: str | None = None
    """Path in the task folder of what the tests read."""
    taken_from: str = ""
    """The task and record of an earlier run on this tree that is reused."""
    stalled: tuple[str, ...] = ()
    """Tests that were ended since they used the processor for far longer than any before them."""
    matched: tuple[str, ...] = ()
    """Functions of which a case has another name in each run, so that it is known by their number."""
    import_errors: Mapping[str, str] = {}
    """The failing tests that an import error ended, each with that error."""


FinishedRun = Evidence | Try | Execution


def describe_end(run: FinishedRun) -> str:
    if run.timed_out:
        return "timed out"
    return "killed" if run.exit_code is None else f"exit {run.exit_code}"


def describe_counts(tests: TestCounts) -> str:
    broken = "error" if tests.errors == 1 else "errors"
    numbers = (tests.passed, tests.failed, tests.errors, tests.skipped)
    words = ("passed", "failed", broken, "skipped")
    told = (f"{number} {word}" for number, word in zip(numbers, words, strict=True) if number)
    return ", ".join(told if tests.ran else ("no test ran", *told))


def describe_result(
    run: FinishedRun, tests: TestCounts | None, tries: Sequence[FinishedRun] = (), flaky: Sequence[str] = ()
) -> str:
    parts = [f"{describe_end(run)} after {run.seconds:.0f} s" if run.timed_out else describe_end(run)]
    parts += [describe_counts(tests)] if tests and not run.timed_out else []
    before = ", ".join(describe_end(each) for each in tries)
    if tries:
        parts.append(f"flaky ({before} before)" if flaky else f"the same in {len(tries) + 1} runs")
    return ", ".join(parts)


def summarize_evidence(evidence: Evidence) -> str:
    return describe_result(evidence, evidence.tests, evidence.tries, evidence.flaky)


TAIL_CHARS = 8_000
"""How much of the output of a check is kept in mind."""


class TestResults(Record):
    """The tests that a runner told of."""

    __test__ = False

    outcomes: Mapping[str, TestOutcome] = {}
    """Test id to outcome, where the runner tells."""
    counts: TestCounts | None = None
    """The number of tests with each outcome; None where they cannot be counted."""
    import_errors: Mapping[str, str] = {}
    """The failing tests that an import error ended, each with that error."""
    failures: Mapping[str, str] = {}
    """What a report says of failing tests."""


class Reads(Record):
    """The files of the repository that were read in a run, each with the code that read it."""

    by_code: frozenset[tuple[str, str]] = frozenset()
    """A file, and the file whose code read it; empty for a runner or a library."""
    opened: frozenset[str] = frozenset()
    """All files that were opened, whoever did it."""
    gap: str = ""
    """The reason why `opened` may lack some files."""

    def join(self, other: "Reads") -> "Reads":
        return Reads(
            by_code=self.by_code | other.by_code,
            opened=self.opened | other.opened,
            gap=self.gap or other.gap,
        )


class CheckRun(Record):
    """One run of a required check on one tree, from the command to the verdict."""

    check: Check
    outcomes: Mapping[str, TestOutcome] = {}
    """Test id to outcome, where the runner tells; so are the next three."""
    counts: TestCounts | None = None
    import_errors: Mapping[str, str] = {}
    failures: Mapping[str, str] = {}
    ran: Execution | None = None
    """The command, before it is recorded; None when it could not run."""
    evidence: Evidence | None = None
    """Its record; None when it could not run, or nothing is judged by it."""
    findings: Mapping[str, int] = {}
    """For linters and type checkers: message without its line number, to how often it stands."""
    reads: Reads | None = None
    """The files that it read, where that was observed."""
    tries: tuple[tuple[Fault, "CheckRun"], ...] = ()
    """The runs of this check on this tree before this one, and why each did not stand."""
    surroundings: str = ""
    """A fingerprint of what the result depends on beside the tree."""
    taken_from: str = ""
    """The task and record of an earlier run on this tree that stands for this one."""
    tail: str = ""
    """The last lines of the output."""
    hint: str = ""
    """Of a failed run: what the sandbox may have caused."""
    code: Side = Side.FINAL
    """The code that it ran: from before the task, or of now."""
    checks: Side = Side.FINAL
    """The checks that it ran: from before the task, or of now."""
    again: bool = False
    """It repeats, on the current code, the tests that ran without the change."""

    @property
    def green(self) -> bool:
        return self.evidence is not None and self.evidence.exit_code == 0 and not self.tells_red

    @property
    def tells_red(self) -> bool:
        """Return whether a test fails by its name, or where tests have none by the sum of them."""
        only_counted = self.counts if not self.outcomes else None
        counted_red = only_counted is not None and only_counted.failed + only_counted.errors > 0
        return counted_red or bool(self.list_ids(*RED))

    @property
    def ended_red(self) -> bool:
        """Return whether something failed in its run, which may have no record."""
        return self.execution.exit_code != 0 or self.tells_red

    @property
    def tests_with_result(self) -> frozenset[str]:
        return self.list_ids(TestOutcome.PASSED, TestOutcome.FLAKY, *RED)

    @property
    def execution(self) -> Execution:
        assert self.ran is not None
        return self.ran

    @property
    def runs(self) -> tuple["CheckRun", ...]:
        """All its runs on this tree, this one last."""
        return (*(run for _, run in self.tries), self)

    @property
    def flaky(self) -> tuple[str, ...]:
        """The tests with mixed results, or the check as a whole."""
        return self.evidence.flaky if self.evidence else ()

    def list_ids(self, *outcomes: TestOutcome) -> frozenset[str]:
        return frozenset(name for name, outcome in self.outcomes.items() if outcome in outcomes)

    def bind(self, evidence: Evidence) -> "CheckRun":
        """Return the run as the verdict reads it: with its record, and tests of mixed results as flaky."""
        flaky = {test: TestOutcome.FLAKY for test in evidence.flaky if test in self.outcomes}
        bound = self.replace(evidence=evidence, outcomes={**self.outcomes, **flaky}, reads=None, tries=())
        red = bound.list_ids(*RED)
        errors = {test: error for test, error in self.import_errors.items() if test in red}
        return bound.replace(import_errors=errors, failures={})


def select_runs(
    runs: Iterable[CheckRun], *, code: Side = Side.FINAL, checks: Side = Side.FINAL, again: bool = False
) -> tuple[CheckRun, ...]:
    return tuple(run for run in runs if (run.code, run.checks, run.again) == (code, checks, again))


def find_same_check(run: CheckRun, others: Iterable[CheckRun]) -> CheckRun | None:
    return next((each for each in others if each.check.name is run.check.name), None)
