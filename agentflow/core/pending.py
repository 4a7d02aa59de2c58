"""What waits for a person, and what the person said."""

from enum import StrEnum
from typing import Any

from agentflow.core.record import Record


class PendingKind(StrEnum):
    APPROVAL = "approval"
    QUESTION = "question"
    PLAN = "plan"
    ESCALATION = "escalation"
    SURFACE = "surface"


class Pending(Record):
    """Something a person has to decide before the task goes on."""

    id: str
    kind: PendingKind
    tool: str | None
    input: dict[str, Any]
    options: tuple[str, ...]
    asked_at: str
    expires_at: str | None = None

    def decided_by(self, task_id: str) -> str:
        """Return the command with which a person decides."""
        if self.kind is PendingKind.APPROVAL:
            return f"agentflow approve {self.id}, or agentflow deny {self.id} --reason R"
        choices = " | ".join(self.options)
        return f"agentflow answer {task_id} CHOICE{f'  ({choices})' if choices else ''}"


class Answer(Record):
    """What a person decided about something pending."""

    approved: bool
    text: str = ""
    """The reason of a denial, the choice or text of an answer."""
    input: dict[str, Any] | None = None
    """The input that the call is to be made with, where the person changed it."""
    by: str = ""
    comment: str = ""
    at: str = ""


class Consent(StrEnum):
    """What is done at once about something that would wait for a person."""

    SUSPEND = "suspend"
    YES = "yes"
    """Take defaults and approve what a rule asks about."""
    NO = "no"
    """Take defaults and deny approvals."""


def decided_now(consent: Consent, pending: Pending) -> Answer | None:
    """Return the decision that needs no person, or None when somebody has to be asked."""
    if consent is Consent.SUSPEND:
        return None
    if pending.kind is PendingKind.APPROVAL:
        is_yes = consent is Consent.YES
        return Answer(approved=is_yes, text="" if is_yes else "nobody was asked", by=f"consent {consent}")
    default = pending.options[0] if pending.options else "the first option of each question"
    return Answer(approved=True, text=default, by="default")
