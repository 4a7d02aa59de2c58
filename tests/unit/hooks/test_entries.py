import json
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.errors import InvalidFile
from agentflow.core.hook import NEVER_FIRED, Hook, OnError, Origin, Script
from agentflow.core.points import Point, Scene
from agentflow.hooks.entries import (
    HookFile,
    list_project_places,
    list_user_places,
    load_hooks,
)
from tests.unit.hooks.stage import FUNCTIONS_ONLY, denied, fire

ONE = {"type": "command", "command": "true"}
PUBLIC = """{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "permissions": {"deny": ["Read(.env)"]},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [
        {"type": "command", "command": "jq -r .tool_input.command >> ~/.claude/log.txt"}]},
      {"matcher": "Edit|Write", "hooks": [
        {"type": "command", "command": "${CLAUDE_PROJECT_DIR}/.claude/hooks/x.sh", "args": [],
         "timeout": 30, "if": "Edit(*.py)", "statusMessage": "Checking", "once": true}]}],
    "PostToolUse": [{"matcher": "Edit|MultiEdit|Write", "hooks": [
      {"type": "command", "command": "prettier --write", "timeout": 60, "async": true}]}],
    "Notification": [{"matcher": "", "hooks": [{"type": "command", "command": "notify-send Hello"}]}],
    "FileChanged": [{"hooks": [{"type": "command", "command": "true"}]}],
    "Stop": [{"hooks": [{"type": "prompt", "prompt": "Is it done? $ARGUMENTS", "timeout": 30}]}],
    "SessionStart": [{"matcher": "startup|resume", "hooks": [{"type": "command", "command": "git log -3"}]}]
  }
}"""


def loaded(folder: Path, content: Any, *, plugin: bool = False) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    path = folder / "hooks.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_hooks([HookFile(path=path, origin=Origin.USER, plugin=folder if plugin else None)])


def group(**keys: Any) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"hooks": [ONE], **keys}]}}


def entry(**keys: Any) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"hooks": [{**ONE, **keys}]}]}}


def test_a_public_file_loads_unchanged(tmp_path: Path) -> None:
    hooks, warnings = loaded(tmp_path, PUBLIC)
    assert [(hook.point, hook.matcher) for hook in hooks] == [
        (Point.PRE_TOOL_USE, "Bash"),
        (Point.PRE_TOOL_USE, "Edit|Write"),
        (Point.POST_TOOL_USE, "Edit|MultiEdit|Write"),
        (Point.NOTIFICATION, ""),
        (Point.SESSION_START, "startup|resume"),
    ]
    assert hooks[1].body == Script(
        command="${CLAUDE_PROJECT_DIR}/.claude/hooks/x.sh", args=(), timeout=30, condition="Edit(*.py)"
    )
    about = [warning.partition("hooks.json: ")[2] for warning in warnings]
    assert about == [
        "hooks.PreToolUse[1].hooks[0]: once has no effect: the hook runs each time",
        "hooks.PostToolUse[0].hooks[0]: async has no effect: agentflow waits for the hook",
        "hooks.FileChanged: agentflow never runs this event, so the hook has no effect",
        "hooks.Stop[0].hooks[0]: type prompt is not supported, so the hook has no effect",
    ]


@pytest.mark.parametrize("where", [group, entry])
def test_priority_and_policy_stand_on_group_or_entry(tmp_path: Path, where: Any) -> None:
    (hook,), _ = loaded(tmp_path, where(priority=7, on_error="closed"))
    assert (hook.priority, hook.on_error) == (7, OnError.CLOSED)


def test_an_entry_beats_its_group(tmp_path: Path) -> None:
    given = {"priority": 3, "on_error": "closed", "hooks": [{**ONE, "priority": 0, "on_error": "open"}]}
    (hook,), _ = loaded(tmp_path, {"hooks": {"Stop": [given]}})
    assert (hook.priority, hook.on_error) == (0, OnError.OPEN)


def test_the_shipped_file_and_none_of_the_users_are_the_shipped_hooks(root: Path, tmp_path: Path) -> None:
    hooks, warnings = load_hooks(list_user_places(root / "hooks", tmp_path))
    assert ({hook.origin for hook in hooks}, warnings) == ({Origin.BUILT_IN}, ())


