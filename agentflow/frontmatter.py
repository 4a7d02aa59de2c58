"""Markdown with a YAML head, in both directions; the only door to YAML.

Our own files are read strictly, because a head that is read as empty would be a silent restart: the fence
must be closed, keys are unique, anchors are refused, and only `null`, `true`, `false` and whole numbers are
not strings, so that `no`, `1.10` and `12:30:45` stay what was written. Files that people bring from other
tools are read by python-frontmatter, which is loaded for the first of them.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_origin

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from agentflow.core.errors import InvalidFile
from agentflow.core.regex import regex
from agentflow.parse import Mismatch, fit, suggest_known

T = TypeVar("T")
_EMPTY: tuple[object, object] = ({}, [])
_FENCE = "---"
_MAX_CHARS = 1_000_000
_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
_SURROGATES = regex(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
_MAX_VALUES = 2_000
"""Of a public head; aliases may make many of few."""
_PLAIN_VALUE = regex(r"^(\s*[\w-]+:[ \t]+)([^\s\"'\[{|>&*!].*?|\[[^\]]*\][ \t]*[^\s#].*?)[ \t]*$")
_MERGED = regex(rf"(?:(?!\n{_FENCE}).)*?<<\s*:", re.DOTALL)
"""Merged keys may make many of few before any value can be counted."""
_KIND = regex(r"`([\w |]+)`")
_KINDS = {
    "object": "keys and values",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}
"""The types of JSON, as somebody who writes YAML calls them."""
_KEY = regex(r"([^\s:#\"'-][^:]*):")
_FORBIDDEN = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class _Loader(Composer, SafeConstructor, Resolver):
    """YAML as data: no anchors, no duplicate keys, few implicit types."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def __init__(self, text: str) -> None:
        for base in (Composer, SafeConstructor, Resolver):
            base.__init__(self)
        text = _pair_surrogates(text)
        in_c = yaml.__with_libyaml__ and not _SURROGATE.search(text)  # which libyaml refuses
        self._events = (yaml.CLoader if in_c else yaml.SafeLoader)(text)  # ten times as fast in C
        self.check_event = self._events.check_event
        self.get_event = self._events.get_event
        self.peek_event = self._events.peek_event

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a word", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _pair_surrogates(text: str) -> str:
    """Return JSON with each escaped pair of surrogates as the one character that YAML lets be escaped."""
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    return _SURROGATES.sub(lambda pair: pair[1] + json.loads(f'"{pair[2]}"'), text)


class _Dumper(yaml.SafeDumper):
    """YAML whose odd strings stand in double quotes, where every character has an escape."""


class _FastDumper(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    """The same in C, which escapes characters above U+FFFF and refuses lone surrogates."""


def _represent_text(dumper: Any, text: str) -> Any:
    plain = text.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


for _kind in (_Dumper, _FastDumper):
    _kind.add_representer(str, _represent_text)

for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("tag:yaml.org,2002:bool", r"^(?:true|false)$", ["t", "f"]),
    ("tag:yaml.org,2002:int", r"^-?(?:0|[1-9][0-9]{0,99})$", list("-0123456789")),
):
    _Loader.add_implicit_resolver(_tag, regex(_pattern), _first)


def load_yaml(text: str, source: str, *, first_line: int = 1) -> Any:
    """Return a YAML text as plain data. Raises InvalidFile with the line."""
    if len(text) > _MAX_CHARS:
        raise InvalidFile(source, f"longer than {_MAX_CHARS:,} characters")
    if found := _FORBIDDEN.search(text):
        line = first_line + text.count("\n", 0, found.start())
        raise InvalidFile(source, f"control character {found.group()!r}", line=line)
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        line = first_line + (error.problem_mark.line if error.problem_mark else 0)
        raise InvalidFile(source, error.problem or "not YAML", line=line) from None
    except yaml.YAMLError as error:
        raise InvalidFile(source, str(error).splitlines()[0]) from None
    except RecursionError:
        raise InvalidFile(source, "nested too deeply") from None


def read_yaml(kind: type[T], text: str, source: str) -> T:
    """Return a YAML text as a value of a type. Raises InvalidFile naming the line and the key."""
    found = load_yaml(text, source)
    try:
        return fit(kind, _EMPTY[get_origin(kind) is tuple] if found is None else found, lax=True)
    except Mismatch as error:
        line = find_line(text, error.key, error.problem)
        problem = _KIND.sub(_name_kind, str(error))
        raise InvalidFile(source, f"{problem}{suggest_known(kind, error)}", line=line) from None


def _name_kind(found: re.Match[str]) -> str:
    kinds = [kind for kind in found[1].split(" | ") if kind != "null"] or ["null"]
    return " or ".join(_KINDS[kind] for kind in kinds) if set(kinds) <= _KINDS.keys() else found[0]


