"""The state of a task: the frontmatter of `task.md`, and what only the events carry."""

from collections.abc import Mapping
from enum import StrEnum

from agentflow.core.errors import Exit
from agentflow.core.evidence import Check, CheckName, Surface
from agentflow.core.messages import Usage
from agentflow.core.pending import Answer, Budget, Override, Pending
from agentflow.core.record import Record
from agentflow.core.role import Change, Findings, Judgement, Plan, Review
from agentflow.core.verdict import ProbeResult, Verdict

STATE_VERSION = 1


class Phase(StrEnum):
    REFINEMENT = "refinement"
    EXPLORATION = "exploration"
    PLANNING = "planning"
    IMPLEMENTATION = "implementation"
    REVIEW = "review"
    VERIFICATION = "verification"
    COMPLETE = "complete"


class Status(StrEnum):
    RUNNING = "running"
    SUSPENDED = "suspended"
    VERIFIED = "verified"
    VERIFIED_WITH_CAVEAT = "verified_with_caveat"
    ANSWERED = "answered"
    FAILED = "failed"
    LIMIT = "limit"
    BLOCKED = "blocked"
    TAMPERED = "tampered"
    CANCELLED = "cancelled"
    ERROR = "error"


class GateStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Complexity(StrEnum):
    """The class of a task."""

    UNCLASSIFIED = "unclassified"
    TRIVIAL = "trivial"
    """One file at most."""
    EXPLORATORY = "exploratory"
    """Reads the repository and changes nothing."""
    IMPLEMENTATION = "implementation"
    """Two to five files, or an unknown number."""
    COMPLEX = "complex"
    """Six files or more, or a high risk."""
    RESEARCH = "research"
    """Needs what stands outside of the repository, and changes nothing."""


class TodoStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"

    @classmethod
    def _missing_(cls, value: object) -> "TodoStatus | None":
        """Return what another usual word for a status means."""
        word = value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else ""
        return _SPELLINGS.get(word)


_SPELLINGS: Mapping[str, TodoStatus] = {
    **{status.value: status for status in TodoStatus},
    **dict.fromkeys(("todo", "open", "not_started", "planned"), TodoStatus.PENDING),
    **dict.fromkeys(("doing", "active", "started", "inprogress", "current"), TodoStatus.IN_PROGRESS),
    **dict.fromkeys(("done", "complete", "finished"), TodoStatus.COMPLETED),
    **dict.fromkeys(("stuck", "waiting", "on_hold"), TodoStatus.BLOCKED),
}


class Todo(Record):
    id: int
    title: str
    status: TodoStatus
    evidence: str | None = None


class Gate(Record):
    """Where a phase stands, on which tree, and who worked in it."""

    status: GateStatus
    agent: str | None = None
    tree: str | None = None
    timestamp: str | None = None
    message: str = ""


class Intent(Record):
    """What the task asks for; passed to every role word for word."""

    goal: str = ""
    description: str = ""
    actions: str = ""
    constraints: str = ""
    assumptions: str = ""


class RequiredCheck(Record):
    """A check of this task and the evidence it gave; None when it could not run."""

    check: Check
    evidence: str | None = None


class Failure(Record):
    """A failed iteration, as the implementer is told about it."""

    iteration: int
    phase: Phase
    tree: str
    signature: str
    """Equal for equal failures, whatever their timing."""
    reasons: tuple[str, ...]
    evidence: tuple[str, ...]


class Ending(Record):
    """How a task ended."""

    status: Status
    exit_code: Exit
    reason: str


class Undone(Record):
    """That the files were put back as they were before the task."""

    at: str
    kept: tuple[str, ...] = ()
    """Files that differ from before the task and were left as they are: the user's own edits."""


class Excerpt(Record):
    """Lines of a file as a role saw them."""

    path: str
    first: int
    """The number of the first line, from 1."""
    lines: tuple[str, ...]
    is_whole: bool = False
    """These are all lines of the file."""


class Instruction(Record):
    """A file in which the repository says how to work on it."""

    path: str
    text: str
    """Without comments; cut where it is very long."""
    size: int
    """Characters before it was cut."""
    folder: str = ""
    """It counts for files below; empty for all."""
    globs: tuple[str, ...] = ()
    """If any, it counts only for files that one of them names."""


