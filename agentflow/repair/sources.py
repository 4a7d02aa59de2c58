"""The repository as it was before any attempt: its files, and their Python code with exact places."""

import ast
import os
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from agentflow.core.errors import ModelRejected
from agentflow.core.languages import is_test_path
from agentflow.core.record import Record
from agentflow.repair.target import ADVICE
from agentflow.workspace.changes import ChangeKind
from agentflow.workspace.git import Git, open_repository

_GENERATED = (".py", ".so", ".pyd")
"""Kinds of ignored file beside tracked code that the code may need to be imported."""
_OTHER_FOLDERS = frozenset({"testing", "fixtures", "testdata", "docs", "examples"})
_OTHER_FILES = frozenset({"conftest.py", "setup.py", "noxfile.py", "tasks.py", "fabfile.py"})
"""What is no code under test either."""
_LARGEST = 400_000
T = TypeVar("T")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

Node = ast.expr | ast.stmt

Scope = FunctionNode | ast.ClassDef | ast.Module


class Sources(Record):
    """The code that may be edited, and the files around it that it needs to run."""

    root: Path
    files: tuple[str, ...]
    """Everything a copy has to hold."""
    overlay: Mapping[str, bytes]
    """Files that an earlier attempt changed, as they were before it."""
    only: str = ""
    """The file or folder to which edits are kept; empty for all."""

    def read(self, path: str) -> bytes:
        """Return a file as it was before any attempt."""
        return self.overlay[path] if path in self.overlay else (self.root / path).read_bytes()


