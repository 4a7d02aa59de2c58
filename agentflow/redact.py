"""Takes secrets out of texts and makes control characters visible before they are written or shown."""

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from agentflow.core.record import Record, map_texts
from agentflow.core.regex import regex

MARK = "[REDACTED]"
KEY_VARIABLES = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"),
    *("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY"),
)
"""Variables whose values are always secrets."""
_SHORTEST = 8
"""A value below this is no credential, and would be found in the middle of words."""
_SIGNS = (
    *("AKIA", "ASIA", "aws_", "AWS_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("xox", "xapp-", "hooks.slack", "PRIVATE KEY", "npm_", "pypi-", "glpat-", "k_live_", "AIza", "hf_"),
)
"""One of these stands in every secret of a known form; looking for them costs next to nothing."""
_FORMS = regex(
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
  | (?: (?<![A-Za-z0-9_-]) | (?<=\\[nrtbf]) ) (?: glpat-[A-Za-z0-9_-]{20,}+       # GitLab
    | [rs]k_live_[A-Za-z0-9]{16,}+ | hf_[A-Za-z0-9]{30,}+                         # Stripe, Hugging Face
    | AIza[A-Za-z0-9_-]{35} (?![A-Za-z0-9_-]) )                                   # Google
  | (?<![A-Za-z0-9_]) (?: npm_[A-Za-z0-9]{36}+ | pypi-[A-Za-z0-9_-]{50,}+ )         # package registries
  | -----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----         # PEM, to its end if it has one
    (?: [^-"]{0,20000}+ -----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
      | (?: (?: \s | \\[nrt] ){1,4} [A-Za-z0-9+/=]{20,}+ )*+ )
    """,
    re.VERBOSE | re.ASCII,
)
_PROSE = (
    regex(
        r"""(?P<name>
        (?i: pass(?:word|wd|phrase) | secret | token | credentials? | (?:api|access|private)[ _-]?key )
        ["']? [ \t]{0,4} (?: [:=] | is\b | are\b ) [ \t]{0,4} ["'`]? )
        (?= [^\s"'`]* \d ) [^\s"'`]{6,}+""",
        re.VERBOSE,
    ),
    regex(r"(?P<name>\b(?i:bearer|basic|token) )(?=\S*\d)[A-Za-z0-9._~+/=-]{12,}+"),
    regex(r"(?P<name>\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,99}:)[^\s/@]{3,}+(?=@)"),
    regex(r"(?P<name>)\beyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"),
)
"""What people call a secret, a password in an address, a signed token."""
_NAME_OF_SECRET = regex(r"(?:TOKEN|SECRET|PASSWORD|KEY)\Z")
_LINE = r"(?:^|(?<=[\n:\t ]))"
"""Where a line of a file begins, also behind its number or the name of the file."""
_NEXT = r"[ \t]*(?:\r?\n[^\n]{0,200}?(?<![A-Za-z0-9_]))?[ \t]*"
"""What stands between two words of a file that may lie on two lines."""
_PACKAGES_FILE = regex(  # .npmrc
    rf"""{_LINE} (?P<name> (?: //[^\s=]{{1,200}}: )?
      _(?:authToken|auth|password) [ \t]{{0,4}} = [ \t]{{0,4}} )
    (?! \$ ) (?= [^\s]* [0-9=] ) [A-Za-z0-9+/=_.~-]{{8,}}+ (?= \s | $ | \\[nr] | " )""",
    re.VERBOSE | re.ASCII,
)
_UPLOADS_FILE = regex(  # .pypirc
    r"""(?P<name> (?: \[ (?:pypi|testpypi|server-login) \] | \b username [ \t]*[=:][ \t]* __token__ )
      [^\[\]]{0,400}? (?<![A-Za-z0-9_]) password [ \t]*[=:][ \t]* )
    (?! [$%{] ) [^\s"\\]{4,}+""",
    re.VERBOSE | re.ASCII,
)
_MACHINES_FILE = regex(  # .netrc
    rf"""{_LINE} (?P<name>
      (?: machine[ \t]+\S+ | default ) {_NEXT} login[ \t]+\S+ {_NEXT} password[ \t]+ )
    (?! [$<] ) [^\s"\\]{{3,}}+""",
    re.VERBOSE | re.ASCII,
)
_FILES = (
    (regex(r"_(?:authToken|auth|password)[ \t]*="), "=", _PACKAGES_FILE),
    (regex(r"\[(?:testpypi|pypi|server-login)\]|__token__"), "password", _UPLOADS_FILE),
    (regex(r"login[ \t]+\S+\s+(?:\S*?[\t:])?[ ]*password[ \t]"), "password", _MACHINES_FILE),
)
"""Files that hold tokens in lines of their own form, each behind two signs without which it is none."""
_FILE_BEGIN = regex(
    r"(?<!\w)(?:machine|default|username\S*|\[(?:pypi|testpypi|server-login)\])(?:\s++\S++){0,12}+\s*+\Z",
    re.ASCII,
)
"""The beginning of such a file whose token may still follow."""
_NAMED = regex("aws_|_auth|_password", re.IGNORECASE)
_HEAD = regex(
    r"(?:sk-(?:ant-(?:[a-z]+[0-9]+-)?|proj-|svcacct-|admin-)?|gh[pousr]_|github_pat_|AKIA|ASIA)", re.ASCII
)
"""The beginning that all keys of a kind share, and that reveals nothing."""
_GRAM = 6
_ECHO = 16
"""Characters of a key, in any spelling of it, that are no coincidence."""
_BEGIN = "-----BEGIN"
_END = regex("-----END[A-Z0-9 ]{0,60}-----")
_LONGEST = 32_768
"""The most characters that are held back because they may belong to a secret."""
_COLOURS = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B])")
_UNSEEN = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_DEEP = " " * 6
"""An indent at which Markdown sees no heading, even below a list item."""


def redact_text(text: str, environ: Mapping[str, str] | None = None) -> str:
    own = _load_own() if environ is None else _Own.of(_list_values(environ))
    found = text
    for value in own.values:
        found = found.replace(value, MARK)
    for start, end in reversed(list(own.echoes(found))):
        found = found[:start] + MARK + found[end:]
    if any(sign in found for sign in _SIGNS):
        found = _FORMS.sub(_mask, found)
    for sign, word, form in _FILES:
        if word in found and sign.search(found):
            found = form.sub(rf"\g<name>{MARK}", found)
    return found


def redact_prose(text: str) -> str:
    """Take out of what people and roles wrote also what they call a secret, and keys of the environment.

    A word too much does no harm there, as it would in the text of a program.
    """
    found = redact_text(text)
    for form in _PROSE:
        found = form.sub(rf"\g<name>{MARK}", found)
    for name, value in os.environ.items():
        if _NAME_OF_SECRET.search(name) and len(value) >= _ECHO and value in found:
            found = found.replace(value, MARK)
    return found


class _Own(Record):
    values: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    grams: dict[str, tuple[int, int]] = {}
    """Each piece of a spelling, with its spelling and position."""
    runs: re.Pattern[str] | None = None
    """Runs of characters that are long enough to be an echo."""

    @classmethod
    def of(cls, values: Iterable[str]) -> "_Own":
        known = tuple(values)
        spellings = tuple(each for value in known for each in _list_spellings(value) if len(each) >= _ECHO)
        if not spellings:
            return cls(values=known)
        grams = {
            each[at : at + _GRAM]: (number, at)
            for number, each in enumerate(spellings)
            for at in range(len(each) - _GRAM + 1)
        }
        letters = re.escape("".join(sorted(set("".join(spellings)))))
        runs = re.compile(f"[{letters}]{{{_ECHO},}}+")
        return cls(values=known, spellings=spellings, grams=grams, runs=runs)

    def echoes(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a text repeats a long part of a key, in order."""
        if self.runs is None:
            return
        done = 0
        for run in self.runs.finditer(text):
            for at in range(run.start(), run.end() - _GRAM + 1, _ECHO - _GRAM + 1):
                place = self.grams.get(text[at : at + _GRAM]) if at >= done else None
                if place is not None:
                    start, end = _extend_match(text, at, self.spellings[place[0]], place[1])
                    if end - start >= _ECHO and start >= done:
                        yield start, end
                        done = end


def _extend_match(text: str, at: int, spelling: str, place: int) -> tuple[int, int]:
    start, end = 0, _GRAM
    while start < min(at, place) and text[at - start - 1] == spelling[place - start - 1]:
        start += 1
    while at + end < len(text) and place + end < len(spelling) and text[at + end] == spelling[place + end]:
        end += 1
    return at - start, at + end


def _list_spellings(value: str) -> Iterator[str]:
    """Yield how a key may be spelled, without what any key begins with and what depends on its neighbours."""
    rest = value[head.end() :] if (head := _HEAD.match(value)) else value
    raw = rest.encode("utf-8", "replace")
    yield rest
    yield from {quote(rest, safe=""), json.dumps(rest)[1:-1]} - {rest}
    yield raw.hex()
    yield raw.hex().upper()
    for before in range(3):
        for encoded in (b64encode(b"\0" * before + raw), urlsafe_b64encode(b"\0" * before + raw)):
            whole = (before + len(raw)) * 4 // 3
            yield encoded.decode()[-(-before * 4 // 3) : whole]


def redact_bytes(raw: bytes) -> bytes:
    text = raw.decode("latin-1")
    found = redact_text(text)
    return raw if found == text else found.encode("latin-1")


def redact_values(value: Any) -> Any:
    return map_texts(value, redact_text, redact_text)


_KEPT: set[str] = set()
"""Keys from other sources than the usual variables."""


def keep_secret(values: Iterable[str]) -> None:
    """Redact these values from all texts from now on."""
    _KEPT.update(value for value in values if len(value) >= _SHORTEST)
    _load_own.cache_clear()


@cache
def _load_own() -> _Own:
    # our environment stays as it was, and this is asked some thirty times a turn
    return _Own.of(sorted({*_list_values(os.environ), *_KEPT}, key=len, reverse=True))


def _list_values(environ: Mapping[str, str]) -> list[str]:
    """Return the user's own keys, the longest first, since one may begin with another."""
    values = {environ.get(name, "").strip() for name in KEY_VARIABLES}
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)


def _mask(found: re.Match[str]) -> str:
    """Put a mark in place of each line of a secret, so that line numbers stay true."""
    return (found["name"] or "") + MARK + f"\n{MARK}" * found.group().count("\n")


class Redactor:
    """Passes on a text that comes in pieces, without secrets, even one that spans two pieces."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self._take = take
        self._held = ""

    def add(self, piece: str) -> None:
        """Pass on what can no longer become part of a secret."""
        self._held += piece
        end = _settle(self._held)
        if end:
            self._take(redact_text(self._held[:end]))
            self._held = self._held[end:]

    def finish(self) -> None:
        self._take(redact_text(self._held))
        self._held = ""


def _settle(text: str) -> int:
    end = max(text.rfind(" "), text.rfind("\n")) + 1
    if not end and len(text) <= _LONGEST:
        return 0
    begin = text.rfind(_BEGIN)
    if begin != -1 and not _END.search(text, begin):
        end = min(end, begin)
    named = text.rfind("\n", 0, end) + 1  # where a line begins that may still bring what it has named
    end = named if _NAMED.search(text, max(named, end - 300), end) else end
    if opened := _FILE_BEGIN.search(text, max(0, end - 1000), end):
        end = opened.start()
    return _avoid_secrets(text, end if len(text) - end <= _LONGEST else len(text) - 1024)


def _avoid_secrets(text: str, cut: int) -> int:
    is_likely = any(sign in text for sign in _SIGNS)
    found = [(one.start(), one.end()) for one in _FORMS.finditer(text)] if is_likely else []
    for value in _load_own().values:
        start = text.find(value, max(0, cut - len(value)))
        found.append((start, start + len(value)))
    found.extend(_load_own().echoes(text))
    return min([cut, *(start for start, end in found if 0 <= start < cut < end)])


def strip_colours(text: str) -> str:
    """Return text without the sequences that colour it, set titles or move the cursor."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def spell_bytes(text: bytes) -> str:
    """Return bytes as text that can be written down: those that are no UTF-8 are escaped."""
    return text.decode("utf-8", "backslashreplace")


def make_visible(text: str) -> str:
    """Return text with control, direction and invisible characters as escapes; tab and newline stay."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def make_json_visible(text: str) -> str:
    """Return JSON with the same characters as JSON escapes, so that it says the same."""

    def escape(found: re.Match[str]) -> str:
        units = found.group().encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return _UNSEEN.sub(escape, text)


def nest_text(text: str) -> str:
    """Return text for one place in Markdown: nothing in it starts a heading or a list of its own."""
    first, *others = make_visible(text).strip().split("\n")
    head = f"\\{first}" if first.startswith("#") else first
    return "\n".join((head, *(f"{_DEEP}{line}" if line.strip() else "" for line in others)))


def to_one_line(text: str, width: int = 120) -> str:
    """Return the first line of a text that says something, made visible and shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = make_visible(redact_text(line))
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def list_some(names: Iterable[str], most: int = 5, between: str = ", ") -> str:
    """Return names in one line: the first few, and how many more there are."""
    found = tuple(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{between.join(found[:most])}{more}"


def format_money(cost: float | None) -> str:
    if cost is None:
        return "unknown"
    return f"${cost:.4f}" if 0 < cost < 1 else f"${cost:,.2f}"


def format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
