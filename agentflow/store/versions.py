"""Saved state of an older version, taken step by step to the one we write."""

from collections.abc import Callable, Mapping
from typing import Any

from agentflow.core.errors import CorruptState
from agentflow.core.task import STATE_VERSION

Fields = dict[str, Any]


def _named(fields: Fields) -> Fields:
    """Let a state name its version; one that names none has the keys of version 1 as far as it has any.

    Before routes had names, its phases were its route; without any, nothing would be left to do.
    """
    gates: dict[str, Any] = fields.get("gates", {})
    is_begun = gates.get("refinement", {}).get("status") == "passed" and "runs" in fields
    steps = [name for name, gate in gates.items() if name != "refinement" and gate["status"] != "skipped"]
    return {**({"steps": steps} if is_begun else {}), **fields, "version": 1}


STEPS: Mapping[int, Callable[[Fields], Fields]] = {0: _named}
"""From each older version to the one after it; a key that is only added needs no step but its default."""


def upgraded(fields: Fields, source: str, version: object = STATE_VERSION) -> Fields:
    """Return a state's keys as of a version. Raises CorruptState for a version that is not known here."""
    written = _known(fields.get("version", 0), source)
    for step in range(written, _known(version, source)):
        fields = STEPS[step](fields)
    return fields


def _known(version: object, source: str) -> int:
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise CorruptState(f"{source}: version: {version!r} is no version")
    if version > STATE_VERSION:
        raise CorruptState(
            f"{source}: version {version} was written by a newer agentflow",
            hint=f"this one knows version {STATE_VERSION}; nothing was changed",
        )
    return version
