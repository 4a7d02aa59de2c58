"""A connection to one MCP server: the only door to the SDK's client."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.to_thread
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    Implementation,
    JSONRPCResponse,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    jsonrpc_message_adapter,
)

from agentflow import __version__
from agentflow.core.errors import ToolError
from agentflow.core.record import encode
from agentflow.mcp.tools import CallResult, ServerListing, ServerPrompt, ServerResource, ServerTool
from agentflow.process import Program, read_pipe, write_pipe
from agentflow.redact import MARK, Redactor

MESSAGE_BYTES = 16 * 1024 * 1024
"""Of one message of a server; a longer one ends the connection."""
_LOG_BYTES = 1024 * 1024
_PAGES = 50
_TIMEOUT = httpx2.Timeout(30, read=300)
"""A server may hold a response open."""

Start = Callable[[], AbstractContextManager[Program]]
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


class ServerEnded(ToolError):
    """The server has ended, or cannot be reached any more."""


class Connection:
    def __init__(self, name: str, client: Client, secrets: tuple[str, ...], unreadable: list[str]) -> None:
        self._name = name
        self._unreadable = unreadable
        self._client = client
        self._secrets = secrets

    async def list_offers(self) -> ServerListing:
        client, able = self._client, self._client.server_capabilities
        tools = await self._collect(client.list_tools, "tools") if able.tools else []
        resources = await self._collect(client.list_resources, "resources") if able.resources else []
        prompts = await self._collect(client.list_prompts, "prompts") if able.prompts else []
        about = client.server_info
        return ServerListing(
            tools=tuple(
                ServerTool(
                    name=each.name,
                    description=each.description or each.title or "",
                    schema=each.input_schema,
                    reads=bool(each.annotations and each.annotations.read_only_hint),
                )
                for each in tools
            ),
            resources=tuple(
                ServerResource(uri=each.uri, name=each.name, description=each.description or "")
                for each in resources
            ),
            prompts=tuple(
                ServerPrompt(
                    name=each.name,
                    description=each.description or "",
                    arguments=tuple(one.name for one in each.arguments or ()),
                )
                for each in prompts
            ),
            server=f"{about.name} {about.version}" if about else "",
            unreadable=tuple(dict.fromkeys(self._unreadable)),
        )

    async def _collect(self, ask: Callable[..., Any], key: str) -> list[Any]:
        cursor, found = None, list[Any]()
        for _ in range(_PAGES):
            page = await ask(cursor=cursor)
            found += getattr(page, key)
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def call(self, tool: str, given: Mapping[str, Any], seconds: float) -> CallResult:
        """Call a tool. Raises ServerEnded, or ToolError."""
        found = await self._limit_time(lambda: self._client.call_tool(tool, dict(given)), tool, seconds)
        text = "\n".join(map(_to_text, found.content))
        if not text and found.structured_content is not None:
            text = encode(found.structured_content).decode()
        return CallResult(text=self._hide(text) or "(nothing)", is_error=bool(found.is_error))

    async def read(self, uri: str, seconds: float) -> CallResult:
        """Read a resource. Raises ServerEnded, or ToolError."""
        found = await self._limit_time(lambda: self._client.read_resource(uri), uri, seconds)
        return CallResult(text=self._hide("\n".join(map(_resource_text, found.contents))) or "(nothing)")

    async def fill_prompt(self, name: str, given: Mapping[str, str], seconds: float) -> CallResult:
        """Return a prompt as text, a paragraph for each of its messages. Raises ServerEnded, or ToolError."""
        found = await self._limit_time(lambda: self._client.get_prompt(name, dict(given)), name, seconds)
        text = "\n\n".join(f"{each.role}: {_to_text(each.content)}" for each in found.messages)
        return CallResult(text=self._hide(text) or "(nothing)")

    async def _limit_time(self, ask: Callable[[], Any], what: str, seconds: float) -> Any:
        try:
            with anyio.fail_after(seconds):
                return await ask()
        except TimeoutError:
            raise ToolError(
                f"MCP server {self._name}: {what} took longer than {seconds:g} s and was stopped"
            ) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            raise ServerEnded("the connection was closed") from None
        except MCPError as error:
            said = self._hide(error.message)
            raise (ServerEnded if error.code == CONNECTION_CLOSED else ToolError)(
                f"MCP server {self._name}: {said}"
            ) from None

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MARK)
        return text


@asynccontextmanager
async def connect_command(
    name: str, start: Start, log: Path, secrets: tuple[str, ...]
) -> AsyncIterator[Connection]:
    async with _connect(name, _talk(start, log, secrets), secrets) as connection:
        yield connection


@asynccontextmanager
async def connect_address(
    name: str, url: str, headers: Mapping[str, str], secrets: tuple[str, ...]
) -> AsyncIterator[Connection]:
    async with httpx2.AsyncClient(headers=dict(headers), timeout=_TIMEOUT) as http:
        transport = streamable_http_client(url, http_client=http)
        async with _connect(name, transport, secrets) as connection:
            yield connection


@asynccontextmanager
async def _connect(
    name: str, transport: AbstractAsyncContextManager[Any], secrets: tuple[str, ...]
) -> AsyncIterator[Connection]:
    for logger in map(logging.getLogger, ("mcp", "client")):
        logger.disabled = True  # what goes wrong is told by the errors
    ours = Implementation(name="agentflow", version=__version__)
    unreadable = list[str]()
    async with Client(_drop_bad_tools(transport, unreadable), client_info=ours, cache=None) as client:
        yield Connection(name, client, secrets, unreadable)


@asynccontextmanager
async def _drop_bad_tools(
    transport: AbstractAsyncContextManager[Any], unreadable: list[str]
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of a server; a tool that the SDK cannot read would cost all the others."""
    outgoing, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def pass_on(messages: MemoryObjectReceiveStream[SessionMessage | Exception]) -> None:
        async with outgoing:
            async for each in messages:
                if isinstance(each, SessionMessage) and isinstance(each.message, JSONRPCResponse):
                    _keep_readable_tools(each.message.result, unreadable)
                await outgoing.send(each)

    async with transport as (from_server, to_server), anyio.create_task_group() as group:
        group.start_soon(pass_on, from_server)
        yield incoming, to_server
        group.cancel_scope.cancel()


