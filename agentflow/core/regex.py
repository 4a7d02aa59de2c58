"""Patterns: regular expressions compiled at first use, and globs over paths as git reads them."""

import re
from functools import cache
from typing import Any, AnyStr, cast


class LateRegex:
    """Stands for a compiled expression, and becomes one when something is asked of it."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)  # the next time it is there without a detour
        return found


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression like a compiled one; to compile hundreds at import is a tenth of a start."""
    return cast("re.Pattern[AnyStr]", _late(pattern, flags))


_late = cache(LateRegex)


_TOKEN = re.compile(r"\*\*/|\*\*|[*?{},]|\[[!^]?\]?[^\]/]*\]|\\.|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return a pattern for the paths that a glob names; one without a slash names files at any depth.

    Knows `**`, `*`, `?`, `[a-z]`, `[!a-z]` and `{a,b}`; only `**` reaches into folders.
    """
    try:
        return re.compile(to_expression(glob), re.DOTALL)
    except re.error:  # a set or braces that make no sense: only a file of that very name
        return re.compile(re.escape(glob.removeprefix("./")))


def to_expression(glob: str) -> str:
    """Return the regular expression of a glob, for `re.DOTALL`; one that makes no sense does not compile."""
    wanted = glob.removeprefix("./")
    body = _translate(wanted.lstrip("/"))
    return body if "/" in wanted else f"(?:.*/)?{body}"


def _translate(glob: str) -> str:
    tokens = _TOKEN.findall(glob)
    braces = tokens.count("{") == tokens.count("}")
    depth, body = 0, ""
    for token in tokens:
        meaning = _in_braces(token, depth) if braces else None
        body += meaning or _MEANING.get(token) or _literal(token)
        depth += meaning is not None and {"{": 1, "}": -1}.get(token, 0)
    return body


def _in_braces(token: str, depth: int) -> str | None:
    if token == "{":  # noqa: S105  # a piece of a glob
        return "(?:"
    if depth > 0:
        return {"}": ")", ",": "|"}.get(token)
    return None


def _literal(token: str) -> str:
    if token.startswith("[") and len(token) > 2:
        negated = token[1] in "!^"
        members = token[1 + negated : -1].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
        return f"[^/{members}]" if negated else f"[{members}]"
    return re.escape(token.removeprefix("\\") if len(token) > 1 else token)
