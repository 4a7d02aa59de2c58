"""A model behind a server, whatever its API: budget, tries, fallbacks, deadlines, redaction."""

from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from copy import copy
from typing import Any
from urllib.parse import urlsplit

import anyio

from agentflow.core.errors import ModelError, ModelRefused, ModelRejected, ModelUnavailable
from agentflow.core.events import Retried, Warned
from agentflow.core.messages import Reply, Request, Usage, count_hidden_bytes, hide_shown, sum_usage
from agentflow.core.pending import Budget
from agentflow.core.ports import Observer
from agentflow.model.reply import MAX_REPLY_BYTES, TOO_LONG, read_events
from agentflow.model.retry import FAULT_STATUSES, persist, to_status_error, to_type_error
from agentflow.model.tiers import (
    MODELS,
    Meter,
    add_cost,
    count_searches,
    find_price,
    find_window,
    list_fallbacks,
    list_ids,
    list_providers,
    parse_choice,
    split_id,
    takes_no_tools,
)
from agentflow.model.wire import (
    ADDRESS,
    MAX_ERROR_BYTES,
    Api,
    BadReply,
    ErrorEvent,
    NobodyThere,
    ProviderLine,
    ReadReply,
    ServerAnswer,
    ServerGone,
    Source,
    StreamedReply,
    TryFailed,
    read_fault,
)
from agentflow.parse import decode_or_none
from agentflow.redact import to_one_line
from agentflow.settings import Settings

_LAST_BYTES_SECONDS = 0.5
"""For what follows the final event."""
_LEAST_ROOM = 1_000
"""Tokens of a reply that are asked for where a request seems to fill the window."""
_ADDRESS = f"check {ADDRESS}"
_FORCE = "tool_choice"
"""The field that a server names when it refuses it."""
_NO_MONEY = 402
"""Which some servers call 429, though no pause mends it."""

Delta = Callable[[str], None]


