"""A conversation never overflows: what is archived, summarized and read again, with default settings."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.support.live import live
from tests.support.messages_server import Answer, Asked, MessagesServer, Plays, serving, use
from tests.support.repo import CALC, Done, NewRepo, Repo

QUESTION = ("where is", "add defined?")
FOUND = {"summary": "in calc.py", "findings": [{"claim": "here", "path": "calc.py", "line": 1}]}
SUBMIT = use("SubmitFindings", {**FOUND, "open_questions": []})
SUMMARY = {
    "facts": ["big.txt holds numbers"],
    "goals": ["say where add is"],
    "open_questions": [],
    "discarded": [],
}
ROLE = """---
name: explorer
description: Looks.
model: opus
tools: [Read, Grep, Glob]
maxTurns: 200
limits: {tool_calls: 400}
metadata: {agentflow-role: explorer}
---
You look.
"""
LINES = 410
PAGES = 10


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    """Return a repository with a file whose pages fill a result each."""
    made = new_repo(
        {**CALC, "big.txt": "".join(f"{number:07d} {'x' * 60}\n" for number in range(PAGES * LINES))}
    )
    made.give_role("explorer", ROLE)
    return made


def is_summary(asked: Asked) -> bool:
    return asked.tools == {"SubmitSummary"}


def page(number: int) -> dict[str, Any]:
    return use("Read", {"file_path": "big.txt", "offset": 1 + number % PAGES * LINES, "limit": LINES}, f"t{number}")


class Reader:
    """A model that reads page after page, several a turn, and then says where it is."""

    def __init__(self, turns: int, a_turn: int = 1) -> None:
        self.turns = turns
        self.a_turn = a_turn
        self.made = 0
        self.summary: Callable[[Asked], Answer] = lambda _: Plays((use("SubmitSummary", SUMMARY),))

    def __call__(self, asked: Asked) -> Answer:
        if is_summary(asked):
            return self.summary(asked)
        if self.made == self.turns:
            return self.last(asked)
        first = self.made * self.a_turn
        self.made += 1
        return Plays(tuple(page(first + number) for number in range(self.a_turn)))

    def last(self, asked: Asked) -> Answer:  # noqa: ARG002
        return Plays((SUBMIT,))


def work(server: MessagesServer) -> list[dict[str, Any]]:
    """Return the bodies of the requests but those for summaries."""
    return [asked.body for asked in server.asked if not is_summary(asked)]


def plain(body: dict[str, Any]) -> list[str]:
    """Return each message of a request without its cache breakpoint."""
    return [
        json.dumps(each).replace(', "cache_control": {"type": "ephemeral"}', "") for each in body["messages"]
    ]


def survives(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a request begins with all of the one before it."""
    head = one["tools"] == other["tools"] and one["system"] == other["system"]
    return head and plain(other)[: len(one["messages"])] == plain(one)


def size(body: dict[str, Any]) -> int:
    return sum(map(len, plain(body)))


def results(body: dict[str, Any]) -> list[str]:
    blocks = [block for each in body["messages"] for block in each["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def answered(done: Done) -> None:
    assert done.code == 0, done.err
    assert "in calc.py" in done.out


@pytest.mark.parametrize(("turns", "a_turn"), [(10, 1), (24, 4)], ids=["300 KB", "3 MB"])
def test_output_that_would_not_fit_is_archived_and_the_task_ends_right(
    repo: Repo, turns: int, a_turn: int
) -> None:
    with serving(policy=Reader(turns, a_turn)) as server:
        answered(live(repo, server, *QUESTION))
    told = repo.events("Compacted")
    assert told
    assert all(each["from_tokens"] >= 72_000 > each["to_tokens"] for each in told)
    assert max(map(size, work(server))) / 4 < 96_000
    changed = sum(not survives(one, other) for one, other in pairwise(work(server)))
    assert changed == len(told)  # each request begins with the one before it but for the compactions
    for body in work(server):
        assert "add defined?" in json.dumps(body["messages"][0])
        newest = results({"messages": body["messages"][-1:]})
        assert not [each for each in newest if each.startswith("[archived")]
    assert "RecallOutput" not in {tool["name"] for tool in work(server)[0]["tools"]}
    assert "RecallOutput" in {tool["name"] for tool in work(server)[-1]["tools"]}
    for call_id in told[0]["archived"]:
        kept = (repo.folder / f"outputs/{call_id}.out").read_text("utf-8")
        assert kept in [each for body in work(server) for each in results(body)]
