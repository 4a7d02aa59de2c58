"""What a script said, by exit code and stdout, into an answer of its point."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentflow.core.hook import TERMS, Decision, Hook, HookResult
from agentflow.core.points import Point
from agentflow.core.record import Record
from agentflow.hooks.answers import fields_of, joined, legal_fields
from agentflow.parse import Mismatch, decode_or_none, fit
from agentflow.process import Exchanged
from agentflow.redact import one_line

BLOCK = 2
CANNOT_RUN = (126, 127)
_FIRST_SIGNAL, _LAST_SIGNAL = 128, 160
"""Between them lies what a shell answers when a signal killed its command."""
_TEXT_IS_CONTEXT = frozenset({Point.SESSION_START, Point.USER_PROMPT_SUBMIT})


class Told(Record):
    """What became of asking a hook."""

    result: HookResult | None = None
    trouble: str | None = None
    """What was wrong, if anything."""
    broken: bool = False
    """It could not do its work, so that its silence means nothing."""
    notices: tuple[str, ...] = ()


def told(hook: Hook, said: Exchanged) -> Told:
    """Return what a script's exit code and output mean at its point. Pure."""
    if said.timed_out:
        return Told(trouble="did not end in time", broken=True)
    text = said.stdout.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    heard = _heard(hook, text)
    trouble, broken = _trouble(hook, said, heard)
    fields = _result_fields(hook, said, heard, text)
    return Told(
        result=fit(TERMS[hook.point].result, fields) if fields else None,
        trouble=trouble,
        broken=broken,
        notices=(*heard.notices, *_noise(text)),
    )


class _Heard(Record):
    """What stdout came to as JSON."""

    fields: dict[str, Any] = {}
    problem: str | None = None
    """Why it is JSON that cannot be used."""
    notices: tuple[str, ...] = ()


def _heard(hook: Hook, text: str) -> _Heard:
    if not text.startswith("{"):
        return _Heard()
    found = decode_or_none(text)
    if not isinstance(found, dict):
        return _Heard(problem="printed what begins as JSON and is none")
    try:
        fields, unknown = fields_of(hook, found)
    except Mismatch as error:
        return _Heard(problem=f"answered what does not fit: {error}")
    notices = (f"keys without a meaning here: {', '.join(unknown)}",) if unknown else ()
    return _Heard(fields=fields, notices=notices)


def _result_fields(hook: Hook, said: Exchanged, heard: _Heard, text: str) -> dict[str, Any]:
    """Return what the answer is once the exit code has its say."""
    fields = heard.fields
    if said.exit_code == BLOCK and hook.point is not Point.PERMISSION_REQUEST:
        return fields | _blocking(hook, said, fields)
    plain = said.exit_code == 0 and text and not text.startswith("{")
    if plain and hook.point in _TEXT_IS_CONTEXT:
        return {"context": text}
    return fields


def _blocking(hook: Hook, said: Exchanged, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by which exit code 2 blocks; nothing in JSON undoes it."""
    legal = legal_fields(hook.point)
    stderr = said.stderr.decode("utf-8", "replace").strip()
    if "decision" in legal:
        reason = fields.get("reason") if fields.get("decision") is Decision.DENY else None
        return {"decision": Decision.DENY, "reason": reason or stderr or f"blocked by hook {hook.name}"}
    if "block" in legal:
        return {"block": fields.get("block") or stderr or f"blocked by hook {hook.name}"}
    if "updated_output" in legal:
        return {"context": joined(fields.get("context"), stderr)}
    return {"notice": joined(fields.get("notice"), stderr)}


def _trouble(hook: Hook, said: Exchanged, heard: _Heard) -> tuple[str | None, bool]:
    """Return what is wrong with how a script ended, and whether it could not do its work."""
    code = said.exit_code
    stderr = one_line(said.stderr.decode("utf-8", "replace"))
    blocks = code == BLOCK and hook.point is not Point.PERMISSION_REQUEST
    if said.flooded:
        trouble, broken = "printed more than 64 KiB", True
    elif code is None or _FIRST_SIGNAL < code < _LAST_SIGNAL:
        trouble, broken = "was killed by a signal", True
    elif code in CANNOT_RUN:
        trouble, broken = f"ended with {code}: {stderr or 'the command cannot be run'}", True
    elif heard.problem is not None:
        trouble, broken = heard.problem, not blocks
    elif code == 0 or blocks:
        return None, False
    else:
        trouble, broken = f"ended with {code}: {stderr}".removesuffix(": "), False
    return trouble, broken


def _noise(text: str) -> Iterable[str]:
    if not text.startswith("{") and any(_is_object(line) for line in text.splitlines()):
        yield "it printed text before its JSON, so that all of it is taken as text"


def _is_object(line: str) -> bool:
    return line.lstrip().startswith("{") and isinstance(decode_or_none(line), dict)
