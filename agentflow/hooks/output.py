"""What a script said, by exit code and stdout, into an answer of its point."""

from typing import Any

from agentflow.core.evidence import Exchanged
from agentflow.core.hook import LEGAL, Decision, Hook, HookResult, Point
from agentflow.core.record import Record
from agentflow.hooks.answers import joined, result_of
from agentflow.parse import Mismatch, decode_or_none
from agentflow.redact import one_line

BLOCK = 2
CANNOT_RUN = (126, 127)
_FIRST_SIGNAL, _LAST_SIGNAL = 128, 160
"""Between them lies what a shell answers when a signal killed its command."""
_LATE = "it printed text before its JSON, so that all of it is taken as text"
_TEXT_IS_CONTEXT = frozenset({Point.SESSION_START, Point.USER_PROMPT_SUBMIT})


class Told(Record):
    """What became of asking a hook."""

    result: HookResult = HookResult()
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
    try:
        (result, notices), problem = _heard(hook, text), None
    except Mismatch as error:
        result, notices, problem = HookResult(), (), str(error)
    trouble, broken = _trouble(hook, said, problem)
    return Told(result=_concluded(hook, said, result, text), trouble=trouble, broken=broken, notices=notices)


def _heard(hook: Hook, text: str) -> tuple[HookResult, tuple[str, ...]]:
    """Return what stdout says, and what is to be told of it. Raises Mismatch for JSON that cannot be used."""
    if not text.startswith("{"):
        objects = (line for line in text.splitlines() if line.lstrip().startswith("{"))
        is_late = any(isinstance(decode_or_none(line), dict) for line in objects)
        return HookResult(), (_LATE,) if is_late else ()
    found = decode_or_none(text)
    if not isinstance(found, dict):
        raise Mismatch("", "printed what begins as JSON and is none")
    try:
        result, unknown = result_of(hook, found)
    except Mismatch as error:
        raise Mismatch("", f"answered what does not fit: {error}") from None
    return result, (f"keys without a meaning here: {', '.join(unknown)}",) if unknown else ()


def _concluded(hook: Hook, said: Exchanged, result: HookResult, text: str) -> HookResult:
    """Return what the answer is once the exit code has its say."""
    if _blocks(hook, said):
        return result.replace(**_blocking(hook, said, result))
    is_plain = said.exit_code == 0 and text and not text.startswith("{")
    return result.replace(context=text) if is_plain and hook.point in _TEXT_IS_CONTEXT else result


def _blocks(hook: Hook, said: Exchanged) -> bool:
    return said.exit_code == BLOCK and hook.point is not Point.PERMISSION_REQUEST


def _blocking(hook: Hook, said: Exchanged, result: HookResult) -> dict[str, Any]:
    """Return the fields by which exit code 2 blocks; nothing in JSON undoes it."""
    legal = LEGAL[hook.point]
    stderr = said.stderr.decode("utf-8", "replace").strip()
    if "decision" in legal:
        reason = result.reason if result.decision is Decision.DENY else None
        return {"decision": Decision.DENY, "reason": reason or stderr or f"blocked by hook {hook.name}"}
    if "block" in legal:
        return {"block": result.block or stderr or f"blocked by hook {hook.name}"}
    if "updated_output" in legal:
        return {"context": joined(result.context, stderr)}
    return {"notice": joined(result.notice, stderr)}


def _trouble(hook: Hook, said: Exchanged, problem: str | None) -> tuple[str | None, bool]:
    """Return what is wrong with how a script ended, and whether it could not do its work."""
    code = said.exit_code
    stderr = one_line(said.stderr.decode("utf-8", "replace"))
    blocks = _blocks(hook, said)
    if said.flooded:
        return "printed more than 64 KiB", True
    if code is None or _FIRST_SIGNAL < code < _LAST_SIGNAL:
        return "was killed by a signal", True
    if code in CANNOT_RUN:
        return f"ended with {code}: {stderr or 'the command cannot be run'}", True
    if problem is not None:
        return problem, not blocks
    failed = f"ended with {code}: {stderr}".removesuffix(": ")
    return (None if code == 0 or blocks else failed), False
