"""Settings files that product and checkers share: checkers' tables of before, the product's of now."""

import configparser
import io
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from agentflow.checks.repository import table

_PRODUCT_TABLES = frozenset({"project", "build-system", "dependency-groups"})
_PRODUCT_TOOLS = frozenset(
    {"poetry", "uv", "pdm", "hatch", "setuptools", "setuptools_scm", "flit", "maturin", "scikit-build"}
)
_CARGO_TESTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"package": frozenset({"autotests"}), "lib": frozenset({"test", "doctest", "harness"})}
)
"""The keys by which a crate's manifest speaks of its tests, beside their own tables."""
_PRODUCT_SECTION = re.compile(r"metadata|options(?:\..*)?|bdist_wheel|sdist|egg_info")
_CHECKER_KEYS = frozenset(
    {"scripts", "jest", "vitest", "mocha", "ava", "nyc", "c8", "eslintConfig", "eslintIgnore", "babel", "tap"}
)


def is_shared(path: str) -> bool:
    """Return whether a settings file may hold tables of checkers beside those of the product."""
    return path.rpartition("/")[2] in _MIXERS


def mix(path: str, before: str, now: str) -> str:
    """Return a settings file with the checkers' tables of `before` and the product's tables of `now`.

    Where the two cannot be told apart for certain, it is the file as it was before.
    """
    try:
        return _MIXERS[path.rpartition("/")[2]](before, now)
    except (ValueError, configparser.Error, RecursionError):  # one of the two is damaged
        return before


def read_checker_settings(path: str, text: str) -> Mapping[str, object]:
    """Return what a settings file says to checkers, by table. Raises ValueError and configparser.Error."""
    match path.rpartition("/")[2]:
        case "pyproject.toml":
            from tomllib import loads  # noqa: PLC0415

            found = _merge(loads(text), {})
            return {**found.pop("tool", {}), **found}
        case "setup.cfg" | "tox.ini":
            parser = _ini(text)
            names = (name for name in parser.sections() if not _PRODUCT_SECTION.fullmatch(name))
            return {name: dict(parser[name]) for name in names}
        case "Cargo.toml":
            from tomllib import loads  # noqa: PLC0415

            own = {key: value for key, value in loads(text).items() if key in ("test", *_CARGO_TESTS)}
            return own | {
                name: {key: value for key, value in table(own, name).items() if key in keys}
                for name, keys in _CARGO_TESTS.items()
                if name in own
            }
        case "package.json":
            return {
                key: said for key, said in table(json.loads(text or "{}")).items() if key in _CHECKER_KEYS
            }
        case _:
            return {"": text}


def _mix_tables(
    merge: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]], before: str, now: str
) -> str:
    from tomllib import loads  # noqa: PLC0415

    from tomlkit import dumps  # noqa: PLC0415  # only where a project file changed on both sides

    old, new = loads(before), loads(now)
    wanted = merge(old, new)
    if wanted == new:
        return now
    if wanted == old:
        return before
    found = dumps(wanted)
    return found if loads(found) == wanted else before


def _merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the mixed document as data, to verify the mixed text against."""
    merged = {key: value for key, value in new.items() if key in _PRODUCT_TABLES}
    merged |= {key: value for key, value in old.items() if key not in {*_PRODUCT_TABLES, "tool"}}
    tools = {key: value for key, value in new.get("tool", {}).items() if key in _PRODUCT_TOOLS}
    tools |= {key: value for key, value in old.get("tool", {}).items() if key not in _PRODUCT_TOOLS}
    merged |= {"tool": tools} if tools else {}
    return _with_plugins(merged, table(old, "project", "entry-points").get("pytest11"))


def _merge_crate(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a crate's manifest with the test targets of before."""
    merged = {key: value for key, value in new.items() if key != "test"}
    merged |= {"test": old["test"]} if "test" in old else {}
    for name, keys in _CARGO_TESTS.items():
        own = {key: value for key, value in table(new, name).items() if key not in keys}
        own |= {key: value for key, value in table(old, name).items() if key in keys}
        merged |= {name: own} if own or name in new else {}
    return merged


def _with_plugins(document: dict[str, Any], plugins: object) -> dict[str, Any]:
    """Return a document in which pytest loads exactly these plugins."""
    project = dict(document.get("project", {}))
    points = {key: value for key, value in project.pop("entry-points", {}).items() if key != "pytest11"}
    points |= {"pytest11": plugins} if plugins else {}
    project |= {"entry-points": points} if points else {}
    return document | ({"project": project} if project else {})


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
    {
        "pyproject.toml": partial(_mix_tables, _merge),
        "setup.cfg": _mix_ini,
        "package.json": _mix_json,
        "Cargo.toml": partial(_mix_tables, _merge_crate),
    }
)
