"""This program as an MCP server over stdio: the only door to the SDK's server."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ToolAnnotations,
)

from agentflow import __version__
from agentflow.core.errors import AgentflowError
from agentflow.core.pending import DECISION_FORM, Answer, read_decision_form
from agentflow.core.record import Record
from agentflow.mcp.own_command import EndedCommand, TellLine, run_own_command
from agentflow.parse import decode_or_none
from agentflow.redact import make_visible
from agentflow.settings import ASKED_BY
from agentflow.workspace.git import Git

_READS = ToolAnnotations(read_only_hint=True)
_DECIDES = ToolAnnotations(destructive_hint=True)
_MANY_ROUNDS = "2026-07-28"
"""The first version of the protocol whose servers ask within the result of a call."""


class WaitingItem(Record):
    """What a task waits for, as a person who decides on it sees it."""

    git: Git
    folder: Path
    """Of the task."""
    pending_id: str
    shown: str
    """Empty once it is decided."""
    seen: str
    """The `identity` of what is shown."""


class ApprovalDoor(Record):
    """The functions through which a person's decision reaches a task."""

    find: Callable[[str, str | None], WaitingItem]
    decide: Callable[[WaitingItem, Answer], object]


def serve(root: Path, approvals: ApprovalDoor) -> None:
    """Serve tasks in one repository over stdin and stdout until the client leaves."""
    os.environ[ASKED_BY] = "an MCP client"  # the commands that this starts inherit it
    server: MCPServer[Any] = MCPServer("agentflow", version=__version__, log_level="ERROR")
    _add_work(server, root, approvals)
    _add_reading(server, root)
    server.run()


def _add_work(server: MCPServer[Any], root: Path, approvals: ApprovalDoor) -> None:
    @server.tool()
    async def task(text: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Carry out a task in this repository and verify the result with its own checks.

        The result is a verdict: `exit_code` 0 means verified, 4 verified with a caveat, 75 that it waits
        until a person has decided on what is in `pending`.
        """
        return _require(await run_own_command(root, ("task", "--json", "-"), text, on_progress=_teller(ctx)))

    @server.tool(annotations=_DECIDES)
    async def approve(
        pending_id: str, ctx: Context[Any, Any], approved: bool = True, reason: str = "", task_id: str = ""
    ) -> dict[str, Any] | InputRequiredResult:
        """Let the person decide on what a task waits for, then continue the task and return its verdict.

        It is the newest task that waits, or waited, under the id, unless you name another.

        You cannot approve it yourself: the person is asked. You may deny it, with `approved` false.
        """
        try:
            item = approvals.find(pending_id, task_id or None)
            if item.shown:
                denied = Answer(approved=False, text=reason or "no reason given", by="MCP client")
                said = await _ask_person(ctx, item) if approved else denied
                if isinstance(said, InputRequiredResult):
                    return said
                approvals.decide(item, said)
        except AgentflowError as error:
            raise ToolError(make_visible("\n".join(filter(None, (str(error), error.hint))))) from None
        words = ("resume", "--json", item.folder.name)
        return _require(await run_own_command(root, words, on_progress=_teller(ctx)))

    @server.tool()
    async def resume(ctx: Context[Any, Any], task_id: str = "") -> dict[str, Any]:
        """Continue a task that was stopped, or for which a person has decided; the newest without an id."""
        words = ("resume", "--json", *_name(task_id))
        return _require(await run_own_command(root, words, on_progress=_teller(ctx)))


async def _ask_person(ctx: Context[Any, Any], item: WaitingItem) -> Answer | InputRequiredResult:
    pending_id, asked = item.pending_id, f"{item.folder.name}/{item.seen}"
    waits = f"{pending_id} waits for a person"
    how = f"agentflow approve {pending_id}, or agentflow deny {pending_id} --reason R, then the tool `resume`"
    able = ctx.client_capabilities.elicitation if ctx.client_capabilities else None
    if able is None or (able.form is None and able.url is not None):
        raise ToolError(f"{waits}, and this client cannot ask one. In a terminal: {how}")
    question = ElicitRequestFormParams(message=make_visible(item.shown), requested_schema=dict(DECISION_FORM))
    if (ctx.protocol_version or "") < _MANY_ROUNDS:
        said = await ctx.session.elicit_form(question.message, question.requested_schema, ctx.request_id)
    elif (found := (ctx.input_responses or {}).get(asked)) is None:
        return InputRequiredResult(input_requests={asked: ElicitRequest(params=question)})
    else:
        said = ElicitResult.model_validate(found, from_attributes=True)
    content = said.content if said.action == "accept" else None
    if decision := read_decision_form(content, "asked by the MCP client"):
        return decision
    raise ToolError(f"{waits}, who left it undecided. In a terminal: {how}")


def _add_reading(server: MCPServer[Any], root: Path) -> None:
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
    count = 0

    async def tell(line: str) -> None:
        nonlocal count
        count += 1
        await ctx.report_progress(count, message=make_visible(line))

    return tell


def _require(ended: EndedCommand) -> dict[str, Any]:
    found = decode_or_none(ended.said)
    if isinstance(found, list):
        return {"items": found}
    if not isinstance(found, dict):
        raise ToolError(make_visible("\n".join(ended.told[-20:])) or f"agentflow ended with {ended.code}")
    return found
