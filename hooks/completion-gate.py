#!/usr/bin/env python3
"""TaskCompleted: runs the repository's tests before a change counts as done, and sends it back if they fail.

Three files of the repository say how:
.claude/test-command            the first line that is no comment is the command; without it nothing runs
.claude/known-test-failures     ids of tests that fail anyway, one a line; only other failures count
.claude/skip-test-verification  its first line is why the tests are not run; a person is told
A test file that cannot be read in (a collection error) always counts.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

FAILED = re.compile(r"^(?:FAILED (\S+)|FAIL: \w+ \(([\w.]+)\))", re.MULTILINE)
BROKEN = re.compile(
    r"^(?:ERROR:? (?!\s)(.+)|.*(?:ImportError|SyntaxError|errors? during collection).*)$", re.MULTILINE
)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file that are neither empty nor comments."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def find_reason(output: str, known: list[str]) -> str | None:
    """Return why failed tests send a change back, or None where each of them is known."""
    failed = ["".join(groups) for groups in FAILED.findall(output)]
    new = [test for test in failed if test not in known]
    if broken := BROKEN.search(output):
        return f"A test file could not be read in: {broken[0]}"
    if new:
        return f"These tests fail: {', '.join(new[:20])}"
    return None if failed else f"The tests failed:\n{output[-2_000:]}"


def main() -> int:
    event = json.load(sys.stdin)
    folder = Path(event["cwd"], ".claude")
    command = read_lines(folder / "test-command")
    if event.get("phase", "implementation") != "implementation" or not command:
        return 0
    if why := read_lines(folder / "skip-test-verification"):
        print(json.dumps({"systemMessage": f"The tests were not run: {why[0]}"}))
        return 0
    done = subprocess.run(
        command[0], shell=True, cwd=event["cwd"], capture_output=True, text=True, errors="replace"
    )
    output = done.stdout + done.stderr
    known = read_lines(folder / "known-test-failures")
    reason = find_reason(output, known) if done.returncode else None
    if reason:
        print(reason, file=sys.stderr)
    return 2 if reason else 0


sys.exit(main())
