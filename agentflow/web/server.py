"""The server of the page: the one door to starlette and uvicorn."""

import errno
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from agentflow.core.errors import AgentflowError, ConfigError, TaskNotFound
from agentflow.pages.render import read_style
from agentflow.web.guard import Guard
from agentflow.web.live import follow_parts
from agentflow.web.site import Parts, Site, render_error
from agentflow.workspace.git import Git

_ADDRESS = "127.0.0.1"
_MOST_BYTES = 1024 * 1024
"""Of what a person sends with an action."""
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
    """Return a socket of this machine alone; 0 is any free port. Raises ConfigError."""
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
    """The addresses of the pages; what reads files runs in a thread."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.is_over: Callable[[], bool] = lambda: False

    def make_app(self) -> ASGIApp:
        """Return the application, which trusts that it is guarded."""
        reads = ["GET", "HEAD"]
        task = "/tasks/{task_id}"
        app = Starlette(
            routes=[
                Route("/", self._show_list, methods=reads),
                Route("/live", self._follow_list),
                Route("/style.css", self._send_style, methods=reads),
                *(Route(f"/{name}", partial(_send_asset, name), methods=reads) for name in _ASSETS),
                Route(f"{task}/", self._show_task, methods=reads),
                Route(f"{task}/live", self._follow_task),
                Route(f"{task}/evidence/{{evidence_id}}", self._show_evidence, methods=reads),
                Route(f"{task}/{{action}}", self._act, methods=["POST"]),
            ],
            exception_handlers={AgentflowError: self._tell_error},
        )
        app.router.redirect_slashes = False
        return app

    def _show_list(self, _: Request) -> Response:
        return HTMLResponse(self._site.show_list())

    def _show_task(self, request: Request) -> Response:
        return HTMLResponse(self._site.show_task(request.path_params["task_id"]))

    def _show_evidence(self, request: Request) -> Response:
        number = request.query_params.get("page", "1")
        place = int(number) if number.isdecimal() and len(number) < 10 else 1
        ids = request.path_params
        return HTMLResponse(self._site.show_evidence(ids["task_id"], ids["evidence_id"], place))

    def _send_style(self, _: Request) -> Response:
        return Response(read_style(), media_type="text/css")

    def _follow_list(self, _: Request) -> Response:
        return self._stream(self._site.render_list)

    def _follow_task(self, request: Request) -> Response:
        task_id = request.path_params["task_id"]
        self._site.find_task(task_id)
        return self._stream(partial(self._site.render_task, task_id))

    def _stream(self, render: Callable[[], Parts]) -> Response:
        changes = follow_parts(render, lambda: self.is_over())  # noqa: PLW0108  # it is given later
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
        said = await anyio.to_thread.run_sync(self._run_action, request, body)
        return JSONResponse({"said": said})

    def _run_action(self, request: Request, body: bytes) -> str:
        folder = self._site.find_task(request.path_params["task_id"])
        return self._site.actions.run(request.path_params["action"], folder, body)

    def _tell_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, AgentflowError)
        code = 404 if isinstance(error, TaskNotFound) else 409
        if request.method == "POST":
            return JSONResponse({"error": str(error), "hint": error.hint}, code)
        return HTMLResponse(render_error(str(error), error.hint), code)


def _send_asset(name: str, _: Request) -> Response:
    return Response((_HERE / name).read_bytes(), media_type=_ASSETS[name])
