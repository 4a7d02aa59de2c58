"""The text of a file in whatever encoding it has, and a new text as bytes in the same one."""

import codecs
import string

from agentflow.core.record import Record
from agentflow.core.regex import regex

UTF8 = "utf-8"
_WESTERN = ("latin-1", "cp1252")
_MARKS = ((codecs.BOM_UTF8, UTF8), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 1024
_DECLARED = regex(
    r"\A(?:.*\n)?[ \t\f]*(?:#|<\?xml|@charset|//|/\*|;|--|%).*?(?:coding|charset)\s*[:= ]\s*[\"']?([-\w.]+)"
    r"|(?i:<meta[^>]*charset\s*=\s*[\"']?([-\w.]+))"
)
_FOREIGN = regex(rb"[\x80-\xff]{3}")
"""Letters of a language that is written without ASCII, so no Western text in one byte a letter."""


class FileText(Record):
    """The text of a file, and how its bytes spell it."""

    text: str
    encoding: str = UTF8
    mark: bytes = b""
    """The byte order mark, which the text does not have."""
    is_known: bool = True
    """Whether the encoding is more than a carrier of bytes that nothing says how to read."""

    @property
    def shown(self) -> str:
        """Return the text as it can be written down: bytes that are no letter are replaced."""
        return self.text.encode(UTF8, "surrogateescape").decode(UTF8, "replace")

    @property
    def is_broken(self) -> bool:
        """Return whether some bytes of UTF-8 text are no letters."""
        return self.encoding == UTF8 and self.text != self.shown

    def encode(self, new: str) -> bytes:
        """Return a new text as the file spells it. Raises UnicodeEncodeError where that is impossible."""
        encoding = self.encoding
        declared = find_declared_encoding(new)
        if self.is_known and not self.mark and declared != find_declared_encoding(self.text):
            encoding = declared or UTF8  # who changes what a file says of itself wants it to be so
        if not self.is_known:
            new.translate(dict.fromkeys(map(ord, self.text))).encode("ascii")
        return self.mark + new.encode(encoding, "surrogateescape" if encoding == UTF8 else "strict")


def decode_file(content: bytes) -> FileText:
    """Return the text of a file; all that it does not say of its encoding is told from its bytes."""
    for mark, encoding in _MARKS:
        if content.startswith(mark) and (found := _decode(content[len(mark) :], encoding)):
            return found.replace(mark=mark)
    if (found := _decode(content, UTF8)) and not content.isascii():
        return found
    declared = find_declared_encoding(content[:_HEAD].decode("latin-1"))
    if found := _decode(content, declared or UTF8):
        return found
    return _guess(content)


def encode_file(text: str) -> bytes:
    """Return a whole text as the bytes of a file: in the encoding that it names, else in UTF-8."""
    try:
        return FileText(text="").encode(text)
    except UnicodeEncodeError:
        return text.encode(UTF8, "surrogateescape")


def has_wide_letters(content: bytes) -> bool:
    """Return whether a file begins as text of two bytes a letter, in which a NUL is no sign of a program."""
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0\0" not in content[:_HEAD]


def find_declared_encoding(text: str) -> str | None:
    named = _DECLARED.search(text[:_HEAD])
    name = (named[1] or named[2]).lower() if named else UTF8
    try:
        encoding = codecs.lookup(name).name
        is_plain = string.printable.encode(encoding) == string.printable.encode()
    except (LookupError, ValueError):
        return None
    return encoding if is_plain and encoding not in (UTF8, "ascii") else None


def _decode(content: bytes, encoding: str) -> FileText | None:
    """Return the text of bytes in an encoding; None where they are not exactly that text's."""
    try:
        text = content.decode(encoding)
        return FileText(text=text, encoding=encoding) if text.encode(encoding) == content else None
    except ValueError:
        return None


def _guess(content: bytes) -> FileText:
    mixed = content.decode(UTF8, "surrogateescape")
    broken = sum("\udc80" <= sign <= "\udcff" for sign in mixed)
    if sum(sign > "\x7f" for sign in mixed) > 2 * broken:
        return FileText(text=mixed)
    is_iso = not any(0x80 <= byte < 0xA0 for byte in content)
    found = _decode(content, _WESTERN[not is_iso])
    if found is None or _FOREIGN.search(content):
        return FileText(text=content.decode("latin-1"), encoding="latin-1", is_known=False)
    return found
