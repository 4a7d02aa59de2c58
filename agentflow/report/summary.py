"""What a task came to: gathered once, for the terminal, the pages, the report, Markdown and JSON to print."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from agentflow.core.check_command import format_command
from agentflow.core.evidence import CheckName, Evidence, Side
from agentflow.core.finding import FindingKind
from agentflow.core.record import Record
from agentflow.core.role import Citation, Issue
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import MutantResult, count_mutants, explain_caveat, pick_survivors
from agentflow.report.why import Why, explain_task
from agentflow.verdict.ending import FindEvidence
from agentflow.wording import describe_all, describe_approvals


class CheckPair(Record):
    name: CheckName
    command: str
    missing: str
    before: Evidence | None
    after: Evidence | None
    is_final: bool
    """It was looked for on the change, whether it could run or not."""


class Tone(StrEnum):
    """How a part of a summary is meant; pages have a colour of this name for each."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    PLAIN = ""


class SummaryRow(Record):
    text: str
    lead: str = ""
    """A word of the result, or a place in a file, before the text."""
    names: tuple[str, ...] = ()
    """Tests, say, that the text is about."""
    evidence: tuple[str, ...] = ()


class SummaryPart(Record):
    """One list of a summary, in the words in which everything prints it."""

    title: str
    tone: Tone
    rows: tuple[SummaryRow, ...]
    label: str = ""
    """Its name on a terminal; empty where the result above it says this there."""
    is_detail: bool = False
    """Folded up where that is possible."""


class TaskFact(Record):
    """How a task was done, as a label and a text."""

    label: str
    text: str
    tone: Tone = Tone.PLAIN


class TaskSummary(Record):
    task: TaskState
    why: Why
    checks: tuple[CheckPair, ...]
    parts: tuple[SummaryPart, ...] = ()
    findings: tuple[tuple[Citation, str], ...] = ()
    """Each with the doubt about it, if any."""
    issues: tuple[tuple[Issue, str], ...] = ()
    is_search_result: bool = False
    """The change was found by search, so that only the tests vouch for it."""


def summarize_task(
    task: TaskState, find: FindEvidence, *, at_work: bool = False, is_named: bool = True, place: str = ""
) -> TaskSummary:
    """Return what a task came to; `place` is the option with which commands find its repository."""
    cited = task.findings.findings if task.findings else ()
    doubts = dict.fromkeys(task.unseen_findings, "not seen by the explorer")
    doubts |= dict.fromkeys(task.flagged_findings, "no such line")
    issues = task.review.issues if task.review else ()
    return TaskSummary(
        task=task,
        why=explain_task(task, find, at_work=at_work, is_named=is_named, place=place),
        checks=tuple(pair_checks(task, find)),
        parts=(
            *(part for part in _list_parts(task) if part.rows),
            *((make_survivors_part(task.mutants),) if task.mutants else ()),
        ),
        findings=tuple((one, doubts.get(one.place, "")) for one in cited),
        issues=tuple((one, "no such line" if one.place in task.flagged_issues else "") for one in issues),
        is_search_result=task.is_found and task.status in (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT),
    )


def list_facts(task: TaskState) -> Iterator[TaskFact]:
    route = task.routing.route.replace("_", " ") or "not chosen"
    yield TaskFact(label="class", text=f"{task.task_complexity}, route {route}")
    if not task.reads_only:
        yield TaskFact(label="iterations", text=f"{task.iteration} of {task.max_iterations}")
        if task.proving:
            yield TaskFact(label="proving rounds", text=f"{task.proving} of {task.options.prove_rounds}")
    yield describe_isolation(task)


def describe_isolation(task: TaskState) -> TaskFact:
    if task.sandbox == "none":
        return TaskFact(
            label="sandbox", text="NOT SANDBOXED: commands ran with all your rights", tone=Tone.BAD
        )
    gaps = f"; not isolated: {', '.join(task.gaps)}" if task.gaps else ""
    return TaskFact(label="sandbox", text=f"{task.sandbox}{gaps}", tone=Tone.WARN if gaps else Tone.PLAIN)