@pytest.mark.parametrize("content", ["{}", '{"permissions": {}}', '{"hooks": {}}', '\ufeff{"hooks": {}}'])
def test_settings_without_hooks_are_fine(tmp_path: Path, content: str) -> None:
    assert loaded(tmp_path, content) == ((), ())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ":1: not JSON"),
        ('{"hooks": {},\n!}', ":2: not JSON"),
        ('{"hooks": {}} {"hooks": {}}', ":1: not JSON"),
        ("[]", "must be a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, "a number that is too long"),
        ('{"hooks": null}', "hooks: must be an object"),
        ('{"hooks": []}', "hooks: must be an object"),
        ('{"hooks": {}, "hooks": {}}', "hooks: appears twice"),
        ('{"Hooks": {}}', "Hooks: is unknown; did you mean hooks?"),
        ('{"hook": {}}', "hook: is unknown; did you mean hooks?"),
        ({"hooks": {"PreToolUse": {}}}, "hooks.PreToolUse: must be a list"),
        ({"hooks": {"PreToolUse": [[]]}}, "hooks.PreToolUse[0]: must be an object"),
        ({"hooks": {"PreToolUse": [{}]}}, "hooks.PreToolUse[0].object missing required field `hooks`"),
        ({"hooks": {"PreToolUse": [ONE]}}, "hooks.PreToolUse[0]."),
        ({"hooks": {"PreToolUes": []}}, "hooks.PreToolUes: is unknown; did you mean PreToolUse?"),
        ({"hooks": {"pretooluse": []}}, "did you mean PreToolUse?"),
        ({"hooks": {"SubAgentStop": []}}, "did you mean SubagentStop?"),
        (group(matchers="Edit"), "hooks.PreToolUse[0].matchers: is unknown; did you mean matcher?"),
        (group(matcher="Edit("), "hooks.PreToolUse[0].matcher: is not a regular expression"),
        (group(matcher=7), "hooks.PreToolUse[0].matcher: expected"),
        (group(on_error="close"), "hooks.PreToolUse[0].on_error: "),
        (group(priority="high"), "hooks.PreToolUse[0].priority: "),
        (entry(comand="x"), "hooks.PreToolUse[0].hooks[0].comand: is unknown; did you mean command?"),
        (entry(command=""), "hooks.PreToolUse[0].hooks[0].command: "),
        (entry(args="x"), "hooks.PreToolUse[0].hooks[0].args: "),
        (entry(timeout=0), "hooks.PreToolUse[0].hooks[0].timeout: "),
        (entry(timeout="30"), "hooks.PreToolUse[0].hooks[0].timeout: "),
        (entry(timeout=True), "hooks.PreToolUse[0].hooks[0].timeout: "),
        (entry(type="comand"), "hooks.PreToolUse[0].hooks[0].type: "),
        (entry(type=["x"]), "hooks.PreToolUse[0].hooks[0].type: "),
        (entry(**{"if": "Edit("}), "hooks.PreToolUse[0].hooks[0].if: "),
        ({"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}, "missing required field `type`"),
    ],
)
def test_a_file_that_is_wrong_is_named_and_never_means_no_hooks(
    tmp_path: Path, content: Any, said: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        loaded(tmp_path, content)
    assert str(caught.value).startswith(str(tmp_path / "hooks.json"))
    assert said in str(caught.value)


@pytest.mark.parametrize("what", ["folder", "bytes", "dangling"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, what: str) -> None:
    path = tmp_path / "hooks.json"
    match what:
        case "folder":
            path.mkdir()
        case "bytes":
            path.write_bytes(b'{"hooks": {}, "x": "\xff"}')
        case _:
            path.symlink_to("nowhere")
    with pytest.raises(InvalidFile, match=r"cannot be read|byte 0xff is not UTF-8"):
        load_hooks([HookFile(path=path, origin=Origin.USER)])


def test_a_hooks_file_without_hooks_in_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="hooks: is missing"):
        loaded(tmp_path, {"PreToolUse": []}, plugin=True)


@pytest.mark.parametrize("event", [*NEVER_FIRED, *sorted(FUNCTIONS_ONLY), "BrandNewEvent"])
def test_an_event_that_is_not_fired_for_scripts_is_a_warning(tmp_path: Path, event: str) -> None:
    hooks, warnings = loaded(tmp_path, {"hooks": {event: [{"hooks": [ONE]}]}})
    assert hooks == ()
    assert f"hooks.{event}" in warnings[0]


def test_what_has_no_effect_is_told(tmp_path: Path) -> None:
    given = {
        "disableAllHooks": True,
        "hooks": {"Stop": [{"hooks": [{**ONE, "if": "Bash", "colour": "red"}], "note": "x"}]},
    }
    hooks, warnings = loaded(tmp_path, given)
    assert len(hooks) == 1
    for part in ("disableAllHooks", "[0].note", "hooks[0].colour", "never runs at Stop"):
        assert [warning for warning in warnings if part in warning], part


def test_files_add_up_in_the_order_of_their_owners(tmp_path: Path) -> None:
    bundled, claude, root = (tmp_path / name for name in ("hooks", "user", "root"))
    for place in (*list_user_places(bundled, claude), *list_project_places(root)):
        place.path.parent.mkdir(parents=True, exist_ok=True)
        place.path.write_text(json.dumps(entry(command=place.path.name)))
    hooks, _ = load_hooks((*list_user_places(bundled, claude), *list_project_places(root)))
    assert [(hook.name, hook.origin) for hook in hooks] == [
        ("hooks.json", Origin.BUILT_IN),
        ("settings.json", Origin.USER),
        ("settings.json", Origin.PROJECT),
        ("settings.local.json", Origin.PROJECT),
    ]


def test_a_loaded_hook_decides(tmp_path: Path, scene: Scene) -> None:
    (hook,), _ = loaded(tmp_path, entry(command="echo not here >&2; exit 2"))
    assert denied(fire(scene, hook))
