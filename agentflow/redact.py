"""What is written, sent or shown of foreign text: secrets taken out, control sequences made visible."""

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

MARK = "[REDACTED]"
KEY_VARIABLES = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN"),
)
"""Variables of ours whose very values are secrets, whatever they look like."""
_SHORTEST = 8
"""A value below this is no credential, and would be found in the middle of words."""
_SIGNS = (
    *("AKIA", "ASIA", "aws_", "AWS_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("xox", "xapp-", "hooks.slack", "PRIVATE KEY"),
)
"""One of these stands in every secret of a known form; looking for them costs next to nothing."""
_FORMS = re.compile(
    r"""
    (?<![A-Z0-9]) (?:AKIA|ASIA) [A-Z0-9]{16} (?![A-Z0-9])                        # AWS, id
  | (?P<name> (?i:aws_(?:secret_access_key|session_token)) (?:\\?["'])? [ ]{0,4} [=:] [ ]{0,4} (?:\\?["'])? )
    [A-Za-z0-9/+=]{16,}+                                                          # AWS, key
  | sk-ant-[A-Za-z0-9_-]{8,}+                                                     # Anthropic
  | (?: (?<![A-Za-z0-9]) | (?<=\\[nrtbf]) ) sk- (?: (?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}+
    | [A-Za-z0-9]{20,}+ )                                                         # OpenAI
  | gh[pousr]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+                   # GitHub
  | xox[a-z]-[A-Za-z0-9-]{10,}+ | xapp-[A-Za-z0-9-]{10,}+                         # Slack
  | hooks\.slack\.com/services/[A-Za-z0-9/]{16,}+
  | -----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----         # PEM, to its end if it has one
    (?: [^-"]{0,20000}+ -----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
      | (?: (?: \s | \\[nrt] ){1,4} [A-Za-z0-9+/=]{20,}+ )*+ )
    """,
    re.VERBOSE | re.ASCII,
)
_BEGIN = "-----BEGIN"
_END = re.compile("-----END[A-Z0-9 ]{0,60}-----")
_LONGEST = 32_768
"""Characters that are held back at most until it shows whether they are a secret."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_DEEP = " " * 6
"""So deep that Markdown sees no heading, also below an item of a list."""


def redacted(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return text without the secrets of known forms and without the values of the user's own keys."""
    found = text
    for value in _own_values() if environ is None else _values(environ):
        found = found.replace(value, MARK)
    if any(sign in found for sign in _SIGNS):
        found = _FORMS.sub(_marked, found)
    return found


def redacted_bytes(raw: bytes) -> bytes:
    """Return bytes without secrets: all of these are ASCII, whatever else is in between."""
    text = raw.decode("latin-1")
    found = redacted(text)
    return raw if found == text else found.encode("latin-1")


def redacted_values(value: Any) -> Any:
    """Return plain data with the secrets taken out of every text in it, keys included."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {redacted_values(key): redacted_values(item) for key, item in value.items()}
    return [redacted_values(item) for item in value] if isinstance(value, list) else value


@cache
def _own_values() -> list[str]:
    # our environment stays as it was, and this is asked some thirty times a turn
    return _values(os.environ)


def _values(environ: Mapping[str, str]) -> list[str]:
    """Return the user's own keys, the longest first, since one may begin with another."""
    values = {environ.get(name, "").strip() for name in KEY_VARIABLES}
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)


def _marked(found: re.Match[str]) -> str:
    """Put a mark in place of each line of a secret, so that line numbers stay true."""
    return (found["name"] or "") + MARK + f"\n{MARK}" * found.group().count("\n")


class Redacting:
    """Text that comes in pieces, passed on without secrets, also where one spans two pieces."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self._take = take
        self._held = ""

    def add(self, piece: str) -> None:
        """Pass on what can no longer become part of a secret."""
        self._held += piece
        end = _settled(self._held)
        if end:
            self._take(redacted(self._held[:end]))
            self._held = self._held[end:]

    def finish(self) -> None:
        """Pass on what is left."""
        self._take(redacted(self._held))
        self._held = ""


def _settled(text: str) -> int:
    """Return how much of a text no secret that is still coming can begin in."""
    end = max(text.rfind(" "), text.rfind("\n")) + 1
    if not end and len(text) <= _LONGEST:
        return 0
    begin = text.rfind(_BEGIN)
    if begin != -1 and not _END.search(text, begin):
        end = min(end, begin)
    end = min(end, _before_name(text, end))
    return _outside(text, end if len(text) - end <= _LONGEST else len(text) - 1024)


def _outside(text: str, cut: int) -> int:
    """Return a place near `cut` that is in the middle of no secret."""
    is_likely = any(sign in text for sign in _SIGNS)
    found = [(one.start(), one.end()) for one in _FORMS.finditer(text)] if is_likely else []
    for value in _own_values():
        start = text.find(value, max(0, cut - len(value)))
        found.append((start, start + len(value)))
    return min([cut, *(start for start, end in found if 0 <= start < cut < end)])


def _before_name(text: str, end: int) -> int:
    """Return where a line begins that may still bring the value of an AWS key; else `end`."""
    start = text.rfind("\n", 0, end) + 1
    return start if "aws_" in text[start:end].lower()[-80:] else end


def visible(text: str) -> str:
    """Return text with control, direction and invisible characters as escapes; tab and newline stay."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def json_visible(text: str) -> str:
    """Return JSON with the same characters as JSON escapes, so that it says the same."""
    return _UNSEEN.sub(lambda found: _json_escape(found.group()), text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def nested(text: str) -> str:
    """Return text for one place in Markdown: nothing in it starts a heading or a list of its own."""
    first, *others = visible(text).strip().split("\n")
    head = f"\\{first}" if first.startswith("#") else first
    return "\n".join((head, *(f"{_DEEP}{line}" if line.strip() else "" for line in others)))


def one_line(text: str, width: int = 120) -> str:
    """Return the first line of a text that says something, made visible and shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = visible(redacted(line))
    return shown if len(shown) <= width else shown[: width - 1] + "…"
