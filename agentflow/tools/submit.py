"""Tools that end or pause a run: the five Submit tools, AskUserQuestion and Escalate."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.evidence import By, Side
from agentflow.core.pending import OWN_WORDS, PendingKind
from agentflow.core.ports import Workspace
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import (
    AnySubmission,
    Change,
    Citation,
    Claim,
    Findings,
    Issue,
    Judgement,
    Plan,
    Review,
    find_overlaps,
)
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.tools.excerpts import collect_excerpts, was_shown
from agentflow.tools.inputs import spell_path

_WEB = ("https://", "http://")
"""A page is cited by its address; whether it says so cannot be looked up here."""
_NOTHING_TO_DO = "Make the change; if none is needed, name no file and say why in `summary`, or use Escalate."
Cited = TypeVar("Cited", Citation, Issue)


def submit_findings(wanted: Findings, context: ToolContext) -> Output:
    """Submit your findings and end; each finding names a file and a line that exist."""
    placed, flagged = _check_citations(wanted.findings, context)
    borne = [one for one in placed if one.place not in flagged and not one.path.startswith(_WEB)]
    unseen = [one.place for one in borne if not was_shown(context, one)]
    return _to_output(
        "findings",
        wanted.replace(findings=placed),
        flagged_findings=flagged,
        unseen_findings=unseen,
        cited=to_builtins(collect_excerpts(context.workspace, borne)),
    )


def submit_plan(wanted: Plan, context: ToolContext) -> Output:
    """Submit the plan and end."""
    problems = [
        f"step {number}: after names only earlier steps"
        for number, step in enumerate(wanted.steps, 1)
        if any(each >= number for each in step.after or ())
    ]
    problems += [
        f"steps {first} and {second} touch the same file: let step {second} name {first} in after"
        for first, second in find_overlaps(wanted)
    ]
    if problems and not context.run.rejected:  # told once, then such steps wait for each other
        raise InvalidInput("; ".join(problems))
    return _to_output("plan", wanted)


def submit_change(wanted: Change, context: ToolContext) -> Output:
    """Hand in the change and end; name what differs, or why nothing."""
    problems = list(_unlike(wanted, context)) if context.changed and not context.run.rejected else []
    if problems:
        raise InvalidInput("; ".join(problems))
    return _to_output("change", wanted)


def submit_review(wanted: Review, context: ToolContext) -> Output:
    """Hand in the review and end; each issue names a file and a line that exist."""
    placed, flagged = _check_citations(wanted.issues, context)
    return _to_output("review", wanted.replace(issues=placed), flagged_issues=flagged)


def submit_verdict(wanted: Judgement, context: ToolContext) -> Output:
    """Hand in the verdict and end; VERIFIED cites checks that the program ran after the change."""
    named = (f"ev-{int(cited):04}" if cited.isdecimal() else cited for cited in wanted.evidence)
    records = {cited: context.ledger.find(cited) for cited in named}
    problems = [
        f"{cited}: no check that the program ran after the change has this id"
        for cited, record in records.items()
        if record is None
    ]
    found = {cited: record for cited, record in records.items() if record is not None}
    counts = (each.by is By.PROGRAM and each.code is Side.FINAL for each in found.values())
    is_bare = wanted.verdict is Claim.VERIFIED and not any(counts)
    if is_bare:
        problems.append("VERIFIED has to cite a check that the program ran after the change")
    if problems and (is_bare or not context.run.rejected):
        raise InvalidInput("; ".join(problems))
    return _to_output("judgement", wanted.replace(evidence=tuple(found)))


def _tool(name: str, kind: type[Record], call: Callable[[Any, ToolContext], Output]) -> Tool:
    return Tool(name=name, category=Category.STATE, effect=Effect.WRITE, input=kind, call=call)


SUBMIT_TOOLS = (
    _tool("SubmitFindings", Findings, submit_findings),
    _tool("SubmitPlan", Plan, submit_plan),
    _tool("SubmitChange", Change, submit_change),
    _tool("SubmitReview", Review, submit_review),
    _tool("SubmitVerdict", Judgement, submit_verdict),
)


def _to_output(key: str, submission: AnySubmission, **others: list[Any]) -> Output:
    return Output(content="submitted", changes={key: to_builtins(submission), **others}, submitted=True)


def _unlike(wanted: Change, context: ToolContext) -> Iterator[str]:
    """Yield where a change is not what was handed in as one; told once, then the tree alone counts."""
    assert context.changed is not None
    changed, named = context.changed(), {spell_path(context.workspace, path) for path in wanted.files}
    if not changed:
        if named:
            yield f"You have changed no files. {_NOTHING_TO_DO}"
        return
    if untouched := sorted(named - changed.keys()):
        yield f"in `files`, but unchanged: {', '.join(untouched)}"
    if unnamed := sorted(path for path, is_own in changed.items() if is_own and path not in named):
        yield (
            f"{', '.join(unnamed)} changed but is missing from `files`. "
            "Add it, or revert it if you changed it by mistake."
        )


def _check_citations(cited: tuple[Cited, ...], context: ToolContext) -> tuple[tuple[Cited, ...], list[str]]:
    """Return citations with their paths as git spells them, and the places that no file bears out.

    The first time these are an error, to be mended.
    """
    placed: list[Cited] = []
    problems: dict[str, str] = {}
    for one in cited:
        is_page = one.path.startswith(_WEB)
        problem = None if is_page else find_misplacement(one.path, one.line, context.workspace)
        if problem is not None:
            problems[one.place] = problem
        is_found = not is_page and problem is None
        placed.append(one.replace(path=context.workspace.to_relative(one.path)) if is_found else one)
    if problems and not context.run.rejected:
        raise InvalidInput("; ".join(problems.values()))
    return tuple(placed), list(problems)


def find_misplacement(path: str, line: int, workspace: Workspace) -> str | None:
    """Return what is wrong with a line that is named, if anything is."""
    try:
        content = workspace.read(path)
    except ToolError as error:
        return str(error)
    count = content.count(b"\n") + (bool(content) and not content.endswith(b"\n"))
    return None if line <= count else f"{path}:{line}: the file has {count} lines"


class Option(Record):
    label: Annotated[str, Meta(min_length=1)]
    description: str = ""


class AskedQuestion(Record):
    question: Annotated[str, Meta(min_length=1)]
    options: Annotated[
        tuple[Option, ...], Meta(min_length=2, max_length=12, description="The first is the default.")
    ]
    header: Annotated[str, Meta(extra_json_schema={"deprecated": True})] = ""
    multiSelect: Annotated[bool, Meta(extra_json_schema={"deprecated": True})] = False  # noqa: N815
    """Public keys; a person may answer with words of their own anyway."""


class AskInput(Record):
    questions: Annotated[tuple[AskedQuestion, ...], Meta(min_length=1, max_length=4)]

    @property
    def choices(self) -> tuple[str, ...]:
        """The options of the only question; those of several stand with each."""
        return tuple(option.label for option in self.questions[0].options) if len(self.questions) == 1 else ()


class Escalation(Record):
    assumption: Annotated[str, Meta(min_length=1)]
    contradiction: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(min_length=1)]
    line: Annotated[int, Meta(ge=1)]
    options: Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=2, max_length=2)]
    """A and B: what to assume instead."""
    recommended: Literal["A", "B"] = "A"

    @property
    def choices(self) -> tuple[str, ...]:
        return (*self.options, f"something else, {OWN_WORDS}")


def ask_user(wanted: AskInput, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Ask the user, once; the answer is the result."""
    raise ToolError("nobody answered")


def escalate(wanted: Escalation, context: ToolContext) -> Output:  # noqa: ARG001  # all tools have one signature
    """Ask the user to choose when the code contradicts an assumption. You start again with the answer."""
    raise ToolError("nobody answered")


ASK = Tool(
    name="AskUserQuestion",
    category=Category.ASK,
    effect=Effect.WRITE,
    input=AskInput,
    call=ask_user,
    subjects={},
)
ESCALATE = Tool(
    name="Escalate",
    category=Category.ASK,
    effect=Effect.WRITE,
    input=Escalation,
    call=escalate,
    subjects={"path": Subject.TEXT},  # the file is named to a person, not opened
)
KINDS: Mapping[type[Record], PendingKind] = {
    AskInput: PendingKind.QUESTION,
    Escalation: PendingKind.ESCALATION,
}
"""What waits, by the input of the tool that asks; a call of any other tool waits for approval."""
