"""The probes that a change needs: a function of its case and of the probes so far."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import PurePosixPath

from agentflow.core.evidence import Check, CheckName, CheckRun, Side, find_same_check
from agentflow.core.languages import PROBED, is_source
from agentflow.core.verdict import Hunk, ProbeEnd, ProbeKind, ProbeResult
from agentflow.languages.grammars import find_grammar
from agentflow.mutants.operators import list_unreadable
from agentflow.verdict.case import find_tests
from agentflow.verdict.judge import has_no_failure
from agentflow.verdict.probes.breaking import Canary, make_canary, plant_names, refuse
from agentflow.verdict.probes.hunks import split_change, take_back
from agentflow.verdict.probes.of_tests import probe_expectations, probe_tests_alone
from agentflow.verdict.probes.probe import Probe, ProbeContext, make_word
from agentflow.verdict.proofs import explain_silence, find_proof
from agentflow.verdict.surface import Kind, find_kind, is_check_file
from agentflow.verdict.target_tests import find_python_part, narrow_quietly
from agentflow.workspace.mixed_tree import ChangedTexts

_Results = tuple[ProbeResult, ...]
_SEEING = (CheckName.LINT, CheckName.TYPES)
_TEXT_BYTES = 200_000
_ALL = 1 << 30
_MOST_PIECES = 8
_PIECES_SECONDS = 30.0
"""The time of all pieces of a change, one after the other; there are fewer where a run takes long."""


def plan_canaries(context: ProbeContext, known: _Results) -> tuple[Probe, ...]:
    """Return the canary tests to run: on the new code, and on the old code those that stayed silent there."""
    if any(each.code is Side.BASE for each in known):
        return ()
    held, modules = find_tests(context.case.select(checks=Side.BASE)), _modules_in_change(context)
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
        path for path in paths if path.endswith(".py") and find_kind(path, context.task.surface) is Kind.TESTS
    ]
    beside = {part: path for path in reversed(tests) if (part := find_python_part(check, path))}
    changed = {part for path in modules if (part := find_python_part(check, path))}
    for part, path in beside.items():
        made = make_canary(check, path, modules) if part in changed or changed.isdisjoint(beside) else None
        if made is not None:
            yield made


def _modules_in_change(context: ProbeContext) -> list[str]:
    changed = (each.path for each in context.git.list_changes(*context.trees))
    return [
        path for path in changed if path.endswith(".py") and not is_check_file(context.task.surface, path)
    ]


def plan_probes(context: ProbeContext, known: _Results) -> tuple[Probe, ...]:
    """Return the probes to run next, if all checks pass; none if nothing is left to find out."""
    if not has_no_failure(context.case) or explain_silence(known) or context.case.is_renaming:
        return ()
    if context.inspection.changed_tests or context.inspection.new_fixtures:
        return () if known else tuple(probe_tests_alone(context))
    product = context.list_product_files()
    if not product:
        return ()
    first = (
        ()
        if known
        else (
            *_find_unreadable(context, product),
            *probe_expectations(context),
        )
    )
    later = (_break_for_others, _plant_names, _without)
    return (*first, *(probe for plan in later for probe in plan(context, product, known)))


def _find_unreadable(context: ProbeContext, product: tuple[ChangedTexts, ...]) -> Iterator[Probe]:
    """Yield the code whose changed lines no grammar reads, so that nothing can be tried of it."""
    final = context.tests
    spans = (hunk for piece in split_change(product, _ALL) for hunk in piece.hunks if is_source(hunk.path))
    found = [(each, list_unreadable(each.path, each.change.after, each.new_numbers)) for each in spans]
    places = dict.fromkeys(
        f"{each.path}:{lines[0]}" if find_grammar(each.path) else each.path for each, lines in found if lines
    )
    if places and final is not None:
        yield context.plan(ProbeKind.BROKEN_CODE, final, {}).replace(
            subjects=tuple(places), unrun=ProbeEnd.UNREADABLE
        )


def _sources(product: tuple[ChangedTexts, ...]) -> list[ChangedTexts]:
    return [each for each in product if each.after and PurePosixPath(each.path).suffix in PROBED]


def _break_for_others(
    context: ProbeContext, product: tuple[ChangedTexts, ...], known: _Results
) -> Iterator[Probe]:
    """Yield the other checks with the changed files unreadable, and again on the old code if they passed."""
    files: dict[str, str | None] = {each.path: refuse(each.after, make_word()) for each in _sources(product)}
    before = {run.check.name: run for run in context.case.before if run.green}
    for run in (run for run in context.case.after if run.check.name is not CheckName.TESTS and run.green):
        told = [each for each in known if each.kind is ProbeKind.BROKEN_CODE and each.check is run.check.name]
        is_doubted = len(told) == 1 and told[0].end is ProbeEnd.SILENT and run.check.name in before
        if files and (not told or is_doubted):
            code = Side.BASE if told else Side.FINAL
            yield context.plan(ProbeKind.BROKEN_CODE, run, files, code).replace(subjects=tuple(files))


def _plant_names(
    context: ProbeContext, product: tuple[ChangedTexts, ...], known: _Results
) -> Iterator[Probe]:
    """Yield checkers that prove the change, with unknown names planted in the code, new and then old."""
    proved = {*find_proof(context.case)}
    for run in (each for each in context.case.after if str(each.check.name) in proved):
        told = [each for each in known if each.kind is ProbeKind.PLANTED and each.check is run.check.name]
        if run.check.name not in _SEEING or len(told) > 1 or (told and told[0].end is not ProbeEnd.SILENT):
            continue
        paths = {each.path for each in product if each.path.endswith(".py")} | _files_with_faults(
            context, run
        )
        code = Side.BASE if told else Side.FINAL
        texts = context.git.read_files(context.trees[not told], sorted(paths), _TEXT_BYTES)
        files, planted = plant_names(texts, make_word())
        planted = tuple(each for each in planted if not told or each.place in told[0].subjects)
        if planted:
            yield context.plan(ProbeKind.PLANTED, run, files, code).replace(planted=planted)


def _files_with_faults(context: ProbeContext, run: CheckRun) -> frozenset[str]:
    """Return the Python files of the product about which a check complained before the task."""
    base = find_same_check(run, context.case.before) or run
    named = {finding.partition(":")[0].removeprefix("./") for finding in base.findings}
    known = named & {path for path in context.git.list_paths(context.trees[1]) if path.endswith(".py")}
    return frozenset(path for path in known if not is_check_file(context.task.surface, path))


def _without(context: ProbeContext, product: tuple[ChangedTexts, ...], known: _Results) -> Iterator[Probe]:
    """Yield the checks with one piece of the change taken back, until one of them fails."""
    checks = list(_provers(context))
    told = [each for each in known if each.kind is ProbeKind.WITHOUT_HUNK]
    for hunks, files in _take_parts_back(context, product) if checks else ():
        mine = [each for each in told if each.hunks == hunks]
        if all(each.end is ProbeEnd.SILENT for each in mine) and len(mine) < len(checks):
            run, tests = checks[len(mine)]
            made = context.plan(ProbeKind.WITHOUT_HUNK, run, files)
            yield made.replace(subjects=tuple(hunk.place for hunk in hunks), hunks=hunks, tests=tests)


def _take_parts_back(
    context: ProbeContext, product: tuple[ChangedTexts, ...]
) -> Iterator[tuple[tuple[Hunk, ...], dict[str, str | None]]]:
    """Yield the parts of a change, each with the files without it."""
    pieces = split_change(product, _count_affordable(context, _PIECES_SECONDS))
    for piece in pieces if len(pieces) > 1 else ():
        yield tuple(hunk.lines for hunk in piece.hunks), take_back(piece)


def _count_affordable(context: ProbeContext, time: float) -> int:
    """Return how many runs of the proving checks there is time for, one after the other."""
    runs = context.case.select(again=True) or context.case.select(code=Side.BASE) or context.case.after
    seconds = max((run.evidence.seconds for run in runs if run.evidence), default=0.0)
    return min(_MOST_PIECES, int(time / max(seconds, 0.1)))


def _provers(context: ProbeContext) -> Iterator[tuple[CheckRun, frozenset[str]]]:
    """Yield the checks that may fail without a piece: proving tests, other proving checks, all tests."""
    final, proved = context.tests, {*find_proof(context.case)}
    if final is not None and context.proving:
        check = narrow_quietly(final.check, context.proving)
        yield final.replace(check=check), context.proving
        if check != final.check:
            yield final, context.passed
    for run in context.case.after:
        if str(run.check.name) in proved:
            yield run, frozenset()
