"""Signed links, each of which opens one decision on the page, once."""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

from agentflow.core.errors import StateError
from agentflow.core.pending import Pending
from agentflow.core.record import Record, encode
from agentflow.parse import decode
from agentflow.process import make_timestamp

_SECONDS = 3600


class SignedLink(Record):
    task: str
    pending: str
    seen: str
    """The `identity` of what waited."""
    until: str
    nonce: str


class Links:
    """The links of one server; their key is in no file, so that no command of a role can read it."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self.used = set[str]()
        """The nonces of those by which something was decided."""

    def make(self, task_id: str, item: Pending) -> tuple[str, str]:
        """Return the signed text of a link, and until when it is valid."""
        until, nonce = make_timestamp(_SECONDS), secrets.token_urlsafe(12)
        until = min(until, item.expires_at or until)
        link = SignedLink(task=task_id, pending=item.id, seen=item.identity, until=until, nonce=nonce)
        payload = urlsafe_b64encode(encode(link)).decode()
        return f"{payload}.{self._sign(payload)}", until

    def read(self, text: str) -> SignedLink:
        """Return what a link is for. Raises StateError for one that is forged, used or too old."""
        payload, _, signature = text.rpartition(".")
        if not hmac.compare_digest(self._sign(payload).encode(), signature.encode()):
            raise StateError("this link is not valid", hint="the page makes a new one")
        link = decode(SignedLink, urlsafe_b64decode(payload), "link")
        if make_timestamp() >= link.until:
            raise StateError("this link has expired", hint="the page makes a new one")
        if link.nonce in self.used:
            raise StateError("this link was used before", hint="each link decides once")
        return link

    def _sign(self, payload: str) -> str:
        return hmac.digest(self._key, payload.encode(), "sha256").hex()
