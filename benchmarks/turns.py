"""Startup, gap, exit, CPU and memory of whole runs, and how the gap grows."""

from collections.abc import Iterator, Sequence

from benchmarks.clients import AGENTFLOW, ANTHROPIC, BLOCK, STDLIB, STREAMED, Measured, measure
from benchmarks.report import Bound, Row, alone, at_most, compared
from benchmarks.server import Script, reading, rehearsed

CLIENTS = (AGENTFLOW, STREAMED, STDLIB, ANTHROPIC)
SHORT, MIDDLE, LONG = 20, 200, 1000
_MEMORY = {SHORT: at_most(45), MIDDLE: at_most(60), LONG: at_most(90)}
_GROWTH = {MIDDLE: at_most(1.3), LONG: at_most(1.5)}
Series = dict[str, list[Measured]]


def interleaved(clients: Sequence[str], script: Script, rounds: int, *, memory: bool = False) -> Series:
    """Run each client once in each round, in an order that is swapped from round to round."""
    series: Series = {client: [] for client in clients}
    for number in range(rounds):
        for client in clients if number % 2 == 0 else reversed(clients):
            series[client].append(measure(client, script, memory=memory))
    return series


def short(rounds: int) -> Iterator[Row]:
    """Yield the figures of a run of 20 turns."""
    interleaved(CLIENTS, rehearsed(1, "true"), 1)  # compiles what is not compiled yet
    runs = interleaved(CLIENTS, rehearsed(SHORT, "true"), rounds)
    startup, gap = at_most(0.22), at_most(0.8)
    yield from _versus(
        1, "startup s", {name: [run.startup for run in of] for name, of in runs.items()}, startup
    )
    yield from _versus(3, "gap ms", {name: [run.gap * 1000 for run in of] for name, of in runs.items()}, gap)
    calm = {name: [run.calm_gap * 1000 for run in of] for name, of in runs.items()}
    yield from _versus(3, "gap ms of the calmest tenth", calm)
    read = interleaved(CLIENTS, reading(SHORT, BLOCK), rounds)
    quiet = {name: [run.gap * 1000 for run in of] for name, of in read.items()}
    yield from _versus(3, "gap ms without a command", quiet, at_most(1))
    yield alone(6, "exit s", [run.exit for run in runs[AGENTFLOW]], at_most(0.1))
    yield from _versus(6, "exit s", {name: [run.exit for run in of] for name, of in runs.items()})
    yield from _versus(4, "CPU s, 20 turns", {name: [run.cpu for run in of] for name, of in runs.items()})
    yield from memory(SHORT, rounds)


def memory(turns: int, rounds: int) -> Iterator[Row]:
    """Yield the peak memory of runs that are sampled."""
    runs = interleaved((AGENTFLOW, STDLIB, ANTHROPIC), rehearsed(turns, "true"), rounds, memory=True)
    figures = {name: [run.pss for run in of] for name, of in runs.items()}
    yield alone(5, f"PSS MB, {turns} turns", figures[AGENTFLOW], _MEMORY[turns])
    yield from _versus(5, f"PSS MB, {turns} turns", figures)


def growth(turns: int, rounds: int) -> Iterator[Row]:
    """Yield how the gap grows over a long run, with small and with large results, and its CPU."""
    clients = (AGENTFLOW, STDLIB, ANTHROPIC)
    for title, command in (("", "true"), (" of 4 KB", f"cat {BLOCK}")):
        runs = interleaved(clients, rehearsed(turns, command), rounds)
        named = f"{turns} turns{title}"
        grown = {name: [run.growth for run in of] for name, of in runs.items()}
        yield alone(4, f"gap last/first tenth, {named}", grown[AGENTFLOW], _GROWTH[turns])
        yield from _versus(4, f"gap last/first tenth, {named}", grown)
        yield from _versus(
            4, f"gap ms, {named}", {n: [run.gap * 1000 for run in of] for n, of in runs.items()}
        )
        yield from _versus(4, f"CPU s, {named}", {name: [run.cpu for run in of] for name, of in runs.items()})
    yield from memory(turns, rounds)


def _versus(
    goal: int, metric: str, figures: dict[str, list[float]], bound: Bound | None = None
) -> Iterator[Row]:
    """Yield agentflow against each reference; the bound is on the ratio to the SDK's loop."""
    ours = figures[AGENTFLOW]
    yield compared(goal, f"{metric} / {ANTHROPIC}", ours, figures[ANTHROPIC], bound)
    if goal == 3:
        yield compared(
            goal, f"{metric}, streamed / {ANTHROPIC}", figures[STREAMED], figures[ANTHROPIC], bound
        )
    yield compared(goal, f"{metric} / {STDLIB}", ours, figures[STDLIB])
