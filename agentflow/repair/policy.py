"""The built-in repair engine as a model: which tasks it takes, and how a repair that was found is made."""

import re
from collections.abc import Sequence
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Reply, Request, Speaker, Stop, Text, ToolCall, ToolResult, Usage
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import Change, FirstTry
from agentflow.core.verdict import PLAUSIBLE
from agentflow.repair.target import ADVICE

REFUSAL = "The built-in repair engine can only fix Python code with failing tests."
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


class Repair(Record):
    """The model of one run: it makes a repair that was found before."""

    found: FirstTry | None = None
    name: str = "repair"

    def explain_refusal(self, task: str) -> str | None:
        """Return why a task of this text is not one for the engine, or None."""
        words = _WORD.findall(task.lower())
        first = next((word for word in words if not _POLITE.fullmatch(word)), "")
        text = " ".join(words)
        if _BUILDING.fullmatch(first):
            return None if _GOAL.search(text) else REFUSAL
        return None if _MENDING.search(text) and not _READING.fullmatch(first) else REFUSAL

    async def complete(self, request: Request) -> Reply:
        """Read what is to be edited, edit it, submit; each turn follows from the ones before it."""
        found, edited = (
            self.found,
            any(call.name == "Edit" for each in request.messages for call in each.calls),
        )
        if found is None:
            raise ModelRejected(f"repair does not play {request.role}", hint=ADVICE)
        results = [
            part for message in request.messages for part in message.parts if isinstance(part, ToolResult)
        ]
        for result in results:
            if result.is_error:
                said = result.content.splitlines()[0]
                raise ModelRejected(f"a tool refused the edit: {said}", hint=ADVICE)
        if edited and found.files:
            change = Change(summary=f"{found.account}; {PLAUSIBLE}", files=found.files, rivals=found.rivals)
            return _reply_with(request, [("SubmitChange", to_builtins(change))])
        if edited:
            raise ModelRejected(found.account)
        if request.force:
            raise ModelRejected("the repair was not made", hint=ADVICE)
        if not results:
            files = dict.fromkeys(edit.file_path for edit in found.edits)
            return _reply_with(request, [("Read", {"file_path": path}) for path in files])
        return _reply_with(request, [("Edit", to_builtins(edit)) for edit in found.edits], found.account)


def _reply_with(request: Request, calls: Sequence[tuple[str, dict[str, Any]]], said: str = "") -> Reply:
    turn = sum(message.speaker is Speaker.ASSISTANT for message in request.messages)
    asked = (
        ToolCall(id=f"r{request.run}-{turn}-{number}", name=name, input=given)
        for number, (name, given) in enumerate(calls)
    )
    text = (Text(text=said),) if said else ()
    return Reply(parts=(*text, *asked), stop=Stop.TOOL_USE, usage=Usage(cost_usd=0.0), model="repair")
