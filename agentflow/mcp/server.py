"""This program as an MCP server over stdio: the only door to the SDK's server."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from agentflow import __version__
from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.mcp.pipes import read_pipe, write_pipe
from agentflow.parse import decode_or_none
from agentflow.process import Program, start
from agentflow.redact import visible

_STOP_SECONDS = 10.0
"""For a task that is cancelled, to write down how far it came."""
_READS = ToolAnnotations(read_only_hint=True)
_DECIDES = ToolAnnotations(destructive_hint=True)
_Tell = Callable[[str], Awaitable[None]]


def serve(root: Path) -> None:
    """Serve tasks in one repository over stdin and stdout until the client leaves."""
    server: MCPServer[Any] = MCPServer("agentflow", version=__version__, log_level="ERROR")
    _add_work(server, root)
    _add_reading(server, root)
    server.run()


def _add_work(server: MCPServer[Any], root: Path) -> None:
    """Offer the tools that begin and continue a task."""

    @server.tool()
    async def task(text: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Carry out a task in this repository and verify the result with its own checks.

        The result is a verdict: `exit_code` 0 means verified, 4 verified with a caveat, 75 that it waits
        for the approvals in `pending`.
        """
        return (await _run(root, ("task", "--json", "-"), text, _teller(ctx))).require()

    @server.tool(annotations=_DECIDES)
    async def approve(
        pending_id: str, ctx: Context[Any, Any], approved: bool = True, reason: str = ""
    ) -> dict[str, Any]:
        """Approve or deny what a task waits for, then continue the task and return its verdict.

        Ask the person first: this is their decision.
        """
        words = ("approve",) if approved else ("deny", "--reason", reason or "no reason given")
        decided = await _run(root, (*words, "--by", "MCP client", *_name(pending_id)))
        if decided.code:
            raise ToolError(visible("\n".join(decided.told)))
        return (await _run(root, ("resume", "--json"), tell=_teller(ctx))).require()


def _add_reading(server: MCPServer[Any], root: Path) -> None:
    """Offer the tools that change nothing."""

    @server.tool(annotations=_READS)
    async def ask(text: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Answer a question about this repository. No file is changed."""
        return (await _run(root, ("ask", "--json", "-"), text, _teller(ctx))).require()

    @server.tool(annotations=_READS)
    async def status(task_id: str = "") -> dict[str, Any]:
        """Return where a task stands, or how it ended; the newest without an id."""
        return (await _run(root, ("status", "--json", *_name(task_id)))).require()

    @server.tool(annotations=_READS)
    async def evidence(evidence_id: str = "", task_id: str = "") -> dict[str, Any]:
        """Return the commands that a task ran, or one of them with its output; the newest task's."""
        return (await _run(root, ("evidence", "--json", *_name(task_id), *_name(evidence_id)))).require()


def _name(value: str) -> tuple[str, ...]:
    """Return an id as a word of a command. Raises ToolError for what would be an option."""
    if value.startswith("-"):
        raise ToolError(f"{value!r} is no id")
    return (value,) if value else ()


def _teller(ctx: Context[Any, Any]) -> _Tell:
    """Return what passes each line of progress on to the client."""
    count = 0

    async def tell(line: str) -> None:
        nonlocal count
        count += 1
        await ctx.report_progress(count, message=visible(line))

    return tell


async def _tell_nobody(_: str) -> None:
    """Drop a line of progress."""


class _Ended(Record):
    """A command of ours that has ended."""

    code: int | None
    said: str
    told: tuple[str, ...]
    """Its lines on stderr."""

    def require(self) -> dict[str, Any]:
        """Return the JSON that it printed. Raises ToolError with what it said instead."""
        found = decode_or_none(self.said)
        if isinstance(found, list):
            return {"items": found}
        if not isinstance(found, dict):
            raise ToolError(visible("\n".join(self.told[-20:])) or f"agentflow ended with {self.code}")
        return found


async def _run(root: Path, words: tuple[str, ...], text: str = "", tell: _Tell = _tell_nobody) -> _Ended:
    """Run a command of ours in the repository to its end; where we are cancelled, it is."""
    argv = (sys.executable, "-P", "-m", "agentflow", words[0], "-C", str(root), *words[1:])
    program = start(Command(argv=argv, cwd=str(root), timeout=0, env=dict(os.environ)))
    said, told = bytearray(), list[str]()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_take_output, program, said)
            group.start_soon(_take_progress, program, told, tell)
            await write_pipe(program.process.stdin, text.encode())
            assert program.process.stdin is not None
            program.process.stdin.close()
    finally:
        with anyio.CancelScope(shield=True):
            code = await anyio.to_thread.run_sync(program.end, _STOP_SECONDS)
    return _Ended(code=code, said=said.decode("utf-8", "replace"), told=tuple(told))


async def _take_output(program: Program, said: bytearray) -> None:
    while chunk := await read_pipe(program.process.stdout):
        said += chunk


async def _take_progress(program: Program, told: list[str], tell: _Tell) -> None:
    """Pass on each line that a command says on stderr."""
    rest = ""
    while chunk := await read_pipe(program.process.stderr):
        *lines, rest = (rest + chunk.decode("utf-8", "replace")).split("\n")
        for line in filter(None, map(str.strip, lines)):
            told.append(line)
            await tell(line)
