"""Comments: code without them, and whether two versions of a file differ in nothing else that runs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentflow.core.languages import C_FAMILY, GO, RUST, SHELL
from agentflow.core.regex import regex
from agentflow.languages.grammars import SyntaxTree, parse_source

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node

_OBEYED = regex(
    r"@|#__|^# ///|coding[:=]"
    r"|^//[A-Za-z]+[:\[]|^//[~#]|^//(?:line|export) |^/\*\s*globals?\b|\+[a-z]|[Oo]utput:|^#[^\s#]"
    r"|\b(?:noqa|nosemgrep|pylint|ruff|flake8|mypy|pyright|pyre|isort|yapf|doctest|(?:type|ty|fmt):)"
    r"|\b(?!TODO|FIXME|NOTE|XXX|HACK)[A-Z][A-Z-]{2,}:"
    r"|(?i:\b(?:eslint|jshint|jslint|tslint|biome|oxlint|prettier|istanbul|c8|v8|nolint|nosec|lint|clang|coverity"
    r"|cppcheck|iwyu|lcov|gcov|fall|falls|fallthrough|fallthru|shellcheck|ignore|disable|enable|sourcemappingurl"
    r"|sourceurl|webpack\w*|vite|flow|jsx|pragma|generated|noinspection)\b)"
)
"""Comment lines that tools may act on."""
_TAG = regex(r"\{@\w+|@(?:author|exception|param|returns?|see|since|throws|version)\b")
"""Words of a documentation comment that only make pages: a line below `{@code …}` is prose like any other."""
_HEEDING = (
    (GO, regex(r'"C"|\bruntime\.Callers?\b|swagger:')),
    (C_FAMILY, regex(r"__LINE__|__COUNTER__|\?\?/")),
    (RUST, regex(r"\b(?:line|column|file|stringify)!")),
    (SHELL, regex(r"BASH_SOURCE|LINENO|\bset -[a-z]*v|(?:sed|grep|awk|head|tail|cat|cut|<)[^\n]*\$\{?0")),
)
"""Signs that comments, or the lines that they take, affect the program."""
_ENDS_LINES = regex("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in some compilers only."""
_DOCUMENTED = regex(r"//[/!]|/\*[*!]")
_TAKES_DOCS = regex(r"#\[(?!cfg\(test\)\]|test\]|allow|must_use|inline|should_panic)|macro_rules!")
_EXAMPLE = regex(r"```|~~~|(?m:^\s*//[/!](?: {4,}|\t))|/\*[*!]")
_BLOCK = regex(r"(?s)(?<![\"'`\w])/\*.*?\*/")
_TRAILING = regex(r"(?:(?<=\s)|^)//(?![^\"'`]*[\"'`]\s*[;,)]).*|(?:(?<=\s)|^)#(?!\[|!)\s.*")

_Shape = tuple[str, "str | tuple[_Shape, ...]"]


def list_code_lines(path: str, text: str, apart: Iterable[str] = ("docstring",)) -> list[str]:
    """Return the lines of a file without comments and some other parts, as far as these can be recognised."""
    tree = parse_source(path, text)
    if tree is None:
        bare = _BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
        return [_TRAILING.sub("", line) for line in bare.splitlines()]
    source = bytearray(tree.text)
    for node in (*_list_comments(tree), *(node for name in apart for node in tree.nodes[name])):
        for place in range(node.start_byte, node.end_byte):
            if source[place] not in b"\r\n":
                source[place] = ord(" ")
    return [line.rstrip() for line in source.decode("utf-8", "replace").splitlines()]


def _list_comments(tree: SyntaxTree) -> list["Node"]:
    return [each for each in tree.nodes["ignored"] if "comment" in each.type]


def is_equal_but_comments(path: str, before: str, after: str) -> bool:
    """Return whether two versions of a program differ only in layout, and comments that no tool acts on."""
    was, now = _read(path, before), _read(path, after)
    return bool(before and after) and was is not None and was == now


def is_for_tools(line: str) -> bool:
    """Return whether a tool may act on a line of a comment."""
    return _OBEYED.search(line) is not None


def list_obeyed(path: str, text: str) -> tuple[str, ...] | None:
    """Return the comments of Python code on which a tool acts, and its ends of lines; None if unreadable."""
    tree = parse_source(path, text)
    comments = [tree.read(each) for each in _list_comments(tree)] if tree else []
    is_script = any(each.startswith("# ///") for each in comments)  # which says there what it needs
    obeyed = (each for each in comments if is_script or is_for_tools(each))
    return (
        None
        if tree is None
        else (*obeyed, text[: text.startswith("#!") and text.find("\n")], str(text.count("\r")))
    )


def _list_obeyed(comment: str) -> list[str]:
    """Return the lines of a comment from the first that a tool may act on, which is a tag in a long one."""
    lines = [line.strip() for line in comment.splitlines()]
    is_document = comment.startswith("/**") and len(lines) > 1
    obeyed = ("@" in _TAG.sub("", line) if is_document else is_for_tools(line) for line in lines)
    return lines[next((at for at, is_told in enumerate(obeyed) if is_told), len(lines)) :]


def _read(path: str, text: str) -> tuple[_Shape, tuple[str, ...]] | None:
    """Return the shape of a program, and the comments that count; None where these cannot be told apart."""
    is_heeded = any(path.endswith(kinds) and signs.search(text) for kinds, signs in _HEEDING)
    tree = None if is_heeded or _ENDS_LINES.search(text) else parse_source(path, text)
    if tree is None or tree.root.has_error:
        return None
    comments = [tree.read(each) for each in _list_comments(tree)]
    keeps_docs = path.endswith(RUST) and _keeps_docs(text, comments)
    obeyed = [
        line
        for each in comments
        for line in ([each] if keeps_docs and _DOCUMENTED.match(each) else _list_obeyed(each))
    ]
    try:
        return _shape(tree, tree.root), tuple(obeyed)
    except RecursionError:  # too deep to compare
        return None


def _shape(tree: SyntaxTree, node: "Node") -> _Shape:
    """Return the kinds and texts of a node and all below it, without comments and ends of lines."""
    if not node.children:
        return node.type, tree.read(node)
    kept = (each for each in node.children if "comment" not in each.type and each.type.strip("\\\n"))
    return node.type, tuple(_shape(tree, each) for each in kept)


def _keeps_docs(text: str, comments: list[str]) -> bool:
    """Return whether comments that document Rust may be examples that run, or be read by a macro."""
    docs = "\n".join(each for each in comments if _DOCUMENTED.match(each))
    return bool(docs and (_EXAMPLE.search(docs) or _TAKES_DOCS.search(text)))