def _keep_readable_tools(result: dict[str, Any], unreadable: list[str]) -> None:
    listed, kept = result.get("tools"), list[object]()
    for each in listed if isinstance(listed, list) else ():
        try:
            Tool.model_validate(each, by_name=False)
            kept.append(each)
        except ValueError:
            unreadable.append(str(each.get("name", "")) if isinstance(each, dict) else "")
    if isinstance(listed, list):
        result["tools"] = kept


@asynccontextmanager
async def _talk(start: Start, log: Path, secrets: tuple[str, ...]) -> AsyncIterator[tuple[Any, Any]]:
    incoming, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    holder = start()
    program = holder.__enter__()  # on this thread, with which the program dies
    try:
        with log.open("ab") as file:
            async with anyio.create_task_group() as group:
                group.start_soon(_receive, program, incoming)
                group.start_soon(_send, program, outgoing)
                group.start_soon(_write_log, program, file, secrets)
                yield from_server, to_server
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: holder.__exit__(None, None, None))
        for stream in (incoming, from_server, to_server, outgoing):
            stream.close()


async def _receive(program: Program, incoming: _Incoming) -> None:
    """Pass on each line that a program prints; one that is too long ends the connection."""
    held = bytearray()
    async with incoming:
        while chunk := await read_pipe(program.process.stdout):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                held += line
                if held.strip():
                    try:
                        message = jsonrpc_message_adapter.validate_json(bytes(held), by_name=False)
                        await incoming.send(SessionMessage(message))
                    except ValueError as error:
                        await incoming.send(error)
                held.clear()
            held += rest
            if len(held) > MESSAGE_BYTES:
                return


async def _send(program: Program, outgoing: _Outgoing) -> None:
    async with outgoing:
        async for each in outgoing:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            if not await write_pipe(program.process.stdin, f"{text}\n".encode()):
                return


async def _write_log(program: Program, file: IO[bytes], secrets: tuple[str, ...]) -> None:
    def keep(text: str) -> None:
        for secret in secrets:
            text = text.replace(secret, MARK)
        file.write(text.encode("utf-8", "replace"))
        file.flush()

    kept, size = Redactor(keep), 0
    try:
        while chunk := await read_pipe(program.process.stderr):
            if size <= _LOG_BYTES:
                kept.add(chunk.decode("utf-8", "replace"))
            size += len(chunk)
    finally:
        kept.finish()


def _to_text(part: object) -> str:
    match part:
        case TextContent():
            return part.text
        case ImageContent() | AudioContent():
            return f"[{part.type}, {part.mime_type}, {_size(part.data)}]"
        case ResourceLink():
            return f"[resource {part.uri} {part.name}]"
        case EmbeddedResource():
            return f"[resource {part.resource.uri}]\n{_resource_text(part.resource)}"
        case _:
            return f"[{type(part).__name__}]"


def _resource_text(part: object) -> str:
    match part:
        case TextResourceContents():
            return part.text
        case BlobResourceContents():
            return f"[{part.mime_type or 'bytes'}, {_size(part.blob)}]"
        case _:
            return f"[{type(part).__name__}]"


def _size(coded: str) -> str:
    """Return the size of what base64 stands for."""
    return f"{len(coded.rstrip('=')) * 3 // 4:,} bytes"


def describe_failure(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = str(error).strip() or type(error).__name__
    return said.partition("\n")[0]
