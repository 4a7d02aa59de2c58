"""The hooks that are shipped, each run as the process that it is."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.hook import Origin
from agentflow.hooks.entries import HookFile, load_hooks, name_shipped

NAMES = ["completion-gate", "format-edited", "notify", "prompt-gate", "session-context", "write-guard"]


class Ran:
    """What a shipped hook answered."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def context(self) -> str:
        return str(json.loads(self.out)["hookSpecificOutput"]["additionalContext"]) if self.out else ""


@pytest.fixture
def shipped(root: Path, tmp_path: Path) -> Any:
    def run(name: str, path: str = os.environ["PATH"], trusted: str | None = None, **event: Any) -> Ran:
        (script,) = (root / "hooks").glob(f"{name}.*")
        argv = ["sh" if script.suffix == ".sh" else "python3", str(script)]
        given = json.dumps({"cwd": str(tmp_path), **event})
        env = {"PATH": path, "CLAUDE_PROJECT_DIR": str(tmp_path)}
        env |= {} if trusted is None else {"AGENTFLOW_TRUSTED": trusted}
        done = subprocess.run(
            argv, input=given, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return Ran(done)

    return run


def test_the_file_holds_every_script_and_is_one_that_a_plugin_may_bring(root: Path) -> None:
    place = HookFile(path=root / "hooks/hooks.json", origin=Origin.BUILT_IN, plugin=root)
    hooks, warnings = load_hooks([place])
    assert (sorted(map(name_shipped, hooks)), warnings) == (NAMES, ())
    scripts = {path.stem for path in (root / "hooks").iterdir() if path.suffix in (".py", ".sh")}
    assert scripts - {"start"} == set(NAMES)
    allowed = {"type", "command", "timeout"}
    entries = [each for groups in json.loads(place.path.read_text())["hooks"].values() for each in groups]
    handlers = [handler for group in entries for handler in group["hooks"]]
    assert all(set(handler) <= {*allowed, "sandbox"} for handler in handlers)
    assert ["completion-gate" in each["command"] for each in handlers if "sandbox" in each] == [True]


VAGUE = "improve the performance and clean up a bit"
ACTIVE = "---\nactive: true\nstarted_at: {at}\n---\n"
PROMPTS = {
    VAGUE: True,
    "please fix the bug in the login": True,
    "<task>fix everything here please</task>": False,
    "fix it again": False,
    "now do that": False,
    "fix pager.py": False,
    "let add() return the sum": False,
    "rename user_name everywhere": False,
    "make the limit 20": False,
    "what does this repository do?": False,
    "": False,
}


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_prompt_gate_speaks_to_vague_tasks_only(shipped: Any, prompt: str) -> None:
    done = shipped("prompt-gate", prompt=prompt)
    assert (done.code, bool(done.context)) == (0, PROMPTS[prompt])


@pytest.mark.parametrize(("at", "speaks"), [("2999-01-01T00:00:00Z", False), ("2001-01-01T00:00:00Z", True)])
def test_the_prompt_gate_is_silent_while_a_task_is_active(
    shipped: Any, tmp_path: Path, at: str, speaks: bool
) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/orchestration.local.md").write_text(ACTIVE.format(at=at))
    assert bool(shipped("prompt-gate", prompt=VAGUE).context) is speaks


PATHS = {
    "src/foo..bar.py": True,
    "app.py": True,
    "tests/test_secret_manager.py": True,
    "src/secret_manager.py": False,
    ".ENV": False,
    ".env.local": False,
    "server.p12": False,
    "deploy/id_rsa": False,
    "../other/x.py": False,
    "src/../../x.py": False,
    "/opt/x": False,
    "outside/x.py": False,
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("tool", ["Write", "Bash"])
def test_the_write_guard_refuses_what_is_outside_or_secret(
    shipped: Any, tmp_path: Path, tool: str, path: str
) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/write-guard-allow").write_text("# ours\ntests/test_secret_manager.py\n")
    (tmp_path / "outside").symlink_to("/opt")
    given = {"file_path": path} if tool == "Write" else {"command": f"cat a.py 2>/dev/null >> {path}"}
    done = shipped("write-guard", tool_name=tool, tool_input=given)
    assert (done.code == 0) is PATHS[path], done.err
    assert bool(done.err.strip()) is not PATHS[path]


GATE = {
    "all pass": ("true", {}, 0),
    "a new failure": ("echo 'FAILED t.py::test_a - x'; false", {}, 2),
    "a known failure": (
        "echo 'FAILED t.py::test_a - x'; false",
        {"known-test-failures": "t.py::test_a\n"},
        0,
    ),
    "a known and a new one": (
        "echo 'FAILED t.py::test_a'; echo 'FAIL: test_b (t.T.test_b)'; false",
        {"known-test-failures": "t.py::test_a\n"},
        2,
    ),
    "a file that cannot be read in": (
        "echo 'ERROR t.py'; echo 'FAILED t.py::test_a'; false",
        {"known-test-failures": "t.py::test_a\n"},
        2,
    ),
    "a test that raises, known and new": (
        "echo 'ERROR: test_a (t.T.test_a)'; echo 'ERROR: test_b (t.T.test_b)'; false",
        {"known-test-failures": "t.T.test_a\n"},
        2,
    ),
    "a known test that raises": (
        "echo 'ERROR: test_a (t.T.test_a)'; false",
        {"known-test-failures": "t.T.test_a\n"},
        0,
    ),
    "a module that unittest cannot load": (
        "echo 'ERROR: t (unittest.loader._FailedTest.t)'; false",
        {"known-test-failures": "unittest.loader._FailedTest.t\n"},
        2,
    ),
    "no tests seen": ("echo nothing; false", {}, 2),
    "skipped": ("false", {"skip-test-verification": "no database here\n"}, 0),
}


@pytest.mark.parametrize("name", GATE)
def test_the_completion_gate_counts_new_failures(shipped: Any, tmp_path: Path, name: str) -> None:
    command, files, code = GATE[name]
    (tmp_path / ".claude").mkdir()
    for file, text in {"test-command": f"# the tests\n{command}\n", **files}.items():
        (tmp_path / ".claude" / file).write_text(text)
    done = shipped("completion-gate", phase="implementation")
    assert done.code == code, done.err
    assert ("no database here" in done.out) is (name == "skipped")
    assert shipped("completion-gate", phase="planning").code == 0


COMMAND, KNOWN, SKIP = (
    f".claude/{name}" for name in ("test-command", "known-test-failures", "skip-test-verification")
)
FAILING = "echo 'FAILED t.py::test_a'; false"
TRUST = {
    "nothing": ("", {KNOWN: "t.py::test_a"}, 0, (COMMAND, KNOWN)),
    "the command": (COMMAND, {KNOWN: "t.py::test_a"}, 2, (KNOWN,)),
    "the command and the list": (f"{COMMAND}:{KNOWN}", {KNOWN: "t.py::test_a"}, 0, ()),
    "not the reason to skip": (COMMAND, {SKIP: "no database here"}, 2, (SKIP,)),
    "the reason to skip": (f"{COMMAND}:{SKIP}", {SKIP: "no database here"}, 0, ()),
    "a longer name": (f"{COMMAND}-old", {}, 0, (COMMAND,)),
}


@pytest.mark.parametrize("name", TRUST)
def test_the_completion_gate_uses_what_is_trusted_and_names_the_rest(
    shipped: Any, tmp_path: Path, name: str
) -> None:
    trusted, files, code, left = TRUST[name]
    (tmp_path / ".claude").mkdir()
    for file, text in {COMMAND: FAILING, **files}.items():
        (tmp_path / file).write_text(f"{text}\n")
    done = shipped("completion-gate", trusted=trusted, phase="implementation")
    assert done.code == code, done.err
    told = json.loads(done.out)["systemMessage"] if done.out else ""
    assert [file for file in (COMMAND, KNOWN, SKIP) if file in told] == list(left)


def test_a_notification_rings_and_is_shown_on_the_desktop(shipped: Any, tmp_path: Path) -> None:
    tool = tmp_path / "bin/notify-send"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/shown\n')
    tool.chmod(0o755)
    done = shipped("notify", f"{tool.parent}:{os.environ['PATH']}", message="agentflow waits for you: p1")
    assert json.loads(done.out) == {"terminalSequence": "\a"}
    assert (tmp_path / "shown").read_text() == "--|agentflow|agentflow waits for you: p1|"


def test_what_was_edited_is_formatted_and_told(shipped: Any, tmp_path: Path) -> None:
    tool = tmp_path / "bin/ruff"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nshift 2\necho "a = 1" > "$1"\n')
    tool.chmod(0o755)
    (tmp_path / "a.py").write_text("a=1\n")
    path = f"{tool.parent}:{os.environ['PATH']}"
    assert "read it again" in shipped("format-edited", path, tool_input={"file_path": "a.py"}).context
    assert (tmp_path / "a.py").read_text() == "a = 1\n"
    assert shipped("format-edited", path, tool_input={"file_path": "a.py"}).out == ""


def test_a_session_begins_with_branch_and_commits(shipped: Any, tmp_path: Path) -> None:
    author = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", "init", "-q", "-b", "side"], cwd=tmp_path, check=True)
    subprocess.run(
        ["git", *author, "commit", "-q", "--allow-empty", "-m", "first one"], cwd=tmp_path, check=True
    )
    said = shipped("session-context").out
    assert "Branch: side" in said
    assert "first one" in said
