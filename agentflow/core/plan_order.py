"""The steps of a plan: which can be carried out at the same time, and which are done."""

from collections.abc import Iterator
from itertools import combinations, product

from msgspec import UNSET, UnsetType

from agentflow.core.record import Record
from agentflow.core.role import Change, Plan, PlanStep


class StepResult(Record):
    """A finished step whose change is in the files."""

    step: int
    """Its number in the plan."""
    run: int
    change: Change


class ParallelWork(Record):
    """The progress of a plan whose steps several implementers carry out at the same time."""

    at_once: int
    """The most implementers."""
    base: str | None = None
    """The tree that the running implementers began with; None while none runs."""
    again: int | None = None
    """The step that runs again because another step changed the same files."""
    results: tuple[StepResult, ...] = ()
    """The finished steps, in the order in which they were merged."""

    @property
    def done(self) -> frozenset[int]:
        return frozenset(result.step for result in self.results)


MaybeParallel = ParallelWork | UnsetType
ONE_AT_A_TIME = UNSET
"""The value of a task without the option; its saved state then has no such key."""


def describe_results(work: ParallelWork | None) -> str:
    """Return the finished steps as a list for the implementer of the other steps."""
    if work is None or not work.results:
        return ""
    lines = [f"- step {each.step}: {each.change.summary}" for each in work.results]
    return "\n".join(("## Done already, to be left as it is", *lines))


def list_waves(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the steps in groups: those of one group need nothing of each other.

    A step that does not declare what it builds on builds on all before it, and so does one of which no file
    is known or whose files an earlier one touches.
    """
    needed = _find_needed(plan)
    ranks: dict[int, int] = {}
    for number in needed:
        ranks[number] = 1 + max((ranks[each] for each in needed[number]), default=-1)
    last = max(ranks.values(), default=-1)
    return tuple(tuple(number for number, rank in ranks.items() if rank == wave) for wave in range(last + 1))


def find_overlaps(plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield pairs of steps that are declared independent although both touch one file."""
    needed = {number: set(_declare(number, step)) for number, step in enumerate(plan.steps, 1)}
    for number, found in needed.items():
        found.update(*(needed[each] for each in tuple(found)))
        for earlier in range(1, number):
            pair = plan.steps[earlier - 1], plan.steps[number - 1]
            if earlier not in found and pair[0].files and pair[1].files and _may_touch(*pair):
                yield earlier, number


def _find_needed(plan: Plan) -> dict[int, set[int]]:
    """Return the steps that have to come before each step."""
    needed = {number: set(_declare(number, step)) for number, step in enumerate(plan.steps, 1)}
    for (first, one), (second, other) in combinations(enumerate(plan.steps, 1), 2):
        if _may_touch(one, other):
            needed[second].add(first)
    return needed


def _declare(number: int, step: PlanStep) -> Iterator[int]:
    """Yield the earlier steps that a step builds on; all if it names none or names a later one."""
    earlier = range(1, number)
    is_told = step.after is not None and all(each < number for each in step.after)
    return iter(step.after or ()) if is_told else iter(earlier)


def _may_touch(one: PlanStep, other: PlanStep) -> bool:
    """Tell whether two steps may change the same file; a folder stands for all that it holds."""
    if not one.files or not other.files:
        return True
    return any(_holds(*pair) or _holds(*reversed(pair)) for pair in product(one.files, other.files))


def _holds(folder: str, path: str) -> bool:
    folder, path = (each.removeprefix("./").rstrip("/") for each in (folder, path))
    return f"{path}/".startswith(f"{folder}/")
