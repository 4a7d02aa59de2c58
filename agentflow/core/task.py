"""The state of a task: the frontmatter of `task.md`, and what only the events carry."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self

from msgspec import UNSET, UnsetType

from agentflow.core.errors import Exit
from agentflow.core.evidence import Check, CheckName, Surface
from agentflow.core.finding import Finding
from agentflow.core.messages import Usage
from agentflow.core.pending import Answer, ApprovalTerms, Budget, Override, Pending
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import (
    ONE_AT_A_TIME,
    Change,
    Findings,
    FirstTry,
    Judgement,
    JudgeTest,
    MaybeParallel,
    ParallelWork,
    Plan,
    Review,
    Todo,
)
from agentflow.core.verdict import MutantResult, ProbeResult, Verdict

STATE_VERSION = 2


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
    """Several files, at most five of them product, or an unknown number."""
    COMPLEX = "complex"
    """Six product files or more, or a high risk."""
    RESEARCH = "research"
    """Needs what stands outside of the repository, and changes nothing."""


class Gate(Record):
    """The status of a phase, its tree, and the role that worked in it."""

    status: GateStatus
    agent: str | None = None
    tree: str | None = None
    timestamp: str | None = None
    message: str = ""


class Intent(Record):
    """The request of a task; passed to every role word for word."""

    goal: str = ""
    description: str = ""
    actions: str = ""
    constraints: str = ""
    assumptions: str = ""


class RequiredCheck(Record):
    """A required check of this task and the id of its evidence, None where it could not run."""

    check: Check
    evidence: str | None = None


class Failure(Record):
    """A failed iteration, as the implementer's next task prompt describes it."""

    iteration: int
    phase: Phase
    tree: str
    signature: str
    """Equal for equal failures, whatever their timing."""
    reasons: tuple[Finding, ...]
    evidence: tuple[str, ...]
    tests: tuple[JudgeTest, ...] = ()
    """Those of the verifier that it stands by."""


class ChecksBeside(Record, omit_defaults=True):
    """The checks before a task, and the search for a repair behind them, run beside its first role."""

    phase: Phase
    """That of the role, whose task prompt does not say what they show."""
    is_search: bool = False
    """The result of the checks was there before; only the search was not over."""
    is_settled: bool = False
    """Their result is in the state."""
    told: int | None = None
    """The turns of the role before the request that told it."""


class Ending(Record):
    """The end of a task."""

    status: Status
    exit_code: Exit
    reason: str


class UndoMark(Record):
    """The time when the files were restored to their state before the task."""

    at: str
    kept: tuple[str, ...] = ()
    """The user's own edits, which were left as they are."""


class Excerpt(Record):
    """Lines of a file as a role saw them."""

    path: str
    first: int
    """The number of the first line, from 1."""
    lines: tuple[str, ...]
    is_whole: bool = False
    """These are all lines of the file."""


class Instruction(Record):
    """A file of the repository with instructions for working on it."""

    path: str
    text: str
    """Without comments; cut where it is very long."""
    size: int
    """Characters before it was cut."""
    folder: str = ""
    """The folder that it is about; empty for the whole repository."""
    globs: tuple[str, ...] = ()
    """The files that it is about; empty for all in its folder."""


class Invocation(Record):
    """The command that a task was called by."""

    typed: str
    """The line that the person typed; the command turned it into the task's text."""
    file: str
    tools: tuple[str, ...] | None = None
    """The tools that it leaves to every role; None for all."""
    model: str | None = None
    """The model of every role, or None where the command names none."""
    purpose: str = ""
    """What its file says that it is for, with the words behind its name; the task's class comes from it."""


class TaskMessage(Record):
    """A person's message during the task, and where in the task a role received it."""

    text: str
    phase: Phase
    iteration: int


class Recalled(Record):
    """A part of the memory that a task was given, and why."""

    kind: str
    text: str
    origin: str
    """When, by whom, and what shows it."""
    why: str
    id: int

    @property
    def line(self) -> str:
        return f"{self.kind} ({self.origin}): {self.text}"


class JudgesChoice(Record):
    """Whether judges are asked about the newest change, and the facts that decided it."""

    asked: bool
    why: tuple[str, ...]

    def describe(self) -> str:
        return f"{'judges were asked' if self.asked else 'no judge was asked'}: {', '.join(self.why)}"


