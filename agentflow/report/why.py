"""Why a task stands as it does: its result, the facts that decided it, and what a person does next."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from agentflow.core.errors import Exit
from agentflow.core.evidence import CheckName
from agentflow.core.pending import APPROVED, Pending, PendingKind
from agentflow.core.record import Record
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import Caveat, Verdict, explain_caveat
from agentflow.redact import format_count, list_some, to_one_line
from agentflow.verdict.ending import FindEvidence
from agentflow.wording import describe_all, describe_approvals

_FACT = 300
_OPEN = (Status.RUNNING, Status.SUSPENDED, Status.CANCELLED, Status.ERROR)
_MOST = 2
_RESULTS: Mapping[Status, str] = MappingProxyType(
    {
        Status.FAILED: "not verified",
        Status.LIMIT: "not verified",
        Status.BLOCKED: "stopped by a rule",
        Status.TAMPERED: "not verified",
        Status.ERROR: "internal error",
    }
)
_STEPS: Mapping[Status, str] = MappingProxyType(
    {
        Status.ANSWERED: "agentflow report{at} shows the whole answer",
        Status.VERIFIED: "agentflow commit{at} commits it, agentflow undo{at} reverts it",
        **dict.fromkeys(_OPEN, "agentflow resume{at} continues it"),
    }
)
_ACCEPT = "read the diff, then agentflow commit{at} --accept-caveat"
_REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        Caveat.UNPROVED: "agentflow task --follows {id} add the missing tests",
        Caveat.ALREADY_RED: "agentflow task --follows {id} make the failing tests pass",
        Caveat.FLAKY: "agentflow verify{place} runs the checks again",
        Caveat.CHECK_SKIPPED: "agentflow verify{place} runs the check that was skipped",
        Caveat.CHECK_NOT_RUN: "install what is missing, then agentflow verify{place} runs the checks",
        Caveat.TESTS_NOT_COUNTED: "write a command that lists its tests into .claude/test-command",
        Caveat.MOSTLY_SKIPPED: "agentflow evidence{at} shows which tests were skipped",
        Caveat.KNOWS_THE_TESTS: "agentflow task --follows {id} remove what serves only the tests",
        Caveat.CHECK_WEAKENED: "agentflow task --follows {id} restore the original checks",
        Caveat.AMBIGUOUS_REPAIR: "write a test with an input on which the fixes differ",
    }
)
"""What to do about a caveat; with any other nothing is left but to read the diff."""


class Why(Record):
    result: str
    facts: tuple[str, ...]
    """At most two; the first is the one that decided."""
    more: int
    judges: str
    """Why no judge was asked about a change that is verified; empty where one was."""
    next: tuple[str, ...]
    """What to do: the first step, and then the one after it or another choice."""

    @property
    def headline(self) -> str:
        said = ": ".join(filter(None, (self.result, *self.facts[:1])))
        return said if self.result else f"{said[:1].upper()}{said[1:]}"


def explain_task(
    task: TaskState, find: FindEvidence, *, at_work: bool = False, is_named: bool = True, place: str = ""
) -> Why:
    """Return why a task stands as it does; `place` is the option with which commands find its repository."""
    words = {"at": f" {task.task_id}{place}" if is_named else place, "id": f"{task.task_id}{place}"}
    result, told = _describe(task, find, at_work=at_work)
    facts = tuple(dict.fromkeys(filter(None, (to_one_line(fact, _FACT) for fact in told))))
    steps = tuple(step.format(**words, place=place) for step in _list_steps(task, find, at_work=at_work))
    is_sure = task.status is Status.VERIFIED and task.judges is not None and not task.judges.asked
    judges = task.judges.describe() if is_sure and task.judges else ""
    return Why(result=result, facts=facts[:_MOST], more=len(facts[_MOST:]), judges=judges, next=steps)


def _describe(task: TaskState, find: FindEvidence, *, at_work: bool) -> tuple[str, Iterable[str]]:
    """Return the result of a task in a few words, and what decided it, the weightiest first."""
    verdict, code = task.verdict, task.ending.exit_code if task.ending else None
    match task.status:
        case _ if task.undone is not None:
            restored = f"the files were restored to their state before the task, {task.undone.at}"
            return "undone", (restored, *(f"your own edits are kept: {path}" for path in task.undone.kept))
        case Status.RUNNING if at_work:
            where = f"{task.current_phase}, iteration {task.iteration} of {task.max_iterations}"
            return "still running", (where,)
        case Status.RUNNING:
            return "interrupted", ("its process ended before the task did",)
        case _ if task.pending:
            item = task.pending[0]
            return "Waiting for you", (item.tell_what_waits(), *_list_asked(item))
        case Status.ANSWERED if task.findings is not None:
            return "answered", (task.findings.summary,)
        case Status.VERIFIED if task.final and verdict is not None:
            facts = (_count_checks(task, find), *describe_approvals(verdict), *_list_proofs(verdict))
            return "verified", facts
        case Status.VERIFIED_WITH_CAVEAT if verdict is not None:
            return _name_caveat(task, find), _list_grounds(verdict)
    result = _RESULTS.get(task.status, task.status.replace("_", " "))
    if task.status is Status.ERROR and code is not Exit.INTERNAL:
        result = "stopped by an error"
    elif code is Exit.NO_MODEL and task.change is None:
        result = ""
    elif task.reads_only:
        result = result.replace("not verified", "not answered")
    return result, task.ending.reason.splitlines() if task.ending else ()


def _list_asked(item: Pending) -> Iterable[str]:
    if item.kind is PendingKind.SURFACE:
        return tuple(item.input["changes"])
    why = (str(item.input[key]) for key in ("why", "contradiction") if key in item.input)
    return (*(one.text for one in item.questions), *why)


def _list_proofs(verdict: Verdict) -> Iterator[str]:
    for each in verdict.proof:
        if each.tests:
            yield f"{each.kind.words}: {list_some(each.tests, 3)}"


def _name_caveat(task: TaskState, find: FindEvidence) -> str:
    if not task.final:
        return "not verified by any check"
    runs = (find(one.evidence) for one in task.final if one.check.name is CheckName.TESTS)
    blocked = Caveat.CHECK_NOT_RUN.of(CheckName.TESTS) in (task.verdict.caveats if task.verdict else ())
    passed = (each and (each.exit_code == 0 or bool(each.tests and each.tests.passed)) for each in runs)
    is_tested = not blocked or any(passed)
    return "verified with caveat" if is_tested else "changed, but no test could run here"


def _list_grounds(verdict: Verdict) -> tuple[str, ...]:
    """Return a reason for each caveat of a change that passed, then all other reasons."""
    known = {**verdict.grounds, Caveat.UNPROVED: verdict.unproved}
    found = list[tuple[str, ...]]()
    for each in verdict.caveats:
        name, _, check = each.partition(":")
        said = (ground for ground in known.get(name, ()) if not check or ground.check in (None, check))
        found.append(describe_all(said) or (explain_caveat(each) or each,))
    return (*(each[0] for each in found), *(reason for each in found for reason in each[1:]))


def _count_checks(task: TaskState, find: FindEvidence) -> str:
    base = {one.check.name: find(one.evidence) for one in task.baseline}
    pairs = [(base.get(one.check.name), find(one.evidence)) for one in task.final]
    green = [before for before, after in pairs if after and after.exit_code == 0]
    turned = [before for before in green if before and before.exit_code != 0]
    verb = "passes" if len(turned or green) == 1 else "pass"
    if turned:
        return f"{format_count(len(turned), 'failing check')} now {verb}; no new failures."
    if green:
        return f"{format_count(len(green), 'check')} {verb} on the changed code; no new failures."
    counts = ([one and one.tests for one in side] for side in (base.values(), (each for _, each in pairs)))
    then, now = (sum(one.failed + one.errors for one in each if one) for each in counts)
    return f"{format_count(then, 'test')} failed before, {now} now; no new failures."


def _list_steps(task: TaskState, find: FindEvidence, *, at_work: bool) -> tuple[str, ...]:
    if task.undone is not None:
        return ("agentflow log{at} shows what the task had done",)
    if task.status is Status.RUNNING and at_work:
        return "agentflow watch{at} follows it", "or agentflow cancel{at} stops it"
    if task.pending:
        then = ("then agentflow resume{at}",) if task.pending[0].kind in APPROVED else ()
        return (task.pending[0].tell_how_to_decide(task.task_id), *then)
    if task.status in _STEPS:
        return (_STEPS[task.status],)
    if task.status is Status.VERIFIED_WITH_CAVEAT and task.verdict is not None:
        word = next(iter(task.verdict.caveats), "").partition(":")[0]
        is_seen_only = word == Caveat.UNPROVED and not task.verdict.is_testable
        remedy = None if is_seen_only else _REMEDIES.get(word)
        return (remedy, f"or {_ACCEPT}") if remedy else (_ACCEPT,)
    found = map(find, (one.evidence for one in task.final))
    red = next((each.id for each in found if each and each.exit_code != 0), None)
    look = f"agentflow evidence{{at}} {red} shows what failed" if red else "agentflow log{at} shows each step"
    if task.base_tree in (None, task.tree):
        return look, "or say it in other words: agentflow task TEXT"
    return look, "or agentflow task --follows {id} TEXT goes on", "or agentflow undo{at} reverts it"
