"""The SDK's platform clients against the loopback server: the same body, the same accepted turn."""

from collections.abc import Mapping

import anyio
import pytest

from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Reply, Text, ToolCall
from agentflow.model.live import LiveModel
from agentflow.model.messages import MessagesApi
from agentflow.model.wire import ProviderLine, Source
from tests.contract.conftest import KEY, QUICK, request
from tests.support.messages_server import MessagesServer, Plays, serving, text, use

VARIABLES: Mapping[str, Mapping[str, str]] = {
    "foundry": {"ANTHROPIC_FOUNDRY_API_KEY": KEY},
    "bedrock": {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "us-east-1"},
}
BARE = ("ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "CLOUD_ML_REGION")
CALLS = Plays((text("I edit."), use("Edit", {"a": "b"})))


def connect(name: str, environ: Mapping[str, str]) -> Source:
    from agentflow.model.sdk import open_cloud  # noqa: PLC0415  # its import costs each worker seconds

    return open_cloud(name, environ, QUICK.deadlines)


def ask(name: str, server: MessagesServer, environ: Mapping[str, str], *, stream: bool) -> Reply:
    async def talk() -> Reply:
        way = ProviderLine(api=MessagesApi(), source=connect(name, environ))
        model = LiveModel(name, lambda _: way, QUICK.replace(stream=stream))
        try:
            return await model.complete(request())
        finally:
            await model.close()

    assert server.address
    return anyio.run(talk)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", VARIABLES)
def test_a_platform_carries_the_same_request(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CALLS) as server:
        environ = {**VARIABLES[name], f"ANTHROPIC_{name.upper()}_BASE_URL": server.address}
        for variable, value in environ.items():
            monkeypatch.setenv(variable, value)
        found = ask(name, server, environ, stream=stream)
    assert found.parts == (Text(text="I edit."), ToolCall(id="toolu_1", name="Edit", input={"a": "b"}))
    (asked,) = server.asked
    assert asked.body["messages"][0]["content"][0]["text"] == "begin"
    assert asked.body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert asked.headers.get("x-stainless-retry-count", "0") == "0"
    assert KEY in str(asked.headers)
    if name == "bedrock":
        assert asked.path == "/model/model-1/invoke"


@pytest.mark.parametrize("name", ["bedrock", "vertex", "foundry"])
def test_what_a_platform_lacks_is_said_with_what_to_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in BARE:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelRejected, match=f"^{name} cannot be used: ") as caught:
        connect(name, {})
    assert "set " in caught.value.hint
    assert "\n" not in str(caught.value)
