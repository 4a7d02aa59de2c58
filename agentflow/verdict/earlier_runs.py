"""Earlier runs of a check: whether it runs again after them, or one stands for it or contradicts it."""

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from agentflow.checks.results import count_findings
from agentflow.core.check_command import format_command, split_command
from agentflow.core.errors import AgentflowError
from agentflow.core.events import EvidenceRecorded
from agentflow.core.evidence import (
    RED,
    TAIL_CHARS,
    By,
    Check,
    CheckName,
    CheckRun,
    Evidence,
    Execution,
    Fault,
    Reads,
    Side,
    TestOutcome,
    describe_end,
)
from agentflow.core.record import Record, copy_shared
from agentflow.core.regex import regex
from agentflow.core.test_ids import keep_case_ids
from agentflow.parse import decode
from agentflow.redact import list_some
from agentflow.runners.python import drop_interpreter
from agentflow.sandbox.profile import CHECKS
from agentflow.sandbox.run import NETWORK_FAILURE, Sandbox
from agentflow.settings import Patience
from agentflow.store.ledger import hash_file, list_evidence_files, read_outcomes
from agentflow.store.reading import is_task_id, load_events, read_evidence
from agentflow.store.tasks import TaskStore

_LATEST = 2
"""The number of earlier tasks that are looked at."""
_LASTING = timedelta(hours=1)
_WORD = re.compile(r"[\w./+-]+")
_PASSING = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
"""Variables that a shell sets anew for each command."""
PATIENCE: Mapping[Fault, Patience] = MappingProxyType(
    {
        Fault.TIMEOUT: Patience(times=2, seconds=30),
        Fault.FLAKY: Patience(times=3, seconds=5),
        Fault.NETWORK: Patience(times=3, seconds=10),
        Fault.RESOURCES: Patience(times=1, seconds=60),
    }
)
_CONNECTION = regex(rf"{NETWORK_FAILURE.pattern}|ECONNRESET|ETIMEDOUT|Connection reset by peer")
_RESOURCES = regex(
    r"No space left on device|ENOSPC|Cannot allocate memory|ENOMEM|[Oo]ut of memory|OutOfMemoryError"
    r"|Too many open files|EMFILE|can't start new thread|Resource temporarily unavailable"
)
_NONE: Mapping[str, TestOutcome] = MappingProxyType({})
WHOLE = ""
"""Stands for the check as a whole, among its tests."""


class Circumstances(Record):
    """Facts that speak for or against a failure, beside its own run."""

    passed: frozenset[str] = frozenset()
    """The tests that passed on the code before, or on this code under other checks."""
    hangs: bool = True
    """The check timed out on the code before as well, or there is nothing to compare with."""
    online: bool = False
    """The check reaches the network."""


def explain_retry(run: CheckRun, known: Circumstances, patience: Mapping[Fault, Patience]) -> Fault | None:
    """Return why a check runs again after its last failure; None if the result stands."""
    runs, faults = run.runs, [fault for fault, _ in run.tries]
    fault = _fault(run, known)
    if fault is None or fault not in patience or faults.count(fault) >= patience[fault].times:
        return None
    passed, red = frozenset[str]().union(*map(find_passing, runs)), list(map(_find_red, runs))
    # another run would tell nothing where each failure passed once, or came twice
    is_clear = not red[-1] - passed or (len(runs) > 1 and red[-1] == red[-2])
    return None if fault is Fault.FLAKY and is_clear else fault


def choose_wait(fault: Fault, faults: Sequence[Fault], patience: Mapping[Fault, Patience]) -> float:
    """Return the pause before the next run; the first repetition of a failing test needs none."""
    return 0 if fault is Fault.FLAKY and fault not in faults else patience[fault].seconds


def find_flaky(run: CheckRun, earlier: Mapping[str, TestOutcome] = _NONE) -> tuple[str, ...]:
    """Return the tests with mixed results, or the check's name if its tests have no names."""
    reds, passed = (frozenset[str]().union(*map(side, run.runs)) for side in (_find_red, find_passing))
    reds |= {test for test, outcome in earlier.items() if outcome in RED}
    passed |= {test for test, outcome in earlier.items() if outcome is TestOutcome.PASSED}
    return tuple(sorted(test or str(run.check.name) for test in reds & passed))


