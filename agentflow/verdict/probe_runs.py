"""Probes, run until no more is due."""

from collections.abc import Callable
from functools import partial

from anyio import to_thread

from agentflow.core.events import Probed
from agentflow.core.probe import ProbeResult
from agentflow.core.record import shared
from agentflow.core.task import TaskState
from agentflow.verdict.beside import undisturbed
from agentflow.verdict.context import JudgeContext
from agentflow.verdict.fresh import Copies
from agentflow.verdict.ground import Ground
from agentflow.verdict.probe import Probe

Plan = Callable[[Ground, tuple[ProbeResult, ...]], tuple[Probe, ...]]
_AT_ONCE = 2
_LEAST_SECONDS = 60.0


async def run_probes(
    context: JudgeContext, task: TaskState, ground: Ground, plan: Plan
) -> tuple[ProbeResult, ...]:
    """Return what all probes of a plan came to, in their order.

    None begins once those before it took longer than a while and the tests themselves.
    """
    known: tuple[ProbeResult, ...] = ()
    tests = ground.tests.evidence if ground.tests else None
    allowed = _LEAST_SECONDS + (tests.seconds if tests else 0)
    while due := plan(ground, known):
        for start in range(0, len(due), _AT_ONCE):
            batch = due[start : start + _AT_ONCE]
            if sum(each.seconds for each in known) > allowed:
                known += tuple(probe.leave_out() for probe in batch)
                continue
            begin = (partial(_run, context, task, probe) for probe in batch)
            known += tuple(await undisturbed(context.sandbox.level, *begin))
    return known


async def _run(context: JudgeContext, task: TaskState, probe: Probe) -> ProbeResult:
    async with context.checking.copy(task, probe.lay(context.git)) as place:
        result = probe.read(*await to_thread.run_sync(place.tried, probe.check))
    context.checking.emit(Probed(**shared(result, Probed)))
    return result


def rerun_probes(
    copies: Copies, ground: Ground, plan: Plan, seen: tuple[str, ...]
) -> tuple[ProbeResult, ...]:
    """Return the same of a record, run where nothing of its task is."""
    known: tuple[ProbeResult, ...] = ()
    while due := plan(ground, known):
        for probe in due:
            with copies.open(probe.lay(copies.git), seen) as place:
                known += (probe.read(*place.tried(probe.check)),)
    return known
