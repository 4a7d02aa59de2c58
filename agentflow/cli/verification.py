"""What `verify` shows: each required check of this repository, run by the program."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentflow.checks.detect import detect, limited_by, quick
from agentflow.checks.interchange import Ran, junit_xml, sarif
from agentflow.checks.run import Shown, execute
from agentflow.checks.wellknown import SKIP_TESTS, commanded
from agentflow.cli.trusting import well_known
from agentflow.core.errors import ConfigError
from agentflow.core.evidence import Check, CheckName
from agentflow.core.record import Record, encode, plain
from agentflow.redact import visible
from agentflow.sandbox.reasons import likely_reason
from agentflow.sandbox.run import Sandbox
from agentflow.settings import load_settings
from agentflow.store.reading import find
from agentflow.workflow.drift import listed
from agentflow.workflow.fresh import Bench
from agentflow.workflow.proof import examine
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import open_repository


class Row(Record):
    """One check: for people, for programs, and whether it holds."""

    text: str
    told: dict[str, Any]
    holds: bool
    ran: Ran | None = None
    """For other programs' formats; None where it is about a record."""


def rows(sandbox: Sandbox, *, is_quick: bool, dry_run: bool) -> Iterator[Row]:
    """Yield one row for each required check, as it ends."""
    said = well_known(sandbox.root)
    checks = commanded(detect(sandbox, Fence(sandbox.root).files()), said)
    settings = load_settings(os.environ)
    limited = quick(checks, settings.quick) if is_quick else limited_by(checks, settings.timeouts)
    for check in limited:
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


def written(path: Path, text: str) -> None:
    """Write a file for another program. Raises ConfigError."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None


def interchanged(shown: Sequence[Row], junit: Path | None, sarif_file: Path | None) -> None:
    """Write what ran in the formats that were asked for."""
    ran = [row.ran for row in shown if row.ran is not None]
    if junit is not None:
        written(junit, junit_xml(ran))
    if sarif_file is not None:
        written(sarif_file, encode(sarif(ran)).decode() + "\n")


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
    ran = Ran(check=check, shown=shown, holds=holds)
    told: dict[str, Any] = {"exit_code": shown.execution.exit_code, "seconds": shown.execution.seconds}
    return row.replace(
        text=text, ran=ran, told={**row.told, **told, "tests": plain(tests), "sandbox": sandbox.level}
    )


def _words(shown: Shown) -> str:
    execution, counts = shown.execution, shown.counts
    code = "timed out" if execution.timed_out else f"exit {execution.exit_code}"
    tests = f", {counts.passed} passed, {counts.failed + counts.errors} failed" if counts else ""
    return f"{code}{tests}, {execution.seconds:.1f} s"


def _row(check: Check, words: str, *, holds: bool) -> Row:
    told = {"check": check.name, "command": check.command, "missing": check.missing}
    text = f"{check.name}: {visible(check.command)}: {words}"
    return Row(text=text, told=told, holds=holds, ran=Ran(check=check, shown=None, holds=holds))
