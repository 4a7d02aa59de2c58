"""Why a check may be red inside the sandbox although it is green outside."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import is_scratch

NETWORK = re.compile(
    r"Network is unreachable|ENETUNREACH|EAI_AGAIN|[Nn]ame resolution|Name or service not known"
    r"|[Cc]ould not resolve|Failed to establish a new connection|dial tcp"
)
_REFUSED = re.compile(
    r"no such file|not found|filenotfound|cannot find|does not exist|not permitted"
    r"|permission ?(?:denied|error)"
    r"|can(?:not|'t) (?:open|access|read|stat)|ENOENT|EACCES|EPERM",
    re.IGNORECASE,
)
"""How programs say that a file is not there, or not theirs to read."""
_READ_ONLY = "Read-only file system"
_PATH = re.compile(r"'(/[^']+)'|\"(/[^\"]+)\"|(/[^\s'\":;,()\[\]]+)")


def likely_reason(sandbox: Sandbox, output: str) -> str:
    """Return what of a failed output the sandbox may have caused, and what opens it; else empty."""
    if sandbox.level is Level.NONE:
        return ""
    return "; ".join(_reasons(sandbox, output))


def _reasons(sandbox: Sandbox, output: str) -> Iterator[str]:
    if NETWORK.search(output) and sandbox.who not in sandbox.opened.network:
        yield "the sandbox closes the network: --network opens it, or `network: [checks]` in config.yaml"
    lines = output.splitlines()
    for path in _named(line for line in lines if _REFUSED.search(line)):
        if _is_hidden(sandbox, path) and os.access(path, os.R_OK):
            yield f"the sandbox hides {path}: `readable: [{path}]` in config.yaml shows it"
            break
    if any(map(_is_writable, _named(line for line in lines if _READ_ONLY in line))):
        yield "the sandbox keeps everything but the repository and temporary files read-only"


def _named(lines: Iterable[str]) -> Iterator[Path]:
    """Yield the absolute paths that stand in lines."""
    found = dict.fromkeys("".join(groups) for line in lines for groups in _PATH.findall(line))
    yield from map(Path, found)


def _is_hidden(sandbox: Sandbox, path: Path) -> bool:
    """Tell whether a path is out of the reach of commands; copies of the repository are not."""
    places = sandbox.places()
    shown = any(path.is_relative_to(place) for place in (sandbox.root, *places.readable))
    return not shown and not is_scratch(path) and any(path.is_relative_to(top) for top in places.hidden)


def _is_writable(path: Path) -> bool:
    """Tell whether a file could be written or made there outside the sandbox."""
    place = next(place for place in (path, *path.parents) if os.access(place, os.F_OK))
    return os.access(place, os.W_OK)
