"""A suite that takes long does not keep a paid model waiting: its first role reads beside it."""

import signal
import subprocess
import time
from collections.abc import Callable
from itertools import count

import pytest

from tests.support import play
from tests.support.crew import honest
from tests.support.live import KEY, configure, live
from tests.support.messages_server import Answer, Asked, MessagesServer, refuses, serving
from tests.support.repo import COMMAND, NewRepo, Repo, eventually

SLOW = 5
"""Seconds; more than the first role waits for."""
TEXT = "fix add in calc.py"


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    slow = "import time\nimport unittest\n\n\nclass Slow(unittest.TestCase):\n    def test_slow(self):\n"
    return new_repo({**play.CALC, "tests/test_slow.py": f"{slow}        time.sleep({SLOW})\n"})


def watching(repo: Repo, seen: list[int]) -> Callable[[Asked], Answer]:
    """Return the honest policy, which notes how many records there were at each request."""

    def policy(asked: Asked) -> Answer:
        seen.append(len(repo.evidence()))
        return honest(asked)

    return policy


def texts(server: MessagesServer) -> list[str]:
    return [str(asked.body["messages"]) for asked in server.asked]


def test_the_first_request_waits_for_no_slow_suite_and_the_failing_names_follow(repo: Repo) -> None:
    seen: list[int] = []
    with serving(policy=watching(repo, seen)) as server:
        done = live(repo, server, TEXT, "--json", first_request_seconds=0)
    assert done.code == 0, done.err
    assert seen[0] == 0
    first, *others = texts(server)
    assert "They run now" in first
    assert "test_add" not in first
    told = [number for number, text in enumerate(others, 1) if "failing: " in text]
    assert told
    edits = [number for number, text in enumerate(others, 1) if "'Edit'" in text]
    assert told[0] == edits[0]  # with the result of the first call that could change something
    assert [run["check"] for run in done.json["checks"]]
    (record, *_) = sorted(repo.evidence(), key=lambda each: each["id"])
    assert (record["surface"], record["code"]) == ("base", "base")
    assert repo.run("replay").code == 0
    assert repo.run("verify", done.json["task_id"]).code == 0


def test_a_task_that_is_killed_meanwhile_runs_them_again(repo: Repo) -> None:
    turns = count()

    def policy(asked: Asked) -> Answer:
        if not next(turns):
            time.sleep(2)  # the kill comes before the first reply
        return honest(asked)

    with serving(policy=policy) as server:
        configure(repo, first_request_seconds=0)
        places = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}
        with subprocess.Popen(
            [str(COMMAND), "task", TEXT],
            cwd=repo.root,
            env={**repo.environment, **places},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            eventually(lambda: bool(server.asked))
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert repo.state()["gates"]["refinement"]["status"] == "passed"
        done = repo.run("resume", "--json", env=places)
    assert done.code == 0, done.err
    base = [each for each in repo.evidence() if each["code"] == "base" and each["surface"] == "base"]
    assert base[0]["tests"]["failed"] == 1


def test_a_rejected_key_is_told_before_a_slow_suite_ends(repo: Repo) -> None:
    with serving(refuses(401, "authentication_error", "no")) as server:
        done = live(repo, server, TEXT, first_request_seconds=0)
    assert done.code == 6
    assert "Your API key was rejected (401: no)" in done.out
    assert repo.evidence() == []
