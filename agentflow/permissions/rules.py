"""Permission rules: how they are parsed and matched, and the intersection of two lists."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob, regex
from agentflow.core.role import ToolRule
from agentflow.core.tool import Effect, Subject, Tool
from agentflow.parse import decode, expand_home
from agentflow.permissions.shell_parser import UNKNOWN_TEXT, ShellScript, ShellWord, TooComplex, join_words
from agentflow.permissions.wrappers import (
    INTERPRETERS,
    is_reading_program,
    list_possible_commands,
    name_program,
    unwrap_command,
)
from agentflow.trust import require_content

READING, WRITING, RUNNING, FETCHING = "Read", "Edit", "Bash", "WebFetch"
"""The names by which a rule means every tool that reads files, writes files, runs commands or fetches."""
FILES = (READING, WRITING)
SERVER_PREFIX = "mcp__"
"""What the name of each tool of an MCP server begins with, before the server's."""
EVERY_SERVER = "mcp__*"
"""What a role's list calls the tools of all MCP servers."""

_RULE = regex(r"(?P<tool>[A-Za-z*][\w*-]*)(?:\((?P<pattern>.+)\))?", re.DOTALL | re.ASCII)
_KEY = "tools"
_ALIASES = {"Task": "Agent"}
"""Older spellings."""


def parse_rules(value: object, source: str) -> tuple[ToolRule, ...]:
    """Return the rules of a YAML list, a JSON list in text, or words between commas or spaces.

    Raises InvalidFile naming the entry that is no rule.
    """
    entries = value
    if isinstance(value, str):
        is_json = value.lstrip().startswith("[")
        entries = decode(list[Any], value, source) if is_json else _split(value, source)
    if not isinstance(entries, list):
        raise InvalidFile(source, f"{_KEY}: must be a list of tools, or their names in one text")
    return tuple(_rule(entry, source) for entry in entries)


def _split(text: str, source: str) -> list[str]:
    if not _is_balanced(text):
        raise InvalidFile(source, f"{_KEY}: the parentheses of {text!r} do not match")
    entries, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and (character == "," or character.isspace()):
            entries.append("")
        else:
            entries[-1] += character
    return [entry for entry in entries if entry]


def _rule(entry: object, source: str) -> ToolRule:
    found = _RULE.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if found is None:
        raise InvalidFile(source, f"{_KEY}: {entry!r} is not a rule such as Read or Bash(git diff *)")
    pattern = found["pattern"]
    if pattern is not None and (not pattern.strip() or not _is_balanced(pattern)):
        raise InvalidFile(
            source, f"{_KEY}: the pattern of {entry!r} is empty or its parentheses do not match"
        )
    return ToolRule(tool=_ALIASES.get(found["tool"], found["tool"]), pattern=pattern, source=source)


def _is_balanced(pattern: str) -> bool:
    depth = 0
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


class Rules(Record):
    """Lists of `Tool` or `Tool(pattern)`, as in the public settings files."""

    deny: tuple[ToolRule, ...] = ()
    ask: tuple[ToolRule, ...] = ()
    allow: tuple[ToolRule, ...] = ()


def load_rules(user: Path, project: Iterable[Path], trusted: frozenset[Path] = frozenset()) -> Rules:
    """Return the rules of settings files; a project's `allow` counts only from a trusted file.

    Raises InvalidFile for a file that cannot be read as rules: it never means that there are none.
    """
    own = read_rules(user)
    found = [(path in trusted, read_rules(path)) for path in project]
    others = [rules if is_trusted else rules.replace(allow=()) for is_trusted, rules in found]
    return Rules(
        deny=(*own.deny, *(rule for rules in others for rule in rules.deny)),
        ask=(*own.ask, *(rule for rules in others for rule in rules.ask)),
        allow=(*own.allow, *(rule for rules in others for rule in rules.allow)),
    )


def read_rules(path: Path) -> Rules:
    """Return the rules of one file; none where there is no file. Raises InvalidFile."""
    if not path.is_file():
        return Rules()
    settings = decode(dict[str, Any], require_content(path), str(path))
    found = settings.get("permissions", {})
    if not isinstance(found, dict):
        raise InvalidFile(str(path), "permissions: must be an object")
    return Rules(
        **{key: parse_rules(found[key], str(path)) for key in ("deny", "ask", "allow") if found.get(key)}
    )