class StandingChange(Record):
    """A change that passed before its proving round, as it was judged."""

    iteration: int
    run: int
    """The newest run by then."""
    tree: str
    task_complexity: Complexity
    forced: bool
    review_required: bool
    steps: tuple[Phase, ...]
    gates: dict[Phase, Gate]
    change: Change | None
    review: Review | None
    judgement: Judgement | None
    flagged_issues: tuple[str, ...]
    final: tuple[RequiredCheck, ...]
    held: tuple[RequiredCheck, ...]
    fresh: tuple[RequiredCheck, ...]
    unable: tuple[CheckName, ...]
    probes: tuple[ProbeResult, ...] | None
    mutants: tuple[MutantResult, ...]
    memorised: tuple[Finding, ...]
    audit: str
    surface: Surface
    verdict: Verdict
    judges: JudgesChoice | None = None

    @property
    def state(self) -> dict[str, Any]:
        """The values that a task takes back with it."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "run"}


class RequestOptions(Record):
    """How a task is to be done, as it was asked for; only taking it over changes it."""

    asked_by: str = ""
    """What else than the person gave the task its words, such as a client of the MCP server."""
    remembers: bool = False
    """Whether it leaves something for later tasks, and is given what earlier ones left."""
    invoked: Invocation | None = None
    """The command that it was called by, if any."""
    named_class: str = ""
    """The class as the person named it; empty where the words decide."""
    wants_plan: bool = False
    """Explorer and planner work before the implementer, whatever the class."""
    plan_mode: bool = False
    """The planner looks for itself, and nothing changes before a person agrees to its plan."""
    wants_review: bool | None = None
    """The person's own choice about a review, if any."""
    always_judged: bool = False
    """Judges are asked about each change, however sure the program is."""
    sequential: bool = False
    """Review before verification, not beside it."""
    focus: str | None = None
    """The folder that a deep exploration is about, empty for all; None for any other task."""
    explored: str = ""
    """An earlier deep exploration that the person asked to use."""
    pause_after: Phase | None = None
    """The phase after which the task waits to be resumed."""
    budget: Budget = Budget()
    overrides: tuple[Override, ...] = ()
    known_failures: tuple[str, ...] = ()
    """Tests whose failure does not count."""
    terms: ApprovalTerms = ApprovalTerms()
    """What an approval requires, as the user's settings said when the task began."""
    prove_rounds: int = 0
    """How often the implementer is given the places that no test notices."""
    repair_seconds: float = 0
    """The seconds that the built-in repair engine may search beside the task's model; 0 where it does not."""
    spares_tokens: bool = False
    """Its model is paid by the token, so nothing that is known is explored or sent again."""


class SessionPlace(Record):
    """The place of a task among the earlier ones of its session, and what a person said to it."""

    follows: str | None = None
    """The task of the same session before this one; both are judged from the tree before the first."""
    start_tree: str | None = None
    """The tree that a follow-up began with; None where that is `base_tree`."""
    earlier: str = ""
    """The earlier tasks of the session and their results, for every task prompt."""
    continues: str | None = None
    """The task of the same session whose conversation goes on in the first run of this one."""
    left_tree: str | None = None
    """The tree that this task ended with."""
    since: str = ""
    """What happened since its conversation ended, one line each."""
    said: tuple[TaskMessage, ...] = ()
    """The messages of a person that a role has received."""
    goes_on_from: str | None = None
    """The tree from which a stopped task continues; `tree` is the one it ended with."""


class Knowledge(Record):
    """What every prompt of a task quotes, as it was found when the task began."""

    recalled: tuple[Recalled, ...] = ()
    """What it was given of the memory."""
    excerpts: tuple[Excerpt, ...] = ()
    """The short files that the task names, and its failing tests, as they stood before it."""
    cited: tuple[Excerpt, ...] = ()
    """The lines that the explorer cited, as they were then."""
    surroundings: tuple[str, ...] = ()
    """Where the task began, as lines for every task prompt."""
    repo_map: str = ""
    """The definitions and callers of what the task names, and a map of the repository; empty for none."""
    instructions: tuple[Instruction, ...] = ()
    """The repository's instructions as the task began; changes count from the next task on."""
    context: str = ""
    """Text that hooks added to every task prompt as the task began."""


