"""AskUserQuestion and Escalate; a person gives the result, so their functions are never called."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from agentflow.core.errors import ToolError
from agentflow.core.pending import OWN_WORDS, PendingKind
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext


class Option(Record):
    label: Annotated[str, Meta(min_length=1)]
    description: str = ""


class Question(Record):
    question: Annotated[str, Meta(min_length=1)]
    options: Annotated[
        tuple[Option, ...], Meta(min_length=2, max_length=12, description="The first is the default.")
    ]
    header: Annotated[str, Meta(extra_json_schema={"deprecated": True})] = ""
    multiSelect: Annotated[bool, Meta(extra_json_schema={"deprecated": True})] = False  # noqa: N815
    """Public keys; a person may answer with words of their own anyway."""


class AskInput(Record):
    questions: Annotated[tuple[Question, ...], Meta(min_length=1, max_length=4)]

    @property
    def choices(self) -> tuple[str, ...]:
        """The options of the only question; those of several stand with each."""
        return tuple(option.label for option in self.questions[0].options) if len(self.questions) == 1 else ()


class Escalation(Record):
    assumption: Annotated[str, Meta(min_length=1)]
    contradiction: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(min_length=1)]
    line: Annotated[int, Meta(ge=1)]
    options: Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=2, max_length=2)]
    """A and B: what to assume instead."""
    recommended: Literal["A", "B"] = "A"

    @property
    def choices(self) -> tuple[str, ...]:
        return (*self.options, f"something else, {OWN_WORDS}")


def ask(wanted: AskInput, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Ask the user, once; the answer is the result."""
    raise ToolError("nobody answered")


def escalate(wanted: Escalation, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Ask the user which of two holds where code contradicts an assumption; your work then begins again."""
    raise ToolError("nobody answered")


ASK = Tool(
    name="AskUserQuestion", category=Category.ASK, effect=Effect.WRITE, input=AskInput, call=ask, subjects={}
)
ESCALATE = Tool(
    name="Escalate",
    category=Category.ASK,
    effect=Effect.WRITE,
    input=Escalation,
    call=escalate,
    subjects={"path": Subject.TEXT},  # the file is named to a person, not opened
)
KINDS: Mapping[type[Record], PendingKind] = {
    AskInput: PendingKind.QUESTION,
    Escalation: PendingKind.ESCALATION,
}
"""What waits, by the input of the tool that asks; a call of any other tool waits for approval."""
