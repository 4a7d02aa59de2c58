"""Evidence: one record for each executed command, its output beside it, and hashes that show a change."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentflow.core.errors import AgentflowError
from agentflow.core.events import (
    Event,
    EvidenceRecorded,
    PhaseStarted,
    RunStarted,
    StoredEvent,
    TaskEnded,
    TaskUndone,
)
from agentflow.core.evidence import (
    By,
    CheckRun,
    Evidence,
    Execution,
    Fault,
    Side,
    TestCounts,
    TestOutcome,
    Try,
    summarize_evidence,
)
from agentflow.core.ports import Observer
from agentflow.core.record import Record, copy_shared, encode, to_builtins
from agentflow.core.routing import ROLE_OF
from agentflow.core.task import FRONTMATTER_KEYS, Phase, TaskState
from agentflow.frontmatter import sync, write_atomic, write_whole
from agentflow.redact import redact_text, spell_bytes
from agentflow.store.task_file import STATE, read_task

_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\]")
_ESCAPE = re.compile(r"\\(?:[\\nrt]|x[0-9a-f]{2}|u[0-9a-f]{4})")
REPORT = "report.md"


class EvidenceLedger:
    """The evidence of one task; the program judges by these records in memory, not by the files."""

    def __init__(
        self, folder: Path, task: TaskState, observe: Observer, known: tuple[Evidence, ...] = ()
    ) -> None:
        self._folder = folder / "evidence"
        self._task_id = task.task_id
        self._observe = observe
        self._records = {evidence.id: evidence for evidence in known}
        self._number = int(known[-1].id.removeprefix("ev-")) if known else 0

    @property
    def records(self) -> tuple[Evidence, ...]:
        return tuple(self._records.values())

    def find(self, evidence_id: str) -> Evidence | None:
        return self._records.get(evidence_id)

    def list_altered(self, iteration: int) -> frozenset[str]:
        """Return what checks of the final tree and the verifier's commands changed in their views.

        Each command of the verifier has a view of its own, so that no other sees a file it made.
        """
        records = [record for record in self._records.values() if record.iteration == iteration]
        checks = (r for r in records if r.by is By.PROGRAM and r.code is Side.FINAL)
        found = {path for record in checks for path in record.changed}
        commands = (record for record in records if record.role == ROLE_OF[Phase.VERIFICATION])
        seen = {path for record in commands for path in record.changed if not path.startswith("A ")}
        return frozenset(found | seen)

    def list_left_before(self) -> frozenset[str]:
        """Return the files that checks changed while they ran on the code from before the task."""
        records = (r for r in self._records.values() if r.by is By.PROGRAM and r.code is Side.BASE)
        return frozenset(path for record in records for path in record.changed)

    def read_output(self, evidence_id: str) -> str:
        return (self._folder / f"{evidence_id}.out").read_text("utf-8", "replace")

    def read_outcomes(self, evidence: Evidence) -> dict[str, TestOutcome]:
        return read_outcomes(self._folder.parent, evidence)

    def record(self, execution: Execution, *, role: str | None, iteration: int, by: By) -> Evidence:
        """Keep a command that an agent chose, and take its output; nothing is judged by it."""
        return self._keep(self._draft(execution, role, iteration, by), execution)

    def record_check(
        self, run: CheckRun, tree: str, *, iteration: int, flaky: tuple[str, ...] = ()
    ) -> Evidence:
        """Keep a required check that the program ran on a tree, and take its output."""
        draft = self._draft(run.execution, None, iteration, By.PROGRAM)
        bound = draft.replace(
            check=run.check.name,
            tree_before=tree,
            tree_after=tree,
            surface=run.checks,
            code=run.code,
            tests=self._with_ids(draft.id, run),
            tries=tuple(self._try(draft.id, number, *each) for number, each in enumerate(run.tries, 1)),
            flaky=tuple(map(redact_text, flaky)),
            surroundings=run.surroundings,
            reads_file=run.reads and self._with_reads(draft.id, run),
            taken_from=run.taken_from,
            import_errors={test: redact_text(error) for test, error in run.import_errors.items()},
        )
        return self._keep(bound, run.execution)

    def _draft(self, execution: Execution, role: str | None, iteration: int, by: By) -> Evidence:
        changed = tuple(spell_bytes(os.fsencode(path)) for path in execution.changed)
        return Evidence(
            id=f"ev-{self._number + 1:04}",
            task_id=self._task_id,
            iteration=iteration,
            role=role,
            by=by,
            check=None,
            tree_before=None,
            tree_after=None,
            surface=Side.FINAL,
            code=Side.FINAL,
            **copy_shared(
                execution.replace(command=redact_text(execution.command), changed=changed), Evidence
            ),
        )

    def _try(self, evidence_id: str, number: int, fault: Fault, run: CheckRun) -> Try:
        name, execution = f"{evidence_id}.try-{number}.out", run.execution
        Path(execution.output).replace(self._folder / name)
        return Try(fault=fault, **copy_shared(execution.replace(output=f"evidence/{name}"), Try))

    def _with_ids(self, evidence_id: str, run: CheckRun) -> TestCounts | None:
        if run.counts is None:
            return None
        name = f"{evidence_id}.ids"
        lines = (f"{outcome} {_escape(test)}\n" for test, outcome in sorted(run.outcomes.items()))
        write_atomic(self._folder / name, redact_text("".join(lines)).encode())
        return run.counts.replace(ids_file=f"evidence/{name}")

    def _with_reads(self, evidence_id: str, run: CheckRun) -> str | None:
        name = f"{evidence_id}.reads"
        try:
            write_whole(self._folder / name, encode(run.reads))
        except UnicodeEncodeError:  # a file's name that is no UTF-8
            return None
        return f"evidence/{name}"

    def _keep(self, evidence: Evidence, execution: Execution) -> Evidence:
        output = self._folder / f"{evidence.id}.out"
        Path(execution.output).replace(output)
        record = encode(evidence) + b"\n"
        if evidence.by is By.PROGRAM:
            sync(output)
            write_atomic(self._folder / f"{evidence.id}.json", record)
        else:  # nothing is judged by it, so it does not wait for the disk
            write_whole(self._folder / f"{evidence.id}.json", record)
        self._records[evidence.id] = evidence
        self._number += 1
        self._observe(
            EvidenceRecorded(
                evidence=evidence.id,
                tree=evidence.tree_before,
                summary=summarize_evidence(evidence),
                failing=evidence.tests.failed + evidence.tests.errors if evidence.tests else 0,
                is_flaky=bool(evidence.flaky),
                files={name: hash_file(self._folder.parent / name) for name in list_evidence_files(evidence)},
                **copy_shared(evidence, EvidenceRecorded),
            )
        )
        return evidence


class TreeLedger(Record):
    """The evidence that a verifier may cite: required checks of one tree, and its own commands."""

    ledger: EvidenceLedger
    tree: str
    iteration: int
    held: frozenset[str] = frozenset()
    """Checks of that tree's code as they stood before the task, by id."""

    def find(self, evidence_id: str) -> Evidence | None:
        evidence = self.ledger.find(evidence_id)
        return evidence if evidence is not None and self._fits(evidence) else None

    def _fits(self, evidence: Evidence) -> bool:
        if evidence.by is By.AGENT:
            return (evidence.role, evidence.iteration) == (ROLE_OF[Phase.VERIFICATION], self.iteration)
        is_own = evidence.tree_before == self.tree or evidence.id in self.held
        return is_own and evidence.code is Side.FINAL

    def record(self, execution: Execution, *, role: str | None, iteration: int, by: By) -> Evidence:
        return self.ledger.record(execution, role=role, iteration=iteration, by=by)


