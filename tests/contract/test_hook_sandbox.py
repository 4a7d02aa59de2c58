"""Scripts that ask for the sandbox: what they reach, what they are good for, and where there is none."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentflow.core.hook import Decision, Hook, OnError, Origin, Script
from agentflow.core.points import Point, Scene
from tests.support.boxes import boxed, landlocked, unboxed
from tests.unit.hooks.stage import BASH, a_scene, fire, script

LOOK = """
test "$(cat a.txt)" = mine && echo reads
{ echo x >> a.txt; } 2>/dev/null && echo writes
{ touch new.txt; } 2>/dev/null && echo makes
cat %(secret)s 2>/dev/null
bash -c 'exec 3<>/dev/tcp/127.0.0.1/%(port)s' 2>/dev/null && echo connects
true
"""
GUARD = """import json, sys
command = json.load(sys.stdin)["tool_input"]["command"]
print(json.dumps({"decision": "deny", "reason": f"not {command}"} if "rm" in command else {}))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture(params=[boxed, landlocked], ids=["full", "partial"])
def scene(request: pytest.FixtureRequest, home: Path) -> Scene:
    root = home.parent / "repo"
    root.mkdir()
    (root / "a.txt").write_text("mine\n")
    return a_scene(root).replace(runner=request.param(root))


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def asking(command: str, *, timeout: float = 20, **options: object) -> Hook:
    hook = script(command, timeout=timeout).replace(**options)
    assert isinstance(hook.body, Script)
    return hook.replace(body=hook.body.replace(sandbox=True))


@pytest.mark.parametrize("is_boxed", [True, False])
def test_a_script_in_the_sandbox_reads_the_repository_and_no_more(
    scene: Scene, home: Path, port: int, is_boxed: bool
) -> None:
    (home / "secret").write_text("finds\n")
    look = f"({LOOK % {'secret': home / 'sec*', 'port': port}}) >&2; exit 2"
    said = fire(scene, asking(look) if is_boxed else script(look))
    everything = ["reads", "writes", "makes", "finds", "connects"]
    assert said.reason.split() == (["reads"] if is_boxed else everything)
    assert sorted(path.name for path in scene.cwd.iterdir()) == ["a.txt"] + ["new.txt"] * (not is_boxed)


def test_a_guard_of_the_users_own_reads_the_call_and_denies_it(scene: Scene, home: Path) -> None:
    guard = home / ".claude/hooks/guard.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(GUARD)
    hook = asking(f'python3 "{guard}"', origin=Origin.USER)
    bad = BASH.replace(tool_input={"command": "rm -r src"})
    said = [fire(scene, hook, payload=payload) for payload in (BASH, bad)]
    assert [(each.decision, each.reason) for each in said] == [
        (Decision.NONE, ""),
        (Decision.DENY, "not rm -r src"),
    ]
    theirs = fire(scene, asking(f'cat "{guard}" >&2; exit 2', origin=Origin.PROJECT))
    assert "json.load" not in theirs.reason  # a repository shows itself nothing of the home


BOUNDS = {
    "a hang": ("sleep 20", 1.0, "did not end in time"),
    "100 MB": ("head -c 100000000 /dev/zero", 20.0, "printed more than 64 KiB"),
    "killed": ("kill -9 $$", 20.0, "was killed by a signal"),
    "a missing file": ("./none.sh", 20.0, "ended with 127"),
    "half an object": ("echo '{'", 20.0, "printed invalid JSON"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_what_bounds_a_script_bounds_it_in_the_sandbox_too(scene: Scene, name: str) -> None:
    command, timeout, reason = BOUNDS[name]
    said = fire(scene, asking(command, timeout=timeout))
    assert (said.decision, reason in said.reason) == (Decision.DENY, True), said


def test_input_of_the_model_and_long_answers_pass_as_ever(scene: Scene) -> None:
    answer = json.dumps({"updated_input": {"command": "ls -l"}, "additional_context": "x" * 20_000})
    (scene.cwd / "answer.json").write_text(answer)
    said = fire(scene, asking("cat > /dev/null; cat answer.json"))
    assert said.updated_input == {"command": "ls -l"}
    assert "[clipped; the full text is in" in said.context


@pytest.mark.parametrize("is_off", [True, False], ids=["off", "not there"])
@pytest.mark.parametrize(
    ("point", "on_error", "decision"),
    [
        (Point.PRE_TOOL_USE, None, Decision.DENY),
        (Point.TASK_COMPLETED, None, Decision.DENY),
        (Point.PRE_TOOL_USE, OnError.OPEN, Decision.NONE),
        (Point.NOTIFICATION, None, Decision.NONE),
    ],
)
def test_without_a_sandbox_a_script_that_asks_for_one_does_not_run(
    tmp_path: Path, point: Point, on_error: OnError | None, decision: Decision, is_off: bool
) -> None:
    scene = a_scene(tmp_path).replace(runner=unboxed(tmp_path) if is_off else None)
    said = fire(scene, asking("touch ran", point=point, on_error=on_error))
    problem = "was not run, because it asks for a sandbox: there is none"
    assert (said.decision, problem in said.reason) == (decision, decision is Decision.DENY)
    assert [problem in notice for notice in said.notices] == [True]
    assert not (tmp_path / "ran").exists()
