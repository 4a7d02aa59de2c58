"""Puts an edit of a function or constant into a process that has loaded it already; loaded by driver.py.

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
        """Return the statements around a span of bytes, outermost first."""
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


class Constant:
    """A name of a module, and the code of the value that an edit gives it."""

    def __init__(self, name: str, value: CodeType) -> None:
        self.name = name
        self.value = value


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
        self.modules = {
            place(name): module
            for module in list(sys.modules.values())
            if (name := _file_of(module)) is not None
        }
        self.late: dict[tuple[str, str], bool] = {}

    def load_source(self, path: str) -> LoadedFile:
        """Return a file, read once: forked children share it."""
        if path not in self.sources:
            self.sources[path] = LoadedFile(Path(path).read_bytes())
        return self.sources[path]

    def can_patch(self, edit: dict[str, Any]) -> bool:
        """Return whether an edit shows in this process; else a new one has to load it."""
        if edit["path"] not in self.modules:
            return True  # a test loads it by itself
        around = self.load_source(edit["path"]).list_around(edit["start"], edit["end"])
        functions = [each for each in around if isinstance(each, _FUNCTIONS)]
        if not functions:
            return self.find_constant(edit) is not None
        outer: Any = functions[0]
        inner: Any = functions[-1]
        body = range(inner.body[0].lineno, inner.end_lineno + 1)
        is_loaded = not self.loaded.get(edit["path"], set()).isdisjoint(body)
        begin = self.load_source(edit["path"]).starts
        is_inside = edit["start"] >= begin[inner.body[0].lineno - 1] and inner.body[0].lineno > inner.lineno
        return is_inside and not is_loaded and self.make_key(edit["path"], outer) in self.functions

    def make_key(self, path: str, function: Any) -> tuple[str, int, str]:
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        return (path, first, function.name)

    def find_constant(self, edit: dict[str, Any]) -> Any:
        """Return the assignment whose value is edited, where nothing that has run reads its name."""
        source = self.load_source(edit["path"])
        around = source.list_around(edit["start"], edit["end"])
        statement = around[0] if len(around) == 1 else None
        targets = (
            statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        )
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or value is None:
            return None
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            return None
        is_value = source.has_span(value, edit["start"], edit["end"])
        key = (edit["path"], targets[0].id)
        if key not in self.late:
            self.late[key] = self.is_read_late(*key)
        return statement if is_value and self.late[key] else None

    def is_read_late(self, path: str, name: str) -> bool:
        """Say whether nothing that ran while the tests were loaded has used a name of a module, set once."""
        if path not in self.loaded:
            return False
        tree = self.load_source(path).tree
        stores = [
            each
            for each in ast.walk(tree)
            if isinstance(each, ast.Name) and each.id == name and _is_store(each)
        ]
        if len(stores) != 1 or any(
            name in each.names for each in ast.walk(tree) if isinstance(each, ast.Global)
        ):
            return False
        aliases = {name, *(alias for _, alias in self.list_importers(path, name))}
        return not any(
            _is_used_early(self.sources[other].tree, aliases, self.loaded.get(other, set()))
            for other in self.loaded
            if other in self.sources
        )

    def list_importers(self, path: str, name: str) -> list[tuple[Any, str]]:
        """Return the modules that take a name from a module, and what they call it."""
        stem = Path(path).parent.name if Path(path).name == "__init__.py" else Path(path).stem
        found = []
        for other, module in self.modules.items():
            if other is None or other not in self.loaded or other not in self.sources:
                continue
            for each in ast.walk(self.sources[other].tree):
                if isinstance(each, ast.ImportFrom) and (each.module or "").rpartition(".")[2] in (stem, ""):
                    found += [(module, one.asname or name) for one in each.names if one.name in (name, "*")]
        return found

    def compile(self, edit: dict[str, Any]) -> list[Any] | None:
        """Return the functions that an edit changes, with their new code, or the constant.

        None where that cannot be told. Raises SyntaxError or ValueError, or another where it is too deep, for
        what is no code.
        """
        path = edit["path"]
        if path not in self.modules:
            return []
        source = self.load_source(path)
        around = source.list_around(edit["start"], edit["end"])
        if not any(isinstance(each, _FUNCTIONS) for each in around):
            return [self.compile_constant(edit)]
        outer = next(each for each in around if isinstance(each, _FUNCTIONS))
        owners = around[: around.index(outer)]
        found = self.functions[self.make_key(path, outer)]
        old = found[0].__code__
        text = _cut_out(source, owners, outer, edit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile(text, old.co_filename, "exec", old.co_flags & _FUTURE, True)
        new = _find_code(module, owners, outer)
        return None if new is None else list(_pairs(old, new))

    def compile_constant(self, edit: dict[str, Any]) -> Constant:
        source, statement = self.load_source(edit["path"]), self.find_constant(edit)
        target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        begin, end = source.find_span(statement.value)
        text = source.raw[begin : edit["start"]] + edit["text"].encode() + source.raw[edit["end"] : end]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # what is added after the value must not end it
            return Constant(target.id, compile(b"(" + text + b"\n)", edit["path"], "eval"))

    def patch(self, path: str, changes: list[Any]) -> bool:
        """Let functions run their new code, or give a name its new value; only a child may."""
        return all(
            self.rebind(path, each) if isinstance(each, Constant) else self.exchange(path, *each)
            for each in changes
        )

    def rebind(self, path: str, constant: Constant) -> bool:
        names = vars(self.modules[path])
        try:
            new = eval(constant.value, names)  # noqa: S307  # the edit is what is tried
        except BaseException:  # noqa: BLE001  # whatever it raises, a new process does too
            return False
        old = names.get(constant.name)
        names[constant.name] = new
        for module, alias in self.list_importers(path, constant.name):
            if vars(module).get(alias) is old:
                setattr(module, alias, new)
        return True

    def exchange(self, path: str, old: CodeType, new: CodeType) -> bool:
        for function in self.functions.get((path, old.co_firstlineno, old.co_name), ()):
            if function.__code__ is old or function.__code__ == old:
                if old.co_freevars != new.co_freevars:
                    return False
                function.__code__ = new
        return True


def _is_store(node: Any) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _is_used_early(node: Any, names: set[str], loaded: set[int]) -> bool:
    """Say whether code uses one of some names outside of all functions that have not run."""
    if isinstance(node, (ast.Name, ast.Attribute)) and not _is_store(node):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in names:
            return True
    inner = list(ast.iter_child_nodes(node))
    if isinstance(node, _FUNCTIONS):
        body = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        if loaded.isdisjoint(body) and body.start > node.lineno:
            inner = [each for each in inner if each not in node.body]
    return any(_is_used_early(each, names, loaded) for each in inner)


def _file_of(module: Any) -> str | None:
    name = getattr(module, "__file__", None)
    return name if isinstance(name, str) else None


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
    """Yield a function and each one inside, as they were and as they are."""
    yield old, new
    before, after = _inner(old), _inner(new)
    if [each.co_name for each in before] == [each.co_name for each in after]:
        for pair in zip(before, after):  # noqa: B905  # Python 3.8 has no `strict`
            yield from _pairs(*pair)
