"""What work costs: tasks done by models that react, through agentflow and through one plain loop."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentflow.core.record import Record
from benchmarks.clients import AGENTFLOW, STDLIB, Scratch, command_of
from benchmarks.policies import MISTAKEN, POLICIES, due, seen, submission
from benchmarks.prompts import parts, tokens
from benchmarks.report import Row, alone, at_most, compared, exactly
from benchmarks.server import Asked, Script, plays, serving
from benchmarks.tasks import Task, tasks
from tests.support.messages_server import Plays

MOST = {"small": at_most(1.3), "large": at_most(2)}
"""Requests and input tokens, over the plain loop's."""
BOUND = ("competent", "wordy")
"""Who is to be let work: no call of theirs is refused."""
_GOAL = 13
_PASSED = {"verified", "verified_with_caveat", "answered"}
_MAX_TURNS = 60


class Cost(Record):
    """What one client made of one task with one policy."""

    task: Task
    policy: str
    requests: dict[str, int]
    """By role, in the order in which they first asked; a loop without roles has the empty one."""
    input: dict[str, int]
    output: dict[str, int]
    refused: tuple[str, ...]
    """What was answered to calls that were not made."""
    own: float
    """Seconds not spent waiting for the model."""
    verdict: str
    claims: bool
    """Whether it says that the task is done."""
    is_done: bool
    """Whether it is: all tests pass on what it should have changed."""

    @property
    def is_right(self) -> bool:
        return self.claims == self.is_done

    def __str__(self) -> str:
        roles = ", ".join(
            f"{role or 'loop'} {self.requests[role]}/{self.input[role]:,}/{self.output[role]:,}"
            for role in self.requests
        )
        refused = "".join(f"\n      refused: {text}" for text in self.refused)
        named = f"{self.verdict}{'' if self.is_right else ' (WRONG)'}"
        sums = [sum(figures.values()) for figures in (self.requests, self.input, self.output)]
        return "{}; {:,} requests, {:,} in, {:,} out ({}); own {:.1f} s{}".format(
            named, *sums, roles, self.own, refused
        )


def rows(_: int) -> Iterator[Row]:
    """Yield what each policy costs in each task; one round: all but the seconds is the same each time."""
    for policy in POLICIES:
        fit = (task for task in tasks() if policy != MISTAKEN or task.mistake)
        pairs = [(tried(AGENTFLOW, task, policy), tried(STDLIB, task, policy)) for task in fit]
        yield from _rows(policy, pairs)


def _rows(policy: str, pairs: Sequence[tuple[Cost, Cost]]) -> Iterator[Row]:
    if policy in BOUND:
        for ours, theirs in pairs:
            bound = MOST[ours.task.size] if ours.task.kind in {"bug", "feature"} else None
            for name in ("requests", "input"):
                mine, other = (float(sum(getattr(cost, name).values())) for cost in (ours, theirs))
                yield compared(_GOAL, f"{policy}, {ours.task.id}: {name}", [mine], [other], bound)
    refused = float(sum(len(ours.refused) for ours, _ in pairs))
    yield alone(_GOAL, f"{policy}: calls refused", [refused], at_most(0) if policy in BOUND else None)
    wrong = [float(sum(not cost.is_right for cost in costs)) for costs in zip(*pairs, strict=True)]
    yield Row(
        goal=_GOAL,
        metric=f"{policy}: wrong verdicts",
        agentflow=wrong[0],
        reference=wrong[1],
        bound=exactly(0),
    )
    seconds = [[cost.own for cost in costs] for costs in zip(*pairs, strict=True)]
    yield compared(_GOAL, f"{policy}: own s a task", seconds[0], seconds[1])


