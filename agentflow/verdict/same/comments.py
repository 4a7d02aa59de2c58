"""Comments: code without them, and whether two versions differ in nothing else."""

import ast
import io
import tokenize
from collections.abc import Iterator

from agentflow.core.languages import C_FAMILY, GO, RUST, SHELL, find_lexer
from agentflow.core.regex import regex
from agentflow.verdict.syntax import NO_PYTHON
from agentflow.verdict.tokens import split_program

_OBEYED = regex(
    r"@|#__|^//[A-Za-z]+[:\[]|^//[~#]|^//(?:line|export) |^/\*\s*globals?\b|\+[a-z]|[Oo]utput:|^#[^\s#]"
    r"|\b(?!TODO|FIXME|NOTE|XXX|HACK)[A-Z][A-Z-]{2,}:"
    r"|(?i:\b(?:eslint|jshint|jslint|tslint|biome|oxlint|prettier|istanbul|c8|v8|nolint|nosec|lint|clang|coverity"
    r"|cppcheck|iwyu|lcov|gcov|fall|falls|fallthrough|fallthru|shellcheck|ignore|disable|enable|sourcemappingurl"
    r"|sourceurl|webpack\w*|vite|flow|jsx|pragma|generated|noinspection)\b)"
)
"""Comment lines that tools may act on."""
_HEEDING = (
    (GO, regex(r'"C"|\bruntime\.Callers?\b|swagger:')),
    (C_FAMILY, regex(r"__LINE__|__COUNTER__")),
    (RUST, regex(r"\b(?:line|column|file|stringify)!")),
    (SHELL, regex(r"BASH_SOURCE|LINENO|\bset -[a-z]*v|(?:sed|grep|awk|head|tail|cat|cut|<)[^\n]*\$\{?0")),
)
"""Signs that comments, or the lines that they take, affect the program."""
_DOCUMENTED = regex(r"//[/!]|/\*[*!]")
_TAKES_DOCS = regex(r"#\[(?!cfg\(test\)\]|test\]|allow|must_use|inline|should_panic)|macro_rules!")
_EXAMPLE = regex(r"```|~~~|(?m:^\s*//[/!](?: {4,}|\t))|/\*[*!]")
_BLOCK = regex(r"(?s)(?<![\"'`\w])/\*.*?\*/")
_TRAILING = regex(r"(?:(?<=\s)|^)//(?![^\"'`]*[\"'`]\s*[;,)]).*|(?:(?<=\s)|^)#(?!\[|!)\s.*")

_Region = tuple[tuple[int, int], tuple[int, int]]


def list_code_lines(path: str, text: str) -> list[str]:
    """Return the lines of a file without comments and docstrings, as far as these can be recognised."""
    return _python_lines(text) if path.endswith(".py") else _other_lines(text)


def _python_lines(text: str) -> list[str]:
    try:
        spans = [*_docstrings(ast.parse(text)), *_comments(text)]
    except (*NO_PYTHON, tokenize.TokenError):
        return _other_lines(text)
    lines = text.splitlines()
    for (first, begin), (last, end) in spans:
        for place in range(first - 1, min(last, len(lines))):
            line = lines[place].encode()
            left = line[:begin] if place == first - 1 else b""
            right = line[end:] if place == last - 1 else b""
            lines[place] = (left + b" " * (len(line) - len(left) - len(right)) + right).decode(
                "utf-8", "replace"
            )
    return [line.rstrip() for line in lines]


def _docstrings(tree: ast.Module) -> Iterator[_Region]:
    """Yield the places of strings that are statements."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)


def _comments(text: str) -> Iterator[_Region]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begin = len(token.line[: token.start[1]].encode())
            yield (token.start[0], begin), (token.end[0], begin + len(token.string.encode()))


def _other_lines(text: str) -> list[str]:
    bare = _BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [_TRAILING.sub("", line) for line in bare.splitlines()]


def is_equal_but_comments(path: str, before: str, after: str) -> bool:
    """Return whether two versions of a file differ only in comments that no tool acts on."""
    was, now = _read(path, before), _read(path, after)
    return bool(before and after) and was is not None and was == now


def is_for_tools(line: str) -> bool:
    """Return whether a tool may act on a line of a comment."""
    return _OBEYED.search(line) is not None


def _list_obeyed(comment: str) -> list[str]:
    """Return the lines of a comment from the first one that a tool may act on."""
    lines = [line.strip() for line in comment.splitlines()]
    first = next((at for at, line in enumerate(lines) if is_for_tools(line)), len(lines))
    return lines[first:]


def _read(path: str, text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the code of a text, and the comments that count; None where the two cannot be told apart."""
    language, parts = find_lexer(path), split_program(path, text)
    is_heeded = any(path.endswith(kinds) and signs.search(text) for kinds, signs in _HEEDING)
    if language is None or parts is None or is_heeded:
        return None
    code, obeyed = "", list[str]()
    keeps_docs = language.keeps_docs and _keeps_docs(parts)
    for kind, part in parts:
        if kind != "comment" or (keeps_docs and _DOCUMENTED.match(part)):
            code += part.replace("\n", "\0") if kind == "string" else part
        else:
            code += "\n" * part.count("\n") or " "
            obeyed += _list_obeyed(part)
    lines = (line.rstrip() for line in code.split("\n"))
    return "\n".join(line for line in lines if line), tuple(obeyed)


def _keeps_docs(parts: list[tuple[str, str]]) -> bool:
    """Return whether comments that document Rust may be examples that run, or be read by a macro."""
    docs = "\n".join(part for kind, part in parts if kind == "comment" and _DOCUMENTED.match(part))
    code = "".join(part for kind, part in parts if kind == "code")
    return bool(_EXAMPLE.search(docs) or _TAKES_DOCS.search(code))
