"""Remember: a fact for later tasks in this repository, with the command that showed it."""

from agentflow.core.errors import InvalidInput
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext

MOST_CHARS = 400


class Lesson(Record):
    text: str
    evidence: str


def remember(wanted: Lesson, context: ToolContext) -> Output:
    """Keep a fact for later tasks, with its evidence id."""
    if not 0 < len(wanted.text.strip()) <= MOST_CHARS:
        raise InvalidInput(f"text: one fact in at most {MOST_CHARS} characters")
    if context.ledger.find(wanted.evidence) is None:
        raise InvalidInput(f"unknown evidence {wanted.evidence}: cite a command of this task, as ev-0003")
    return Output(content="kept for later tasks")


REMEMBER = Tool(
    name="Remember",
    category=Category.STATE,
    effect=Effect.WRITE,
    input=Lesson,
    call=remember,
    subjects={"text": Subject.TEXT},
)