def tried(client: str, task: Task, policy: str) -> Cost:
    """Let a client do a task, and say what it cost."""
    with tempfile.TemporaryDirectory(prefix="agentflow-bench-") as folder:
        place = Scratch(root=Path(folder, "repo"), home=Path(folder, "home"))
        _prepare(place, task)
        with serving(_script(task, policy)) as server:
            begin = time.monotonic()
            said = _run(client, place, server.address, task)
            wall = time.monotonic() - begin
            asked = sorted(server.asked, key=lambda one: one.arrived)
        cost = _cost(task, policy, asked, wall, said).replace(is_done=_is_done(task, place.root))
        print(f"{task.id}, {policy}, {client}: {cost}", file=sys.stderr)
        return cost


def _prepare(place: Scratch, task: Task) -> None:
    task.lay(place.root)
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgSign=false")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "start")):
        subprocess.run(["git", *identity, *words], cwd=place.root, check=True)
    place.configure(stream=False)


def _script(task: Task, policy: str) -> Script:
    """Return what a model does that follows a policy; what it says is counted as a provider would."""

    def script(role: str, turn: int, raw: bytes) -> Plays:
        now = seen(role, raw)
        calls = due(POLICIES[policy](task, now), now.made) or submission(task, now)
        if turn > _MAX_TURNS:
            raise RuntimeError(f"{task.id}, {policy}: {role} does not come to an end")
        reply = plays(role, turn, calls)
        sent = round(tokens(parts(raw).blocks))
        return reply._replace(
            usage={"input_tokens": sent, "output_tokens": len(json.dumps(reply.blocks)) // 4}
        )

    return script


def _run(client: str, place: Scratch, address: str, task: Task) -> str:
    environment = place.environment(address) | {"BENCHMARK_PROMPT": task.text}
    if client != AGENTFLOW:
        environment["PATH"] = os.pathsep.join((str(place.root / ".venv/bin"), environment["PATH"]))
    words = ("task", "--model", "anthropic", "--max-iterations", "3", "--no-input", "--json", "--", task.text)
    done = subprocess.run(
        command_of(client, *words),
        cwd=place.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if client == AGENTFLOW and not done.stdout:
        raise RuntimeError(done.stderr)
    return done.stdout


def _cost(task: Task, policy: str, asked: Sequence[Asked], wall: float, said: str) -> Cost:
    requests, given, made = Counter[str](), Counter[str](), Counter[str]()
    for one in asked:
        requests[one.role] += 1
        given[one.role] += round(tokens(parts(one.raw).blocks))
        made[one.role] += one.made
    verdict = json.loads(said)["status"] if said else "done"
    return Cost(
        task=task,
        policy=policy,
        requests=dict(requests),
        input=dict(given),
        output=dict(made),
        refused=tuple(_refused(asked)),
        own=wall - sum(one.ended - one.arrived for one in asked),
        verdict=verdict,
        claims=not said or verdict in _PASSED,
        is_done=False,
    )


def _refused(asked: Sequence[Asked]) -> Iterator[str]:
    """Yield what was answered to calls that were not made, each once."""
    found: dict[str, str] = {}
    for one in asked:
        blocks = (block for message in json.loads(one.raw)["messages"] for block in message["content"])
        for block in blocks:
            if block["type"] == "tool_result" and block.get("is_error"):
                found[block["tool_use_id"]] = f"{one.role}: {json.dumps(block['content'])[:300]}"
    yield from found.values()


def _is_done(task: Task, root: Path) -> bool:
    """Run all tests, those of the right change among them, on what was left."""
    if not task.change:
        return True
    for edit in task.change:
        if "test" in edit.file:
            files = task.files
            for each in (one for one in task.change if one.file == edit.file):
                files = each.apply(files)
            (root / edit.file).write_text(files[edit.file], "utf-8")
    environment = {**os.environ, "PATH": os.pathsep.join((str(root / ".venv/bin"), os.environ["PATH"]))}
    done = subprocess.run(task.check, cwd=root, shell=True, capture_output=True, env=environment, check=False)  # noqa: S602
    return done.returncode == 0
