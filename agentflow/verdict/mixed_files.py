"""Files that hold product and checks: tables of settings, tests in source files, and how each is mixed."""

import ast
import configparser
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from agentflow.checks.detect import CHECK_SCRIPTS
from agentflow.core.evidence import Surface
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.runners.scripts import get_table
from agentflow.verdict.syntax import Definition, read_python

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
_AROUND_SCRIPTS = ("pre", "post")
"""The beginnings of scripts that run with another one."""
_EXAMPLE = ">>> "
_TEST = "test "
_TEST_MODULE = regex(
    r"(?m)^[ \t]*#\[cfg\((?:test|all\(test\b[^\n]*)\)\][^\n]*\n"
    r"(?:[ \t]*#\[[^\n]*\n)*[ \t]*(?:pub )?mod (\w+)\s*\{"
)
_WHOLE_CHECKS = (_TEST, "mod ")
"""The beginnings of names of parts that are only checks; documentation stays, since a lint may want it."""
_EXAMPLES = regex(r"(?s)(```)[^\n]*(.*?```)|(>>>) ")
_DOC_BLOCK = regex(r"(?m)(?:^[ \t]*//[/!][^\n]*\n)+")
_ITEM = regex(r"\b(?:fn|struct|enum|trait|mod|type|const|static|impl|macro_rules!)\s+(\w+)")
_FENCE = "```"
_QUOTES = regex(r"'(?:\\.|[^\\'\n])'|\"(?:\\.|[^\"\\])*\"|//[^\n]*|/\*.*?\*/|r(#*)\".*?\"\1", re.DOTALL)


def is_shared(path: str) -> bool:
    """Return whether a settings file may hold tables of checkers beside those of the product."""
    return path.rpartition("/")[2] in _MIXERS


