"""Task folders read into values, those of older versions too; nothing here writes, locks or waits."""

import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from agentflow.core.errors import ConfigError, CorruptState, InvalidFile, TaskNotFound
from agentflow.core.events import (
    Event,
    HandEdited,
    IntentTold,
    PhaseEnded,
    StateChanged,
    StoredEvent,
    TaskEnded,
    Warned,
)
from agentflow.core.evidence import Evidence
from agentflow.core.finding import FindingKind
from agentflow.core.task import STATE_VERSION, GateStatus, Status, TaskState, gather_parts
from agentflow.parse import Mismatch, decode, fit
from agentflow.redact import nest_text, to_one_line
from agentflow.store.journal import read_numbered_lines

TASKS = Path(".claude", "agentflow")
EVENTS = "events.jsonl"
EVIDENCE = "evidence"
_RECORD = re.compile(r"ev-[0-9]{4,}")
_TASK_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-z]+")
_UNCHANGED = "nothing was changed; look at the file"
_LOOK_SECONDS = 0.2
_SECOND = len("20260102T030405Z")
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


def find_state_folder(root: Path) -> Path:
    """Return the folder of a repository's tasks. Raises ConfigError where a link would lead elsewhere."""
    for place in (TASKS.parent, TASKS):
        if (root / place).is_symlink():
            raise ConfigError(
                f"{place} is a link; agentflow keeps its state there and follows no links",
                hint=f"make {place} a folder: settings, roles and skills in .claude may be links",
            )
    return root / TASKS


def fold_fields(folder: Path, happened: tuple[StoredEvent, ...]) -> dict[str, Any]:
    """Return the keys of a state as they were written, older ones as of the version written last.

    Raises CorruptState for a version that is not known here.
    """
    states = [fields for _, fields in trace_fields(folder, happened)]
    return states[-1] if states else {}


