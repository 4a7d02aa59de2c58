"""The changed lines that no test would notice: of a person's own diff, or of a task's so far."""

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agentflow.api.trust import load_project, load_well_known
from agentflow.checks.repository import Repository
from agentflow.core.errors import ConfigError, StateError
from agentflow.core.evidence import Check, CheckName, Surface, TestOutcome, describe_end
from agentflow.core.languages import is_document_path, is_source
from agentflow.core.record import Record
from agentflow.core.test_ids import is_test_in
from agentflow.core.verdict import MutantResult, count_mutants, pick_survivors
from agentflow.redact import list_some
from agentflow.report.summary import describe_survivor
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
MUTANTS_SECONDS = 10.0
"""For one call of the tool `Mutants`."""
_SHARE = 3
"""Of the time of a request, one run of the tests without a mutant may take so small a part."""
_HINT = "Run `agentflow verify` to see them; mutants need tests that pass."


class MutationRequest(Record):
    revisions: str = ""
    """`A..B`, or one, with which the files here are compared; empty for the newest commit."""
    path: str = ""
    """A file or folder, to try nothing else."""
    seconds: float = 0
    """For all of it; 0 for as long as that tells more."""
    tell: Callable[[str], None] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False


class DiffMutants(Record):
    mutants: tuple[MutantResult, ...]
    unread: tuple[str, ...] = ()
    """Changed places that no grammar reads."""
    tests: tuple[str, ...] = ()
    """The files of tests that alone were run, where all take too long."""

    @property
    def is_open(self) -> bool:
        """True if a strong mutant survived, or nothing of the change could be tried."""
        is_strong = any(each.is_strong and each.is_unnoticed for each in self.mutants)
        is_any = bool(self.unread or self.mutants)
        return is_strong or (is_any and not count_mutants(self.mutants)["tried"])


def find_mutation(sandbox: Sandbox, git: Git, request: MutationRequest) -> DiffMutants:
    """Return what tests make of the mutants of a change.

    Raises ConfigError for a revision that is none, for tests that cannot run, and for tests that fail.
    """
    from agentflow.runners.selection import narrow
    from agentflow.verdict.mutation import try_mutants
    from agentflow.verdict.reverify import Copies
    from agentflow.workspace.mixed_tree import read_changed_texts

    globs = apply_project(load_settings(os.environ), load_project(git.root)).surface
    surface = Surface(added=globs.add, removed=globs.remove)
    copies = Copies(git=git, sandbox=sandbox, said=load_well_known(git.root), surface=surface)
    end = time.monotonic() + request.seconds
    before, mark, after = request.revisions.partition("..")
    base = _find_tree(git, before or "HEAD")
    tree = _find_tree(git, after or "HEAD") if mark else git.write_tree()
    changes = read_changed_texts(git, base, tree, _TEXT_BYTES)
    sandbox.fill_build_cache(request.cancelled)
    with copies.open(tree, git.list_ignored()) as copy:
        place = copy.replace(cancelled=request.cancelled)
        checks = copies.require(place, tree, ())
        tests = next((check for check in checks if check.name is CheckName.TESTS), None)
        if tests is None or tests.missing:
            why = tests.missing if tests else "no tests found"
            raise ConfigError(f"the tests cannot run here: {why}")
        files = git.list_paths(tree)
        repository = Repository(sandbox=place.sandbox, files=files, known=frozenset(files))
        product, new_tests = _sort_changes(repository, checks, changes, surface)
        folder = f"{request.path}/"
        product = [each for each in product if not request.path or f"{each.path}/".startswith(folder)]
        mutants, unread = list["Mutant"](), list[str]()
        for change in product:
            found, broken = _change_further(change)
            mutants += found
            unread += broken
        if not mutants:
            return DiffMutants(mutants=(), unread=tuple(unread))
        ways = [tests]
        if request.seconds:  # where all tests take too long, those that the change adds or touches
            quick = tests.replace(timeout=min(tests.timeout, request.seconds / _SHARE))
            ways = list(dict.fromkeys((quick, narrow(quick, new_tests) if new_tests else quick)))
        plan = _prepare(place, ways, {each.path: each.after for each in product}, mutants)
        plan = plan.replace(first=frozenset(each for each in plan.passing if is_test_in(each, new_tests)))
        request.tell(f"{len(plan.mutants)} mutants of {list_some([each.path for each in product])}")
        until = end if request.seconds else time.monotonic() + plan.seconds
        tried = tuple(try_mutants(place, plan, plan.mutants, until))
    is_part = plan.check.command != tests.command
    return DiffMutants(mutants=tried, unread=tuple(unread), tests=new_tests if is_part else ())


