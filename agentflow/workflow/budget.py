"""What a whole task may use up, beside what its roles may."""

from agentflow.core.errors import Exit
from agentflow.core.role import Limits
from agentflow.core.task import Ending, Status, TaskState

_LEAST_COST = 1e-9


def within(limits: Limits, task: TaskState) -> Limits:
    """Return the limits of a run, no wider than what is left of the task's own."""
    budget, usage = task.budget, task.usage
    if budget.tokens is not None:
        left = max(1, budget.tokens - usage.tokens)
        limits = limits.replace(tokens=min(left, limits.tokens or left))
    if budget.cost is not None:
        rest = max(_LEAST_COST, budget.cost - (usage.cost_usd or 0))
        limits = limits.replace(cost=min(rest, limits.cost or rest))
    return limits


def overspent(task: TaskState) -> Ending | None:
    """Return how a task ends that has used up its budget before it was verified."""
    budget, usage = task.budget, task.usage
    if task.verdict is not None and task.verdict.passed:
        return None
    if budget.cost is not None and usage.cost_usd is not None and usage.cost_usd >= budget.cost:
        return ended(f"{usage.cost_usd:.4f} of {budget.cost:g} USD used (--max-cost)")
    if budget.tokens is not None and usage.tokens >= budget.tokens:
        return ended(f"{usage.tokens} of {budget.tokens} tokens used (--max-tokens)")
    return None


def ended(reason: str) -> Ending:
    return Ending(status=Status.LIMIT, exit_code=Exit.LIMIT, reason=f"the task's limit is reached: {reason}")


def cost_unknown(task: TaskState) -> str:
    """Return what to say where a limit of money cannot be held, else nothing."""
    is_unknown = task.usage.tokens > 0 and task.usage.cost_usd is None
    is_told = task.budget.cost is not None and is_unknown
    return "--max-cost was not enforced: the price of the model is unknown" if is_told else ""
