"""What requests hold: how they grow, what a cache reads of them, and how large the first of a role is."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import groupby

from benchmarks.clients import AGENTFLOW, BLOCK, STDLIB, command_of, scratch, start
from benchmarks.prompts import Parts, append_only, billed, parts, prefix_share, tokens
from benchmarks.report import Row, alone, at_least, at_most, compared, exactly
from benchmarks.server import Asked, Calls, Script, rehearsed, serving, submission
from tests.support.messages_server import Plays
from tests.support.play import CALC

CAT = f"cat {BLOCK}"
MIDDLE, LONG = 40, 200
BURST = 24
"""Calls of the one turn that adds more blocks than a provider looks back."""
_MEND = {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}
_WORK = {"explorer": 10, "planner": 3, "implementer": 40, "verifier": 5}
"""Turns of each role in the task of four roles, before the one by which it ends."""
FIRST_REQUEST = 1_400
"""Tokens that a role's prompt and tools may have."""


def rows(turns: Sequence[int]) -> Iterator[Row]:
    """Yield the figures of runs of these lengths, of a task of four roles, and across `resume`."""
    for length in turns:
        yield from lengthening(length)
    yield from _shares("a step of more than 20 blocks", asked(AGENTFLOW, bursting(MIDDLE)))
    yield from four_roles()
    yield across_resume()


def asked(client: str, script: Script, files: dict[str, str] | None = None) -> list[Asked]:
    """Return the requests of a client's run."""
    with scratch(files) as place, serving(script) as server:
        start(client, place, server.address).wait()
        return server.asked


def lengthening(turns: int) -> Iterator[Row]:
    """Yield the figures of one role's run of so many turns of 4 KB, beside the bare loop's."""
    ours = asked(AGENTFLOW, rehearsed(turns, CAT))
    theirs = asked(STDLIB, rehearsed(turns, CAT))
    title = f"{turns} turns of 4 KB"
    yield from _shares(title, ours)
    units = [
        billed([parts(one.raw) for one in of if one.role in {"", "implementer"}]) for of in (ours, theirs)
    ]
    bound = at_most(1.05) if turns == MIDDLE else None
    yield compared(10, f"billed units, {title} / {STDLIB}", [units[0].units], [units[1].units], bound)


def _shares(title: str, requests: list[Asked]) -> Iterator[Row]:
    prompts = working(requests)
    read, shared = billed(prompts).read_share, prefix_share(prompts)
    yield alone(7, f"append-only ratio, {title}", [append_only(prompts)], exactly(1))
    yield compared(8, f"cache read share / prefix share, {title}", [read], [shared], at_least(0.99))


def working(requests: list[Asked]) -> list[Parts]:
    """Return the prompts of the implementer's run."""
    return [parts(one.raw) for one in requests if one.role == "implementer"]


def bursting(turns: int) -> Script:
    """Return a script of so many turns, the middle one of which makes many calls at once."""
    one = ("Bash", {"command": CAT})

    def script(role: str, turn: int, raw: bytes) -> Calls:
        if role != "implementer" or turn >= turns:
            return submission(role, raw)
        return (one,) * (BURST if turn == turns // 2 else 1)

    return script


def whole_task(role: str, turn: int, raw: bytes) -> Calls:
    """Play a crew that mends the bug of CALC and reads 4 KB in each other turn."""
    if turn >= _WORK[role]:
        return submission(role, raw)
    if role == "implementer":
        return (
            (("Read", {"file_path": "calc.py"}), ("Edit", _MEND))
            if turn == 0
            else (("Bash", {"command": CAT}),)
        )
    return (("Read", {"file_path": BLOCK}),)


def four_roles() -> Iterator[Row]:
    """Yield the figures of a whole task, and of the first request of each role in it."""
    requests = asked(AGENTFLOW, whole_task, CALC)
    for role, own in groupby(requests, key=lambda one: one.role):
        prompts = [parts(one.raw) for one in own]
        yield alone(7, f"append-only ratio, four roles: {role}", [append_only(prompts)], exactly(1))
        yield from first_request(role, prompts[0])
    bill = billed(parts(one.raw) for one in requests)
    bound = at_most(0.23)
    yield compared(10, "billed units, four roles / without caching", [bill.units], [bill.sent], bound)


def first_request(role: str, prompt: Parts) -> Iterator[Row]:
    """Yield the tokens of a role's first request; what its brief says is the project's own text."""
    fixed = tokens((*prompt.system, *prompt.tools))
    yield alone(9, f"first request, {role}: system + tools", [fixed], at_most(FIRST_REQUEST))
    for name, blocks in (("system", prompt.system), ("tools", prompt.tools), ("text", prompt.text)):
        yield alone(9, f"first request, {role}: {name}", [tokens(blocks)])


def across_resume() -> Row:
    """Kill the command while it waits for an answer, resume, and compare the two requests' bytes."""
    before, after = killed_and_resumed(MIDDLE // 4)
    return alone(8, "same bytes after kill -9 and resume", [float(before == after)], exactly(1))


def killed_and_resumed(turn: int) -> tuple[bytes, bytes]:
    """Return the request that was never answered, and the first one after `resume`."""
    plays = rehearsed(turn + 2, CAT)

    def silent(role: str, number: int, raw: bytes) -> Calls | Plays | None:
        return None if (role, number) == ("implementer", turn) else plays(role, number, raw)

    with scratch() as place, serving(silent) as server:
        child = start(AGENTFLOW, place, server.address)
        while child.poll() is None and not _is_waiting(server.asked, turn):
            time.sleep(0.01)
        child.kill()
        child.wait()
        seen = len(server.asked)
        subprocess.run(
            command_of(AGENTFLOW, "resume"),
            cwd=place.root,
            env=place.environment(server.address),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return server.asked[seen - 1].raw, server.asked[seen].raw


def _is_waiting(requests: list[Asked], turn: int) -> bool:
    return bool(requests) and (requests[-1].role, requests[-1].turn) == ("implementer", turn)
