"""Commands: Markdown files that become the text of a task when their name is called with a slash."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record
from agentflow.core.role import INHERIT, ToolRule
from agentflow.frontmatter import PublicText, find_key_line, read_public
from agentflow.library.skill_file import split_words
from agentflow.permissions.rules import parse_rules
from agentflow.trust import require_text

_MAX_FILES = 500
_FENCE = "---"


class CommandFolder(Record):
    path: Path
    root: Path
    """Nothing of it may lie elsewhere."""
    origin: str
    plugin: str = ""


class PromptCommand(Record):
    name: str
    """As its file is called, without the plugin."""
    path: Path
    origin: str
    body: str
    description: str = ""
    hint: str = ""
    names: tuple[str, ...] = ()
    tools: tuple[ToolRule, ...] | None = None
    """The tools that are left while it is carried out; None for all."""
    model: str | None = None
    plugin: str = ""
    places: dict[str, str] = {}
    folder: str = ""

    @property
    def called(self) -> str:
        return f"{self.plugin}:{self.name}" if self.plugin else self.name

    @property
    def first(self) -> int:
        """The number of its first argument: 0 where its body says `$0`, else 1, as most files mean it."""
        return 0 if "$0" in self.body else 1


class PromptCommands(Record):
    all: tuple[PromptCommand, ...] = ()
    warnings: tuple[str, ...] = ()

    def find(self, name: str) -> PromptCommand | None:
        """Return the command of a name: the repository's, else the user's, else the only one of a plugin."""
        exact = [command for command in self.all if command.called == name]
        if exact:
            return exact[-1]
        named = [command for command in self.all if command.name == name and command.plugin]
        return named[0] if len(named) == 1 else None


def list_command_places(claude: Path, root: Path) -> tuple[CommandFolder, ...]:
    theirs = root / ".claude/commands"
    user = CommandFolder(path=claude / "commands", root=claude / "commands", origin="user")
    return user, CommandFolder(path=theirs, root=root, origin="project")


def load_commands(places: Iterable[CommandFolder]) -> PromptCommands:
    """Return the commands of all places; a file that is wrong is left out with a warning."""
    found: dict[tuple[str, str, str], PromptCommand] = {}
    warnings: list[str] = []
    for place in places:
        for path in list_command_files(place):
            try:
                command = read_command(path, place)
            except InvalidFile as error:
                warnings.append(f"command left out: {error}")
                continue
            found[command.plugin, command.name, command.origin] = command
    ordered = sorted(found.values(), key=lambda command: (command.plugin, command.name))
    return PromptCommands(all=tuple(ordered), warnings=tuple(warnings))


def list_command_files(place: CommandFolder) -> tuple[Path, ...]:
    """Return the Markdown files of a place, without those that a link leads to from elsewhere."""
    if place.path.is_file():
        return (place.path,)
    found, root = list[Path](), place.root.resolve()
    for inside, folders, files in os.walk(place.path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        named = (Path(inside, name) for name in files if name.endswith(".md") and name != "README.md")
        found.extend(path for path in named if path.resolve().is_relative_to(root))
    return tuple(sorted(found))[:_MAX_FILES]


def read_command(path: Path, place: CommandFolder) -> PromptCommand:
    """Return the command in a file, which may have no head. Raises InvalidFile."""
    source = str(path)
    text = require_text(path)
    has_head = text.split("\n", 1)[0].rstrip() == _FENCE
    head, body, _ = read_public(text, source) if has_head else PublicText({}, text)
    below = PurePosixPath(path.relative_to(place.path)) if path != place.path else PurePosixPath(path.name)
    return PromptCommand(
        name=path.stem,
        path=path,
        origin=place.origin,
        body=body.strip("\n"),
        description=_take_text(head, "description"),
        hint=_take_text(head, "argument-hint"),
        names=split_words(head.get("arguments")),
        tools=_read_tools(head.get("allowed-tools"), text, source),
        model=None if _take_text(head, "model") in ("", INHERIT) else _take_text(head, "model"),
        plugin=place.plugin,
        places={"CLAUDE_PLUGIN_ROOT": str(place.root)} if place.plugin else {},
        folder="" if str(below.parent) == "." else str(below.parent),
    )


def _take_text(head: dict[str, Any], key: str) -> str:
    """Return a value of a head as one line; a hint such as `[number]` is a list for YAML."""
    value = head.get(key)
    if isinstance(value, list):
        return " ".join(f"[{part}]" for part in value)
    return "" if value is None else " ".join(str(value).split())


def _read_tools(value: object, text: str, source: str) -> tuple[ToolRule, ...] | None:
    """Return the tools that a command leaves. Raises InvalidFile, as a wrong list would leave them all."""
    if value is None:
        return None
    try:
        return parse_rules(value, source)
    except InvalidFile as error:
        problem = f"allowed-tools: {error.problem.removeprefix('tools: ')}"
        raise InvalidFile(source, problem, line=find_key_line(text, "allowed-tools")) from None
