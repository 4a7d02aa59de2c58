"""The events of a task, as lines of `events.jsonl`; the store adds `seq`, `at` and `task_id`."""

from typing import Any

from agentflow.core.evidence import CheckName, Side, TestCounts
from agentflow.core.messages import Stop, Usage
from agentflow.core.pending import PendingKind
from agentflow.core.record import Record
from agentflow.core.run import CompactionTrigger, RunOutcome, TokenSavings
from agentflow.core.task import Complexity, GateStatus, Phase, Status
from agentflow.core.verdict import ProbeEnd, ProbeKind


class TaskStarted(Record, tag=True):
    task: str
    model: str
    max_iterations: int
    sandbox: str = "none"


class PlanChanged(Record, tag=True):
    """The todos changed; ids only, the todos themselves are in the state."""

    added: tuple[int, ...]
    changed: tuple[int, ...]
    removed: tuple[int, ...]


class StateChanged(Record, tag=True):
    """New values of keys of the task's state; the state is the fold of these, the last one wins."""

    changed: dict[str, Any]


class Classified(Record, tag=True):
    """The class and route of the task, from its words, and again where the plan or the change is larger."""

    complexity: Complexity
    route: str
    score: int  # of ambiguity
    reasons: tuple[str, ...]
    """What decided."""
    steps: tuple[Phase, ...]
    hints: tuple[str, ...] = ()
    """Words that hint at another class."""
    ambiguities: tuple[str, ...] = ()


class GatesMerged(Record, tag=True):
    """The combined result of the phases that judge one tree."""

    group: str
    phases: tuple[Phase, ...]
    all_passed: bool
    failed_phases: tuple[Phase, ...]
    summary: str


class StepMerged(Record, tag=True):
    """The change of one plan step was merged into the files, except for its conflicts."""

    step: int
    """Its number in the plan."""
    title: str
    run: int
    files: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    """Files that another step changed as well; this step runs again."""


class ProvingStarted(Record, tag=True):
    """The implementer is given the places of a passing change that no test notices."""

    round: int  # from 1
    rounds: int
    places: tuple[str, ...]


class IntentTold(Record, tag=True):
    """The program's understanding of the task; `gaps` lists what was assumed or asked."""

    goal: str
    constraints: str
    assumptions: str
    gaps: tuple[str, ...]


class PhaseStarted(Record, tag=True):
    phase: Phase
    iteration: int


class PhaseEnded(Record, tag=True):
    phase: Phase
    iteration: int
    status: GateStatus
    message: str  # markdown, one line or a list
    seconds: float


class RunStarted(Record, tag=True):
    run: int
    role: str
    agent: str
    model: str
    iteration: int
    angle: str = ""  # where several look at once


class Asked(Record, tag=True):
    run: int
    turn: int


class Retried(Record, tag=True):
    """A request got no turn and will be sent again."""

    run: int
    attempt: int  # of the failed try, from 1
    reason: str
    seconds: float  # before the next try
    model: str = ""  # the id that is asked from now on, where a tier's list goes on to its next one


class Searched(Record, tag=True):
    """The progress of the built-in repair engine's search."""

    run: int
    tried: int
    total: int  # as far as it is known by now
    seconds_left: float
    best: str  # the edit that came nearest so far


class RepairTried(Record, tag=True):
    """The built-in repair engine searched before a model was asked."""

    found: bool  # one repair, which is made and judged
    account: str
    seconds: float


class MemoryRecalled(Record, tag=True):
    """The task was given so many entries of the memory."""

    learnings: int
    tasks: int
    messages: int


class Replied(Record, tag=True):
    run: int
    turn: int
    text: str
    """What the model said beside its calls, shortened."""
    calls: int
    stop: Stop
    usage: Usage
    seconds: float


class ToolStarted(Record, tag=True):
    run: int
    call_id: str
    tool: str
    subject: str
    """What it is about, on one line: a path, a pattern, a command."""
    turn: int = 0


class ToolFinished(Record, tag=True):
    run: int
    call_id: str
    tool: str
    is_error: bool
    summary: str
    """The first line of the result; empty for a file that was read and for a submission."""
    seconds: float
    turn: int = 0


class ToolBlocked(Record, tag=True):
    """A call the role may not make."""

    run: int
    call_id: str
    tool: str
    role: str
    owner: str | None
    """The role that has the tool."""
    reason: str


class Delegated(Record, tag=True):
    """A role gives work to a sub-agent, whose run is `child`."""

    run: int
    call_id: str
    child: int
    agent: str
    description: str


