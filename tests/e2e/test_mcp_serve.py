"""agentflow as an MCP server, driven by the official client: task, approval, verdict, cancellation."""

import json
import sys
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import ElicitRequestParams, ElicitResult

from tests.support import play
from tests.support.repo import NewRepo, Repo


def serve(repo: Repo, script: list[dict[str, Any]]) -> StdioServerParameters:
    env = {**repo.environment, "AGENTFLOW_MODEL": repo.scripted(script)}
    return StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "agentflow", "mcp", "serve"], cwd=repo.root, env=env
    )


def test_a_client_hands_over_a_task_approves_and_gets_the_verdict(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    (repo.home / ".claude").mkdir()
    rules = {"permissions": {"ask": ["Bash(touch *)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(rules), "utf-8")
    script = play.mending(
        play.turn(play.call("Bash", command="touch made", description="d")), evidence="ev-0003"
    )
    told: list[str] = []
    found: dict[str, Any] = {}

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(f"{progress} {total} {message}")

    async def agree(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert context is not None
        assert "command: touch made" in params.message
        return ElicitResult(action="accept", content={"decision": "approve"})

    async def drive() -> None:
        async with Client(serve(repo, script), elicitation_callback=agree) as client:
            listed = await client.list_tools()
            found["tools"] = [tool.name for tool in listed.tools]
            first = await client.call_tool("task", {"text": "let add return the sum"}, progress_callback=tell)
            found["first"] = first.structured_content
            (pending,) = found["first"]["pending"]
            found["wrong"] = await client.call_tool("approve", {"pending_id": "--help"})
            last = await client.call_tool("approve", {"pending_id": pending["id"]})
            found["last"] = last.structured_content
            found["status"] = (await client.call_tool("status", {})).structured_content
            found["evidence"] = (
                await client.call_tool("evidence", {"evidence_id": "ev-0001"})
            ).structured_content
            found["again"] = await client.call_tool("approve", {"pending_id": pending["id"]})

    anyio.run(drive)
    assert found["tools"] == ["task", "approve", "resume", "ask", "status", "evidence"]
    assert (found["first"]["exit_code"], found["first"]["status"]) == (75, "suspended")
    assert found["first"]["pending"][0]["tool"] == "Bash"
    assert any("before the change" in line for line in told), told
    assert found["wrong"].is_error
    assert (found["last"]["exit_code"], found["last"]["files_changed"]) == (0, ["calc.py", "made"])
    assert found["status"]["status"] == "verified"
    assert found["evidence"]["id"] == "ev-0001"
    assert found["again"].is_error
    answered = repo.events("Answered")
    assert answered[0]["by"] == "a person asked by the MCP client"


def test_a_cancelled_call_cancels_the_task_and_errors_are_told(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    slow = play.role(
        "explorer",
        play.turn(play.call("Bash", command="sleep 60", description="d")),
        *play.findings()["turns"],
    )
    found: dict[str, Any] = {}

    async def drive() -> None:
        async with Client(stdio_client(serve(repo, [slow]))) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "ask", {"text": "-q where is add defined?"})
                await _wait_for(repo, "ToolStarted")
                group.cancel_scope.cancel()
            with anyio.fail_after(30):
                await _wait_for(repo, "TaskEnded")
            try:
                found["error"] = await client.call_tool("evidence", {"task_id": "20000101T000000Z-none"})
            except MCPError as error:
                found["error"] = error

    anyio.run(drive)
    assert repo.events("TaskEnded")[-1]["status"] == "cancelled"
    assert repo.state()["task"] == "-q where is add defined?"
    assert found["error"].is_error
    assert "20000101T000000Z-none" in str(found["error"].content)


async def _wait_for(repo: Repo, kind: str) -> None:
    """Wait until another process has written an event of a type."""
    while kind not in {event["type"] for event in _events(repo)}:  # noqa: ASYNC110  # no event of ours
        await anyio.sleep(0.1)


def _events(repo: Repo) -> list[dict[str, Any]]:
    files = repo.root.rglob("events.jsonl")
    return [
        json.loads(line)
        for file in files
        for line in file.read_text("utf-8").splitlines()
        if line.endswith("}")
    ]
