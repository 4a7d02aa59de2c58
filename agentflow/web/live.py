"""Server-sent events: the parts of a page that have changed, as long as somebody looks."""

import time
from collections.abc import AsyncIterator, Callable, Mapping

import anyio
import anyio.to_thread

from agentflow.core.record import encode

LOOK_SECONDS = 0.25
"""Between two looks at the files."""
_REST = 4
"""Times as long as a look took is waited until the next, so that a large task leaves the processor alone."""
_HEARTBEAT_SECONDS = 15.0
"""After that long without news a comment is sent: a reader who has gone is noticed by it."""


async def follow_parts(
    render: Callable[[], Mapping[str, str]], is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield each part when it is new or changed, by its id; a part that is gone is empty."""
    sent: dict[str, str] = {}
    spoke = time.monotonic()
    while not is_over():
        began = time.monotonic()
        parts = await anyio.to_thread.run_sync(render)
        changed = {name: text for name, text in parts.items() if sent.get(name) != text}
        changed |= {name: "" for name in sent if name not in parts}
        now = time.monotonic()
        if changed:
            sent = dict(parts)
            yield b"data: " + encode(changed) + b"\n\n"
            spoke = now
        elif now - spoke > _HEARTBEAT_SECONDS:
            yield b": nothing new\n\n"
            spoke = now
        await anyio.sleep(max(LOOK_SECONDS, _REST * (now - began)))
