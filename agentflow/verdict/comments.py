"""Whether nothing but comments and blank lines differ in a program that is no Python."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.core.record import Record

_SLASHES = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_CHARACTER = r"'(?:[^'\\\n]|\\.)+'"
_HOLE = r"\$\{[\w.\s()+\-*%?:,\[\]]*\}"
_REGEX = r"/(?![*/])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*"
_SCRIPT_STRINGS = (
    r'"(?:[^"\\\n]|\\[^\n])*"',
    r"'(?:[^'\\\n]|\\[^\n])*'",
    rf"`(?:[^`\\$]|\\.|\$(?!\{{)|{_HOLE})*`",
    rf"(?:(?<=[(,=:\[!&|?;>])|(?<=\breturn)|(?<=^))\s*{_REGEX}",
)
_KEYWORDS = r"\b(?:typeof|case|in|of|delete|void|throw|new|await|yield|do|else|instanceof)\s*/(?![/*])"
_DIVISION = r"(?<=[\w\]]) ?/(?![/*])|(?<=\)) ?/(?![/*])(?=[^/\"'`\n]*(?:\n|\Z))"
_HERE_DOCUMENT = (
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?![^\n]*<<)[^\n]*\n"
    r"(?:.*?\n)?\t*(?P=end)(?=\n|\Z)"
)
_SHELL_INNER = r"(?:[^()\"'`\\#]|\"[^\"`\\()]*\"|'[^'\n]*')*"
_OBEYED = re.compile(
    r"@|#__|^//[A-Za-z]+[:\[]|^//(?:line|export) |^/\*\s*globals?\b|\+build|[Oo]utput:"
    r"|(?i:\b(?:eslint|jshint|jslint|tslint|biome|oxlint|prettier|istanbul|c8|v8|nolint|nosec|lint|clang|coverity"
    r"|cppcheck|iwyu|lcov|gcov|fall|falls|fallthrough|fallthru|shellcheck|ignore|disable|enable|sourcemappingurl"
    r"|sourceurl|webpack\w*|vite|flow|jsx|pragma|generated|noinspection)\b)"
)
"""What makes a line of a comment one that a program may obey."""


class _Language(Record):
    comment: str
    strings: tuple[str, ...]
    code: str
    """What is neither, as little of it as can be told."""
    odd: str
    """What says that comments are a part of what a program does, or are not told by these rules."""


_C = _Language(
    comment=_SLASHES,
    strings=(_STRING, _CHARACTER),
    code=r"[^\"'/]|/(?![/*])",
    odd=r"\\[ \t]*\n|\?\?/|R\"|[0-9a-fA-F]'[0-9a-fA-F]|__LINE__|__COUNTER__|#[^\n]*<[^>\n]*/[/*]",
)
_GO = _Language(
    comment=_SLASHES,
    strings=(_STRING, _CHARACTER, r"`[^`]*`"),
    code=r"[^\"'`/]|/(?![/*])",
    odd=r'"C"|\bruntime\.Callers?\b',
)
_SCRIPT = _Language(
    comment=_SLASHES,
    strings=_SCRIPT_STRINGS,
    code=rf"{_DIVISION}|[^\"'`/]",
    odd=r"<!--|-->|</|/>|\+\+ ?/|-- ?/|__filename|import\.meta|\.stack\b|\bcallee\b|Function\.prototype|"
    + _KEYWORDS,
)
_RUST = _Language(
    comment=r"//[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/",
    strings=(r'(?<!\w)[bc]?r(?P<mark>#*)".*?"(?P=mark)', r'"(?:[^"\\]|\\.)*"', r"'(?:[^'\\\n]|\\[^'\n]*'?)'"),
    code=r"[^\"'/]|'(?=[A-Za-z_]\w*(?!'))|/(?![/*])",
    odd=r"\b(?:line|column|file|stringify)!",
)
_SHELL = _Language(
    comment=r"(?:(?<=\n)|(?<![\s\S]))[ \t]*#(?!!)[^\n]*",
    strings=(
        _HERE_DOCUMENT,
        rf"\"(?:[^\"\\$`\n]|\\[^\n]|\$\({_SHELL_INNER}\)|\$(?!\())*\"",
        r"'[^'\n]*'",
    ),
    code=r"(?<=\S)#|(?<![\s\S])#!|(?<!\s)[ \t]+#[^\n\"'`\\]*|<(?!<)|[^\"'`\\#<]|\\.",
    odd=r"\\\n[ \t]*(?:#|\n)|BASH_SOURCE|LINENO|\bset -[a-z]*v"
    r"|(?:sed|grep|awk|head|tail|cat|cut|<)[^\n]*\$\{?0",
)
_LANGUAGES: Mapping[str, _Language] = MappingProxyType(
    {
        **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".hpp"), _C),
        ".go": _GO,
        **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"), _SCRIPT),
        ".rs": _RUST,
        **dict.fromkeys((".sh", ".bash"), _SHELL),
    }
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Some of them end a line, and with it a comment, for one compiler and not for another."""
_DOCUMENTED = re.compile(r"//[/!]|/\*[*!]")
_TAKES_DOCS = re.compile(r"#\[(?!cfg\(test\)\]|test\]|allow|must_use|inline|should_panic)|macro_rules!")
_EXAMPLE = re.compile(r"```|~~~|(?m:^\s*//[/!](?: {4,}|\t))|/\*[*!]")


