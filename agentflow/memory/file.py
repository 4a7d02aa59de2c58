"""The file of a repository's memory: entries in SQLite, an index of their terms, codes of their meaning."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate, islice
from pathlib import Path

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
_MOST_ROWS = 500
"""Rows that a search ranks by words; frequent words are looked up among the newest alone."""
_MOST_TERMS = 24
_MOST_CHARS = 4_000
"""Of one text."""
_FUSED = 60
"""The constant of reciprocal rank fusion."""
_DEEP = 40
"""Places of each list that are fused."""
_OF_KIND = "kind0{}".format
"""Makes a term that no text has, so that the index itself finds the entries of a kind."""
_MOVE = "move it away: the next task begins a new one"
_FIELDS = MemoryEntry.__struct_fields__
_TABLES = """
create table entries (
  id integer primary key autoincrement, key unique, kind, text, at, by, gist, task, evidence, command,
  exit_code, against, coded
);
create index by_kind on entries (kind, at);
create index by_task on entries (task);
create index uncoded on entries (id) where not coded and kind != 'message';
create virtual table words using fts5 (terms, detail=none);
create table replaced (key text primary key) without rowid;
create table codes (block integer primary key, codes blob not null);
create table coder (model);
pragma user_version = 4
"""
_VERSION = 4


class MemoryFile(AbstractContextManager["MemoryFile"]):
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
            if self._get_version() != _VERSION:
                raise ConfigError(f"{self._path} was written by another version of agentflow", hint=_MOVE)

    def _get_version(self) -> int:
        return int(self._sql.execute("pragma user_version").fetchone()[0])

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

    def add(self, entries: Iterable[MemoryEntry]) -> None:
        """Keep entries without secrets, each in place of what has its key.

        What a person replaced is kept only where a person says it once more.
        """
        replaced = "select 1 from replaced where key = ?"
        with self._write():
            for entry in entries:
                is_said = entry.kind is EntryKind.LEARNING and entry.by == PERSON
                if is_said or not self._sql.execute(replaced, (entry.key,)).fetchone():
                    earlier = self.list_entries(key=entry.key)
                    self._insert(entry.replace(id=earlier[0].id) if earlier else entry)

    def _insert(self, entry: MemoryEntry) -> None:
        """Write an entry in place of the one with its id; zero gives it a new one."""
        text, gist = (redact_prose(each)[:_MOST_CHARS] for each in (entry.text, entry.gist))
        entry = entry.replace(text=text, gist=gist, command=redact_prose(entry.command))
        row = {**to_builtins(entry), "id": entry.id or None, "coded": 0}
        places = ", ".join(f":{name}" for name in row)
        statement = f"insert or replace into entries ({', '.join(row)}) values ({places})"  # noqa: S608
        number = self._sql.execute(statement, row).lastrowid
        terms = " ".join((_OF_KIND(entry.kind), *list_terms(text)))
        self._sql.execute("insert or replace into words (rowid, terms) values (?, ?)", (number, terms))

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

    def list_entries(self, most: int = -1, /, **values: object) -> tuple[MemoryEntry, ...]:
        """Return the entries with these values, the newest first; None is any value."""
        chosen = f"select {', '.join(_FIELDS)} from entries where "  # noqa: S608
        where = " and ".join(f"{name} = :{name}" for name in values if values[name] is not None) or "1"
        with self._tell_damage():
            rows = self._sql.execute(f"{chosen}{where} order by at desc, id desc limit {most}", values)
            return tuple(fit(MemoryEntry, dict(zip(_FIELDS, row, strict=True))) for row in rows)

    def forget(self, **values: object) -> int:
        """Delete the entries with these values, so that the file does not hold them any more."""
        with self._write():
            gone = self.list_entries(**values)
            for entry in gone:
                self._sql.execute("delete from words where rowid = ?", (entry.id,))
                self._sql.execute("delete from entries where id = ?", (entry.id,))
                self._set_code(entry.id, bytes(CODE_BYTES))
                self._replace(entry)
            if gone:  # a deleted term stays in the index until it is merged
                self._sql.execute("insert into words (words) values ('optimize')")
        with self._tell_damage():
            self._sql.execute("pragma wal_checkpoint(truncate)")
        return len(gone)

    def _replace(self, entry: MemoryEntry) -> None:
        """Have its task, if it goes on and ends again, not write an entry anew."""
        if entry.task:
            self._sql.execute("insert or ignore into replaced values (?)", (entry.key,))

    def edit(self, entry: MemoryEntry, text: str) -> None:
        """Put a person's words in place of an entry's; no evidence speaks for or against them."""
        known = {name: getattr(entry, name) for name in ("id", "kind", "at", "task")}
        with self._write():
            self._replace(entry)
            self._insert(MemoryEntry(**known, text=text, by=PERSON, key=f"edited:{entry.id}"))

    def weigh(self, task: str, ran: Mapping[str, tuple[str, int]]) -> None:
        """Mark the learnings of other tasks whose command has ended otherwise since, and clear such marks.

        `ran` has, by command, the id and the exit code of its newest run in a task. Only zero and not zero
        are told apart.
        """
        with self._write():
            for one in self.list_entries(kind=EntryKind.LEARNING):
                if one.task != task and one.command in ran:
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
        terms = frozenset(list_terms(text))
        with self._tell_damage():
            words = self._rank_by_words(terms, kind)
            near = self._rank_by_meaning(text, kind)
        scores = defaultdict[int, float](float)
        for place, number in enumerate(words, _FUSED):
            scores[number] += words[number] / place
        for place, number in enumerate(near, _FUSED):
            scores[number] += 1 / place
        best = sorted(scores, key=lambda number: (-scores[number], -number))
        found = (one for number in best for one in self.list_entries(id=number, against=""))
        return tuple(Hit(entry=one, why=_explain(one, terms, near)) for one in islice(found, most))

    def _rank_by_words(self, terms: frozenset[str], kind: EntryKind | None) -> dict[int, float]:
        """Return the ids of entries by bm25, each with the share of the terms that it has.

        The rarest terms are asked for until enough entries have them; one that more have, among the newest.
        """
        count = "select count(*) from (select 1 from words where words match ? limit ?)"
        asked = (f'"{term}"' for term in terms)
        counts = sorted((*self._sql.execute(count, (each, _MOST_ROWS)).fetchone(), each) for each in asked)
        known = [(rows, each) for rows, each in counts if rows][:_MOST_TERMS]
        if not known:
            return {}
        totals = accumulate(rows for rows, _ in known)
        chosen = [each for (_, each), total in zip(known, totals, strict=True) if total <= _MOST_ROWS]
        match = f"{'' if kind is None else f'{_OF_KIND(kind)} AND '}({' OR '.join(chosen)})"
        ranked = (
            "select rowid, terms from words where words match ? and rowid > coalesce((select rowid from "
            "words where words match ? order by rowid desc limit 1 offset ?), 0) order by rank limit ?"
        )
        rows = self._sql.execute(ranked, (match, chosen[0], _MOST_ROWS, _DEEP))
        return {number: len(terms.intersection(found.split())) / len(terms) for number, found in rows}

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
        return list(islice((one for one in numbers if self.list_entries(id=one, kind=kind)), _DEEP))


def _explain(entry: MemoryEntry, terms: frozenset[str], near: list[int]) -> str:
    shared = find_shared(entry.text, terms)
    words = f"words: {', '.join(shared[:5])}" if shared else ""
    place = f"meaning: nearest {near.index(entry.id) + 1}" if entry.id in near else ""
    return "; ".join(filter(None, (words, place)))