def trace_fields(
    folder: Path, happened: tuple[StoredEvent, ...]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each change of a state with the keys of the state after it. Raises CorruptState."""
    fields: dict[str, Any] = {}
    for one in happened:
        if isinstance(one.event, StateChanged):
            changed = one.event.changed
            if fields and "version" in changed:
                fields = upgrade_fields(fields, str(folder / EVENTS), changed["version"])
            fields = {**fields, **changed}
            yield changed, fields


def fold_state(folder: Path, happened: tuple[StoredEvent, ...]) -> TaskState:
    """Return the state that events fold to. Raises CorruptState."""
    source = str(folder / EVENTS)
    try:
        return fit(TaskState, gather_parts(upgrade_fields(fold_fields(folder, happened), source)))
    except Mismatch as error:
        raise CorruptState(f"{source}: {error}") from None


def load_state(folder: Path) -> TaskState:
    """Return the state of a saved task. Raises CorruptState."""
    return fold_state(folder, tuple(load_events(folder)))


def try_load_state(folder: Path) -> TaskState | None:
    try:
        return load_state(folder)
    except CorruptState:
        return None


def to_log_text(event: Event) -> str:
    """Return the line about an event in the log of `task.md`; most events have none."""
    match event:
        case PhaseEnded() if event.status is not GateStatus.SKIPPED:
            title = f"\n### Iteration {event.iteration} / {event.phase} / {event.status}\n"
            return f"{title}{nest_text(event.message)}\n"
        case IntentTold():
            gaps = "".join(f"- {nest_text(gap)}\n" for gap in event.gaps) or "- gaps: none\n"
            return f"\n### Intent\n- goal: {nest_text(event.goal)}\n{gaps}"
        case Warned():
            return f"\n> {nest_text(event.message)}\n"
        case _:
            return ""


def find_notes(happened: tuple[StoredEvent, ...]) -> str:
    """Return what a person wrote into `task.md` and is kept there."""
    edits = (one.event for one in happened if isinstance(one.event, HandEdited))
    kept = [edit.text for edit in edits if edit.part == "body"]
    return kept[-1] if kept else ""


def load_events(folder: Path) -> Iterator[StoredEvent]:
    """Yield the events of a task one by one; a last line without its newline is still being written."""
    path, task_id = folder / EVENTS, None
    try:
        for number, line in read_numbered_lines(path):
            seq, task_id, one = _read(line, f"{path}:{number}", task_id)
            if seq != number:
                raise CorruptState(f"{path}:{number}: event {seq} stands here", hint=_UNCHANGED)
            if one:
                yield one
    except OSError as error:
        raise CorruptState(f"{path}: {error.strerror}") from None


def follow_events(folder: Path, is_at_work: Callable[[], bool]) -> Iterator[StoredEvent]:
    """Yield the events of a task, then new ones as they come, as long as a process works on it."""
    known = 0
    while True:
        works = is_at_work()
        for one in islice(load_events(folder), known, None):
            known += 1
            yield one
        if not works:
            return
        time.sleep(_LOOK_SECONDS)


def parse_event(line: bytes, source: str = EVENTS) -> StoredEvent | None:
    """Return the event of a line, or None when its type is of a later version. Raises CorruptState."""
    return _read(line, source, None)[2]


def seal(body: bytes) -> bytes:
    """Return a JSON object's line with its checksum as the last key, `sum`."""
    return b'%s,"sum":"%08x"}' % (body[:-1], zlib.crc32(body))


def is_intact(line: bytes) -> bool:
    """Return whether a sealed line still has the bytes it was written with."""
    head, found, tail = line.rpartition(b',"sum":"')
    return bool(found) and tail == b'%08x"}' % zlib.crc32(head + b"}")


def _read(line: bytes, source: str, task_id: str | None) -> tuple[int, str, StoredEvent | None]:
    """Return number, task and event of a line; `task_id` is the task that the line has to be of, if known."""
    if not is_intact(line.rstrip(b"\n")):
        raise CorruptState(f"{source}: the line is damaged", hint=_UNCHANGED)
    try:
        fields = decode(dict[str, Any], line, source)
        kind = _KINDS.get(fields["type"])
        seq, at, parent = fields.pop("seq"), fields.pop("at"), fields.pop("parent", None)
        owner = str(fields.pop("task_id"))
        del fields["sum"]
        if task_id not in (None, owner):
            raise CorruptState(f"{source}: an event of the task {to_one_line(owner, 60)}", hint=_UNCHANGED)
        one = StoredEvent(seq=seq, at=at, event=fit(kind, fields), parent=parent) if kind else None
    except KeyError as error:
        raise CorruptState(f"{source}: key {error} is missing") from None
    except (InvalidFile, UnicodeDecodeError) as error:
        raise CorruptState(str(error)) from None
    except Mismatch as error:
        raise CorruptState(f"{source}: {error}") from None
    return seq, owner, one


def find_recorded_end(folder: Path) -> Status | None:
    """Return the end that a task's newest `TaskEnded` tells of, or None when there is none yet."""
    told = [one.event.status for one in load_events(folder) if isinstance(one.event, TaskEnded)]
    return told[-1] if told else None


def find_last_write_time(folder: Path) -> float:
    places = (folder / EVENTS, *(folder / "runs").glob("*.jsonl"))
    return max((place.stat().st_mtime for place in places if place.exists()), default=0.0)


def read_evidence(folder: Path) -> tuple[Evidence, ...]:
    """Return a task's records in the order they were made. Raises CorruptState naming the damaged file."""
    found: list[Evidence] = []
    paths = (path for path in (folder / EVIDENCE).glob("ev-*.json") if _RECORD.fullmatch(path.stem))
    for path in sorted(paths, key=lambda path: (len(path.name), path.name)):
        try:
            found.append(decode(Evidence, path.read_bytes(), str(path)))
        except (InvalidFile, UnicodeDecodeError, OSError) as error:
            raise CorruptState(str(error)) from None
        if found[-1].id != path.stem:
            raise CorruptState(f"{path}: holds the record {to_one_line(found[-1].id, 60)}")
    return tuple(found)


def is_task_id(word: str) -> bool:
    return _TASK_ID.fullmatch(word) is not None


def list_tasks(root: Path) -> tuple[str, ...]:
    begun = []
    for folder in find_state_folder(root).glob("*Z-*"):
        if folder.is_symlink():
            continue  # not made by us
        found = [place for name in (EVENTS, "task.md") if os.path.lexists(place := folder / name)]
        if not found:
            continue  # not a task, or one that has not begun
        written = found[0].lstat().st_mtime_ns
        if _TASK_ID.fullmatch(folder.name):
            begun.append((folder.name[:_SECOND], written, folder.name))
    return tuple(name for _, _, name in sorted(begun))


def find(root: Path, task_id: str | None) -> Path:
    """Return the folder of a task by a unique beginning of its id; of the newest task for None."""
    names = list_tasks(root)
    if not names:
        raise TaskNotFound("there is no task in this repository", hint='agentflow task "…" starts one')
    if task_id is None:
        return root / TASKS / names[-1]
    fitting = [task_id] if task_id in names else [name for name in names if name.startswith(task_id)]
    if len(fitting) == 1:
        return root / TASKS / fitting[0]
    problem = "matches more than one task" if fitting else "is not a task of this repository"
    newest = tuple(reversed((fitting or names)[-3:]))
    verb = "is" if len(newest) == 1 else "are"
    raise TaskNotFound(
        f"{to_one_line(task_id, 60) or 'an empty id'} {problem}",
        hint=f"the newest {verb} {', '.join(newest)}; agentflow tasks lists all",
    )


Fields = dict[str, Any]


def _name_version(fields: Fields) -> Fields:
    """Add the version to a state that names none; such a state has the keys of version 1.

    Before routes had names, its phases were its route; without any, nothing would be left to do.
    """
    gates: dict[str, Any] = fields.get("gates", {})
    is_begun = gates.get("refinement", {}).get("status") == "passed" and "runs" in fields
    steps = [name for name, gate in gates.items() if name != "refinement" and gate["status"] != "skipped"]
    return {**({"steps": steps} if is_begun else {}), **fields, "version": 1}


def _to_findings(fields: Fields) -> Fields:
    """Make findings of the sentences of version 1, and give the approval that its verdict told of."""
    answers = (each for name, each in fields.get("answers", {}).items() if name.startswith("checks-"))
    approved = next((each for each in answers if each["approved"]), None)

    def upgrade(value: Any) -> Any:
        match value:
            case list():
                return [upgrade(each) for each in value]
            case {"text": str(text), "is_sure": _, **rest}:  # a remark
                return {**rest, "kind": FindingKind.KNOWS_INPUTS, "subjects": [text]}
            case dict():
                is_said = value.keys() & {"passed", "signature"}  # a verdict, a failure
                approval = approved if value.get("approvals") else None
                return {
                    name: [{"kind": FindingKind.AS_WORDED, "subjects": [text]} for text in each]
                    if is_said and name in ("reasons", "notes", "weakened", "unproved")
                    else upgrade(each)
                    for name, each in value.items()
                    if name not in ("wanted", "grounds", "approvals")
                } | ({"approval": approval} if approval else {})
            case _:
                return value

    told = ("verdict", "stands", "failures", "memorised", "mutants")
    return {**fields, **{name: upgrade(fields[name]) for name in told if name in fields}, "version": 2}


STEPS: Mapping[int, Callable[[Fields], Fields]] = {0: _name_version, 1: _to_findings}
"""From each older version to the one after it; a key that is only added needs no step but its default."""


def upgrade_fields(fields: Fields, source: str, version: object = STATE_VERSION) -> Fields:
    """Return a saved state's fields as a newer version has them. Raises CorruptState for an unknown one."""
    written = _check_version(fields.get("version", 0), source)
    try:
        for step in range(written, _check_version(version, source)):
            fields = STEPS[step](fields)
    except (AttributeError, KeyError, TypeError):
        raise CorruptState(f"{source}: it is no state of version {written}") from None
    return fields


def _check_version(version: object, source: str) -> int:
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise CorruptState(f"{source}: version: {version!r} is not a version")
    if version > STATE_VERSION:
        raise CorruptState(
            f"{source}: version {version} was written by a newer agentflow",
            hint=f"this one knows version {STATE_VERSION}; nothing was changed",
        )
    return version
