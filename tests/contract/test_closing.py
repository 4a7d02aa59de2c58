"""A connection that is given up is gone; the next request, also of another event loop, opens a new one."""

import threading

import anyio

from agentflow.core.messages import Reply, Text
from agentflow.model.live import LiveModel
from agentflow.model.messages import MessagesApi
from agentflow.model.wire import ProviderLine
from tests.contract.conftest import QUICK, Line, request
from tests.support.messages_server import Plays, serving, text
from tests.support.repo import eventually

GOOD = Plays((text("Done."),))


def connections() -> int:
    """Count the threads in which servers of this test read a connection."""
    return sum("process_request" in thread.name for thread in threading.enumerate())


def test_it_is_closed_and_opened_again(line: Line) -> None:
    with serving(GOOD) as server:
        way = ProviderLine(api=MessagesApi(), source=line.connect(server.address))
        model = LiveModel("anthropic", lambda _: way, QUICK.replace(stream=line.stream))

        async def leg() -> Reply:
            try:
                return await model.complete(request())
            finally:
                await model.close()

        for _ in range(2):
            assert anyio.run(leg).parts == (Text(text="Done."),)
            eventually(lambda: connections() == 0, 3)
        anyio.run(model.close)
    assert len(server.asked) == 2


def test_without_closing_the_server_would_still_hold_it(line: Line) -> None:
    with serving(GOOD) as server:
        way = ProviderLine(api=MessagesApi(), source=line.connect(server.address))
        model = LiveModel("anthropic", lambda _: way, QUICK.replace(stream=line.stream))

        async def open_and_look() -> int:
            await model.complete(request())
            held = connections()
            await model.close()
            return held

        assert anyio.run(open_and_look) == 1
