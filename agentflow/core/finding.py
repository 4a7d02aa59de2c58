"""Findings: what a verdict says of a change, as data; only `wording.py` makes sentences of them."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Self

from agentflow.core.evidence import CheckName
from agentflow.core.record import Record


class Worded(StrEnum):
    """A name for programs, with its words for people; these decide nothing, and no file has them."""

    words: str

    def __new__(cls, name: str, words: str) -> Self:
        member = str.__new__(cls, name)
        member._value_, member.words = name, words
        return member


class FileKind(Worded):
    """The reason why a file is a check file."""

    TESTS = "tests", "tests"
    FIXTURES = "fixtures", "fixtures and snapshots"
    RUNNER = "runner", "settings of a checker"
    START = "start", "code that runs before any test"
    BUILD = "build", "build and CI"
    NAMED = "named", "script, plugin or helper of the checks"
    OBSERVED = "observed", "test code, because only tests use it"
    UNKNOWN = "unknown", "nothing shows that it is product"
    SETTING = "setting", "the user's settings"


class FindingKind(Worded):
    """Everything that a finding can say.

    Its words have places for `check`, for `path` (else path and line come first), and for its subjects: `{0}`
    and `{1}` one by one, `names` all of them, `first` one and how many more, `list` all behind a colon,
    `rest` and `more` the same without the first, `detail` each behind a colon, `all` as sentences, `what` the
    words of the kind named first.
    """

    AS_WORDED = "as_worded", "{0}"
    """A sentence of somebody else: a role's, or an earlier version's."""

    # why a change fails
    NOTHING_CHANGED = "nothing_changed", "nothing was changed"
    NOTHING_ASKED_CHANGED = "nothing_asked_changed", "nothing that was asked for changed: {what}"
    CHECKS_CHANGED = "checks_changed", "the checks were changed"
    CHANGED_LATER = "changed_later", "changed after the checks began: {names}"
    CHANGED_IN_COPY = "changed_in_copy", "changed by a check or a judge in its own copy: {names}"
    LEFT_OUT = "left_out", "{check}: not run"
    CANNOT_RUN = "cannot_run", "{check}: not run ({0})"
    ADDS_SECRET = "adds_secret", "the change adds what looks like a secret: {names}"  # no password
    NOT_TRIED = "not_tried", "{check}: not run with a test that must fail"
    PASSES_ANYHOW = "passes_anyhow", "{check}: passes whatever its tests expect: {names}"
    KEEPS_SILENT = (
        "keeps_silent",
        "{check}: a test that must fail passes: code tampers with the test runner",
    )
    OTHER_TREE = "other_tree", "{check}: {0} ran on another tree"
    OTHER_CHECK = "other_check", "{check}: {0} is not this check, run by the program on the final code"
    TIMED_OUT = "timed_out", "{check}: timed out after {0} s"
    NO_TEST_RAN = "no_test_ran", "{check}: no test ran"
    NOT_RUN_NOW = "not_run_now", "{check}: {names} ran before the task but not after it"
    STILL_FAILING = "still_failing", "{check}: still failing: {names}"
    FAILS_AT_TIMES = "fails_at_times", "{check}: passes at times, and still fails: {names}"
    FEWER_RAN = "fewer_ran", "{check}: {0} tests ran before, {1} now"
    FAILED = "failed", "{check}: exit {0}{more}"
    KILLED = "killed", "{check}: killed{list}"
    NEW_FAILURES = "new_failures", "new failures: {names}"
    NEW_FAILURES_IN = "new_failures_in", "new failures in {check}: {names}"
    VERIFIER_REFUSED = "verifier_refused", "verifier: {all}"
    OWN_TEST_FAILS = "own_test_fails", "verifier: fails: {path}, a test of the verifier: {names}"
    STOPPED_BY_HOOK = "stopped_by_hook", "stop hook, block {0} of {1}: {2}"

    # what a change did to the checks, or in the code against them
    TEST_GONE = "test_gone", "test removed{detail}"
    FEWER_CASES = "fewer_cases", "fewer cases of a test: {0}: {1} before, {2} now"
    SKIPPED = "skipped", "test no longer runs, or may fail{detail}"
    RETURNS_AT_ONCE = "returns_at_once", "test returns before it checks anything: {0}"
    WEAKER = "weaker", "assertion weaker or gone{detail}"
    EXPECTATION = "expectation", "different result expected{detail}"
    OTHER_INPUT = "other_input", "test with other input: {0}"
    OWN_CHECK = "own_check", "the check that the file makes when it runs as a program differs"
    SWALLOWED = "swallowed", "exception swallowed{detail}"
    FORCED_EXIT = "forced_exit", "exit code forced{detail}"
    REWRITTEN = "rewritten", "outcome rewritten by a hook{detail}"
    PATCHED = "patched", "runner, interpreter or product patched{detail}"
    EXCLUDED = "excluded", "less is checked{detail}"
    REFRESHED = "refreshed", "snapshot rewritten"
    LONGER = "longer", "time limit changed{detail}"
    DETECTS = "detects", "code that can tell a test run from another{detail}"
    ON_SETTING = "on_setting", "condition on the environment{detail}"
    KNOWS_INPUTS = "knows_inputs", "code that knows the tests{detail}"
    MEMORISED = "memorised", "code that knows the tests: only for {0}, not for the values next to it"
    SAME_ONLY_FOR = (
        "same_only_for",
        "code that knows the tests: as before for {0}, not for values next to it",
    )
    GONE_NOW = "gone_now", "{first} is gone"
    SKIPPED_NOW = "skipped_now", "{first} is skipped now"
    FAILS_ORIGINALLY = "fails_originally", "{first} still fails with the original files"
    NO_RESULT_ORIGINALLY = "no_result_originally", "{first} gives no result with the original files"
    NO_LONGER_RUNS = "no_longer_runs", "{check} no longer runs: {0}"
    CONFIGURATION_HIDES = "configuration_hides", "{check} with the original configuration: failed{list}"
    CHECK_FILE_CHANGED = "check_file_changed", "{path} changed and counts as {what}"
    CHECK_FILE_NEW = "check_file_new", "{path} is new and counts as {what}"
    SILENCED = "silenced", "{0} keeps {check} from looking"
    SEES_LESS = "sees_less", "{check}: no longer sees an error in {0}, with the change of {rest}"
    PROGRAM_GONE = "program_gone", "{path} was removed: checks may run it"
    PROGRAM_NEW = "program_new", "{path} is new: checks may run it"
    PROGRAM_CHANGED = "program_changed", "{path} changed: checks may run it"

    # what nothing proves, and what would
    ONLY_NAMES = "only_names", "only names differ"
    SAME_PROGRAM = "same_program", "the program does the same as before"
    ONLY_TESTS = "only_tests", "only tests changed"
    READ_DIFF = "read_diff", "{what}: read the diff, if something else was asked for"
    UNREAD_FILE = "unread_file", "nothing that runs here reads this new file: read it, or add a test for it"
    VERSION_UNSEEN = "version_unseen", "no test sees which version is named: install it, run the tests"
    EDITS_UNTRIED = "edits_untried", "out of time to try all small edits of it: read the diff"
    ADD_NOTICING = "add_noticing", "add a test that notices what it does, and passes before and after"
    ADD_FAILING = "add_failing", "add a test that fails without it"
    UNNOTICED = "unnoticed", "no test notices {0}"
    UNNOTICED_BEFORE = "unnoticed_before", "no test notices {0}, in the code that the change took away"
    LET_FAIL = "let_fail", "{path}: let {names} fail when the code is broken"
    LET_EACH_FAIL = "let_each_fail", "{path}: let each new or changed test fail when the code is broken"
    NONE_RAN = "none_ran", "{path}: none of its tests ran: `{0}` finds none there"
    NOTHING_SHOWS = "nothing_shows", "{path}: nothing that runs here shows what it does: read the diff"
    ADD_ANY = "add_any", "add a test that fails without this change and passes with it"

    # what a person should know beside
    SKIPPED_ON_REQUEST = "skipped_on_request", "{check} skipped by {0}: {1} (risk: {2})"
    SAME_BEHAVIOUR = "same_behaviour", "same behaviour: {what}"
    TESTS_FAIL_BROKEN = "tests_fail_broken", "tests only, each fails when the code is broken: {names}"
    ORIGINALS_PASS = "originals_pass", "the checks changed, and the original ones pass as well: {names}"
    FILES_APPEARED = "files_appeared", "new files appeared while the checks ran: {names}"
    NO_TESTS = "no_tests", "tests: not run (this repository has none that agentflow can find)"
    CANNOT_RUN_HERE = "cannot_run_here", "{check} cannot run here: {0}"
    CANNOT_RUN_WHOLE = "cannot_run_whole", "{check} cannot run as a whole here: {0}{more}"
    COULD_NOT_RUN = "could_not_run", "{check} could not run here before the task: {0}"
    SOME_SKIPPED = "some_skipped", "{check}: {0} of {1} skipped"
    UNCOUNTED = "uncounted", "the tests of `{0}` cannot be counted; only its exit code is known"
    PRINTED_NOW = (
        "printed_now",
        "{check}: the counts that it prints are new, and no proof: the change of {names} may print them",
    )
    MATCHED = "matched", "{check}: cases with a new name in each run, known by function and number: {names}"
    KNOWN_TO_FAIL = "known_to_fail", "known to fail: {check}: {names}"
    FAILED_BEFORE = "failed_before", "failed before the task and still fails: {check}{list}"
    MIXED_RESULTS = "mixed_results", "mixed results on the same tree ({0}): {rest}"
    PASSES_WITHOUT = "passes_without", "not evidence, passes without the change: {names}"
    DEPENDENCY_ADDED = "dependency_added", "dependencies in {path}: added {names}"
    DEPENDENCY_MOVED = "dependency_moved", "dependencies in {path}: moved {names}"
    DEPENDENCY_REMOVED = "dependency_removed", "dependencies in {path}: removed {names}"
    UNKNOWN_MANIFEST = "unknown_manifest", "dependencies in {path} are unknown: the file cannot be read"
    AUDIT = "audit", "dependency audit: {0}"
    ANY_RESULT = "any_result", "results that pass whatever a test expects came with the change of {names}"
    DIFFERS_ELSEWHERE = "differs_elsewhere", "fails with another order of sets or temporary folder: {names}"
    PROBES_LATE = "probes_late", "not checked, out of time: would the checks fail without {names}?"
    TOO_DEEP = "too_deep", "cannot be read, or is nested too deep, to see if anything can fail: {names}"
    SEES_NO_ERROR = "sees_no_error", "{check}: sees no error in {names}, as before the task"
    MUTANTS_LATE = "mutants_late", "not checked, out of time: would a test notice something else in {names}?"
    LOADS_NO_OTHER = (
        "loads_no_other",
        "not checked, the program does not start with any small edit of it: {names}",
    )
    NONE_FAILS_WITHOUT = "none_fails_without", "no test fails without this change"
    MUTANTS_KILLED = "mutants_killed", "{0} of {1} mutants killed"
    MUTANTS_UNTRIED = "mutants_untried", "{0} of {1} mutants killed, {2} not tried for want of time"
    UNSEEN = "unseen", "new or changed but ignored by git, so no check saw it: {names}"
    VERIFIER_DOUBTS = "verifier_doubts", "every check passes; the verifier objects without evidence: {all}"
    RIVAL = "rival", "another fix also passes: {0}"
    NO_REVIEW = "no_review", "no review counts: the reviewer gave no valid result"
    CLAIMED_EQUIVALENT = "claimed_equivalent", "the implementer says that no test can notice {0}: {1}"
    NO_PROVING_ROUND = "no_proving_round", "no proving round: {names} is used"
    ROUND_UNDONE = "round_undone", "proving round {0} was undone, the change before it stands: {1}"

    def of(
        self, *subjects: str, check: CheckName | None = None, path: str = "", line: int | None = None
    ) -> "Finding":
        return Finding(kind=self, check=check, path=path, line=line, subjects=subjects)

    def about(
        self, names: Iterable[str], *, check: CheckName | None = None, path: str = ""
    ) -> tuple["Finding", ...]:
        """Return the finding about some names; none where there are none."""
        subjects = tuple(names)
        return (self.of(*subjects, check=check, path=path),) if subjects else ()


def format_span(path: str, line: int | None, end: int | None = None) -> str:
    return path + (f":{line}" if line is not None else "") + (f"-{end}" if end and end > (line or 0) else "")


class Finding(Record, omit_defaults=True):
    """One thing that a verdict says: what, of which check, where, and about what."""

    kind: FindingKind
    check: CheckName | None = None
    path: str = ""
    line: int | None = None
    """In the file as it is now; None where it is gone, or the whole file is meant."""
    end: int | None = None
    """The last of several lines."""
    subjects: tuple[str, ...] = ()
    """Names as the code has them, numbers, or somebody's own words."""
    is_sure: bool = True
    """False where honest code may look like this too."""

    @property
    def place(self) -> str:
        return format_span(self.path, self.line, self.end)

    def is_among(self, recorded: Collection["Finding"]) -> bool:
        """Return whether a record has it; a sentence of an earlier version says what it names."""
        named = [text for text in (self.path, *self.subjects[:1]) if text]
        older = (each.subjects for each in recorded if each.kind is FindingKind.AS_WORDED)
        return self in recorded or any(all(name in text for name in named) for text, *_ in older)
