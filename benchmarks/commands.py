"""What the commands that do no work cost, against Python doing nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from benchmarks.clients import AGENTFLOW, Scratch, command_of, scratch, start
from benchmarks.report import Bound, Row, alone, at_most, compared, exactly
from benchmarks.server import rehearsed, serving

LEAST_ROUNDS = 9
"""The runs are short, and a single one says little."""
_PROBE = """
import sys
from agentflow.cli.app import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
HEAVY = frozenset({"anthropic", "git", "pydantic", "httpx2", "anyio", "asyncio"})
"""What no command loads that only reads."""
FRONT = HEAVY | {"frontmatter", "yaml"}
COMMANDS: tuple[tuple[str, Bound | None, frozenset[str]], ...] = (
    ("--version", at_most(2.5), FRONT),
    ("--help", at_most(10), FRONT),
    ("status", None, HEAVY),
)


def rows(rounds: int) -> Iterator[Row]:
    """Yield CPU and forbidden modules of each command, in a repository that holds a finished task."""
    with scratch() as place:
        with serving(rehearsed(1, "true")) as server:
            start(AGENTFLOW, place, server.address).wait()
        for words, bound, forbidden in COMMANDS:
            yield cost(place, words, bound, max(rounds, LEAST_ROUNDS))
            found = sorted(loaded(place, words) & forbidden)
            title = f"{words}: forbidden modules" + (f" ({', '.join(found)})" if found else "")
            yield alone(2, title, [float(len(found))], exactly(0))


def cost(place: Scratch, words: str, bound: Bound | None, rounds: int) -> Row:
    """Return the CPU of a command against `python -c pass`, in interleaved rounds."""
    pair = (command_of(AGENTFLOW, words), [sys.executable, "-c", "pass"])
    ours, bare = [], []
    for number in range(rounds):
        order = pair if number % 2 == 0 else pair[::-1]
        spent = {argv[0] == pair[0][0]: cpu_ms(place, argv) for argv in order}
        ours.append(spent[True])
        bare.append(spent[False])
    return compared(2, f"{words} CPU ms / python -c pass", ours, bare, bound)


def cpu_ms(place: Scratch, argv: Sequence[str]) -> float:
    child = subprocess.Popen(
        argv, cwd=place.root, env=place.environment(""), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0  # it was waited for here
    return (used.ru_utime + used.ru_stime) * 1000


def loaded(place: Scratch, words: str) -> set[str]:
    """Return the top names of all modules that a command has loaded when it ends."""
    probed = subprocess.run(
        [sys.executable, "-c", _PROBE, words],
        cwd=place.root,
        env=place.environment(""),
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in probed.stderr.splitlines()[-1].split()}
