"""A task folder, read into values; nothing here writes, locks or waits."""

from pathlib import Path

from agentflow.core.events import Stamped, StateChanged
from agentflow.core.evidence import Evidence
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.store.reading import EVIDENCE, events, evidence_of, state_of

OUTPUT_BYTES = 64 * 1024
"""How much of an output is worth showing."""


class Snapshot(Record):
    """All that the files of a task say at one moment."""

    folder: Path
    state: TaskState
    events: tuple[Stamped, ...]
    """What happened; changes of the state are not among them but folded into it."""
    evidence: tuple[Evidence, ...]

    def find(self, evidence_id: str | None) -> Evidence | None:
        """Return the record of an id."""
        return next((one for one in self.evidence if one.id == evidence_id), None)


def load(folder: Path) -> Snapshot:
    """Return what a task folder holds. Raises CorruptState naming the damaged file."""
    all_events = tuple(events(folder))
    happened = tuple(one for one in all_events if not isinstance(one.event, StateChanged))
    return Snapshot(
        folder=folder, state=state_of(folder, all_events), events=happened, evidence=evidence_of(folder)
    )


def output_tail(folder: Path, evidence_id: str) -> str:
    """Return the end of what a command printed, or nothing when it was not kept."""
    path = folder / EVIDENCE / f"{Path(evidence_id).name}.out"
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - OUTPUT_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""  # outputs may be deleted; the record stands without
