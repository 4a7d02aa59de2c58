"""The server of the page: who is let in, and what is sent; the one door to starlette and uvicorn."""

import errno
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from hmac import compare_digest
from pathlib import Path

import anyio
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentflow.core.errors import AgentflowError, ConfigError, TaskNotFound
from agentflow.core.record import encode
from agentflow.pages.render import read_style
from agentflow.parse import decode
from agentflow.web.site import Parts, Site, render_error
from agentflow.workspace.git import Git

_ADDRESS = "127.0.0.1"
_MOST_BYTES = 1024 * 1024
"""Of what a person sends with an action."""
_DOOR = "decide"
"""The first part of the path of a signed link, in place of the token."""
_HERE = Path(__file__).parent
_ASSETS = {"web.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}


def serve_page(git: Git, port: int, tell: Callable[[str], None]) -> None:
    """Serve the tasks of a repository until Ctrl-C, after telling the address. Raises ConfigError."""
    token = secrets.token_urlsafe(32)
    with _listen(port) as listening:
        port = listening.getsockname()[1]
        pages = _Pages(Site(git))
        config = uvicorn.Config(
            Guard(pages.make_app(), token, port),
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        pages.is_over = lambda: server.should_exit
        tell(f"http://{_ADDRESS}:{port}/{token}/")
        with suppress(KeyboardInterrupt):  # the server has ended by then
            server.run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_ADDRESS, port))
        listening.listen()
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} is in use", hint="choose another with --port, or leave it out"
            ) from None
        raise ConfigError(f"cannot listen on port {port}: {error.strerror}") from None
    return listening


class _Pages:
    def __init__(self, site: Site) -> None:
        self._site = site
        self.is_over: Callable[[], bool] = lambda: False

    def make_app(self) -> ASGIApp:
        site, reads = self._site, ["GET", "HEAD"]
        task = "/tasks/{task_id}"

        def send_asset(name: str, _: Request) -> Response:
            return Response((_HERE / name).read_bytes(), media_type=_ASSETS[name])

        def send_style(_: Request) -> Response:
            return Response(read_style(), media_type="text/css")

        def show_link(request: Request) -> Response:
            return HTMLResponse(site.show_link(request.path_params["link"]))

        def show_task(request: Request) -> Response:
            return HTMLResponse(site.show_task(request.path_params["task_id"]))

        app = Starlette(
            routes=[
                Route("/", lambda _: HTMLResponse(site.show_list()), methods=reads),
                Route("/memory", lambda _: HTMLResponse(site.show_memory()), methods=reads),
                Route("/live", lambda _: self._stream(site.render_list)),
                Route("/style.css", send_style, methods=reads),
                *(Route(f"/{name}", partial(send_asset, name), methods=reads) for name in _ASSETS),
                Route(f"{task}/", show_task, methods=reads),
                Route(f"{task}/live", self._follow_task),
                Route(f"{task}/evidence/{{evidence_id}}", self._show_evidence, methods=reads),
                Route(f"{task}/{{action}}", self._act, methods=["POST"]),
                *(Route(f"/{_DOOR}/{name}", partial(send_asset, name), methods=reads) for name in _ASSETS),
                Route(f"/{_DOOR}/style.css", send_style, methods=reads),
                Route(f"/{_DOOR}/{{link}}/", show_link, methods=reads),
                Route(f"/{_DOOR}/{{link}}/{{action}}", self._act, methods=["POST"]),
            ],
            exception_handlers={AgentflowError: self._tell_error},
        )
        app.router.redirect_slashes = False
        return app

    def _show_evidence(self, request: Request) -> Response:
        number = request.query_params.get("page", "1")
        place = int(number) if number.isdecimal() and len(number) < 10 else 1
        ids = request.path_params
        return HTMLResponse(self._site.show_evidence(ids["task_id"], ids["evidence_id"], place))

    def _follow_task(self, request: Request) -> Response:
        task_id = request.path_params["task_id"]
        self._site.find_task(task_id)
        return self._stream(partial(self._site.render_task, task_id))

    def _stream(self, render: Callable[[], Parts]) -> Response:
        changes = _follow_parts(render, lambda: self.is_over())  # noqa: PLW0108  # it is given later
        return StreamingResponse(changes, media_type="text/event-stream")

    async def _act(self, request: Request) -> Response:
        """Do what a person decided; the page sends it as JSON, which no form of another page can."""
        if request.headers.get("content-type") != "application/json":
            return JSONResponse({"error": "an action is sent as JSON"}, 415)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return JSONResponse({"error": "this is too long"}, 413)
        address = f"http://{request.headers['host']}/"
        said = await anyio.to_thread.run_sync(self._run, request.path_params, body, address)
        return JSONResponse({"said": said})

    def _run(self, path: Mapping[str, str], body: bytes, address: str) -> str:
        site, action = self._site, path["action"]
        if "link" in path:
            return site.follow_link(path["link"], action, body)
        if action != "link":
            return site.actions.run(action, site.find_task(path["task_id"]), body)
        wanted = decode(dict[str, str], body, "link")
        return site.make_link(path["task_id"], wanted.get("pending", ""), address)

    def _tell_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, AgentflowError)
        code = 404 if isinstance(error, TaskNotFound) else 409
        if request.method == "POST":
            return JSONResponse({"error": str(error), "hint": error.hint}, code)
        return HTMLResponse(render_error(str(error), error.hint), code)


_LOOK_SECONDS = 0.25
"""Between two looks at the files."""
_REST = 4
"""Times as long as a look took is waited until the next, so that a large task leaves the processor alone."""
_HEARTBEAT_SECONDS = 15.0
"""After that long without news a comment is sent: a reader who has gone is noticed by it."""


async def _follow_parts(
    render: Callable[[], Mapping[str, str]], is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield each part when it is new or changed, by its id; a part that is gone is empty."""
    sent: dict[str, str] = {}
    spoke = time.monotonic()
    while not is_over():
        began = time.monotonic()
        parts = await anyio.to_thread.run_sync(render)
        changed = {name: text for name, text in parts.items() if sent.get(name) != text}
        changed |= {name: "" for name in sent if name not in parts}
        now = time.monotonic()
        if changed:
            sent = dict(parts)
            yield b"data: " + encode(changed) + b"\n\n"
            spoke = now
        elif now - spoke > _HEARTBEAT_SECONDS:
            yield b": nothing new\n\n"
            spoke = now
        await anyio.sleep(max(_LOOK_SECONDS, _REST * (now - began)))


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NAMES = ("127.0.0.1", "localhost")


class Guard:
    """Lets through only requests for this very address, with the token or a link, and from its own pages.

    The token is the first part of the path, and gone from it behind this door; a link proves itself there.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = tuple(f"{name}:{port}" for name in _NAMES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refuse(Request(scope))
        if refusal:
            await PlainTextResponse(f"{refusal}\n", 403)(scope, receive, send_guarded)
            return
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        path = scope["path"] if first == _DOOR else f"/{rest}"
        await self._app({**scope, "path": path, "root_path": ""}, receive, send_guarded)

    def _refuse(self, request: Request) -> str:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return f"Refused: this server answers only to {' and '.join(self._hosts)}."
        given = request.scope["path"].removeprefix("/").partition("/")[0]
        if given != _DOOR and not compare_digest(given.encode(), self._token):
            return "Refused: open the whole address that `agentflow web` printed; it ends with a token."
        if origin is None and request.method in ("GET", "HEAD"):
            return ""
        if origin != f"http://{host}":
            return "Refused: this request comes from another page."
        return ""
