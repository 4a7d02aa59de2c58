"""What was measured, as rows with their bounds; the table, the lines of JSON, and the header."""

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from agentflow.core.record import Record, encode

PACKAGES = ("agentflow", "anthropic", "anyio", "h11", "httpx2", "msgspec", "pyyaml", "typer")
COLUMNS = ("goal", "metric", "agentflow", "reference", "ratio", "bound", "pass", "rounds", "spread")


class Bound(Record):
    """What a figure is held to."""

    at_most: float | None = None
    at_least: float | None = None

    def __str__(self) -> str:
        if self.at_most is not None and self.at_most == self.at_least:
            return f"= {self.at_most:g}"
        return f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"

    def holds(self, figure: float) -> bool:
        is_low = self.at_most is None or figure <= self.at_most
        return is_low and (self.at_least is None or figure >= self.at_least)


class Row(Record):
    """One figure: agentflow's, a reference's in the same rounds, and what their ratio is held to."""

    goal: int
    metric: str
    agentflow: float
    reference: float | None = None
    ratio: float | None = None
    bound: Bound | None = None
    """On the ratio if there is one, else on agentflow's own figure."""
    rounds: int = 1
    spread: float = 1
    """The largest over the smallest of the rounds' figures."""

    @property
    def holds(self) -> bool | None:
        figure = self.agentflow if self.ratio is None else self.ratio
        return None if self.bound is None else self.bound.holds(figure)

    @property
    def fields(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in COLUMNS if name != "pass"}
        figures = {name: _rounded(value) for name, value in own.items()}
        bound = None if self.bound is None else str(self.bound)
        return {name: {**figures, "bound": bound, "pass": self.holds}[name] for name in COLUMNS}


def at_most(limit: float) -> Bound:
    return Bound(at_most=limit)


def at_least(limit: float) -> Bound:
    return Bound(at_least=limit)


def exactly(figure: float) -> Bound:
    return Bound(at_most=figure, at_least=figure)


def compared(
    goal: int, metric: str, ours: Sequence[float], theirs: Sequence[float], bound: Bound | None = None
) -> Row:
    """Return a row of figures of the same rounds; the ratio is the median of the rounds' ratios."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return Row(
        goal=goal,
        metric=metric,
        agentflow=median(ours),
        reference=median(theirs),
        ratio=median(ratios),
        bound=bound,
        rounds=len(ratios),
        spread=_spread(ratios),
    )


def alone(goal: int, metric: str, ours: Sequence[float], bound: Bound | None = None) -> Row:
    """Return a row of figures that are held to an absolute bound."""
    return Row(
        goal=goal, metric=metric, agentflow=median(ours), bound=bound, rounds=len(ours), spread=_spread(ours)
    )


def _spread(figures: Iterable[float]) -> float:
    found = sorted(figures)
    return found[-1] / found[0] if found[0] > 0 else 1.0


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def table(rows: Sequence[Row]) -> str:
    """Return all rows as one table."""
    lines = [COLUMNS, *(tuple(_cell(row.fields[name]) for name in COLUMNS) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "MISSED"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def json_line(row: Row) -> str:
    return encode(row.fields).decode()


def header(load_before: float) -> str:
    """Return on what was measured; a run beside other work is marked."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    marked = " (UNDER LOAD: absolute times are too high)" if max(load, load_before) > cores else ""
    return "\n".join(
        (
            f"cpu: {_cpu()}, {cores} cores",
            f"load: {load_before:.2f} before, {load:.2f} after{marked}",
            f"python: {platform.python_version()} on {platform.system()} {platform.release()}",
            f"packages: {packages}",
        )
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
