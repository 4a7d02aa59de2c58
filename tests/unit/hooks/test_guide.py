"""The blocks of the guide on hooks do what it says."""

import json
import re
from pathlib import Path

import pytest

from agentflow.core.hook import Hook, Origin, Script
from agentflow.core.points import Point, Scene, ToolUse
from agentflow.hooks.entries import HookFile, load_hooks
from tests.unit.hooks.stage import denied, fire, script

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def blocks(root: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, text in BLOCK.findall((root / "docs/guide/hooks.md").read_text()):
        found.setdefault(kind, []).append(text)
    return found


@pytest.fixture
def guard(blocks: dict[str, list[str]], scene: Scene) -> Hook:
    """The hook of the guide, in its place."""
    folder = scene.cwd / ".claude/hooks"
    folder.mkdir(parents=True)
    (folder / "no-migrations.sh").write_text(blocks["sh"][0])
    (folder / "no-migrations.sh").chmod(0o755)
    settings = scene.cwd / ".claude/settings.json"
    settings.write_text(blocks["json"][0])
    (hook,), warnings = load_hooks([HookFile(path=settings, origin=Origin.USER)])
    assert warnings == ()
    return hook


@pytest.mark.parametrize(
    ("tool", "path", "no"),
    [
        ("Edit", "shop/migrations/0001.py", True),
        ("Write", "migrations/0001.py", True),
        ("Edit", "shop/models.py", False),
        ("Read", "shop/migrations/0001.py", False),
    ],
)
def test_the_guard_denies_what_it_says(guard: Hook, scene: Scene, tool: str, path: str, no: bool) -> None:
    payload = ToolUse(tool_name=tool, tool_input={"file_path": path}, tool_use_id="1")
    decision = fire(scene, guard, payload=payload)
    assert denied(decision) is no
    assert ("by hand" in decision.reason) is no


def test_the_answer_is_understood(blocks: dict[str, list[str]], scene: Scene) -> None:
    answer = blocks["json"][1]
    assert json.loads(answer)
    hook = script("printf", args=("%s", answer))
    assert isinstance(hook.body, Script)
    assert hook.point is Point.PRE_TOOL_USE
    assert fire(scene, hook).reason == "not on Fridays"
