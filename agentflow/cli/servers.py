"""`web`, `acp` and `mcp`: agentflow served to others, and the MCP servers that it uses itself."""

import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import typer

from agentflow.api.boundary import TaskRequest, hide_secrets, open_sandbox
from agentflow.api.content import load_rules_here
from agentflow.api.decisions import decide_approval
from agentflow.api.servers import find_accepted_file, load_entries, place_servers
from agentflow.api.worktree import find_pending
from agentflow.cli.arguments import FOLDER, JSON, MODEL, make_group
from agentflow.cli.printing import say, tell_result
from agentflow.core.errors import ConfigError, Exit, ToolError, UsageError
from agentflow.core.pending import Answer
from agentflow.core.record import Record
from agentflow.mcp.entries import ServerEntry
from agentflow.mcp.servers import MISSING, MISSING_FOR_SERVER, ServerPlace, Servers, find_key, has_sdk
from agentflow.mcp.tools import ServerListing, find_changed, name_tool, record_accepted
from agentflow.redact import to_one_line
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.store.reading import load_state
from agentflow.view.status import draw_pending
from agentflow.view.text import PLAIN_TEXT, Line, draw_entry, render
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.mcp.server import WaitingItem

mcp = make_group()
_NAME = typer.Argument(None, metavar="[SERVER]", help="A name from `list`; all servers without it.")
_NO_SERVER = "No MCP server is configured. See .mcp.json and ~/.claude.json."
_NO_SANDBOX = typer.Option(False, "--no-sandbox", help="Start servers with all your rights.")


