"""What `verify` shows: each required check of this repository, run by the program."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentflow.checks.detect import detect, quick
from agentflow.checks.run import Shown, execute
from agentflow.core.evidence import Check
from agentflow.core.record import Record, plain
from agentflow.redact import visible
from agentflow.sandbox.reasons import likely_reason
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.fence import Fence


class Row(Record):
    """One check: for people, for programs, and whether it holds."""

    text: str
    told: dict[str, Any]
    holds: bool


def rows(sandbox: Sandbox, *, is_quick: bool, dry_run: bool) -> Iterator[Row]:
    """Yield one row for each required check, as it ends."""
    checks = detect(sandbox, Fence(sandbox.root).files())
    for check in quick(checks) if is_quick else checks:
        if check.missing is not None:
            yield _row(check, f"not run ({check.missing})", holds=False)
        elif dry_run:
            yield _row(check, f"{check.reason}, at most {check.timeout:.0f} s", holds=True)
        else:
            yield _ran(check, sandbox)


def _ran(check: Check, sandbox: Sandbox) -> Row:
    with tempfile.TemporaryDirectory(prefix="agentflow-") as scratch:
        shown = execute(check, sandbox, Path(scratch, "output"))
    tests = shown.counts
    is_sound = tests is None or (tests.ran > 0 and tests.ran == tests.passed)
    holds = shown.execution.exit_code == 0 and is_sound
    row = _row(check, _words(shown), holds=holds)
    hint = "" if holds else likely_reason(sandbox, shown.execution.tail)
    lines = (row.text, *(() if holds else (visible(shown.execution.tail).rstrip(), visible(hint))))
    text = "\n".join(line for line in lines if line)
    told = {"exit_code": shown.execution.exit_code, "seconds": shown.execution.seconds}
    return row.replace(text=text, told={**row.told, **told, "tests": plain(tests), "sandbox": sandbox.level})


def _words(shown: Shown) -> str:
    execution, counts = shown.execution, shown.counts
    code = "timed out" if execution.timed_out else f"exit {execution.exit_code}"
    tests = f", {counts.passed} passed, {counts.failed + counts.errors} failed" if counts else ""
    return f"{code}{tests}, {execution.seconds:.1f} s"


def _row(check: Check, words: str, *, holds: bool) -> Row:
    told = {"check": check.name, "command": check.command, "missing": check.missing}
    return Row(text=f"{check.name}: {visible(check.command)}: {words}", told=told, holds=holds)
