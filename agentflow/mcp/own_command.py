"""Runs a command of agentflow in a process of its own, for `mcp`, `editor` and `batch`."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.process import read_pipe, start, write_pipe

TellLine = Callable[[str], Awaitable[None]]
_STOP_SECONDS = 10.0
"""For a task that is cancelled, to write down how far it came."""


class EndedCommand(Record):
    code: int | None
    said: str
    told: tuple[str, ...]


async def run_own_command(
    root: Path,
    words: tuple[str, ...],
    text: str = "",
    *,
    on_output: TellLine | None = None,
    on_progress: TellLine | None = None,
) -> EndedCommand:
    """Run a command in a repository to its end, and tell its lines; cancelling the call cancels it."""
    argv = (sys.executable, "-P", "-m", "agentflow", words[0], "-C", str(root), *words[1:])
    said, told = list[str](), list[str]()

    async def take_output(line: str) -> None:
        if on_output is None:
            said.append(line)
        elif line.strip():
            await on_output(line.strip())

    async def take_error(line: str) -> None:
        if line.strip():
            told.append(line.strip())
            if on_progress is not None:
                await on_progress(line.strip())

    command = Command(argv=argv, cwd=str(root), timeout=0, env=dict(os.environ))
    code = await follow_command(command, text, take_output, take_error)
    return EndedCommand(code=code, said="\n".join(said), told=tuple(told))


async def follow_command(
    command: Command, text: str, take_output: TellLine, take_error: TellLine
) -> int | None:
    """Run a command to its end, each line going to its taker as it comes; return its exit code."""
    program = start(command)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_take_lines, program.process.stdout, take_output)
            group.start_soon(_take_lines, program.process.stderr, take_error)
            await write_pipe(program.process.stdin, text.encode(), is_last=True)
    finally:
        with anyio.CancelScope(shield=True):
            code = await anyio.to_thread.run_sync(program.end, _STOP_SECONDS)
    return code


async def _take_lines(pipe: IO[bytes] | None, take: TellLine) -> None:
    rest = b""
    while chunk := await read_pipe(pipe):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            await take(line.decode("utf-8", "replace"))
    await take(rest.decode("utf-8", "replace"))
