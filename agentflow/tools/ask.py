"""AskUserQuestion; a person gives the result, so its function is never called."""

from typing import Annotated

from msgspec import Meta

from agentflow.core.errors import ToolError
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext


class Option(Record):
    label: Annotated[str, Meta(min_length=1, description="A possible answer, in a few words.")]
    description: str = ""


class Question(Record):
    question: Annotated[str, Meta(min_length=1, description="What you need to know.")]
    options: Annotated[
        tuple[Option, ...], Meta(min_length=2, max_length=12, description="The first one is the default.")
    ]
    header: str = ""
    multiSelect: bool = False  # noqa: N815  # a public key


class AskInput(Record):
    questions: Annotated[tuple[Question, ...], Meta(min_length=1, max_length=4)]

    @property
    def choices(self) -> tuple[str, ...]:
        """The options of the first question; with several, the answer is free text."""
        return tuple(option.label for option in self.questions[0].options) if len(self.questions) == 1 else ()


def ask(wanted: AskInput, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Ask the user up to four questions with options; the answer is the result."""
    raise ToolError("nobody answered")


ASK = Tool(name="AskUserQuestion", category=Category.ASK, effect=Effect.WRITE, input=AskInput, call=ask)