def find_passing(shown: CheckRun) -> frozenset[str]:
    """Return the tests that passed, with a mark for the whole check if all of it did."""
    return shown.list_ids(TestOutcome.PASSED) | (frozenset() if _find_red(shown) else {WHOLE})


def _find_red(shown: CheckRun) -> frozenset[str]:
    return shown.list_ids(*RED) or frozenset((WHOLE,) if shown.ended_red else ())


def _fault(shown: CheckRun, known: Circumstances) -> Fault | None:
    """Return the likely cause of a failure, if it can be something else than the code."""
    red, said = _find_red(shown), shown.execution.tail
    if shown.execution.timed_out:
        return None if known.hangs else Fault.TIMEOUT
    if red and _RESOURCES.search(said):
        return Fault.RESOURCES
    if red and known.online and _CONNECTION.search(said):
        return Fault.NETWORK
    return Fault.FLAKY if red & known.passed else None


def mark_surroundings(sandbox: Sandbox, marks: Mapping[str, str], check: Check) -> str:
    """Return a fingerprint of everything beside the tree that may affect a check's result.

    That is this machine, the programs of its command with what is installed beside them, ignored files and
    environments by their `marks`, all variables, and the boundary.
    """
    opened, places = sandbox.opened, _programs(check.command, sandbox.root)
    told = (
        (platform.node(), platform.platform(), str(sandbox.root), str(sandbox.level)),
        (CHECKS in opened.network, sorted(map(str, opened.readable)), sorted(opened.environment.items())),
        sorted(pair for pair in os.environ.items() if pair[0] not in _PASSING),
        sorted(marks.items()),
        [(str(place), (said := place.stat()).st_size, said.st_mtime_ns) for place in places],
    )
    return hashlib.sha256(repr(told).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _programs(command: str, root: Path) -> Iterator[Path]:
    words = ((part.folder, word) for part in split_command(command) for word in _WORD.findall(part.command))
    for folder, word in dict.fromkeys(words):
        found = shutil.which(root / folder / word if "/" in word else word)
        if found is not None:
            for place in dict.fromkeys((Path(found), Path(found).resolve())):
                yield place
                yield from sorted(place.parent.parent.glob("lib*/python3*/*-packages"))


class EarlierRuns:
    """The runs of this task and of the user's latest tasks before it."""

    def __init__(self, store: TaskStore, is_own: Callable[[Path], bool]) -> None:
        self._store = store
        self._is_own = is_own
        self._others: tuple[tuple[Path, Evidence], ...] | None = None

    def find(self, tree: str, code: Side, check: Check, surroundings: str, sink: Path) -> CheckRun | None:
        """Return an earlier result of a check on a tree, with its output copied to `sink`, or None.

        A run counts that was the only one on its tree and came to its end by itself; of other tasks only for
        the code from before.
        """
        for folder, evidence in (*self._mine(), *(self._older() if code is Side.BASE else ())):
            same = (tree, check.name, check.command, surroundings)
            known = (evidence.tree_before, evidence.check, evidence.command, evidence.surroundings)
            is_whole = evidence.exit_code is not None and not evidence.timed_out and not evidence.stalled
            is_sound = is_whole and not evidence.tries
            if known == same and is_sound and (run := _take_over(folder, check, evidence, sink)):
                source = evidence.taken_from or f"{folder.name}/{evidence.id}"
                return run.replace(taken_from=source, surroundings=surroundings)
        return None

    def _mine(self) -> Iterator[tuple[Path, Evidence]]:
        records = self._store.ledger.records
        chancy = {record.check for record in records if record.flaky}
        for record in records:
            if record.by is By.PROGRAM and record.check not in chancy:
                yield self._store.folder, record

    def _older(self) -> tuple[tuple[Path, Evidence], ...]:
        if self._others is None:
            mine = self._store.folder
            begun = [place for place in mine.parent.iterdir() if is_task_id(place.name) and place != mine]
            latest = sorted((place for place in begun if not place.is_symlink()), reverse=True)[:_LATEST]
            self._others = tuple(one for folder in latest for one in self._of_task(folder))
        return self._others

    def _of_task(self, folder: Path) -> tuple[tuple[Path, Evidence], ...]:
        try:
            if not self._is_own(folder):
                return ()
            told = [one.event for one in load_events(folder) if isinstance(one.event, EvidenceRecorded)]
            sums = {event.evidence: event.files for event in told}
            found = [each for each in read_evidence(folder) if each.by is By.PROGRAM and _is_recent(each)]
            chancy = {each.check for each in found if each.flaky}
            sound = (each for each in found if each.check not in chancy)
            return tuple((folder, each) for each in sound if _is_whole(folder, each, sums.get(each.id, {})))
        except (AgentflowError, OSError, ValueError):
            return ()  # a damaged task tells nothing


def _is_recent(evidence: Evidence) -> bool:
    age = datetime.now(UTC) - datetime.fromisoformat(evidence.started_at)
    return timedelta() <= age < _LASTING


def _is_whole(folder: Path, evidence: Evidence, sums: Mapping[str, str]) -> bool:
    return all(sums.get(name) == hash_file(folder / name) for name in list_evidence_files(evidence))


def _take_over(folder: Path, check: Check, evidence: Evidence, sink: Path) -> CheckRun | None:
    place = folder / evidence.reads_file if evidence.reads_file else None
    try:
        run = read_run(folder, check, evidence)
        reads = decode(Reads, place.read_bytes(), str(place)) if place else None
        shutil.copyfile(run.execution.output, sink)
    except (AgentflowError, OSError):
        return None
    if check.name is CheckName.TESTS and reads is None:
        return None
    return run.replace(evidence=None, reads=reads, ran=run.execution.replace(output=str(sink)))


def read_run(folder: Path, check: Check, evidence: Evidence) -> CheckRun:
    """Return what a run of a check showed, from the files of its record. Raises OSError."""
    output = folder / f"evidence/{evidence.id}.out"
    said = output.read_text("utf-8", "replace")
    tail = said[-TAIL_CHARS:]
    return CheckRun(
        check=check,
        ran=Execution(output=str(output), tail=tail, **copy_shared(evidence, Execution)),
        counts=evidence.tests,
        outcomes=read_outcomes(folder, evidence),
        import_errors=evidence.import_errors,
        findings=count_findings(check.name, said),
        tail=tail,
    ).bind(evidence)


def list_differing_results(evidence: Evidence, shown: CheckRun, then: Mapping[str, TestOutcome]) -> list[str]:
    """Return how the result differs from the recorded one; flaky tests are left out."""
    shown = keep_case_ids(shown, then)
    run, found, flaky = shown.execution, [], {*evidence.flaky}
    tests = sorted({*then, *shown.outcomes} - flaky)
    telling = [test for test in tests if then.get(test) is not shown.outcomes.get(test)]
    ends = [each.timed_out or each.exit_code for each in (run, evidence)]
    if ends[0] != ends[1] and not flaky:
        found.append(f"{describe_end(run)} now, {describe_end(evidence)} in the record")
    if telling and str(evidence.check) not in flaky:
        now = shown.outcomes
        names = [
            f"{test} ({now.get(test, 'not run')} now, {then.get(test, 'not run')} in the record)"
            for test in telling
        ]
        found.append(f"another result of {list_some(names)}")
    return found


def find_check(evidence: Evidence, required: Iterable[Check]) -> tuple[Check | None, str]:
    """Return the required check that a record belongs to, or None and why there is none."""
    named = [check for check in required if check.name is evidence.check]
    if not named:
        return None, f"{evidence.check} is not required by its tree"
    check = next(
        (each for each in named if drop_interpreter(each.command) == drop_interpreter(evidence.command)), None
    )
    if check is None:
        was, due = format_command(evidence.command), format_command(named[0].command)
        return None, f"the record is of `{was}`; its tree requires `{due}`"
    return check, f"not run again ({check.missing})" if check.missing else ""
