"""The text of a task from the words of a command line."""

import difflib
import inspect
import sys
from collections.abc import Callable, Iterator

from typer.models import OptionInfo

from agentflow.core.errors import UsageError
from agentflow.core.pending import Consent
from agentflow.core.task import Phase
from agentflow.redact import redacted

LATER = ("--no-memory",)
"""Options that the published command has and this version does not."""
MAX_CHARS = 100_000


def text_of(words: list[str]) -> str:
    """Return the text of a task; `-` alone reads it from stdin. Raises UsageError."""
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    text = redacted(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").strip())
    if not text:
        raise UsageError(
            "say what is to be done", hint="for example: agentflow task make the failing tests pass"
        )
    if len(text) > MAX_CHARS:
        raise UsageError(f"the text is longer than {MAX_CHARS:,} characters")
    return text


def refuse_options(words: list[str], command: Callable[..., int]) -> None:
    """Refuse a word that was meant as an option of a command; any other may stand in the text."""
    literal = len(sys.argv) - sys.argv.index("--") - 1 if "--" in sys.argv else 0
    for word in words[: len(words) - literal] if len(words) > 1 else ():
        _refuse_option(word, command)


def consent_of(*, yes: bool, no_input: bool) -> Consent:
    """Return what the switches say about questions. Raises UsageError for both."""
    if yes and no_input:
        raise UsageError("--yes and --no-input contradict each other")
    if yes:
        return Consent.YES
    return Consent.NO if no_input else Consent.SUSPEND


def phase_of(name: str | None) -> Phase | None:
    """Return the phase of a name. Raises UsageError."""
    if name is not None and name not in list(Phase):
        raise UsageError(f"unknown phase {name!r}", hint=f"phases: {', '.join(Phase)}")
    return Phase(name) if name else None


def _refuse_option(word: str, command: Callable[..., int]) -> None:
    option = word.split("=", maxsplit=1)[0]
    if option in LATER:
        raise UsageError(f"{option} is not in this version")
    if not option.startswith("--"):
        return
    if near := difflib.get_close_matches(option, (*_options(command), *LATER), n=1, cutoff=0.8):
        raise UsageError(
            f"unknown option {option}; did you mean {near[0]}?",
            hint=f"if {option} belongs to the text, put -- before the text or quote the whole of it",
        )


def _options(command: Callable[..., int]) -> Iterator[str]:
    """Yield the options that a command declares."""
    for parameter in inspect.signature(command).parameters.values():
        if isinstance(parameter.default, OptionInfo):
            for declared in parameter.default.param_decls or ():
                yield from declared.split("/")
    yield "--help"
