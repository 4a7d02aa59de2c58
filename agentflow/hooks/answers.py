"""The JSON that a script may answer, into the fields of its point's result."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

import msgspec

from agentflow.core.hook import LEGAL, Decision, Hook, HookResult
from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit

_DECISIONS: Mapping[str, Decision] = {
    "approve": Decision.ALLOW,
    "allow": Decision.ALLOW,
    "ask": Decision.ASK,
    "defer": Decision.ASK,
    "deny": Decision.DENY,
    "block": Decision.DENY,
}
PUBLIC = ("initialUserMessage", "reloadSkills", "retry", "sessionTitle", "updatedMCPToolOutput", "watchPaths")
"""Public keys that have no meaning here."""
Word = Literal["approve", "allow", "ask", "defer", "deny", "block"]
R = TypeVar("R", bound=Record)


class Permit(Record):
    """The `decision` of a PermissionRequest."""

    behavior: Literal["allow", "deny"]
    updatedInput: dict[str, Any] | None = None  # noqa: N815  # the public name, as are all below
    updatedPermissions: Any = None  # noqa: N815
    message: str | None = None
    interrupt: bool = False


class Specific(Record):
    """The `hookSpecificOutput` of an answer."""

    hookEventName: str  # noqa: N815
    permissionDecision: Word | None = None  # noqa: N815
    permissionDecisionReason: str | None = None  # noqa: N815
    updatedInput: dict[str, Any] | None = None  # noqa: N815
    updatedToolOutput: str | None = None  # noqa: N815
    additionalContext: str | None = None  # noqa: N815
    decision: Permit | None = None


class Answer(Record):
    """A JSON answer: the public keys, and the short spellings of ours."""

    proceed: bool | None = msgspec.field(name="continue", default=None)
    stopReason: str | None = None  # noqa: N815
    systemMessage: str | None = None  # noqa: N815
    suppressOutput: bool | None = None  # noqa: N815
    terminalSequence: str | None = None  # noqa: N815
    decision: Word | None = None
    reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None
    bail: bool | None = None
    result: str | None = None
    """What a sub-agent is taken to have answered, with `bail`."""
    hookSpecificOutput: dict[str, Any] | None = None  # noqa: N815


def result_of(hook: Hook, found: dict[str, Any]) -> tuple[HookResult, tuple[str, ...]]:
    """Return an answer as the result of its point, and the keys without a meaning.

    Raises Mismatch for a field that is not legal at the point, or not of its type.
    """
    unknown: list[str] = []
    fields = _fields(hook, _known(Answer, found, unknown), unknown)
    for name in sorted(fields.keys() - LEGAL[hook.point]):
        raise Mismatch(name, f"has no place at {hook.point}")
    return HookResult(**fields), tuple(unknown)


def joined(first: str | None, second: str | None) -> str | None:
    """Return two texts as one, or None if there is none."""
    return "\n".join(part for part in (first, second) if part) or None


def _known(kind: type[R], found: dict[str, Any], unknown: list[str]) -> R:
    """Return an object with the keys that have a meaning; the others are noted."""
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in found.keys() - {*names, *PUBLIC}:
        if meant := get_close_matches(key, names, 1, cutoff=0.85):
            raise Mismatch(key, f"is unknown; did it mean {meant[0]}?")
    unknown.extend(key for key in found if key not in names)
    return fit(kind, {key: value for key, value in found.items() if key in names})


def _fields(hook: Hook, answer: Answer, unknown: list[str]) -> dict[str, Any]:
    """Return an answer as fields of results, legal here or not."""
    specific = Specific(hookEventName=hook.point)
    if answer.hookSpecificOutput is not None:
        specific = _known(Specific, answer.hookSpecificOutput, unknown)
        if specific.hookEventName != hook.point:
            raise Mismatch("hookSpecificOutput.hookEventName", f"must be {hook.point}")
    judged = (
        {"bail": answer.result or answer.reason or ""}
        if answer.bail
        else _judgement(hook, *_decision(answer, specific))
    )
    added = joined(answer.additional_context, specific.additionalContext)
    permitted = specific.decision.updatedInput if specific.decision else None
    inputs = (specific.updatedInput, permitted, answer.updated_input)
    fields = judged | {
        "context": joined(judged.get("context"), added),
        "halt": _halt(hook, answer, specific.decision),
        "notice": answer.systemMessage,
        "updated_input": next((given for given in inputs if given is not None), None),  # it may be empty
        "updated_output": specific.updatedToolOutput,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _halt(hook: Hook, answer: Answer, permit: Permit | None) -> str | None:
    if answer.proceed is False:
        return answer.stopReason or f"hook {hook.name} ended the task"
    if permit and permit.interrupt:
        return permit.message or f"hook {hook.name} ended the task"
    return None


def _decision(answer: Answer, specific: Specific) -> tuple[str | None, str | None]:
    """Return decision and reason; the special form beats the short one."""
    if specific.decision:
        return specific.decision.behavior, specific.decision.message
    if specific.permissionDecision:
        return specific.permissionDecision, specific.permissionDecisionReason or answer.reason
    return answer.decision, answer.reason


def _judgement(hook: Hook, word: str | None, reason: str | None) -> dict[str, Any]:
    """Return a decision in the fields of its point."""
    if word is None:
        return {}
    decision, legal = _DECISIONS[word], LEGAL[hook.point]
    denies = decision is Decision.DENY
    if "decision" not in legal and decision is Decision.ALLOW:
        return {}
    if denies and "updated_output" in legal:
        return {"context": reason}
    if denies and "block" in legal:
        return {"block": reason or f"blocked by hook {hook.name}"}
    return {"decision": decision, "reason": reason}
