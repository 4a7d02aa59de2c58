"""The single gate for outside data: into our types, or an error that names file and key."""

from typing import Any, TypeVar

import msgspec

from agentflow.core.errors import InvalidFile
from agentflow.core.record import plain

T = TypeVar("T")
_IMPLIED = (("minLength", 1), ("minimum", 1), ("default", 1), ("default", "."))
"""Bounds and defaults that a model does not need to know."""


class Mismatch(ValueError):
    """Data does not fit a type; says where and how, for people."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key = key
        self.problem = problem


def fit(kind: type[T], value: object, *, lax: bool = False) -> T:
    """Return plain data as a value of a type; `lax` also takes "3" for 3. Raises Mismatch."""
    try:
        return msgspec.convert(value, kind, strict=not lax)
    except msgspec.ValidationError as error:
        raise _to_mismatch(error) from None


def parse(kind: type[T], value: object, source: str, *, lax: bool = False) -> T:
    """Return plain data from a file as a value of a type. Raises InvalidFile naming file and key."""
    try:
        return fit(kind, value, lax=lax)
    except Mismatch as error:
        raise InvalidFile(source, str(error)) from None


def decode(kind: type[T], raw: bytes | str, source: str) -> T:
    """Return JSON text as a value of a type. Raises InvalidFile."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidFile(source, str(_to_mismatch(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(source, f"not JSON: {error}") from None
    except RecursionError:
        raise InvalidFile(source, "nested too deeply") from None


def decode_or_none(raw: str) -> Any:
    """Return the value of a JSON text, or None if it is invalid or nested too deeply."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def schema(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON schema of a record type for a model, each type in its place."""
    (top,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    found: dict[str, Any] = _shorten(dict(components[top["$ref"]]), components)
    found.pop("description", None)
    return dict(plain(found))


def _shorten(component: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without what a model does not need, since every request carries the schemas.

    A key marked as deprecated is still accepted, but no model sees it.
    """
    kept = {key: value for key, value in component.items() if key not in ("title", "additionalProperties")}
    if "properties" in kept:
        shown = {key: _simplify(value, components) for key, value in kept["properties"].items()}
        kept["properties"] = {key: value for key, value in shown.items() if not value.get("deprecated")}
    return kept


def _simplify(value: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a key without the alternative null and without empty defaults."""
    kinds = [kind for kind in value.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        value = {**value, **kinds[0], "anyOf": None}
    if isinstance(value.get("$ref"), str):
        meant = _shorten(components[value["$ref"]], components)
        value = {**{key: said for key, said in meant.items() if key != "description"}, **value, "$ref": None}
    inner = {key: value[key] for key in ("items", "additionalProperties") if isinstance(value.get(key), dict)}
    value = {**value, **{key: _simplify(each, components) for key, each in inner.items()}}
    told = {key: said for key, said in value.items() if said or key not in ("default", "anyOf", "$ref")}
    return {key: said for key, said in told.items() if (key, said) not in _IMPLIED}


def _to_mismatch(error: msgspec.ValidationError) -> Mismatch:
    problem, _, where = str(error).partition(" - at `")
    key = where.removeprefix("key` in `").rstrip("`").removeprefix("$").lstrip(".").removesuffix("[...]")
    return Mismatch(key, problem[:1].lower() + problem[1:])