class TaskRoute(Record):
    """The way of a task through the phases; `routing/` decides it."""

    route: str = ""
    steps: tuple[Phase, ...] = ()
    """The phases of the route whose role runs."""
    forced: bool = False
    """A rule for high risk made it complex."""
    review_required: bool = False
    """Its class requires a review."""


class Answers(Record):
    """What a person was asked and decided."""

    asked: tuple[Phase, ...] = ()
    """The phases in which a person was asked, in this iteration."""
    answers: dict[str, Answer] = {}
    """The decisions, by the id of the pending item."""
    stop_blocks: int = 0
    """The number of times that Stop hooks sent a verified change back."""


PARTS: Mapping[str, type[Record]] = {
    "options": RequestOptions,
    "session": SessionPlace,
    "known": Knowledge,
    "routing": TaskRoute,
    "waiting": Answers,
}
_PART_OF = {key: part for part, kind in PARTS.items() for key in kind.__struct_fields__}


class TaskState(Record):
    """Everything known about a task; the next step is a function of it.

    Its keys have one name each, whatever part they are in: on disk, and to `replace`, they lie side by side.
    """

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
    """The weakest sandbox level that commands ran at."""
    base_tree: str | None = None
    tree: str | None = None
    undone: UndoMark | None = None
    options: RequestOptions = RequestOptions()
    session: SessionPlace = SessionPlace()
    known: Knowledge = Knowledge()
    routing: TaskRoute = TaskRoute()
    waiting: Answers = Answers()
    first_try: FirstTry | None = None
    """What the built-in repair engine found before the first request; None where it did not search."""
    runs: int = 0
    """The number of runs, those of sub-agents too."""
    counted: tuple[int, ...] = ()
    """The runs whose usage is in `usage`."""
    flagged_findings: tuple[str, ...] = ()
    """Citations of the explorer that no file confirms, as `path:line`."""
    flagged_issues: tuple[str, ...] = ()
    """Citations of the reviewer that no file confirms, as `path:line`."""
    unseen_findings: tuple[str, ...] = ()
    """Citations of the explorer that exist but that it never saw, as `path:line`."""
    document: str | None = None
    """The file that a reading route wrote, relative to the repository."""
    findings: Findings | None = None
    plan: Plan | None = None
    rejected_plan: Plan | None = None
    """The plan that a person asked to correct."""
    change: Change | None = None
    review: Review | None = None
    judgement: Judgement | None = None
    baseline: tuple[RequiredCheck, ...] = ()
    """The required checks on the tree as it was before the task."""
    final: tuple[RequiredCheck, ...] = ()
    """The required checks on the newest judged tree."""
    held: tuple[RequiredCheck, ...] = ()
    """The same code under the checks from before the task; empty where the checks are unchanged."""
    fresh: tuple[RequiredCheck, ...] = ()
    """Changed tests on the code as it was before the task, where nothing else proves the change."""
    blocked: dict[CheckName, str] = {}
    """Why checks cannot run on this machine, by check."""
    unable: tuple[CheckName, ...] = ()
    """The checks of `blocked` that cannot run on the change for the same reason."""
    foreign_errors: tuple[str, ...] = ()
    """The import errors by which tests failed before the task and which no change of the code mends."""
    probes: tuple[ProbeResult, ...] | None = None
    """The results of the probes on the newest judged tree; None until they are known."""
    mutants: tuple[MutantResult, ...] = ()
    """The mutants of the change on that tree, each with what the tests make of it."""
    memorised: tuple[Finding, ...] = ()
    """The places of that tree that are right for the tests' own inputs alone."""
    audit: str = ""
    """The output of an audit tool on changed dependencies, or why there is none; empty without changes."""
    surface: Surface = Surface()
    """The paths that belong to the checks, as found before the task."""
    ignored: dict[str, str] = {}
    """Ignored files from before the task, each with a fingerprint."""
    hook_files: dict[str, str] = {}
    """The files that only hooks have changed, each with a fingerprint."""
    judges: JudgesChoice | None = None
    """None until it is known."""
    judge_tests: tuple[JudgeTest, ...] = ()
    """Tests that the verifier wrote about the newest change; none of them is in its files."""
    verdict: Verdict | None = None
    failures: tuple[Failure, ...] = ()
    proving: int = 0
    """The number of proving rounds that have begun."""
    stands: StandingChange | None = None
    """The change before the newest of them, which a round that fails does not lose."""
    ending: Ending | None = None
    gaps: tuple[str, ...] = ()
    """What the sandbox does not isolate on this machine."""
    parallel: MaybeParallel = ONE_AT_A_TIME
    beside: ChecksBeside | UnsetType = UNSET

    def replace(self, **changes: Any) -> Self:
        for key in [key for key in changes if key in _PART_OF]:
            part = _PART_OF[key]
            changes[part] = changes.get(part, getattr(self, part)).replace(**{key: changes.pop(key)})
        return super().replace(**changes)

    def get_values(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of those keys that a state has, in whatever part they are."""
        places = {key: getattr(self, _PART_OF[key]) if key in _PART_OF else self for key in keys}
        return {key: getattr(place, key) for key, place in places.items() if hasattr(place, key)}

    def to_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = to_builtins(self)
        return fields | {key: value for part in PARTS for key, value in fields.pop(part).items()}

    @property
    def title(self) -> str:
        """The words by which people know the task: what was typed, not what a command made of it."""
        return self.options.invoked.typed if self.options.invoked else self.task

    @property
    def decisions(self) -> list[dict[str, Any]]:
        return [{"id": name, **to_builtins(answer)} for name, answer in self.waiting.answers.items()]

    @property
    def trees(self) -> tuple[str, str]:
        """The trees from before the task and of now, once both are recorded."""
        assert self.base_tree is not None
        assert self.tree is not None
        return self.base_tree, self.tree

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the task is about, as far as its roles have said."""
        found = self.findings.findings if self.findings else ()
        planned = (path for step in (self.plan.steps if self.plan else ()) for path in step.files)
        changed = self.change.files if self.change else ()
        return tuple(dict.fromkeys((*(finding.path for finding in found), *planned, *changed)))

    @property
    def is_first_try(self) -> bool:
        """Return whether the change is a repair that was found without a request."""
        found = self.first_try
        return (
            found is not None
            and self.iteration == found.iteration
            and bool(found.edits)
            and not found.refused
        )

    @property
    def is_found(self) -> bool:
        """Return whether the built-in repair engine found the change, with or without a model beside it."""
        return self.model == "repair" or self.is_first_try

    @property
    def is_proving(self) -> bool:
        """Return whether the implementer works, or its change is judged, in a proving round."""
        return self.stands is not None and self.stands.iteration == self.iteration

    @property
    def asks_verifier(self) -> bool:
        """Return whether the verifier may be asked; the program alone judges a small repair found before."""
        is_small = self.is_first_try and self.task_complexity is not Complexity.COMPLEX
        return Phase.VERIFICATION in self.routing.steps and not is_small and self.model != "repair"

    @property
    def reads_only(self) -> bool:
        return bool(self.routing.steps) and Phase.IMPLEMENTATION not in self.routing.steps

    @property
    def is_stalled(self) -> bool:
        """Return whether the last failure repeats the one before it, on the same tree."""
        phases = {failure.phase for failure in self.failures[-1:]}
        same = [(one.tree, one.signature) for one in self.failures if one.phase in phases]
        return len(same) > 1 and same[-1] == same[-2]

    @property
    def parallel_work(self) -> ParallelWork | None:
        """The progress of its steps, or None for a task with one implementer at a time."""
        return self.parallel if isinstance(self.parallel, ParallelWork) else None

    def get_gate(self, phase: Phase) -> Gate:
        return self.gates.get(phase, Gate(status=GateStatus.PENDING))

    def with_gate(self, phase: Phase, gate: Gate) -> "TaskState":
        return self.replace(gates={**self.gates, phase: gate})


FRONTMATTER_KEYS = (
    *("version", "task_id", "active", "status", "current_phase", "iteration", "max_iterations", "started_at"),
    *("task", "task_complexity", "report_requested", "intent", "gates", "todos", "pending", "usage"),
    *("sandbox", "model", "base_tree", "tree", "undone"),
)
"""The keys of `task.md`, in the order they stand there; all others live in the events only."""


def gather_parts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored fields of a state with those of each part together."""
    gathered = {key: value for key, value in fields.items() if key not in _PART_OF}
    for part, kind in PARTS.items():
        gathered[part] = {key: fields[key] for key in kind.__struct_fields__ if key in fields}
    return gathered
