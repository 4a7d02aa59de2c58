"""A task folder read into the record that all its pages are made from; nothing here writes or locks."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from agentflow.core import events
from agentflow.core.errors import CorruptState, InvalidFile, StateError
from agentflow.core.evidence import Evidence, TestOutcome
from agentflow.core.messages import Usage
from agentflow.core.record import Record, copy_shared
from agentflow.core.run import RunOutcome
from agentflow.core.task import TaskState
from agentflow.pages.diff import FileView, arrange_diff
from agentflow.parse import decode
from agentflow.redact import redact_text, strip_colours, to_one_line
from agentflow.report.material import Spending, sum_spending
from agentflow.report.summary import CheckPair, TaskSummary, summarize_task
from agentflow.store.ledger import REPORT, read_outcomes
from agentflow.store.reading import EVIDENCE, fold_state, load_events
from agentflow.trust import read_content
from agentflow.verdict.case import find_hook_files
from agentflow.view.tasks import Snapshot
from agentflow.view.verdict import split_diff
from agentflow.workspace.git import Git


class CallEnd(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


class CallView(Record):
    id: str
    tool: str
    subject: str
    end: CallEnd
    result: str = ""
    seconds: float | None = None


class TurnView(Record):
    """One reply of a model, with the calls it asked for."""

    run: int
    number: int
    text: str = ""
    usage: Usage | None = None
    """None while the model is asked."""
    seconds: float = 0
    call_count: int = 0
    """The calls of the reply, including those that wait for a person."""
    calls: tuple[CallView, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person said before it, and why a request was sent again."""


class RunView(Record):
    number: int
    role: str
    agent: str
    model: str
    iteration: int
    angle: str = ""
    parent: int | None = None
    outcome: RunOutcome | None = None
    """None while it goes on, or where its process was ended."""
    usage: Usage = Usage()
    seconds: float = 0
    turns: tuple[TurnView, ...] = ()


def fold_runs(happened: Iterable[events.StoredEvent]) -> tuple[RunView, ...]:
    runs: dict[int, RunView] = {}
    for one in happened:
        event = one.event
        if isinstance(event, events.RunStarted):
            earlier = runs[event.run].turns if event.run in runs else ()  # of a run that was resumed
            known = copy_shared(event, RunView)
            runs[event.run] = RunView(number=event.run, parent=one.parent, turns=earlier, **known)
        elif isinstance(event, events.RunEnded) and event.run in runs:
            ended = runs[event.run].replace(outcome=event.outcome, usage=event.usage, seconds=event.seconds)
            runs[event.run] = ended
        elif isinstance(event, _OfTurn) and event.run in runs:
            run = runs[event.run]
            turn = _open_turn(run, event)
            others = (one for one in run.turns if one.number != turn.number)
            runs[event.run] = run.replace(turns=(*others, turn))
    return tuple(runs.values())


_OfTurn = (
    events.Asked
    | events.Replied
    | events.ToolStarted
    | events.ToolFinished
    | events.ToolBlocked
    | events.PersonSaid
    | events.Retried
)


def _open_turn(run: RunView, event: _OfTurn) -> TurnView:
    newest = run.turns[-1].number if run.turns else 0
    number = {events.PersonSaid: newest + 1, events.Retried: max(newest, 1)}.get(
        type(event), getattr(event, "turn", 0)
    )
    number = number or max(newest, 1)
    known = TurnView(run=run.number, number=number)
    turn = next((one for one in run.turns if one.number == number), known)
    match event:
        case events.Replied():
            return turn.replace(
                text=event.text, usage=event.usage, seconds=event.seconds, call_count=event.calls
            )
        case events.PersonSaid():
            return turn.replace(notes=(*turn.notes, f"You: {event.text}"))
        case events.Retried():
            return turn.replace(
                notes=(*turn.notes, f"Asked again, try {event.attempt} failed: {event.reason}")
            )
        case events.ToolStarted() | events.ToolFinished() | events.ToolBlocked():
            return turn.replace(calls=_put_call(turn.calls, event))
        case events.Asked():
            return turn