def _find_tree(git: Git, revision: str) -> str:
    try:
        return git.call("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}").decode().strip()
    except StateError:
        hint = "Name a commit, or two as main..HEAD."
        raise ConfigError(f"no such revision: {revision}", hint=hint) from None


def _sort_changes(
    repository: Repository, checks: Iterable[Check], changes: Iterable["ChangedTexts"], trusted: Surface
) -> tuple[list["ChangedTexts"], tuple[str, ...]]:
    from agentflow.core.finding import FileKind
    from agentflow.verdict.surface import find_kind, find_surface

    surface = find_surface(repository, checks, trusted.added, trusted.removed)
    kept = [each for each in changes if each.after and each.is_whole and not is_document_path(each.path)]
    kinds = {each.path: find_kind(each.path, surface) for each in kept}
    product = [each for each in kept if is_source(each.path) and kinds[each.path] is None]
    return product, tuple(path for path, kind in kinds.items() if kind is FileKind.TESTS)


def _change_further(change: "ChangedTexts") -> tuple[tuple["Mutant", ...], list[str]]:
    """Return the mutants of the lines that a change wrote, and the places that no grammar reads."""
    from agentflow.mutants.operators import list_elements, list_mutants, list_unreadable
    from agentflow.workspace.mixed_tree import find_differences

    differences = find_differences(change.before.splitlines(), change.after.splitlines())
    was = frozenset(row for _, first, end, *_ in differences for row in range(first + 1, end + 1))
    lines = frozenset(row for *_, first, end in differences for row in range(first + 1, end + 1))
    found = list_mutants(change.path, change.after, lines, list_elements(change.path, change.before, was))
    if found is None:
        return (), [change.path]
    return found, [f"{change.path}:{line}" for line in list_unreadable(change.path, change.after, lines)]


def _prepare(
    place: "Place", ways: Iterable[Check], texts: dict[str, str], mutants: list["Mutant"]
) -> "MutationPlan":
    """Return what to try under the first of some checks that ends in its time, after two runs of it.

    Raises ConfigError where no test passes without a mutant: what fails anyhow notices nothing.
    """
    from agentflow.verdict.mutation import MutationPlan

    for check in ways:
        runs = [place.try_elsewhere(check)[0]]
        if not runs[0].execution.timed_out:
            break
    else:
        raise ConfigError(f"the tests take longer than {check.timeout:.0f} s")
    runs += [place.try_elsewhere(check)[0]]
    passing = runs[0].list_ids(TestOutcome.PASSED) & runs[1].list_ids(TestOutcome.PASSED)
    if not passing and any(run.ended_red for run in runs):
        raise ConfigError(f"no test passes here: {describe_end(runs[0].execution)}", hint=_HINT)
    seconds = max(run.execution.seconds for run in runs)
    plan = MutationPlan.of(texts, mutants, check, seconds)
    return plan.replace(passing=passing, seconds=max(_SECONDS, 10 * seconds))


def describe_mutation(found: DiffMutants) -> tuple[Line, ...]:
    """Return the survivors, one line each, and a last line with the numbers."""
    counts = count_mutants(found.mutants)
    rows = [
        line(
            span("! " if each.is_strong else "· ", Style.WARN),
            f"{each.path}:{each.line}  {describe_survivor(each)}",
            hang=4,
        )
        for each in pick_survivors(found.mutants)
    ]
    rows += [line(span(f"not tried: {place} cannot be read", Style.DIM)) for place in found.unread]
    if found.tests:
        rows.append(line(f"Only {list_some(found.tests)} ran: all tests take too long here."))
    if not found.mutants:
        return (*rows, line("No changed code to try: nothing but tests, documents or removed lines differs."))
    late = f"; {counts['not_tried']} of {len(found.mutants)} not tried for want of time"
    late = late if counts["not_tried"] else ""
    if survived := len(counts["survived"]):
        said = f"{survived} of {counts['tried']} mutants survive{late}. "
        said += "Add a test that fails on each, or simplify the code."
        return (*rows, line(span(said, Style.WARN)))
    said = f"{counts['killed']} of {counts['tried']} mutants killed{late}"
    return (*rows, line(span(said, Style.WARN if found.is_open else Style.GOOD)))
