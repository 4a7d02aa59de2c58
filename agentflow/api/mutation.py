"""`verify --mutants`: the changed lines of a person's own diff that no test would notice."""

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agentflow.api.trust import load_project, load_well_known
from agentflow.checks.repository import Repository
from agentflow.core.errors import ConfigError, StateError
from agentflow.core.evidence import Check, CheckName, Surface, TestOutcome, describe_end
from agentflow.core.languages import is_source
from agentflow.core.record import Record
from agentflow.core.verdict import MutantResult, count_mutants, pick_survivors
from agentflow.redact import list_some
from agentflow.sandbox.run import Sandbox
from agentflow.settings import apply_project, load_settings
from agentflow.view.text import Line, Style, line, span
from agentflow.workspace.git import Git

if TYPE_CHECKING:
    from agentflow.mutants.operators import Mutant
    from agentflow.verdict.mutation import MutationPlan
    from agentflow.verdict.runner import Place
    from agentflow.workspace.mixed_tree import ChangedTexts

_TEXT_BYTES = 1_000_000
_SECONDS = 120.0
"""The least time for all mutants together; a slow suite gives as much again as it takes ten times."""
_HINT = "Run `agentflow verify` to see them; mutants need tests that pass."


class DiffMutants(Record):
    """The mutants of a diff, each with what tests make of it."""

    mutants: tuple[MutantResult, ...]
    unread: tuple[str, ...] = ()
    """Changed places that no grammar reads."""

    @property
    def is_open(self) -> bool:
        """True if a strong mutant survived, or nothing of the change could be read."""
        is_strong = any(each.is_strong and each.is_unnoticed for each in self.mutants)
        return is_strong or (bool(self.unread) and not self.mutants)


def find_mutation(sandbox: Sandbox, git: Git, revisions: str, tell: Callable[[str], None]) -> DiffMutants:
    """Return what tests make of the mutants of a change: of `A..B`, or of the files here since a revision.

    Raises ConfigError for a revision that is none, for tests that cannot run, and for tests that fail.
    """
    from agentflow.mutants.operators import list_mutants, list_unreadable
    from agentflow.verdict.mutation import try_mutants
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
            return DiffMutants(mutants=(), unread=tuple(unread))
        plan = _prepare(place, tests, {each.path: each.after for each in product}, mutants)
        tell(f"{len(plan.mutants)} mutants of {list_some([each.path for each in product])}")
        tried = tuple(try_mutants(place, plan, plan.mutants, time.monotonic() + plan.seconds))
    return DiffMutants(mutants=tried, unread=tuple(unread))


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


def _prepare(place: "Place", tests: Check, texts: dict[str, str], mutants: list["Mutant"]) -> "MutationPlan":
    """Return what to try, after two runs without a mutant.

    Raises ConfigError where none passes: what fails anyhow notices nothing.
    """
    from agentflow.verdict.mutation import MutationPlan

    runs = [place.try_elsewhere(tests)[0] for _ in range(2)]
    passing = runs[0].list_ids(TestOutcome.PASSED) & runs[1].list_ids(TestOutcome.PASSED)
    if not passing and any(run.execution.exit_code != 0 for run in runs):
        raise ConfigError(f"no test passes here: {describe_end(runs[0].execution)}", hint=_HINT)
    seconds = max(run.execution.seconds for run in runs)
    plan = MutationPlan.of(texts, mutants, tests, seconds)
    return plan.replace(passing=passing, seconds=max(_SECONDS, 10 * seconds))


def describe_mutation(found: DiffMutants) -> tuple[Line, ...]:
    """Return the survivors, one line each, and a last line with the numbers."""
    told = count_mutants(found.mutants)
    rows = [
        line(
            span("! " if each.is_strong else "· ", Style.WARN),
            f"{each.path}:{each.line}  {each.edit}: no test notices",
            hang=4,
        )
        for each in pick_survivors(found.mutants)
    ]
    rows += [line(span(f"not tried: {place} cannot be read", Style.DIM)) for place in found.unread]
    if not found.mutants:
        return (*rows, line("No changed code to try: nothing but tests, documents or removed lines differs."))
    late = (
        f"; {told['not_tried']} of {len(found.mutants)} not tried for want of time"
        if told["not_tried"]
        else ""
    )
    if survived := len(told["survived"]):
        said = f"{survived} of {told['tried']} mutants survive{late}. "
        said += "Add a test that fails on each, or simplify the code."
        return (*rows, line(span(said, Style.WARN)))
    return (*rows, line(span(f"{told['killed']} of {told['tried']} mutants killed{late}", Style.GOOD)))
