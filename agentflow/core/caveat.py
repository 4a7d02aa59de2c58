"""The words that lessen a pass, and what each of them means to a person."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Caveat(StrEnum):
    """Why a change that passed ends with exit code 4; a word of the result, some with a check."""

    UNPROVED = "unproved"
    ALREADY_RED = "already_red"
    FLAKY = "flaky"
    CHECK_SKIPPED = "check_skipped"
    CHECK_NOT_RUN = "check_not_run"
    TESTS_NOT_COUNTED = "tests_not_counted"
    MOSTLY_SKIPPED = "mostly_skipped"
    GREEN_WHEN_BROKEN = "green_when_broken"
    DEPENDS_ON_SURROUNDINGS = "depends_on_surroundings"
    NOT_ALL_TRIED = "not_all_tried"
    KNOWS_THE_TESTS = "knows_the_tests"
    DEPENDENCIES = "dependencies"
    NOT_REVIEWED = "not_reviewed"
    REVIEWER_DISAGREES = "reviewer_disagrees"
    VERIFIER_DISAGREES = "verifier_disagrees"
    ENVIRONMENT_BLOCKED = "environment_blocked"

    def of(self, check: str) -> str:
        """Return the caveat of one check, as the result says it."""
        return f"{self}:{check}"

    def stands_in(self, said: str) -> bool:
        """Tell whether a word of a result is this caveat, of whatever check."""
        return said.partition(":")[0] == self


_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        Caveat.UNPROVED: "no test fails without the change, or a part of it, and passes with it: "
        "see what would prove it",
        Caveat.ALREADY_RED: "some checks were red before the task and still are",
        Caveat.FLAKY: "a check failed and passed on one tree: what passed by chance proves little",
        Caveat.CHECK_SKIPPED: "a person said that it need not hold",
        Caveat.CHECK_NOT_RUN: "this machine cannot run it: see the notes",
        Caveat.TESTS_NOT_COUNTED: "nobody can count the tests: only an exit code tells of them",
        Caveat.MOSTLY_SKIPPED: "more tests were skipped than run",
        Caveat.KNOWS_THE_TESTS: "lines of the new code look as if they knew the tests: see the notes",
        Caveat.GREEN_WHEN_BROKEN: "these tests pass with the changed code broken, too: see the notes",
        Caveat.DEPENDS_ON_SURROUNDINGS: "a proving test fails in other surroundings: see the notes",
        Caveat.NOT_ALL_TRIED: "the tests take too long to try all that has to fail: see the notes",
        Caveat.DEPENDENCIES: "what the change depends on now is for a person to look at: see the notes",
        Caveat.NOT_REVIEWED: "its class asks for a review, which --no-review left out",
        Caveat.REVIEWER_DISAGREES: "the checks hold, but the reviewer objected without naming a line",
        Caveat.VERIFIER_DISAGREES: "the checks hold, but the verifier did not call it verified",
        Caveat.ENVIRONMENT_BLOCKED: "this machine cannot run the tests: "
        "nothing was changed, nothing is verified",
    }
)


def meaning(said: str) -> str:
    """Return what a word of a result means; empty for a word that another version wrote."""
    return _MEANINGS.get(said.partition(":")[0], "")
