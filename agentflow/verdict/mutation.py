"""Would a test notice if the change were otherwise? Its mutants, tried in copies of its tree."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from anyio import to_thread

from agentflow.checks.run import Shown
from agentflow.core.events import Probing
from agentflow.core.evidence import RED, Check, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.core.verdict import MutantEnd, MutantResult
from agentflow.mutants.operators import Grade, Mutant, list_mutants
from agentflow.mutants.trial import MutantOrder, TriedMutant, order_mutants
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.probes.hunks import split_change
from agentflow.verdict.probes.probe import ProbeContext
from agentflow.verdict.runner import Place, run_apart
from agentflow.verdict.target_tests import narrow_quietly

_SECONDS = 20.0
"""The time of all mutants beside that of one run of the tests."""
_LEAST_LIMIT = 10.0
_PATIENCE = 5
_AT_ONCE = 2
_MOST = 120
_MOST_KILLERS = 5


class MutationPlan(Record):
    """The mutants of a change, and the tests that may notice them."""

    texts: Mapping[str, str]
    """The files that they change, as they are without them."""
    mutants: tuple[Mutant, ...]
    check: Check
    passing: frozenset[str]
    """The tests that pass without a mutant; empty where a runner tells no names."""
    first: frozenset[str] = frozenset()
    """Those that are tried alone first; a mutant that these let live is tried with all."""
    seconds: float = _SECONDS
    """For all mutants together."""

    @classmethod
    def of(
        cls, texts: Mapping[str, str], mutants: Iterable[Mutant], check: Check, took: float
    ) -> "MutationPlan":
        """Return a plan for a check that usually takes so many seconds."""
        limit = min(check.timeout, max(_LEAST_LIMIT, _PATIENCE * took))
        return cls(
            texts=texts,
            mutants=order_mutants(mutants)[:_MOST],
            check=check.replace(timeout=limit),
            passing=frozenset(),
            seconds=_SECONDS + took,
        )


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
    texts = {each.path: each.after for each in product}
    mutants = (mutant for each in found for mutant in each or ())
    plan = MutationPlan.of(texts, mutants, final.check, final.evidence.seconds)
    return plan.replace(passing=context.passed, first=context.proving) if plan.mutants else None


async def try_plan(context: JudgeContext, task: TaskState, plan: MutationPlan) -> tuple[MutantResult, ...]:
    """Return the outcome of each mutant of the final tree, tried in copies side by side."""
    python = tuple(each for each in plan.mutants if each.path.endswith(".py"))
    others = tuple(each for each in plan.mutants if each not in python)
    shares = [python, *(others[at::_AT_ONCE] for at in range(_AT_ONCE))]  # forks share one traced run
    end = time.monotonic() + plan.seconds

    async def work(share: tuple[Mutant, ...]) -> list[MutantResult]:
        async with context.checking.copy(task, task.trees[1]) as place:
            return await to_thread.run_sync(lambda: list(try_mutants(place, plan, share, end)))

    context.checking.emit(Probing(done=0, total=len(plan.mutants)))
    found = await run_apart(context.sandbox.level, *(partial(work, share) for share in shares if share))
    context.checking.emit(Probing(done=len(plan.mutants), total=len(plan.mutants)))
    return tuple(each for share in found for each in share)


def try_mutants(
    place: Place, plan: MutationPlan, mutants: Iterable[Mutant], end: float
) -> Iterator[MutantResult]:
    """Yield the outcome of each mutant in one copy; none begins after the end, by the monotonic clock."""
    left = list(mutants)
    python = tuple(each for each in left if each.path.endswith(".py"))
    order = MutantOrder(
        check=plan.check,
        passing=plan.passing,
        first=plan.first,
        mutants=python,
        seconds=max(1.0, end - time.monotonic()),
    )
    if python and (tried := place.try_forked(order)) is not None:
        yield from map(_to_result, tried)
        left = [each for each in left if each not in python]
    for mutant in left:
        late = TriedMutant(mutant=mutant, outcome=MutantEnd.NOT_TRIED)
        yield _to_result(_try_alone(place, plan, mutant) if time.monotonic() < end else late)


def _try_alone(place: Place, plan: MutationPlan, mutant: Mutant) -> TriedMutant:
    """Run the tests on one mutant in a copy, which is then as it was."""
    assert place.stage is not None
    tried = TriedMutant(mutant=mutant, outcome=MutantEnd.SURVIVED)
    checks = {narrow_quietly(plan.check, plan.first): plan.first, plan.check: plan.passing}
    for check, passing in checks.items():
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
        operator=mutant.operator,
        edit=mutant.describe().partition("  ")[2],
        is_strong=mutant.grade is Grade.STRONG,
        outcome=tried.outcome,
        killers=tried.killers,
    )
