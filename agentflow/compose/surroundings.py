"""Where one run of an agent takes place: what it is given and does not choose."""

from collections.abc import Mapping
from pathlib import Path

from agentflow.core.pending import Consent
from agentflow.core.ports import Journal, Ledger, Runner, Workspace
from agentflow.core.record import Record
from agentflow.core.task import Phase


class Surroundings(Record):
    """The task's folder and files around one run, and its number in the task."""

    workspace: Workspace
    runner: Runner
    ledger: Ledger
    journal: Journal
    outputs: Path
    task_id: str
    number: int
    """Of the run within the task, from 1."""
    iteration: int
    phase: Phase
    transcript: Path
    """The file of the run."""
    consent: Consent
    """What is done at once about a call that would wait for a person."""
    interrupted: bool
    """Somebody was already asked in this phase, and is not asked again."""
    owners: Mapping[str, str]
    """Every known tool's name, to the role that has it."""
