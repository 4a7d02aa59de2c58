"""Commands that a person wrote into a manifest, and the script that a command runs by it."""

import json
from collections.abc import Callable
from typing import Any

from agentflow.core.check_command import split_command
from agentflow.core.record import Record
from agentflow.core.regex import regex

ReadFile = Callable[[str], str]
_REMARK = regex(r"(?ms)^\s*//[^\n]*$|/\*.*?\*/|,(?=\s*[}\]])")
"""What JSON may hold in manifests that are read by a more patient reader than ours."""
_WATCHES = regex(r"(?:^|\s)(--watch(?:All)?(?:=true)?)(?=\s|$)")


class ScriptCommand(Record):
    """A command that runs what a manifest calls `test`."""

    command: str
    """An expression."""
    manifests: tuple[str, ...] = ("package.json",)
    table: str = "scripts"
    separator: str = ""
    """What stands between the command and options for the script."""


_SCRIPT_COMMANDS = (
    ScriptCommand(command="npm (?:run )?test(?: --ignore-scripts)?", separator=" --"),
    ScriptCommand(command="(?:pnpm|yarn|bun) (?:run )?test"),
    ScriptCommand(
        command="composer (?:run(?:-script)? )?test", manifests=("composer.json",), separator=" --"
    ),
    ScriptCommand(command="deno task test", manifests=("deno.json", "deno.jsonc"), table="tasks"),
)


def find_script(command: str, read: ReadFile, folder: str = "") -> tuple[str, str] | None:
    """Return what a command runs by the manifest of its folder, and what stands before further options."""
    for each in _SCRIPT_COMMANDS:
        if regex(each.command).fullmatch(command):
            manifests = (parse_manifest(read(folder + name)) for name in each.manifests)
            for manifest in manifests:
                if body := get_script(manifest, each.table):
                    return body, each.separator
    return None


def get_script(manifest: dict[str, Any], table: str) -> str:
    """Return the one command that a manifest calls `test`; empty where there is none, or are several."""
    said = get_table(manifest, table).get("test")
    said = said.get("command") if isinstance(said, dict) else said
    said = said[0] if isinstance(said, list) and len(said) == 1 else said
    return said.strip() if isinstance(said, str) else ""


def parse_manifest(text: str) -> dict[str, Any]:
    """Return a manifest in JSON, which may have comments; empty where it is damaged."""
    for each in (text, _REMARK.sub("", text)):
        try:
            return get_table(json.loads(each or "{}"))
        except (ValueError, RecursionError):
            continue
    return {}


def get_table(tree: object, *keys: str) -> dict[str, Any]:
    """Return a table nested in plain data; empty when there is none."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


class Watching(Record):
    """A test command that does not end: it waits for changed files."""

    option: str
    """By which it does so."""
    instead: str
    """The same command without it."""


def find_watching(command: str, read: ReadFile) -> Watching | None:
    """Return how a command, or the script that it runs, watches for changes; None where it ends."""
    for part in split_command(command):
        body = (find_script(part.command, read, part.folder) or (part.command, ""))[0]
        if found := _WATCHES.search(body):
            once = part.replace(command=f"{body[: found.start()]}{body[found.end() :]}".strip())
            return Watching(option=found[1], instead=once.text)
    return None
