"""What a task used up, role by role, and how long it waited for its models: told by its events."""

from collections.abc import Iterable

from agentflow.core.events import Asked, Compacted, Replied, RunStarted, Stamped, TaskEnded
from agentflow.core.messages import Usage, total
from agentflow.core.record import Record


class RoleSpending(Record):
    """What the runs of one role used; a summary that one of them was asked for is a request too."""

    role: str
    requests: int
    usage: Usage
    seconds: float
    """In which it waited for its model."""


class Spending(Record):
    """What a whole task used."""

    roles: tuple[RoleSpending, ...]
    seconds: float
    """Of all the processes that worked on it."""
    model: float
    """Of these, in which a model was waited for; at least so many where runs went side by side."""

    @property
    def own(self) -> float:
        """Seconds of agentflow's own work, commands and checks among it."""
        return max(0.0, round(self.seconds - self.model, 3))


def spending_of(told: Iterable[Stamped], seconds: float = 0) -> Spending:
    """Return what the events tell; `seconds` are those of a process that has not told its end."""
    roles, runs, spent = dict[int, str](), dict[str, list[Replied | Compacted]](), seconds
    waits, waiting, model = dict[int, float](), set[int](), 0.0
    for stamped in told:
        match stamped.event:
            case RunStarted(run=run, role=role):
                roles[run] = role
            case Asked(run=run):
                waiting.add(run)
            case Replied() | Compacted(summary="model" | "program") as got:
                runs.setdefault(roles.get(got.run, "?"), []).append(got)
                waits[got.run] = waits.get(got.run, 0) + got.seconds
                waiting.discard(got.run)
            case TaskEnded(seconds=float(took)):
                spent += took
            case _:
                pass
        if waits and not waiting:  # of runs that waited at the same time, the longest counts
            model, waits = model + max(waits.values()), {}
    found = tuple(_spending(role, replies) for role, replies in runs.items())
    model += max(waits.values(), default=0)
    return Spending(roles=found, seconds=round(spent, 3), model=round(model, 3))


def _spending(role: str, replies: list[Replied | Compacted]) -> RoleSpending:
    return RoleSpending(
        role=role,
        requests=len(replies),
        usage=total(one.usage for one in replies if isinstance(one, Replied) or one.usage.tokens),
        seconds=round(sum(one.seconds for one in replies), 3),
    )
