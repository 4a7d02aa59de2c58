"""Puts an edit of a function into a process that has loaded it already; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library.
"""

from __future__ import annotations
import __future__

import ast
import gc
import sys
import warnings
from codecs import BOM_UTF8
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


class LoadedFile:
    """A file that was loaded: its lines, its tree, and where each line begins."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.tree = ast.parse(raw)
        self.lines = raw.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.starts[0] = len(BOM_UTF8) if raw.startswith(BOM_UTF8) else 0

    def list_around(self, start: int, end: int) -> list[Any]:
        found: list[Any] = []
        body: list[Any] = self.tree.body
        while True:
            inner = next((each for each in body if self.has_span(each, start, end)), None)
            if inner is None:
                return found
            found.append(inner)
            body = [
                each
                for each in ast.iter_child_nodes(inner)
                if isinstance(each, (ast.stmt, ast.excepthandler))
            ]

    def find_span(self, node: Any) -> tuple[int, int]:
        first: int = self.starts[node.lineno - 1] + node.col_offset
        last: int = self.starts[node.end_lineno - 1] + node.end_col_offset
        return first, last

    def has_span(self, node: Any, start: int, end: int) -> bool:
        first, last = self.find_span(node)
        return first <= start and end <= last

    def indent(self, node: Any) -> bytes:
        line: bytes = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Patcher:
    """All functions of the repository that a process has loaded."""

    def __init__(self, place: Callable[[str], str | None], loaded: dict[str, list[int]]) -> None:
        """Take the lines that ran while the tests were loaded: what they made is not made again."""
        self.functions: dict[tuple[str, int, str], list[FunctionType]] = {}
        self.loaded = {path: set(lines) for path, lines in loaded.items()}
        self.sources: dict[str, LoadedFile] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType:
                code = each.__code__
                path = place(code.co_filename)
                if path is not None:
                    self.functions.setdefault((path, code.co_firstlineno, code.co_name), []).append(each)
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        self.modules = {place(name) for name in files if isinstance(name, str)}

    def load_source(self, path: str) -> LoadedFile:
        """Return a file, read once: forked children share it."""
        if path not in self.sources:
            self.sources[path] = LoadedFile(Path(path).read_bytes())
        return self.sources[path]

    def compile(self, edit: dict[str, Any]) -> list[Any] | None:
        """Return the functions that an edit changes, with their new code; None where a new process has to.

        Raises SyntaxError or ValueError, or another where it is too deep, for what is no code.
        """
        path = edit["path"]
        if path not in self.modules:
            return []  # a test loads it by itself
        source = self.load_source(path)
        around = source.list_around(edit["start"], edit["end"])
        functions: list[Any] = [each for each in around if isinstance(each, _FUNCTIONS)]
        if not functions:
            return None
        outer, inner = functions[0], functions[-1]
        body = range(inner.body[0].lineno, inner.end_lineno + 1)
        is_inside = edit["start"] >= source.starts[body.start - 1] and body.start > inner.lineno
        first = min([outer.lineno, *(each.lineno for each in outer.decorator_list)])
        found = self.functions.get((path, first, outer.name))
        if not is_inside or not found or not self.loaded.get(path, set()).isdisjoint(body):
            return None
        old, owners = found[0].__code__, around[: around.index(outer)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = _cut_out(source, owners, outer, edit)
            module = compile(text, old.co_filename, "exec", old.co_flags & _FUTURE, True)
        new = _find_code(module, owners, outer)
        return None if new is None else list(_pairs(old, new))

    def patch(self, path: str, pairs: list[Any]) -> bool:
        """Let functions run their new code; only a child may."""
        return all(self.exchange(path, *each) for each in pairs)

    def exchange(self, path: str, old: CodeType, new: CodeType) -> bool:
        for function in self.functions.get((path, old.co_firstlineno, old.co_name), ()):
            if function.__code__ is old or function.__code__ == old:
                if old.co_freevars != new.co_freevars:
                    return False
                function.__code__ = new
        return True


def _cut_out(source: LoadedFile, owners: list[Any], function: Any, edit: dict[str, Any]) -> bytes:
    """Return a function as the only thing in its file, edited, on its line and in its class."""
    heads = [
        source.indent(each) + (f"class {each.name}:" if isinstance(each, ast.ClassDef) else "if 1:").encode()
        for each in owners
    ]
    begin, end = source.starts[function.lineno - 1], source.starts[function.end_lineno]
    blank: bytes = b"\n" * max(0, function.lineno - 1 - len(heads))
    body: bytes = source.raw[begin : edit["start"]] + edit["text"].encode() + source.raw[edit["end"] : end]
    return blank + b"".join(head + b"\n" for head in heads) + body


def _find_code(module: CodeType, owners: list[Any], function: Any) -> CodeType | None:
    names = [each.name for each in owners if isinstance(each, ast.ClassDef)] + [function.name]
    found: CodeType | None = module
    for name in names:
        inner = [each for each in _inner(found) if each.co_name == name] if found else []
        found = inner[-1] if inner else None
    return found


def _inner(code: CodeType | None) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)] if code else []


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    before, after = _inner(old), _inner(new)
    if [each.co_name for each in before] == [each.co_name for each in after]:
        for pair in zip(before, after):  # noqa: B905  # Python 3.8 has no `strict`
            yield from _pairs(*pair)
