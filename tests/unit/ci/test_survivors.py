"""What a pull request's mutants come to where each has to be killed."""

import pytest

from agentflow.api.mutation import DiffMutants, describe_mutation
from agentflow.ci.review import PullRequestReview, list_survivors, require_killed, to_annotation
from agentflow.core.errors import Exit
from agentflow.core.verdict import MutantEnd, MutantResult

KILLED, SURVIVED, LATE = MutantEnd.KILLED, MutantEnd.SURVIVED, MutantEnd.NOT_TRIED


def a_mutant(outcome: MutantEnd, *, is_strong: bool = True) -> MutantResult:
    return MutantResult(
        path="a.py",
        line=3,
        before="x",
        after="y",
        operator="call left out",
        edit="x → y",
        is_strong=is_strong,
        outcome=outcome,
    )


@pytest.mark.parametrize(
    ("mutants", "unread", "is_open", "said"),
    [
        ((a_mutant(KILLED),), (), False, "1 of 1 mutants killed"),
        ((a_mutant(KILLED), a_mutant(SURVIVED)), (), True, "1 of 2 mutants survive. "),
        ((a_mutant(KILLED), a_mutant(SURVIVED, is_strong=False)), (), False, "1 of 2 mutants survive. "),
        ((a_mutant(KILLED), a_mutant(LATE)), (), False, "1 of 1 mutants killed; 1 of 2 not tried"),
        ((a_mutant(LATE),), (), True, "0 of 0 mutants killed; 1 of 1 not tried"),
        ((a_mutant(MutantEnd.INVALID),), (), True, "0 of 0 mutants killed"),
        ((), ("a.py:3",), True, "No changed code to try"),
        ((), (), False, "No changed code to try"),
    ],
)
def test_what_survives_or_was_not_tried_at_all_fails(
    mutants: tuple[MutantResult, ...], unread: tuple[str, ...], is_open: bool, said: str
) -> None:
    found = DiffMutants(mutants=mutants, unread=unread)
    assert describe_mutation(found)[-1].text.startswith(said)
    for code in (Exit.VERIFIED, Exit.CAVEAT, Exit.NOT_VERIFIED, Exit.LIMIT):
        recorded = PullRequestReview(
            exit_code=code, remarks=tuple(list_survivors([a_mutant(SURVIVED)])), text="t"
        )
        review = require_killed(recorded, found)
        is_worse = is_open and code in (Exit.VERIFIED, Exit.CAVEAT)
        assert review.exit_code == (Exit.NOT_VERIFIED if is_worse else code)
        survived = [each for each in mutants if each.outcome is SURVIVED]
        assert [each.line for each in review.remarks] == [each.line for each in survived]  # not the record's


def test_a_weak_survivor_is_a_notice_and_a_strong_one_a_warning() -> None:
    mutants = (a_mutant(SURVIVED, is_strong=False), a_mutant(SURVIVED))
    place = "file=a.py,line=3,title=agentflow mutant_survived::x → y: no test notices"
    assert [to_annotation(each) for each in list_survivors(mutants)] == [
        f"::warning {place}",
        f"::notice {place}",
    ]
