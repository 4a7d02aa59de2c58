"""The file of a repository's memory: entries in SQLite, an index of their terms, codes of their meaning."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import log
from pathlib import Path
from typing import Any, Self

from agentflow.core.errors import ConfigError, ModelError
from agentflow.core.record import to_builtins
from agentflow.memory.entry import PERSON, EntryKind, Hit, MemoryEntry
from agentflow.memory.meaning import CODE_BYTES, Meaning, find_nearest, to_bits
from agentflow.memory.terms import find_shared, leave_out_common, list_terms
from agentflow.parse import fit
from agentflow.redact import redact_prose

_WAIT_SECONDS = 10.0
"""For another process that writes."""
_BLOCK = 1_024
"""Codes that stand in one row, so that all of them are read and compared at once."""
_MOST_ROWS = 1_000
"""Rows that a search ranks by words; frequent words are looked up among the newest alone."""
_MOST_TERMS = 24
_MOST_CHARS = 4_000
"""Of one text."""
_FUSED = 60
"""The constant of reciprocal rank fusion."""
_BY_MEANING = 0.5
"""The weight of the list by meaning; that of a hit by words is its share of what was searched for."""
_DEEP = 40
"""Places of each list that are fused."""
_MOVE = "move it away: the next task begins a new one"
_VERSION = 3
_FIELDS = tuple(name for name in MemoryEntry.__struct_fields__ if name != "id")
_TABLES = """
create table entries (
  id integer primary key autoincrement, key text unique not null, kind text not null, text text not null,
  at text not null, by text not null, gist text not null, task text not null, evidence text not null,
  command text not null, exit_code integer, against text not null, terms text not null, coded integer not null
);
create index by_kind on entries (kind, at);
create index by_task on entries (task);
create index uncoded on entries (id) where not coded and kind != 'message';
create virtual table words using fts5 (terms, content='entries', content_rowid='id', detail=none);
create table replaced (key text primary key) without rowid;
create table counts (term text primary key, entries integer not null) without rowid;
create table codes (block integer primary key, codes blob not null);
create table coder (model text not null)
"""


class MemoryFile:
    """An open memory; several processes may have it open at once."""

    def __init__(self, path: Path, meaning: Callable[[], Meaning | None]) -> None:
        """Open the file, making it if need be. Raises ConfigError where it cannot be read."""
        self.fault = ""
        """Why the last search was by words alone although there is a model."""
        self._path = path
        self._load_meaning = meaning
        self._asked: tuple[str, Sequence[float]] = ("", ())
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)  # SQLite gives its other files the mode of this one
        with self._tell_damage():
            self._sql = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._sql.close()
            raise

    def _prepare(self) -> None:
        with self._tell_damage():
            self._sql.execute("pragma secure_delete = on")
            self._sql.execute("pragma synchronous = normal")
            if self._get_version() == 0:
                self._sql.execute("pragma journal_mode = wal")
                with self._write():
                    for statement in _TABLES.split(";\n") if self._get_version() == 0 else ():
                        self._sql.execute(statement)
                    self._sql.execute(f"pragma user_version = {_VERSION}")
            if self._get_version() != _VERSION:
                raise ConfigError(f"{self._path} was written by another version of agentflow", hint=_MOVE)

    def _get_version(self) -> int:
        return int(self._sql.execute("pragma user_version").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sql.close()

    @contextmanager
    def _tell_damage(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, IndexError) as error:  # rows may be damaged, too
            raise ConfigError(f"the memory in {self._path} cannot be used: {error}", hint=_MOVE) from None

    @contextmanager
    def _write(self) -> Iterator[None]:
        """Make all changes or none, also where the process is killed."""
        with self._tell_damage():
            self._sql.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._sql.execute("rollback")
                raise
            self._sql.execute("commit")

    def keep(self, entry: MemoryEntry) -> MemoryEntry:
        """Keep what a person says now, also what they replaced before, and return it as it is kept."""
        with self._write():
            self._sql.execute("delete from replaced where key = ?", (entry.key,))
        self.add((entry,))
        return self._select("key = ?", entry.key)[0]

    def add(self, entries: Iterable[MemoryEntry]) -> None:
        """Keep entries without secrets, each in place of what has its key; not what a person replaced."""
        with self._write():
            for entry in entries:
                if not self._sql.execute("select 1 from replaced where key = ?", (entry.key,)).fetchone():
                    earlier = self._select("key = ?", entry.key)
                    self._drop(earlier)
                    self._insert(entry, earlier[0].id if earlier else None)

    def _insert(self, entry: MemoryEntry, number: int | None) -> None:
        text = redact_prose(entry.text)[:_MOST_CHARS]
        terms = " ".join((_to_kind_term(entry.kind), *list_terms(text)))
        gist, command = redact_prose(entry.gist)[:_MOST_CHARS], redact_prose(entry.command)
        row = to_builtins(entry.replace(text=text, gist=gist, command=command))
        values = [row[name] for name in _FIELDS]
        names, places = ", ".join(_FIELDS), ", ".join("?" * len(_FIELDS))
        statement = f"insert into entries (id, {names}, terms, coded) values (?, {places}, ?, 0)"  # noqa: S608
        made = self._sql.execute(statement, (number, *values, terms)).lastrowid
        self._sql.execute("insert into words (rowid, terms) values (?, ?)", (made, terms))
        self._count(terms, 1)

    def _drop(self, entries: Iterable[MemoryEntry]) -> None:
        for entry in entries:
            (terms,) = self._sql.execute("select terms from entries where id = ?", (entry.id,)).fetchone()
            drop = "insert into words (words, rowid, terms) values ('delete', ?, ?)"
            self._sql.execute(drop, (entry.id, terms))
            self._count(terms, -1)
            self._sql.execute("delete from entries where id = ?", (entry.id,))
            self._set_code(entry.id, bytes(CODE_BYTES))

    def _count(self, terms: str, more: int) -> None:
        """Keep how many entries have each term; the index would count them anew for each search."""
        change = (
            "insert into counts values (?, ?) on conflict do update set entries = entries + excluded.entries"
        )
        self._sql.executemany(change, ((term, more) for term in sorted({*terms.split()})))
        if more < 0:
            self._sql.execute("delete from counts where entries < 1")

    def _code(self, meaning: Meaning) -> None:
        """Give codes to entries without one, the newest first; a task that only ends needs no model."""
        if self._sql.execute("select model from coder").fetchall() != [(meaning.name,)]:
            with self._write():
                for statement in ("delete from coder", "delete from codes", "update entries set coded = 0"):
                    self._sql.execute(statement)
                self._sql.execute("insert into coder values (?)", (meaning.name,))
        wanted = "select id, text, gist from entries where not coded and kind != ? order by id desc limit ?"
        if not (found := self._sql.execute(wanted, (EntryKind.MESSAGE, meaning.at_once)).fetchall()):
            return
        vectors = meaning.embed([leave_out_common(gist or text) for _, text, gist in found])
        with self._write():
            for (number, *_), vector in zip(found, vectors, strict=True):
                self._set_code(number, to_bits(vector))
                self._sql.execute("update entries set coded = 1 where id = ?", (number,))

    def _set_code(self, entry: int, code: bytes) -> None:
        block, place = divmod(entry, _BLOCK)
        empty = (block, bytes(_BLOCK * CODE_BYTES))
        self._sql.execute("insert or ignore into codes values (?, ?)", empty)
        with self._sql.blobopen("codes", "codes", block) as blob:
            for number, byte in enumerate(code):
                blob[number * _BLOCK + place] = byte

    def _select(self, where: str, *values: object, order: str = "id desc") -> tuple[MemoryEntry, ...]:
        names = (*_FIELDS, "id")
        statement = f"select {', '.join(names)} from entries where {where} order by {order}"  # noqa: S608
        with self._tell_damage():
            rows = self._sql.execute(statement, values).fetchall()
            return tuple(fit(MemoryEntry, dict(zip(names, row, strict=True))) for row in rows)

    def list_entries(self, kind: EntryKind | None = None, most: int = -1) -> tuple[MemoryEntry, ...]:
        """Return the entries of a kind or all, the newest first."""
        return self._select("kind = ? or ?", kind or "", kind is None, order=f"at desc, id desc limit {most}")

    def list_said(self, most: int, without: Iterable[str] = ()) -> tuple[MemoryEntry, ...]:
        """Return the newest messages of the person, but for those of some tasks."""
        apart = tuple(without)
        where = f"kind = ? and by = ? and task not in ({', '.join('?' * len(apart))})"
        order = f"at desc, id desc limit {most}"
        return self._select(where, EntryKind.MESSAGE, PERSON, *apart, order=order)

    def find(self, number: int) -> MemoryEntry | None:
        """Return the entry of an id."""
        return next(iter(self._select("id = ?", number)), None)

    def forget(self, where: Mapping[str, object]) -> int:
        """Delete the entries with these values, so that the file does not hold them any more."""
        condition = " and ".join(f"{name} = ?" for name in where) or "1"
        with self._write():
            gone = self._select(condition, *where.values())
            self._drop(gone)
            self._replace(gone)
            if gone:  # a deleted term stays in the index until it is merged
                self._sql.execute("insert into words (words) values ('optimize')")
        with self._tell_damage():
            self._sql.execute("pragma wal_checkpoint(truncate)")
        return len(gone)

    def _replace(self, entries: Iterable[MemoryEntry]) -> None:
        """Have their task, if it goes on and ends again, not write them anew."""
        keys = ((entry.key,) for entry in entries if entry.task)
        self._sql.executemany("insert or ignore into replaced values (?)", keys)

    def edit(self, entry: MemoryEntry, text: str) -> None:
        """Put a person's words in place of an entry's; no evidence speaks for or against them."""
        known = {name: getattr(entry, name) for name in ("kind", "at", "task")}
        with self._write():
            self._drop((entry,))
            self._replace((entry,))
            self._insert(MemoryEntry(**known, text=text, by=PERSON, key=f"edited:{entry.id}"), entry.id)

    def weigh(self, task: str, ran: Mapping[str, tuple[str, int]]) -> None:
        """Mark the learnings of other tasks whose command has ended otherwise since, and clear such marks.

        `ran` has, by command, the id and the exit code of its newest run in a task. Only zero and not zero
        are told apart.
        """
        with self._write():
            for one in self._select("command != '' and task != ?", task):
                if one.command in ran:
                    evidence, code = ran[one.command]
                    differs = (code == 0) != (one.exit_code == 0)
                    against = f"the same command ended with {code}: {evidence} of {task}" if differs else ""
                    self._sql.execute("update entries set against = ? where id = ?", (against, one.id))

    def reject(self, task: str, why: str) -> None:
        """Mark everything that a task left; without its command, no later run clears that."""
        change = "update entries set against = ?, command = '' where task = ? and kind != ?"
        with self._write():
            self._sql.execute(change, (why, task, EntryKind.MESSAGE))

    def search(self, text: str, most: int = 5, *, kind: EntryKind | None = None) -> tuple[Hit, ...]:
        """Return the entries that fit a text best by words and by meaning, without those set aside."""
        terms = dict.fromkeys(list_terms(text))
        count = "select coalesce((select entries from counts where term = ?), 0)"
        with self._tell_damage():
            counts = {term: self._sql.execute(count, (term,)).fetchone()[0] for term in terms}
            words = self._rank_by_words(counts, kind)
            near = self._rank_by_meaning(text, kind)
            shares = self._find_shares(counts, words) if near else dict.fromkeys(words, 1.0)
        scores = defaultdict[int, float](float)
        for place, number in enumerate(words, 1):
            scores[number] += shares[number] / (_FUSED + place)
        for place, number in enumerate(near, 1):
            scores[number] += _BY_MEANING / (_FUSED + place)
        best = sorted(scores, key=lambda number: (-scores[number], -number))
        found = (one for number in best for one in self._select("id = ? and against = ''", number))
        return tuple(
            Hit(
                entry=one,
                by_meaning=near.index(one.id) + 1 if one.id in near else None,
                shared=find_shared(one.text, frozenset(terms)),
            )
            for one in islice(found, most)
        )

    def _find_shares(self, counts: Mapping[str, int], numbers: Iterable[int]) -> dict[int, float]:
        """Return how much of what was searched for each entry has, the rarer a term the more."""
        (whole,) = self._sql.execute("select count(*) from entries").fetchone()
        weights = {term: log(1 + whole / (count + 0.5)) for term, count in counts.items()}
        of = "select terms from entries where id = ?"
        known = {number: self._sql.execute(of, (number,)).fetchone()[0].split() for number in numbers}
        return {
            number: sum(weights.get(term, 0) for term in {*terms}) / sum(weights.values())
            for number, terms in known.items()
        }

    def _rank_by_words(self, known: Mapping[str, int], kind: EntryKind | None) -> list[int]:
        """Return the ids of entries by bm25, asking for the rarest terms until enough entries have them."""
        counts = sorted((rows, term) for term, rows in known.items() if rows)
        chosen, left = list[str](), _MOST_ROWS
        for rows, term in counts[:_MOST_TERMS]:
            if chosen and rows > left:
                break
            chosen.append(f'"{term}"')
            left -= rows
        if not chosen:
            return []
        match = f"({' OR '.join(chosen)})"
        if kind is not None:
            match = f'"{_to_kind_term(kind)}" AND {match}'
        (newest,) = self._sql.execute("select max(id) from entries").fetchone()
        first = int(newest * (1 - _MOST_ROWS / counts[0][0])) if counts[0][0] > _MOST_ROWS else 0
        ranked = "select rowid from words where words match ? and rowid > ? order by rank limit ?"
        return [number for (number,) in self._sql.execute(ranked, (match, first, _DEEP))]

    def _rank_by_meaning(self, text: str, kind: EntryKind | None) -> list[int]:
        self.fault = ""
        try:
            meaning = self._load_meaning()
            if meaning is None:
                return []
            if self._asked[0] != text:
                self._asked = (text, meaning.embed([leave_out_common(text)])[0])
            self._code(meaning)
        except ModelError as error:
            self.fault = str(error)
            return []
        rows = self._sql.execute("select block, codes from codes order by block").fetchall()
        places = find_nearest([codes for _, codes in rows], self._asked[1], 2 * _DEEP)
        numbers = (rows[place // _BLOCK][0] * _BLOCK + place % _BLOCK for place in places)
        of_kind = "select id from entries where id = ? and (kind = ? or ?)"
        given = ((number, kind or "", kind is None) for number in numbers)
        return [number for each in given for (number,) in self._sql.execute(of_kind, each)][:_DEEP]


def _to_kind_term(kind: EntryKind) -> str:
    """Return a term that no text has, so that the index itself finds the entries of a kind."""
    return f"kind0{kind}"


def to_row(entry: MemoryEntry) -> dict[str, Any]:
    """Return an entry for people who read JSON."""
    return {name: value for name, value in to_builtins(entry).items() if name not in ("key", "gist")}
