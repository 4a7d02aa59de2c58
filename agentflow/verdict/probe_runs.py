"""Probes, run until no more is due."""

from collections.abc import Callable
from functools import partial

from agentflow.core.evidence import Side
from agentflow.core.probe import ProbeResult
from agentflow.core.task import TaskState
from agentflow.verdict.beside import undisturbed
from agentflow.verdict.context import JudgeContext
from agentflow.verdict.fresh import Bench, laid_out, try_at
from agentflow.verdict.ground import Ground
from agentflow.verdict.probe import Probe
from agentflow.verdict.runner import Order

Plan = Callable[[Ground, tuple[ProbeResult, ...]], tuple[Probe, ...]]
_AT_ONCE = 2


async def run_probes(
    context: JudgeContext, task: TaskState, ground: Ground, plan: Plan
) -> tuple[ProbeResult, ...]:
    """Return what all probes of a plan came to, in their order."""
    known: tuple[ProbeResult, ...] = ()
    while due := plan(ground, known):
        for start in range(0, len(due), _AT_ONCE):
            begin = (partial(_run, context, task, probe) for probe in due[start : start + _AT_ONCE])
            known += tuple(await undisturbed(context.sandbox.level, *begin))
    return known


async def _run(context: JudgeContext, task: TaskState, probe: Probe) -> ProbeResult:
    order = Order(checks=(probe.check,), tree=probe.lay(context.git), surface=Side.FINAL, code=probe.code)
    return probe.read(*await context.checking.tried(task, order))


def rerun_probes(bench: Bench, ground: Ground, plan: Plan, seen: tuple[str, ...]) -> tuple[ProbeResult, ...]:
    """Return the same of a record, run where nothing of its task is."""
    known: tuple[ProbeResult, ...] = ()
    while due := plan(ground, known):
        for probe in due:
            with laid_out(bench.git, probe.lay(bench.git), seen) as place:
                known += (probe.read(*try_at(bench, bench.at(place), probe.check)),)
    return known
