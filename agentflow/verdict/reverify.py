"""Re-verification: a tree laid out in a folder, each recorded command run again there, and the verdict."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

from agentflow.checks.detect import detect
from agentflow.checks.python import choose_interpreter
from agentflow.checks.repository import KNOWN_FAILURES, Repository, WellKnown, apply_own_commands
from agentflow.checks.run import CheckWatch
from agentflow.checks.surroundings import Manner
from agentflow.core.errors import CorruptState
from agentflow.core.evidence import (
    By,
    Check,
    CheckName,
    CheckRun,
    Evidence,
    Reads,
    Side,
    Surface,
    find_longest,
    summarize_evidence,
)
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, Status, TaskState
from agentflow.core.test_ids import keep_case_ids
from agentflow.core.verdict import MutantEnd, MutantResult, ProbeResult, Verdict
from agentflow.redact import list_some
from agentflow.runners.fitting import fit_command
from agentflow.runners.selection import narrow, read_tests
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.profile import SHARED
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.store.bundle import PATCH, find_wrong_patch
from agentflow.store.ledger import EvidenceLedger, find_damages
from agentflow.store.reading import EVENTS, fold_state, load_events, read_evidence
from agentflow.verdict.case import Case, find_hook_files, is_written_by_hooks, list_misused
from agentflow.verdict.diff.inspection import NO_INSPECTION, Inspection, inspect_change, make_approval_id
from agentflow.verdict.earlier_runs import find_check, list_differing_results, read_run
from agentflow.verdict.ending import conclude
from agentflow.verdict.gather import PlanProbes, add_inspection, build_case
from agentflow.verdict.judge import judge
from agentflow.verdict.mixed_sides import lay_new_checks, lay_original_checks
from agentflow.verdict.mutation import merge_results, plan_mutants, try_mutants
from agentflow.verdict.paths import join_surfaces, observe_base
from agentflow.verdict.probes.plan import plan_canaries, plan_probes
from agentflow.verdict.probes.probe import ProbeContext
from agentflow.verdict.projects import find_added_projects, list_tests
from agentflow.verdict.runner import Place
from agentflow.verdict.surface import find_surface, is_kept_original
from agentflow.wording import describe_all
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import list_unchanged, mark_ignored
from agentflow.workspace.path_guard import PathGuard
from agentflow.workspace.working_copy import find_import_paths, lay_out, share_environments, to_pythonpath

_VERIFIED = (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT)


class Copies(Record):
    """Copies of a repository's trees, each in a folder of its own."""

    git: Git
    sandbox: Sandbox
    said: WellKnown
    """The words of the repository's trusted files on its tests."""
    surface: Surface = Surface()
    """The files that settings which are trusted here add to the checks and take out of them."""

    @contextmanager
    def open(self, tree: str, seen: tuple[str, ...]) -> Iterator[Place]:
        """Yield a copy, which sees some ignored files and the repository's own environments."""
        with lay_out(self.git, tree, seen) as stage:
            folder = stage.view.place
            sandbox = share_environments(self.sandbox.replace(root=folder), self.git.root, seen)
            yield Place(sandbox=sandbox, imports=_imports(self, folder), stage=stage)

    def require(self, place: Place, tree: str, added: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the required checks of a tree in its copy, with those of added projects."""
        return apply_own_commands(detect(place.sandbox, self.git.list_paths(tree), (), added), self.said)


def _imports(copies: Copies, place: Path) -> str:
    root = copies.git.root
    if not any(is_python_environment(root / name) for name in SHARED):
        return ""
    files = PathGuard(root).list_files()
    words = choose_interpreter(Repository(sandbox=copies.sandbox, files=files, known=frozenset(files))).words
    return to_pythonpath(place, find_import_paths(copies.sandbox, words[0], {})) if len(words) == 1 else ""


class Examined(Record):
    """The result for one record, one file or the verdict."""

    subject: str
    """An evidence id, a file of the task, `tree` or `verdict`."""
    said: str
    """The result of now."""
    differs: bool = False
    left_out: bool = False
    """The record could not be looked at, and nothing of the verdict is about it alone."""


def reverify(copies: Copies, path: Path) -> Iterator[Examined]:
    """Yield the result for each record of a task, the verdict last; no model is asked."""
    try:
        happened = tuple(load_events(path))
        task = fold_state(path, happened)
        broken = [
            Examined(subject=one.subject, said=one.problem, differs=True)
            for one in find_damages(path, happened, task)
        ]
        wrong = None if broken else find_wrong_patch(copies.git, path, task)
        broken += [Examined(subject=PATCH, said=wrong, differs=True)] if wrong else []
        evidence = () if broken else read_evidence(path)
    except CorruptState as error:
        broken = [Examined(subject=EVENTS, said=str(error), differs=True)]
    yield from (
        broken or Examination(copies, EvidenceLedger(path, task, lambda _: None, evidence), task, path).all()
    )


class Examination:
    """A task with undamaged files, re-verified command by command."""

    def __init__(self, copies: Copies, recorded: EvidenceLedger, task: TaskState, folder: Path) -> None:
        self._copies = copies
        self._git = copies.git
        self._task = task
        self._recorded = recorded
        self._folder = folder
        self._evidence = {one.id: one for one in recorded.records}
        trees = (task.base_tree or "", task.tree or "")
        self._trees = trees if all(map(self._git.has_tree, trees)) else None
        """The trees from before the task and of its end, where this repository has both."""
        self._required: dict[str, tuple[Check, ...]] = {}
        self._fresh: dict[str, CheckRun] = {}
        self._seen: dict[str, Examined] = {}
        """The results of the runs on the code from before that tell what the tests read."""
        self._shared: tuple[str, ...] = ()
        """The ignored files that are as they were before the task."""
        self._mixed: dict[tuple[Side, Side], str] = {}
        """The tree of each surface and code."""

    def all(self) -> Iterator[Examined]:
        task = self._task
        here = self._git.write_tree()  # from now on the repository has the objects of the files as they are
        ignored = self._git.list_ignored()
        self._shared = list_unchanged(ignored, task.ignored, mark_ignored(self._git, ignored))
        self._task, miscounted = self._recount()
        self._mixed = self._mix_trees()
        for evidence in self._evidence.values():
            if evidence.by is By.PROGRAM:
                yield self._misbound(evidence) or self._seen.get(evidence.id) or self._again(evidence)
        if task.verdict is not None and task.verdict.passed:
            yield from self._stale(here)
            yield self._verdict(task.verdict, (*miscounted, *self._list_unfounded()))
        elif task.status in _VERIFIED:
            said = f"{task.status} without a verdict that passed"
            yield Examined(subject="verdict", said=said, differs=True)

    def _mix_trees(self) -> dict[tuple[Side, Side], str]:
        if self._trees is None:
            return {}
        base, tree = self._trees
        return {
            (Side.BASE, Side.BASE): base,
            (Side.BASE, Side.FINAL): lay_original_checks(self._git, self._task),
            (Side.FINAL, Side.BASE): lay_new_checks(self._git, self._task),
            (Side.FINAL, Side.FINAL): tree,
        }

    def _misbound(self, evidence: Evidence) -> Examined | None:
        task = self._task
        judged = {item.evidence for item in (*task.baseline, *task.final, *task.held, *task.fresh)}
        tree = self._mixed.get((evidence.surface, evidence.code))
        if evidence.id not in judged or tree in (None, evidence.tree_before):
            return None
        said = f"its tree is not the {evidence.code} code under the {evidence.surface} checks"
        return Examined(subject=evidence.id, said=said, differs=True)

    def _again(self, evidence: Evidence) -> Examined:
        tree = evidence.tree_before or ""
        if not self._git.has_tree(tree):
            return self._absent(evidence, tree)
        with self._copies.open(tree, self._shared) as place:
            required = self._require(place, tree)
            check, problem = find_check(evidence, self._fit(evidence, required))
            if check is None or problem:
                return Examined(subject=evidence.id, said=problem, differs=True)
            self._fresh[evidence.id] = shown = _run(place, check, evidence, self._find_longest(evidence))
        found = list_differing_results(evidence, shown, self._recorded.read_outcomes(evidence))
        said = "; ".join(found) if found else f"{evidence.check}: {summarize_evidence(evidence)}, as recorded"
        return Examined(subject=evidence.id, said=said, differs=bool(found))

    def _find_longest(self, evidence: Evidence) -> float:
        """Return how long a test may be busy, as in the recorded run; 0 where none was ended there."""
        ended = (self._evidence.get(item.evidence or "") for item in self._task.final)
        runs = [] if is_observed(evidence) else [run for run in ended if run and run.check is evidence.check]
        return find_longest(sum(run.seconds for run in runs)) if evidence.stalled else 0

    def _fit(self, evidence: Evidence, required: tuple[Check, ...]) -> tuple[Check, ...]:
        """Return the checks that a record may belong to; only proofs may run a part of the tests."""
        whole = {one.evidence for one in (*self._task.baseline, *self._task.final, *self._task.held)}
        tests = read_tests(evidence.command) if evidence.id not in whole else ()
        before = self._required.get(self._task.base_tree or "", ())
        required = (*required, *before, *self._list_fitted(before, (*required, *self._require_now())))
        return (*required, *(narrow(check, tests) for check in required if tests))

    def _list_fitted(self, before: Iterable[Check], now: Iterable[Check]) -> Iterator[Check]:
        """Yield the checks from before the task as they are once projects are gone or have moved."""
        paths, named = tuple(map(self._git.list_paths, self._trees or ())), tuple(now)
        tests = list_tests(self._task.surface, paths[0]) if paths else ()
        for check in before if paths else ():
            for other in ("", *(each.command for each in named if each.name is check.name)):
                if command := fit_command(check.command, paths[1], other, tests):
                    yield check.replace(command=command)

    def _absent(self, evidence: Evidence, tree: str) -> Examined:
        is_judged = tree == self._task.tree
        hint = "check out the commit that has it" if is_judged else "only the judged tree counts"
        said = f"not run again: this repository has no tree {tree[:12]}; {hint}"
        return Examined(subject=evidence.id, said=said, differs=is_judged, left_out=not is_judged)

    def _require(self, place: Place, tree: str) -> tuple[Check, ...]:
        if tree not in self._required:
            before, now = (self._git.list_paths(each) for each in ((self._trees or (tree,))[0], tree))
            added = find_added_projects(self._task.surface, before, now)
            self._required[tree] = self._copies.require(place, tree, added)
        return self._required[tree]

    def _require_now(self) -> tuple[Check, ...]:
        tree = self._task.tree or ""
        if tree not in self._required and self._git.has_tree(tree):
            with self._copies.open(tree, self._shared) as place:
                self._require(place, tree)
        return self._required.get(tree, ())

    def _recount(self) -> tuple[TaskState, tuple[str, ...]]:
        """Return the task with what counts as checks here, too, and what its record wrongly calls product."""
        task, trusted = self._task, self._copies.surface
        if self._trees is None:
            return task, ()
        base, tree = self._trees
        files, told = self._git.list_paths(base), task.surface
        with self._copies.open(base, self._shared) as place:
            repository = Repository(sandbox=place.sandbox, files=files, known=frozenset(files))
            found = find_surface(repository, self._require(place, base), trusted.added, trusted.removed)
        before = [self._evidence[item.evidence] for item in task.baseline if item.evidence in self._evidence]
        self._seen = {one.id: self._again(one) for one in before if is_observed(one)}
        reads = [shown.reads for shown in self._fresh.values() if shown.reads is not None]
        runs = tuple(map(self._recall, task.baseline))
        found = observe_base(self._git, task.replace(surface=found), reduce(Reads.join, reads, Reads()), runs)
        surface = join_surfaces(told, found)
        changed = (change.path for change in self._git.list_changes(base, tree))
        paths = [
            path for path in changed if is_kept_original(surface, path) and not is_kept_original(told, path)
        ]
        said = f"{list_some(paths)} is a check by what was found here, and product in the record"
        return task.replace(surface=surface), (said,) if paths else ()

    def _list_unfounded(self) -> Iterator[str]:
        """Yield the checks that have no record of their own where the verdict needs one."""
        task, tree = self._task, self._task.tree or ""
        if not self._git.has_tree(tree):
            yield f"this repository has no tree {tree[:12]}; check out the commit that has it"
            return
        for each in list_misused(task, self._evidence):
            yield f"{each} is not the program's run of what it stands for"
        required = self._require_now()
        judged = {*(one.check.name for one in task.final), *(one.check for one in task.options.overrides)}
        if left_out := {check.name for check in required} - judged:
            yield f"there is no record of {list_some(sorted(left_out))}, which this tree requires"
        yield from self._list_unmatched()

    def _list_unmatched(self) -> Iterator[str]:
        """Yield the checks that ran after the task, and not before it or not as they were before it."""
        task = self._task
        before = self._required.get(task.base_tree or "", ())
        owed = self._list_ran(task.final) & {check.name for check in before}
        if left_out := owed - self._list_ran(task.baseline):
            yield f"there is no record of {list_some(sorted(left_out))} before the task"
        is_changed = bool(self._mixed) and self._mixed[Side.BASE, Side.FINAL] != task.tree
        left = {each.name for each in self._list_fitted(before, ())} & owed
        if is_changed and (left_out := left - self._list_ran(task.held)):
            yield f"there is no record of {list_some(sorted(left_out))} as it was before the task"

    def _list_ran(self, items: tuple[RequiredCheck, ...]) -> set[CheckName]:
        able = {item.check.name for item in items if item.evidence in self._evidence}
        return able - {item.check.name for item in items if item.evidence not in self._evidence}

    def _stale(self, here: str) -> Iterator[Examined]:
        tree, apart = self._task.tree, find_hook_files(self._task)
        if tree is None or tree == here or not self._git.has_tree(tree):
            return
        paths = [
            each.path
            for each in self._git.list_changes(tree, here)
            if each.path not in apart or not is_written_by_hooks(each.path)
        ]
        if paths:
            said = f"the files here are not those that were judged: {list_some(paths)}"
            yield Examined(subject="tree", said=said, differs=True)

    def _verdict(self, recorded: Verdict, problems: Iterable[str]) -> Examined:
        task = self._task
        found = judge(self._case(recorded))
        ending = conclude(task)
        unsaid = sorted({*found.caveats} - {*recorded.caveats})
        unnamed = [each for each in found.weakened if not each.is_among(recorded.weakened)]
        unapproved = found.approval is not None and found.approval != recorded.approval
        unlisted = sorted({*task.options.known_failures} - {*self._copies.said.known})
        problems = [
            *problems,
            *describe_all(found.reasons),
            *(f"the record leaves out the caveat {caveat}" for caveat in unsaid),
            *(f"the record leaves out that {line}" for line in describe_all(unnamed)),
            *(["the record leaves out an approval of changed checks"] if unapproved else []),
            *(f"{test} is in no trusted {KNOWN_FAILURES}" for test in unlisted),
        ]
        if task.status in _VERIFIED and task.status is not ending.status:
            problems.append(f"{task.status} is not what follows: {ending.reason}")
        said = "; ".join(problems) or "follows from the records"
        return Examined(subject="verdict", said=said, differs=bool(problems))

    def _case(self, recorded: Verdict) -> Case:
        """Gather the case again from the new results.

        What was installed, what could not run and which files are hooks' is as recorded.
        """
        task, trees = self._task, self._trees
        seen = inspect_change(self._git, task) if trees else NO_INSPECTION
        case = build_case(self._git, task, trees, lambda items: tuple(map(self._recall, items)), seen)
        case = case.replace(
            approval=task.waiting.answers.get(make_approval_id(seen, recorded.weakened)) if trees else None
        )
        case = case.replace(probes=self._probes(case, seen))
        mutants = tuple(merge_results(self._mutants(case, seen)))
        case = add_inspection(case.replace(mutants=mutants), seen)
        return case.replace(weakened=tuple(dict.fromkeys((*recorded.weakened, *case.weakened))))

    def _probes(self, case: Case, seen: Inspection) -> tuple[ProbeResult, ...] | None:
        if self._task.probes is None or self._trees is None:
            return self._task.probes
        probing = ProbeContext(git=self._git, task=self._task, case=case, inspection=seen)
        plans = (plan_canaries, plan_probes)
        return tuple(one for plan in plans for one in _rerun(self._copies, probing, plan, self._shared))

    def _mutants(self, case: Case, seen: Inspection) -> Iterator[MutantResult]:
        """Yield the outcome of each mutant, tried again; what was late, then or now, stands as recorded."""
        recorded = {_identify(each): each for each in self._task.mutants}
        if not recorded or self._trees is None:
            return
        probing = ProbeContext(git=self._git, task=self._task, case=case, inspection=seen)
        for plan in plan_mutants(probing, case.probes or ()):
            with self._copies.open(plan.tree, self._shared) as place:
                end = time.monotonic() + 3 * plan.seconds
                for each in try_mutants(place, plan, plan.mutants, end):
                    known = recorded.get(_identify(each), each)
                    late = MutantEnd.NOT_TRIED in (known.outcome, each.outcome)
                    yield known if late else each

    def _recall(self, item: RequiredCheck) -> CheckRun:
        evidence = self._evidence.get(item.evidence or "")
        if evidence is None:
            return CheckRun(check=item.check)
        fresh = self._fresh.get(evidence.id)
        if fresh is None:
            return read_run(self._folder, item.check, evidence)
        fresh = keep_case_ids(fresh, self._recorded.read_outcomes(evidence))
        return fresh.replace(check=item.check).bind(evidence)


def _identify(mutant: MutantResult) -> tuple[object, ...]:
    return mutant.path, mutant.code, mutant.line, mutant.operator, mutant.before, mutant.after


def _run(place: Place, check: Check, evidence: Evidence, longest: float) -> CheckRun:
    """Run a check as recorded, with three times the recorded time."""
    with make_scratch_folder() as scratch:
        patient = check.replace(timeout=max(check.timeout, 3 * evidence.seconds))
        manner = Manner.OBSERVED if is_observed(evidence) else Manner.PLAIN
        return place.run(patient, scratch / "output", manner, CheckWatch(longest=longest))


def is_observed(evidence: Evidence) -> bool:
    """Return whether a run shows which files the tests of the code from before read."""
    is_before = (evidence.surface, evidence.code) == (Side.BASE, Side.BASE)
    return evidence.by is By.PROGRAM and evidence.check is CheckName.TESTS and is_before


def _rerun(
    copies: Copies, probing: ProbeContext, plan: PlanProbes, seen: tuple[str, ...]
) -> tuple[ProbeResult, ...]:
    known: tuple[ProbeResult, ...] = ()
    while due := plan(probing, known):
        for probe in due:
            with copies.open(probe.lay(copies.git), seen) as place:
                known += (probe.run(place),)
    return known
