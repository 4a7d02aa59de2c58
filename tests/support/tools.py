"""Tools by their names: those that are shipped, and stand-ins with the inputs of public ones."""

from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.tools.registry import make_standard_toolbox
from agentflow.tools.web import WEB_FETCH, WEB_SEARCH

_SHIPPED = {tool.name: tool for tool in (*make_standard_toolbox().tools, WEB_FETCH, WEB_SEARCH)}
_ELSEWHERE = {
    "Agent": (Effect.EXECUTE, {"subagent_type": Subject.NAME}),
    "Skill": (Effect.READ, {"skill": Subject.NAME}),
    "NotebookEdit": (Effect.WRITE, {"notebook_path": Subject.PATH}),
}


class Nothing(Record):
    pass


def tool_named(name: str) -> Tool:
    """Return a shipped tool, or one that only rules and hooks look at."""
    effect, subjects = _ELSEWHERE.get(name, (Effect.READ, {}))
    made = Tool(
        name=name, category=Category.REPO, effect=effect, input=Nothing, call=_unused, subjects=subjects
    )
    return _SHIPPED.get(name, made)


def _unused(given: Nothing, context: ToolContext) -> Output:
    return Output(content=f"{given}{context}")
