"""Bash and RecallOutput: run a command; read again what was left out of a long result."""

import codecs
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agentflow.core.errors import InvalidInput, NotAllowed, ToolError
from agentflow.core.evidence import Command, Execution
from agentflow.core.fold import RECALL_TOOL
from agentflow.core.messages import ToolSpec
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.routing import MAY_RUN
from agentflow.core.run import Run
from agentflow.core.tool import Category, Effect, Output, Retention, Subject, Tool, ToolContext
from agentflow.redact import redact_text, strip_colours
from agentflow.sandbox.environment import find_shell

HEAD_SHARE = 4
"""What the model sees of a long output: the fourth part from its begin, the rest from its end."""
EXECUTION_TAIL = 4000
MAX_CALLS = 8
"""Of one run; whoever needs more asks for less with a command."""
PAGE = 16_000
MAX_PAGE = 30_000
_PIPE = re.compile(r"(?<![|>])\|(?!\|)")
_PIPES = """\
_agentflow_pipe() { local codes="$*"; (($# > 1)) && [[ ${codes//141/} == *[1-9]* ]] &&
  _agentflow_pipes[$codes]=1; }
declare -A _agentflow_pipes
trap '_agentflow_pipe "${PIPESTATUS[@]}"' DEBUG
trap '_agentflow_pipe "${PIPESTATUS[@]}"; for _agentflow in "${!_agentflow_pipes[@]}"; do
  echo "exit codes of a pipe: $_agentflow" >&2; done' EXIT
"""
_CALL_ID = re.compile(r"[\w-]{1,200}", re.ASCII)
_CONTINUATION = bytes(range(0x80, 0xC0))


class BashInput(Record):
    command: Annotated[str, Meta(min_length=1)]
    description: str = ""
    run_in_background: bool = False
    timeout: Annotated[int, Meta(ge=1, le=600_000, description="Milliseconds.")] = 120_000


class RecallInput(Record):
    """In bytes; every request carries its schema, so that it says no more than it must."""

    call_id: str
    offset: int = 0
    limit: int = PAGE


def describe_shell_scope(role: Role, tool: Tool) -> str:
    """Return what a role may run, for the model."""
    patterns = [rule.pattern for rule in role.list_rules(tool.name) if rule.pattern is not None]
    listed = f"You may run {', '.join(patterns)}, and programs that only read." if patterns else ""
    return (MAY_RUN.get(role.part or "") or listed) if role.origin == "bundled" else listed


def bash(wanted: BashInput, context: ToolContext) -> Output:
    """Run a command in a new bash at the root."""
    if "\0" in wanted.command:
        raise InvalidInput("command: holds a NUL character")
    # ids come from the model's side, and one such as ../x must not choose the file
    if not _CALL_ID.fullmatch(context.call_id):
        raise InvalidInput(f"{context.call_id!r} is not a call id")
    sink = context.shell.outputs / f"{context.call_id}.out"
    command = Command(
        argv=(find_shell(context.workspace.root), "-c", tell_pipes(wanted.command)),
        cwd=str(context.workspace.root),
        timeout=wanted.timeout / 1000,
        env={"PYTHONDONTWRITEBYTECODE": "1"},  # compiled code would become a part of the change
    )
    beside, runner = context.shell.background, context.shell.runner
    if wanted.run_in_background:
        return start_in_background(command, sink, context)
    runner = runner if beside is None else beside.share(runner)
    try:
        finished = runner.run(command, sink, context.cancelled)
    except OSError as error:
        raise ToolError(f"the command could not be started: {error.strerror}") from None
    most, kept = context.shell.shown_bytes, recall_note(context.run.head.tools, context.call_id)
    shown = _clip(sink, finished.bytes, most, kept)
    parts = (shown, *finished.notes, _describe_end(wanted, finished, context))
    return Output(
        content="\n".join(part for part in parts if part),
        execution=finished.replace(
            command=wanted.command,
            cwd=command.cwd,
            tail=finished.tail[-EXECUTION_TAIL:],
            sandbox=context.shell.runner.level,
        ),
        clipped=finished.bytes > most,
    )


