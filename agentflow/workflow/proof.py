"""Evidence once more: each command runs again on a fresh copy, and the verdict is computed anew."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentflow.checks.results import findings
from agentflow.checks.run import Shown
from agentflow.checks.wellknown import KNOWN_FAILURES
from agentflow.core.errors import CorruptState, StateError
from agentflow.core.evidence import RED, By, Check, CheckName, CheckRun, Evidence, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.store.ledger import EvidenceLedger, summary
from agentflow.store.reading import EVENTS, events, evidence_of, state_of
from agentflow.store.seals import damages
from agentflow.workflow.case import Case
from agentflow.workflow.drift import listed
from agentflow.workflow.fresh import Bench, laid_out, required_at, run_at
from agentflow.workflow.gate import judge
from agentflow.workflow.intent import preserves_behaviour, targets
from agentflow.workspace.git import Git

_STARTER = re.compile(r"(?:\b(?:uv run --no-sync|poetry run) )?(?:[^\s;{}]*/)?\bpython[\d.]* (?:-m )?")


class Examined(Record):
    """One record, one file or the verdict, looked at again."""

    subject: str
    """An evidence id, a file of the task, `tree` or `verdict`."""
    said: str
    """What it shows now."""
    differs: bool = False
    left_out: bool = False
    """It could not be looked at, and nothing of the verdict is about it alone."""


class Folder(Record):
    """A saved task, read without a look at whether it is true."""

    path: Path
    task: TaskState
    evidence: tuple[Evidence, ...]


def examine(bench: Bench, path: Path) -> Iterator[Examined]:
    """Yield what became of each record of a task, the verdict last; no model is asked."""
    try:
        happened = tuple(events(path))
        task = state_of(path, happened)
        broken = [
            Examined(subject=one.subject, said=one.problem, differs=True)
            for one in damages(path, happened, task)
        ]
        folder = Folder(path=path, task=task, evidence=() if broken else evidence_of(path))
    except CorruptState as error:
        broken = [Examined(subject=EVENTS, said=str(error), differs=True)]
    yield from broken or Examination(bench, folder).all()


class Examination:
    """A task whose files are whole, looked at command by command."""

    def __init__(self, bench: Bench, folder: Folder) -> None:
        self._bench = bench
        self._git = bench.git
        self._folder = folder
        self._recorded = EvidenceLedger(folder.path, folder.task, lambda _: None, folder.evidence)
        self._fresh: dict[str, Shown] = {}

    def all(self) -> Iterator[Examined]:
        task = self._folder.task
        here = self._git.tree()  # from now on the repository has the objects of the files as they are
        for evidence in self._folder.evidence:
            if evidence.by is By.PROGRAM:
                yield self._again(evidence)
        if task.verdict is None or not task.verdict.passed:
            return
        yield from _stale(self._git, task, here)
        yield self._verdict()

    def _again(self, evidence: Evidence) -> Examined:
        """Run the command of a record on its own tree, and compare."""
        tree = evidence.tree_before or ""
        if not _has(self._git, tree):
            is_judged = tree == self._folder.task.tree
            hint = (
                "check out the commit that has it"
                if is_judged
                else "the tree that was judged is looked at alone"
            )
            said = f"not run again: this repository has no tree {tree[:12]}; {hint}"
            return Examined(subject=evidence.id, said=said, differs=is_judged, left_out=not is_judged)
        with laid_out(self._git, tree) as place:
            sandbox = self._bench.at(place)
            required = required_at(sandbox, self._bench.said)
            check = next((one for one in required if one.name is evidence.check), None)
            problem = _unfit(check, evidence) or self._forgotten(evidence, required)
            if check is None or problem:
                return Examined(subject=evidence.id, said=problem, differs=True)
            self._fresh[evidence.id] = shown = run_at(self._bench, sandbox, check, evidence)
        found = _differences(evidence, shown, self._recorded.outcomes(evidence))
        said = "; ".join(found) if found else f"{evidence.check}: {summary(evidence)}, as recorded"
        return Examined(subject=evidence.id, said=said, differs=bool(found))

    def _forgotten(self, evidence: Evidence, required: tuple[Check, ...]) -> str:
        """Return which checks of the tree that was judged the task leaves out."""
        task = self._folder.task
        if evidence.tree_before != task.tree or task.verdict is None or not task.verdict.passed:
            return ""
        judged = {*(one.check.name for one in task.final), *(one.check for one in task.overrides)}
        left_out = [check.name for check in required if check.name not in judged]
        return f"there is no record of {listed(list(left_out))}, which this tree requires" if left_out else ""

    def _verdict(self) -> Examined:
        """Judge once more, by what the commands show now."""
        task = self._folder.task
        baseline = tuple(self._seen(one) for one in task.baseline)
        failing = frozenset[str]().union(*(run.ids(*RED) for run in baseline))
        case = Case(
            base_tree=task.base_tree or "",
            tree=task.tree or "",
            drift=(),
            baseline=baseline,
            final=tuple(self._seen(one) for one in task.final),
            targets=targets(task.task, failing),
            preserving=preserves_behaviour(task.task),
            overrides=task.overrides,
            known=frozenset(task.known_failures),
        )
        found = judge(case)
        unsaid = set(found.caveats) - set(task.verdict.caveats if task.verdict else ())
        known = set(task.known_failures) - set(self._bench.said.known)
        problems = [
            *found.reasons,
            *(f"the record leaves out the caveat {caveat}" for caveat in sorted(unsaid)),
            *(f"{test} is in no trusted {KNOWN_FAILURES}" for test in sorted(known)),
        ]
        said = "; ".join(problems) or "follows from the records"
        return Examined(subject="verdict", said=said, differs=bool(problems))

    def _seen(self, item: RequiredCheck) -> CheckRun:
        """Return what a check shows now, or showed where it could not be run again."""
        evidence = next((one for one in self._folder.evidence if one.id == item.evidence), None)
        shown = self._fresh.get(item.evidence or "")
        if evidence is None or shown:
            return CheckRun(
                check=item.check,
                evidence=evidence,
                outcomes=shown.outcomes if shown else {},
                findings=shown.findings if shown else {},
            )
        output = self._recorded.output(evidence.id)
        return CheckRun(
            check=item.check,
            evidence=evidence,
            outcomes=self._recorded.outcomes(evidence),
            findings={} if item.check.name is CheckName.TESTS else findings(output),
        )


def _has(git: Git, tree: str) -> bool:
    try:
        git.call("cat-file", "-e", f"{tree}^{{tree}}")
    except StateError:
        return False
    return True


def _unfit(check: Check | None, evidence: Evidence) -> str:
    """Return why a record is not of what its tree requires."""
    if check is None:
        return f"{evidence.check} is not required by its tree"
    if _bare(check.command) != _bare(evidence.command):
        return f"the record is of `{evidence.command}`; its tree requires `{check.command}`"
    return f"not run again ({check.missing})" if check.missing else ""


def _bare(command: str) -> str:
    """Return a command without the word that starts its Python: that is another one on each machine."""
    return _STARTER.sub("", command)


def _differences(evidence: Evidence, shown: Shown, then: Mapping[str, TestOutcome]) -> list[str]:
    """Return in words what a command shows now and did not show then."""
    run, found = shown.execution, []
    if (run.exit_code, run.timed_out) != (evidence.exit_code, evidence.timed_out):
        recorded = _end(evidence.exit_code, timed_out=evidence.timed_out)
        found.append(f"{_end(run.exit_code, timed_out=run.timed_out)} now, {recorded} in the record")
    tests = sorted({*then, *shown.outcomes})
    changed = [test for test in tests if then.get(test) is not shown.outcomes.get(test)]
    if changed:
        found.append(f"another result of {listed([_told(test, shown.outcomes, then) for test in changed])}")
    return found


def _told(test: str, now: Mapping[str, TestOutcome], then: Mapping[str, TestOutcome]) -> str:
    return f"{test} ({now.get(test, 'not run')} now, {then.get(test, 'not run')} in the record)"


def _end(exit_code: int | None, *, timed_out: bool) -> str:
    if timed_out:
        return "timed out"
    return "killed" if exit_code is None else f"exit {exit_code}"


def _stale(git: Git, task: TaskState, here: str) -> Iterator[Examined]:
    """Yield that the files here are no longer those that were judged, and which they are."""
    if task.tree is None or task.tree == here or not _has(git, task.tree):
        return
    paths = [change.path for change in git.changes(task.tree, here)]
    yield Examined(
        subject="tree", said=f"the files here are not those that were judged: {listed(paths)}", differs=True
    )