def find_denied_tools(rules: Rules, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names of the tools that a deny without a pattern takes away as a whole."""
    bare = [rule for rule in rules.deny if rule.pattern is None]
    return frozenset(tool.name for tool in tools if any(is_about_tool(rule, tool) for rule in bare))


def find_named_tools(rules: Rules, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names of the tools that any deny or ask rule is about."""
    restricting = (*rules.deny, *rules.ask)
    return frozenset(tool.name for tool in tools if any(is_about_tool(rule, tool) for rule in restricting))


def is_about_tool(rule: ToolRule, tool: Tool) -> bool:
    """Return whether a rule, its pattern aside, is about a tool."""
    is_server = rule.pattern is None and rule.tool.startswith(SERVER_PREFIX)
    return (
        rule.tool in list_rule_kinds(tool)
        or (is_server and tool.name.startswith(f"{rule.tool}__"))
        or ("*" in rule.tool and fnmatchcase(tool.name, rule.tool))
    )


def list_rule_kinds(tool: Tool) -> frozenset[str]:
    """Return the names by which a rule can refer to a tool: its own, and those of what it does."""
    named = tool.input_subjects.values()
    on_files = READING if tool.effect is Effect.READ else WRITING
    kinds = {Subject.PATH: on_files, Subject.COMMAND: RUNNING, Subject.ADDRESS: FETCHING}
    return frozenset({tool.name, *(kind for subject, kind in kinds.items() if subject in named)})


def is_on_host(pattern: str, address: str) -> bool:
    """Return whether a pattern such as `domain:example.org` names the host of an address."""
    if not pattern.startswith("domain:"):
        return False
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:  # an address that cannot be read, which no tool asks
        return False
    return fnmatchcase(host.lower().rstrip("."), pattern.removeprefix("domain:").lower())


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    wanted = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    prefix, boundary = (wanted[:-2], r"(?:\ .*)?") if wanted.endswith(" *") else (wanted, "")
    body = ".*".join(re.escape(piece) for piece in re.split(r"\*+", prefix))
    return re.compile(body + boundary, re.DOTALL)


def may_match(pattern: str, text: str) -> bool:
    """Return whether a pattern may match a text, in which UNKNOWN_TEXT stands for any text."""
    if UNKNOWN_TEXT not in text:
        return compile_pattern(pattern).fullmatch(text) is not None
    wanted = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    forms = (wanted, wanted[:-2]) if wanted.endswith(" *") else (wanted,)
    return any(_overlap(form, text) for form in forms)


def _overlap(pattern: str, text: str) -> bool:
    reached = _spread({0}, pattern)
    for character in text:
        if character == UNKNOWN_TEXT:
            reached = set(range(min(reached), len(pattern) + 1)) if reached else reached
        else:
            stepped = {
                at + (pattern[at] != "*") for at in reached if pattern[at : at + 1] in ("*", character)
            }
            reached = _spread(stepped, pattern)
    return len(pattern) in reached


def _spread(reached: set[int], pattern: str) -> set[int]:
    """Add the places that are reached because a `*` may stand for nothing."""
    for at in sorted(reached):
        while pattern[at : at + 1] == "*":
            at += 1  # noqa: PLW2901  # walks on from each place
            reached = {*reached, at}
    return reached


def is_about_command(pattern: str, script: ShellScript) -> bool:
    """Return whether a pattern is about any part of a command, however it is written."""
    program, space, rest = pattern.partition(" ")
    bare = f"{program.rpartition('/')[2]}{space}{rest}"
    texts = {script.source, *(simple.source for simple in script.commands)}
    return (
        any(may_match(pattern, text) for text in texts)
        or any(
            may_match(pattern, text) or may_match(bare, text)
            for simple in script.commands
            for words in list_possible_commands(simple)
            if words
            for text in _spellings(words)
        )
        or any(_names(bare, code) for code in _codes(script))
    )


def _codes(script: ShellScript) -> Iterator[str]:
    for simple in script.commands:
        if not INTERPRETERS.fullmatch(name_program(simple.words)):
            continue
        if is_reading_program(simple):
            yield script.document or script.source
        else:
            yield from (word.text for word in simple.words[2:3])


def _names(pattern: str, code: str) -> bool:
    """Return whether code names every word of a pattern, as it must to run such a command."""
    wanted = re.findall(r"[\w.+-]+", pattern.partition(":")[0])
    return bool(wanted) and set(wanted) <= set(re.findall(r"[\w.+-]+", code))


def may_be_about_command(pattern: str, command: str) -> bool:
    """Return whether a pattern may be about a command; about one that cannot be judged it may."""
    try:
        return is_about_command(pattern, unwrap_command(command))
    except TooComplex:
        return True


def _spellings(words: tuple[ShellWord, ...]) -> Iterator[str]:
    named = (ShellWord(text=name_program(words)), *words[1:])
    for form in (words, named):
        yield join_words(form)
        yield " ".join(word.text for word in form)


def is_about_path(pattern: str, path: str, root: Path, source: str, *, widely: bool) -> bool:
    """Return whether a pattern is about a path, as given or with links followed.

    `widely`, for rules that take something away: a pattern without an anchor counts at any depth, a folder
    for all that lies in it, and letters in either case.
    """
    absolute = root / expand_home(path)
    paths = {os.path.normpath(absolute)}
    with suppress(OSError, RuntimeError, ValueError):  # a loop of links, or a name that no file can have
        paths.add(str(absolute.resolve()))
    return any(map(place_pattern(pattern, root, source, widely=widely).covers, paths))


class PlacedPattern(Record):
    """The pattern of a rule on files, ready for many paths."""

    folders: tuple[str, ...]
    """Where it begins, as written and with links followed, each with a slash at its end."""
    forms: tuple[re.Pattern[str], ...]

    def covers(self, path: str) -> bool:
        inside = next((path[len(each) :] for each in self.folders if f"{path}/".startswith(each)), None)
        return inside is not None and any(form.fullmatch(inside or ".") for form in self.forms)


def place_pattern(pattern: str, root: Path, source: str, *, widely: bool) -> PlacedPattern:
    """Return the pattern of a rule on files as it is matched; `widely` as for `is_about_path`."""
    anchor, glob = _find_anchor(pattern, root, source)
    folders = tuple(f"{str(each).rstrip('/')}/" for each in (anchor, anchor.resolve()))
    is_floating = widely and not pattern.startswith(("/", "~/", "./"))
    forms = [glob, *([f"**/{glob}"] if is_floating else ())]
    if widely:
        forms += [f"{form.rstrip('/')}/**" for form in forms]
    flags = re.DOTALL | (re.IGNORECASE if widely else 0)
    expressions = tuple(re.compile(compile_glob(form).pattern, flags) for form in forms)
    return PlacedPattern(folders=folders, forms=expressions)


def _find_anchor(pattern: str, root: Path, source: str) -> tuple[Path, str]:
    if pattern.startswith("//"):
        return Path("/"), f"/{pattern.lstrip('/')}"
    if pattern.startswith("~/"):
        return Path.home(), pattern[1:]
    if pattern.startswith("/"):
        beside = Path(source).parent
        return (root if not source or beside == root / ".claude" else beside), pattern
    return root, pattern.removeprefix("./") if "/" in pattern.removeprefix("./") else pattern


def narrow_rules(
    held: Iterable[ToolRule], left: Iterable[ToolRule], tools: Iterable[Tool]
) -> tuple[ToolRule, ...]:
    """Return the rules of the first list as far as the second one leaves them.

    Either may name a category in place of its tools. Of two patterns the narrower one counts; two that
    only overlap leave nothing.
    """
    left, tools = tuple(left), tuple(tools)
    found = (rule for one in held for other in left for rule in _meet(one, other, tools))
    return tuple(dict.fromkeys(found))


def _meet(one: ToolRule, other: ToolRule, tools: tuple[Tool, ...]) -> Iterator[ToolRule]:
    both = _list_names(one, tools) & _list_names(other, tools)
    names = [one.tool] if one.tool == other.tool else sorted(both)
    if one.pattern is None or other.pattern is None:
        yield from (one.replace(tool=name, pattern=one.pattern or other.pattern) for name in names)
        return
    is_wider = compile_pattern(one.pattern).fullmatch(other.pattern)
    pattern = other.pattern if is_wider else one.pattern
    if is_wider or compile_pattern(other.pattern).fullmatch(one.pattern):
        yield from (one.replace(tool=name, pattern=pattern) for name in names)


def _list_names(rule: ToolRule, tools: tuple[Tool, ...]) -> set[str]:
    of_category = {tool.name for tool in tools if tool.category == rule.tool}
    return of_category or {rule.tool}
