"""BashOutput and KillShell, and the start of a command beside the role."""

from pathlib import Path

from agentflow.core.errors import NotAllowed
from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.core.run import Run
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.redact import strip_colours

_SECONDS = 86_400.0
_BASH = "Bash"


class BashOutputInput(Record):
    bash_id: str


class KillShellInput(Record):
    shell_id: str


def start_in_background(command: Command, sink: Path, context: ToolContext) -> Output:
    """Start a command beside the role. Raises NotAllowed where that cannot be."""
    if context.shell.background is None:
        raise NotAllowed("no command runs in the background of a step that runs beside others")
    name = context.shell.background.start(context.shell.runner, command.replace(timeout=_SECONDS), sink)
    return Output(content=f"{name} runs on a copy of the files as they are now\n{_read(name, context)}")


def read_background(wanted: BashOutputInput, context: ToolContext) -> Output:
    """Read what a background command printed since you last read it."""
    return Output(content=_read(wanted.bash_id, context))


def kill_shell(wanted: KillShellInput, context: ToolContext) -> Output:
    """End a background command with all it started."""
    if context.shell.background is not None:
        context.shell.background.end(wanted.shell_id)
    return Output(content=_read(wanted.shell_id, context))


def _read(name: str, context: ToolContext) -> str:
    if context.shell.background is None:
        raise NotAllowed("no command runs in the background here")
    printed, state = context.shell.background.read(name)
    return f"{strip_colours(printed)}[{name} {state}]"


def has_begun_command(run: Run) -> bool:
    """Return whether a run has ever started a command in the background."""
    calls = (call for message in run.all_messages for call in message.calls)
    return any(call.name == _BASH and call.input.get("run_in_background") is True for call in calls)


BASH_OUTPUT = Tool(
    name="BashOutput",
    category=Category.SHELL,
    effect=Effect.READ,
    input=BashOutputInput,
    call=read_background,
    subjects={"bash_id": Subject.TEXT},
    granted=True,
)
KILL_SHELL = Tool(
    name="KillShell",
    category=Category.STATE,
    effect=Effect.WRITE,
    input=KillShellInput,
    call=kill_shell,
    subjects={"shell_id": Subject.TEXT},
    granted=True,
)
BACKGROUND_TOOLS = (BASH_OUTPUT, KILL_SHELL)
"""They are offered once a command runs in the background."""
