"""Roles: the content of a role file, the submissions of the five roles, the order of a plan, and todos."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import combinations, product
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from agentflow.core.record import Record

INHERIT = "inherit"
"""The model name of a sub-agent that uses its parent's model."""
HANDOFF = "handoff_to_"
"""The prefix of a handoff tool's name, before the role it hands over to."""


class ToolRule(Record):
    """One entry of a role's `tools`: a tool, or a tool with a pattern on its main input."""

    tool: str
    pattern: str | None = None
    source: str = ""
    """The file it was read from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The pattern as a list of names, as in `Agent(scout, judge)`."""
        return tuple((self.pattern or "").replace(",", " ").split())

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


class Limits(Record):
    """Bounds of one run."""

    turns: Annotated[int, Meta(ge=1)] = 25
    tool_calls: Annotated[int, Meta(ge=0)] = 10
    tokens: Annotated[int, Meta(ge=1)] | None = None
    """Sent and received, also those read from a cache."""
    seconds: Annotated[float, Meta(gt=0)] | None = None
    """Of the model and the tools together."""
    cost: Annotated[float, Meta(gt=0)] | None = None
    """In USD; not enforced for a model without a known price."""


class Role(Record):
    """A role, ready to be run as an agent."""

    name: str
    description: str
    model: str
    """A tier (`deep`, `fast`), an alias of one (`opus`, `sonnet`, `haiku`) or a full model id."""
    tools: tuple[ToolRule, ...]
    prompt: str
    source: str
    """The file it was read from."""
    origin: str
    """`bundled`, `user` or `project`."""
    part: str | None = None
    """The pipeline role this file plays, if any."""
    skills: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    """Tools that it never has, even from a capability."""
    inherits: bool = False
    """It lists no tools and has those of its caller."""
    limits: Limits = Limits()
    lines: dict[str, int] = {}
    """Where the keys stand in the file."""
    write_paths: tuple[str, ...] = ()
    """The globs that it may write; empty means the whole repository."""
    direct: tuple[str, ...] = ()
    """Sub-agents whose answer is the answer of the run."""
    concatenates: bool = False
    """Several direct answers of one turn are joined, one after the other."""

    @property
    def handoffs(self) -> tuple[str, ...]:
        listed = (rule.tool for rule in self.tools)
        return tuple(name.removeprefix(HANDOFF) for name in listed if name.startswith(HANDOFF))

    def place(self, key: str) -> str:
        line = self.lines.get(key)
        return self.source if line is None else f"{self.source}:{line}"

    def list_rules(self, tool: str) -> tuple[ToolRule, ...]:
        return tuple(rule for rule in self.tools if rule.tool == tool)

    def list_rules_in(self, tool: str, category: str) -> tuple[ToolRule, ...]:
        return (*self.list_rules(tool), *self.list_rules(category))


class Citation(Record):
    claim: Annotated[str, Meta(description="What is true of the code.")]
    path: Annotated[str, Meta(description="File, relative to the repository.")]
    line: Annotated[int, Meta(ge=1, description="Line that shows it, from 1.")]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class Findings(Record):
    """What the explorer found."""

    summary: Annotated[str, Meta(min_length=1)]
    findings: tuple[Citation, ...]
    open_questions: tuple[str, ...]


class PlanStep(Record, omit_defaults=True):
    title: Annotated[str, Meta(min_length=1)]
    files: tuple[str, ...]
    after: Annotated[
        tuple[Annotated[int, Meta(ge=1)], ...] | None, Meta(extra_json_schema={"deprecated": True})
    ] = None
    """The numbers of the earlier steps that it builds on; None for all of them."""


class Plan(Record):
    """What the planner wants done."""

    summary: Annotated[str, Meta(min_length=1)]
    steps: tuple[PlanStep, ...]
    acceptance: Annotated[tuple[str, ...], Meta(description="Checks that must hold afterwards.")]
    risks: tuple[str, ...]


class Equivalence(Record):
    """A claim of the implementer: no test can tell a place from code that is otherwise."""

    place: Annotated[str, Meta(min_length=1)]
    why: Annotated[str, Meta(min_length=1)]


class Change(Record, omit_defaults=True):
    """The implementer's own account of its change; the program looks at the files instead."""

    summary: Annotated[str, Meta(min_length=1)]
    files: tuple[str, ...]
    rivals: Annotated[tuple[str, ...], Meta(extra_json_schema={"deprecated": True})] = ()
    """Other edits that the built-in repair engine found: they pass the same tests and behave differently."""
    equivalent: Annotated[tuple[Equivalence, ...], Meta(extra_json_schema={"deprecated": True})] = ()
    """What the prompt of a proving round asks for; nobody checks it."""


class ReviewVerdict(StrEnum):
    APPROVED = "APPROVED"
    NEEDS_CHANGES = "NEEDS_CHANGES"


class Severity(StrEnum):
    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class Issue(Record):
    severity: Severity
    kind: str
    path: str
    line: Annotated[int, Meta(ge=1)]
    message: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def describe(self) -> str:
        """Return the issue as the implementer is told it, in the reviewer's own words."""
        return f"{self.severity} {self.place}: {self.kind}: {self.message}"


