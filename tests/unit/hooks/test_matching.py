from pathlib import Path
from typing import Any

import pytest

from agentflow.core.errors import InvalidFile
from agentflow.core.points import HookEvent, Point, Scene, ToolUse
from agentflow.hooks.entries import is_condition_met, is_match, is_name_match, parse_condition
from tests.support.tools import tool_named
from tests.unit.hooks.stage import PAYLOADS


def use(scene: Scene, tool: str, **given: Any) -> HookEvent:
    payload = ToolUse(tool_name=tool, tool_input=given, tool_use_id="1")
    return HookEvent(point=Point.PRE_TOOL_USE, scene=scene.replace(tool=tool_named(tool)), payload=payload)


@pytest.mark.parametrize(
    ("matcher", "value", "named"),
    [
        ("", "Edit", True),
        ("*", "Edit", True),
        ("Edit", "Edit", True),
        ("Edit", "edit", False),
        ("Edit", "NotebookEdit", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("Edit|Write", "Edit|Write", False),
        ("Edit.*", "NotebookEdit", True),
        ("^Edit", "NotebookEdit", False),
        ("mcp__memory", "mcp__memory__read", False),
        ("mcp__memory__.*", "mcp__memory__read", True),
        ("(?<tool>Ed)it", "Edit", True),
        ("(?<!Notebook)Edit$", "NotebookEdit", False),
        ("general-purpose", "general-purpose", True),
        ("|", "Edit", False),
    ],
)
def test_a_matcher_is_names_or_an_expression(matcher: str, value: str, named: bool) -> None:
    assert is_name_match(matcher, value) is named


@pytest.mark.parametrize(
    ("point", "value"),
    [
        (Point.SESSION_START, "startup"),
        (Point.SESSION_END, "verified"),
        (Point.PRE_TOOL_USE, "Bash"),
        (Point.PERMISSION_REQUEST, "Bash"),
        (Point.POST_TOOL_USE, "Bash"),
        (Point.POST_TOOL_USE_FAILURE, "Bash"),
        (Point.SUBAGENT_START, "scout"),
        (Point.SUBAGENT_STOP, "scout"),
        (Point.PRE_COMPACT, "auto"),
        (Point.POST_COMPACT, "auto"),
        (Point.STOP_FAILURE, "server_error"),
        (Point.NOTIFICATION, "permission_prompt"),
    ],
)
def test_each_point_has_the_value_that_is_matched(scene: Scene, point: Point, value: str) -> None:
    event = HookEvent(point=point, scene=scene, payload=PAYLOADS[point])
    assert is_match(value, event)
    assert not is_match("other", event)


@pytest.mark.parametrize("point", [Point.USER_PROMPT_SUBMIT, Point.STOP, Point.TASK_COMPLETED])
def test_a_point_without_a_value_ignores_the_matcher(scene: Scene, point: Point) -> None:
    assert is_match("other", HookEvent(point=point, scene=scene, payload=PAYLOADS[point]))


@pytest.mark.parametrize(
    ("condition", "command", "asked"),
    [
        ("Bash", "ls", True),
        ("Edit", "ls", False),
        ("Bash(git *)", "git push", True),
        ("Bash(git *)", "git", True),
        ("Bash(git:*)", "git push", True),
        ("Bash(git *)", "gitk", False),
        ("Bash(git*)", "gitk", True),
        ("Bash(rm *)", "ls -l", False),
        ("Bash(rm *)", "ls && rm -rf x", True),
        ("Bash(rm *)", "ls\nrm -rf x", True),
        ("Bash(rm *)", "ls;rm -rf x", True),
        ("Bash(rm *)", "A=1 B=2 rm x", True),
        ("Bash(rm *)", "echo $(rm x)", True),
        ("Bash(rm *)", "sh -c 'rm x'", True),
        ("Bash(rm *)", r"r\m x", True),
        ("Bash(rm *)", "env rm x", True),
        ("Bash(rm *)", "  rm x  ", True),
        ("Bash(rm *)", "'rm' x", True),
        ("Bash(rm *)", "/bin/rm x", True),
    ],
)
def test_a_condition_on_a_command_holds_in_doubt(
    scene: Scene, condition: str, command: str, asked: bool
) -> None:
    assert is_condition_met(condition, use(scene, "Bash", command=command)) is asked


@pytest.mark.parametrize(
    ("condition", "tool", "path", "asked"),
    [
        ("Edit(*.py)", "Edit", "src/a.py", True),
        ("Edit(*.py)", "Write", "src/a.py", True),
        ("Edit(*.py)", "Read", "src/a.py", False),
        ("Edit(*.py)", "Edit", "a.md", False),
        ("Edit(src/**)", "Edit", "src/b/a.py", True),
        ("Edit(src/**)", "Edit", "lib/src/a.py", True),
        ("Edit(/src/**)", "Edit", "lib/src/a.py", False),
        ("Edit(src/**)", "Edit", "lib/../src/a.py", True),
        ("Edit(src/**)", "Edit", "./src/a.py", True),
        ("Read(.env)", "Read", "sub/.env", True),
        ("Read(.env)", "Grep", ".env", True),
    ],
)
def test_a_condition_on_a_path(scene: Scene, condition: str, tool: str, path: str, asked: bool) -> None:
    assert is_condition_met(condition, use(scene, tool, file_path=path)) is asked
    assert is_condition_met(condition, use(scene, tool, file_path=str(scene.cwd / path))) is asked


def test_a_condition_sees_through_a_link(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "secret.py").touch()
    (tmp_path / "plain").symlink_to("secret.py")
    assert is_condition_met("Edit(secret.py)", use(scene, "Edit", file_path="plain"))
    assert is_condition_met(f"Edit(/{tmp_path}/secret.py)", use(scene, "Edit", file_path="plain"))


def test_a_condition_on_a_path_elsewhere(scene: Scene) -> None:
    notes = use(scene, "Edit", file_path=str(Path.home() / "notes.md"))
    assert is_condition_met("Edit(~/notes.md)", notes)
    assert not is_condition_met("Edit(~/other.md)", notes)
    assert not is_condition_met("Edit(/notes.md)", notes)


def test_a_condition_with_nothing_to_look_at_holds(scene: Scene) -> None:
    assert is_condition_met("Edit(*.py)", use(scene, "Edit"))
    assert is_condition_met("WebFetch(domain:example.org)", use(scene, "WebFetch", url="https://example.org"))


def test_a_condition_elsewhere_than_on_a_tool_never_holds(scene: Scene) -> None:
    event = HookEvent(point=Point.STOP, scene=scene, payload=PAYLOADS[Point.STOP])
    assert not is_condition_met("Bash", event)


@pytest.mark.parametrize("condition", ["", "Edit(", "Edit Write", "Edit()", "(x)"])
def test_a_condition_that_is_no_single_rule_is_refused(condition: str) -> None:
    with pytest.raises(InvalidFile):
        parse_condition(condition, "settings.json")
