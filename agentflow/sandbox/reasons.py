"""Why a check may be red inside the sandbox although it is green outside."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agentflow.sandbox.places import find_places
from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox

NETWORK = re.compile(
    r"Network is unreachable|ENETUNREACH|EAI_AGAIN|[Nn]ame resolution|Name or service not known"
    r"|[Cc]ould not resolve|Failed to establish a new connection|dial tcp"
)
_MISSING = re.compile(r"(/[^\s'\":]+)['\"]?(?:: No such file or directory|: Permission denied)?")
_READ_ONLY = "Read-only file system"


def likely_reason(sandbox: Sandbox, output: str) -> str:
    """Return what of a failed output the sandbox may have caused, and what opens it; else empty."""
    if sandbox.level is Level.NONE:
        return ""
    return "; ".join(_reasons(sandbox, output))


def _reasons(sandbox: Sandbox, output: str) -> Iterator[str]:
    if NETWORK.search(output) and sandbox.who not in sandbox.opened.network:
        yield "the sandbox closes the network: --network opens it, or `network: [checks]` in config.yaml"
    places = find_places(sandbox.root, os.environ, sandbox.opened.readable)
    shown = (sandbox.root, *places.readable)
    for name in dict.fromkeys(_MISSING.findall(output)):
        path = Path(name)
        hidden = any(path.is_relative_to(top) for top in places.hidden)
        if hidden and os.access(path, os.F_OK) and not any(path.is_relative_to(place) for place in shown):
            yield f"the sandbox hides {path}: `readable: [{path}]` in config.yaml shows it"
            break
    if _READ_ONLY in output:
        yield "the sandbox keeps everything but the repository and temporary files read-only"
