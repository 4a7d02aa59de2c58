"""This program as an MCP server over stdio: the only door to the SDK's server."""

from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from agentflow import __version__
from agentflow.mcp.own_command import EndedCommand, TellLine, run_own_command
from agentflow.parse import decode_or_none
from agentflow.redact import make_visible

_READS = ToolAnnotations(read_only_hint=True)
_DECIDES = ToolAnnotations(destructive_hint=True)


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
        return _require(await run_own_command(root, ("task", "--json", "-"), text, on_progress=_teller(ctx)))

    @server.tool(annotations=_DECIDES)
    async def approve(
        pending_id: str, ctx: Context[Any, Any], approved: bool = True, reason: str = ""
    ) -> dict[str, Any]:
        """Approve or deny what a task waits for, then continue the task and return its verdict.

        Ask the person first: this is their decision.
        """
        words = ("approve",) if approved else ("deny", "--reason", reason or "no reason given")
        decided = await run_own_command(root, (*words, "--by", "MCP client", *_name(pending_id)))
        if decided.code:
            raise ToolError(make_visible("\n".join(decided.told)))
        return _require(await run_own_command(root, ("resume", "--json"), on_progress=_teller(ctx)))


def _add_reading(server: MCPServer[Any], root: Path) -> None:
    """Offer the tools that change nothing."""

    @server.tool(annotations=_READS)
    async def ask(text: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Answer a question about this repository. No file is changed."""
        return _require(await run_own_command(root, ("ask", "--json", "-"), text, on_progress=_teller(ctx)))

    @server.tool(annotations=_READS)
    async def status(task_id: str = "") -> dict[str, Any]:
        """Return where a task stands, or how it ended; the newest without an id."""
        return _require(await run_own_command(root, ("status", "--json", *_name(task_id))))

    @server.tool(annotations=_READS)
    async def evidence(evidence_id: str = "", task_id: str = "") -> dict[str, Any]:
        """Return the commands of a task, by default the newest task, or one command with its output."""
        words = ("evidence", "--json", *_name(task_id), *_name(evidence_id))
        return _require(await run_own_command(root, words))


def _name(value: str) -> tuple[str, ...]:
    """Return an id as a word of a command. Raises ToolError for what would be an option."""
    if value.startswith("-"):
        raise ToolError(f"{value!r} is not an id")
    return (value,) if value else ()


def _teller(ctx: Context[Any, Any]) -> TellLine:
    """Return what passes each line of progress on to the client."""
    count = 0

    async def tell(line: str) -> None:
        nonlocal count
        count += 1
        await ctx.report_progress(count, message=make_visible(line))

    return tell


def _require(ended: EndedCommand) -> dict[str, Any]:
    """Return the JSON that a command printed. Raises ToolError with what it said instead."""
    found = decode_or_none(ended.said)
    if isinstance(found, list):
        return {"items": found}
    if not isinstance(found, dict):
        raise ToolError(make_visible("\n".join(ended.told[-20:])) or f"agentflow ended with {ended.code}")
    return found
