from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import anyio
import pytest

from agentflow.core.errors import ModelError
from agentflow.core.events import Event, Retried
from agentflow.core.messages import Message, Reply, Request, ToolSpec
from agentflow.model.direct import Direct
from agentflow.model.endpoint import Endpoint, Secret
from agentflow.model.http import Http
from agentflow.model.live import LiveModel
from agentflow.model.messages import MessagesApi
from agentflow.model.wire import ProviderLine, Source
from agentflow.settings import Deadlines, Retry, Settings
from tests.support.messages_server import Answer, Asked, Policy, serving
from tests.support.records import a_request

KEY = "sk-contract-0123456789"
QUICK = Settings(
    retry=Retry(tries=6, base_seconds=0, max_seconds=0), deadlines=Deadlines(connect=20, idle=20, total=60)
)


class Said(NamedTuple):
    """What came of asking a model once or more."""

    replies: list[Reply]
    error: ModelError | None
    asked: list[Asked]
    events: list[Event]
    deltas: list[str]

    @property
    def reply(self) -> Reply:
        assert self.error is None, self.error
        return self.replies[-1]

    @property
    def retried(self) -> list[Retried]:
        return [event for event in self.events if isinstance(event, Retried)]


class Line(NamedTuple):
    """A way in which requests travel."""

    source: str
    stream: bool

    def connect(self, address: str, key: str | None = KEY) -> Source:
        endpoint = Endpoint(address=address, key=Secret(key) if key else None)
        if self.source == "direct":
            return Direct(endpoint, QUICK.deadlines)
        if self.source == "http":
            return Http(endpoint, QUICK.deadlines)
        from agentflow.model.sdk import open_direct  # noqa: PLC0415  # its import costs seconds

        return open_direct(endpoint, QUICK.deadlines)


Ask = Callable[..., Said]


def request(*messages: Message, **changes: Any) -> Request:
    tools = (
        ToolSpec(
            name="Edit",
            description="Edit.",
            input_schema={"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        ToolSpec(name="Submit", description="End.", input_schema={"type": "object", "properties": {}}),
    )
    return a_request(*messages, **{"tools": tools, **changes})


@pytest.fixture(
    params=[Line(source, stream) for source in ("direct", "http", "sdk") for stream in (False, True)],
    ids=lambda line: f"{line.source}-{'streamed' if line.stream else 'plain'}",
)
def line(request: pytest.FixtureRequest) -> Line:
    found: Line = request.param
    return found


@pytest.fixture
def ask(line: Line) -> Ask:
    """Ask a server that plays these answers, over the line of this test."""

    def asked(
        *answers: Answer,
        requests: tuple[Request, ...] = (),
        settings: Settings = QUICK,
        policy: Policy | None = None,
        key: str | None = KEY,
        address: str | None = None,
    ) -> Said:
        stream = line.stream
        with serving(*answers, policy=policy) as server:
            said = Said([], None, server.asked, [], [])

            async def talk() -> ModelError | None:
                way = ProviderLine(api=MessagesApi(), source=line.connect(address or server.address, key))
                model = LiveModel(
                    "anthropic",
                    lambda _: way,
                    settings.replace(stream=stream),
                    on_delta=said.deltas.append if stream else None,
                    observe=said.events.append,
                )
                return await _told(model, said, requests or (request(),))

            return said._replace(error=anyio.run(talk))

    return asked


async def _told(model: LiveModel, said: Said, requests: tuple[Request, ...]) -> ModelError | None:
    complete: Callable[[Request], Awaitable[Reply]] = model.complete
    try:
        for each in requests:
            said.replies.append(await complete(each))
    except ModelError as error:
        return error
    finally:
        await model.close()
    return None
