"""Parts of code without effect: comments, unused imports and functions, and texts that no code reads."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import TypeGuard

from agentflow.core.languages import find_lexer
from agentflow.core.regex import regex
from agentflow.verdict.syntax import NO_PYTHON, Definition, list_words, name_imported, read_python
from agentflow.verdict.tokens import split_program

_OBEYED = regex(
    r"@|#__|^//[A-Za-z]+[:\[]|^//[~#]|^//(?:line|export) |^/\*\s*globals?\b|\+[a-z]|[Oo]utput:|^#[^\s#]"
    r"|\b(?!TODO|FIXME|NOTE|XXX|HACK)[A-Z][A-Z-]{2,}:"
    r"|(?i:\b(?:eslint|jshint|jslint|tslint|biome|oxlint|prettier|istanbul|c8|v8|nolint|nosec|lint|clang|coverity"
    r"|cppcheck|iwyu|lcov|gcov|fall|falls|fallthrough|fallthru|shellcheck|ignore|disable|enable|sourcemappingurl"
    r"|sourceurl|webpack\w*|vite|flow|jsx|pragma|generated|noinspection)\b)"
)
"""Comment lines that tools may act on."""
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


def _list_obeyed(comment: str) -> list[str]:
    """Return the lines of a comment from the first one that a tool may act on."""
    lines = [line.strip() for line in comment.splitlines()]
    first = next((at for at, line in enumerate(lines) if _OBEYED.search(line)), len(lines))
    return lines[first:]


def _read(path: str, text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the code of a text, and the comments that count; None where the two cannot be told apart."""
    language, parts = find_lexer(path), split_program(path, text)
    if language is None or parts is None:
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


_FOR_HINTS = frozenset({"typing", "collections.abc"})
_DOING = frozenset({"this", "antigravity", "readline", "rlcompleter", "site"})
"""Modules of the library that are imported for what they do."""
_PRIVATE = re.compile(r"_[A-Za-z]\w+")


def sort_imports(tree: ast.Module, own: Collection[str]) -> None:
    """Sort imports of the standard library that follow each other, one name each."""
    body = list[ast.stmt]()
    run = list[ast.stmt]()
    for node in tree.body:
        if _is_of_library(node, own):
            run += _single(node)
        else:
            body += [*_in_order(run), node]
            run = []
    tree.body = [*body, *_in_order(run)]


def _in_order(imports: list[ast.stmt]) -> list[ast.stmt]:
    """Return imports of one name each in a fixed order, unless the last of two that bind a name counts."""
    sources = dict[str, str]()
    for node in imports:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        is_top = isinstance(node, ast.Import) and not node.names[0].asname
        source = "" if is_top else ast.dump(node)
        name = name_imported(node.names[0])
        if name == "*" or sources.setdefault(name, source) != source:
            return imports
    return sorted(imports, key=ast.dump)


def take_out_unused(old: ast.Module, new: ast.Module, own: Collection[str]) -> None:
    """Remove from the old code the unused imports and private functions that the new code no longer has."""
    gone = {name for _, name in _find_dropped(old, new, own)}
    defined = [node for node in old.body if getattr(node, "name", "") in gone]
    if defined:  # what other code calls is no dead code
        rest = [node for node in old.body if node not in defined]
        gone -= {getattr(node, "name", "") for node in defined} & list_words(ast.Module(rest, []))
    for node in old.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [each for each in node.names if name_imported(each) not in gone]
    old.body = [
        node for node in old.body if getattr(node, "name", "") not in gone and getattr(node, "names", True)
    ]


def find_dropped_names(before: str, after: str, own: Collection[str]) -> dict[str, str]:
    """Return the names that code binds no more and does not need, each as import or function."""
    try:
        return {name: kind for kind, name in _find_dropped(ast.parse(before), ast.parse(after), own)}
    except NO_PYTHON:
        return {}


def is_taken(path: str, names: Collection[str], text: str) -> bool:
    """Return whether other code takes one of the names from the module at a path, or may take any."""
    place = PurePosixPath(path)
    stem = place.parent.name if place.stem == "__init__" else place.stem
    tree = read_python(text)
    if tree is None:
        return True
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=parts) if (module or stem).rpartition(".")[2] == stem:
                if any(each.name in names or each.name == "*" for each in parts):
                    return True
            case ast.Attribute(attr=word, value=value) if word in names:
                if ast.unparse(value).rpartition(".")[2] == stem:
                    return True
            case _:
                pass
    return False