def _put_call(
    calls: tuple[CallView, ...], event: events.ToolStarted | events.ToolFinished | events.ToolBlocked
) -> tuple[CallView, ...]:
    known = {call.id: call for call in calls}
    new = CallView(id=event.call_id, tool=event.tool, subject="", end=CallEnd.RUNNING)
    call = known.get(event.call_id, new)
    match event:
        case events.ToolStarted():
            call = call.replace(subject=event.subject)
        case events.ToolFinished():
            end = CallEnd.FAILED if event.is_error else CallEnd.DONE
            call = call.replace(end=end, result=event.summary, seconds=event.seconds)
        case events.ToolBlocked():
            call = call.replace(end=CallEnd.REFUSED, result=event.reason)
    return tuple({**known, call.id: call}.values())


class UsagePoint(Record):
    seconds: float
    """Of work since it began; the time in which it waited for a person does not count."""
    tokens: int
    cost: float | None


class Course(Record):
    seconds: float = 0
    used: tuple[UsagePoint, ...] = ()
    phases: Mapping[str, float] = {}
    """The seconds of each, of all its iterations."""


def follow_course(happened: Iterable[events.StoredEvent]) -> Course:
    used, begun = [UsagePoint(seconds=0, tokens=0, cost=0.0)], dict[str, float]()
    spent: dict[str, float] = {}
    now = 0.0
    for now, one in _clock(happened):
        match one.event:
            case events.Replied(usage=usage) | events.Compacted(usage=usage) if (
                usage.tokens or usage.cost_usd
            ):
                last = used[-1]
                is_known = last.cost is not None and usage.cost_usd is not None
                cost = (last.cost or 0) + (usage.cost_usd or 0) if is_known else None
                used.append(UsagePoint(seconds=now, tokens=last.tokens + usage.tokens, cost=cost))
            case events.PhaseStarted(phase=phase):
                begun[phase] = now
            case events.PhaseEnded(phase=phase) if phase in begun:
                spent[phase] = spent.get(phase, 0) + now - begun.pop(phase)
            case _:
                pass
    for open_phase, start in begun.items():
        spent[open_phase] = spent.get(open_phase, 0) + now - start
    return Course(seconds=now, used=tuple(used), phases=spent)


def _clock(happened: Iterable[events.StoredEvent]) -> Iterator[tuple[float, events.StoredEvent]]:
    now, last, is_over = 0.0, None, False
    for one in happened:
        with suppress(TypeError, ValueError):  # a time that nobody can read takes none
            at = datetime.fromisoformat(one.at)
            now += max(0.0, (at - last).total_seconds()) if last and not is_over else 0.0
            last = at
        is_over = isinstance(one.event, events.TaskEnded)
        yield now, one


_RECORD = re.compile(r"ev-[0-9]{4,}")
_IDS = re.compile(rf"{EVIDENCE}/ev-[0-9]{{4,}}\.ids")
_OUTPUT_LINES = 120
_MOST_BYTES = 16 * 1024 * 1024


class TestView(Record):
    """One test before the task and now; None where it was not there."""

    __test__ = False

    name: str
    before: TestOutcome | None
    after: TestOutcome | None


class CheckView(CheckPair):
    """A required check before the task and now, with its tests."""

    changed: tuple[TestView, ...] = ()
    same: tuple[TestView, ...] = ()


class OutputView(Record):
    lines: tuple[str, ...]
    left_out: int


class TaskPage(Record):
    task_id: str
    at_work: bool
    snapshot: Snapshot | None = None
    """None where the events cannot be read."""
    summary: TaskSummary | None = None
    problems: tuple[str, ...] = ()
    files: tuple[FileView, ...] = ()
    diff: str = ""
    runs: tuple[RunView, ...] = ()
    checks: tuple[CheckView, ...] = ()
    course: Course = Course()
    spending: Spending = Spending(roles=(), seconds=0, model=0)