def find_line(text: str, key: str, problem: str = "") -> int | None:
    """Return the line of the key whose value does not fit, or of the key that is not known."""
    node = place = _Loader(text).get_single_node()
    steps = re.findall(r"[^.\[\]]+", key)
    unknown = re.search(r"(?:unknown field `|enum value ')([^`']+)", problem)
    for step in [*steps, *([unknown[1]] if unknown else [])]:
        below: list[tuple[yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.SequenceNode) and step.isdigit():
            below = [(item, item) for item in node.value[int(step) :]]
        elif isinstance(node, yaml.MappingNode):
            below = [(key, value) for key, value in node.value if key.value == step]
        if not below:
            place = node  # one of what it holds
            break
        place, node = below[0]
    return place.start_mark.line + 1 if place is not None else None


def dump_yaml(values: dict[str, Any]) -> str:
    """Return plain data as block YAML that `load_yaml` reads back equal."""
    try:
        text = _dump(values, _FastDumper)
    except UnicodeEncodeError:
        return _dump(values, _Dumper)
    return _dump(values, _Dumper) if "\\U" in text else text


def _dump(values: dict[str, Any], kind: type) -> str:
    text: str = yaml.dump(values, Dumper=kind, sort_keys=False, allow_unicode=True, width=1_000_000)
    return text


def split(text: str, source: str) -> tuple[dict[str, Any], str]:
    """Return head and body of a Markdown text. Raises InvalidFile unless there is a closed head."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != _FENCE:
        raise InvalidFile(source, f"must begin with a line {_FENCE!r}", line=1)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise InvalidFile(source, f"the head is not closed by a line {_FENCE!r}", line=len(lines))
    head = load_yaml("".join(lines[1:end]), source, first_line=2)
    if not isinstance(head, dict):
        raise InvalidFile(source, "the head must be keys and values", line=2)
    return head, "".join(lines[end + 1 :])


class PublicText(NamedTuple):
    """A file that people bring from other tools."""

    head: dict[str, Any]
    body: str
    quoted: tuple[int, ...] = ()
    """The lines whose value was no YAML, because of a colon, and counts as text."""


def read_public(text: str, source: str) -> PublicText:
    """Return head and body of a file written for other tools. Raises InvalidFile for an unreadable head."""
    text = text.removeprefix("\ufeff")
    try:
        return _parse_public(text, source)
    except InvalidFile as error:
        lines = text.split("\n")
        end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)

        def quote(found: re.Match[str]) -> str:
            key, value = found.groups()
            is_odd = ": " in value or value.endswith(":") or value.startswith("[")  # as in `[number] [file]`
            return key + (json.dumps(value, ensure_ascii=False) if is_odd else value)

        quoted = [*(_PLAIN_VALUE.sub(quote, line) for line in lines[:end]), *lines[end:]]
        changed = tuple(number for number, line in enumerate(quoted, 1) if line != lines[number - 1])
        if not changed:
            raise
        try:
            return _parse_public("\n".join(quoted), source)._replace(quoted=changed)
        except InvalidFile:
            raise error from None


def _parse_public(text: str, source: str) -> PublicText:
    import frontmatter  # noqa: PLC0415  # loaded only where there is such a file

    if len(text) > _MAX_CHARS:
        raise InvalidFile(source, f"longer than {_MAX_CHARS:,} characters")
    if _MERGED.match(text):
        raise InvalidFile(source, "merged keys (<<) are not read; write them out", line=1)
    try:
        head, body = frontmatter.parse(text)
        values = iter(range(_MAX_VALUES))
        plain = {str(key): _to_plain(value, values) for key, value in head.items()}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        split(text, source)  # names the line, where the strict reader minds it too
        problem = " ".join(str(error).split()) or "not YAML"
        raise InvalidFile(source, problem[:200], line=1) from None
    if not plain:
        split(text, source)
    return PublicText(plain, body)


def _to_plain(value: object, room: Iterator[int]) -> Any:
    """Return a value of YAML as plain data, dates and fractions as text. Raises ValueError for too many."""
    if next(room, None) is None:
        raise ValueError(f"the head has more than {_MAX_VALUES:,} values")
    match value:
        case None | bool() | int() | str():
            return value
        case list():
            return [_to_plain(item, room) for item in value]
        case dict():
            return {str(key): _to_plain(item, room) for key, item in value.items()}
        case _:
            return str(value)


def join(head: dict[str, Any], body: str) -> str:
    return f"{_FENCE}\n{dump_yaml(head)}{_FENCE}\n{body}"


def find_key_line(text: str, key: str) -> int | None:
    return find_key_lines(text).get(key)


def find_key_lines(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    fences = 0
    for number, line in enumerate(text.splitlines(), 1):
        fences += line.rstrip().removeprefix("\ufeff") == _FENCE
        if fences == 2:
            break
        if key := _KEY.match(line):
            found.setdefault(key[1], number)
    return found


def write_atomic(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace a file so that readers, and a crash, find either the old or the new content."""
    write_whole(path, content, mode=mode, before_replace=os.fsync)
    sync(path.parent)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o600,
    before_replace: Callable[[int], None] = lambda _: None,
) -> None:
    """Replace a file at once; unlike `write_atomic`, a crash of the machine may lose the new one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            before_replace(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
