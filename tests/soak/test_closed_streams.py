"""Nobody to read stdout or stderr: neither a traceback nor another exit code."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY = "from agentflow.cli.app import command; command()"
COMMANDS = {
    "--version": 0,
    "--help": 0,
    "task --help": 0,
    "agents list": 0,
    "tools list": 0,
    "task": 2,
    "--nonsense": 2,
    "task -C /nowhere fix it": 2,
}


@pytest.mark.parametrize("way", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
@pytest.mark.parametrize("words", COMMANDS)
def test_nobody_reads(words: str, way: str, tmp_path: Path) -> None:
    assert ran(f"-c {shlex.quote(ENTRY)} {words} {way}", tmp_path) == (COMMANDS[words], False)


@pytest.mark.parametrize("way", [">&- 2>&-", ">/dev/full 2>/dev/full"])
def test_nobody_reads_the_module_either(way: str, tmp_path: Path) -> None:
    assert ran(f"-m agentflow --version {way}", tmp_path) == (0, False)
    assert ran(f"-m agentflow --nonsense {way}", tmp_path) == (2, False)


def ran(words: str, folder: Path) -> tuple[int, bool]:
    """Return the exit code, and whether anything looked like a crash."""
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} {words}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    return done.returncode, "Traceback" in said or "Exception" in said or bool(list(folder.iterdir()))
