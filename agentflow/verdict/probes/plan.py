"""The probes that a change needs: a function of its case and of the probes so far."""

from collections.abc import Iterator
from itertools import zip_longest

from agentflow.core.evidence import Check, CheckName, CheckRun, Side, find_same_check
from agentflow.core.finding import FileKind
from agentflow.core.languages import is_source
from agentflow.core.verdict import ProbeEnd, ProbeKind, ProbeResult
from agentflow.languages.grammars import find_grammar
from agentflow.mutants.operators import list_unreadable
from agentflow.runners.selection import find_python_part
from agentflow.verdict.case import find_tests
from agentflow.verdict.diff.hunks import split_change
from agentflow.verdict.judge import has_no_failure
from agentflow.verdict.probes.breaking import Canary, make_canary
from agentflow.verdict.probes.of_tests import (
    probe_expectations,
    probe_older_expectations,
    probe_tests_alone,
)
from agentflow.verdict.probes.probe import Probe, ProbeContext, make_word
from agentflow.verdict.proofs import explain_silence
from agentflow.verdict.surface import find_kind, is_check_file
from agentflow.workspace.mixed_tree import ChangedTexts

_Results = tuple[ProbeResult, ...]
_TEXT_BYTES = 200_000


def plan_canaries(context: ProbeContext, known: _Results) -> tuple[Probe, ...]:
    """Return the canary tests to run: on the new code, and on the old code those that stayed silent there."""
    if any(each.code is Side.BASE for each in known):
        return ()
    held, surface = find_tests(context.case.select(checks=Side.BASE)), context.task.surface
    paths = (each.path for each in context.git.list_changes(*context.trees))
    modules = [path for path in paths if path.endswith(".py") and not is_check_file(surface, path)]
    if held is None or (context.tests and context.tests.check != held.check):
        held = context.tests  # a project is gone or has moved, and with it what ran there
    if held is None or not held.green or held.evidence is None or not modules:
        return ()
    tree, code = (context.trees[0], Side.BASE) if known else (held.evidence.tree_before or "", Side.FINAL)
    canaries = list(_make_canaries(context, held.check, modules))
    due = [each for each, told in zip_longest(canaries, known) if not told or told.end is ProbeEnd.SILENT]
    return tuple(
        Probe(kind=ProbeKind.CANARY, check=each.check, tree=tree, files={each.path: each.text}, code=code)
        for each in due
    )


def _make_canaries(context: ProbeContext, check: Check, modules: list[str]) -> Iterator[Canary]:
    """Yield a canary for each run of Python tests whose project changed, or for each run if none did."""
    paths = dict.fromkeys(path for tree in context.trees for path in context.git.list_paths(tree))
    tests = [
        path
        for path in paths
        if path.endswith(".py") and find_kind(path, context.task.surface) is FileKind.TESTS
    ]
    beside = {part: path for path in reversed(tests) if (part := find_python_part(check, path))}
    changed = {part for path in modules if (part := find_python_part(check, path))}
    for part, path in beside.items():
        made = make_canary(check, path, modules) if part in changed or changed.isdisjoint(beside) else None
        if made is not None:
            yield made


def plan_probes(context: ProbeContext, known: _Results) -> tuple[Probe, ...]:
    """Return the probes to run next, if all checks pass; none if nothing is left to find out."""
    if not has_no_failure(context.case) or context.case.is_renaming:
        return ()
    if explain_silence(known):
        return tuple(probe_older_expectations(context, known))
    if context.inspection.changed_tests or context.inspection.new_fixtures:
        return tuple(probe_tests_alone(context, known))
    product = context.list_product_files()
    if not product:
        return ()
    first = () if known else tuple(_find_unreadable(context, product))
    if not known and not context.case.weakened:  # of which a person is asked: nothing else has to show it
        first += tuple(probe_expectations(context))
    return (*first, *_break_for_others(context, product, known))


def _find_unreadable(context: ProbeContext, product: tuple[ChangedTexts, ...]) -> Iterator[Probe]:
    """Yield the code whose changed lines no grammar reads, so that nothing can be tried of it."""
    final = context.tests
    spans = (hunk for hunk in split_change(product) if is_source(hunk.path))
    found = [(each, list_unreadable(each.path, each.change.after, each.new_numbers)) for each in spans]
    places = dict.fromkeys(
        f"{each.path}:{lines[0]}" if find_grammar(each.path) else each.path for each, lines in found if lines
    )
    if places and final is not None:
        yield context.plan(ProbeKind.BROKEN_CODE, final, {}).replace(
            subjects=tuple(places), unrun=ProbeEnd.UNREADABLE
        )


def _break_for_others(
    context: ProbeContext, product: tuple[ChangedTexts, ...], known: _Results
) -> Iterator[Probe]:
    """Yield the other checks with the changed files unreadable, and again on the old code if they passed.

    New files alone say little: a stub in front of a module hides its faults from a type checker.
    """
    changed = [each for each in product if each.after and is_source(each.path)]
    for run in (run for run in context.case.after if run.check.name is not CheckName.TESTS and run.green):
        told = [each for each in known if each.kind is ProbeKind.BROKEN_CODE and each.check is run.check.name]
        base = find_same_check(run, context.case.before)
        faulty = _list_faulty(context, base) if base else frozenset()
        is_doubted = len(told) == 1 and told[0].end is ProbeEnd.SILENT and base and (base.green or faulty)
        older = {each.path for each in changed if each.before} | faulty
        if paths := (older or {each.path for each in changed}) if not told or is_doubted else set():
            code = Side.BASE if told else Side.FINAL
            texts = context.git.read_files(context.trees[1], sorted(paths), _TEXT_BYTES)
            files = {path: f"{text}\n)({make_word()}\n" for path, text in texts.items()}  # no code any more
            yield context.plan(ProbeKind.BROKEN_CODE, run, files, code).replace(subjects=tuple(files))


def _list_faulty(context: ProbeContext, base: CheckRun) -> frozenset[str]:
    named = {finding.partition(":")[0].removeprefix("./") for finding in base.findings}
    known = named.intersection(context.git.list_paths(context.trees[1]))
    return frozenset(path for path in known if not is_check_file(context.task.surface, path))
