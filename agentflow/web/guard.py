"""Who is let in: the address, the token in it, and the page that a request comes from."""

from hmac import compare_digest

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Lets through only requests for this very address, with the token, and from its own pages.

    The token is the first part of the path, and gone from it behind this door.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = tuple(f"{name}:{port}" for name in _NAMES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refuse(Request(scope))
        if refusal:
            await PlainTextResponse(f"{refusal}\n", 403)(scope, receive, send_guarded)
            return
        rest = scope["path"].removeprefix("/").partition("/")[2]
        await self._app({**scope, "path": f"/{rest}", "root_path": ""}, receive, send_guarded)

    def _refuse(self, request: Request) -> str:
        """Return why a request is not answered, or nothing."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return f"Refused: this server answers only to {' and '.join(self._hosts)}."
        given = request.scope["path"].removeprefix("/").partition("/")[0]
        if not compare_digest(given.encode(), self._token):
            return "Refused: open the whole address that `agentflow web` printed; it ends with a token."
        if origin is None and request.method in ("GET", "HEAD"):
            return ""
        if origin != f"http://{host}":
            return "Refused: this request comes from another page."
        return ""
