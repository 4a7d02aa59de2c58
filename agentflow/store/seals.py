"""What a task's events say of its files, and which of them are no longer so."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentflow.core.errors import AgentflowError
from agentflow.core.events import EvidenceRecorded, Stamped, TaskEnded, TaskUndone
from agentflow.core.evidence import Evidence
from agentflow.core.record import Record, plain
from agentflow.core.task import FRONTMATTER_KEYS, TaskState
from agentflow.store.task_file import read_task

REPORT = "report.md"
STATE = "task.md"


class Damage(Record):
    """A file of a task that does not hold what its events say."""

    subject: str
    """The evidence it belongs to, else the file itself."""
    problem: str


def files_of(evidence: Evidence) -> tuple[str, ...]:
    """Return the files of a record, as paths in the task folder."""
    names = (f"evidence/{evidence.id}.json", f"evidence/{evidence.id}.out")
    ids = evidence.tests.ids_file if evidence.tests else None
    tries = (each.output for each in evidence.tries)
    others = (name for name in (ids, evidence.reads_file) if name)
    return (*names, *others, *tries)


def fingerprint(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damages(folder: Path, happened: Iterable[Stamped], task: TaskState) -> Iterator[Damage]:
    """Yield what was changed, added or taken away since the task wrote it."""
    happened = tuple(happened)
    told = tuple(one.event for one in happened)
    records = [event for event in told if isinstance(event, EvidenceRecorded)]
    for record in records:
        yield from _broken(folder, record.evidence, record.files)
    known = {record.evidence for record in records}
    for path in sorted((folder / "evidence").glob("ev-*.json")):
        if path.stem not in known:
            yield Damage(subject=path.stem, problem="no event tells of this record")
    digest = report_seal(happened)
    yield from _broken(folder, REPORT, {REPORT: digest} if digest else {})
    if not _shows(folder / STATE, task):
        yield Damage(subject=STATE, problem=f"{STATE} does not say what the events say")


def report_seal(happened: Iterable[Stamped]) -> str:
    """Return the newest hash that events tell of the report, or nothing."""
    told = [one.event.report for one in happened if isinstance(one.event, TaskEnded | TaskUndone)]
    return next((digest for digest in reversed(told) if digest), "")


def _broken(folder: Path, subject: str, files: dict[str, str]) -> Iterator[Damage]:
    for name, expected in files.items():
        try:
            found = fingerprint(folder / name)
        except OSError as error:
            yield Damage(subject=subject, problem=f"{name}: {error.strerror}")
            continue
        if found != expected:
            yield Damage(subject=subject, problem=f"{name} was changed after it was written")


def _shows(path: Path, task: TaskState) -> bool:
    try:
        shown, state = plain(read_task(path)), plain(task)
    except (AgentflowError, OSError, UnicodeDecodeError):
        return False
    return all(shown[key] == state[key] for key in FRONTMATTER_KEYS)
