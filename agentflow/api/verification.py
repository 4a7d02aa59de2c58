"""Runs the checks of this repository, or a task's records again, and describes each result."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from agentflow.api.trust import list_untrusted, load_project, load_well_known
from agentflow.checks.detect import detect, detect_quick, limit_checks
from agentflow.checks.interchange import Ran as Interchanged
from agentflow.checks.repository import QUICK_LIMITS, WellKnown, apply_own_commands
from agentflow.core.check_command import format_command
from agentflow.core.errors import Exit
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Fault, Surface, describe_result
from agentflow.core.record import Record, to_builtins
from agentflow.redact import format_count, list_some
from agentflow.sandbox.run import Sandbox, guess_reason
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.settings import Patience, Settings, apply_project, load_settings
from agentflow.store.reading import find
from agentflow.verdict.earlier_runs import PATIENCE, WHOLE, Circumstances, find_flaky
from agentflow.verdict.runner import Place
from agentflow.view.text import Line, Span, Style, column, line, span
from agentflow.view.words import format_duration, pass_mark
from agentflow.workspace.git import open_repository
from agentflow.workspace.path_guard import PathGuard

_NONE = "No checks found. Write your test command into .claude/test-command, then run `agentflow trust`."
During = Callable[[Check], AbstractContextManager[None]]


class VerificationRow(Record):
    """One check or record: as lines for people, as values for programs, and whether it passes."""

    lines: tuple[Line, ...]
    values: dict[str, Any]
    holds: bool
    name: str
    caveat: bool = False
    """It passes, with a remark for the person."""
    is_idle: bool = False
    """It is a check that does not run."""
    ran: Interchanged | None = None
    """The run for JUnit and SARIF files; None for a record."""


class Verification(Record):
    exit_code: Exit
    rows: tuple[VerificationRow, ...]


def list_untrusted_checks(root: Path) -> Iterator[str]:
    """Yield a line about the files that would change the checks if they were trusted."""
    if files := [item.file for item in list_untrusted(root) if item.kind in ("checks", "settings")]:
        yield f"ignored until you trust it: {', '.join(files)} (run `agentflow trust` to review it)"


def run_checks(
    sandbox: Sandbox, *, is_quick: bool, dry_run: bool, during: During = lambda _: nullcontext()
) -> Iterator[VerificationRow]:
    """Yield a row for each required check as it ends; `during` is open while the check runs."""
    said = load_well_known(sandbox.root)
    settings = load_settings(os.environ)
    if not dry_run:
        sandbox.fill_build_cache()
    patience = {} if is_quick else {Fault.FLAKY: {**PATIENCE, **settings.check_retry}[Fault.FLAKY]}
    for check in _list_checks(sandbox, said, settings, is_quick=is_quick):
        if word := said.skips.get(check.name):
            row = _make_row(check, f"skipped ({word.file}: {word.text})", holds=True)
            yield row.replace(caveat=True, is_idle=True)
        elif check.missing is not None:
            row = _make_row(check, f"not run ({check.missing})", holds=False)
            yield row.replace(holds=True, caveat=True, is_idle=True)
        elif dry_run:
            words = ", ".join((check.reason, f"at most {check.timeout:.0f} s", *_find_doubts(check)))
            yield _make_row(check, words, holds=True, mark=span("○ ", Style.DIM))
        else:
            with during(check):
                row = _run_check(check, sandbox, patience, frozenset(said.known))
            yield row


def reverify_records(sandbox: Sandbox, task_id: str) -> Iterator[VerificationRow]:
    """Yield one row for each record of a task, and one for its verdict."""
    from agentflow.verdict.reverify import Copies, reverify

    git = open_repository(sandbox.root)
    globs = apply_project(load_settings(os.environ), load_project(git.root)).surface
    surface = Surface(added=globs.add, removed=globs.remove)
    copies = Copies(git=git, sandbox=sandbox, said=load_well_known(git.root), surface=surface)
    sandbox.fill_build_cache()
    with _open_record(git.root, task_id) as path:
        for one in reverify(copies, path):
            mark = span("✓ same     ", Style.GOOD)
            if one.differs or one.left_out:
                mark = span("✗ differs  ", Style.BAD) if one.differs else span("─ skipped  ", Style.WARN)
            shown = line(mark, f"{one.subject}: {one.said}", hang=4)
            yield VerificationRow(
                lines=(shown,), values=to_builtins(one), holds=not one.differs, name=one.subject
            )


def _list_checks(
    sandbox: Sandbox, said: WellKnown, settings: Settings, *, is_quick: bool
) -> tuple[Check, ...]:
    files = PathGuard(sandbox.root).list_files()
    if not is_quick:
        return limit_checks(apply_own_commands(detect(sandbox, files), said), settings.timeouts)
    git = open_repository(sandbox.root)
    changes = git.list_changes(git.head, git.write_tree()) if git.head else ()
    changed = tuple(change.path for change in changes)
    known = apply_own_commands(detect_quick(sandbox, files, changed), said)
    found = tuple(check for check in known if check.name in QUICK_LIMITS)
    return limit_checks(found, {**QUICK_LIMITS, **settings.quick})


def choose_exit(shown: Sequence[VerificationRow]) -> Exit:
    is_any_able = not all(row.values.get("missing") for row in shown)
    if not is_any_able or not all(row.holds for row in shown):
        return Exit.NOT_VERIFIED
    return Exit.CAVEAT if any(row.caveat for row in shown) else Exit.VERIFIED


def summarize_checks(shown: Sequence[VerificationRow], *, dry_run: bool) -> Line:
    is_any_able = not all(row.values.get("missing") for row in shown)
    wrong = [row.name for row in shown if not row.holds or not is_any_able]
    doubtful = [row.name for row in shown if row.caveat]
    idle = [row.name for row in shown if row.is_idle]
    number = (f"{len(shown) - len(idle)} of " if idle else "") + format_count(len(shown), "check")
    if not shown:
        return line(_NONE)
    if wrong:
        count = format_count(len(shown), "check")
        return line(span(f"not verified: {', '.join(wrong)}", Style.BAD), f" ({len(wrong)} of {count})")
    if dry_run:
        return line(f"{number} would run", f"; not {', '.join(idle)}" if idle else "")
    if doubtful:
        return line(span(f"{number} passed, with a caveat: {', '.join(doubtful)}", Style.WARN))
    return line(span(f"{number} passed", Style.GOOD))


def _run_check(
    check: Check, sandbox: Sandbox, patience: Mapping[Fault, Patience], accepted: frozenset[str]
) -> VerificationRow:
    with make_scratch_folder() as scratch:
        shown = _run_and_repeat(check, sandbox, patience, scratch)
        output = Path(shown.execution.output).read_text("utf-8", "replace")
    *earlier, _ = shown.runs
    chance = find_flaky(shown)
    red = {test for test, outcome in shown.outcomes.items() if outcome in RED}
    is_sound = (shown.counts is None or shown.counts.ran > 0) and red <= accepted.union(chance)
    holds = is_sound and shown.execution.exit_code in ((0, 1) if red else (0,))
    doubts = tuple(_find_doubts(check, shown))
    names = f": {list_some(list(chance))}" if chance else ""
    ends = [run.execution for run in earlier]
    words = describe_result(shown.execution, shown.counts, ends, chance) + names
    row = _make_row(check, ", ".join((words, *doubts)), holds=holds, seconds=shown.execution.seconds)
    values = {
        "exit_code": shown.execution.exit_code,
        "seconds": shown.execution.seconds,
        "tests": to_builtins(shown.counts),
        "sandbox": sandbox.level,
        "runs": len(shown.runs),
        "flaky": chance,
    }
    return row.replace(
        lines=(*row.lines, *(() if holds else _explain_failure(check, sandbox, shown))),
        ran=Interchanged(check=check, shown=shown, holds=holds, output=output),
        values={**row.values, **values},
        caveat=bool(chance or doubts),
    )


def _find_doubts(check: Check, shown: CheckRun | None = None) -> Iterator[str]:
    """Yield the reasons why a passing check proves less, or would."""
    if check.left_out:
        yield f"a part cannot run ({check.left_out})"
    if shown is None:
        return
    if check.name is CheckName.TESTS and shown.counts is None:
        yield "tests cannot be counted"
    if shown.counts and shown.counts.is_mostly_skipped:
        yield "most tests are skipped"


def _explain_failure(check: Check, sandbox: Sandbox, shown: CheckRun) -> Iterator[Line]:
    """Yield the end of what a check printed, and what a person can do about it."""
    yield from (line("  ", row) for row in shown.execution.tail.rstrip().split("\n"))
    if shown.execution.timed_out:
        more = f"`timeouts: {{{check.name}: SECONDS}}` in config.yaml gives it more"
        yield line("  ", span(more, Style.WARN))
    if hint := guess_reason(sandbox, shown.execution.tail):
        yield line("  ", span(hint, Style.WARN))


def _run_and_repeat(
    check: Check, sandbox: Sandbox, patience: Mapping[Fault, Patience], scratch: Path
) -> CheckRun:
    place = Place(sandbox=sandbox)

    def begin(number: int) -> CheckRun:
        return place.run(check, scratch / str(number))

    first = begin(1)
    is_tests = check.name is CheckName.TESTS
    known = Circumstances(passed=frozenset(first.outcomes) | {WHOLE} if is_tests else frozenset())
    return place.run_again(first, known, patience, begin)


def _make_row(
    check: Check, words: str, *, holds: bool, seconds: float | None = None, mark: Span | None = None
) -> VerificationRow:
    values = {"check": check.name, "command": check.command, "missing": check.missing}
    took = f"{format_duration(seconds)}  " if seconds is not None else ""
    shown = line(
        mark or pass_mark(holds),
        column(check.name, 7, Style.BOLD),
        span(f"{words}  "),
        span(f"{took}{format_command(check.command)}", Style.DIM),
        hang=4,
    )
    ran = Interchanged(check=check, shown=None, holds=holds, why=words)
    return VerificationRow(lines=(shown,), values=values, holds=holds, name=check.name, ran=ran)


@contextmanager
def _open_record(root: Path, named: str) -> Iterator[Path]:
    from agentflow.store.bundle import unpack_record

    if not Path(named).is_file():
        yield find(root, named)
        return
    with make_scratch_folder() as folder:
        unpack_record(Path(named), folder)
        yield folder


def summarize_records(shown: Sequence[VerificationRow]) -> Line:
    wrong = [row.name for row in shown if not row.holds]
    if wrong:
        return line(span(f"differs from the record: {list_some(wrong)}", Style.BAD))
    count = len(shown) - sum(row.values["left_out"] for row in shown)
    return line(
        span(f"{count} of {len(shown)} records checked again, each with the recorded result", Style.GOOD)
    )
