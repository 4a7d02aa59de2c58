"""The todos of a task, shown to whoever works on them, with the tool that updates the current one."""

from agentflow.compose.channels import ContextChannel, ToolChannel
from agentflow.core.record import Record
from agentflow.core.task import Todo
from agentflow.loop.context import prompt_text
from agentflow.redact import one_line
from agentflow.tools.notes import todo_update

PLACE = -50
"""Below the skills: it is different in each run."""


class CurrentTodo(Record):
    """Lets a role that did not make the list say how its current item stands."""

    todos: tuple[Todo, ...]

    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(todo_update(self.todos))

    def install_context(self, context: ContextChannel) -> None:
        lines = "\n".join(f"{todo.id}. {one_line(todo.title, 200)} ({todo.status})" for todo in self.todos)
        context.add(prompt_text("todos.md").format(todos=lines), priority=PLACE)
