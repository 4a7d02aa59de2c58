"""The results of a batch's tasks: one record each, and all of them as JUnit XML."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentflow.checks.interchange import JunitCase, JunitSuite, write_junit
from agentflow.core.errors import Exit
from agentflow.core.evidence import TestOutcome
from agentflow.core.messages import Usage
from agentflow.core.record import Record, encode
from agentflow.core.task import Status
from agentflow.frontmatter import write_atomic
from agentflow.parse import decode

RESULT = "result.json"
_LOST = "lost.json"
_FINE = (Exit.VERIFIED, Exit.CAVEAT)


class HiddenResult(Record):
    resolved: bool
    reason: str


class BatchResult(Record):
    id: str
    status: Status
    exit_code: int
    reason: str
    group: str = ""
    repository: str = ""
    commit: str = ""
    task_id: str | None = None
    task_complexity: str = ""
    model: str = ""
    caveats: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0
    hidden: HiddenResult | None = None
    folder: str = ""
    """Where its patch and its record are."""

    @property
    def is_settled(self) -> bool:
        """Return whether the task ran to an end, so that going on with the batch does not touch it."""
        is_waiting = self.status in (Status.SUSPENDED, Status.CANCELLED, Status.RUNNING)
        return self.task_id is not None and not is_waiting


def read_result(folder: Path) -> BatchResult | None:
    """Return the result in a task's folder, or None where there is none yet. Raises InvalidFile."""
    place = folder / RESULT
    return decode(BatchResult, place.read_bytes(), str(place)) if place.is_file() else None


def save_result(folder: Path, result: BatchResult) -> None:
    """Write a result so that a crash leaves the whole of it or nothing."""
    write_atomic(folder / RESULT, encode(result) + b"\n", mode=0o644)


def read_lost(folder: Path) -> Usage:
    """Return the possible usage of attempts at a task that left no result. Raises InvalidFile."""
    place = folder / _LOST
    return decode(Usage, place.read_bytes(), str(place)) if place.is_file() else Usage()


def save_lost(folder: Path, used: Usage) -> None:
    if used.tokens or used.cost_usd:
        write_atomic(folder / _LOST, encode(used) + b"\n", mode=0o644)
    else:
        (folder / _LOST).unlink(missing_ok=True)


def add_lost(folder: Path, used: Usage) -> None:
    """Add the usage of one more lost attempt at a task; an unknown cost counts as none."""
    before = read_lost(folder)
    cost = (before.cost_usd or 0) + (used.cost_usd or 0)
    save_lost(folder, Usage(input=before.tokens + used.tokens, cost_usd=cost))


def choose_batch_exit(results: Sequence[BatchResult], *, missing: bool, over: bool) -> Exit:
    """Return 0 only where every task is verified; `over` says that the budget left some out."""
    if over:
        return Exit.LIMIT
    bad = {result.exit_code for result in results} - {*_FINE}
    if bad or missing:
        return Exit(bad.pop()) if len(bad) == 1 and not missing else Exit.NOT_VERIFIED
    return Exit.CAVEAT if any(result.exit_code == Exit.CAVEAT for result in results) else Exit.VERIFIED


def count_statuses(results: Iterable[BatchResult]) -> dict[Status, int]:
    counted = Counter(result.status for result in results)
    return {status: counted[status] for status in Status if counted[status]}


def to_junit(results: Iterable[BatchResult], missing: Iterable[str]) -> str:
    cases = [
        JunitCase(
            owner=result.group or "batch",
            name=result.id,
            outcome=TestOutcome.PASSED if result.exit_code in _FINE else TestOutcome.FAILED,
            message=f"{result.status}: {result.reason}",
            seconds=result.seconds,
        )
        for result in results
    ]
    cases += (
        JunitCase(owner="batch", name=name, outcome=TestOutcome.SKIPPED, message="not done")
        for name in missing
    )
    seconds = sum(case.seconds for case in cases)
    return write_junit("agentflow batch", [JunitSuite(name="batch", cases=tuple(cases), seconds=seconds)])
