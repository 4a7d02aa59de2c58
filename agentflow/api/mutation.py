"""`verify --mutants`: the changed lines of a person's own diff that no test would notice."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agentflow.api.trust import load_project, load_well_known
from agentflow.checks.repository import Repository
from agentflow.core.errors import ConfigError, StateError
from agentflow.core.evidence import RED, Check, CheckName, Surface, TestOutcome, describe_end
from agentflow.core.languages import is_source
from agentflow.core.record import Record
from agentflow.redact import list_some
from agentflow.sandbox.run import Sandbox
from agentflow.settings import apply_project, load_settings
from agentflow.view.text import Line, Style, line, span
from agentflow.workspace.git import Git

if TYPE_CHECKING:
    from agentflow.mutants.operators import Mutant
    from agentflow.mutants.trial import MutationResult, Outcome, TriedMutant
    from agentflow.verdict.runner import Place
    from agentflow.workspace.mixed_tree import ChangedTexts

_TEXT_BYTES = 1_000_000
_SECONDS = 120.0
"""The least time for all mutants together; a slow suite gives as much again as it takes ten times."""
_PATIENCE = 5
_LEAST_LIMIT = 10.0
_HINT = "Run `agentflow verify` to see them; mutants need tests that pass."


class _Bench(Record):
    """A copy of the changed tree in which one mutant after the other is tried."""

    place: "Place"
    check: Check
    passing: frozenset[str]
    """The tests that passed in each of two runs without a mutant."""
    texts: dict[str, str]

    def attempt_all(self, mutants: Iterable["Mutant"], seconds: float) -> tuple["TriedMutant", ...]:
        """Return the outcome of each: those of Python in forks where that can be, others one run each."""
        from agentflow.mutants.trial import MutantOrder, order_mutants, try_mutants

        ordered = order_mutants(mutants)
        forked = tuple(each for each in ordered if each.path.endswith(".py"))
        order = MutantOrder(
            check=self.check, passing=self.passing, first=frozenset(), mutants=forked, seconds=seconds
        )
        tried = self.place.try_forked(order) if forked else None
        rest = ordered if tried is None else [each for each in ordered if each not in forked]
        return (*(tried or ()), *try_mutants(rest, self.attempt, seconds))

    def attempt(self, mutant: "Mutant") -> "Outcome":
        from agentflow.mutants.trial import Outcome

        assert self.place.stage is not None
        file = self.place.stage.view.place / mutant.path
        file.write_text(mutant.apply(self.texts[mutant.path]), "utf-8")
        os.utime(
            file, (mutant.start, mutant.start + len(mutant.after))
        )  # compiled code is kept by time and size
        shown, _ = self.place.try_elsewhere(self.check)
        self.place.stage.restore(lambda _: False)
        if shown.execution.timed_out:
            return Outcome.TIMED_OUT
        if self.passing:
            is_red = not self.passing.isdisjoint(shown.list_ids(*RED))
            is_lost = not is_red and self.passing.isdisjoint(shown.list_ids(TestOutcome.PASSED))
        else:
            is_red, is_lost = shown.execution.exit_code != 0, False
        return Outcome.INVALID if is_lost else Outcome.KILLED if is_red else Outcome.SURVIVED


def find_mutation(
    sandbox: Sandbox, git: Git, revisions: str, tell: Callable[[str], None]
) -> "MutationResult":
    """Return what tests make of the mutants of a change: of `A..B`, or of the files here since a revision.

    Raises ConfigError for a revision that is none, for tests that cannot run, and for tests that fail.
    """
    from agentflow.mutants.operators import list_mutants, list_unreadable
    from agentflow.mutants.trial import MutationResult
    from agentflow.verdict.reverify import Copies
    from agentflow.workspace.mixed_tree import read_changed_texts

    globs = apply_project(load_settings(os.environ), load_project(git.root)).surface
    surface = Surface(added=globs.add, removed=globs.remove)
    copies = Copies(git=git, sandbox=sandbox, said=load_well_known(git.root), surface=surface)
    base, tree = _read_trees(git, revisions)
    changes = read_changed_texts(git, base, tree, _TEXT_BYTES)
    with copies.open(tree, git.list_ignored()) as place:
        checks = copies.require(place, tree, ())
        tests = next((check for check in checks if check.name is CheckName.TESTS), None)
        if tests is None or tests.missing:
            why = tests.missing if tests else "no tests found"
            raise ConfigError(f"the tests cannot run here: {why}")
        files = git.list_paths(tree)
        repository = Repository(sandbox=place.sandbox, files=files, known=frozenset(files))
        product = _list_product(repository, checks, changes, surface)
        mutants, unread = list["Mutant"](), list[str]()
        for change in product:
            lines = _list_new_lines(change)
            found = list_mutants(change.path, change.after, lines)
            mutants += found or ()
            unread += [change.path] if found is None else []
            unread += [f"{change.path}:{line}" for line in list_unreadable(change.path, change.after, lines)]
        if not mutants:
            return MutationResult(tried=(), unread=tuple(unread))
        bench, seconds = _prepare(place, tests, {each.path: each.after for each in product})
        tell(f"{len(mutants)} mutants of {list_some([each.path for each in product])}")
        tried = bench.attempt_all(mutants, max(_SECONDS, 10 * seconds))
    return MutationResult(tried=tried, unread=tuple(unread))


def _read_trees(git: Git, revisions: str) -> tuple[str, str]:
    """Return the trees of both sides; the files as they are, where no second revision is named."""
    before, mark, after = revisions.partition("..")
    return _find_tree(git, before or "HEAD"), _find_tree(git, after or "HEAD") if mark else git.write_tree()


def _find_tree(git: Git, revision: str) -> str:
    try:
        return git.call("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}").decode().strip()
    except StateError:
        hint = "Name a commit, or two as main..HEAD."
        raise ConfigError(f"no such revision: {revision}", hint=hint) from None


def _list_product(
    repository: Repository, checks: Iterable[Check], changes: Iterable["ChangedTexts"], trusted: Surface
) -> list["ChangedTexts"]:
    """Return the changed files that are neither checks nor documents nor gone."""
    from agentflow.verdict.surface import find_kind, find_surface, is_document_path

    surface = find_surface(repository, checks, trusted.added, trusted.removed)
    kept = (each for each in changes if each.after and each.is_whole and not is_document_path(each.path))
    return [each for each in kept if is_source(each.path) and find_kind(each.path, surface) is None]


def _list_new_lines(change: "ChangedTexts") -> frozenset[int]:
    """Return the lines, from 1, that are new or differ."""
    from agentflow.workspace.mixed_tree import find_differences

    found = find_differences(change.before.splitlines(), change.after.splitlines())
    return frozenset(line + 1 for *_, start, end in found for line in range(start, end))


def _prepare(place: "Place", tests: Check, texts: dict[str, str]) -> tuple[_Bench, float]:
    """Return the bench, and the seconds of a run, after two runs without a mutant.

    Raises ConfigError where none passes: what fails anyhow notices nothing.
    """
    runs = [place.try_elsewhere(tests)[0] for _ in range(2)]
    passing = runs[0].list_ids(TestOutcome.PASSED) & runs[1].list_ids(TestOutcome.PASSED)
    if not passing and any(run.execution.exit_code != 0 for run in runs):
        raise ConfigError(f"no test passes here: {describe_end(runs[0].execution)}", hint=_HINT)
    seconds = max(run.execution.seconds for run in runs)
    limit = min(tests.timeout, max(_LEAST_LIMIT, _PATIENCE * seconds))
    bench = _Bench(place=place, check=tests.replace(timeout=limit), passing=passing, texts=texts)
    return bench, seconds


def describe_mutation(found: "MutationResult") -> tuple[Line, ...]:
    """Return the survivors, one line each, and a last line with the numbers."""
    from agentflow.mutants.operators import Grade
    from agentflow.mutants.trial import Outcome

    counts = {outcome: len(found.select(outcome)) for outcome in Outcome}
    survived = len(found.unnoticed)
    able = counts[Outcome.KILLED] + survived
    rows = [
        line(
            span("! " if each.grade is Grade.STRONG else "· ", Style.WARN),
            f"{each.describe()}: no test notices",
            hang=4,
        )
        for each in found.survivors
    ]
    rows += [line(span(f"not tried: {place} cannot be read", Style.DIM)) for place in found.unread]
    if not found.tried:
        return (*rows, line("No changed code to try: nothing but tests, documents or removed lines differs."))
    left = counts[Outcome.NOT_TRIED] + counts[Outcome.TIMED_OUT]
    late = f"; {left} of {len(found.tried)} not tried for want of time" if left else ""
    if survived:
        said = f"{survived} of {able} mutants survive{late}. "
        said += "Add a test that fails on each, or simplify the code."
        return (*rows, line(span(said, Style.WARN)))
    return (*rows, line(span(f"{able} of {able} mutants killed{late}", Style.GOOD)))


def to_values(found: "MutationResult") -> dict[str, Any]:
    """Return the result for programs, as `mutants` of a task's `--json` result."""
    from agentflow.mutants.trial import Outcome

    survived = [
        {
            "path": each.path,
            "line": each.line,
            "before": each.before,
            "after": each.after,
            "operator": each.operator,
            "grade": each.grade,
        }
        for each in found.unnoticed
    ]
    return {
        "tried": len(found.select(Outcome.KILLED)) + len(survived),
        "killed": len(found.select(Outcome.KILLED)),
        "not_tried": len(found.select(Outcome.NOT_TRIED)) + len(found.select(Outcome.TIMED_OUT)),
        "survived": survived,
        "unread": list(found.unread),
    }
