"""Would a test notice if the change were otherwise? Its mutants, tried in copies of its tree."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from anyio import to_thread

from agentflow.core.events import Probing
from agentflow.core.evidence import RED, Check, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import TaskState
from agentflow.core.test_ids import find_beside
from agentflow.core.verdict import MutantEnd, MutantResult, ProbeResult
from agentflow.mutants.operators import (
    Grade,
    Mutant,
    Operator,
    list_elements,
    list_look_alikes,
    list_mutants,
    list_untouched,
)
from agentflow.mutants.trial import MutantOrder, TriedMutant, order_mutants
from agentflow.routing.wanted import Wanted
from agentflow.runners.selection import are_python_tests, list_shorter, narrow_quietly
from agentflow.verdict.case import find_tests
from agentflow.verdict.checking import JudgeContext
from agentflow.verdict.diff.hunks import LineSpan, drop_moved, split_change
from agentflow.verdict.judge import has_no_failure
from agentflow.verdict.mixed_sides import lay_new_checks
from agentflow.verdict.probes.probe import ProbeContext
from agentflow.verdict.proofs import explain_silence, find_proof, find_proofs
from agentflow.verdict.runner import Place, run_apart
from agentflow.workspace.mixed_tree import ChangedTexts

_SECONDS = 20.0
"""The time of all mutants beside that of one run of the tests, where a core is free for it."""
_MOST_CROWDED = 4
_QUICK_SHARE = 0.75
_LEAST_LIMIT = 10.0
_PATIENCE = 5
_MOST_KILLERS = 5
_AT_ONCE = 2
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\w)")
_ENDS = re.compile(r"(?i)\b(?:in|ex)clu(?:sive|ding)")
_RAISES = re.compile(r"\b(?:raise|throw|panic!?)\b")


class MutationPlan(Record):
    """The mutants of a change, and the tests that may notice them."""

    texts: Mapping[str, str | None]
    """The files that they change, as they are without them; None for one that is gone."""
    mutants: tuple[Mutant, ...]
    check: Check
    passing: frozenset[str]
    """The tests that pass without a mutant; empty where a runner tells no names."""
    first: frozenset[str] = frozenset()
    """Those that are tried alone first; a mutant that these let live is tried with all."""
    seconds: float = _SECONDS
    """For all mutants together."""
    tree: str = ""
    """The tree that has these files, and the checks of now."""
    code: Side = Side.FINAL
    hunks: tuple[LineSpan, ...] = ()
    """The changed lines that the mutants belong to, where they have to be told apart."""
    words: str = ""
    """Those of the task: "less than 12 letters" leaves no bound at 12 to choose, "inclusive" none at all."""

    @classmethod
    def of(
        cls, texts: Mapping[str, str | None], mutants: Iterable[Mutant], check: Check, took: float
    ) -> "MutationPlan":
        """Return a plan for a check that usually takes so many seconds."""
        limit = min(check.timeout, max(_LEAST_LIMIT, _PATIENCE * took))
        return cls(
            texts=texts,
            mutants=order_mutants(mutants),
            check=check.replace(timeout=limit),
            passing=frozenset(),
            seconds=allow_seconds(took, os.getloadavg()[0] / (os.cpu_count() or 1)),
        )

    def pick_python(self, mutants: Iterable[Mutant]) -> tuple[Mutant, ...]:
        """Return the mutants of Python files that are there, which forks of one process can try."""
        return tuple(
            each for each in mutants if each.path.endswith(".py") and self.texts[each.path] is not None
        )


def allow_seconds(took: float, busy: float) -> float:
    """Return the time of all mutants, where tests take so many seconds and programs wait for each core.

    What ends for want of time says nothing of a change.
    """
    return _SECONDS * min(_MOST_CROWDED, max(1, busy)) + took


def plan_mutants(context: ProbeContext, probes: tuple[ProbeResult, ...]) -> tuple[MutationPlan, ...]:
    """Return what to try of a change, if all its checks hold and something in it is no test."""
    case, seen = context.case, context.inspection
    if seen.changed_tests or seen.new_fixtures or not has_no_failure(case) or explain_silence(probes):
        return ()
    is_form = case.wanted is Wanted.FORM and not find_proofs(case.replace(probes=probes))
    return _plan_both_sides(context) if is_form else _plan_new_code(context)


def _plan_new_code(context: ProbeContext) -> tuple[MutationPlan, ...]:
    product = {each.path: each for each in context.list_product_files()}
    hunks = split_change(product.values())
    proofs = frozenset(find_proof(context.case))
    # a change of one hunk was taken back to see that its tests prove it
    taken = [_take_back(hunk) for hunk in drop_moved(hunks)] if proofs and len(hunks) > 1 else []
    checks = [run for run in context.case.after if run.green and run.check.name is not CheckName.TESTS]
    plans = [
        _plan_side(context, product, taken, run, Side.FINAL).replace(passing=frozenset())
        for run in checks
        if str(run.check.name) in proofs
    ]
    final = context.tests
    if final is not None and not context.case.is_blocked(final) and (context.passed or final.green):
        new = [
            mutant
            for hunk in hunks
            for stood in [list_elements(hunk.path, hunk.change.before, hunk.old_numbers)]
            for mutant in (
                *(list_mutants(hunk.path, hunk.change.after, hunk.new_numbers, stood) or ()),
                *list_look_alikes(hunk.path, hunk.change.after, hunk.new_numbers, context.task.task),
            )
        ]
        plan = _plan_side(context, product, [*taken, *new], final, Side.FINAL)
        base = find_tests(context.case.before)
        added = context.proving - (base.outcomes.keys() if base else frozenset())
        plans += [  # a package whose new tests did not compile before is proved by all of its tests
            plan.replace(first=added or context.proving, words=context.task.task),
            *_plan_lost_errors(context, product, hunks),
        ]
    return tuple(each.replace(hunks=hunks) for each in plans if each.mutants)


def _plan_lost_errors(
    context: ProbeContext, product: Mapping[str, ChangedTexts], hunks: Iterable[LineSpan]
) -> Iterator[MutationPlan]:
    """Yield what to try of the errors that the old code raised and the new code does not.

    A mend that takes a guard away beside it passes all tests, if none of them is about the guard.
    """
    base, final = find_tests(context.case.before), context.tests
    kept = context.passed & base.list_ids(TestOutcome.PASSED) if base else frozenset[str]()
    spans = [each for each in hunks if _count_raised(each.removed) > _count_raised(each.added)]
    lost = [
        mutant
        for span in spans
        if _count_raised(span.change.before) > _count_raised(span.change.after)
        for mutant in list_mutants(span.path, span.change.before, span.old_numbers) or ()
        if mutant.operator is Operator.STATEMENT and _RAISES.match(mutant.before)
    ]
    if final is not None and kept and lost:
        yield _plan_side(context, product, lost, final, Side.BASE).replace(passing=kept)


def _count_raised(text: str) -> int:
    return len(_RAISES.findall(text))


def _plan_both_sides(context: ProbeContext) -> tuple[MutationPlan, ...]:
    """Return what to try of a refactoring whose checks all hold: of its new code, and of what it took away.

    Nothing where some changed lines leave nothing to try: what is not tried proves nothing.
    """
    base, final = find_tests(context.case.before), context.tests
    if final is None or final.evidence is None or base is None or context.case.is_blocked(final):
        return ()
    kept = context.passed & base.list_ids(TestOutcome.PASSED)
    is_told = bool(kept) or (final.green and base.green and not context.passed)
    product = {each.path: each for each in context.list_product_files()}
    if not is_told or not {each.path for each in context.case.changed} <= product.keys():
        return ()
    old, new = list[Mutant](), list[Mutant]()
    hunks = split_change(product.values())
    for hunk in hunks:
        change = hunk.change
        went = list_mutants(change.path, change.before, hunk.old_numbers) or ()
        came = list_mutants(change.path, change.after, hunk.new_numbers) or ()
        if not (went or came):
            if not change.after:
                return ()
            came = (_take_back(hunk),)
        else:
            stays = Counter(list_untouched(change.path, change.after, hunk.new_numbers))
            if stays != Counter(list_untouched(change.path, change.before, hunk.old_numbers)):
                return ()  # such as an assertion that went beside a line that tests notice
        old += went
        new += came
    plans = (
        _plan_side(context, product, new, final, Side.FINAL),
        _plan_side(context, product, old, final, Side.BASE).replace(passing=kept),
    )
    return tuple(each.replace(hunks=hunks) for each in plans if each.mutants)


def _plan_side(
    context: ProbeContext,
    product: Mapping[str, ChangedTexts],
    mutants: list[Mutant],
    run: CheckRun,
    code: Side,
) -> MutationPlan:
    is_now = code is Side.FINAL
    texts = {path: _read_side(each, is_now=is_now) for path, each in product.items()}
    took = run.evidence.seconds if run.evidence else 0.0
    tree = context.trees[1] if is_now else lay_new_checks(context.git, context.task)
    plan = MutationPlan.of(texts, mutants, run.check, took)
    return plan.replace(tree=tree, code=code, passing=context.passed)


def _read_side(change: ChangedTexts, *, is_now: bool) -> str | None:
    return (change.before, change.after)[is_now] if change.modes[is_now].strip("0") else None


def _take_back(hunk: LineSpan) -> Mutant:
    lines = hunk.change.after.splitlines(keepends=True)
    start = len("".join(lines[: hunk.new[0]]).encode())
    return Mutant(
        path=hunk.path,
        line=hunk.lines.line,
        block=hunk.lines.line,
        start=start,
        end=start + len(hunk.added.encode()),
        before=hunk.added,
        after=hunk.removed,
        operator=Operator.TAKEN_BACK,
    )


async def try_plans(
    context: JudgeContext, task: TaskState, plans: Iterable[MutationPlan]
) -> tuple[MutantResult, ...]:
    """Return the outcome of each mutant, tried in copies side by side."""
    shares = list[tuple[MutationPlan, tuple[Mutant, ...]]]()
    for plan in plans:
        python = plan.pick_python(plan.mutants)
        others = tuple(each for each in plan.mutants if each not in python)
        # forks share one traced run
        shares += [
            (plan, share) for share in (python, *(others[at::_AT_ONCE] for at in range(_AT_ONCE))) if share
        ]
    total = sum(len(share) for _, share in shares)
    end = time.monotonic() + max((plan.seconds for plan, _ in shares), default=0.0)

    async def work(plan: MutationPlan, share: tuple[Mutant, ...]) -> list[MutantResult]:
        async with context.checking.copy(task, plan.tree) as place:
            return await to_thread.run_sync(lambda: list(try_mutants(place, plan, share, end)))

    context.checking.emit(Probing(done=0, total=total))
    found = await run_apart(context.sandbox.level, *(partial(work, *each) for each in shares))
    context.checking.emit(Probing(done=total, total=total))
    return tuple(merge_results(each for share in found for each in share))


def merge_results(results: Iterable[MutantResult]) -> Iterator[MutantResult]:
    """Yield each result once: a hunk that several checks were to miss is killed where one does."""
    found = list(results)
    taken = [each for each in found if each.operator == Operator.TAKEN_BACK]
    yield from (each for each in found if each not in taken)
    last = {each.hunk: each for each in sorted(taken, key=lambda each: each.outcome is MutantEnd.KILLED)}
    yield from last.values()


def try_mutants(
    place: Place, plan: MutationPlan, mutants: Iterable[Mutant], end: float
) -> Iterator[MutantResult]:
    """Yield the outcome of each mutant in one copy; none begins after the end, by the monotonic clock."""
    left = list(mutants)
    python = plan.pick_python(left)
    order = MutantOrder(
        check=plan.check,
        passing=plan.passing,
        first=plan.first,
        mutants=python,
        strong=frozenset(
            each for each in python if _is_strong(plan, each) or each.operator is Operator.OTHER_ALIKE
        ),
        seconds=max(1.0, end - time.monotonic()),
    )
    if python and (tried := place.try_forked(order)) is not None:
        yield from (_to_result(plan, each) for each in tried)
        left = [each for each in left if each not in python]
    yield from _try_in_rounds(place, plan, left, end) if left else ()


def _try_in_rounds(
    place: Place, plan: MutationPlan, mutants: Iterable[Mutant], end: float
) -> Iterator[MutantResult]:
    """Yield the outcome of each mutant: all meet the quick check first, what it lets live the next one.

    A quarter of the time stays for that: what only the quick check lets live is no survivor yet.
    """
    left = [TriedMutant(mutant=each, outcome=MutantEnd.NOT_TRIED) for each in mutants]
    rounds = _list_rounds(place, plan)
    while left and time.monotonic() < end and (meeting := next(rounds, None)):
        alive, now = list[TriedMutant](), time.monotonic()
        until = end if meeting.is_last else now + (end - now) * _QUICK_SHARE
        for known in left:
            tried = known.replace(outcome=MutantEnd.NOT_TRIED)
            if time.monotonic() < until:
                code = known.mutant.apply(plan.texts[known.mutant.path] or "").encode()
                shown = _run_with(place, plan, meeting.check, {known.mutant.path: code})
                tried = _read(shown, meeting.passing, tried)
            if tried.outcome in (MutantEnd.KILLED, MutantEnd.TIMED_OUT):
                yield _to_result(plan, tried)
            else:
                alive.append(tried if meeting.is_last else tried.replace(outcome=MutantEnd.NOT_TRIED))
        left = alive
    yield from (_to_result(plan, each) for each in left)


class _Round(Record):
    """A check that mutants meet, and which of its tests pass without them."""

    check: Check
    passing: frozenset[str]
    is_last: bool = False


def _list_rounds(place: Place, plan: MutationPlan) -> Iterator[_Round]:
    """Yield the proving tests, those beside them, then all, each by the shortest true command.

    `npm test` may run linters and builds for a minute before one second of tests, and a formatter that stops
    at a mutant keeps it from all of them.
    """
    for tests in filter(None, (plan.first, find_beside(plan.first, plan.passing))):
        if quick := _choose_shorter(place, plan, tests):
            yield _Round(check=quick, passing=tests)
    is_python = plan.passing and are_python_tests(plan.check, plan.passing)
    whole = None if is_python else _choose_shorter(place, plan, frozenset())
    if whole:
        yield _Round(check=whole, passing=plan.passing, is_last=bool(plan.passing))
    if not (whole and plan.passing):
        yield _Round(check=plan.check, passing=plan.passing, is_last=True)


def _choose_shorter(place: Place, plan: MutationPlan, tests: frozenset[str]) -> Check | None:
    """Return the shortest check in which tests, or all, pass as ever, and fail if the code is empty.

    Where a build is left out, they may run the code of an earlier one.
    """
    if tests and (quick := narrow_quietly(plan.check, tests)) != plan.check:
        return quick
    needed, empty = tests or plan.passing, dict.fromkeys(plan.texts, b"")
    ways = list_shorter(plan.check, tests, place.list_files(), place.read)
    sound = (way for way in ways if _passes(_run_with(place, plan, way), needed))
    leaves_out = ways[:-1]  # the last has all that stands before the tests
    true = (
        way
        for way in sound
        if way not in leaves_out or not _passes(_run_with(place, plan, way, empty), needed)
    )
    return next(true, None)


def _passes(shown: CheckRun, tests: frozenset[str]) -> bool:
    passed = shown.list_ids(TestOutcome.PASSED)
    return tests <= passed if tests else not shown.ended_red


def _run_with(
    place: Place, plan: MutationPlan, check: Check, files: Mapping[str, bytes] = MappingProxyType({})
) -> CheckRun:
    """Return what a check shows with some files otherwise, which are then as they were."""
    assert place.stage is not None
    for path, content in files.items():
        place.stage.replace_file(path, content)
    shown, _ = place.try_elsewhere(check)
    place.stage.restore(lambda _: False)
    for path in files:
        text = plan.texts[path]
        place.stage.replace_file(path, None if text is None else text.encode())
    return shown


def _read(shown: CheckRun, passing: frozenset[str], tried: TriedMutant) -> TriedMutant:
    """Return what a run shows of a mutant: only a test that passes without it can tell."""
    red = sorted(passing & shown.list_ids(*RED))
    passed = passing & shown.list_ids(TestOutcome.PASSED)
    if shown.execution.timed_out and not red:
        return tried.replace(outcome=MutantEnd.TIMED_OUT)
    if passing and not red and not passed:
        return tried.replace(outcome=MutantEnd.INVALID)
    if lost := sorted(passing - passed):  # a file of tests that cannot be loaded has none
        return tried.replace(outcome=MutantEnd.KILLED, killers=tuple(lost[:_MOST_KILLERS]))
    is_red = not passing and shown.ended_red
    return tried.replace(outcome=MutantEnd.KILLED if is_red else MutantEnd.SURVIVED)


def _to_result(plan: MutationPlan, tried: TriedMutant) -> MutantResult:
    mutant, is_old = tried.mutant, plan.code is Side.BASE
    spans = (
        (each, each.old_numbers if is_old else each.new_numbers)
        for each in plan.hunks
        if each.path == mutant.path
    )
    if mutant.operator is Operator.TAKEN_BACK:  # it may stand between two lines
        found = (each for each, _ in spans if each.lines.line == mutant.line)
    else:
        found = (each for each, span in spans if mutant.line in span)
    hunk = next((each.lines for each in found), None)
    # code that does not even load without a part of the change needs that part
    is_needed = mutant.operator is Operator.TAKEN_BACK and tried.outcome is MutantEnd.INVALID
    return MutantResult(
        path=mutant.path,
        line=hunk.line if hunk and is_old else mutant.line,
        before=mutant.before,
        after=mutant.after,
        operator=mutant.operator,
        edit=mutant.describe().partition("  ")[2],
        is_strong=_is_strong(plan, mutant),
        outcome=MutantEnd.KILLED if is_needed else tried.outcome,
        killers=tried.killers,
        code=plan.code,
        hunk=hunk,
        block=mutant.block,
    )


def _is_strong(plan: MutationPlan, mutant: Mutant) -> bool:
    """Return whether a mutant decides: by its operator, or as a bound that the task speaks of."""
    if mutant.operator is not Operator.BOUND:
        return mutant.grade is Grade.STRONG
    (row,) = (plan.texts[mutant.path] or "").splitlines()[mutant.line - 1 :][:1] or [""]
    is_told = not {*_NUMBER.findall(plan.words)}.isdisjoint(_NUMBER.findall(row))
    return is_told or _ENDS.search(plan.words) is not None
