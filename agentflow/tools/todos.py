"""TodoWrite and TodoUpdate: the steps of a task, under rules that code enforces."""

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Annotated

from msgspec import Meta

from agentflow.core.errors import InvalidInput
from agentflow.core.ports import Ledger
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import Todo, TodoStatus
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.parse import fit

MAX_TODOS = 20


class TodoItem(Record):
    status: TodoStatus
    content: str | None = None
    title: Annotated[str | None, Meta(extra_json_schema={"deprecated": True})] = None
    """The same as `content`."""
    id: Annotated[int, Meta(ge=1)] | None = None
    """Numbered from 1 if not given."""
    evidence: Annotated[str | None, Meta(description="Id that proves it.")] = None
    activeForm: Annotated[str | None, Meta(extra_json_schema={"deprecated": True})] = None  # noqa: N815
    """A public key that has no meaning here."""


class TodoInput(Record):
    todos: tuple[TodoItem, ...]


class TodoChange(Record):
    status: TodoStatus
    evidence: str | None = None


def todo_write(wanted: TodoInput, context: ToolContext) -> Output:
    """Replace the whole list. Keep exactly one item in_progress; completed items need an evidence id."""
    todos = _number_todos(wanted.todos)
    _require_valid(todos, context.ledger)
    return _to_output(todos, f"{len(todos)} todo{'s' * (len(todos) != 1)} noted")


TODO_WRITE = Tool(
    name="TodoWrite", category=Category.STATE, effect=Effect.WRITE, input=TodoInput, call=todo_write
)


def make_todo_update(saved: tuple[Todo, ...]) -> Tool:
    """Return the tool that changes the current one of these todos, and no other."""

    def update(wanted: TodoChange, context: ToolContext) -> Output:
        """End the current todo: completed, with the evidence id of a command, or blocked; the next begins."""
        todos = fit(tuple[Todo, ...], context.run.changes.get("todos", to_builtins(saved)))
        current = next((todo for todo in todos if todo.status is TodoStatus.IN_PROGRESS), None)
        if current is None:
            raise InvalidInput("no todo is in progress")
        if wanted.status not in (TodoStatus.COMPLETED, TodoStatus.BLOCKED):
            raise InvalidInput(f"todo {current.id} is in progress; only completed or blocked ends it")
        ended = current.replace(status=wanted.status, evidence=wanted.evidence)
        following = next((todo for todo in todos if todo.status is TodoStatus.PENDING), None)
        begun = following.replace(status=TodoStatus.IN_PROGRESS) if following else None
        newer = {todo.id: todo for todo in (ended, begun) if todo}
        after = [newer.get(todo.id, todo) for todo in todos]
        _require_valid(after, context.ledger)
        then = f"todo {begun.id} is in progress" if begun else "no todo is left"
        return _to_output(after, f"todo {current.id} {wanted.status}; {then}")

    return Tool(
        name="TodoUpdate",
        category=Category.STATE,
        effect=Effect.WRITE,
        input=TodoChange,
        call=update,
        granted=True,
    )


def _to_output(todos: list[Todo], said: str) -> Output:
    return Output(content=said, changes={"todos": [to_builtins(todo) for todo in todos]})


def _number_todos(items: tuple[TodoItem, ...]) -> list[Todo]:
    taken = {item.id for item in items}
    free = (number for number in count(1) if number not in taken)
    todos = list[Todo]()
    for place, item in enumerate(items):
        title = (item.title or item.content or "").strip()
        if not title:
            raise InvalidInput(f"todos[{place}]: title is missing")
        number = next(free) if item.id is None else item.id
        todos.append(Todo(id=number, title=title, status=item.status, evidence=item.evidence))
    return todos


def _require_valid(todos: list[Todo], ledger: Ledger) -> None:
    if problems := list(_find_problems(todos, ledger)):
        raise InvalidInput("; ".join(problems))


def _find_problems(todos: list[Todo], ledger: Ledger) -> Iterator[str]:
    if len(todos) > MAX_TODOS:
        yield f"at most {MAX_TODOS} todos, not {len(todos)}"
    for number, times in Counter(todo.id for todo in todos).items():
        if times > 1:
            yield f"id {number} stands {times} times"
    current = [str(todo.id) for todo in todos if todo.status is TodoStatus.IN_PROGRESS]
    if len(current) > 1:
        yield f"only one todo may be in_progress, not {', '.join(current)}"
    pending = [todo.id for todo in todos if todo.status is TodoStatus.PENDING]
    if pending and not current:
        yield f"work remains, so one todo has to be in_progress, such as {pending[0]}"
    for todo in todos:
        if todo.evidence is not None and ledger.find(todo.evidence) is None:
            yield f"todo {todo.id}: there is no evidence {todo.evidence}"
        elif todo.status is TodoStatus.COMPLETED and todo.evidence is None:
            yield f"todo {todo.id}: completed needs the id of its evidence"