def read_sources(root: Path, base: str | None) -> Sources:
    """Return the sources as they were in a tree. Raises ModelRejected when a file cannot be taken back."""
    git = open_repository(root)
    listed = git.call("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    files = {os.fsdecode(name) for name in listed.split(b"\0") if name and not name.startswith(b".claude/")}
    overlay = _read_overlay(git, base) if base else {}
    return Sources(root=root, files=tuple(sorted(files | _find_generated(root, files))), overlay=overlay)


def _read_overlay(git: Git, base: str) -> dict[str, bytes]:
    now, overlay = git.write_tree(), {}
    for change in git.list_changes(base, now):
        if change.kind is not ChangeKind.MODIFIED:
            continue
        kept = git.read_texts((f"{base}:{change.path}", f"{now}:{change.path}"), _LARGEST)
        if not kept or (git.root / change.path).read_bytes() != kept[1].encode():  # such as other line ends
            raise ModelRejected(f"the change so far in {change.path} cannot be taken back", hint=ADVICE)
        overlay[change.path] = kept[0].encode()
    return overlay


def read_changed(git: Git, base: str, tree: str) -> dict[str, bytes]:
    """Return the files of a tree that were another way in an earlier one."""
    changes = (each for each in git.list_changes(base, tree) if each.kind is ChangeKind.MODIFIED)
    paths = [each.path for each in changes if "\n" not in each.path]
    texts = git.read_texts((f"{tree}:{path}" for path in paths), _LARGEST)
    return {path: text.encode() for path, text in zip(paths, texts, strict=True)}


def is_production(path: str) -> bool:
    place = PurePosixPath(path)
    if place.suffix != ".py" or place.name in _OTHER_FILES or is_test_path(path.lower()):
        return False
    return _OTHER_FOLDERS.isdisjoint(part.lower() for part in place.parts[:-1])


def is_editable(sources: Sources, path: str) -> bool:
    """Say whether a file can be edited: listed, no link, of a sane size."""
    place = sources.root / path
    listed = path in sources.files and place.is_file() and not place.is_symlink()
    wanted = not sources.only or PurePosixPath(path).is_relative_to(sources.only)
    return wanted and listed and is_production(path) and place.stat().st_size <= _LARGEST


def _find_generated(root: Path, files: set[str]) -> set[str]:
    """Return ignored modules beside tracked ones, such as a generated version file."""
    found = set()
    for folder in {str(PurePosixPath(name).parent) for name in files if name.endswith(".py")}:
        for entry in os.scandir(root / folder) if (root / folder).is_dir() else ():
            if entry.name.endswith(_GENERATED) and entry.is_file():
                found.add(str(PurePosixPath(folder) / entry.name))
    return found


class Mutation(Record):
    """One small replacement in a file."""

    start: int
    """Offset in bytes."""
    end: int
    text: str
    line: int
    kind: str
    """What sort of mistake it would mend, in a word or two."""
    weight: int
    """How unusual such a mistake is; the lightest are tried first."""
    note: str
    """What changes, for people."""


class Code:
    """The parsed text of one file."""

    def __init__(self, raw: bytes) -> None:
        """Parse a file's bytes; raise SyntaxError or ValueError for what is not Python in UTF-8."""
        raw.decode()
        self.raw = raw
        self.newline = "\r\n" if b"\r\n" in raw else "\n"
        self.tree = ast.parse(raw)
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self._known: dict[object, Any] = {}
        self._starts = [0]
        for line in raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._starts[0] = len(BOM_UTF8) if raw.startswith(BOM_UTF8) else 0

    def compute_once(self, key: object, work: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = work()
        found: T = self._known[key]
        return found

    def walk(self, node: ast.AST) -> tuple[ast.AST, ...]:
        return self.compute_once(("walk", node), lambda: tuple(ast.walk(node)))

    def find_span(self, node: Node) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def get_text(self, node: Node) -> str:
        start, end = self.find_span(node)
        return self.raw[start:end].decode("utf-8", "replace")

    def indent(self, node: ast.stmt) -> str:
        start = self._starts[node.lineno - 1]
        return self.raw[start : start + node.col_offset].decode("utf-8", "replace")

    def make_mutation(self, span: tuple[int, int], text: str, kind: str, weight: int) -> Mutation:
        was = " ".join(self.raw[span[0] : span[1]].decode("utf-8", "replace").split())
        note = f"`{was}` to `{' '.join(text.split())}`" if was else f"`{' '.join(text.split())}` added"
        line = bisect_right(self._starts, span[0])
        return Mutation(start=span[0], end=span[1], text=text, line=line, kind=kind, weight=weight, note=note)

    def swap(self, node: Node, text: str, kind: str, weight: int) -> Mutation:
        return self.make_mutation(self.find_span(node), text, kind, weight)

    def exchange(self, left: Node, right: Node, kind: str, weight: int) -> Mutation:
        (start, end), (begin, stop) = self.find_span(left), self.find_span(right)
        between = self.raw[end:begin].decode("utf-8", "replace")
        text = self.get_text(right) + between + self.get_text(left)
        return self.make_mutation((start, stop), text, kind, weight)

    def find_scope(self, node: ast.AST) -> Scope:
        return next((each for each in self.list_above(node) if isinstance(each, FunctionNode)), self.tree)

    def find_home(self, node: ast.AST) -> Scope:
        return next((each for each in self.list_above(node) if isinstance(each, ast.ClassDef)), self.tree)

    def find_statement(self, node: ast.AST) -> ast.stmt | None:
        return next((each for each in (node, *self.list_above(node)) if isinstance(each, ast.stmt)), None)

    def list_above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node


def parse_code(raw: bytes) -> Code | None:
    """Return a file's code, or None where nothing can be said about it, because it is not Python."""
    try:
        return Code(raw)
    except (SyntaxError, ValueError):
        return None


def find_header_lines(statement: ast.stmt) -> range:
    """Return the lines of a statement without the block below it."""
    body = getattr(statement, "body", None)
    first = getattr(statement, "lineno", 1)
    decorators = getattr(statement, "decorator_list", None)
    if decorators:
        first = min(first, *(each.lineno for each in decorators))
    if body:
        return range(first, max(statement.lineno, body[0].lineno - 1) + 1)
    return range(first, (statement.end_lineno or first) + 1)


def apply_mutation(raw: bytes, mutation: Mutation) -> bytes:
    return raw[: mutation.start] + mutation.text.encode() + raw[mutation.end :]
