"""A task by a live model behind a server of the test."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from tests.support.crew import role_of
from tests.support.messages_server import Asked, MessagesServer
from tests.support.repo import Done, Repo

KEY = "sk-e2e-0123456789-secret"
MODELS = {"explorer": "big-1", "planner": "big-1", "implementer": "small-1", "verifier": "small-1"}
QUICK = {"retry": {"tries": 4, "base_seconds": 0, "max_seconds": 0}}


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
