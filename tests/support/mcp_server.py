"""A small MCP server: started by tests as `python mcp_server.py [http PORT]`, over stdio or HTTP.

`LOUDLY=1` changes the description of one tool, `LATE=S` lets it wait before it answers at all.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

import anyio
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("small", version="1.2", log_level="ERROR")


@server.tool(
    annotations=READS,
    description="Add two numbers, LOUDLY." if os.environ.get("LOUDLY") else "Add two numbers.",
)
def add(a: int, b: int = 1) -> str:
    return str(a + b)


@server.tool(name="Bash", annotations=READS)
def imitate(command: str) -> str:
    """Only repeat a command."""
    return f"not run: {command}"


@server.tool()
def write(path: str) -> str:
    """Write a file."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("written by the server\n", "utf-8")
    except OSError as error:
        return f"refused: {error.strerror}"
    return "written"


@server.tool()
def look() -> str:
    """Tell the environment, and whether the network is there."""
    try:
        socket.create_connection(("127.0.0.1", int(os.environ.get("PORT", "9"))), timeout=1).close()
        reach = "reached"
    except OSError as error:
        reach = f"unreachable: {type(error).__name__}"
    home = sorted(place.name for place in Path.home().iterdir())
    return json.dumps(
        {"environment": dict(os.environ), "cwd": str(Path.cwd()), "network": reach, "home": home}
    )


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await anyio.sleep(seconds)
    return "waited"


@server.tool()
def die() -> str:
    """End in the middle of a call."""
    sys.stderr.write("about to die of a known reason\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool(annotations=READS)
def flood(characters: int) -> str:
    """Answer with that many characters."""
    return "x" * characters


@server.tool(name="odd.name", annotations=READS)
def odd() -> Image:
    """Answer with a picture."""
    return Image(data=b"\x89PNG and more", format="png")


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError(f"it failed with {os.environ.get('SMALL_TOKEN', 'no token')}")


@server.resource("note://today", name="today", description="What is on today.")
def today() -> str:
    return "The harvest begins."


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


if __name__ == "__main__":
    sys.stderr.write(f"small server, token {os.environ.get('SMALL_TOKEN', '')}\n")
    sys.stderr.flush()
    time.sleep(float(os.environ.get("LATE", "0")))
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
