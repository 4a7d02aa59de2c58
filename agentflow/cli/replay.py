"""`replay`: runs a saved task again in a copy, from its recorded replies, and compares."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import anyio
import typer

from agentflow.api.boundary import TaskRequest
from agentflow.api.decisions import explain_foreign
from agentflow.api.wiring import Setup, assemble, make_task, prepare
from agentflow.api.worktree import open_home
from agentflow.cli.arguments import FOLDER, JSON
from agentflow.cli.printing import tell_result
from agentflow.cli.tasks import find_task_folder
from agentflow.core.errors import Exit, StateError
from agentflow.core.events import PersonSaid, StateChanged, StoredEvent, TaskEnded, TaskStarted
from agentflow.core.pending import Consent
from agentflow.core.record import Record, encode, to_builtins
from agentflow.core.task import ChecksBeside, Status, TaskState
from agentflow.model.scripted import find_first_difference, normalize_recording
from agentflow.parse import fit
from agentflow.store.bundle import open_task
from agentflow.store.journal import read_messages
from agentflow.store.reading import TASKS, fold_state, load_events
from agentflow.store.tasks import TaskStore
from agentflow.workflow.gates import go_on, record_answer
from agentflow.workflow.run import run_phases
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.working_copy import lay_out, share_environments

_CUT = (Status.CANCELLED, Status.ERROR)
_IGNORED = frozenset(
    {
        *("Warned", "Signalled", "Retried", "Searched", "RepairTried", "Answered", "StateChanged"),
        *("Asked", "CheckStarted", "TestRunsLong", "Probing", "Probed", "TaskUndone"),
    }
)
"""Events about the machine, the person and the store, not about what the task did.