def _find_dropped(old: ast.Module, new: ast.Module, own: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield imports of the library and private functions of old code that new code never says."""
    said = list_words(new)
    for node in old.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and _is_only_bound(node, own):
            yield from (
                ("import", name_imported(each)) for each in node.names if name_imported(each) not in said
            )
        elif _is_plain(node) and node.name not in said:
            yield "function", node.name


def _is_only_bound(node: ast.Import | ast.ImportFrom, own: Collection[str]) -> bool:
    """Return whether an import of the library only binds names, which nobody is meant to take from here."""
    if isinstance(node, ast.ImportFrom):
        return node.module in _FOR_HINTS and _is_of_library(node, own)
    return _is_of_library(node, own) and not any("." in each.name for each in node.names)


def _is_plain(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return whether a statement defines a private function and does nothing else."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _PRIVATE.fullmatch(node.name):
        return False
    head = (node.args, *filter(None, [node.returns]))
    return not any(isinstance(each, ast.Call) for part in head for each in ast.walk(part))


def _is_of_library(node: ast.stmt, own: Collection[str]) -> bool:
    """Return whether a statement imports from the standard library alone."""
    modules = list[str]()
    if isinstance(node, ast.Import):
        modules = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
        modules = [node.module or ""]
    tops = {module.partition(".")[0] for module in modules}
    return bool(own) and bool(tops) and tops <= sys.stdlib_module_names - {*own, *_DOING}


def _single(node: ast.stmt) -> Iterable[ast.stmt]:
    """Yield an import name by name."""
    assert isinstance(node, ast.Import | ast.ImportFrom)
    for each in node.names:
        if isinstance(node, ast.Import):
            yield ast.Import(names=[each])
        else:
            yield ast.ImportFrom(module=node.module, names=[each], level=node.level)


_DOCSTRINGS = ("__doc__", "getdoc", "get_docstring", "pydoc", "yacc")
_ANNOTATIONS = (
    *("__annotations__", "get_type_hints", "get_annotations", "getfullargspec", "pydoc"),
    *("annotation", "return_annotation", "singledispatch", "singledispatchmethod"),
)
_IN_A_FILE = frozenset(
    {
        *(*_DOCSTRINGS, *_ANNOTATIONS, "docopt", "getsource", "signature", "Cmd", "ply"),
        *("attr", "attrs", "beartype", "cattrs", "click", "dataclass_json", "fastapi", "fire", "injector"),
        *("msgspec", "pydantic", "strawberry", "typer"),
    }
)
"""Names whose use makes the docstrings or annotations of a file part of what it does."""
_DUNDER = re.compile(r"__\w+__")


def reads_own_texts(tree: ast.Module) -> bool:
    """Return whether a file uses a name by which its own docstrings or annotations may be read."""
    return any(word in _IN_A_FILE for _, word in _list_words(tree))


def reads_texts_of_others(text: str, words: Collection[str]) -> bool:
    """Return whether code uses one of some words for more than its own module's docstring."""
    tree = read_python(text)
    return tree is None or any(
        word in words and not (isinstance(node, ast.Name) and word == "__doc__")
        for node, word in _list_words(tree)
    )


def find_reading_words(before: str, after: str) -> frozenset[str]:
    """Return the names by which other code may read the docstrings or annotations that differ."""
    sides = [read_python(text) for text in (before, after)]
    kinds = ((_DOCSTRINGS, _list_docstrings), (_ANNOTATIONS, _list_annotations))
    differing = (
        words
        for words, list_texts in kinds
        if len({(*list_texts(side),) if side else None for side in sides}) > 1
    )
    return frozenset(word for words in differing for word in words)


def _list_docstrings(tree: ast.Module) -> Iterator[str | None]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Module | Definition))
    return (ast.get_docstring(node, clean=False) for node in nodes)


def _list_annotations(tree: ast.Module) -> Iterator[str | None]:
    """Yield the annotation of each place, and the imports that decide whether they are kept as text."""
    for node in ast.walk(tree):
        found = (getattr(node, field) for field in ("annotation", "returns") if hasattr(node, field))
        yield from (each and ast.dump(each) for each in found)
    yield from (ast.dump(each) for each in tree.body if getattr(each, "module", "") == "__future__")


def _list_words(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the names that code uses, and what stands in its strings as only code is spelled."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield node, name
            case ast.alias(name=name) | ast.ImportFrom(module=str() as name):
                yield from ((node, part) for part in name.split("."))
            case ast.Constant(value=str() as text) if id(node) not in prose:
                yield from ((node, part) for part in (text, *_DUNDER.findall(text)))
