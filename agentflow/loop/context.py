"""What a run sends: the texts that the program adds, and the request that its state comes to."""

from pathlib import Path

from agentflow.core.messages import Request
from agentflow.core.record import copy_shared
from agentflow.core.run import Run


def prompt_text(name: str) -> str:
    return (Path(__file__).parent / "prompts" / name).read_text("utf-8").strip()


def request_of(run: Run, force: str | None = None) -> Request:
    """Return the next request of a run: role and task are its head and first message, then its history."""
    return Request(
        messages=run.messages, force=force, replies=len(run.used), **copy_shared(run.head, Request)
    )