Checks that run at once start in any order; their results are told in the order of the checks. A request
that got no reply is made again when the task is resumed, and counts as a turn.
"""
_BEGINNINGS = frozenset({"TaskStarted", "PhaseStarted", "RunStarted", "ToolStarted"})
"""Events that a resumed task has again where it goes on with what was cut off."""
_NOTHING = '{"type":"nothing"}'
_NAMING = ("phase", "role", "tool", "check")
"""Keys that identify an event among others of its type."""
_WIDE = 600
_VOLATILE = (
    *("seconds", "turn", "turns", "files", "report", "model", "sandbox", "gaps"),
    *("from_tokens", "to_tokens"),  # as long as paths are
    "runs",  # hashes of files with all of these
)
"""Keys that differ between two runs of one task."""


def replay(
    task_id: str | None = typer.Argument(
        None, metavar="TASK|FILE", help="A task, or a file that `export` wrote; the newest by default."
    ),
    json: bool = JSON,
    folder: Path = FOLDER,
) -> int:
    """Run a task again from its recorded model replies and compare.

    It runs in a copy, without a model or a network. Exit code 0 means the same requests led to the same
    verdict; 1 means they did not, and the first difference is shown.
    """
    git = open_home(folder, task_id)
    if task_id is None or not Path(task_id).is_file():
        found = _replay(git, find_task_folder(git.root, task_id))
    else:
        with open_task(git.root, task_id) as path:
            found = _replay(git, path)
    same = f"the same: {found.events} events, {found.status} (exit {found.exit_code})"
    tell_result(found, (f"differs: {found.difference}" if found.difference else same,), json=json)
    return Exit.NOT_VERIFIED if found.difference else Exit.VERIFIED


class ReplayResult(Record):
    """The result of a replay."""

    task_id: str
    status: Status
    exit_code: int
    events: int
    difference: str = ""
    """The first difference from the recorded task, or empty."""


def _replay(git: Git, path: Path) -> ReplayResult:
    happened = tuple(load_events(path))
    task = fold_state(path, happened)
    ends = _list_ends(happened)
    if task.base_tree is None or not ends or ends[-1] in (None, Status.SUSPENDED, *_CUT):
        raise StateError(
            "only a task that ran to its end can be replayed", hint="agentflow log shows where it stopped"
        )
    if not git.has_tree(task.start_tree or task.base_tree):
        raise StateError(
            "this repository does not have the files that the task began with",
            hint="replay it in a clone that has the commit",
        )
    with _copy_repository(git, path, task.start_tree or task.base_tree) as root:
        request = TaskRequest(
            text=task.task,
            model=f"replay:{path.name}",
            no_sandbox=task.sandbox == "none" and not explain_foreign(git, path),
        )
        setup = prepare(root, request)
        setup = setup.replace(sandbox=share_environments(setup.sandbox, git.root))
        store = TaskStore.create(root, _begin_again(setup, happened, task))
        ended = _run(setup, store, task, _recall_messages(path))
        now = tuple(load_events(store.folder))
        difference = _find_difference(happened, now, (str(git.root), str(root)))
    assert ended.ending is not None
    same = (ended.status, ended.ending.exit_code) == (task.status, task.ending and task.ending.exit_code)
    if not difference and not same:
        difference = f"it ended {ended.status} in place of {task.status}"
    if difference and any(end is None or end in _CUT for end in ends[:-1]):
        difference += (
            "; this task was stopped and resumed, and what was cut off then runs to its end in a replay"
        )
    return ReplayResult(
        task_id=task.task_id,
        status=ended.status,
        exit_code=ended.ending.exit_code,
        events=len(happened),
        difference=difference,
    )


def _list_ends(happened: tuple[StoredEvent, ...]) -> list[Status | None]:
    """Return how each process that worked on a task ended its work, None where it was killed."""
    marks = [one.event for one in happened if isinstance(one.event, TaskStarted | TaskEnded)]
    return [
        following.status if isinstance(following, TaskEnded) else None
        for one, following in zip_longest(marks, marks[1:])
        if isinstance(one, TaskStarted)
    ]


def _begin_again(setup: Setup, happened: tuple[StoredEvent, ...], recorded: TaskState) -> TaskState:
    first = next(one.event.changed for one in happened if isinstance(one.event, StateChanged))
    fresh = make_task(setup, first["task"], first["max_iterations"])
    keys = ("task_id", "started_at", "model", "sandbox", "gaps")
    found = recorded.first_try and recorded.first_try.replace(refused="")
    known = to_builtins(recorded.replace(first_try=found))
    then = {key: known[key] for key in ("surroundings", "instructions", "excerpts", "first_try")}
    return fit(TaskState, {**first, **{key: to_builtins(fresh)[key] for key in keys}, **then})


def _run(
    setup: Setup, store: TaskStore, recorded: TaskState, recall: Callable[[int, int], tuple[str, ...]]
) -> TaskState:
    crew = assemble(setup, store, Consent.SUSPEND).replace(recall_messages=recall)
    crew = crew.replace(grace=0 if isinstance(recorded.beside, ChecksBeside) else None)
    task = anyio.run(run_phases, crew, store.task)
    while task.status is Status.SUSPENDED:
        known = [item for item in task.pending if item.id in recorded.answers]
        if task.pending and not known:
            break
        for item in known:
            task = record_answer(task, item, recorded.answers[item.id])
        task = anyio.run(run_phases, crew, go_on(task, is_told=True))
    return task


def _recall_messages(folder: Path) -> Callable[[int, int], tuple[str, ...]]:
    happened = (one.event for one in load_events(folder))
    places = [(event.run, event.turn) for event in happened if isinstance(event, PersonSaid)]
    messages = tuple(zip(places, read_messages(folder), strict=False))
    return lambda run, turns: tuple(text for place, text in messages if place == (run, turns))


@contextmanager
def _copy_repository(git: Git, path: Path, tree: str) -> Iterator[Path]:
    with lay_out(git, tree) as stage:
        root = stage.view.place
        (root / ".git/info").mkdir(exist_ok=True)
        (root / ".git/info/exclude").write_text("/.venv\n/venv\n/env\n/node_modules\n", "utf-8")
        open_repository(root).call("read-tree", tree)
        shutil.copytree(path, root / TASKS / path.name)
        yield root


def _find_difference(
    then: tuple[StoredEvent, ...], now: tuple[StoredEvent, ...], roots: tuple[str, ...]
) -> str:
    one, other = _split_by_run(then, roots), _split_by_run(now, roots)
    for run in sorted({*one, *other}):
        pairs = zip_longest(one.get(run, []), other.get(run, []), fillvalue=_NOTHING)
        for a, b in pairs:
            if a != b:
                where = f"run {run}" if run else "the task"
                return f"{where}: {_describe_difference(json.loads(a), json.loads(b))}"
    return ""


def _describe_difference(then: dict[str, Any], now: dict[str, Any]) -> str:
    if then["type"] != now["type"]:
        return f"{now['type']} in place of {then['type']}"
    before, after = dict(_flatten(then)), dict(_flatten(now))
    parts = ((key, before.get(key, "nothing"), after.get(key, "nothing")) for key in {**before, **after})
    said = (f"{key}: {find_first_difference(one, other, _WIDE)}" for key, one, other in parts if one != other)
    return f"{' '.join((now['type'], *(str(now[key]) for key in _NAMING if key in now)))}: {'; '.join(said)}"


def _flatten(told: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in told.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", str(value)


def _split_by_run(happened: tuple[StoredEvent, ...], roots: tuple[str, ...]) -> dict[int, list[str]]:
    """Return the events of each run in their order, those of the task itself under 0.

    Calls of one turn that only read are made at once and end in any order: they stand by their ids.
    However often a task was stopped, it begins once and ends once, and so does each part of it.
    """
    streams: dict[int, list[tuple[str, str]]] = {}
    last = max((one.seq for one in happened if isinstance(one.event, TaskEnded)), default=None)
    for one in happened:
        kind = type(one.event).__name__
        if kind in _IGNORED or (kind == "TaskEnded" and one.seq != last):
            continue
        lasting = {key: value for key, value in to_builtins(one.event).items() if key not in _VOLATILE}
        told = {"type": kind, **lasting}
        text = normalize_recording(encode(told).decode(), roots)
        stream = streams.setdefault(told.get("run", 0), [])
        row = (told.get("call_id", ""), text)
        if kind not in _BEGINNINGS or row not in stream:
            stream.append(row)
    ordered: dict[int, list[str]] = {}
    for run, stream in streams.items():
        for is_call, stretch in groupby(stream, key=lambda row: row[0] != ""):
            rows = list(stretch)
            if is_call:
                rows.sort(key=itemgetter(0))
            ordered.setdefault(run, []).extend(text for _, text in rows)
    return ordered
