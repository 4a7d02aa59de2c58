"""What processes that share an endpoint's limits do on the wire."""

import time
from pathlib import Path

import anyio

from agentflow.model.direct import Direct
from agentflow.model.endpoint import Endpoint
from agentflow.model.live import LiveModel
from agentflow.model.messages import MessagesApi
from agentflow.model.retry import SharedLimits, Throttle, share_limits
from agentflow.model.wire import ProviderLine
from agentflow.settings import Deadlines
from tests.contract.conftest import QUICK, request
from tests.support.messages_server import Answer, Asked, Plays, refuses, serving, text

GOOD = Plays((text("Done."),))
SECONDS = 0.6


def test_where_one_is_asked_to_wait_all_of_them_wait(tmp_path: Path) -> None:
    times: list[float] = []

    def policy(_: Asked) -> Answer:
        times.append(time.monotonic())
        return GOOD if len(times) > 1 else refuses(429, "rate_limit_error", retry_after=str(SECONDS))

    async def ask(address: str) -> None:
        source = Direct(Endpoint(address=address), Deadlines())
        line = ProviderLine(api=MessagesApi(), source=source, throttle=Throttle(tmp_path, address))
        model = LiveModel("anthropic", lambda _: line, QUICK)
        await model.complete(request())
        await model.close()

    async def ask_one_after_another(address: str) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, address)
            while not times:  # noqa: ASYNC110  # the server has no event of ours
                await anyio.sleep(0.01)
            await anyio.sleep(0.1)  # by now the first has heard the answer
            group.start_soon(ask, address)

    share_limits(tmp_path, SharedLimits())
    with serving(policy=policy) as server:
        anyio.run(ask_one_after_another, server.address)
    assert len(times) == 3
    assert min(times[1:]) - times[0] >= SECONDS - 0.05