class HandedOff(Record, tag=True):
    """Another role goes on with the conversation."""

    run: int
    source: str
    to: str
    reason: str


class Compacted(Record, tag=True):
    """A run's history was shortened; the entry in the run's file holds the new history."""

    run: int
    turn: int
    trigger: CompactionTrigger
    archived: tuple[str, ...]  # calls whose results are read again by RecallOutput
    shortened: tuple[str, ...]  # calls whose long arguments went
    replaced: int  # messages in whose place a summary stands
    from_tokens: int  # of the next request, estimated
    to_tokens: int
    summary: str  # `model`, `program` where the model gave none, or empty
    usage: Usage  # of the summary
    seconds: float


class EvidenceRecorded(Record, tag=True):
    evidence: str
    check: CheckName | None
    command: str
    exit_code: int | None
    tree: str | None
    summary: str
    seconds: float
    failing: int = 0  # of its tests
    tests: TestCounts | None = None
    timed_out: bool = False
    is_flaky: bool = False
    files: dict[str, str] = {}  # by path in the task folder, the hash of what each holds
    surface: Side = Side.FINAL
    code: Side = Side.FINAL


class CheckStarted(Record, tag=True):
    check: CheckName
    command: str
    surface: Side = Side.FINAL
    code: Side = Side.FINAL


class TestRunsLong(Record, tag=True):
    __test__ = False

    check: CheckName
    test: str  # empty once another runs
    seconds: float
    surface: Side = Side.FINAL
    code: Side = Side.FINAL


class Probing(Record, tag=True):
    """So many of the runs that have to fail are over; with all of them over, none goes on."""

    done: int
    total: int  # as far as it is known by now


class Probed(Record, tag=True):
    kind: ProbeKind
    check: CheckName
    end: ProbeEnd
    seconds: float
    subjects: tuple[str, ...] = ()
    code: Side = Side.FINAL


class RunEnded(Record, tag=True):
    run: int
    role: str
    outcome: RunOutcome
    turns: int
    tool_calls: int
    usage: Usage
    seconds: float
    saved: TokenSavings | None = None
    """The tokens that a direct answer saved; they are not part of the usage."""


class Warned(Record, tag=True):
    message: str


class Signalled(Record, tag=True):
    """A hook rings the terminal's bell, or sets its title; only a terminal is shown it."""

    sequence: str


class Paused(Record, tag=True):
    """The task waits for a person."""

    pending: str
    kind: PendingKind
    tool: str | None


class Answered(Record, tag=True):
    """A person, or a rule in their place, decided."""

    pending: str
    approved: bool
    by: str
    left: int = 0
    """How many people more have to approve it."""


class PersonSaid(Record, tag=True):
    """A role received a person's message while it worked."""

    run: int
    turn: int
    """The number of turns of the run."""
    text: str


class HandEdited(Record, tag=True):
    """A person edited `task.md`; the edit changes the intent or is kept as a note."""

    part: str
    """`intent` or `body`."""
    text: str
    """The whole body that the person wrote, or the changed keys of the intent."""


class TaskEnded(Record, tag=True):
    status: Status
    exit_code: int
    reason: str
    seconds: float | None = None  # of this process; None where it was ended from outside
    report: str = ""  # its hash
    runs: dict[str, str] | None = None  # by name, the hash of each run's file


class TaskUndone(Record, tag=True):
    """The files were put back as they were before the task."""

    restored: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    was: Status
    report: str = ""  # the hash of the report that tells of the undo


Event = (
    TaskStarted
    | StateChanged
    | Classified
    | PersonSaid
    | GatesMerged
    | StepMerged
    | ProvingStarted
    | IntentTold
    | PlanChanged
    | PhaseStarted
    | PhaseEnded
    | RunStarted
    | Asked
    | Retried
    | Searched
    | RepairTried
    | MemoryRecalled
    | Replied
    | ToolStarted
    | ToolFinished
    | ToolBlocked
    | Delegated
    | HandedOff
    | Compacted
    | EvidenceRecorded
    | CheckStarted
    | TestRunsLong
    | Probing
    | Probed
    | RunEnded
    | Warned
    | Signalled
    | Paused
    | Answered
    | HandEdited
    | TaskEnded
    | TaskUndone
)


class StoredEvent(Record):
    """An event as it stands in the file."""

    seq: int
    at: str
    event: Event
    parent: int | None = None  # the run that started the sub-agent of this event
