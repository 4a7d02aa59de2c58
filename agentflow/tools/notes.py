"""TodoWrite."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Annotated

from msgspec import Meta

from agentflow.core.errors import InvalidInput
from agentflow.core.record import Record, plain
from agentflow.core.task import Todo, TodoStatus
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext


class TodoItem(Record):
    status: TodoStatus
    content: str | None = None
    title: Annotated[str | None, Meta(extra_json_schema={"deprecated": True})] = None
    """The same as `content`."""
    id: Annotated[int, Meta(ge=1, description="Numbered from 1 if not given.")] | None = None
    evidence: Annotated[str | None, Meta(description="Id of the record that proves it.")] = None
    activeForm: Annotated[str | None, Meta(extra_json_schema={"deprecated": True})] = None  # noqa: N815
    """A public key that has no meaning here."""


class TodoInput(Record):
    todos: tuple[TodoItem, ...]


def todo_write(wanted: TodoInput, context: ToolContext) -> Output:
    """Replace the whole list of steps; at most one is in progress, a completed one names its evidence."""
    todos = _numbered(wanted.todos)
    if problems := [*_clashes(todos), *_unproven(todos, context)]:
        raise InvalidInput("; ".join(problems))
    noted = f"{len(todos)} todo{'s' * (len(todos) != 1)} noted"
    return Output(content=noted, changes={"todos": [plain(todo) for todo in todos]})


TODO_WRITE = Tool(
    name="TodoWrite", category=Category.STATE, effect=Effect.WRITE, input=TodoInput, call=todo_write
)


def _numbered(items: tuple[TodoItem, ...]) -> list[Todo]:
    taken = {item.id for item in items}
    free = (number for number in count(1) if number not in taken)
    return [
        Todo(
            id=next(free) if item.id is None else item.id,
            title=_title(item, place),
            status=item.status,
            evidence=item.evidence,
        )
        for place, item in enumerate(items)
    ]


def _title(item: TodoItem, place: int) -> str:
    title = (item.title or item.content or "").strip()
    if not title:
        raise InvalidInput(f"todos[{place}]: title is missing")
    return title


def _clashes(todos: list[Todo]) -> Iterator[str]:
    for number, times in Counter(todo.id for todo in todos).items():
        if times > 1:
            yield f"id {number} stands {times} times"
    current = [str(todo.id) for todo in todos if todo.status is TodoStatus.IN_PROGRESS]
    if len(current) > 1:
        yield f"only one todo may be in_progress, not {', '.join(current)}"


def _unproven(todos: list[Todo], context: ToolContext) -> Iterator[str]:
    for todo in todos:
        if todo.evidence is not None and context.ledger.find(todo.evidence) is None:
            yield f"todo {todo.id}: there is no evidence {todo.evidence}"
        elif todo.status is TodoStatus.COMPLETED and todo.evidence is None:
            yield f"todo {todo.id}: completed needs the id of its evidence"