class Damage(Record):
    subject: str
    """The evidence it belongs to, else the file itself."""
    problem: str


def find_damages(folder: Path, happened: Iterable[StoredEvent], task: TaskState) -> Iterator[Damage]:
    """Yield each file that was changed, added or removed since the task wrote it."""
    happened = tuple(happened)
    told = tuple(one.event for one in happened)
    records = [event for event in told if isinstance(event, EvidenceRecorded)]
    for record in records:
        yield from _find_broken(folder, record.evidence, record.files)
    known = {record.evidence for record in records}
    for path in sorted((folder / "evidence").glob("ev-*.json")):
        if path.stem not in known:
            yield Damage(subject=path.stem, problem="no event mentions this record")
    digest = find_report_hash(happened)
    yield from _find_broken(folder, REPORT, {REPORT: digest} if digest else {})
    yield from _find_changed_runs(folder, told)
    if not _shows(folder / STATE, task):
        yield Damage(subject=STATE, problem=f"{STATE} differs from the events")


def _find_changed_runs(folder: Path, told: Iterable[Event]) -> Iterator[Damage]:
    """Yield each run that is not as it was when the task ended; those of a task at work still grow."""
    newest = [event for event in told if isinstance(event, PhaseStarted | RunStarted | TaskEnded)][-1:]
    ends = [event.runs for event in newest if isinstance(event, TaskEnded) and event.runs is not None]
    for runs in ends:
        for path in sorted((folder / "runs").glob("*.jsonl")):
            name = f"runs/{path.name}"
            if path.name not in runs:
                yield Damage(subject=name, problem=f"{name}: no event mentions this run")
            else:
                yield from _find_broken(folder, name, {name: runs[path.name]})


def find_report_hash(happened: Iterable[StoredEvent]) -> str:
    """Return the newest hash that events tell of the report, or nothing."""
    told = [one.event.report for one in happened if isinstance(one.event, TaskEnded | TaskUndone)]
    return next((digest for digest in reversed(told) if digest), "")


def read_outcomes(folder: Path, evidence: Evidence) -> dict[str, TestOutcome]:
    if evidence.tests is None or evidence.tests.ids_file is None:
        return {}
    lines = (folder / evidence.tests.ids_file).read_text("utf-8").split("\n")[:-1]
    pairs = (line.partition(" ") for line in lines)
    return {_unescape(test): TestOutcome(outcome) for outcome, _, test in pairs}


def list_evidence_files(evidence: Evidence) -> tuple[str, ...]:
    """Return the files of a record, as paths in the task folder."""
    names = (f"evidence/{evidence.id}.json", f"evidence/{evidence.id}.out")
    ids = evidence.tests.ids_file if evidence.tests else None
    tries = (each.output for each in evidence.tries)
    others = (name for name in (ids, evidence.reads_file) if name)
    return (*names, *others, *tries)


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _escape(test: str) -> str:
    """Return a test's id on one line, odd characters as Python would escape them."""
    return _ODD.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), test)


def _unescape(line: str) -> str:
    return _ESCAPE.sub(lambda found: found[0].encode("ascii").decode("unicode_escape"), line)


def _find_broken(folder: Path, subject: str, files: dict[str, str]) -> Iterator[Damage]:
    for name, expected in files.items():
        try:
            found = hash_file(folder / name)
        except OSError as error:
            yield Damage(subject=subject, problem=f"{name}: {error.strerror}")
            continue
        if found != expected:
            yield Damage(subject=subject, problem=f"{name} was changed after it was written")


def _shows(path: Path, task: TaskState) -> bool:
    try:
        shown, state = to_builtins(read_task(path)), to_builtins(task)
    except (AgentflowError, OSError, UnicodeDecodeError):
        return False
    return all(shown[key] == state[key] for key in FRONTMATTER_KEYS)
