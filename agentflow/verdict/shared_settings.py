"""Files with settings of checkers beside those of the product: the first as before, the rest as now."""

import configparser
import io
import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

_PRODUCT_TABLES = frozenset({"project", "build-system", "dependency-groups"})
_PRODUCT_TOOLS = frozenset(
    {"poetry", "uv", "pdm", "hatch", "setuptools", "setuptools_scm", "flit", "maturin", "scikit-build"}
)
_PLUGIN_POINT = ("project", "entry-points", "pytest11")
_PRODUCT_SECTION = re.compile(r"metadata|options(?:\..*)?|bdist_wheel|sdist|egg_info")
_CHECKER_KEYS = frozenset(
    {"scripts", "jest", "vitest", "mocha", "ava", "nyc", "c8", "eslintConfig", "eslintIgnore", "babel", "tap"}
)
_HEADER = re.compile(r"(?m)^[ \t]*\[\[?([^\[\]\n]+)\]\]?[ \t]*(?:#.*)?$")
Keys = tuple[str, ...]


def is_shared(path: str) -> bool:
    """Return whether a file holds both kinds of settings."""
    return path.rpartition("/")[2] in _MIXERS


def mix(path: str, before: str, now: str) -> str:
    """Return a shared file with the checkers' settings of `before` and the product's of `now`.

    Where the two cannot be told apart for certain, it is the file as it was before.
    """
    try:
        return _MIXERS[path.rpartition("/")[2]](before, now)
    except (ValueError, configparser.Error, RecursionError):  # one of the two is damaged
        return before


def _mix_toml(before: str, now: str) -> str:
    from tomllib import loads  # noqa: PLC0415

    old, new = loads(before), loads(now)
    wanted = _merge(old, new)
    if wanted == new:
        return now
    if wanted == old:
        return before
    kept = [text for keys, text in _blocks(now) if _is_product(keys)]
    kept += [text for keys, text in _blocks(before) if not _is_product(keys)]
    found = "\n".join(kept)
    return found if loads(found) == wanted else before


def _merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return what the mixed document has to say, by which the text is then tested."""
    merged = {key: value for key, value in new.items() if key in _PRODUCT_TABLES}
    merged |= {key: value for key, value in old.items() if key not in {*_PRODUCT_TABLES, "tool"}}
    tools = {key: value for key, value in new.get("tool", {}).items() if key in _PRODUCT_TOOLS}
    tools |= {key: value for key, value in old.get("tool", {}).items() if key not in _PRODUCT_TOOLS}
    merged |= {"tool": tools} if tools else {}
    return _with_plugins(merged, _at(old, _PLUGIN_POINT))


def _with_plugins(document: dict[str, Any], plugins: object) -> dict[str, Any]:
    """Return the document with these plugins of pytest and no others."""
    project = dict(document.get("project", {}))
    points = {key: value for key, value in project.pop("entry-points", {}).items() if key != "pytest11"}
    points |= {"pytest11": plugins} if plugins else {}
    project |= {"entry-points": points} if points else {}
    return document | ({"project": project} if project else {})


def _at(document: Any, keys: Keys) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _blocks(text: str) -> list[tuple[Keys, str]]:
    """Return the tables of a TOML document as they are written, each with the keys of its header."""
    starts = [0, *(match.start() for match in _HEADER.finditer(text)), len(text)]
    parts = (text[begin:end] for begin, end in pairwise(starts))
    return [(_keys(part), part) for part in parts if part.strip()]


def _keys(block: str) -> Keys:
    match = _HEADER.match(block)
    return tuple(word.strip().strip("\"'") for word in match[1].split(".")) if match else ()


def _is_product(keys: Keys) -> bool:
    if keys[:3] == _PLUGIN_POINT:
        return False
    return keys[:1] != () and (keys[0] in _PRODUCT_TABLES or (keys[:1] == ("tool",) and _is_tool(keys[1:2])))


def _is_tool(name: Keys) -> bool:
    return not _PRODUCT_TOOLS.isdisjoint(name)


def _mix_ini(before: str, now: str) -> str:
    old, new = _ini(before), _ini(now)
    mixed = _ini("")
    for source, product in ((new, True), (old, False)):
        for section in source.sections():
            if bool(_PRODUCT_SECTION.fullmatch(section)) is product:
                mixed[section] = dict(source[section])
    written = io.StringIO()
    mixed.write(written)
    return written.getvalue()


def _ini(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # keys keep their case
    parser.read_string(text)
    return parser


def _mix_json(before: str, now: str) -> str:
    old, new = json.loads(before), json.loads(now)
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return before
    mixed = {key: value for key, value in new.items() if key not in _CHECKER_KEYS}
    mixed |= {key: value for key, value in old.items() if key in _CHECKER_KEYS}
    if names := {**_names_in(new), **_names_in(old)}:
        mixed["imports"] = names  # checks load code by names that had a meaning before
    if mixed in (old, new):
        return now if mixed == new else before
    return json.dumps(mixed, indent=2, ensure_ascii=False) + "\n"


def _names_in(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get("imports")
    return found if isinstance(found, dict) else {}


_MIXERS: Mapping[str, Callable[[str, str], str]] = MappingProxyType(
    {"pyproject.toml": _mix_toml, "setup.cfg": _mix_ini, "package.json": _mix_json}
)
