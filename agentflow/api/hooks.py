"""All hooks and whether each runs here, example events for them, and a template for a new one."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

import msgspec

from agentflow.api.boundary import TaskRequest, hide_secrets, open_sandbox
from agentflow.api.content import load_content, load_hooks_here, load_rules_here, open_toolbox
from agentflow.api.trust import list_frontmatter_places, list_hook_notes
from agentflow.core.errors import InvalidFile, UsageError
from agentflow.core.hook import POINTS, Hook, Origin, Script
from agentflow.core.points import Actor, HookEvent, Point, Scene
from agentflow.core.record import Record
from agentflow.core.task import Phase
from agentflow.hooks.entries import list_project_places, list_user_places, load_hooks, name_shipped
from agentflow.parse import Mismatch, fit, read_json
from agentflow.sandbox.run import Sandbox
from agentflow.settings import find_bundled, find_folders
from agentflow.workspace.git import open_repository

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


class KnownHook(Record):
    hook: Hook
    name: str
    state: str
    """`runs`, `waits for trust`, or how it is switched on."""
    runs: bool
    may_be_tried: bool


def list_known_hooks(root: Path) -> tuple[tuple[KnownHook, ...], tuple[str, ...]]:
    """Return all hooks, including those that do not run here, and remarks on their files."""
    here, notes = load_hooks_here(root)
    running = {_key(hook) for hook in here}
    own, _ = load_hooks(list_user_places(find_bundled("hooks"), find_folders(os.environ).claude))
    content = load_content(root, open_toolbox(root))
    running |= {_key(hook) for hook in content.hooks}
    theirs, _ = load_hooks((*list_project_places(root), *list_frontmatter_places(root)))
    theirs = (*(hook for hook in content.hooks if hook.origin is Origin.USER), *theirs)
    known: list[KnownHook] = []
    for hook in (*own, *theirs):
        is_running, shipped = _key(hook) in running, name_shipped(hook)
        off = f"off: `hooks: [{shipped}]` in config.yaml switches it on" if shipped else "waits for trust"
        known.append(
            KnownHook(
                hook=hook,
                name=shipped or hook.name,
                state="runs" if is_running else off,
                runs=is_running,
                may_be_tried=is_running or bool(shipped),
            )
        )
    return tuple(known), tuple(dict.fromkeys((*notes, *list_hook_notes(root))))


def _key(hook: Hook) -> tuple[Any, ...]:
    assert isinstance(hook.body, Script)
    return hook.source, hook.point, hook.matcher, hook.body.command, hook.body.args, hook.body.condition


def make_event(root: Path, point: Point, outputs: Path, given_file: Path | None) -> HookEvent:
    """Return an example event; a file's JSON replaces made-up values. Raises InvalidFile."""
    given = {} if given_file is None else _read_input(given_file)
    name = str(given.get("tool_name", _SAMPLE_TOOL))
    depth = int("agent_id" in given or point in (Point.SUBAGENT_START, Point.SUBAGENT_STOP))
    try:
        payload = make_payload(POINTS[point].payload, given)
    except Mismatch as error:
        raise InvalidFile(str(given_file), str(error)) from None
    scene = Scene(
        task_id=_TASK,
        cwd=root,
        transcript=outputs / "3-implementer.jsonl",
        outputs=outputs,
        phase=Phase.IMPLEMENTATION,
        iteration=1,
        actor=Actor(name=str(given.get("agent_type", "implementer")), depth=depth),
        tool=open_toolbox(root).find(name) if POINTS[point].is_about_tool else None,
    )
    return HookEvent(point=point, payload=payload, scene=scene)


def open_hook_sandbox(root: Path) -> Sandbox:
    """Return the sandbox for hooks that ask for one; where there is none, it runs nothing."""
    git = open_repository(root)
    return hide_secrets(open_sandbox(git, TaskRequest(must_run=True)), git, load_rules_here(root))


def _read_input(path: Path) -> Mapping[str, Any]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidFile(str(path), f"cannot be read: {reason}") from None
    found = read_json(text, str(path))
    if not isinstance(found, dict):
        raise InvalidFile(str(path), "must be a JSON object")
    return found


def start_hook(root: Path, point: Point, name: str, *, is_users: bool) -> tuple[Path, Path]:
    """Write a start for a hook, and its entry; return both files. Raises UsageError if the script exists."""
    name = name or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", point).lower()
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name {name}: may have lower case letters, digits, - and _")
    folder = find_folders(os.environ).claude if is_users else root / ".claude"
    script, settings = folder / "hooks" / f"{name}.py", folder / "settings.json"
    if os.path.lexists(script):
        raise UsageError(f"{script} already exists", hint="choose another --name")
    command = f'"{script}"' if is_users else f'"${{CLAUDE_PROJECT_DIR}}"/.claude/hooks/{name}.py'
    text = _add_entry(settings, point, command)
    script.parent.mkdir(parents=True, exist_ok=True)
    with script.open("x", encoding="utf-8") as file:
        file.write(_fill_start(point))
    script.chmod(0o755)
    settings.write_text(text, "utf-8")
    return script, settings


def _add_entry(settings: Path, point: Point, command: str) -> str:
    try:
        found = read_json(settings.read_text("utf-8-sig"), str(settings)) if settings.exists() else {}
        entry: dict[str, Any] = {"hooks": [{"type": "command", "command": command, "timeout": 30}]}
        if POINTS[point].is_about_tool:
            entry = {"matcher": "Bash|Edit|Write", **entry}
        found.setdefault("hooks", {}).setdefault(str(point), []).append(entry)
    except (OSError, UnicodeDecodeError, AttributeError) as error:
        raise InvalidFile(str(settings), f"cannot be added to: {error}") from None
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _fill_start(point: Point) -> str:
    rules = POINTS[point]
    block = "keeps it from happening" if rules.can_block else "is shown to the person"
    words = {
        "EVENT": str(point),
        "WHEN": rules.when,
        "KEYS": ", ".join(rules.payload.__struct_fields__),
        "BLOCK": block,
    }
    text = (find_bundled("hooks") / "start.py").read_text("utf-8")
    for word, value in words.items():
        text = text.replace(f"${word}$", value)
    return text


_SAMPLE_TOOL = "Bash"
_TASK = "20260102T030405Z-test"
_INPUTS: Mapping[str, dict[str, Any]] = {
    "Edit": {"file_path": "app.py", "old_string": "a", "new_string": "b"},
    "Write": {"file_path": "app.py", "content": "a = 1\n"},
    "Read": {"file_path": "app.py"},
}
_VALUES: Mapping[str, str] = {
    "agent_type": "scout",
    "error": "server_error",
    "load_reason": "session_start",
    "notification_type": "permission_prompt",
    "reason": "verified",
    "source": "startup",
    "task_subject": str(Phase.IMPLEMENTATION),
    "tool_use_id": "toolu_test",
    "trigger": "auto",
}
"""Texts of the fields that matchers compare; others hold their own name."""


def make_payload(payload: type[Record], given: Mapping[str, Any]) -> Record:
    """Return an example payload, with what a person gives in place of what is made up. Raises Mismatch."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(payload)}
    made = {
        name: _VALUES.get(name, f"a {name.replace('_', ' ')}")
        if kind is str
        else (get_origin(kind) or kind)()
        for name, kind in fields.items()
    }
    if "tool_name" in fields:
        tool_name = str(given.get("tool_name", _SAMPLE_TOOL))
        made |= {"tool_name": tool_name, "tool_input": _INPUTS.get(tool_name, {"command": "git status"})}
    return fit(payload, made | {key: value for key, value in given.items() if key in fields})