def tell_pipes(command: str) -> str:
    """Return a command that also prints the exit codes of each pipe of which a part failed.

    A reader that closes early ends what writes with 141, which is no failure.
    """
    return f"{_PIPES}{command}" if _PIPE.search(command) else command


BASH = Tool(
    name="Bash",
    category=Category.SHELL,
    effect=Effect.EXECUTE,
    input=BashInput,
    call=bash,
    subjects={"command": Subject.COMMAND},
)


def _clip(sink: Path, size: int, most: int, kept: str) -> str:
    if size <= most:
        return strip_colours(sink.read_bytes().decode("utf-8", "replace")).removesuffix("\n")
    with sink.open("rb") as file:
        head = file.read(most // HEAD_SHARE)
        file.seek(len(head) - most, 2)
        tail = file.read()
    between = size - most
    note = f"[{between} bytes left out here; {kept}]"
    # neither end may show a character that the cut went through
    first = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    last = tail.lstrip(_CONTINUATION).decode("utf-8", "replace").removesuffix("\n")
    return strip_colours(f"{first}\n{note}\n{last}")


def _describe_end(wanted: BashInput, finished: Execution, context: ToolContext) -> str:
    if finished.timed_out:
        return f"timed out after {wanted.timeout / 1000:g} s and was killed with all it started"
    if finished.exit_code is not None:
        return f"exit {finished.exit_code}"
    return "stopped, because the run was" if context.cancelled() else "killed by a signal"


def recall_note(offered: Iterable[ToolSpec], call_id: str) -> str:
    """Return how the rest of a clipped result is read, or where it is kept for people."""
    if any(tool.name == RECALL_TOOL for tool in offered):
        return f"{RECALL_TOOL} with call_id {call_id} reads it"
    return f"the full text is kept under the call id {call_id}"


def recall(wanted: RecallInput, context: ToolContext) -> Output:
    """Read the rest of a truncated result."""
    if wanted.offset < 0 or not 1 <= wanted.limit <= MAX_PAGE:
        raise InvalidInput(f"offset is 0 or more, limit is 1 to {MAX_PAGE}")
    if context.call_id in context.run.recalls[MAX_CALLS:]:
        raise NotAllowed(f"{RECALL_TOOL} was used {MAX_CALLS} times; filter the output with a command")
    known = find_clipped_calls(context)
    if wanted.call_id not in known:
        listed = ", ".join(known) or "none so far"
        raise InvalidInput(
            f"no clipped result has the call id {wanted.call_id}; those that have one: {listed}"
        )
    path = context.shell.outputs / f"{wanted.call_id}.out"
    # as a whole: a secret that lies across two pages is one secret
    text = redact_text(path.read_bytes().decode("utf-8", "surrogateescape")).encode(
        "utf-8", "surrogateescape"
    )
    return Output(content=_page(text, wanted.offset, wanted.limit))


def find_clipped_calls(context: ToolContext) -> tuple[str, ...]:
    """Return the calls of this run whose full result is kept, also those that a summary stands for."""
    shown = (call.id for message in context.run.messages for call in message.calls)
    own = (path.stem for path in context.shell.outputs.glob(f"c{context.run.head.run}-*.out"))
    ids = (one for one in dict.fromkeys((*shown, *sorted(own))) if _CALL_ID.fullmatch(one))
    return tuple(one for one in ids if (context.shell.outputs / f"{one}.out").is_file())


def _page(text: bytes, offset: int, limit: int) -> str:
    if offset >= len(text):
        raise InvalidInput(f"offset: the result has {len(text)} bytes")
    begin, end = _whole(text, offset), _whole(text, min(offset + limit, len(text)))
    end = end if end > begin else min(begin + limit, len(text))
    rest = f"; the next offset is {end}" if end < len(text) else ", the end"
    return f"{text[begin:end].decode('utf-8', 'replace')}\n[bytes {begin} to {end} of {len(text)}{rest}]"


def _whole(text: bytes, place: int) -> int:
    begin = place
    while begin > max(0, place - 3) and begin < len(text) and text[begin] in _CONTINUATION:
        begin -= 1
    return begin


RECALL = Tool(
    name=RECALL_TOOL,
    category=Category.STATE,
    effect=Effect.READ,
    input=RecallInput,
    call=recall,
    granted=True,
    retention=Retention.DROP,
)


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
