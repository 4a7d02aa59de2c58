"""The embedded model: whether it takes a task, and its next reply to a role, with no hidden state."""

import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from agentflow.core.check_command import format_command
from agentflow.core.errors import ModelRejected
from agentflow.core.events import Searched
from agentflow.core.evidence import CheckName
from agentflow.core.messages import Reply, Request, Speaker, Stop, Text, ToolCall, ToolResult, Usage
from agentflow.core.ports import Observer
from agentflow.core.record import Record, encode
from agentflow.core.role import (
    Change,
    Claim,
    Finding,
    Findings,
    FirstTry,
    Judgement,
    Plan,
    PlanStep,
    Replacement,
    Review,
    ReviewVerdict,
)
from agentflow.core.verdict import PLAUSIBLE
from agentflow.parse import decode
from agentflow.redact import format_count
from agentflow.repair.bench import Hope, SearchWatch
from agentflow.repair.case import GIVEN_UP, RepairCase, explain_failure
from agentflow.repair.sources import read_sources
from agentflow.repair.target import ADVICE, Brief, read_base_tree, read_brief, read_record
from agentflow.sandbox.run import Sandbox

_READ_FILES = 3

_SHOWN = 8
"""Findings and plan steps at most."""

_RIVAL = "\nor: "
"""Stands before each edit that passes the same tests and does something else."""

Call = tuple[str, dict[str, Any]]

T = TypeVar("T")

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


class Repair:
    """A deterministic program-repair engine that plays every role."""

    name = "repair"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._known: dict[object, Any] = {}
        self._observe: Observer = lambda _event: None

    def report_to(self, observe: Observer) -> "Repair":
        """Return the same engine, which tells an observer how far a search is."""
        other = Repair(self._sandbox)
        other._known, other._observe = self._known, observe
        return other

    def explain_refusal(self, task: str) -> str | None:
        return explain_refusal(task)

    async def complete(self, request: Request) -> Reply:
        answer = await work_in_thread(partial(self._answer, request))
        if isinstance(answer, ModelRejected):
            raise answer
        return answer

    def _answer(self, request: Request, is_cancelled: Callable[[], bool]) -> Reply | ModelRejected:
        try:
            return self._reply(request, is_cancelled)
        except ModelRejected as error:
            return error

    def _reply(self, request: Request, is_cancelled: Callable[[], bool]) -> Reply:
        told = (message.text for message in request.messages if message.speaker is Speaker.USER)
        brief = read_brief(next(told, ""))
        tell = partial(tell_progress, self._observe, request.run)
        watch = SearchWatch(tell=tell, cancelled=is_cancelled)

        def open_case() -> RepairCase:
            root = self._sandbox.root
            sources = read_sources(root, read_base_tree(root, brief))
            return RepairCase(self._sandbox, brief, sources, watch, self._known)

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
        return _reply_with(request, [_call(submit, result)])


class FoundRepair(Record):
    """The model of an implementer's run that makes a repair which was found before."""

    found: FirstTry
    name: str = Repair.name

    def explain_refusal(self, task: str) -> str | None:  # noqa: ARG002  # a port's signature
        return None

    async def complete(self, request: Request) -> Reply:
        _refuse_errors(request)
        if _turn(request) >= 2 or request.force:
            return _submit_change(request)
        return _make_edits(request, self.found.edits, self.found.account)


def tell_progress(observe: Observer, run: int, hope: Hope) -> None:
    """Tell an observer how far the search of a run is; run 0 is the one before any request."""
    left = round(hope.seconds_left, 1)
    observe(Searched(run=run, tried=hope.tried, total=hope.total, seconds_left=left, best=hope.best))


