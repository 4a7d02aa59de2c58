"""The text of a task from the words of a command line."""

import sys

from agentflow.core.errors import UsageError
from agentflow.core.pending import Consent
from agentflow.core.task import Phase
from agentflow.redact import redacted

MAX_CHARS = 100_000


def text_of(words: list[str], example: str = "agentflow task make the failing tests pass") -> str:
    """Return the text of a task; `-` alone reads it from stdin. Raises UsageError."""
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    text = redacted(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").strip())
    if not text:
        raise UsageError("say what to do", hint=f"for example: {example}")
    if len(text) > MAX_CHARS:
        raise UsageError(f"the text is longer than {MAX_CHARS:,} characters")
    return text


def consent_of(*, yes: bool, no_input: bool) -> Consent:
    """Return what the switches say about questions. Raises UsageError for both."""
    if yes and no_input:
        raise UsageError("--yes and --no-input contradict each other")
    if yes:
        return Consent.YES
    return Consent.NO if no_input else Consent.SUSPEND


def class_named(name: str | None) -> str:
    """Return the class that a person named, or nothing where the words decide. Raises UsageError."""
    from agentflow.routing.classify import CLASSES

    if name is not None and name not in CLASSES:
        raise UsageError(f"unknown class {name!r}", hint=f"classes: {', '.join(CLASSES)}")
    return name or ""


def phase_of(name: str | None) -> Phase | None:
    """Return the phase of a name. Raises UsageError."""
    if name is not None and name not in list(Phase):
        raise UsageError(f"unknown phase {name!r}", hint=f"phases: {', '.join(Phase)}")
    return Phase(name) if name else None
