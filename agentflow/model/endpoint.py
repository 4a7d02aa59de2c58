"""The endpoint of a live model: its address, and the credentials for it, by environment or settings."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agentflow import __version__
from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.record import Record
from agentflow.model.tiers import REPAIR, parse_choice
from agentflow.process import capture_attended
from agentflow.settings import Settings

VENDOR = "https://api.anthropic.com"
MESSAGES_PATH = "/v1/messages"
API_VERSION = "2026-10-21"
KEY = "ANTHROPIC_API_KEY"
TOKEN = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105  # its name
COMMAND_SECONDS = 60.0
_SCHEMES = ("http", "https")
_COMMAND = "api_key_command in config.yaml"


class Secret:
    """A credential, which no print shows."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(…)"


class Endpoint(Record):
    """A server that speaks the Messages API, or another at another path, and the credentials for it."""

    address: str
    key: Secret | None = None
    token: Secret | None = None
    path: str = MESSAGES_PATH

    @property
    def url(self) -> str:
        """The address of requests."""
        return f"{self.address}{self.path}"

    @property
    def headers(self) -> dict[str, str]:
        """The credentials as headers; a key is sent in both headers that servers read."""
        if self.key is not None:
            return {"x-api-key": self.key.value, "authorization": f"Bearer {self.key.value}"}
        return {"authorization": f"Bearer {self.token.value}"} if self.token is not None else {}

    @property
    def request_headers(self) -> dict[str, str]:
        """The headers that are the same in every request of our own."""
        return {
            "content-type": "application/json",
            "anthropic-version": API_VERSION,
            "user-agent": f"agentflow/{__version__}",
            **self.headers,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(secret.value for secret in (self.key, self.token) if secret is not None)


def choose_endpoint(environ: Mapping[str, str], settings: Settings) -> Endpoint:
    """Return the endpoint: of the environment, else of the settings, else the vendor's.

    A source of the key that the settings name counts alone. Raises ConfigError, or ModelRejected without it.
    """
    named = environ.get("ANTHROPIC_BASE_URL") or settings.endpoint or VENDOR
    parts = urlsplit(named)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConfigError(
            "the address of the Messages API must begin with http:// or https:// and name a host",
            hint="it is ANTHROPIC_BASE_URL, or endpoint in config.yaml",
        )
    key, token = _credentials(environ, settings)
    return Endpoint(address=named.rstrip("/"), key=key, token=token)


def can_search(name: str, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Return whether a model's endpoint runs searches of the web itself, as far as that is known."""
    kind = parse_choice(name).kind
    if kind == REPAIR:
        return False
    if settings.web_search is not None or kind == "script":
        return settings.web_search is not False
    address = environ.get("ANTHROPIC_BASE_URL") or settings.endpoint or VENDOR
    return kind == "anthropic" and address.rstrip("/") == VENDOR


def _credentials(environ: Mapping[str, str], settings: Settings) -> tuple[Secret | None, Secret | None]:
    if settings.api_key_env and settings.api_key_command:
        raise ConfigError("config.yaml names both api_key_env and api_key_command", hint="name one of them")
    if settings.api_key_command:
        return _secret(_run_command(settings.api_key_command, environ), _COMMAND), None
    if settings.api_key_env is None:
        return _secret(environ.get(KEY, ""), KEY), _secret(environ.get(TOKEN, ""), TOKEN)
    found = _secret(environ.get(settings.api_key_env, ""), settings.api_key_env)
    if found is None:
        raise ModelRejected(
            f"the environment holds no {settings.api_key_env}", hint="api_key_env in config.yaml names it"
        )
    return found, None


def _run_command(argv: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Return what the user's command prints; what it says when it fails is not shown, for it may be a key.

    It runs in the user's home, so that no file of a repository takes a part in it.
    """
    own = {name: value for name, value in environ.items() if name not in (KEY, TOKEN)}
    try:
        done = capture_attended(argv, cwd=Path.home(), env=own, timeout=COMMAND_SECONDS)
    except OSError as error:
        raise ModelRejected(f"{_COMMAND} gave no key: {error.strerror or error}") from None
    text = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not text:
        raise ModelRejected(
            f"{_COMMAND} gave no key: exit {done.returncode}", hint=f"run {argv[0]} yourself to see why"
        )
    return text


def _secret(value: str, source: str) -> Secret | None:
    value = value.strip()
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ConfigError(f"{source} holds characters that no credential has")
    return Secret(value)