def mix(path: str, before: str, now: str) -> str:
    """Return a file with the checks of `before` and the product of `now`.

    Where the tables of a settings file cannot be told apart for certain, it is the file as it was before.
    """
    mixer = _MIXERS.get(path.rpartition("/")[2])
    if mixer is None:
        return _mix_parts(path, before, now)
    try:
        return mixer(before, now)
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
                name: {key: value for key, value in get_table(own, name).items() if key in keys}
                for name, keys in _CARGO_TESTS.items()
                if name in own
            }
        case "package.json":
            return {
                key: said for key, said in get_table(json.loads(text or "{}")).items() if key in _CHECKER_KEYS
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
    merged = {key: value for key, value in new.items() if key in _PRODUCT_TABLES}
    merged |= {key: value for key, value in old.items() if key not in {*_PRODUCT_TABLES, "tool"}}
    tools = {key: value for key, value in new.get("tool", {}).items() if key in _PRODUCT_TOOLS}
    tools |= {key: value for key, value in old.get("tool", {}).items() if key not in _PRODUCT_TOOLS}
    merged |= {"tool": tools} if tools else {}
    return _with_plugins(merged, get_table(old, "project", "entry-points").get("pytest11"))


def _merge_crate(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = {key: value for key, value in new.items() if key != "test"}
    merged |= {"test": old["test"]} if "test" in old else {}
    for name, keys in _CARGO_TESTS.items():
        own = {key: value for key, value in get_table(new, name).items() if key not in keys}
        own |= {key: value for key, value in get_table(old, name).items() if key in keys}
        merged |= {name: own} if own or name in new else {}
    return merged


def _with_plugins(document: dict[str, Any], plugins: object) -> dict[str, Any]:
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
    old, new = json.loads(before or "{}"), json.loads(now)
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return before
    mixed = {key: value for key, value in new.items() if key not in _CHECKER_KEYS}
    mixed |= {key: value for key, value in old.items() if key in _CHECKER_KEYS}
    if added := _find_free_scripts(get_table(old, "scripts"), get_table(new, "scripts")):
        mixed["scripts"] = {**get_table(old, "scripts"), **added}
    if names := {**_names_in(new), **_names_in(old)}:
        mixed["imports"] = names  # checks load code by names that had a meaning before
    if mixed == new or (before and mixed == old):
        return now if mixed == new else before
    return json.dumps(mixed, indent=2, ensure_ascii=False) + "\n"


def _find_free_scripts(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    said = {word for text in old.values() for word in re.findall(r"[\w-]+", str(text))}
    said |= {script.partition(":")[0] for _, script in CHECK_SCRIPTS}
    rest = {name: text for name, text in new.items() if name not in old}
    return {
        name: text
        for name, text in rest.items()
        if name.partition(":")[0] not in said and not name.startswith(_AROUND_SCRIPTS)
    }


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


class CheckPart(Record):
    """A piece of a file that is a check, from one character to another."""

    name: str
    """The name by which the part is found in another version of the file."""
    begin: int
    end: int
    text: str
    is_named: bool = True
    """The part contains a check; otherwise it only marks where one could stand."""


def has_parts(surface: Surface, path: str) -> bool:
    """Return whether a source file may contain checks, by its language or by an earlier run."""
    suffix = PurePosixPath(path).suffix
    return suffix == ".rs" or (suffix == ".py" and (surface.has_doctests or path in surface.parted))


def extract_checks(path: str, text: str) -> str:
    """Return the parts of a source file that are checks."""
    return "\n".join(part.text for part in _parts(path, text) if part.is_named)


def blank_checks(path: str, text: str, *, is_cut: bool = False) -> str:
    """Return a source file with blanks for its tests, or without them; examples in docstrings stay."""
    for part in reversed(_parts(path, text)) if not path.endswith(".py") else ():
        if part.is_named:
            blank = "".join(sign if sign == "\n" else " " for sign in text[part.begin : part.end])
            text = text[: part.begin] + ("" if is_cut else blank) + text[part.end :]
    return text


def _mix_parts(path: str, before: str, now: str) -> str:
    if path.endswith(".py") and read_python(now) is None:
        return now
    old = {part.name: part for part in _parts(path, before) if part.is_named}
    pieces, start = [], 0
    parts = _parts(path, now)
    for part in parts:
        if part.name in old or part.is_named:
            pieces += [now[start : part.begin], _lay(old.get(part.name), now, part)]
            start = part.end
    lost = [part for name, part in old.items() if name not in {each.name for each in parts}]
    return "".join((*pieces, now[start:], *(f"\n{text}\n" for part in lost if (text := _alone(path, part)))))


def _lay(old: CheckPart | None, now: str, part: CheckPart) -> str:
    """Return an original check as it stands where a part of the new file is, or where there is none yet."""
    if old is None:
        return "" if part.name.startswith(_WHOLE_CHECKS) else _EXAMPLES.sub(_say_as_text, part.text)
    if part.begin < part.end:
        return old.text
    indent = now[now.rfind("\n", 0, part.begin) + 1 : part.begin]
    return f"{old.text}; " if indent.strip() else f"{old.text}\n{indent}"


def _say_as_text(example: re.Match[str]) -> str:
    return f"```text{example[2]}" if example[1] else "... "


def _alone(path: str, part: CheckPart) -> str:
    """Return a check whose place no longer exists, in a form that still runs."""
    if path.endswith(".rs"):
        return "" if part.name.startswith(("doc ", "file")) else part.text
    if part.name.startswith(_TEST):
        return part.text
    is_function = part.name.count(".") == 1
    return (
        f"def {part.name[1:]}(*_, **__):\n    {part.text}\n    raise NotImplementedError\n"
        if is_function
        else ""
    )


def _parts(path: str, text: str) -> list[CheckPart]:
    found = [*_modules(text), *_doc_blocks(text)] if path.endswith(".rs") else list(_docstrings(text))
    inner = [part for part in found if any(each.begin < part.begin < each.end for each in found)]
    return sorted((part for part in found if part not in inner), key=lambda part: (part.begin, part.end))


def _modules(text: str) -> Iterator[CheckPart]:
    bare = _QUOTES.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in _TEST_MODULE.finditer(bare):
        end = _find_end(bare, found.end())
        yield CheckPart(name=f"mod {found[1]}", begin=found.start(), end=end, text=text[found.start() : end])


def _find_end(text: str, start: int) -> int:
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)


def _doc_blocks(text: str) -> Iterator[CheckPart]:
    for found in _DOC_BLOCK.finditer(text):
        item = _ITEM.search(text, found.end())
        name = "file" if found[0].lstrip().startswith("//!") else f"doc {item[1] if item else ''}"
        is_named = _FENCE in found[0]
        yield CheckPart(name=name, begin=found.start(), end=found.end(), text=found[0], is_named=is_named)


def _docstrings(text: str) -> Iterator[CheckPart]:
    """Yield each docstring; what has none is the place for one."""
    tree = read_python(text)
    if tree is None:
        return
    starts = [0]
    for line in io.StringIO(text, newline=""):  # a form feed ends no line of Python
        starts.append(starts[-1] + len(line))
    yield from _tests(text, starts, tree)
    owners = list(_owners("", tree))
    told = {name for name, node in owners if ast.get_docstring(node, clean=False) is not None}
    for name, node in owners:
        said = ast.get_docstring(node, clean=False)
        if said is not None:
            begin, end = _place(text, starts, node.body[0])
            yield CheckPart(name=name, begin=begin, end=end, text=text[begin:end], is_named=_EXAMPLE in said)
        elif name not in told and node.body:
            begin = _begin(text, starts, node.body[0])
            yield CheckPart(name=name, begin=begin, end=begin, text="", is_named=False)


def _tests(text: str, starts: list[int], tree: ast.Module) -> Iterator[CheckPart]:
    for node in tree.body:
        if isinstance(node, Definition):
            methods = node.body if isinstance(node, ast.ClassDef) and node.bases else []
            named = (each.name for each in (node, *methods) if isinstance(each, Definition))
            if not any(name.lower().startswith("test") for name in named):
                continue
            begin, end = _begin(text, starts, node), _place(text, starts, node)[1]
            yield CheckPart(name=f"{_TEST}{node.name}", begin=begin, end=end, text=text[begin:end])


def _begin(text: str, starts: list[int], node: ast.stmt) -> int:
    marks = [_place(text, starts, mark)[0] for mark in getattr(node, "decorator_list", ())]
    return min((text.rindex("@", 0, place) for place in marks), default=_place(text, starts, node)[0])


def _place(text: str, starts: list[int], node: ast.stmt | ast.expr) -> tuple[int, int]:
    lines = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    begin, end = (
        starts[line - 1]
        + len(text[starts[line - 1] : starts[line]].encode()[:column].decode("utf-8", "ignore"))
        for line, column in lines
    )
    return begin, end


_Owner = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _owners(prefix: str, node: _Owner) -> Iterator[tuple[str, _Owner]]:
    yield prefix, node
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _owners(f"{prefix}.{child.name}", child)
