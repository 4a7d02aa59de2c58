"""The tasks of a batch, read from any form of its file; a mistake is one message with file, line and key."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.record import Record, to_builtins
from agentflow.core.test_ids import get_test_file
from agentflow.frontmatter import find_line, read_yaml
from agentflow.parse import decode, decode_or_none, expand_home, has_null, parse
from agentflow.settings import ProveRounds
from agentflow.workspace.git_fetch import is_address

_MAX_TEXT = 100_000
_Id = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]{0,79})?$")]
_Text = Annotated[str, Meta(min_length=1, max_length=_MAX_TEXT)]
_Dollars = Annotated[float, Meta(ge=0)]
_Number = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(gt=0)]
SCRIPT_PREFIX = "script:"


class HiddenCheck(Record):
    """Decides after the verdict, on a copy that the task never sees, whether the task is resolved."""

    command: _Text
    folder: str = ""
    """A folder beside the file of tasks, whose files are written over the final files."""
    files: dict[str, str] = {}
    patch: str = ""
    tests: tuple[str, ...] = ()
    """The ids of the tests that have to pass; without any, exit code 0 decides."""
    timeout: _Seconds = 600


class PlannedEdit(Record):
    """A text that is replaced in a file before the task begins, such as to plant a bug."""

    file: _Text
    old: _Text
    new: str


class BatchTask(Record):
    text: _Text
    repository: _Text
    """A git address, the path of a git repository, or a folder without one."""
    id: _Id = ""
    commit: str = ""
    """A commit, branch or tag; empty: the newest commit."""
    edits: tuple[PlannedEdit, ...] = ()
    group: str = ""
    model: str | None = None
    named_class: str = field(default="", name="class")
    max_iterations: _Number | None = None
    prove_rounds: ProveRounds | None = None
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
        text = path.read_text("utf-8-sig")
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
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found = decode_or_none(line)
                is_instance = isinstance(found, dict) and "instance_id" in found
                yield number, _to_task(line, path) if is_instance else decode(BatchTask, line, str(path))
            except InvalidFile as error:
                raise InvalidFile(str(path), error.problem, line=number) from None


def _find_item(text: str, number: int) -> int:
    return find_line(text, f"[{number}]") or 1


def _complete(path: Path, find: Callable[[int], int], tasks: tuple[BatchTask, ...]) -> Iterator[BatchTask]:
    above = path.absolute().parent
    width = max(4, len(str(len(tasks))))
    seen: set[str] = set()
    for number, task in enumerate(tasks):
        if has_null(to_builtins(task)):
            raise InvalidFile(str(path), "a text in it has a null character", line=find(number))
        name = task.id or f"{number + 1:0{width}}"
        if name in seen:
            raise InvalidFile(str(path), f"id: {name!r} is the id of an earlier task", line=find(number))
        seen.add(name)
        place = task.repository
        if not is_address(place):
            place = str((above / expand_home(place)).resolve())
            if not Path(place).is_dir():
                problem = f"repository: {task.repository} is neither a folder nor a git address"
                raise InvalidFile(str(path), problem, line=find(number))
        _require_places(path, partial(find, number), task)
        check = task.check
        if check is not None and check.folder:
            check = check.replace(folder=str(above / check.folder))
        yield task.replace(
            id=name,
            repository=place,
            model=locate_model(task.model, above),
            environment=str(above / task.environment) if task.environment else "",
            check=check,
        )


def _require_places(path: Path, find: Callable[[], int], task: BatchTask) -> None:
    named = [("edits", edit.file) for edit in task.edits]
    named += [("check.files", name) for name in (task.check.files if task.check else ())]
    if task.check is not None and not (path.absolute().parent / task.check.folder).is_dir():
        raise InvalidFile(str(path), f"check.folder: {task.check.folder} is not a folder", line=find())
    for key, name in named:
        parts = Path(name).parts
        if Path(name).is_absolute() or ".." in parts or not parts or re.match(r"(?i)\.git$", parts[0]):
            raise InvalidFile(str(path), f"{key}: {name!r} is not a file in the repository", line=find())


def locate_model(name: str | None, folder: Path) -> str | None:
    if name is None or not name.startswith(SCRIPT_PREFIX):
        return name
    return f"{SCRIPT_PREFIX}{folder.absolute() / name.removeprefix(SCRIPT_PREFIX)}"


_KEYS = ("instance_id", "repo", "base_commit", "problem_statement", "test_patch")
_SERVER = "https://github.com"


def _to_task(line: str, path: Path) -> BatchTask:
    fields = decode(dict[str, Any], line, str(path))
    for key in _KEYS:
        if not isinstance(fields.get(key), str) or not fields[key]:
            raise InvalidFile(str(path), f"{key}: an instance needs a text here")
    repo = fields["repo"]
    # a clone that somebody made is used; without one the repository is fetched
    here = path.absolute().parent / "repositories" / repo.replace("/", "__")
    tests = (*_read_ids(fields, "FAIL_TO_PASS", path), *_read_ids(fields, "PASS_TO_PASS", path))
    if not tests:
        raise InvalidFile(str(path), "FAIL_TO_PASS: an instance needs at least one test id")
    files = dict.fromkeys(map(get_test_file, tests))
    quoted = ["'" + file.replace("'", "'\\''") + "'" for file in files]
    return BatchTask(
        id=fields["instance_id"],
        group=repo,
        repository=str(here) if here.is_dir() else f"{_SERVER}/{repo}.git",
        commit=fields["base_commit"],
        text=fields["problem_statement"],
        environment=f"environments/{fields['instance_id']}",
        check=HiddenCheck(
            command="python -m pytest -q " + " ".join(quoted),
            patch=fields["test_patch"],
            tests=tests,
            timeout=1800,
        ),
    )


def _read_ids(fields: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    """Return test ids, which some files hold as a list and others as the text of one."""
    found = fields.get(key, ())
    return parse(
        tuple[str, ...], decode_or_none(found) if isinstance(found, str) else found, f"{path}: {key}"
    )
