"""Would a test notice if the change were otherwise? Its mutants, tried in copies of its tree."""

import time
from collections import defaultdict
from collections.abc import Mapping
from functools import partial

from anyio import to_thread

from agentflow.checks.run import Shown
from agentflow.core.events import Probing
from agentflow.core.evidence import RED, Check, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.core.verdict import MutantEnd, MutantResult
from agentflow.mutants.operators import Grade, Mutant, list_mutants
from agentflow.mutants.trial import TriedMutant, order_mutants
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.probes.hunks import split_change
from agentflow.verdict.probes.probe import ProbeContext
from agentflow.verdict.runner import Place, run_apart
from agentflow.verdict.target_tests import narrow_quietly

_SECONDS = 12.0
"""The time of all mutants beside that of one run of the tests."""
_LEAST_LIMIT = 10.0
_PATIENCE = 5
_AT_ONCE = 2
_MOST = 80
_MOST_KILLERS = 5


class MutationPlan(Record):
    """The mutants of a change, and the tests that may notice them."""

    tree: str
    texts: Mapping[str, str]
    mutants: tuple[Mutant, ...]
    """In the order in which they are tried."""
    checks: tuple[tuple[Check, frozenset[str]], ...]
    """The proving tests alone, then all: a mutant that the first let live is tried with the next.

    Each with its tests that pass without a mutant; none where a runner tells no names.
    """
    seconds: float


def plan_mutants(context: ProbeContext) -> MutationPlan | None:
    """Return what to try of a change whose checks all hold; None where there is nothing."""
    final = context.tests
    if final is None or final.evidence is None or context.case.is_blocked(final):
        return None
    product = context.list_product_files()
    lines = defaultdict[str, set[int]](set)
    for hunk in (hunk for piece in split_change(product, _MOST) for hunk in piece.hunks):
        lines[hunk.path].update(range(hunk.new[0] + 1, hunk.new[1] + 1))
    found = (list_mutants(each.path, each.after, lines[each.path]) for each in product if each.after)
    mutants = order_mutants(mutant for each in found for mutant in each or ())
    if not mutants:
        return None
    limit = min(final.check.timeout, max(_LEAST_LIMIT, _PATIENCE * final.evidence.seconds))
    whole = final.check.replace(timeout=limit)
    return MutationPlan(
        tree=context.trees[1],
        texts={each.path: each.after for each in product},
        mutants=mutants[:_MOST],
        checks=tuple(
            {narrow_quietly(whole, context.proving): context.proving, whole: context.passed}.items()
        ),
        seconds=_SECONDS + final.evidence.seconds,
    )


async def try_plan(context: JudgeContext, task: TaskState, plan: MutationPlan) -> tuple[MutantResult, ...]:
    """Return the outcome of each mutant; none begins when the time is over."""
    queue, found = list(plan.mutants), dict[Mutant, TriedMutant]()
    end = time.monotonic() + plan.seconds

    async def work() -> None:
        async with context.checking.copy(task, plan.tree) as place:
            while queue and time.monotonic() < end:
                context.checking.emit(Probing(done=len(plan.mutants) - len(queue), total=len(plan.mutants)))
                mutant = queue.pop(0)
                found[mutant] = await to_thread.run_sync(partial(try_mutant, place, plan, mutant))

    await run_apart(context.sandbox.level, *[work] * min(_AT_ONCE, len(queue)))
    context.checking.emit(Probing(done=len(plan.mutants), total=len(plan.mutants)))
    missed = TriedMutant(mutant=plan.mutants[0], outcome=MutantEnd.NOT_TRIED)
    return tuple(_to_result(found.get(each) or missed.replace(mutant=each)) for each in plan.mutants)


def try_mutant(place: Place, plan: MutationPlan, mutant: Mutant) -> TriedMutant:
    """Run the tests on one mutant in a copy, which is then as it was."""
    assert place.stage is not None
    tried = TriedMutant(mutant=mutant, outcome=MutantEnd.SURVIVED)
    for check, passing in plan.checks:
        code = mutant.apply(plan.texts[mutant.path])
        # compiled code is kept by time and size
        place.stage.replace_file(mutant.path, code.encode(), mutant.start + len(mutant.after))
        shown, _ = place.try_elsewhere(check)
        place.stage.restore(lambda _: False)
        tried = _read(shown, passing, tried)
        if tried.outcome in (MutantEnd.KILLED, MutantEnd.TIMED_OUT):
            break
    place.stage.replace_file(mutant.path, plan.texts[mutant.path].encode(), 0)
    return tried


def _read(shown: Shown, passing: frozenset[str], tried: TriedMutant) -> TriedMutant:
    """Return what a run shows of a mutant: only a test that passes without it can tell."""
    red = sorted(passing & shown.list_ids(*RED))
    passed = passing & shown.list_ids(TestOutcome.PASSED)
    if shown.execution.timed_out and not red:
        return tried.replace(outcome=MutantEnd.TIMED_OUT)
    if passing and not red and not passed:
        return tried.replace(outcome=MutantEnd.INVALID)
    if lost := sorted(passing - passed):  # a file of tests that cannot be loaded has none
        return tried.replace(outcome=MutantEnd.KILLED, killers=tuple(lost[:_MOST_KILLERS]))
    is_red = not passing and shown.execution.exit_code != 0
    return tried.replace(outcome=MutantEnd.KILLED if is_red else MutantEnd.SURVIVED)


def _to_result(tried: TriedMutant) -> MutantResult:
    mutant = tried.mutant
    return MutantResult(
        path=mutant.path,
        line=mutant.line,
        before=mutant.before,
        after=mutant.after,
        edit=mutant.describe().partition("  ")[2],
        is_strong=mutant.grade is Grade.STRONG,
        outcome=tried.outcome,
        killers=tried.killers,
    )