def is_equal_but_comments(path: str, before: str, after: str) -> bool:
    """Tell whether two texts of a program differ in nothing but comments that no program obeys."""
    language = _LANGUAGES.get(PurePosixPath(path).suffix)
    if language is None or not before or not after:
        return False
    was, now = _read(language, before), _read(language, after)
    return was is not None and was == now


def blank_out(path: str, text: str) -> str | None:
    """Return a program with blanks for its comments and texts, line by line; None where it cannot be read."""
    language = _LANGUAGES.get(PurePosixPath(path).suffix)
    if language is None or _CONTROL.search(text) or re.search(language.odd, text):
        return None
    parts = list(_split(language, text))
    if "".join(part for _, part in parts) != text:
        return None
    return "".join(part if kind == "code" else re.sub(r"[^\n]", " ", part) for kind, part in parts)


def _read(language: _Language, text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the code of a text, and the comments that count; None where the two cannot be told apart."""
    if _CONTROL.search(text) or re.search(language.odd, text):
        return None
    parts = list(_split(language, text))
    if "".join(part for _, part in parts) != text:
        return None
    code, obeyed = "", list[str]()
    keeps_docs = language is _RUST and _keeps_docs(parts)
    for kind, part in parts:
        if kind != "comment" or (keeps_docs and _DOCUMENTED.match(part)):
            code += part.replace("\n", "\0") if kind == "string" else part
        else:
            code += "\n" * part.count("\n") or " "
            obeyed += [line.strip() for line in part.splitlines() if _OBEYED.search(line.strip())]
    lines = (line.rstrip() for line in code.split("\n"))
    return "\n".join(line for line in lines if line), tuple(obeyed)


def _split(language: _Language, text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text up to one that no rule fits."""
    pattern, place = _pattern(language), 0
    while found := pattern.match(text, place):
        yield found.lastgroup or "", found[0]
        place = found.end()


@cache
def _pattern(language: _Language) -> re.Pattern[str]:
    strings = "|".join(language.strings)
    return re.compile(
        rf"(?P<comment>{language.comment})|(?P<string>{strings})|(?P<code>{language.code})", re.DOTALL
    )


def _keeps_docs(parts: list[tuple[str, str]]) -> bool:
    """Tell whether comments that document Rust may be examples that run, or be read by a macro."""
    docs = "\n".join(part for kind, part in parts if kind == "comment" and _DOCUMENTED.match(part))
    code = "".join(part for kind, part in parts if kind == "code")
    return bool(_EXAMPLE.search(docs) or _TAKES_DOCS.search(code))
