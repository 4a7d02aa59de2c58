"""Whether a task is one for the embedded model, by its words alone."""

import re

REFUSAL = "the built-in repair engine only fixes Python code with failing tests"
_WORD = re.compile(r"[a-z][a-z'-]*")
_POLITE = re.compile(r"please|can|could|would|you|kindly|now|just|let's|us|we|i|want|need|to")
_READING = re.compile(
    r"explain|describe|show|list|where|what|which|who|why|how|when|does|do|is|are|summari[sz]e|review"
    r"|find|search|tell|count|compare|document"
)
_BUILDING = re.compile(
    r"add|write|implement|create|build|introduce|refactor|rename|update|upgrade|change|replace|remove|delete"
    r"|move|extract|rewrite|convert|migrate|port|design|improve|optimi[sz]e|speed|clean|format|translate|bump"
    r"|extend|support|install|configure|generate|release|deploy"
)
_MENDING = re.compile(
    r"\b(fix(es|ed|ing)?|repair\w*|mend\w*|debug\w*|heal|fail(s|ed|ing|ure|ures)?|broken|breaks?|bugs?|red"
    r"|regress\w*|crash\w*|traceback|exception|off.by.one|wrong|incorrect|green)\b|\bpass(es)?\b"
)
_GOAL = re.compile(r"\b(tests?|checks?|suite)\b.*\b(pass(es)?|succeeds?|green)\b")


def refusal_of(task: str) -> str | None:
    """Return why a task of this text is not one for the embedded model, or None."""
    words = _WORD.findall(task.lower())
    first = next((word for word in words if not _POLITE.fullmatch(word)), "")
    text = " ".join(words)
    if _BUILDING.fullmatch(first):
        return None if _GOAL.search(text) else REFUSAL
    return None if _MENDING.search(text) and not _READING.fullmatch(first) else REFUSAL
