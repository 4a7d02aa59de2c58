"""What every role is told of the place it works in, looked at once as a task begins."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from agentflow.checks.interpreter import choose
from agentflow.core.evidence import RED
from agentflow.core.task import Excerpt, TaskState
from agentflow.library.instructions import load_instructions
from agentflow.redact import one_line
from agentflow.tools.excerpts import block_of, short_file
from agentflow.verdict.targets import files_of
from agentflow.workflow.angles import languages
from agentflow.workflow.crew import Crew

MAX_NAMES = 30
MAX_CHANGES = 8
MAX_FILES = 3
MAX_TESTS = 3
_BRANCH = "ref: refs/heads/"
_WORD = re.compile(r"[\w./-]*\w")


def surveyed(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with its surroundings, the repository's instructions, and the files that it names."""
    if task.surroundings or task.base_tree is None:
        return task
    files = crew.git.paths(task.base_tree)
    return task.replace(
        surroundings=tuple(_lines(crew, task, files)),
        instructions=load_instructions(crew.workspace, files),
        excerpts=tuple(_excerpts(crew, task, files)),
    )


def _lines(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Iterator[str]:
    """Yield what stays true for the whole task."""
    system = os.uname()
    day, machine = task.started_at[:10], f"{system.sysname} {system.machine}"
    yield f"repository: {crew.git.root}, {_branch(crew.git.folders)}, {day}, {machine}"
    top = sorted({f"{head}/" if rest else head for head, _, rest in (path.partition("/") for path in files)})
    yield f"top level: {_listed(top, MAX_NAMES, ' ') or 'empty'}"
    yield f"not committed: {_status(crew, task)}"
    if found := languages(files):
        python = choose(crew.checking.repository(files)).command if "Python" in found else ""
        yield f"languages: {', '.join(found)}" + (f"; interpreter: `{python}`" if python else "")


def _branch(folders: tuple[Path, ...]) -> str:
    """Return which branch is checked out, as git's own file says."""
    head = ""
    with suppress(OSError, IndexError):
        head = (folders[0] / "HEAD").read_text("utf-8", "replace").strip()
    return f"branch {head.removeprefix(_BRANCH)}" if head.startswith(_BRANCH) else f"at commit {head[:12]}"


def _status(crew: Crew, task: TaskState) -> str:
    if crew.git.head is None:
        return "everything, there is no commit yet"
    assert task.base_tree is not None
    changes = crew.git.changes(crew.git.head, task.base_tree)
    return _listed([f"{each.kind} {each.path}" for each in changes], MAX_CHANGES, ", ") or "nothing"


def _listed(names: list[str], most: int, between: str) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(one_line(name) for name in names[:most]) + more


def _excerpts(crew: Crew, task: TaskState, files: tuple[str, ...]) -> Iterator[Excerpt]:
    """Yield the files that the task names, and the tests that fail before it."""
    named = tuple(islice(_named(f"{task.task}\n{task.intent.goal}", files), MAX_FILES))
    for path in named:
        yield short_file(crew.workspace, path) or Excerpt(path=path, first=1, lines=())
    runs = crew.checking.runs(task.baseline)
    printed = "\n".join(run.tail for run in runs)
    failing = sorted({test for run in runs for test in run.ids(*RED)})[:MAX_TESTS]
    for test, path in files_of(files, failing).items():
        name = re.split(r"::|\.", test.partition("[")[0])[-1]
        block = block_of(crew.workspace, path, name) if path in files and path not in named else None
        if block and not all(line.strip() in printed for line in block.lines):
            yield block


def _named(text: str, files: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that a text names by their path, or by a name that only one of them has."""
    words = dict.fromkeys(_WORD.findall(text))
    by_name: dict[str, list[str]] = {}
    for path in files:
        by_name.setdefault(PurePosixPath(path).name, []).append(path)
    known = frozenset(files)
    for word in words:
        path = word.removeprefix("./")
        alike = by_name.get(path, [])
        if path in known:
            yield path
        elif len(alike) == 1 and "." in path:
            yield alike[0]
