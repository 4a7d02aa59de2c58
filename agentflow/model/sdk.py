"""Byte source: the official SDK's clients; imported by nothing but the runs that need one."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import Any

import anthropic

from agentflow.core.errors import ModelRejected
from agentflow.model.endpoint import Endpoint
from agentflow.model.http import open_client, to_server_answer, translate_errors
from agentflow.model.wire import ServerAnswer, to_connection_error
from agentflow.redact import to_one_line
from agentflow.settings import Deadlines

_ADVICE: Mapping[str, str] = {
    "bedrock": "pip install 'anthropic[bedrock]', set AWS_REGION and AWS credentials",
    "vertex": "pip install 'anthropic[vertex]', set CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID",
    "foundry": "set ANTHROPIC_FOUNDRY_API_KEY and ANTHROPIC_FOUNDRY_RESOURCE (or _BASE_URL)",
}
_CLIENTS: Mapping[str, Callable[..., Any]] = {
    "bedrock": anthropic.AsyncAnthropicBedrock,
    "vertex": anthropic.AsyncAnthropicVertex,
    "foundry": anthropic.AsyncAnthropicFoundry,
}
_PACKAGES: Mapping[str, tuple[str, ...]] = {"bedrock": ("boto3",), "vertex": ("google", "google.auth")}
"""What an extra of the SDK brings, each after the package it lies in."""
_SECRETS = (
    "ANTHROPIC_FOUNDRY_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
_TROUBLE = (anthropic.AnthropicError, ImportError, RuntimeError, ValueError, TypeError)
"""What the SDK's clients raise for what is missing."""


class Sdk:
    """Sends each request with a client of the SDK; retries and redirects stay ours."""

    def __init__(
        self, connect: Callable[[], Any], secrets: tuple[str, ...], *, streams: bool, address: str = ""
    ) -> None:
        self._address = address
        self.secrets = secrets
        self._connect = connect
        self._client = connect()
        self._streams = streams

    @asynccontextmanager
    async def open(self, body: bytes, *, stream: bool) -> AsyncIterator[ServerAnswer]:
        """Send one request; where a stream would have frames of the platform's own, the reply comes whole."""
        fields = json.loads(body)
        if stream and not self._streams:
            del fields["stream"]
        self._client = self._client or self._connect()
        with translate_errors(self._address):
            async with AsyncExitStack() as stack:
                yield await self._send(stack, fields)

    async def _send(self, stack: AsyncExitStack, fields: dict[str, Any]) -> ServerAnswer:
        try:
            sending = self._client.messages.with_streaming_response.create(**fields)
            response = await stack.enter_async_context(sending)
        except anthropic.APIStatusError as error:
            return to_server_answer(error.response)
        except anthropic.APIConnectionError as error:
            raise to_connection_error(error.__cause__ or error, self._address) from None
        except _TROUBLE as error:
            raise ModelRejected(f"the SDK cannot send this: {error}") from None
        return to_server_answer(response.http_response)

    async def reach(self) -> None:
        """Leave it to the first request: this way opens no connection without one."""

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def open_direct(endpoint: Endpoint, deadlines: Deadlines) -> Sdk:
    headers: dict[str, Any] = {**endpoint.headers} or {"authorization": anthropic.omit}

    def connect() -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            base_url=endpoint.address,
            auth_token="" if not endpoint.secrets else endpoint.secrets[0],
            max_retries=0,
            default_headers=headers,
            open_telemetry=False,
            http_client=open_client(endpoint.address, deadlines),
        )

    return Sdk(connect, endpoint.secrets, streams=True, address=endpoint.address)


def open_cloud(name: str, environ: Mapping[str, str], deadlines: Deadlines) -> Sdk:
    """Return the SDK's client of a platform. Raises ModelRejected saying what is missing."""
    needs_package = name != "bedrock" or not environ.get("AWS_BEARER_TOKEN_BEDROCK")
    if needs_package and not all(find_spec(package) for package in _PACKAGES.get(name, ())):
        missing = f"the package of anthropic[{name}] is not installed"
        raise ModelRejected(f"{name} cannot be used: {missing}", hint=_ADVICE[name])

    def connect() -> Any:
        return _CLIENTS[name](max_retries=0, open_telemetry=False, http_client=open_client("", deadlines))

    secrets = tuple(environ[variable] for variable in _SECRETS if environ.get(variable))
    try:
        return Sdk(connect, secrets, streams=name != "bedrock")
    except _TROUBLE as error:
        raise ModelRejected(f"{name} cannot be used: {to_one_line(str(error))}", hint=_ADVICE[name]) from None
