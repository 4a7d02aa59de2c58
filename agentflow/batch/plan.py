"""The tasks of a batch, from JSON lines or a YAML list; a mistake is one message with file, line and key."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.record import Record
from agentflow.frontmatter import find_line, read_yaml
from agentflow.parse import decode
from agentflow.workspace.git_fetch import is_address

_MAX_TEXT = 100_000
_Id = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]{0,79})?$")]
_Text = Annotated[str, Meta(min_length=1, max_length=_MAX_TEXT)]
_Dollars = Annotated[float, Meta(ge=0)]
_Number = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(gt=0)]
_SCRIPT = "script:"


class HiddenCheck(Record):
    """What decides after the verdict, on a copy that the task never sees, whether the task is resolved."""

    command: _Text
    files: dict[str, str] = {}
    """Texts by path, written over the final files."""
    patch: str = ""
    """A diff that is applied to the final files."""
    tests: tuple[str, ...] = ()
    """The ids of the tests that have to pass; without any, exit code 0 decides."""
    timeout: _Seconds = 600


class PlannedEdit(Record):
    """A text that is replaced in a file before the task begins, such as to plant a bug."""

    file: _Text
    old: _Text
    new: str


class BatchTask(Record):
    """One task of a batch: where it works, what it is asked, how long it may take and how it is examined."""

    text: _Text
    repository: _Text
    """A git address, the path of a git repository, or a folder without one."""
    id: _Id = ""
    commit: str = ""
    """A commit, branch or tag; empty: the newest commit."""
    edits: tuple[PlannedEdit, ...] = ()
    group: str = ""
    """By what an evaluation sums up."""
    model: str | None = None
    named_class: str = field(default="", name="class")
    max_iterations: _Number | None = None
    max_cost: _Dollars | None = None
    max_tokens: _Number | None = None
    timeout: _Seconds | None = None
    review: bool | None = None
    environment: str = ""
    """A Python environment that the commands of the task use; empty: that of the repository."""
    check: HiddenCheck | None = None


def read_plan(path: Path) -> tuple[BatchTask, ...]:
    """Return the tasks of a file, each with its id. Raises ConfigError, or InvalidFile with line and key."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    find: Callable[[int], int]
    if path.suffix in (".yaml", ".yml"):
        tasks = read_yaml(tuple[BatchTask, ...], text, str(path))
        find = partial(_find_item, text)
    else:
        numbered = list(_read_lines(text, path))
        tasks, find = tuple(task for _, task in numbered), [number for number, _ in numbered].__getitem__
    if not tasks:
        raise InvalidFile(str(path), "there is no task in it", hint='a line is {"repository": …, "text": …}')
    return tuple(_complete(path, find, tasks))


def _read_lines(text: str, path: Path) -> Iterator[tuple[int, BatchTask]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, decode(BatchTask, line, str(path))
            except InvalidFile as error:
                raise InvalidFile(str(path), error.problem, line=number) from None


def _find_item(text: str, number: int) -> int:
    """Return the line on which an item of a YAML list begins."""
    return find_line(text, f"[{number}]") or 1


def _complete(path: Path, find: Callable[[int], int], tasks: tuple[BatchTask, ...]) -> Iterator[BatchTask]:
    """Yield the tasks with ids and absolute places. Raises InvalidFile."""
    above = path.absolute().parent
    width = max(4, len(str(len(tasks))))
    seen: set[str] = set()
    for number, task in enumerate(tasks):
        name = task.id or f"{number + 1:0{width}}"
        if name in seen:
            raise InvalidFile(str(path), f"id: {name!r} is the id of an earlier task", line=find(number))
        seen.add(name)
        place = task.repository
        if not is_address(place):
            place = str((above / Path(place).expanduser()).resolve())
            if not Path(place).is_dir():
                problem = f"repository: {task.repository} is no folder and no git address"
                raise InvalidFile(str(path), problem, line=find(number))
        _require_places(path, partial(find, number), task)
        yield task.replace(
            id=name,
            repository=place,
            model=locate_model(task.model, above),
            environment=str(above / task.environment) if task.environment else "",
        )


def _require_places(path: Path, find: Callable[[], int], task: BatchTask) -> None:
    """Raise InvalidFile for a file of a task that would lie outside its repository."""
    named = [("edits", edit.file) for edit in task.edits]
    named += [("check.files", name) for name in (task.check.files if task.check else ())]
    for key, name in named:
        parts = Path(name).parts
        if Path(name).is_absolute() or ".." in parts or not parts or re.match(r"(?i)\.git$", parts[0]):
            raise InvalidFile(str(path), f"{key}: {name!r} is no file in the repository", line=find())


def locate_model(name: str | None, folder: Path) -> str | None:
    """Return a model's name, the file of a script as an absolute path."""
    if name is None or not name.startswith(_SCRIPT):
        return name
    return f"{_SCRIPT}{folder.absolute() / name.removeprefix(_SCRIPT)}"