class Review(Record):
    """What the reviewer thinks of the change."""

    verdict: ReviewVerdict
    issues: tuple[Issue, ...]


class Claim(StrEnum):
    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    ENVIRONMENT_BLOCKED = "ENVIRONMENT_BLOCKED"


class Judgement(Record):
    """The verifier's opinion; it can lower the program's verdict, never raise it."""

    verdict: Claim
    evidence: Annotated[tuple[str, ...], Meta(description="Ids of evidence records, such as ev-0007.")]
    reasons: tuple[str, ...]


class JudgeTest(Record):
    """A test file that the verifier wrote, and what it showed on the change."""

    path: str
    text: str
    failing: tuple[str, ...]
    """Its tests that fail, or its path where they have no names."""
    said: str = ""
    """What is said of their failures."""


AnySubmission = Findings | Plan | Change | Review | Judgement


class Replacement(Record):
    """The input of one Edit call."""

    file_path: str
    old_string: str
    new_string: str
    replace_all: bool = False


class FirstTry(Record):
    """The result of the built-in repair engine, before a model is asked or in place of one."""

    account: str
    """What the search found, or how near it came."""
    edits: tuple[Replacement, ...] = ()
    """The one repair that was found; empty where there was none, or a choice among several."""
    files: tuple[str, ...] = ()
    """The files that it changes; none where the edits only take an earlier one back."""
    rivals: tuple[str, ...] = ()
    """Other edits that pass the same tests and behave differently."""
    iteration: int = 1
    """The iteration that it is for."""
    refused: str = ""
    """Why that repair could not be made."""


class StepResult(Record):
    """A finished step whose change is in the files."""

    step: int
    """Its number in the plan."""
    run: int
    change: Change


class ParallelWork(Record):
    """The progress of a plan whose steps several implementers carry out at the same time."""

    at_once: int
    """The most implementers."""
    base: str | None = None
    """The tree that the running implementers began with; None while none runs."""
    again: int | None = None
    """The step that runs again because another step changed the same files."""
    results: tuple[StepResult, ...] = ()
    """The finished steps, in the order in which they were merged."""

    @property
    def done(self) -> frozenset[int]:
        return frozenset(result.step for result in self.results)


MaybeParallel = ParallelWork | UnsetType
ONE_AT_A_TIME = UNSET
"""The value of a task without the option; its saved state then has no such key."""


def describe_results(work: ParallelWork | None) -> str:
    """Return the finished steps as a list for the implementer of the other steps."""
    if work is None or not work.results:
        return ""
    lines = [f"- step {each.step}: {each.change.summary}" for each in work.results]
    return "\n".join(("## Done already, to be left as it is", *lines))


def list_waves(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the step numbers in groups; the steps of one group do not depend on each other.

    A step that does not declare what it builds on builds on all before it, and so does one of which no file
    is known or whose files an earlier one touches.
    """
    needed = _find_needed(plan)
    ranks: dict[int, int] = {}
    for number in needed:
        ranks[number] = 1 + max((ranks[each] for each in needed[number]), default=-1)
    last = max(ranks.values(), default=-1)
    return tuple(tuple(number for number, rank in ranks.items() if rank == wave) for wave in range(last + 1))


def find_overlaps(plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield pairs of steps that are declared independent although both touch one file."""
    needed = {number: set(_declare(number, step)) for number, step in enumerate(plan.steps, 1)}
    for number, found in needed.items():
        found.update(*(needed[each] for each in tuple(found)))
        for earlier in range(1, number):
            pair = plan.steps[earlier - 1], plan.steps[number - 1]
            if earlier not in found and pair[0].files and pair[1].files and _may_touch(*pair):
                yield earlier, number


def _find_needed(plan: Plan) -> dict[int, set[int]]:
    needed = {number: set(_declare(number, step)) for number, step in enumerate(plan.steps, 1)}
    for (first, one), (second, other) in combinations(enumerate(plan.steps, 1), 2):
        if _may_touch(one, other):
            needed[second].add(first)
    return needed


def _declare(number: int, step: PlanStep) -> Iterator[int]:
    """Yield the earlier steps that a step builds on; all if it names none or names a later one."""
    earlier = range(1, number)
    is_told = step.after is not None and all(each < number for each in step.after)
    return iter(step.after or ()) if is_told else iter(earlier)


def _may_touch(one: PlanStep, other: PlanStep) -> bool:
    """Return whether two steps may change the same file; a folder stands for all that it holds."""
    if not one.files or not other.files:
        return True
    return any(_holds(*pair) or _holds(*reversed(pair)) for pair in product(one.files, other.files))


def _holds(folder: str, path: str) -> bool:
    folder, path = (each.removeprefix("./").rstrip("/") for each in (folder, path))
    return f"{path}/".startswith(f"{folder}/")


class TodoStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"

    @classmethod
    def _missing_(cls, value: object) -> "TodoStatus | None":
        """Return the status that another usual word means."""
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
