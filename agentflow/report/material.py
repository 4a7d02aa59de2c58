"""Material for reports and task prompts beside the state: runs, diff, spending and intent."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from agentflow.core import events
from agentflow.core.evidence import CheckRun, Evidence, Side, select_runs
from agentflow.core.messages import Usage, sum_usage
from agentflow.core.pending import PendingKind
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.task import TaskState
from agentflow.redact import format_count

_GAPS = (PendingKind.QUESTION, PendingKind.PLAN, PendingKind.ESCALATION)


class Material(Record):
    """Runs, diff and settings of a task, for its reports and task prompts."""

    runs: tuple[CheckRun, ...]
    recall: Callable[[tuple[str, ...]], tuple[CheckRun, ...]]
    """Evidence ids to what the checks showed."""
    diff: str
    """From the tree before the task to the tree now."""
    folder: str
    surface: Callable[[], tuple[str, ...]] = tuple
    """Returns what belonged to the checks before the task, in lines."""
    changed: tuple[str, ...] = ()
    roles: Mapping[str, Role] = {}
    """The roles by their part, each with the limits that are left for it."""
    network: tuple[str, ...] = ()

    @property
    def before(self) -> tuple[CheckRun, ...]:
        return select_runs(self.runs, code=Side.BASE, checks=Side.BASE)

    def find(self, evidence_id: str | None) -> Evidence | None:
        found = (run.evidence for run in self.runs if run.evidence)
        return next((each for each in found if each.id == evidence_id), None)


def fence_text(text: str, language: str = "") -> str:
    """Return text in a fence that nothing inside it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def tabulate_markdown(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, noun: str = "row", most: int = 100
) -> str:
    """Return a table in Markdown; a head that ends with a colon is of a column of numbers."""
    rule = ["---:" if head.endswith(":") else "---" for head in heads]
    lines = [[head.rstrip(":") for head in heads], rule, *rows[:most]]
    if len(rows) > most:
        lines.append([format_count(len(rows) - most, f"more {noun}"), *[""] * (len(heads) - 1)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class RoleSpending(Record):
    role: str
    requests: int
    usage: Usage
    seconds: float
    """In which it waited for its model."""


class Spending(Record):
    roles: tuple[RoleSpending, ...]
    seconds: float
    """Of all the processes that worked on it."""
    model: float
    """The seconds of waiting for a model; a lower bound where runs went side by side."""

    @property
    def own(self) -> float:
        """Seconds of agentflow's own work, commands and checks among it."""
        return max(0.0, round(self.seconds - self.model, 3))


def sum_spending(told: Iterable[events.StoredEvent], seconds: float = 0) -> Spending:
    roles, runs, spent = dict[int, str](), dict[str, list[events.Replied | events.Compacted]](), seconds
    waits, waiting, model = dict[int, float](), set[int](), 0.0
    for stamped in told:
        match stamped.event:
            case events.RunStarted(run=run, role=role):
                roles[run] = role
            case events.Asked(run=run):
                waiting.add(run)
            case events.Replied() | events.Compacted(summary="model" | "program") as got:
                runs.setdefault(roles.get(got.run, "?"), []).append(got)
                waits[got.run] = waits.get(got.run, 0) + got.seconds
                waiting.discard(got.run)
            case events.TaskEnded(seconds=float(took)):
                spent += took
            case _:
                pass
        if waits and not waiting:  # of runs that waited at the same time, the longest counts
            model, waits = model + max(waits.values()), {}
    model += max(waits.values(), default=0)
    spending = (
        RoleSpending(
            role=role,
            requests=len(replies),
            usage=sum_usage(
                one.usage for one in replies if isinstance(one, events.Replied) or one.usage.tokens
            ),
            seconds=round(sum(one.seconds for one in replies), 3),
        )
        for role, replies in runs.items()
    )
    return Spending(roles=tuple(spending), seconds=round(spent, 3), model=round(model, 3))


def summarize_intent(task: TaskState, happened: Iterable[events.StoredEvent]) -> events.IntentTold:
    asked = dict[str, tuple[PendingKind, str]]()
    for one in happened:
        match one.event:
            case events.Paused(kind=kind, pending=pending) if kind in _GAPS:
                asked.setdefault(pending, (kind, "asked"))
            case events.Answered(pending=pending, by=by) if pending in asked:
                asked[pending] = (asked[pending][0], f"answered{f' by {by}' if by else ''}")
            case events.Answered(pending=pending, by="default"):
                asked[pending] = (PendingKind.QUESTION, "the default was assumed")
            case _:
                pass
    intent = task.intent
    rows = (row.removeprefix("- ") for row in intent.assumptions.splitlines())
    guesses = [f"assumed: {row}" for row in rows if row.strip()]
    return events.IntentTold(
        goal=intent.goal or task.task,
        constraints=intent.constraints,
        assumptions=intent.assumptions,
        gaps=(*guesses, *(f"{kind} {item}: {end}" for item, (kind, end) in asked.items())),
    )
