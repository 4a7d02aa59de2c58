"""The evaluation of a batch by hidden checks: rates with confidence, and the comparison of two runs."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from agentflow.batch.results import BatchResult
from agentflow.batch.run import RESULTS
from agentflow.core.errors import ConfigError, Exit, InvalidFile, UsageError
from agentflow.core.record import Record
from agentflow.parse import decode

_Z = 1.959964
"""Of the normal distribution, for 95 %."""
_LEVEL = 0.05
ALL = "all"


class Rate(Record):
    """A share of a number of tasks, with its 95 % confidence interval."""

    count: int
    of: int
    low: float
    high: float


class PairedDifference(Record):
    value: float
    low: float
    high: float


class Score(Record):
    group: str
    tasks: int
    resolved: Rate
    falsely_verified: Rate
    caveats_unresolved: int
    refused: int
    unbegun: int
    cost_usd: float | None
    tokens: int
    seconds: float
    """The median of a task."""


class Comparison(Record):
    """Two runs of the same tasks, paired."""

    tasks: int
    both: int
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]
    neither: int
    difference: PairedDifference
    p: float
    """By chance alone a difference as large appears so often (McNemar's exact test, two-sided)."""
    unpaired: tuple[str, ...]
    first: Score
    second: Score

    @property
    def is_worse(self) -> bool:
        """Return whether the second run resolves less than the first, by more than chance."""
        return len(self.first_only) > len(self.second_only) and self.p < _LEVEL

    @property
    def is_better(self) -> bool:
        return len(self.second_only) > len(self.first_only) and self.p < _LEVEL


def measure_rate(count: int, of: int) -> Rate:
    """Return a rate with Wilson's interval, which also holds for few tasks and for none or all of them."""
    if not of:
        return Rate(count=0, of=0, low=0.0, high=1.0)
    share, square = count / of, _Z * _Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return Rate(count=count, of=of, low=max(0.0, middle - half), high=min(1.0, middle + half))


def compute_chance(first_only: int, second_only: int) -> float:
    """Return how often chance alone splits the tasks that differ at least as unevenly (McNemar, exact)."""
    total, fewer = first_only + second_only, min(first_only, second_only)
    tail = sum(math.comb(total, number) for number in range(fewer + 1))
    return float(min(1.0, 2 * tail / 2**total))


def measure_difference(both: int, first_only: int, second_only: int, neither: int) -> PairedDifference:
    """Return how two paired rates differ, with the interval of Newcombe (1998, method 10)."""
    total = both + first_only + second_only + neither
    first, second = (measure_rate(both + alone, total) for alone in (first_only, second_only))
    one, other = first.count / total, second.count / total
    spread = first.count * (total - first.count) * second.count * (total - second.count)
    product = both * neither - first_only * second_only
    phi = (max(product - total / 2, 0) if product > 0 else product) / math.sqrt(spread) if spread else 0.0

    def reach(down: float, up: float) -> float:
        return math.sqrt(down**2 - 2 * phi * down * up + up**2)

    value = other - one
    return PairedDifference(
        value=value,
        low=value - reach(other - second.low, first.high - one),
        high=value + reach(one - first.low, second.high - other),
    )


def score_groups(results: Sequence[BatchResult]) -> tuple[Score, ...]:
    groups = dict.fromkeys(result.group for result in results)
    parts = [_score(name or "-", [one for one in results if one.group == name]) for name in groups]
    return (*(parts if len(parts) > 1 else ()), _score(ALL, results))


def _score(group: str, results: Sequence[BatchResult]) -> Score:
    begun = [result for result in results if result.hidden is not None]
    verified = [result for result in begun if result.exit_code == Exit.VERIFIED]
    caveat = [result for result in begun if result.exit_code == Exit.CAVEAT]
    costs = [result.usage.cost_usd for result in results if result.usage.cost_usd is not None]
    return Score(
        group=group,
        tasks=len(results),
        resolved=measure_rate(sum(map(_is_resolved, begun)), len(results)),
        falsely_verified=measure_rate(sum(not _is_resolved(one) for one in verified), len(verified)),
        caveats_unresolved=sum(not _is_resolved(one) for one in caveat),
        refused=len(begun) - len(verified) - len(caveat),
        unbegun=len(results) - len(begun),
        cost_usd=sum(costs) if costs else None,
        tokens=sum(result.usage.tokens for result in results),
        seconds=median(result.seconds for result in begun) if begun else 0.0,
    )


def _is_resolved(result: BatchResult) -> bool:
    return result.hidden is not None and result.hidden.resolved


def compare_runs(first: Sequence[BatchResult], second: Sequence[BatchResult]) -> Comparison:
    """Return how two runs differ on the tasks that both have a result for. Raises UsageError for none."""
    one, other = ({result.id: result for result in run} for run in (first, second))
    shared = [name for name in one if name in other]
    if not shared:
        raise UsageError("these runs have no task in common")
    split: dict[tuple[bool, bool], list[str]] = {}
    for name in shared:
        split.setdefault((_is_resolved(one[name]), _is_resolved(other[name])), []).append(name)
    groups = [split.get(key, []) for key in ((True, True), (True, False), (False, True), (False, False))]
    both, first_only, second_only, neither = groups
    return Comparison(
        tasks=len(shared),
        both=len(both),
        first_only=tuple(first_only),
        second_only=tuple(second_only),
        neither=len(neither),
        difference=measure_difference(*map(len, groups)),
        p=compute_chance(len(first_only), len(second_only)),
        unpaired=tuple(name for name in (*one, *other) if (name in one) != (name in other)),
        first=_score(ALL, [one[name] for name in shared]),
        second=_score(ALL, [other[name] for name in shared]),
    )


def read_results(place: Path) -> tuple[BatchResult, ...]:
    """Return the results of a run from its folder or from its lines. Raises ConfigError or InvalidFile."""
    path = place / RESULTS if place.is_dir() else place
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", hint="name the folder of a run, such as tasks.batch"
        ) from None
    found = list[BatchResult]()
    for number, line in enumerate(lines, 1):
        try:
            found.append(decode(BatchResult, line, str(path)))
        except InvalidFile as error:
            raise InvalidFile(str(path), error.problem, line=number) from None
    return tuple(found)
