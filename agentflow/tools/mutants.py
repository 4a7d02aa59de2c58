"""Mutants: the changed lines that no test would notice."""

from agentflow.core.errors import ConfigError, NotAllowed
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext


class MutantsInput(Record):
    path: str | None = None


def try_mutants_here(wanted: MutantsInput, context: ToolContext) -> Output:
    """List changed lines that no test notices. `a.py:3  x > 0 → true`: test x = 0."""
    if context.shell.mutate is None:
        raise NotAllowed("Mutants is not there for a step that runs beside others")
    path = context.workspace.to_relative(wanted.path) if wanted.path else ""
    try:
        return Output(content=context.shell.mutate("" if path == "." else path, context.cancelled))
    except ConfigError as error:
        raise NotAllowed(f"no mutant was tried: {error}") from None


TRY_MUTANTS = Tool(
    name="Mutants",
    category=Category.SHELL,
    effect=Effect.EXECUTE,
    input=MutantsInput,
    call=try_mutants_here,
    subjects={"path": Subject.TEXT},
    reads=lambda _: True,  # whatever the tests write, they write into a copy
)
