"""A model's reply as a run keeps it: calls under ids of our own, no secrets."""

from collections.abc import Iterator
from itertools import count

from agentflow.core.events import Event, ToolFinished, ToolStarted
from agentflow.core.messages import Reply, ReplyPart, Served, Stop, Text, Thought, ToolCall
from agentflow.loop.agent import Agent
from agentflow.loop.arguments import submission_in, writable
from agentflow.redact import redacted, redacted_values

_WITHHELD = "its input held a secret, which is not kept, and the run was interrupted: make the call again"


def adopted(agent: Agent, turn: int, reply: Reply) -> Reply:
    """Return a reply as the run keeps it: calls under ids of our own, a submission in prose as a call.

    Ids name files and pair calls with results, so they are not left to the model.
    """
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    if calls or reply.stop is Stop.PAUSED:
        return reply.replace(parts=_renamed(reply.parts, f"c{agent.around.number}-{turn}"))
    text = "\n".join(part.text for part in reply.parts if isinstance(part, Text))
    found = submission_in(text, agent.submit.input) if agent.submit else None
    if agent.submit is None or found is None:
        return reply
    call = ToolCall(id=f"c{agent.around.number}-{turn}-1", name=agent.submit.name, input=found)
    return reply.replace(parts=(*reply.parts, call))


def kept(agent: Agent, reply: Reply) -> Reply:
    """Return a reply without the secrets in it; the inputs of its calls stay at hand until they are made."""
    return reply.replace(parts=tuple(clean for part in reply.parts for clean in _clean(agent, part)))


def _clean(agent: Agent, part: ReplyPart) -> tuple[ReplyPart, ...]:
    match part:
        case Text():
            cited = tuple(redacted_values(one) for one in part.citations)
            return (Text(text=redacted(writable(part.text)), citations=cited),)
        case Served():  # one without the other is refused, so neither is left out
            return (part.replace(block=redacted_values(part.block)),)
        case Thought():  # a provider takes its own block back unchanged, or not at all
            return (part,) if redacted_values(part.block) == part.block else ()
        case ToolCall():
            given = redacted_values(part.input)
            if given == part.input:
                return (part,)
            if part.problem is None:
                agent.withheld[part.id] = part.input
            return (part.replace(input=given, problem=part.problem or _WITHHELD),)


def served(run: int, turn: int, reply: Reply) -> Iterator[Event]:
    """Yield what is told of the calls that the provider made itself."""
    for part in reply.parts:
        if isinstance(part, Served) and part.is_result:
            yield ToolFinished(
                run=run,
                turn=turn,
                call_id=part.call_id,
                tool=part.tool,
                is_error=part.is_error,
                summary=part.said,
                seconds=0,
            )
        elif isinstance(part, Served):
            yield ToolStarted(run=run, turn=turn, call_id=part.call_id, tool=part.tool, subject=part.said)


def _renamed(parts: tuple[ReplyPart, ...], prefix: str) -> tuple[ReplyPart, ...]:
    numbers = count(1)
    return tuple(
        part.replace(id=f"{prefix}-{next(numbers)}", input=writable(part.input))
        if isinstance(part, ToolCall)
        else part
        for part in parts
    )
