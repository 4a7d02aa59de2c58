"""What each rule of the verdict is for: the attacks that it alone stops, and the right changes it costs.

A rule is one kind of finding, or a caveat that no finding explains. The tables are played once: what a
verdict rests on stands in the task's state, so that no rule has to be switched off. A change that fails
outright never meets the rules about proof; where such a rule is alone, others might have stopped it too.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import agentflow
from agentflow.core.finding import FindingKind
from agentflow.core.record import Record, encode
from agentflow.core.verdict import Caveat, Verdict
from agentflow.store.reading import load_state
from benchmarks.report import Row, alone
from tests.soak.attacks.attack import Attack
from tests.soak.attacks.python import PYTHON
from tests.soak.attacks.run import attempt
from tests.soak.honest.attempting import Played
from tests.soak.honest.entries import Entry
from tests.soak.honest.table import ENTRIES
from tests.support.attempts import Attempt
from tests.support.honest import HONEST, Honest
from tests.support.repo import Repo
from tests.support.tables import Case, Trial, table
from tests.support.tampering import BASE, TAMPERING, Change

_GOAL = 5
_JUDGE = Path(agentflow.__file__).with_name("verdict")
TENTHS = 10


class Ended(Record):
    """A row of the tables as it was played."""

    name: str
    is_attack: bool
    rules: tuple[str, ...]
    """What keeps its change from ending 0."""


_Play = tuple[str, bool, Callable[[Path], Repo]]
"""A row's name, whether it is an attack, and what plays it in a folder."""


def rows(tenths: int, kept: Path | None = None) -> Iterator[Row]:
    """Yield how many attacks and right changes end 0; the table goes to stderr, each row to a file."""
    every = sorted(enumerate(_list_plays()), key=lambda pair: pair[0] * 7 % TENTHS)
    ends: list[Ended] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry in pool.map(_play, [play for index, play in every if index * 7 % TENTHS < tenths]):
            ends.append(entry)
            if kept is not None:
                with kept.open("ab") as file:
                    file.write(encode(entry) + b"\n")
    print(f"\n{to_table(ends)}\n", file=sys.stderr)
    for name, is_attack in (("attacks", True), ("right changes", False)):
        passed = [not entry.rules for entry in ends if entry.is_attack is is_attack]
        if passed:
            yield alone(_GOAL, f"{len(passed)} {name}, end 0", [sum(passed)])


def to_table(entries: Sequence[Ended]) -> str:
    """Return a line a rule: the attacks it stops, stops alone, the right changes it costs, where it is made.

    The rules that no row meets stand at the end.
    """
    attacks = [entry.rules for entry in entries if entry.is_attack]
    stopped = Counter(rule for rules in attacks for rule in rules)
    single = Counter(rules[0] for rules in attacks if len(rules) == 1)
    costs = Counter(rule for entry in entries if not entry.is_attack for rule in entry.rules)
    sources = {path.relative_to(_JUDGE): path.read_text("utf-8") for path in sorted(_JUDGE.rglob("*.py"))}
    lines = [("rule", "stops", "alone", "costs", "made in")]
    for rule in sorted(
        {*FindingKind, *Caveat}, key=lambda each: (-single[each], -stopped[each], -costs[each])
    ):
        name = f"{type(rule).__name__}.{rule.name}"
        files = ", ".join(f"{path} ({text.count(chr(10))})" for path, text in sources.items() if name in text)
        if files:
            lines.append((str(rule), str(stopped[rule]), str(single[rule]), str(costs[rule]), files))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _play(play: _Play) -> Ended:
    name, is_attack, run = play
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        verdict = load_state(run(Path(folder)).folder).verdict
    return Ended(
        name=name, is_attack=is_attack, rules=("no verdict",) if verdict is None else _list_rules(verdict)
    )


def _list_rules(verdict: Verdict) -> tuple[str, ...]:
    """Return all that would have to be away for a change to end 0, each kind once."""
    if not (verdict.passed or verdict.to_approve):
        return tuple(dict.fromkeys(finding.kind for finding in verdict.reasons))
    found = (*(() if verdict.approval else verdict.weakened), *verdict.unproved)
    caveats = (said.partition(":")[0] for said in verdict.caveats)
    others = (each for each in caveats if each != Caveat.UNPROVED)  # its findings say more
    return tuple(dict.fromkeys((*(each.kind for each in found), *others)))


def _list_plays() -> Iterator[_Play]:
    yield from ((attack.name, True, partial(_play_attack, attack)) for attack in PYTHON)
    yield from ((change.name, True, partial(_play_change, change)) for change in TAMPERING)
    yield from ((change.name, False, partial(_play_change, change)) for change in HONEST)
    yield from ((entry.name, False, partial(_play_entry, entry)) for entry in ENTRIES)
    for kind in ("attacks", "honest"):
        cases = (case for case in table(kind) if not case.missing)
        yield from ((case.id, kind == "attacks", partial(_play_case, case)) for case in cases)


def _play_attack(attack: Attack, folder: Path) -> Repo:
    return attempt(attack, folder)[0].repo


def _play_change(change: Change | Honest, folder: Path) -> Repo:
    files, command = change.base or BASE, ""
    if isinstance(change, Change):
        files, command = {**BASE, **change.base}, change.command
    tried = Attempt(folder, files)
    tried.run(change.task, change.files, "--max-iterations", "1", command=command)
    return tried.repo


def _play_entry(entry: Entry, folder: Path) -> Repo:
    return Played(entry, folder).attempt.repo


def _play_case(case: Case, folder: Path) -> Repo:
    trial = Trial(folder, case)
    trial.run()
    return trial.repo
