"""The small examples that people run first do what their texts say, without a model."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.repo import COMMAND, NewRepo

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(words: Sequence[str], cwd: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **env}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def scratch(tmp_path: Path) -> dict[str, str]:
    return {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}


def test_a_second_task_is_told_what_the_first_remembered(tmp_path: Path, scratch: dict[str, str]) -> None:
    done = run(("sh", str(EXAMPLES / "memory/run.sh")), tmp_path, **scratch)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"requests of the explorer: (\d)", done.stdout) == ["4", "1"]
    assert "- learning (" in done.stdout
    assert "with token=[REDACTED]" in done.stdout
    assert not any(b"sk-ant-0123" in path.read_bytes() for path in tmp_path.rglob("*.sqlite*"))


def test_a_call_waits_is_approved_with_another_input_and_expires(
    tmp_path: Path, scratch: dict[str, str]
) -> None:
    done = run(("sh", str(EXAMPLES / "decisions/run.sh")), tmp_path, **scratch)
    said = done.stdout
    assert '"message":"agentflow waits for you: approval p1-1 of Bash"' in said, done.stderr
    assert "approved with another input by ann" in said
    assert "+echo release 2 > NOTES\n" in said
    assert "timeout:" not in said, "what nobody changed is not shown"
    assert "too late: p1-1 expired" in done.stderr
    assert "denied by approval_timeout" in said


def test_a_function_asks_about_a_call_and_a_program_approves_another_input(new_repo: NewRepo) -> None:
    repo = new_repo({"prices.txt": "cents\n", "Makefile": "test:\n\tgrep -q cents prices.txt\n"})
    shutil.copy(EXAMPLES / "decisions/crew.yaml", repo.root)
    done = run((sys.executable, str(EXAMPLES / "decisions/condition.py")), repo.root, HOME=str(repo.home))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "waits: Bash echo release 2 > NOTES && echo pushed --force >> NOTES",
        "asked: echo release 2 > NOTES && echo pushed --force >> NOTES",
        "ran:   echo release 2 > NOTES by ann through a program",
    ]
    assert repo.read("NOTES") == "release 2\n"
