"""The single gate for outside data: into our types, or an error that names file and key."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import msgspec

from agentflow.core.errors import InvalidFile
from agentflow.core.record import to_builtins
from agentflow.core.regex import regex

T = TypeVar("T")
Pairs = list[tuple[str, Any]]
_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}
_ONE_AT_A_TIME = RLock()
"""Held while msgspec looks into a type: it crashes where another thread uses what it has half made."""
_BYTE = regex(r" \(byte (\d+)\)$")
"""Where a JSON text is wrong."""
_UNKNOWN = regex(r"(?:object contains unknown field `|invalid enum value ')([^`']+)")
_STEP = regex(r"[^.\[\]]+")
_MOST_KNOWN = 12
"""More words than that are not listed in a message."""
_IMPLIED = (("minLength", 1), ("minimum", 1), ("default", 1), ("default", "."))
"""Bounds and defaults that a model does not need to know."""


class Mismatch(ValueError):
    """Data does not fit a type; says where and how, for people."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key = key
        self.problem = problem


def _find_decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type; once it is there, so is all that msgspec has to know of the type."""
    found = _DECODERS.get(kind)
    if found is None:
        with _ONE_AT_A_TIME:
            found = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return found


def fit(kind: type[T], value: object, *, lax: bool = False) -> T:
    """Return plain data as a value of a type; `lax` also takes "3" for 3. Raises Mismatch."""
    _find_decoder(kind)
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
    """Return JSON text as a value of a type. Raises InvalidFile, with the line where the text has several."""
    text = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    try:
        value: T = _find_decoder(kind).decode(text.removeprefix(BOM_UTF8))
    except msgspec.ValidationError as error:
        raise InvalidFile(source, str(_to_mismatch(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = _BYTE.search(str(error))  # none in a text that was cut off, which is wrong at its end
        above = text.rstrip().count(b"\n", 0, int(place[1]) if place else None)
        line = above + 1 if b"\n" in text.strip() else None
        problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
        raise InvalidFile(source, f"not JSON: {problem}", line=line) from None
    except RecursionError:
        raise InvalidFile(source, "nested too deeply") from None
    return value


def read_json(text: str, source: str, pairs: Callable[[Pairs], Any] | None = None) -> Any:
    """Return a JSON file of any shape as plain data, each object as `pairs` makes it. Raises InvalidFile."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise InvalidFile(source, f"not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise InvalidFile(source, "nested too deeply") from None
    except ValueError:
        raise InvalidFile(source, "holds a number that is too long to be read") from None


def expand_home(text: str) -> Path:
    """Return a path, a leading `~` as the home; one of a user who does not exist stays as it is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def decode_or_none(raw: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def make_schema(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON schema of a record type for a model, each type in its place."""
    (top,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    found: dict[str, Any] = _shorten(dict(components[top["$ref"]]), components)
    found.pop("description", None)
    return dict(to_builtins(found))


def _shorten(component: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Every request carries the schemas. A key marked as deprecated is accepted, but no model sees it."""
    kept = {key: value for key, value in component.items() if key not in ("title", "additionalProperties")}
    if not kept.get("required"):
        kept.pop("required", None)
    if "properties" in kept:
        shown = {key: _simplify(value, components) for key, value in kept["properties"].items()}
        kept["properties"] = {key: value for key, value in shown.items() if not value.get("deprecated")}
    return kept


def _simplify(value: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
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


def has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(has_null(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return any(map(has_null, value))
    return isinstance(value, str) and "\0" in value


def suggest_known(kind: type[Any], error: Mismatch) -> str:
    """Return what a word that is not known may have meant, or which words there are; else nothing."""
    found = _UNKNOWN.match(error.problem)
    if found is None:
        return ""
    from difflib import get_close_matches  # noqa: PLC0415  # only for what is wrong

    from msgspec.inspect import type_info  # noqa: PLC0415

    names = _list_known(type_info(kind), _STEP.findall(error.key), is_field="field" in found[0])
    if near := get_close_matches(found[1], names, n=1):
        return f"; did you mean {near[0]}?"
    return f"; known are {', '.join(names)}" if 0 < len(names) <= _MOST_KNOWN else ""


def _list_known(described: Any, steps: list[str], *, is_field: bool) -> tuple[str, ...]:
    inner = [getattr(described, name) for name in ("type", "item_type") if hasattr(described, name)]
    match type(described).__name__:
        case "UnionType":
            inner = list(described.types)
        case "DictType" if steps or is_field:
            inner = [described.value_type]
        case "DictType":
            inner = [described.key_type, described.value_type]
        case "StructType" if steps:
            inner = [field.type for field in described.fields if field.encode_name == steps[0]]
        case "StructType" if is_field:
            return tuple(field.encode_name for field in described.fields)
        case "EnumType" if not is_field:
            return tuple(str(each.value) for each in described.cls)
        case "LiteralType" if not is_field:
            return tuple(map(str, described.values))
    left = steps if type(described).__name__ in ("Metadata", "UnionType") else steps[1:]
    return next(filter(None, (_list_known(each, left, is_field=is_field) for each in inner)), ())


def _to_mismatch(error: msgspec.ValidationError) -> Mismatch:
    problem, _, where = str(error).partition(" - at `")
    key = where.removeprefix("key` in `").rstrip("`").removeprefix("$").lstrip(".").removesuffix("[...]")
    return Mismatch(key, problem[:1].lower() + problem[1:])