class TaskState(Record):
    """All that is known of a task; the next step is a function of it."""

    task_id: str
    task: str
    started_at: str
    max_iterations: int
    model: str
    version: int = STATE_VERSION
    active: bool = True
    status: Status = Status.RUNNING
    current_phase: Phase = Phase.REFINEMENT
    iteration: int = 1
    task_complexity: Complexity = Complexity.UNCLASSIFIED
    report_requested: bool = False
    intent: Intent = Intent()
    gates: dict[Phase, Gate] = {}
    todos: tuple[Todo, ...] = ()
    pending: tuple[Pending, ...] = ()
    usage: Usage = Usage()
    sandbox: str = "none"
    """How well commands were kept in; the weakest there was."""
    base_tree: str | None = None
    tree: str | None = None
    undone: Undone | None = None

    goes_on_from: str | None = None
    """The newest tree of a phase, from which a task that stopped goes on; `tree` is then of its end."""
    route: str = ""
    steps: tuple[Phase, ...] = ()
    """The phases of the route whose role runs."""
    forced: bool = False
    """A rule for high risk made it complex."""
    review_required: bool = False
    """Its class counts only with a review."""
    wants_review: bool | None = None
    """What the person said of a review, if anything."""
    named_class: str = ""
    """The class as the person named it; empty where the words decide."""
    spares_tokens: bool = False
    """Its model is paid by the token: what is known is neither explored nor told again."""
    sequential: bool = False
    """Review before verification, not beside it."""
    runs: int = 0
    """How many runs there are, those of sub-agents too."""
    counted: tuple[int, ...] = ()
    """The runs whose usage is in `usage`."""
    flagged_findings: tuple[str, ...] = ()
    """Citations of the explorer that no file bears out, as `path:line`."""
    flagged_issues: tuple[str, ...] = ()
    """The same of the reviewer."""
    unseen_findings: tuple[str, ...] = ()
    """Citations of the explorer that exist and were not shown to it, as `path:line`."""
    excerpts: tuple[Excerpt, ...] = ()
    """The short files that the task names, and its failing tests, as they stood before it."""
    cited: tuple[Excerpt, ...] = ()
    """What the explorer cited, as it stood then."""
    surroundings: tuple[str, ...] = ()
    """Where the task began, in lines for every brief."""
    instructions: tuple[Instruction, ...] = ()
    """What the repository said of how to work on it as the task began; a change of it counts next time."""
    focus: str | None = None
    """The folder that a deep exploration is about, empty for all; None for any other task."""
    explored: str = ""
    """The deep exploration of an earlier day, where the person asked to use it."""
    document: str | None = None
    """The file that a reading route wrote, relative to the repository."""
    findings: Findings | None = None
    plan: Plan | None = None
    rejected_plan: Plan | None = None
    """The plan that a person had corrected."""
    change: Change | None = None
    review: Review | None = None
    judgement: Judgement | None = None
    baseline: tuple[RequiredCheck, ...] = ()
    """The required checks on the tree as it was before the task."""
    final: tuple[RequiredCheck, ...] = ()
    """The same on the newest tree that was judged."""
    held: tuple[RequiredCheck, ...] = ()
    """The same on its code under the checks as they stood before the task; empty where those are the same."""
    fresh: tuple[RequiredCheck, ...] = ()
    """Changed tests on the code as it was before the task, where nothing else proves the change."""
    blocked: dict[CheckName, str] = {}
    """Why checks could not run on this machine before the task, whatever the code says."""
    probes: tuple[ProbeResult, ...] | None = None
    """What runs that have to fail came to on that code; None until that is known."""
    audit: str = ""
    """What a tool said of the changed dependencies, or why none was asked; empty where none changed."""
    surface: Surface = Surface()
    """What belongs to the checks, as found before the task."""
    ignored: dict[str, str] = {}
    """What git ignores as it was before the task: paths with marks."""
    hook_files: dict[str, str] = {}
    """The files that only hooks have changed, each with a mark of how they left it."""
    verdict: Verdict | None = None
    failures: tuple[Failure, ...] = ()
    budget: Budget = Budget()
    overrides: tuple[Override, ...] = ()
    known_failures: tuple[str, ...] = ()
    """Tests whose failure does not count."""
    ending: Ending | None = None
    asked: tuple[Phase, ...] = ()
    """The phases in which a person was asked, in this iteration."""
    answers: dict[str, Answer] = {}
    """What was decided, by the id of what was pending."""
    context: str = ""
    """What hooks told every role as the task began."""
    stop_blocks: int = 0
    """How often Stop hooks sent a verified change back."""
    gaps: tuple[str, ...] = ()
    """What the sandbox did not keep in."""
    pause_after: Phase | None = None
    """The phase after which the task waits to be resumed."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the task is about, as far as its roles have said."""
        found = self.findings.findings if self.findings else ()
        planned = (path for step in (self.plan.steps if self.plan else ()) for path in step.files)
        changed = self.change.files if self.change else ()
        return tuple(dict.fromkeys((*(finding.path for finding in found), *planned, *changed)))

    @property
    def reads_only(self) -> bool:
        """Whether its route changes nothing."""
        return bool(self.steps) and Phase.IMPLEMENTATION not in self.steps

    def gate(self, phase: Phase) -> Gate:
        return self.gates.get(phase, Gate(status=GateStatus.PENDING))

    def with_gate(self, phase: Phase, gate: Gate) -> "TaskState":
        return self.replace(gates={**self.gates, phase: gate})


FRONTMATTER_KEYS = (
    "version",
    "task_id",
    "active",
    "status",
    "current_phase",
    "iteration",
    "max_iterations",
    "started_at",
    "task",
    "task_complexity",
    "report_requested",
    "intent",
    "gates",
    "todos",
    "pending",
    "usage",
    "sandbox",
    "model",
    "base_tree",
    "tree",
    "undone",
)
"""The keys of `task.md`, in the order they stand there; all others live in the events only."""
