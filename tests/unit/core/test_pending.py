import pytest

from agentflow.core.errors import UsageError
from agentflow.core.pending import (
    APPROVED,
    Answer,
    ApprovalTerms,
    Pending,
    PendingKind,
    add_approval,
    read_answer,
    read_decision_form,
)


@pytest.mark.parametrize("kind", sorted(APPROVED))
@pytest.mark.parametrize("said", ["A", "y", "no", ""])
def test_no_words_answer_what_is_approved_or_denied(kind: PendingKind, said: str) -> None:
    item = Pending(id="checks-1", kind=kind, tool=None, input={}, options=(), asked_at="")
    with pytest.raises(UsageError, match="approved or denied"):
        read_answer(item, [said])


ITEM = Pending(id="p1-1", kind=PendingKind.APPROVAL, tool="Bash", input={"a": 1}, options=(), asked_at="")
OTHER = {"a": 2}


@pytest.mark.parametrize(
    ("answers", "left", "by"),
    [
        ([("ann", None), ("bob", None)], 0, "ann, bob"),
        ([("ann", None), ("ANN ", None)], 1, ""),
        ([("ann", OTHER), ("bob", None)], 0, "ann, bob"),
        ([("ann", None), ("bob", OTHER)], 1, ""),
        ([("ann", OTHER), ("bob", {"a": 1})], 1, ""),
        ([("ann", OTHER), ("ann", {"a": 3})], 1, ""),
    ],
)
def test_so_many_names_have_to_stand_under_the_same_input(
    answers: list[tuple[str, dict[str, int] | None]], left: int, by: str
) -> None:
    item, decided = ApprovalTerms(needed=2).apply(ITEM), None
    for name, given in answers:
        item, decided = add_approval(item, Answer(approved=True, by=name, input=given))
    assert item.needed - len(item.given) == left
    assert (decided.by if decided else "") == by
    assert decided is None or (decided.input or ITEM.input) == item.input


def test_one_denial_is_enough_and_a_question_takes_one_answer() -> None:
    item, denied = ApprovalTerms(needed=3).apply(ITEM), Answer(approved=False, by="ann")
    assert add_approval(item, denied) == (item, denied)
    asked = ApprovalTerms(needed=3, seconds=1).apply(ITEM.replace(kind=PendingKind.QUESTION))
    assert (asked.needed, asked.expires_at) == (1, None)


def test_a_form_without_a_name_is_none_of_several_people_and_the_way_it_came_is_no_name() -> None:
    item = ApprovalTerms(needed=2).apply(ITEM)
    unnamed = read_decision_form({"decision": "approve"}, "in the editor")
    assert unnamed is not None
    assert unnamed.author == "a person in the editor"
    with pytest.raises(UsageError, match="2 people have to approve"):
        add_approval(item, unnamed)
    for via in ("in the editor", "asked by the MCP client"):
        said = read_decision_form({"decision": "approve", "name": "ann"}, via)
        assert said is not None
        item, decided = add_approval(item, said)
        assert (decided, len(item.given), item.given[0].author) == (None, 1, f"ann {via}")