def _list_parts(task: TaskState) -> Iterator[SummaryPart]:
    verdict = task.verdict
    if verdict is not None:
        proofs = (
            SummaryRow(text=one.kind.words, names=one.tests, evidence=one.evidence) for one in verdict.proof
        )
        yield SummaryPart(title="What proves it", tone=Tone.GOOD, rows=tuple(proofs))
        if verdict.passed or verdict.to_approve:  # of one that failed, the reasons say more
            yield _make_part("What nothing proves", Tone.WARN, describe_all(verdict.unproved), "unproved")
        caveats = tuple(SummaryRow(lead=word, text=explain_caveat(word)) for word in verdict.caveats)
        yield SummaryPart(title="Caveats", tone=Tone.WARN, rows=caveats, label="caveat")
        weakened = describe_all(verdict.weakened)
        if verdict.approval:
            title = "Changes to the checks, approved by a person"
            yield _make_part(title, Tone.WARN, describe_approvals(verdict), "checks")
        else:  # what waits for a person is shown where it is decided
            label = "" if task.pending else "checks"
            yield _make_part(
                "Changes to the checks: only a person can approve them", Tone.BAD, weakened, label
            )
        if not verdict.passed:
            yield _make_part("Why it is not verified", Tone.BAD, describe_all(verdict.reasons))
    notes = verdict.notes if verdict else ()
    if not task.reads_only:  # there the issues are the answer
        issues = task.review.issues if task.review else ()
        said = [FindingKind.AS_WORDED.of(issue.describe()) for issue in issues]
        said += FindingKind.VERIFIER_REFUSED.about(task.judgement.reasons if task.judgement else ())
        known = {each.subjects for each in (*notes, *(verdict.reasons if verdict else ()))}
        left = describe_all(each for each in said if each.subjects not in known)
        yield _make_part("What the reviewer and the verifier said", Tone.PLAIN, left, "said")
    chosen = (task.judges.describe(),) if task.judges else ()
    yield _make_part("Judges", Tone.PLAIN, chosen).replace(is_detail=True)
    yield _make_part("Notes", Tone.PLAIN, describe_all(notes), "note").replace(is_detail=True)
    hooked = sorted(task.hook_files)
    yield _make_part("Changed only by hooks", Tone.PLAIN, hooked, "hooks").replace(is_detail=True)


def _make_part(title: str, tone: Tone, texts: Iterable[str], label: str = "") -> SummaryPart:
    rows = tuple(SummaryRow(text=text) for text in texts)
    return SummaryPart(title=title, tone=tone, rows=rows, label=label)


def make_survivors_part(mutants: tuple[MutantResult, ...]) -> SummaryPart:
    """Return the edits that no test notices, below how many were tried."""
    counts = count_mutants(mutants)
    late = f", {counts['not_tried']} not tried for want of time" if counts["not_tried"] else ""
    rows = tuple(
        SummaryRow(
            lead=f"{each.path}:{each.line}",
            text=describe_survivor(each) + ("" if each.is_strong else " (weak: it decides nothing)"),
        )
        for each in pick_survivors(mutants)
    )
    title = f"{counts['killed']} of {counts['tried']} mutants killed{late}"
    return SummaryPart(title=title, tone=Tone.WARN if rows else Tone.GOOD, rows=rows, is_detail=True)


def describe_survivor(mutant: MutantResult) -> str:
    """Return what no test notices: `default=0 → default=1: no test notices`."""
    where = " in the removed code" if mutant.code is Side.BASE else ""
    return f"{mutant.edit}{where}: no test notices"


def pair_checks(task: TaskState, find: FindEvidence) -> Iterator[CheckPair]:
    base = {one.check.name: one for one in task.baseline}
    final = {one.check.name: one for one in task.final}
    for name in CheckName:
        before, after = base.get(name), final.get(name)
        if newest := after or before:
            yield CheckPair(
                name=name,
                command=format_command(newest.check.command),
                missing=newest.check.missing or "",
                before=find(before.evidence) if before else None,
                after=find(after.evidence) if after else None,
                is_final=after is not None,
            )
