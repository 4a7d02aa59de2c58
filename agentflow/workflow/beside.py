"""Several things that wait, at once; one that fails does not keep the others from their end."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from agentflow.core.errors import AgentflowError

Result = TypeVar("Result")


async def side_by_side(*begin: Callable[[], Awaitable[Result]]) -> list[Result]:
    """Return what each came to, in their order; raises the first error when all have ended."""
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
