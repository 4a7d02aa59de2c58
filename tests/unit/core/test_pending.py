import pytest

from agentflow.core.errors import UsageError
from agentflow.core.pending import APPROVED, Pending, PendingKind, read_answer


@pytest.mark.parametrize("kind", sorted(APPROVED))
@pytest.mark.parametrize("said", ["A", "y", "no", ""])
def test_no_words_answer_what_is_approved_or_denied(kind: PendingKind, said: str) -> None:
    item = Pending(id="checks-1", kind=kind, tool=None, input={}, options=(), asked_at="")
    with pytest.raises(UsageError, match="approved or denied"):
        read_answer(item, [said])