def read_task_page(folder: Path, git: Git, *, at_work: bool, before: TaskPage | None = None) -> TaskPage:
    """Return the page of a task as its files are now, without what cannot be read, which it names."""
    stored, problems = list[events.StoredEvent](), list[str]()
    try:
        stored.extend(load_events(folder))
    except CorruptState as error:
        problems.append(_describe_error(error, folder))
    try:
        state = fold_state(folder, tuple(stored))
    except CorruptState as error:
        problems.append(_describe_error(error, folder))
        return TaskPage(task_id=folder.name, at_work=at_work, problems=tuple(problems))
    happened = tuple(one for one in stored if not isinstance(one.event, events.StateChanged))
    snapshot = Snapshot(
        folder=folder, state=state, events=happened, evidence=tuple(_read_records(folder, problems))
    )
    summary = summarize_task(state, snapshot.find, at_work=at_work)
    known = before.snapshot.state if before and before.snapshot else None
    trees = (state.base_tree, state.tree, state.hook_files)
    is_same = known is not None and (known.base_tree, known.tree, known.hook_files) == trees
    diff = (before.diff if before and is_same else "") or _read_diff(folder, git, state)
    return TaskPage(
        task_id=folder.name,
        at_work=at_work,
        snapshot=snapshot,
        summary=summary,
        problems=tuple(problems),
        files=arrange_diff(split_diff(diff), state.surface, state.verdict, state.mutants),
        diff=diff,
        runs=fold_runs(happened),
        checks=tuple(_compare_tests(folder, pair) for pair in summary.checks),
        course=follow_course(happened),
        spending=sum_spending(happened),
    )


def _describe_error(error: Exception, folder: Path) -> str:
    return to_one_line(str(error).replace(f"{folder}/", ""), 300)


def _read_records(folder: Path, problems: list[str]) -> Iterator[Evidence]:
    for path in sorted((folder / EVIDENCE).glob("ev-*.json"), key=lambda path: (len(path.name), path.name)):
        if not _RECORD.fullmatch(path.stem):
            continue
        try:
            yield decode(Evidence, read_content(path), path.name)
        except (InvalidFile, OSError) as error:
            problems.append(_describe_error(error, folder))


def _read_diff(folder: Path, git: Git, state: TaskState) -> str:
    """Return the diff of a task up to its newest tree, from its report where git lost the trees."""
    if state.base_tree is None or state.tree is None or state.base_tree == state.tree:
        return ""
    apart = find_hook_files(state)
    try:
        changes = git.list_changes(state.base_tree, state.tree)
        paths = [change.path for change in changes if change.path not in apart]
        return redact_text(
            git.make_diff(state.base_tree, state.tree, *(paths if apart else ())) if paths else ""
        )
    except StateError:
        pass  # the report tells
    try:
        is_own = _is_inside(folder, folder / REPORT)
        text = read_content(folder / REPORT).decode("utf-8", "replace") if is_own else ""
    except (OSError, InvalidFile):
        return ""
    _, fence, rest = text.rpartition("```diff\n")
    return rest.rstrip().rstrip("`") if fence else ""


def _compare_tests(folder: Path, pair: CheckPair) -> CheckView:
    old, new = _read_tests(folder, pair.before), _read_tests(folder, pair.after)
    changed, same = list[TestView](), list[TestView]()
    is_done = pair.after is not None
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        is_fine = (after if is_done else before) in (TestOutcome.PASSED, TestOutcome.SKIPPED)
        is_notable = not is_fine or (is_done and before is not after)
        (changed if is_notable else same).append(TestView(name=name, before=before, after=after))
    return CheckView(**copy_shared(pair, CheckView), changed=tuple(changed), same=tuple(same))


def _read_tests(folder: Path, record: Evidence | None) -> dict[str, TestOutcome]:
    """Return the outcomes that a record names, from a file of the task's folder and no other."""
    ids = record.tests.ids_file if record and record.tests else None
    if record is None or ids is None or not _IDS.fullmatch(ids) or not _is_inside(folder, folder / ids):
        return {}
    try:
        return read_outcomes(folder, record)
    except (OSError, ValueError):
        return {}


def _is_inside(folder: Path, place: Path) -> bool:
    """Return whether a place is a plain file of the folder; a link could lead to any file of the user."""
    return place.is_file() and place.resolve() == folder.resolve() / place.relative_to(folder)


def read_output_end(folder: Path, evidence_id: str, most: int = _OUTPUT_LINES) -> OutputView | None:
    place = folder / EVIDENCE / f"{Path(evidence_id).name}.out"
    if not _is_inside(folder, place):
        return None
    with place.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MOST_BYTES))
        text = file.read().decode("utf-8", "replace")
    printed = redact_text(strip_colours(text)).splitlines()
    return OutputView(lines=tuple(printed[-most:]), left_out=max(0, len(printed) - most))