async def work_in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Work in a thread, which can ask whether somebody still waits for it."""
    stop = threading.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_signal_end, stop)
        found = await anyio.to_thread.run_sync(work, stop.is_set)
        group.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint()  # what came of work that was cut short counts for nothing
    return found


async def _signal_end(stop: threading.Event) -> None:
    """Let the work in the thread know once nobody waits for it any more."""
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


def explain_refusal(task: str) -> str | None:
    """Return why a task of this text is not one for the embedded model, or None."""
    words = _WORD.findall(task.lower())
    first = next((word for word in words if not _POLITE.fullmatch(word)), "")
    text = " ".join(words)
    if _BUILDING.fullmatch(first):
        return None if _GOAL.search(text) else REFUSAL
    return None if _MENDING.search(text) and not _READING.fullmatch(first) else REFUSAL


def _explore(request: Request, case: RepairCase) -> Reply:
    """Open the most suspicious files, then say which lines are."""
    places = case.places[:_SHOWN]
    if not _turn(request) and not request.force and places:
        files = list(dict.fromkeys(place.path for place in places))[:_READ_FILES]
        return _reply_with(request, [("Read", {"file_path": path}) for path in files])
    findings = tuple(Finding(claim=place.claim, path=place.path, line=place.line) for place in places)
    count = len(case.seen.reds)
    lines, tests = format_count(len(case.places), "suspicious line"), format_count(count, "failing test")
    summary = f"{lines}, run by {tests}"
    result = Findings(summary=summary, findings=findings, open_questions=())
    return _reply_with(request, [_call("SubmitFindings", result)])


def _plan(case: RepairCase) -> Plan:
    edits, root = case.candidates, case.sources.root
    return Plan(
        summary=f"{len(edits):,} candidate edits to try",
        steps=tuple(PlanStep(title=edit.title, files=(edit.path,)) for edit in edits[:_SHOWN]),
        acceptance=(
            *(f"{test} passes" for test in sorted(case.seen.reds)),
            *(
                f"{shown.name}: {format_command(read_record(root, shown).command)}"
                for shown in case.brief.before
            ),
        ),
        risks=(f"found by search: {PLAUSIBLE}",),
    )


def _implement(request: Request, open_case: Callable[[], RepairCase]) -> Reply:
    """Read what is to be edited, edit it, submit; each turn follows from the ones before it."""
    _refuse_errors(request)
    if _turn(request) >= 2 or request.force:
        return _submit_change(request)
    case = open_case()
    searched = case.searched
    edits = case.list_edits(searched)
    said = "; ".join(searched.titles)
    said = f"{said} ({searched.note})" if searched.note else said
    if not searched.texts:
        said = explain_failure(searched, case.sources, case.seen, case.places)
        if not edits:
            raise ModelRejected(said)
    if not edits:
        red = [shown.name for checks in case.brief.failed[-1:] for shown in checks if not shown.is_green]
        raise ModelRejected(
            f"the tests pass with {said}; it stays, but not mended: {', '.join(red)}", hint=ADVICE
        )
    rivals = "".join(f"{_RIVAL}{rival}" for rival in searched.rival_lines)
    return _make_edits(request, edits, said + rivals)


def _make_edits(request: Request, edits: Sequence[Replacement], said: str) -> Reply:
    """Read the files first, then edit them."""
    if not _turn(request):
        files = dict.fromkeys(edit.file_path for edit in edits)
        return _reply_with(request, [("Read", {"file_path": path}) for path in files])
    return _reply_with(request, [_call("Edit", edit) for edit in edits], said)


def _submit_change(request: Request) -> Reply:
    """Submit what the edits of this run made, or give up once an earlier attempt is taken back."""
    edits = [message for message in request.messages if any(call.name == "Edit" for call in message.calls)]
    if not edits or edits[-1].text.startswith(GIVEN_UP):
        raise ModelRejected(edits[-1].text if edits else "the repair was not made", hint=ADVICE)
    title, *rivals = edits[-1].text.split(_RIVAL)
    touched = dict.fromkeys(str(call.input["file_path"]) for call in edits[-1].calls)
    files = tuple(path for path in touched if f"; {path}:" in f"; {title}")  # others are taken back
    change = Change(summary=f"{title}; {PLAUSIBLE}", files=files, rivals=tuple(rivals))
    return _reply_with(request, [_call("SubmitChange", change)])


def _review(brief: Brief) -> Review:
    is_green = bool(brief.after) and all(shown.is_green for shown in brief.after)
    return Review(verdict=ReviewVerdict.APPROVED if is_green else ReviewVerdict.NEEDS_CHANGES, issues=())


def _verdict(brief: Brief) -> Judgement:
    known = {shown.name for shown in brief.before if not shown.is_green} - {CheckName.TESTS}
    red = [shown for shown in brief.after if not shown.is_green and shown.name not in known]
    cited = tuple(shown.evidence for shown in red or brief.after)
    if red or not cited:
        reasons = tuple(f"{shown.name} is red" for shown in red) or ("no check was run after the change",)
        return Judgement(verdict=Claim.FAILED, evidence=cited, reasons=reasons)
    reasons = tuple(f"{shown.name} is green" for shown in brief.after if shown.is_green)
    return Judgement(verdict=Claim.VERIFIED, evidence=cited, reasons=(*reasons, PLAUSIBLE))


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


def _reply_with(request: Request, calls: Sequence[Call], said: str = "") -> Reply:
    turn = _turn(request)
    asked = (
        ToolCall(id=f"r{request.run}-{turn}-{number}", name=name, input=given)
        for number, (name, given) in enumerate(calls)
    )
    text = (Text(text=said),) if said else ()
    return Reply(parts=(*text, *asked), stop=Stop.TOOL_USE, usage=Usage(cost_usd=0.0), model="repair")
