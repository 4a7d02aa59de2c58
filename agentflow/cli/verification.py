"""What `verify` shows: each required check of this repository, run by the program."""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentflow.checks.again import PATIENCE, WHOLE, Known, due, flaky, wait
from agentflow.checks.detect import detect, detect_quick, limited_by
from agentflow.checks.interchange import Ran, junit_xml, sarif
from agentflow.checks.required import QUICK_LIMITS
from agentflow.checks.run import Shown, execute
from agentflow.checks.wellknown import SKIP_TESTS, WellKnown, commanded
from agentflow.cli.trusting import well_known
from agentflow.core.errors import ConfigError, StateError
from agentflow.core.evidence import RED, Check, CheckName, Fault, ended, repeated
from agentflow.core.exits import Exit
from agentflow.core.record import Record, encode, plain
from agentflow.redact import visible
from agentflow.sandbox.reasons import likely_reason
from agentflow.sandbox.run import Sandbox
from agentflow.settings import Patience, Settings, load_settings
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
    caveat: bool = False
    """It holds, but a person should know how."""
    ran: Ran | None = None
    """For other programs' formats; None where it is about a record."""


def rows(sandbox: Sandbox, *, is_quick: bool, dry_run: bool) -> Iterator[Row]:
    """Yield one row for each required check, as it ends."""
    said = well_known(sandbox.root)
    settings = load_settings(os.environ)
    patience = {} if is_quick else {Fault.FLAKY: {**PATIENCE, **settings.check_retry}[Fault.FLAKY]}
    for check in _checks(sandbox, said, settings, is_quick=is_quick):
        if check.name is CheckName.TESTS and said.skip:
            yield _row(check, f"skipped ({SKIP_TESTS}: {said.skip})", holds=True).replace(caveat=True)
        elif check.missing is not None:
            yield _row(check, f"not run ({check.missing})", holds=False)
        elif dry_run:
            yield _row(check, f"{check.reason}, at most {check.timeout:.0f} s", holds=True)
        else:
            yield _ran(check, sandbox, patience, frozenset(said.known))


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


def _checks(sandbox: Sandbox, said: WellKnown, settings: Settings, *, is_quick: bool) -> tuple[Check, ...]:
    files = Fence(sandbox.root).files()
    if not is_quick:
        return limited_by(commanded(detect(sandbox, files), said), settings.timeouts)
    found = commanded(detect_quick(sandbox, files, _changed(sandbox.root)), said)
    return limited_by(found, {**QUICK_LIMITS, **settings.quick})


def _changed(root: Path) -> tuple[str, ...]:
    """Return the files that differ from the last commit; none where there is no commit."""
    git = open_repository(root)
    try:
        return tuple(change.path for change in git.changes("HEAD^{tree}", git.tree()))
    except StateError:
        return ()


def exit_of(shown: Sequence[Row]) -> Exit:
    if not shown or not all(row.holds for row in shown):
        return Exit.NOT_VERIFIED
    return Exit.CAVEAT if any(row.caveat for row in shown) else Exit.VERIFIED


def verdict_words(shown: Sequence[Row]) -> str:
    """Return in one line what came of a task's records."""
    wrong = [row.told["subject"] for row in shown if not row.holds]
    if wrong:
        return f"not what was recorded: {visible(listed(wrong))}"
    count = len(shown) - sum(row.told["left_out"] for row in shown)
    return f"{count} of {len(shown)} looked at again, each as it was recorded"


def _ran(check: Check, sandbox: Sandbox, patience: Mapping[Fault, Patience], accepted: frozenset[str]) -> Row:
    runs = _runs(check, sandbox, patience)
    shown, chance = runs[-1], flaky(runs, check.name)
    holds = _holds(shown, accepted.union(chance))
    row = _row(check, _words(shown, runs[:-1], chance), holds=holds)
    hint = "" if holds else likely_reason(sandbox, shown.execution.tail)
    lines = (row.text, *(() if holds else (visible(shown.execution.tail).rstrip(), visible(hint))))
    text = "\n".join(line for line in lines if line)
    ran = Ran(check=check, shown=shown, holds=holds)
    told: dict[str, Any] = {"exit_code": shown.execution.exit_code, "seconds": shown.execution.seconds}
    told |= {"tests": plain(shown.counts), "sandbox": sandbox.level, "runs": len(runs), "flaky": chance}
    return row.replace(text=text, ran=ran, told={**row.told, **told}, caveat=bool(chance))


def _holds(shown: Shown, accepted: frozenset[str]) -> bool:
    """Return whether a check shows nothing wrong, tests aside that are known to fail or did so by chance."""
    red = {test for test, outcome in shown.outcomes.items() if outcome in RED}
    is_sound = shown.counts is None or shown.counts.ran > 0
    return is_sound and red <= accepted and shown.execution.exit_code in ((0, 1) if red else (0,))


def _runs(check: Check, sandbox: Sandbox, patience: Mapping[Fault, Patience]) -> list[Shown]:
    """Run a check; red tests once more, which tells whether they fail by chance, and if so more often."""
    runs, faults = [_once(check, sandbox)], list[Fault]()
    is_tests = check.name is CheckName.TESTS
    known = Known(passed=frozenset(runs[0].outcomes) | {WHOLE} if is_tests else frozenset())
    while fault := due(runs, faults, known, patience):
        time.sleep(wait(fault, faults, patience))
        runs.append(_once(check, sandbox))
        faults.append(fault)
    return runs


def _once(check: Check, sandbox: Sandbox) -> Shown:
    with tempfile.TemporaryDirectory(prefix="agentflow-") as scratch:
        return execute(check, sandbox, Path(scratch, "output"))


def _words(shown: Shown, earlier: Sequence[Shown], chance: Sequence[str]) -> str:
    execution, counts = shown.execution, shown.counts
    tests = f", {counts.passed} passed, {counts.failed + counts.errors} failed" if counts else ""
    before = repeated([run.execution for run in earlier], chance)
    names = f": {visible(listed(list(chance)))}" if chance else ""
    return f"{ended(execution)}{tests}, {execution.seconds:.1f} s{before}{names}"


def _row(check: Check, words: str, *, holds: bool) -> Row:
    told = {"check": check.name, "command": check.command, "missing": check.missing}
    text = f"{check.name}: {visible(check.command)}: {words}"
    return Row(text=text, told=told, holds=holds, ran=Ran(check=check, shown=None, holds=holds))
