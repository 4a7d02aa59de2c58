"""Records that many tests need and few look at closely."""

from pathlib import Path
from typing import Any

from agentflow.core.evidence import Execution
from agentflow.core.messages import Message, Request, Speaker, Text


def an_execution(output: Path, printed: str = "out\n", **changes: Any) -> Execution:
    """Write what a command printed, and return the command that came to an end."""
    output.write_text(printed, "utf-8")
    made = Execution(
        command="true",
        cwd="/",
        exit_code=0,
        timed_out=False,
        started_at="2026-01-02T03:04:05Z",
        seconds=0.1,
        stdout_sha256="a" * 64,
        bytes=len(printed),
        output=str(output),
    )
    return made.replace(**changes)


def user(text: str) -> Message:
    return Message(speaker=Speaker.USER, parts=(Text(text=text),))


def a_request(*messages: Message, **changes: Any) -> Request:
    """Return a request with these messages, or one that begins."""
    made = Request(
        role="implementer",
        agent="implementer",
        run=1,
        iteration=1,
        model="model-1",
        system="You mend.",
        tools=(),
        messages=messages or (user("begin"),),
    )
    return made.replace(**changes)
