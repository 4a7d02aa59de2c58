"""The budget of a batch: shares that are set aside, and what is given back."""

from hypothesis import given
from hypothesis import strategies as st

from agentflow.batch.run import SharedBudget
from agentflow.core.messages import Usage
from agentflow.core.pending import Budget


def test_tasks_share_what_is_left_evenly_and_give_back_what_they_did_not_use() -> None:
    shared = SharedBudget(Budget(tokens=900))
    first = shared.reserve(Budget(), waiting=3)
    assert first is not None
    assert first.tokens == 300
    assert shared.reserve(Budget(tokens=700), waiting=2) is None
    assert not shared.is_idle
    shared.settle(first, Usage(input=100))
    assert shared.is_idle
    assert shared.reserve(Budget(tokens=700), waiting=2) == Budget(tokens=700)


def test_without_a_limit_a_task_keeps_its_own_and_counts_what_earlier_runs_used() -> None:
    free = SharedBudget(Budget())
    free.spend(Usage(input=10))
    assert free.reserve(Budget(cost=2), waiting=1) == Budget(cost=2)
    spent = SharedBudget(Budget(cost=1, tokens=100))
    spent.spend(Usage(input=60, cost_usd=0.25))
    assert spent.reserve(Budget(), waiting=1) == Budget(cost=0.75, tokens=40)


@given(limit=st.integers(1, 10_000), uses=st.lists(st.integers(0, 4_000), min_size=1, max_size=20))
def test_what_is_set_aside_is_never_more_than_the_budget(limit: int, uses: list[int]) -> None:
    shared, used = SharedBudget(Budget(tokens=limit)), 0
    for number, wanted in enumerate(uses):
        reserved = shared.reserve(Budget(tokens=wanted or None), waiting=len(uses) - number)
        if reserved is not None and reserved.tokens is not None:
            assert used + reserved.tokens <= limit
            used += min(wanted, reserved.tokens)
            shared.settle(reserved, Usage(input=min(wanted, reserved.tokens)))