class LiveModel:
    """A model that is asked over the network: each id by the line to its provider, opened when it is due."""

    def __init__(
        self,
        name: str,
        connect: Callable[[str], ProviderLine],
        settings: Settings,
        *,
        on_delta: Delta | None = None,
        observe: Observer | None = None,
    ) -> None:
        self.name = name
        self._connect = connect
        self._lines: dict[str, ProviderLine] = {}
        """By provider."""
        self._settings = settings
        self._on_delta = on_delta
        self._observe: Observer = observe or (lambda _: None)
        self._standing = list_fallbacks(settings.models)
        """The ids that are not given up yet, by the id that a request names."""
        self._unforced: set[str] = set()
        """Ids of models that refuse a tool that is forced, as those do that think before each call."""
        self._meter = Meter(Budget(), Usage())

    def report_to(self, observe: Observer) -> "LiveModel":
        return self._with_changes(_observe=observe)

    def limit_by(self, meter: Meter) -> "LiveModel":
        return self._with_changes(_meter=meter)

    def _with_changes(self, **changes: Any) -> "LiveModel":
        changed = copy(self)
        vars(changed).update(changes)
        return changed

    @property
    def _stream(self) -> bool:
        return self._settings.stream or self._on_delta is not None

    def explain_refusal(self, task: str) -> str | None:  # noqa: ARG002  # a live model takes any task
        return None

    def stream_to(self, on_delta: Delta) -> "LiveModel":
        return self._with_changes(_on_delta=on_delta)

    def open_lines(self) -> None:
        """Connect to the providers of the tiers, so that what is missing is said early. Raises ModelError."""
        for provider in list_providers(self.name, self._settings):
            self._find_line(provider)

    def _find_provider(self, model: str) -> str:
        return split_id(model, parse_choice(self.name).kind, self._settings)[0]

    def _find_line(self, provider: str) -> ProviderLine:
        if provider not in self._lines:
            self._lines[provider] = self._connect(provider)
        return self._lines[provider]

    async def reach(self) -> None:
        """Raise ModelError if there is no server; other failures are left to the first request."""
        lists = [
            [self._find_provider(id_) for id_ in list_ids(tier, self._settings.models)] for tier in MODELS
        ]
        # where another provider may answer instead, the first request finds out
        for provider in dict.fromkeys(each[0] for each in lists if len(set(each)) == 1):
            await self._reach(self._find_line(provider))

    async def _reach(self, line: ProviderLine) -> None:
        async def attempt() -> None:
            try:
                await line.source.reach()
            except NobodyThere as error:
                raise self._redact_error(error, line, None) from None
            except TryFailed:
                return

        def tell(number: int, reason: str, seconds: float) -> None:
            self._observe(Retried(run=1, attempt=number, reason=self._redact(reason), seconds=seconds))

        await persist(attempt, self._settings.retry, tell)

    async def close(self) -> None:
        for line in self._lines.values():
            await line.source.close()

    async def complete(self, request: Request) -> Reply:
        """Return one complete turn, with what all tries for it used. Raises ModelError."""
        used: list[Usage] = []
        while True:
            ids = self._standing.get(request.model, (request.model,))
            failures: list[str] = []
            try:
                wanted = request.replace(model=ids[0])
                found = await self._ask_until_answered(self._spare_force(wanted), used, failures)
            except ModelError as error:
                reason = self._redact(str(error))
                if request.force and _FORCE in reason and ids[0] not in self._unforced:
                    self._unforced.add(ids[0])
                    self._observe(Retried(run=request.run, attempt=1, reason=reason, seconds=0))
                    continue
                if isinstance(error, ModelRefused) and (plain := hide_shown(request)) is not request:
                    self._observe(Retried(run=request.run, attempt=1, reason=reason, seconds=0))
                    request = plain
                    continue
                is_for_all = type(error) is ModelRefused or (
                    isinstance(error, ServerGone) and len(set(map(self._find_provider, ids[:2]))) == 1
                )
                if len(ids) == 1 or is_for_all or not isinstance(error, ModelUnavailable):
                    raise _with_reason(error, reason) from None
                self._standing[request.model] = ids[1:]
                self._observe(
                    Retried(
                        run=request.run, attempt=len(failures) + 1, reason=reason, seconds=0, model=ids[1]
                    )
                )
            else:
                return found.replace(model=found.model or ids[0], usage=sum_usage(used))

    def _spare_force(self, request: Request) -> Request:
        """Return a request that offers the forced tool alone, where the server lets nobody force one."""
        if request.model not in self._unforced or not request.force:
            return request
        return request.replace(
            tools=tuple(tool for tool in request.tools if tool.name == request.force), force=None
        )

    async def _ask_until_answered(self, request: Request, used: list[Usage], failures: list[str]) -> Reply:
        """Ask one model until it answers or is given up; failed tries count in the usage as well."""
        kind = parse_choice(self.name).kind
        price = find_price(request.model, kind, self._settings)
        most = min(self._settings.max_tokens, request.reply_tokens or self._settings.max_tokens)

        window, hidden = find_window(request.model, self._settings), count_hidden_bytes(request)

        def room(size: int) -> int:
            text = max(0, size - hidden)
            left = most if window is None else window - self._meter.estimate_tokens(text)
            return self._meter.compute_room(request, text, price, min(most, max(left, _LEAST_ROOM)))

        def count(usage: Usage) -> None:
            used.append(usage)
            self._meter.count(usage)

        if takes_no_tools(request.model, self._settings):
            request = request.replace(tools=(), force=None)
        provider, bare = split_id(request.model, kind, self._settings)
        line = self._find_line(provider)
        body = line.api.encode(request.replace(model=bare), stream=self._stream, room=room)

        async def attempt() -> Reply:
            room(len(body))  # a try that failed may have used up what was left
            try:
                async with nullcontext() if line.throttle is None else line.throttle.take_turn():
                    found = await self._attempt(line, body)
            except TryFailed as failed:
                if line.throttle is not None and failed.retry_after:
                    line.throttle.pause(failed.retry_after)
                if failed.used is not None:
                    count(add_cost(failed.used, price))
                raise
            # a server that counts nothing is no way around a budget
            usage = (
                found.usage
                if found.usage.tokens
                else Usage(input=self._meter.estimate_tokens(len(body) - hidden))
            )
            count(add_cost(usage, price, count_searches(found)))
            self._meter.learn(len(body) - hidden, found.usage)
            return found

        def tell(number: int, reason: str, seconds: float) -> None:
            failures.append(reason)
            self._observe(Retried(run=request.run, attempt=number, reason=reason, seconds=seconds))

        return await persist(attempt, self._settings.retry, tell)

    async def _attempt(self, line: ProviderLine, body: bytes) -> Reply:
        reading = _Reading(line.api, self._settings, self._on_delta)
        try:
            found, skipped = await reading.read_reply(line.source, body, stream=self._stream)
        except ErrorEvent as told:
            raise self._redact_error(_to_event_error(told.error), line, reading.used) from None
        except (TryFailed, ModelRefused, ModelRejected) as error:
            raise self._redact_error(error, line, reading.used) from None
        if skipped:
            kinds = self._redact(", ".join(sorted(skipped)))
            self._observe(Warned(message=f"the model sent unknown content, which was skipped: {kinds}"))
        return found

    def _redact_error(self, error: ModelError, line: ProviderLine, used: Usage | None) -> ModelError:
        told = _with_reason(error, self._redact(str(error)))
        told.hint = told.hint.replace(ADDRESS, line.place)
        if isinstance(told, TryFailed):
            told.used = used
        return told

    def _redact(self, text: str) -> str:
        for line in self._lines.values():
            for secret in line.source.secrets:
                text = text.replace(secret, "[redacted]")
        return to_one_line(text.encode("utf-8", "replace").decode(), 400)


