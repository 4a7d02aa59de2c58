#!/usr/bin/env python3
"""TaskCompleted: runs the repository's tests before a change counts as done, and sends it back if they fail.

Three files of the repository say how:
.claude/test-command            the first line that is no comment is the command; without it nothing runs
.claude/known-test-failures     ids of tests that fail anyway, one a line; only other failures count
.claude/skip-test-verification  its first line is why the tests are not run; a person is told
A test file that cannot be read in (a collection error) always counts.
In agentflow each file counts once it is trusted, and the tests run where the repository can only be read.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOADER = r"(?!unittest\.loader\._FailedTest)"
FAILED = re.compile(rf"^(?:FAILED ([^\s(]\S*)|(?:FAIL|ERROR): \w+ \({LOADER}([\w.]+)\))", re.MULTILINE)
BROKEN = re.compile(
    rf"^(?:ERROR(?!: \w+ \({LOADER}[\w.]+\)):? (?!\s).+"
    r"|.*(?:ImportError|SyntaxError|errors? during collection).*)$",
    re.MULTILINE,
)


NAMES = ("test-command", "known-test-failures", "skip-test-verification")
TRUSTED = os.environ.get("AGENTFLOW_TRUSTED")
"""Paths between colons; None in other tools, which ask for trust in a repository as a whole."""


def is_trusted(name: str) -> bool:
    """Return whether a file of `.claude` counts."""
    return TRUSTED is None or f".claude/{name}" in TRUSTED.split(":")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file that are neither empty nor comments; none if it is not trusted."""
    try:
        lines = path.read_text("utf-8").splitlines() if is_trusted(path.name) else []
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def run_tests(command: str, cwd: str) -> "subprocess.CompletedProcess[str]":
    """Run the tests; what they keep for the next time goes to a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} -o cache_dir={shlex.quote(folder)}/pytest"
        kept = {
            "PYTEST_ADDOPTS": options.strip(),
            "COVERAGE_FILE": f"{folder}/coverage",
        }
        return subprocess.run(
            command,
            shell=True,
            cwd=cwd,
            env={**os.environ, **kept},
            capture_output=True,
            text=True,
            errors="replace",
        )


def find_reason(output: str, known: list[str]) -> str | None:
    """Return why failed tests send a change back, or None where each of them is known."""
    failed = ["".join(groups) for groups in FAILED.findall(output)]
    new = [test for test in failed if test not in known]
    if broken := BROKEN.search(output):
        return f"A test file could not be read in: {broken[0]}"
    if new:
        return f"These tests fail: {', '.join(new[:20])}"
    return None if failed else f"The tests failed:\n{output[-2_000:]}"


def check(event: dict[str, Any], told: list[str]) -> str | None:
    """Return why a change is sent back, or None; what a person should know goes to `told`."""
    folder = Path(event["cwd"], ".claude")
    left = [name for name in NAMES if (folder / name).is_file() and not is_trusted(name)]
    if left:
        told.append(f".claude/{', .claude/'.join(left)} not trusted, so not used: agentflow trust")
    command = read_lines(folder / "test-command")
    if not command:
        return None
    if why := read_lines(folder / "skip-test-verification"):
        told.append(f"The tests were not run: {why[0]}")
        return None
    done = run_tests(command[0], event["cwd"])
    known = read_lines(folder / "known-test-failures")
    return find_reason(done.stdout + done.stderr, known) if done.returncode else None


def main() -> int:
    event = json.load(sys.stdin)
    if event.get("phase", "implementation") != "implementation":
        return 0
    told: list[str] = []
    reason = check(event, told)
    if told:
        print(json.dumps({"systemMessage": "\n".join(told)}))
    if reason:
        print(reason, file=sys.stderr)
    return 2 if reason else 0


sys.exit(main())
