"""Several awaitables at the same time: all of them end, even if one fails."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from agentflow.core.errors import AgentflowError
from agentflow.sandbox.profile import Level

Result = TypeVar("Result")


async def run_apart(level: Level, *begin: Callable[[], Awaitable[Result]]) -> list[Result]:
    """Return all results in order; run at the same time only where a sandbox separates the commands.

    Elsewhere runs at once may disturb each other, and what is red by that would prove something.
    """
    if level is Level.FULL:
        return await run_together(*begin)
    return [await each() for each in begin]


async def run_together(*begin: Callable[[], Awaitable[Result]]) -> list[Result]:
    """Return all results in order; raise the first error after all have ended."""
    results: dict[int, Result] = {}
    errors: list[AgentflowError] = []

    async def run(place: int) -> None:
        try:
            results[place] = await begin[place]()
        except AgentflowError as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        for place in range(len(begin)):
            group.start_soon(run, place)
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(begin))]
