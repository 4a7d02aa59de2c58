"""Runs a command of agentflow in a process of its own, for the servers of `mcp`, `editor` and `web`."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.process import start
from agentflow.streams import feed_pipe, read_pipe

TellLine = Callable[[str], Awaitable[None]]
KeepLine = Callable[[str], None]
_STOP_SECONDS = 10.0
"""For a task that is cancelled, to write down how far it came."""


class EndedCommand(Record):
    """An ended command of agentflow."""

    code: int | None
    said: str
    """Its lines on stdout, unless they were told as they came."""
    told: tuple[str, ...]
    """Its lines on stderr."""


async def run_own_command(
    root: Path,
    words: tuple[str, ...],
    text: str = "",
    *,
    on_output: TellLine | None = None,
    on_progress: TellLine | None = None,
) -> EndedCommand:
    """Run a command in a repository to its end; cancelling the call cancels the command.

    `on_output` gets each line of stdout as it comes, `on_progress` each of stderr.
    """
    argv = (sys.executable, "-P", "-m", "agentflow", words[0], "-C", str(root), *words[1:])
    program = start(Command(argv=argv, cwd=str(root), timeout=0, env=dict(os.environ)))
    said, told = list[str](), list[str]()
    try:
        async with anyio.create_task_group() as group:
            keep_output = None if on_output else said.append
            group.start_soon(_take_lines, program.process.stdout, keep_output, on_output)
            group.start_soon(_take_lines, program.process.stderr, told.append, on_progress)
            await feed_pipe(program.process.stdin, text.encode())
    finally:
        with anyio.CancelScope(shield=True):
            code = await anyio.to_thread.run_sync(program.end, _STOP_SECONDS)
    return EndedCommand(code=code, said="\n".join(said), told=tuple(filter(None, map(str.strip, told))))


async def _take_lines(pipe: IO[bytes] | None, keep: KeepLine | None, tell: TellLine | None) -> None:
    rest = b""
    while chunk := await read_pipe(pipe):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            await _take(line, keep, tell)
    await _take(rest, keep, tell)


async def _take(raw: bytes, keep: KeepLine | None, tell: TellLine | None) -> None:
    line = raw.decode("utf-8", "replace")
    if keep is not None:
        keep(line)
    if tell is not None and line.strip():
        await tell(line.strip())
