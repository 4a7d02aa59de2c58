"""A task by a live model behind a server of the test."""

import json
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

from tests.support.crew import role_of
from tests.support.messages_server import Asked, MessagesServer
from tests.support.repo import Done, Repo

KEY = "sk-e2e-0123456789-secret"
MODELS = {"explorer": "big-1", "planner": "big-1", "implementer": "small-1", "verifier": "small-1"}
QUICK = {
    "retry": {"tries": 4, "base_seconds": 0, "max_seconds": 0},
    "repair_seconds": 0,
    "first_request_seconds": 120,  # so that what the first request says depends on no clock
    "judges": "always",  # the crews that play here have a verifier
}


def live(repo: Repo, server: MessagesServer, *words: str, **settings: Any) -> Done:
    configure(repo, **settings)
    return repo.task(*words, env={"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY})


def configure(repo: Repo, **settings: Any) -> None:
    path = repo.home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**QUICK, "models": {"deep": "big-1", "fast": "small-1"}, **settings}))


def runs(server: MessagesServer) -> Iterator[tuple[str, list[Asked]]]:
    """Yield the requests of each role, one after the other."""
    for role, asked in groupby(server.asked, key=role_of):
        yield role, list(asked)


def meaning(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without its cache breakpoints."""
    content = [
        {key: item for key, item in block.items() if key != "cache_control"} for block in message["content"]
    ]
    return {**message, "content": content}


def breakpoints(asked: Asked) -> int:
    return asked.raw.count(b'"cache_control"')


def assert_only_appended(asked: list[Asked]) -> None:
    for before, after in pairwise(asked):
        kept = [meaning(message) for message in before.body["messages"]]
        assert [meaning(message) for message in after.body["messages"]][: len(kept)] == kept
        heads = [each.raw.partition(b'"messages"')[0] for each in (before, after)]
        assert heads[0] == heads[1]
    for each in asked:
        assert 2 <= breakpoints(each) <= 4
        assert "cache_control" in each.body["system"][-1]
        assert "cache_control" in each.body["messages"][-1]["content"][-1]
