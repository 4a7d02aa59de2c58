"""The endpoint of a live model: its address, and the credentials for it, by environment or settings."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agentflow import __version__
from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.record import Record
from agentflow.model.tiers import ANTHROPIC, MESSAGES, REPAIR, list_providers, parse_choice
from agentflow.model.wire import ADDRESS
from agentflow.process import capture_attended
from agentflow.settings import PROVIDERS, Provider, Settings

VENDOR = "https://api.anthropic.com"
MESSAGES_PATH = "/v1/messages"
API_VERSION = "2026-10-21"
KEY = "ANTHROPIC_API_KEY"
TOKEN = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105  # its name
COMMAND_SECONDS = 60.0
_SCHEMES = ("http", "https")
_COMMAND = "api_key_command in config.yaml"
_PORT = re.compile(r":\d+\Z", re.ASCII)


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
    version: str = API_VERSION
    """Of the Messages API; empty for another."""
    place: str = ADDRESS
    """What sets the address, for messages."""
    lacks: str = ""
    """The variable of the key that the vendor needs, where there is none."""

    @property
    def url(self) -> str:
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
        version = {"anthropic-version": self.version} if self.version else {}
        own = {"content-type": "application/json", "user-agent": f"agentflow/{__version__}"}
        return {**own, **version, **self.headers}

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(secret.value for secret in (self.key, self.token) if secret is not None)


def choose_endpoint(environ: Mapping[str, str], settings: Settings) -> Endpoint:
    """Return the endpoint: of the environment, else of the settings, else the vendor's.

    A source of the key that the settings name counts alone. Raises ConfigError, or ModelRejected without it.
    """
    named = environ.get("ANTHROPIC_BASE_URL") or settings.endpoint or VENDOR
    _check_address(named, "the Messages API", ADDRESS)
    key, token = _credentials(environ, settings)
    lacks = KEY if named.rstrip("/") == VENDOR and not (key or token) else ""
    return Endpoint(address=named.rstrip("/"), key=key, token=token, lacks=lacks)


def choose_provider_endpoint(name: str, environ: Mapping[str, str], settings: Settings) -> Endpoint:
    """Return the endpoint of a provider of the Chat Completions API. Raises ConfigError, or ModelRejected."""
    shipped = PROVIDERS.get(name, Provider())
    own = settings.providers.get(name, Provider())
    found = settings.find_provider(name)
    variable = found.endpoint_env or ""
    setting = f"providers.{name}.endpoint in config.yaml"
    place = f"{variable}, or {setting}" if variable else setting
    named = environ.get(variable) or found.endpoint or ""
    address = _complete_address(named, shipped.endpoint or "/v1").rstrip("/")
    _check_address(address, name, place)
    if own.api_key_env or own.api_key_command:
        token = _find_named_key(own, environ, f"providers.{name}.")
    else:
        token = _secret(environ.get(found.api_key_env or "", ""), found.api_key_env or "")
    is_vendor = address == shipped.endpoint and shipped.api_key_env and token is None
    return Endpoint(
        address=address,
        token=token,
        path="/chat/completions",
        version="",
        place=place,
        lacks=found.api_key_env or "" if is_vendor else "",
    )


def _complete_address(named: str, shipped: str) -> str:
    """Return an address with what it leaves out, such as `gpu:11434`: scheme, host, port, or path."""
    usual = urlsplit(shipped)
    if "://" not in named:
        host, slash, path = named.partition("/")
        host = f"{usual.hostname}{host}" if host.startswith(":") else host
        port = "" if _PORT.search(host) or usual.port is None else f":{usual.port}"
        named = f"{usual.scheme}://{host}{port}{slash}{path}"
    parts = urlsplit(named)
    return parts._replace(path=parts.path or usual.path).geturl()


def _check_address(named: str, who: str, place: str) -> None:
    parts = urlsplit(named)
    try:
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is no number
        has_host = False
    if parts.scheme not in _SCHEMES or not has_host:
        raise ConfigError(
            f"the address of {who} must begin with http:// or https:// and name a host", hint=f"it is {place}"
        )


def can_search(name: str, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Return whether a model's endpoint runs searches of the web itself, as far as that is known."""
    kind = parse_choice(name).kind
    if kind == REPAIR:
        return False
    if set(list_providers(name, settings)) - set(MESSAGES):
        return False
    if settings.web_search is not None or kind == "script":
        return settings.web_search is not False
    address = environ.get("ANTHROPIC_BASE_URL") or settings.endpoint or VENDOR
    return kind == ANTHROPIC and address.rstrip("/") == VENDOR


def _credentials(environ: Mapping[str, str], settings: Settings) -> tuple[Secret | None, Secret | None]:
    if settings.api_key_env or settings.api_key_command:
        return _find_named_key(settings, environ), None
    return _secret(environ.get(KEY, ""), KEY), _secret(environ.get(TOKEN, ""), TOKEN)


def _find_named_key(own: Settings | Provider, environ: Mapping[str, str], where: str = "") -> Secret | None:
    """Return the key from the source that the user names."""
    if own.api_key_env and own.api_key_command:
        raise ConfigError(
            f"config.yaml names both {where}api_key_env and {where}api_key_command", hint="name one of them"
        )
    if own.api_key_command:
        source = f"{where}{_COMMAND}"
        return _secret(_run_command(own.api_key_command, environ, source), source)
    variable = own.api_key_env or ""
    found = _secret(environ.get(variable, ""), variable)
    if found is None:
        raise ModelRejected(
            f"the environment holds no {variable}", hint=f"{where}api_key_env in config.yaml names it"
        )
    return found


def _run_command(argv: tuple[str, ...], environ: Mapping[str, str], source: str) -> str:
    """Return what the user's command prints; what it says when it fails is not shown, for it may be a key.

    It runs in the user's home, so that no file of a repository takes a part in it.
    """
    own = {name: value for name, value in environ.items() if name not in (KEY, TOKEN)}
    try:
        done = capture_attended(argv, cwd=Path.home(), env=own, timeout=COMMAND_SECONDS)
    except OSError as error:
        raise ModelRejected(f"{source} gave no key: {error.strerror or error}") from None
    text = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not text:
        raise ModelRejected(
            f"{source} gave no key: exit {done.returncode}", hint=f"run {argv[0]} yourself to see why"
        )
    return text


def _secret(value: str, source: str) -> Secret | None:
    value = value.strip()
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ConfigError(f"{source} holds characters that no credential has")
    return Secret(value)
