"""The index: one SQLite file in the user's cache, by the id that git gives to the content of a file."""

import hashlib
import os
import sqlite3
import stat
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agentflow.core.errors import ToolError
from agentflow.symbols.read import (
    INDEXED,
    MAX_SOURCE_BYTES,
    FileSymbols,
    SymbolDefinition,
    SymbolKind,
    read_symbols,
)
from agentflow.workspace.path_guard import find_opener, open_root

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS folders(id INTEGER PRIMARY KEY, root TEXT UNIQUE,
  paths TEXT, starts BLOB, targets BLOB, ranks BLOB);
CREATE TABLE IF NOT EXISTS contents(id INTEGER PRIMARY KEY, blob TEXT UNIQUE,
  definitions TEXT, uses TEXT, imports TEXT);
CREATE TABLE IF NOT EXISTS files(folder INTEGER, path TEXT, stamp INTEGER, content INTEGER,
  outline TEXT NOT NULL DEFAULT '',
  PRIMARY KEY(folder, path)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_of_content ON files(content);
CREATE TABLE IF NOT EXISTS names(name TEXT, content INTEGER, PRIMARY KEY(name, content)) WITHOUT ROWID;
"""
_WAIT_SECONDS = 20
"""For another process that writes."""
_UNSETTLED = 100_000_000
"""Nanoseconds in which a file may change twice without another time."""
_MOST_HITS = 200


class ScannedFile(NamedTuple):
    """A file as it was read; the texts are None where its content is known already."""

    path: str
    stamp: int
    blob: str
    definitions: str | None = None
    uses: str = ""
    imports: str = ""


class UseGraph(NamedTuple):
    """Which file uses which others, with the rank of each by that; the files are numbered."""

    paths: tuple[str, ...]
    starts: "array[int]"
    """Where the targets of each file begin, and the end of the last."""
    targets: "array[int]"
    ranks: "array[float]"


class FoundSymbol(NamedTuple):
    path: str
    definition: SymbolDefinition


class SymbolIndex:
    """What the files of one folder define and use; a content is read once for all folders."""

    def __init__(self, database: sqlite3.Connection, root: Path) -> None:
        self.root = root
        self._database = database
        with database:
            database.execute("INSERT OR IGNORE INTO folders(root) VALUES (?)", (str(root),))
        self._folder = self._fetch("SELECT id FROM folders WHERE root = ?", str(root))[0][0]

    def _fetch(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        return self._database.execute(query, values).fetchall()

    def find_stale(self, paths: Iterable[str]) -> tuple[list[str], int]:
        """Return the source files that are not in the index as they are, and their size; drop those gone."""
        known = dict(self._fetch("SELECT path, stamp FROM files WHERE folder = ?", self._folder))
        stale, size = list[str](), 0
        above, look = f"{self.root}/", os.lstat  # of 50,000 files, each name and object counts
        for path in paths:
            if path[path.rfind(".") :] not in INDEXED or not path.isprintable():
                continue
            try:
                status = look(above + path)
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SOURCE_BYTES:
                continue
            if known.pop(path, None) != _stamp(status):
                stale.append(path)
                size += status.st_size
        if known:
            with self._database:
                gone = ((self._folder, path) for path in known)
                self._database.executemany("DELETE FROM files WHERE folder = ? AND path = ?", gone)
        return stale, size

    def save(self, found: Iterable[ScannedFile | None]) -> None:
        write = self._database.execute
        with self._database:
            for each in filter(None, found):
                if each.definitions is not None:
                    texts = (each.blob, each.definitions, each.uses, each.imports)
                    write("INSERT OR IGNORE INTO contents VALUES (NULL, ?, ?, ?, ?)", texts)
                number = write("SELECT id FROM contents WHERE blob = ?", (each.blob,)).fetchone()
                if number is None:  # another process dropped it meanwhile
                    continue
                if each.definitions:
                    named = {(line.partition("\t")[0], *number) for line in each.definitions.split("\n")}
                    self._database.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", named)
                row = (self._folder, each.path, each.stamp, *number)
                write("INSERT OR REPLACE INTO files(folder, path, stamp, content) VALUES (?, ?, ?, ?)", row)

    def is_known(self, blob: str) -> bool:
        return bool(self._fetch("SELECT 1 FROM contents WHERE blob = ?", blob))

    def count_files(self) -> int:
        return int(self._fetch("SELECT count(*) FROM files WHERE folder = ?", self._folder)[0][0])

    def list_defined(self) -> Iterator[tuple[str, set[tuple[str, str]]]]:
        """Yield each file with the names that it defines for others, and the kind of each."""
        for path, text in self._read_all("definitions"):
            rows = (line.split("\t") for line in text.split("\n") if line.endswith("0"))
            yield path, {(row[0], row[5]) for row in rows}

    def list_used(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield each file with the names that it uses, and what it imports."""
        for path, uses, imports in self._read_all("uses, imports"):
            yield path, uses.split("\n"), [each for each in imports.split("\n") if each]

    def _read_all(self, columns: str) -> sqlite3.Cursor:
        query = (
            f"SELECT path, {columns} FROM files JOIN contents ON contents.id = content "  # noqa: S608
            "WHERE folder = ? ORDER BY path"
        )
        return self._database.execute(query, (self._folder,))

    def find_definitions(self, names: Iterable[str]) -> list[FoundSymbol]:
        wanted = {*names}
        marks = ", ".join("?" * len(wanted))
        query = (
            f"SELECT DISTINCT path, definitions FROM names JOIN files USING (content) "  # noqa: S608
            f"JOIN contents ON contents.id = content WHERE folder = ? AND name IN ({marks}) ORDER BY path"
        )
        return [
            FoundSymbol(path, each)
            for path, text in self._fetch(query, self._folder, *wanted)
            for each in _read_definitions(text)
            if each.name in wanted
        ]

    def find_similar_names(self, part: str) -> tuple[str, ...]:
        """Return defined names that contain a text, in whatever case, the shortest first."""
        query = (
            "SELECT DISTINCT name FROM names JOIN files USING (content) "
            "WHERE folder = ? AND instr(lower(name), ?) ORDER BY length(name), name LIMIT ?"
        )
        return tuple(name for (name,) in self._fetch(query, self._folder, part.lower(), _MOST_HITS))

    def find_files_with(self, name: str) -> tuple[str, ...]:
        """Return the files that define or use a name, sorted."""
        query = (
            "SELECT path FROM files JOIN contents ON contents.id = content WHERE folder = ? "
            "AND (instr(uses, ?) OR instr(definitions, ?)) ORDER BY path"
        )
        found = self._fetch(query, self._folder, f"\n{name}\n", f"{name}\t")
        return tuple(path for (path,) in found)

    def read_outline(self, path: str) -> tuple[SymbolDefinition, ...]:
        """Return what a file defines, one of each name, what others use most first and values last."""
        query = (
            "SELECT definitions, outline FROM files JOIN contents ON contents.id = content "
            "WHERE folder = ? AND path = ?"
        )
        found = self._fetch(query, self._folder, path)
        if not found:
            return ()
        order = {name: place for place, name in enumerate(found[0][1].split("\n"))}
        defined = (each for each in _read_definitions(found[0][0]) if not each.is_local)
        shown = {(each.owner, each.name): each for each in defined}

        def place(one: SymbolDefinition) -> tuple[object, ...]:
            # a member is often called like one of another class
            used = order.get(one.name, len(order)) * (1 + bool(one.owner))
            return one.kind is SymbolKind.VALUE, used, one.first

        return tuple(sorted(shown.values(), key=place))

    def save_graph(self, graph: UseGraph, outlines: Mapping[str, str]) -> None:
        row = ("\0".join(graph.paths), graph.starts.tobytes(), graph.targets.tobytes(), graph.ranks.tobytes())
        lines = ((text, self._folder, path) for path, text in outlines.items())
        with self._database:
            said = "UPDATE folders SET paths = ?, starts = ?, targets = ?, ranks = ? WHERE id = ?"
            self._database.execute(said, (*row, self._folder))
            self._database.executemany("UPDATE files SET outline = ? WHERE folder = ? AND path = ?", lines)

    def is_ranked(self) -> bool:
        return bool(self._fetch("SELECT 1 FROM folders WHERE id = ? AND ranks IS NOT NULL", self._folder))

    def load_graph(self) -> UseGraph | None:
        said = "SELECT paths, starts, targets, ranks FROM folders WHERE id = ? AND ranks IS NOT NULL"
        for paths, starts, targets, ranks in self._fetch(said, self._folder):
            graph = UseGraph(tuple(paths.split("\0")), array("I"), array("I"), array("d"))
            graph.starts.frombytes(starts)
            graph.targets.frombytes(targets)
            graph.ranks.frombytes(ranks)
            return graph
        return None

    def drop_unused(self) -> None:
        """Drop folders that are gone, and contents that no file has, once these are most of them."""
        folders = self._fetch("SELECT id, root FROM folders")
        gone = [(number,) for number, root in folders if not Path(root).is_dir()]
        with self._database:
            self._database.executemany("DELETE FROM files WHERE folder = ?", gone)
            self._database.executemany("DELETE FROM folders WHERE id = ?", gone)
            contents, used = self._fetch(
                "SELECT (SELECT count(*) FROM contents), (SELECT count(DISTINCT content) FROM files)"
            )[0]
            if contents > 2 * used:
                unused = "NOT IN (SELECT content FROM files)"
                self._database.execute(f"DELETE FROM contents WHERE id {unused}")  # noqa: S608
                self._database.execute(f"DELETE FROM names WHERE content {unused}")  # noqa: S608


@contextmanager
def open_index(path: Path, root: Path) -> Iterator[SymbolIndex]:
    """Yield the index of a folder. Raises ToolError; a file that is no such index is replaced next time."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as database:
            database.executescript(_SCHEMA)
            yield SymbolIndex(database, root)
    except (OSError, sqlite3.OperationalError) as error:  # no room, no right, or too long a wait
        raise ToolError(f"the index of symbols in {path} cannot be used: {error}") from None
    except sqlite3.DatabaseError as error:
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        raise ToolError(f"the index of symbols was damaged ({error}): try again, it is made anew") from None


def make_scanner(root: Path, is_known: Callable[[str], bool]) -> Callable[[str], ScannedFile | None]:
    """Return the function that reads one file beneath a folder; it follows no link."""
    opener = find_opener()

    def scan(path: str) -> ScannedFile | None:
        try:
            with open_root(root) as folder:
                descriptor = opener(folder, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, 0)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    return None
                content = file.read(MAX_SOURCE_BYTES + 1)
        except OSError:
            return None
        is_settled = time.time_ns() - max(status.st_ctime_ns, status.st_mtime_ns) > _UNSETTLED
        head = b"blob %d\0" % len(content)
        # another language reads the same content in another way
        blob = hashlib.sha1(head + content, usedforsecurity=False).hexdigest() + PurePosixPath(path).suffix
        known = ScannedFile(path, _stamp(status) if is_settled else 0, blob)
        return known if is_known(blob) else _add_symbols(known, read_symbols(path, content))

    return scan


def _stamp(status: os.stat_result) -> int:
    return hash((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


def _add_symbols(file: ScannedFile, symbols: FileSymbols) -> ScannedFile:
    lines = (
        f"{each.name}\t{each.owner}\t{each.first}\t{each.head}\t{each.last}\t{each.kind}\t{each.is_local:d}"
        for each in symbols.definitions
    )
    uses, imports = "\n".join(("", *symbols.uses, "")), "\n".join(symbols.imports)
    return file._replace(definitions="\n".join(lines), uses=uses, imports=imports)


def _read_definitions(text: str) -> tuple[SymbolDefinition, ...]:
    found = (line.split("\t") for line in text.split("\n") if line)
    return tuple(
        SymbolDefinition(
            name=name,
            owner=owner,
            first=int(first),
            head=int(head),
            last=int(last),
            kind=SymbolKind(kind),
            is_local=local == "1",
        )
        for name, owner, first, head, last, kind, local in found
    )
