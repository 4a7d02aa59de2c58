"""What a task leaves in memory as it ends, and what it is given as it begins."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from agentflow.core.errors import AgentflowError
from agentflow.core.events import Event, MemoryRecalled, Warned
from agentflow.core.evidence import Evidence, Side
from agentflow.core.messages import ToolCall
from agentflow.core.run import CallAnswered, ReplyReceived
from agentflow.core.task import TaskState
from agentflow.memory.entry import PERSON, EntryKind, MemoryEntry
from agentflow.memory.place import look_into_memory, open_memory
from agentflow.memory.recall import recall_entries
from agentflow.process import make_timestamp
from agentflow.redact import list_some, redact_prose, to_one_line
from agentflow.store.journal import read_run_entries
from agentflow.store.reading import read_evidence
from agentflow.tools.remember import REMEMBER
from agentflow.wording import describe_all
from agentflow.workspace.git import Git

_CALL = b'"name":"%s","input":' % REMEMBER.name.encode()
"""Stands in a run's file where the tool was called, not where it was offered."""
_LINE = 300
_MOST_FINDINGS = 5


def recall_for_task(task: TaskState, git: Git | None, emit: Callable[[Event], None]) -> TaskState:
    """Return a new task with what it is given of earlier ones; a memory that fails stops no task."""
    if not task.options.remembers or task.known.recalled or git is None:
        return task
    try:
        with look_into_memory(git) as memory:
            found = recall_entries(memory, task) if memory else ()
    except (AgentflowError, OSError) as error:
        emit(Warned(message=f"nothing is recalled: {error}"))
        return task
    if found:
        kinds = Counter(one.kind for one in found)
        emit(MemoryRecalled(**{f"{kind}s": kinds[kind] for kind in EntryKind}))
    if memory and memory.fault:
        emit(Warned(message=f"recalled by words alone: {memory.fault}"))
    return task.replace(recalled=found)


def keep_task(task: TaskState, folder: Path, git: Git | None, emit: Callable[[Event], None]) -> None:
    """Keep what an ended task was about, how it ended and what was learnt, in place of an earlier end."""
    if not task.options.remembers or git is None:
        return
    try:
        evidence = {one.id: one for one in read_evidence(folder)}
        learnings = _list_learnings(task, folder, evidence)
        with open_memory(git) as memory:
            memory.add((*_list_messages(task), _describe_task(task), *learnings))
            memory.weigh(task.task_id, _find_newest_ends(evidence))
    except (AgentflowError, OSError) as error:
        emit(Warned(message=f"this task is not remembered: {error}"))


def _find_newest_ends(evidence: dict[str, Evidence]) -> dict[str, tuple[str, int]]:
    """Return the newest end of each command on code and checks of one time, by the command."""
    ended = (one for one in evidence.values() if one.code is one.surface and not one.timed_out)
    return {one.command: (one.id, one.exit_code) for one in ended if one.exit_code is not None}


def _list_messages(task: TaskState) -> Iterator[MemoryEntry]:
    """Yield the words of the task, and what the person said and answered; an option has a role's words."""
    said = ((str(number), each.text) for number, each in enumerate(task.session.said, 1))
    answers = task.waiting.answers.items()
    answered = ((name, one.text) for name, one in answers if one.is_own and not one.by)
    for name, text in (("0", task.title), *said, *answered):
        yield MemoryEntry(
            kind=EntryKind.MESSAGE,
            text=text,
            at=task.started_at if name == "0" else make_timestamp(),
            by=task.options.asked_by if name == "0" and task.options.asked_by else PERSON,
            key=f"message:{task.task_id}:{name}",
            task=task.task_id,
        )


def _describe_task(task: TaskState) -> MemoryEntry:
    """Return what a task was about: a line each, so that those that fit a later task can be chosen."""
    change, findings = task.change, task.findings
    goal = task.intent.goal if task.intent.goal not in ("", task.title) else ""
    found = findings.findings[:_MOST_FINDINGS] if findings else ()
    ended = task.ending.reason if task.ending else ""
    answers = (one for one in task.waiting.answers.values() if one.question)
    learnt = _tell(
        ("goal", goal),
        *(("answered", f"{one.text!r} to {one.question!r}") for one in answers),
        ("what was done", change.summary if change else ""),
        ("what was found", findings.summary if findings else ""),
        *((f"in {one.place}", one.claim) for one in found),
        *((f"attempt {one.iteration} failed", "; ".join(describe_all(one.reasons))) for one in task.failures),
    )
    files = list_some(change.files, 10) if change else ""
    facts = _tell((f"ended {task.status.replace('_', ' ')}", ended), ("changed", files))
    return MemoryEntry(
        kind=EntryKind.TASK,
        text="\n".join((to_one_line(task.title, _LINE), *facts, *learnt)),
        gist="\n".join(learnt),
        at=task.started_at,
        by=task.options.asked_by or PERSON,
        key=f"task:{task.task_id}",
        task=task.task_id,
    )


def _tell(*lines: tuple[str, str]) -> tuple[str, ...]:
    return tuple(f"{title}: {to_one_line(text, _LINE)}" for title, text in lines if text)


def _list_learnings(task: TaskState, folder: Path, evidence: dict[str, Evidence]) -> Iterator[MemoryEntry]:
    """Yield what roles kept by the tool, those compacted away included; a call that failed keeps nothing."""
    for path in sorted((folder / "runs").glob("*.jsonl")):
        role, calls = path.stem.partition("-")[2], dict[str, dict[str, Any]]()
        for entry in read_run_entries(path) if _CALL in path.read_bytes() else ():
            if isinstance(entry, ReplyReceived):
                made = (part for part in entry.reply.parts if isinstance(part, ToolCall))
                calls |= {call.id: call.input for call in made if call.name == REMEMBER.name}
            elif isinstance(entry, CallAnswered) and not entry.result.is_error:
                given = calls.get(entry.result.call_id, {})
                if shown := evidence.get(str(given.get("evidence"))):
                    by = f"role {role}" if role == PERSON else role
                    yield make_learning(str(given["text"]), by, task.task_id, shown)


def make_learning(text: str, by: str, task: str = "", shown: Evidence | None = None) -> MemoryEntry:
    """Return a learning with the command that showed it, if any.

    How the checks ended before a change is cited, but compared with nothing: the task is about to change it.
    """
    compared = shown if shown and shown.code is Side.FINAL else None
    said = redact_prose(" ".join(text.split()))
    digest = sha256(said.encode("utf-8", "replace")).hexdigest()[:16]
    return MemoryEntry(
        kind=EntryKind.LEARNING,
        text=said,
        at=make_timestamp(),
        by=by,
        key=f"learning:{task}:{digest}",
        task=task,
        evidence=shown.id if shown else "",
        command=compared.command if compared else "",
        exit_code=compared.exit_code if compared else None,
    )


def reject_task(task_id: str, git: Git, why: str) -> None:
    """Set aside what a task left; a memory that fails stops nothing."""
    with suppress(AgentflowError, OSError), look_into_memory(git) as memory:
        if memory:
            memory.reject(task_id, why)
