"""The input of a tool call, as models write it, into what the tool asks for."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from agentflow.core.record import Record
from agentflow.parse import Mismatch, decode_or_none, fit

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def parsed(kind: type[Record], value: dict[str, Any]) -> Record:
    """Return a call's input as the tool's input type; what fits as it stands is not touched.

    Otherwise the same values are tried in their other spellings ("60" for 60, JSON in a string, one
    item for a list of it, all wrapped in `input`); nothing is invented. Raises Mismatch of the input as
    it was given.
    """
    try:
        return fit(kind, value)
    except Mismatch:
        for candidate in _spellings(kind, value):
            try:
                return fit(kind, candidate, lax=True)
            except Mismatch:
                continue
        raise


def _spellings(kind: type[Record], value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield value
    inner = value.get("input")
    if len(value) == 1 and isinstance(inner, dict):
        yield inner
        value = inner
    unpacked = {key: _unpacked(item) for key, item in value.items()}
    yield unpacked
    fields = msgspec.structs.fields(kind)
    lists = {field.encode_name for field in fields if "tuple[" in str(field.type)}
    yield {
        key: [item] if key in lists and not isinstance(item, list) else item for key, item in unpacked.items()
    }


def _unpacked(item: object) -> object:
    """Return what a string holds if it holds a JSON object or list."""
    if not isinstance(item, str) or item[:1] not in ("{", "["):
        return item
    found = decode_or_none(item)
    return item if found is None else found


def submission_in(text: str, kind: type[Record]) -> dict[str, Any] | None:
    """Return the first JSON object in a text that fits a type: fenced ones first, else the first brace."""
    candidates = [found.group(1) for found in _FENCED.finditer(text)]
    start, end = text.find("{"), text.rfind("}")
    if start != -1 and end > start:
        candidates.append(text[start : end + 1])
    for candidate in candidates:
        found: dict[str, Any] = decode_or_none(candidate)
        with suppress(Mismatch):
            fit(kind, found)
            return found
    return None


def writable(value: Any) -> Any:
    """Return plain data in which every half character is an escape, so that it can stand in a file."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {writable(key): writable(item) for key, item in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value
