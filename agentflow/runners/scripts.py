"""Commands that a person wrote into a manifest, and the script that a command runs by it."""

import json
import shlex
from collections.abc import Callable
from typing import Any

from agentflow.core.check_command import split_command
from agentflow.core.record import Record
from agentflow.core.regex import regex, to_expression

ReadFile = Callable[[str], str]
_REMARK = regex(r"(?ms)^\s*//[^\n]*$|/\*.*?\*/|,(?=\s*[}\]])")
"""What JSON may hold in manifests that are read by a more patient reader than ours."""
_WATCHES = regex(r"(?:^|\s)(--watch(?:All)?(?:=true)?)(?=\s|$)")


class ScriptCommand(Record):
    """A command that runs what a manifest has under a name."""

    command: str
    """An expression; without a `name` the script is `test`."""
    manifests: tuple[str, ...] = ("package.json",)
    table: str = "scripts"
    separator: str = ""
    """What stands between the command and options for the script."""
    has_hooks: bool = False
    """It also runs `pretest` and `posttest`, unless it is told not to."""


_SERIAL = regex(
    r"(?:npx )?(?:run-s|npm-run-all(?: (?:-s|--serial|--sequential))?)(?P<names>(?: [\w:.*'\"-]+)+)"
)
"""A command that runs several scripts of package.json one after the other, a glob those that fit it."""


class FoundScript(Record):
    """A script that a command runs."""

    body: str
    """With the options that the command gives it."""
    separator: str | None = None
    """What stands between the command and further options for it; None where it takes none."""
    before: str = ""
    after: str = ""

    @property
    def bodies(self) -> tuple[str, ...]:
        """It and what runs before and behind it."""
        return tuple(filter(None, (self.before, self.body, self.after)))


_NAME = r"(?P<name>[\w:.-]+)"
_QUIET = r"(?: (?:-s|--silent|--ignore-scripts|--if-present))*"
_SCRIPT_COMMANDS = (
    ScriptCommand(
        command=rf"npm(?: (?:run|run-script){_QUIET} {_NAME}| test| t){_QUIET}(?: --(?P<rest> .*))?",
        separator=" --",
        has_hooks=True,
    ),
    ScriptCommand(command=rf"yarn{_QUIET} (?:run{_QUIET} )?{_NAME}(?P<rest> .*)?", has_hooks=True),
    # which reads the options of `pnpm test` itself, and those of `pnpm run` not
    ScriptCommand(command=rf"pnpm{_QUIET} (?:test|t)(?: --(?P<rest> .*))?", separator=" --"),
    ScriptCommand(command=rf"(?:pnpm{_QUIET} (?:run{_QUIET} )?|bun run ){_NAME}(?P<rest> .*)?"),
    ScriptCommand(
        command=r"composer (?:run(?:-script)? )?test(?: --(?P<rest> .*))?",
        manifests=("composer.json",),
        separator=" --",
    ),
    ScriptCommand(
        command=r"deno task test(?P<rest> .*)?", manifests=("deno.json", "deno.jsonc"), table="tasks"
    ),
)


def find_script(command: str, read: ReadFile, folder: str = "") -> FoundScript | None:
    """Return what a command runs by the manifest of its folder."""
    if several := _SERIAL.fullmatch(command):
        scripts = get_table(parse_manifest(read(f"{folder}package.json")), "scripts")
        globs = shlex.split(several["names"])
        names = [
            name for glob in globs for name in scripts if regex(to_expression(f"/{glob}")).fullmatch(name)
        ]
        return FoundScript(body=" && ".join(f"npm run {name}" for name in names)) if names else None
    for each in _SCRIPT_COMMANDS:
        if found := regex(each.command).fullmatch(command):
            said = found.groupdict()
            name, rest = said.get("name") or "test", said["rest"]
            for manifest in (parse_manifest(read(folder + name)) for name in each.manifests):
                if body := get_script(manifest, each.table, name):
                    hooks = each.has_hooks and "--ignore-scripts" not in command
                    return FoundScript(
                        body=body + (rest or ""),
                        separator=each.separator if rest is None else "",
                        before=get_script(manifest, each.table, f"pre{name}") if hooks else "",
                        after=get_script(manifest, each.table, f"post{name}") if hooks else "",
                    )
    return None


def get_script(manifest: dict[str, Any], table: str, name: str = "test") -> str:
    """Return the one command of a manifest under a name; empty where there is none, or are several."""
    said = get_table(manifest, table).get(name)
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
        script = find_script(part.command, read, part.folder)
        body = script.body if script else part.command
        if found := _WATCHES.search(body):
            once = part.replace(command=f"{body[: found.start()]}{body[found.end() :]}".strip())
            return Watching(option=found[1], instead=once.text)
    return None
