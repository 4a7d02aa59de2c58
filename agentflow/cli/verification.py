"""What `verify` shows: each required check of this repository, run by the program."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentflow.checks.detect import detect, quick
from agentflow.checks.run import Shown, execute
from agentflow.checks.wellknown import SKIP_TESTS, commanded
from agentflow.cli.trusting import well_known
from agentflow.core.evidence import Check, CheckName
from agentflow.core.record import Record, plain
from agentflow.redact import visible
from agentflow.sandbox.reasons import likely_reason
from agentflow.sandbox.run import Sandbox
from agentflow.store.reading import find
from agentflow.workflow.gate import listed
from agentflow.workflow.proof import Bench, examine
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import open_repository


class Row(Record):
    """One check: for people, for programs, and whether it holds."""

    text: str
    told: dict[str, Any]
    holds: bool


def rows(sandbox: Sandbox, *, is_quick: bool, dry_run: bool) -> Iterator[Row]:
    """Yield one row for each required check, as it ends."""
    said = well_known(sandbox.root)
    checks = commanded(detect(sandbox, Fence(sandbox.root).files()), said)
    for check in quick(checks) if is_quick else checks:
        if check.name is CheckName.TESTS and said.skip:
            yield _row(check, f"skipped ({SKIP_TESTS}: {said.skip})", holds=False)
        elif check.missing is not None:
            yield _row(check, f"not run ({check.missing})", holds=False)
        elif dry_run:
            yield _row(check, f"{check.reason}, at most {check.timeout:.0f} s", holds=True)
        else:
            yield _ran(check, sandbox)


def examined(sandbox: Sandbox, task_id: str) -> Iterator[Row]:
    """Yield one row for each record of a task, and one for its verdict."""
    git = open_repository(sandbox.root)
    path = find(git.root, task_id)
    for one in examine(Bench(git=git, sandbox=sandbox, said=well_known(git.root)), path):
        mark = "differs" if one.differs else "left out" if one.left_out else "holds"
        yield Row(
            text=visible(f"{mark:<8} {one.subject}: {one.said}"), told=plain(one), holds=not one.differs
        )


def verdict_words(shown: Sequence[Row]) -> str:
    """Return in one line what came of a task's records."""
    wrong = [row.told["subject"] for row in shown if not row.holds]
    if wrong:
        return f"not what was recorded: {visible(listed(wrong))}"
    count = len(shown) - sum(row.told["left_out"] for row in shown)
    return f"{count} of {len(shown)} looked at again, each as it was recorded"


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
