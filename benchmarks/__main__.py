"""`python -m benchmarks`: measure, print one table or lines of JSON, and end 1 if a bound is missed."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from benchmarks import (
    commands,
    imports,
    memory,
    repair,
    rules,
    sandbox,
    state,
    tampering,
    tokens,
    turns,
    verification,
    work,
)
from benchmarks.report import Row, header, json_line, table

LEAST_ROUNDS = 3
SUITES: Mapping[str, Callable[[int], Iterator[Row]]] = MappingProxyType(
    {
        "turns": turns.short,
        "growth": lambda rounds: turns.growth(turns.MIDDLE, rounds),
        "commands": commands.rows,
        "repair": repair.rows,
        "imports": imports.rows,
        "memory": memory.rows,
        "tokens": lambda _: tokens.rows((tokens.MIDDLE, tokens.LONG)),
        "rules": lambda _: rules.rows(rules.TENTHS),
        "state": state.rows,
        "sandbox": sandbox.rows,
        "tampering": tampering.rows,
        "verification": verification.rows,
        "work": work.rows,
    }
)


def main() -> int:
    chosen = _arguments()
    load = os.getloadavg()[0]
    rows: list[Row] = []
    for name in chosen.only or SUITES:
        for row in _measured(name, chosen):
            rows.append(row)
            if chosen.json:
                print(json_line(row), flush=True)
        print(f"{name}: measured", file=sys.stderr)
    print(header(load), file=sys.stderr if chosen.json else sys.stdout)
    if not chosen.json:
        print(f"\n{table(rows)}")
    return int(any(row.holds is False for row in rows))


def _measured(name: str, chosen: argparse.Namespace) -> Iterator[Row]:
    in_parts = {"repair": repair.rows, "rules": rules.rows}
    if name in in_parts:
        yield from in_parts[name](chosen.tenths, chosen.keep)
    else:
        yield from SUITES[name](chosen.rounds)
    if name == "growth" and chosen.long:
        yield from turns.growth(turns.LONG, chosen.rounds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--only", action="append", choices=SUITES, help="measure this alone; may be repeated")
    parser.add_argument("--rounds", type=_rounds, default=LEAST_ROUNDS, help="at least 3; the median counts")
    parser.add_argument(
        "--tenths", type=int, default=repair.TENTHS, help="of the bugs of `repair`, or the changes of `rules`"
    )
    parser.add_argument(
        "--keep", type=Path, help="file of what was measured so far; `repair` goes on from it"
    )
    parser.add_argument("--long", action="store_true", help="runs of 1,000 turns too")
    return parser.parse_args()


def _rounds(text: str) -> int:
    number = int(text)
    if number < LEAST_ROUNDS:
        raise argparse.ArgumentTypeError(f"at least {LEAST_ROUNDS}")
    return number


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
