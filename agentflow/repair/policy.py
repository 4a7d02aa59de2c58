"""The embedded model: from a role and what it was told to its next reply, with no hidden state."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio

from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Reply, Request, Speaker, Stop, Text, ToolCall, ToolResult, Usage
from agentflow.core.record import Record, encode
from agentflow.core.submissions import (
    Change,
    Claim,
    Finding,
    Findings,
    Judgement,
    Plan,
    PlanStep,
    Review,
    ReviewVerdict,
)
from agentflow.parse import decode
from agentflow.repair.brief import Brief, read_brief
from agentflow.repair.case import Case
from agentflow.repair.scope import refusal_of
from agentflow.repair.target import ADVICE, record_of
from agentflow.sandbox.run import Sandbox

LABEL = "plausible: it passes these checks"
NOTHING = "no candidate makes the failing tests pass"
_READ_FILES = 3
_SHOWN = 8
"""Findings and plan steps at most."""


class Repair:
    """A deterministic program-repair engine that plays every role."""

    name = "repair"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: dict[object, Any] = {}

    def refusal(self, task: str) -> str | None:
        return refusal_of(task)

    async def complete(self, request: Request) -> Reply:
        stop = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(_tell, stop)
            answer = await anyio.to_thread.run_sync(self._answer, request, stop)
            group.cancel_scope.cancel()
        if isinstance(answer, ModelRejected):
            raise answer
        return answer

    def _answer(self, request: Request, stop: threading.Event) -> Reply | ModelRejected:
        try:
            return self._reply(request, stop)
        except ModelRejected as error:
            return error

    def _reply(self, request: Request, stop: threading.Event) -> Reply:
        told = (message.text for message in request.messages if message.speaker is Speaker.USER)
        brief = read_brief(next(told, ""))
        open_case = partial(Case, self._sandbox, brief, stop.is_set, self._known)
        submit = next((tool.name for tool in request.tools if tool.name.startswith("Submit")), "")
        match submit:
            case "SubmitFindings":
                return _explore(request, open_case())
            case "SubmitPlan":
                result: Record = _plan(open_case())
            case "SubmitChange":
                return _implement(request, open_case)
            case "SubmitReview":
                result = _review(brief)
            case "SubmitVerdict":
                result = _verdict(brief)
            case _:
                raise ModelRejected(
                    f"repair does not play {request.role}: it has nothing to submit with", hint=ADVICE
                )
        return _calls(request, [_call(submit, result)])


async def _tell(stop: threading.Event) -> None:
    """Let the work in the thread know once nobody waits for it any more."""
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


Call = tuple[str, dict[str, Any]]


def _explore(request: Request, case: Case) -> Reply:
    """Open the most suspicious files, then say which lines are."""
    places = case.places[:_SHOWN]
    if not _turn(request) and not request.force and places:
        files = list(dict.fromkeys(place.path for place in places))[:_READ_FILES]
        return _calls(request, [("Read", {"file_path": path}) for path in files])
    findings = tuple(Finding(claim=place.claim, path=place.path, line=place.line) for place in places)
    count = len(case.target.failing)
    summary = f"suspicious lines: {len(case.places)}; failing tests that execute them: {count}"
    result = Findings(summary=summary, findings=findings, open_questions=())
    return _calls(request, [_call("SubmitFindings", result)])


def _plan(case: Case) -> Plan:
    edits, root = case.candidates, case.sources.root
    return Plan(
        summary=f"try {len(edits)} single edits in order, in throw-away copies; make the first that passes",
        steps=tuple(PlanStep(title=edit.title, files=(edit.path,)) for edit in edits[:_SHOWN]),
        acceptance=(
            *(f"{test} passes" for test in case.target.failing),
            *(f"{shown.name}: {record_of(root, shown).command}" for shown in case.brief.before),
        ),
        risks=(f"an edit found by search is {LABEL}",),
    )


def _implement(request: Request, open_case: Callable[[], Case]) -> Reply:
    """Read what is to be edited, edit it, submit; each turn follows from the ones before it."""
    _refuse_errors(request)
    if _turn(request) >= 2 or request.force:
        return _submit_change(request)
    case = open_case()
    searched = case.searched
    edits = case.edits(searched.winner)
    said = NOTHING if searched.winner is None else searched.winner.title
    said = f"{said} ({searched.note})" if searched.note else said
    if not edits:
        raise ModelRejected(said, hint=ADVICE)
    if not _turn(request):
        files = dict.fromkeys(edit.file_path for edit in edits)
        return _calls(request, [("Read", {"file_path": path}) for path in files])
    return _calls(request, [_call("Edit", edit) for edit in edits], said)


def _submit_change(request: Request) -> Reply:
    """Submit what the edits of this run made, or give up once an earlier attempt is taken back."""
    edits = [message for message in request.messages if any(call.name == "Edit" for call in message.calls)]
    if not edits or edits[-1].text.startswith(NOTHING):
        raise ModelRejected(edits[-1].text if edits else NOTHING, hint=ADVICE)
    title = edits[-1].text
    path = title.partition(":")[0]
    return _calls(request, [_call("SubmitChange", Change(summary=f"{title}; {LABEL}", files=(path,)))])


def _review(brief: Brief) -> Review:
    is_green = bool(brief.after) and all(shown.is_green for shown in brief.after)
    return Review(verdict=ReviewVerdict.APPROVED if is_green else ReviewVerdict.NEEDS_CHANGES, issues=())


def _verdict(brief: Brief) -> Judgement:
    red = [shown for shown in brief.after if not shown.is_green]
    cited = tuple(shown.evidence for shown in red or brief.after)
    if red or not cited:
        reasons = tuple(f"{shown.name} is red" for shown in red) or ("no check was run after the change",)
        return Judgement(verdict=Claim.FAILED, evidence=cited, reasons=reasons)
    reasons = tuple(f"{shown.name} is green" for shown in brief.after)
    return Judgement(verdict=Claim.VERIFIED, evidence=cited, reasons=(*reasons, LABEL))


def _refuse_errors(request: Request) -> None:
    """Give up when a tool refused what this run needs."""
    results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    failed = next((result for result in results if result.is_error), None)
    if failed is not None:
        raise ModelRejected(f"a tool refused the edit: {failed.content.splitlines()[0]}", hint=ADVICE)


def _turn(request: Request) -> int:
    return sum(message.speaker is Speaker.ASSISTANT for message in request.messages)


def _call(tool: str, result: Record) -> Call:
    return tool, decode(dict[str, Any], encode(result), tool)


def _calls(request: Request, calls: Sequence[Call], said: str = "") -> Reply:
    turn = _turn(request)
    asked = (
        ToolCall(id=f"r{request.run}-{turn}-{number}", name=name, input=given)
        for number, (name, given) in enumerate(calls)
    )
    text = (Text(text=said),) if said else ()
    return Reply(parts=(*text, *asked), stop=Stop.TOOL_USE, usage=Usage(cost_usd=0.0), model="repair")
