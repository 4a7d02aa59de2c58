"""Bash; the file with the full output stays until the caller has made evidence of it."""

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from agentflow.core.errors import InvalidInput, ToolError
from agentflow.core.evidence import Command, Execution
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.redact import uncoloured
from agentflow.sandbox.environment import find_shell
from agentflow.tools.recall import recall_note

HEAD_SHARE = 4
"""What the model sees of a long output: the fourth part from its begin, the rest from its end."""
EXECUTION_TAIL = 4000
_CALL_ID = re.compile(r"[\w-]{1,200}", re.ASCII)
_CONTINUATION = bytes(range(0x80, 0xC0))


class BashInput(Record):
    command: Annotated[str, Meta(min_length=1, description="For `bash -c`.")]
    description: str = ""
    timeout: Annotated[int, Meta(ge=1, le=600_000, description="Milliseconds.")] = 120_000


_SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "explorer": "Programs that only read, in pipes and loops, also `python3 -c`; no tests, builds or "
        "programs of the repository.",
        "implementer": "Any program; .git and .claude are read-only.",
        "reviewer": "Static analysis (`ruff check`, `npx eslint` and the like) and programs that only read; "
        "no tests, builds or programs of the repository.",
        "verifier": "Any program, on a copy of the repository that is thrown away after each call.",
    }
)
"""What the shipped roles may run, by their part in the pipeline."""


def shell_scope(role: Role, tool: Tool) -> str:
    """Return what a role may run, for the model."""
    patterns = [rule.pattern for rule in role.rules_for(tool.name) if rule.pattern is not None]
    listed = f"You may run {', '.join(patterns)}, and programs that only read." if patterns else ""
    return _SCOPES.get(role.part or "", listed) if role.origin == "bundled" else listed


def bash(wanted: BashInput, context: ToolContext) -> Output:
    """Run a command in a new shell at the root; return output and exit code."""
    if "\0" in wanted.command:
        raise InvalidInput("command: holds a NUL character")
    sink = _sink(context)
    command = Command(
        argv=(find_shell(context.workspace.root), "-c", wanted.command),
        cwd=str(context.workspace.root),
        timeout=wanted.timeout / 1000,
        env={"PYTHONDONTWRITEBYTECODE": "1"},  # compiled code would become a part of the change
    )
    try:
        finished = context.shell.runner.run(command, sink, context.cancelled)
    except OSError as error:
        raise ToolError(f"the command could not be started: {error.strerror}") from None
    most, kept = context.shell.shown_bytes, recall_note(context.run.head.tools, context.call_id)
    shown = _clipped(sink, finished.bytes, most, kept)
    parts = (shown, *finished.notes, _ending(wanted, finished, context))
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


BASH = Tool(
    name="Bash",
    category=Category.SHELL,
    effect=Effect.EXECUTE,
    input=BashInput,
    call=bash,
    subjects={"command": Subject.COMMAND},
)


def _sink(context: ToolContext) -> Path:
    # ids come from the model's side, and one such as ../x must not choose the file
    if not _CALL_ID.fullmatch(context.call_id):
        raise InvalidInput(f"{context.call_id!r} is no call id")
    return context.shell.outputs / f"{context.call_id}.out"


def _clipped(sink: Path, size: int, most: int, kept: str) -> str:
    if size <= most:
        return uncoloured(sink.read_bytes().decode("utf-8", "replace")).removesuffix("\n")
    with sink.open("rb") as file:
        head = file.read(most // HEAD_SHARE)
        file.seek(len(head) - most, 2)
        tail = file.read()
    between = size - most
    note = f"[{between} bytes left out here; {kept}]"
    # neither end may show a character that the cut went through
    first = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    last = tail.lstrip(_CONTINUATION).decode("utf-8", "replace").removesuffix("\n")
    return uncoloured(f"{first}\n{note}\n{last}")


def _ending(wanted: BashInput, finished: Execution, context: ToolContext) -> str:
    if finished.timed_out:
        return f"timed out after {wanted.timeout / 1000:g} s and was killed with all it started"
    if finished.exit_code is not None:
        return f"exit {finished.exit_code}"
    return "stopped, because the run was" if context.cancelled() else "killed by a signal"