def _with_reason(error: ModelError, reason: str) -> ModelError:
    said = copy(error)
    said.args = (reason,)
    return said


class _Reading:
    """The reading of one answer, within its deadlines."""

    def __init__(self, api: Api, settings: Settings, on_delta: Delta | None) -> None:
        self._api = api
        self._deadlines = settings.deadlines
        self._on_delta = on_delta
        self._streamed = api.start_stream()

    @property
    def used(self) -> Usage | None:
        return self._streamed.used if self._streamed else None

    async def read_reply(self, source: Source, body: bytes, *, stream: bool) -> ReadReply:
        limit = anyio.current_time() + self._deadlines.total
        found: ReadReply | None = None
        try:
            with anyio.CancelScope(deadline=limit) as scope:
                async with source.open(body, stream=stream) as answer:
                    found = await self._read_answer(answer, scope)
        except TryFailed:
            if self._streamed is None or not self._streamed.is_complete:
                raise
        if self._streamed is not None and self._streamed.is_complete:
            return self._streamed.to_reply()
        if found is None:
            raise TryFailed("the model's endpoint sent nothing new for too long")
        return found

    async def _read_answer(self, answer: ServerAnswer, scope: anyio.CancelScope) -> ReadReply:
        if answer.status != 200:
            raise _to_error(answer, await _read(answer.chunks, MAX_ERROR_BYTES))
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and self._streamed is not None:
            return await self._read_stream(answer, self._streamed, scope)
        if kind != "application/json":
            raise ModelRefused(
                f"this endpoint is not {self._api.title}: it sent {kind or 'something without a type'}",
                hint=_ADDRESS,
            )
        body = await _read(answer.chunks, MAX_REPLY_BYTES + 1)
        if len(body) > MAX_REPLY_BYTES:
            raise BadReply(TOO_LONG)
        return self._api.read(body)

    async def _read_stream(
        self, answer: ServerAnswer, streamed: StreamedReply, scope: anyio.CancelScope
    ) -> ReadReply:
        limit = scope.deadline
        scope.deadline = min(limit, anyio.current_time() + self._deadlines.idle)
        async for event in read_events(answer.chunks):
            text = streamed.take(event)
            if text is None:
                continue
            patience = _LAST_BYTES_SECONDS if streamed.is_complete else self._deadlines.idle
            scope.deadline = min(limit, anyio.current_time() + patience)
            if text and self._on_delta is not None:
                self._on_delta(text)
        return streamed.to_reply()


async def _read(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """Return a body up to a limit; one that is too long is cut, and so is no JSON."""
    found = bytearray()
    async for chunk in chunks:
        found += chunk
        if len(found) >= limit:
            break
    return bytes(found[:limit])


def _to_error(answer: ServerAnswer, body: bytes) -> ModelError:
    if 300 <= answer.status < 400:
        host = urlsplit(answer.headers.get("location", "")).netloc.rpartition("@")[2]
        where = f" to {host}" if host else ""
        return ModelRefused(f"the model's endpoint redirects{where}; no redirect is followed", hint=_ADDRESS)
    if 200 < answer.status < 300:
        return BadReply(f"the model's endpoint answered {answer.status}")
    fault = read_fault(decode_or_none(body.decode("utf-8", "replace")), answer.headers)
    status = _NO_MONEY if "insufficient_quota" in fault.kinds else answer.status
    return to_status_error(status, fault.message, fault.retry_after)


def _to_event_error(error: dict[str, Any]) -> ModelError:
    fault = read_fault({"error": error}, {})
    if fault.status is not None:
        return to_status_error(fault.status, fault.message, fault.retry_after)
    kind = next((kind for kind in fault.kinds if kind in FAULT_STATUSES), "".join(fault.kinds[:1]))
    return to_type_error(kind, fault.message)