@mcp.command(name="list", epilog="Example: agentflow mcp list --json")
def list_servers(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the configured MCP servers and which of them count."""
    found = load_entries(open_repository(folder).root)
    rows: list[dict[str, object]] = []
    texts: list[Line | str] = []
    for entry in found.all:
        kind = "http" if entry.url else "stdio"
        row = {"name": entry.name, "source": entry.source, "file": entry.file, "transport": kind}
        rows.append({**row, "does": entry.does, "counts": not entry.problem, "problem": entry.problem})
        texts += draw_entry(
            entry.name, f"{entry.source}, {entry.problem or 'configured'}", [to_one_line(entry.does, 300)]
        )
    next_step = "agentflow mcp test starts each, and shows what it offers." if has_sdk() else MISSING
    tell_result(rows, [*texts, *found.warnings, next_step if rows else _NO_SERVER], json=json)


class ServerTrial(Record):
    name: str
    seconds: float
    listing: ServerListing = ServerListing()
    changed: tuple[str, ...] = ()
    """Tools that changed since they were accepted."""
    problem: str = ""


@mcp.command(name="test", epilog="Example: agentflow mcp test git")
def try_servers(
    name: str | None = _NAME,
    yes: bool = typer.Option(False, "--yes", help="Accept tools that have changed, as they are now."),
    json: bool = JSON,
    folder: Path = FOLDER,
    no_sandbox: bool = _NO_SANDBOX,
) -> int:
    """Start each MCP server; list what it offers and the time it took."""
    git = open_repository(folder)
    wanted = _choose(load_entries(git.root).all, name)
    if not has_sdk():
        raise ConfigError(MISSING)
    sandbox = open_sandbox(git, TaskRequest(no_sandbox=no_sandbox))
    sandbox = hide_secrets(sandbox, git, load_rules_here(git.root))
    with make_scratch_folder() as logs:
        tried = anyio.run(_inspect, wanted, place_servers(sandbox, logs))
    if yes:
        keys = {each.name: find_key(each, git.root) for each in wanted}
        for one in (one for one in tried if one.changed):
            record_accepted(find_accepted_file(), keys[one.name], one.listing.tools)
    texts = [text for one in tried for text in _describe_trial(one, is_accepted=yes)]
    rows = [{**_to_json(one), "accepted": yes or not one.changed} for one in tried]
    tell_result(rows, texts if tried else [_NO_SERVER], json=json)
    is_bad = any(one.problem or (one.changed and not yes) for one in tried)
    return Exit.NOT_VERIFIED if is_bad else Exit.VERIFIED


@mcp.command(name="serve", epilog="Example: agentflow mcp serve")
def serve_repository(folder: Path = FOLDER) -> None:
    """Serve agentflow to an MCP client over stdin and stdout.

    The client can use task, resume, ask, status, evidence and approve, which asks the person.
    """
    root = open_repository(folder).root
    if not has_sdk():
        raise ConfigError(MISSING_FOR_SERVER)
    from agentflow.mcp.server import ApprovalDoor, serve

    def decide(item: "WaitingItem", decision: Answer) -> None:
        decide_approval(item.git, item.folder, item.pending_id, decision, seen=item.seen)

    serve(root, ApprovalDoor(find=partial(_find_waiting, root), decide=decide))


def _find_waiting(root: Path, pending_id: str, task_id: str | None) -> "WaitingItem":
    from agentflow.mcp.server import WaitingItem

    git, found = find_pending(root, pending_id, task_id)
    state = load_state(found)
    items = tuple(item for item in state.pending if item.id == pending_id)
    return WaitingItem(
        git=git,
        folder=found,
        pending_id=pending_id,
        shown=render(draw_pending(state.replace(pending=items)), PLAIN_TEXT, None),
        seen="".join(item.identity for item in items),
    )


def _choose(known: tuple[ServerEntry, ...], name: str | None) -> tuple[ServerEntry, ...]:
    found = tuple(entry for entry in known if name in (None, entry.name))
    if name is not None and not found:
        names = ", ".join(entry.name for entry in known)
        raise UsageError(f"there is no MCP server {name}", hint=f"known are {names}" if names else "")
    return found


async def _inspect(entries: tuple[ServerEntry, ...], place: ServerPlace) -> tuple[ServerTrial, ...]:
    usable = tuple(entry for entry in entries if not entry.problem)
    servers = Servers(usable, place, lambda _: None)
    found = {each.name: ServerTrial(name=each.name, seconds=0, problem=each.problem) for each in entries}

    async def inspect(entry: ServerEntry) -> None:
        begin = time.monotonic()
        try:
            listing, problem = await servers.inspect(entry.name), ""
        except ToolError as error:
            listing, problem = ServerListing(), str(error)
        seconds = round(time.monotonic() - begin, 2)
        key = find_key(entry, place.sandbox.root)
        changed = () if problem else tuple(sorted(find_changed(place.accepted, key, listing.tools)))
        found[entry.name] = ServerTrial(
            name=entry.name, seconds=seconds, listing=listing, changed=changed, problem=problem
        )

    async with servers.keep_open(), anyio.create_task_group() as group:
        for entry in usable:
            group.start_soon(inspect, entry)
    return tuple(found[entry.name] for entry in entries)


def _to_json(one: ServerTrial) -> dict[str, object]:
    tools = [{"name": name_tool(one.name, each.name), "reads": each.reads} for each in one.listing.tools]
    offered = {"tools": tools, "resources": one.listing.resources, "prompts": one.listing.prompts}
    told = {"name": one.name, "seconds": one.seconds, "server": one.listing.server}
    return {**told, **offered, "changed": one.changed, "problem": one.problem}


def _describe_trial(one: ServerTrial, *, is_accepted: bool) -> Iterator[str]:
    if one.problem:
        yield f"{one.name}: {one.problem}"
        return
    yield f"{one.name}: {one.listing.server}, {len(one.listing.tools)} tools, {one.seconds:.2f} s"
    for tool in one.listing.tools:
        mark = "" if tool.name not in one.changed else " (accepted now)" if is_accepted else " (changed)"
        reads = ", only reads" if tool.reads else ""
        yield f"  {name_tool(one.name, tool.name)}{reads}{mark}: {to_one_line(tool.description, 200)}"
    for name in map(to_one_line, one.listing.unreadable):
        yield f"  {name}: left out, because its description is not what the protocol asks for"
    for resource in one.listing.resources:
        yield f"  resource {to_one_line(resource.uri)}: {to_one_line(resource.description or resource.name)}"
    for prompt in one.listing.prompts:
        inputs = ", ".join(prompt.arguments)
        name, about = to_one_line(prompt.name), to_one_line(prompt.description)
        yield f"  prompt mcp__{one.name}__{name}({inputs}): {about}"
    if one.changed and not is_accepted:
        yield f"  {len(one.changed)} tools changed since you accepted them; accept with --yes"


def acp(model: str | None = MODEL) -> None:
    """Serve an editor over stdin and stdout.

    The editor starts this command itself, and both speak the Agent Client Protocol.
    """
    try:
        from agentflow.editor.agent import serve_editor
    except ModuleNotFoundError as error:
        if error.name != "acp":
            raise
        hint = "pip install 'agentflow[editor]'"
        raise ConfigError("the package agent-client-protocol is not installed", hint=hint) from None
    serve_editor(model)


PORT = typer.Option(
    0, "--port", metavar="N", min=0, max=65535, show_default=False, help="The port. [default: any free one]"
)
_PACKAGES = ("starlette", "uvicorn")


def web(port: int = PORT, folder: Path = FOLDER) -> None:
    """Show the tasks of this repository in the browser, live, and decide there. Ctrl-C ends it.

    It answers only this machine. Its address contains a secret token: anyone who has it can decide for you.
    """
    git = open_repository(folder)
    if not all(map(find_spec, _PACKAGES)):
        raise ConfigError("the page needs two more packages: pip install 'agentflow[web]'")
    from agentflow.web.server import serve_page

    serve_page(git, port, say)
