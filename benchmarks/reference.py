"""Reference loops, each a program of its own: the standard library alone, and the official SDK."""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

SYSTEM = "You are a coding agent that changes a repository by shell commands and reports. " * 23
"""As long as the prompt of a small peer: about 450 tokens."""
PROMPT = os.environ.get("BENCHMARK_PROMPT", "make the failing tests pass")
TOOL = {
    "name": "Bash",
    "description": "Run a shell command.",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}
CACHED = {"type": "ephemeral"}
_MARK = b',"cache_control":{"type":"ephemeral"}'
_MAX_TOKENS = 16_000
Block = dict[str, Any]


def run_bash(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return f"{done.stdout.removesuffix(chr(10))}\nexit {done.returncode}".lstrip()


def run(name: str, given: dict[str, str]) -> str:
    """Make a call; reading a file needs no command."""
    return Path(given["file_path"]).read_text("utf-8") if name == "Read" else run_bash(given["command"])


def results(blocks: list[Block]) -> list[Block]:
    """Make the calls of a reply."""
    return [
        {
            "type": "tool_result",
            "tool_use_id": block["id"],
            "content": run(block["name"], block["input"]),
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]


def dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def stdlib(address: str) -> None:
    """http.client and json; each message is encoded once, the body joined from cached pieces."""
    connection = HTTPConnection(address.removeprefix("http://"))
    head = {
        "model": "m",
        "max_tokens": _MAX_TOKENS,
        "stream": True,
        "tools": [TOOL],
        "system": [{"type": "text", "text": SYSTEM, "cache_control": CACHED}],
    }
    start = dumped(head)[:-1] + b',"messages":['
    pieces = [dumped({"role": "user", "content": [{"type": "text", "text": PROMPT}]})]
    while True:
        last = pieces[-1][:-3] + _MARK + pieces[-1][-3:]
        body = b"".join((start, b",".join([*pieces[:-1], last]), b"]}"))
        connection.request("POST", "/v1/messages", body, {"content-type": "application/json"})
        blocks = streamed(connection.getresponse())
        pieces.append(dumped({"role": "assistant", "content": blocks}))
        answers = results(blocks)
        if not answers:
            return
        pieces.append(dumped({"role": "user", "content": answers}))


def streamed(response: HTTPResponse) -> list[Block]:
    """Return the blocks of a streamed reply."""
    blocks: list[Block] = []
    inputs: list[str] = []
    for line in response:
        if not line.startswith(b"data: "):
            continue
        event = json.loads(line[6:])
        match event["type"]:
            case "content_block_start":
                blocks.append(event["content_block"])
                inputs = []
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                blocks[-1]["text"] += event["delta"]["text"]
            case "content_block_delta":
                inputs.append(event["delta"]["partial_json"])
            case "content_block_stop" if blocks[-1]["type"] == "tool_use":
                blocks[-1]["input"] = json.loads("".join(inputs) or "{}")
            case _:
                pass
    response.read()  # nothing is left, but only this ends the response
    return blocks


def official(address: str) -> None:
    """Play the same loop with the SDK's streaming client."""
    from anthropic import Anthropic  # noqa: PLC0415  # a second of imports that the other loop must not pay

    client = Anthropic(base_url=address, api_key="local", max_retries=0)
    system: Any = [{"type": "text", "text": SYSTEM, "cache_control": CACHED}]
    tools: Any = [TOOL]
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
    while True:
        marked = messages[-1]["content"]
        marked[-1]["cache_control"] = CACHED
        with client.messages.stream(
            model="m", max_tokens=_MAX_TOKENS, system=system, tools=tools, messages=messages
        ) as stream:
            reply = stream.get_final_message()
        del marked[-1]["cache_control"]
        blocks = [block.model_dump(exclude_none=True) for block in reply.content]
        messages.append({"role": "assistant", "content": blocks})
        answers = results(blocks)
        if not answers:
            return
        messages.append({"role": "user", "content": answers})


if __name__ == "__main__":
    loops = {"stdlib": stdlib, "anthropic": official}
    loops[sys.argv[1]](os.environ["ANTHROPIC_BASE_URL"])
