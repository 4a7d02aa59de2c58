"""Which addresses of the web may be asked: http and https on public hosts, decided without asking anybody."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

from agentflow.core.errors import InvalidInput
from agentflow.core.record import Record

PORTS = {"http": 80, "https": 443}
_ODD = re.compile(r"[\x00-\x20\x7f\\]")
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_LOCAL = ("localhost", "local", "internal", "lan", "home.arpa")
"""Names below these mean this machine, its network or a cloud's metadata."""
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_UNICAST = IPv6Network("2000::/3")
_TUNNELS = (IPv6Network("2002::/16"), IPv6Network("2001::/32"))
"""6to4 and Teredo hold an IPv4 address that somebody else delivers to."""
_CLOSED = tuple(IPv4Network(each) for each in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"))
"""Public to Python, and yet set aside for protocols, for tunnels, or for a cloud's own machines."""


class Target(Record):
    """An address of the web in its parts, none of which can be read in two ways."""

    scheme: str
    host: str
    port: int
    path: str
    """With the query."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def target(url: str) -> Target:
    """Return what an address names. Raises InvalidInput for one that may not be asked."""
    if _ODD.search(url):
        raise InvalidInput("url: holds a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInput("url: is no address that can be read") from None
    if parts.scheme not in PORTS:
        raise InvalidInput("url: begins with neither http:// nor https://")
    if "@" in parts.netloc:
        raise InvalidInput("url: holds a user name or a password")
    host = (parts.hostname or "").removesuffix(".")
    _require_public(host)
    path = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_PRINTABLE)
    return Target(scheme=parts.scheme, host=host, port=port or PORTS[parts.scheme], path=path)


def is_public(address: str) -> bool:
    """Return whether an IP address is on the internet, and not of this machine or its network."""
    found = _literal(address)
    match found:
        case None:
            return False
        case IPv4Address():
            is_set_aside = found.is_multicast or any(found in network for network in _CLOSED)
            return found.is_global and not is_set_aside
        case IPv6Address(ipv4_mapped=None):
            is_tunnel = any(found in network for network in _TUNNELS)
            return found.is_global and found in _UNICAST and not (is_tunnel or found.scope_id)
        case IPv6Address():
            return is_public(str(found.ipv4_mapped))


def _require_public(host: str) -> None:
    """Raise InvalidInput for a host that is told from its spelling not to be a public one."""
    if _literal(host) is not None:
        if not is_public(host):
            raise InvalidInput(f"url: {host} is not a public address")
    elif any(host == name or host.endswith(f".{name}") for name in _LOCAL):
        raise InvalidInput(f"url: {host} is a name of this machine or its network")
    elif not _NAME.fullmatch(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise InvalidInput("url: the host is neither a full name in ASCII nor a plain IP address")


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
