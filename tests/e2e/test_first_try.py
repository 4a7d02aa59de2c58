"""The repair engine beside a model that is paid: one search before its first request, and the tool Repair."""

import json
import os
import signal
from typing import Any

import pytest

from tests.support import play
from tests.support.crew import honest, role_of
from tests.support.live import configure, live
from tests.support.messages_server import Answer, Asked, Plays, refuses, serving, use
from tests.support.repo import NewRepo, Repo, eventually

MENDED = play.CALC["calc.py"].replace("a - b", "a + b")
LONG = 100
PATIENT = {"repair_seconds": LONG, "first_request_seconds": LONG}
"""Seconds for a search that has to come to its end before the first request, also on a busy machine."""


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.CALC)


def give_hook(repo: Repo, command: str, **more: Any) -> None:
    """Have a command run before each call of a tool."""
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks, **more}))


def told(asked: Asked) -> str:
    """Return the task prompt of a request."""
    return json.dumps(asked.body["messages"][0])


def test_a_bug_of_one_operator_costs_no_request_also_after_a_kill(repo: Repo) -> None:
    flag = repo.home / "reached"
    give_hook(repo, f"grep -q '\"Read\"' && [ ! -e {flag} ] && touch {flag} && sleep 5; true")
    with serving(policy=honest) as server:
        configure(repo, **PATIENT, endpoint=server.address)
        process = repo.start("task", play.TEXT)
        eventually(flag.exists)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert repo.read("calc.py") == play.CALC["calc.py"]
        done = repo.run("resume")
    assert done.code == 0, done.err
    assert server.asked == []
    assert repo.read("calc.py") == MENDED
    assert "repair engine; only your tests vouch for this fix" in " ".join(done.out.split())
    assert repo.state()["usage"]["input"] == 0
    (tried,) = repo.events("RepairTried")
    assert tried["found"]
    assert "`-` to `+`" in tried["account"]
    (run,) = repo.runs("implementer")
    assert run.head["model"] == "repair"
    log = repo.run("log").out
    assert "✓ repair engine  calc.py:2" in log
    assert "the built-in repair engine found a change" in log
    assert "found by the built-in repair engine" in (repo.folder / "report.md").read_text()
    assert repo.run("verify", repo.folder.name).code == 0


def test_a_repair_that_a_rule_forbids_leaves_the_work_to_the_model(repo: Repo) -> None:
    give_hook(repo, "true", permissions={"deny": ["Edit(calc.py)"]})
    with serving(refuses(400)) as server:
        done = live(repo, server, **PATIENT)
    assert done.code == 6, done.err
    assert repo.read("calc.py") == play.CALC["calc.py"]
    (asked,) = server.asked
    assert role_of(asked) == "implementer"
    assert "Searched already" in told(asked)
    assert "not made: a tool refused the edit" in told(asked)


RATES = {
    "prices.py": "def net(price, rate):\n    return price * (1 - rate)\n",
    "tests/test_prices.py": """import unittest

from prices import net


class PriceTest(unittest.TestCase):
    def test_net(self):
        self.assertEqual(net(10, 0.5), 15)
""",
}


def test_several_repairs_are_told_to_the_model_and_none_is_made(new_repo: NewRepo) -> None:
    repo = new_repo(RATES)
    with serving(refuses(400)) as server:
        done = live(repo, server, **PATIENT)
    assert done.code == 6, done.err
    assert repo.diff() == ""
    (asked,) = server.asked
    assert "differ on other inputs; none was made" in told(asked)
    assert "(1 + rate)" in told(asked) or "`-` to `+`" in told(asked)


def test_a_model_has_the_tool_where_tests_fail_and_its_edit_is_a_call_like_any(repo: Repo) -> None:
    seen, flag = repo.home / "seen", repo.home / "denied"
    give_hook(
        repo,
        f"tee -a {seen} | grep -q '\"Edit\"' && [ ! -e {flag} ] && touch {flag}"
        " && echo not now >&2 && exit 2; true",
    )
    calls: tuple[dict[str, str], ...] = ({"path": "calc.py"}, {})

    def policy(asked: Asked) -> Answer:
        if role_of(asked) != "implementer" or asked.turn >= len(calls):
            return honest(asked)
        return Plays((use("Repair", calls[asked.turn], f"toolu_{asked.turn}"),))

    with serving(policy=policy) as server:
        done = live(repo, server, play.WHOLE_CREW, **PATIENT)
    assert done.code == 0, done.err
    assert repo.read("calc.py") == MENDED
    assert repo.events("RepairTried") == []  # the task is not about failing tests
    offered = {role_of(asked): "Repair" in asked.tools for asked in server.asked}
    assert offered == {"explorer": False, "planner": False, "implementer": True, "verifier": False}
    (run,) = repo.runs("implementer")
    first, second = (result["content"] for _, result in run.calls[:2])
    assert first.startswith("not made: not now\nfound: calc.py:2")
    assert second.startswith("made: calc.py:2")
    assert "-    return a - b\n+    return a + b" in second
    tools = [json.loads(line)["tool_name"] for line in seen.read_text().replace("}{", "}\n{").splitlines()]
    assert [name for name in tools if name in {"Repair", "Edit"}] == ["Repair", "Edit", "Repair", "Edit"]


def test_a_model_has_no_such_tool_where_a_trial_of_an_edit_takes_long(new_repo: NewRepo) -> None:
    begin = "def test_add(self):\n        "
    slow = play.CALC["tests/test_calc.py"].replace(begin, f"{begin}__import__('time').sleep(1)\n        ")
    repo = new_repo({**play.CALC, "tests/test_calc.py": slow})
    with serving(policy=honest) as server:
        done = live(repo, server, play.WHOLE_CREW, **PATIENT)
    assert done.code == 0, done.err
    assert not any("Repair" in asked.tools for asked in server.asked)
    assert repo.run("replay").code == 0


def test_a_search_that_is_stopped_is_as_if_it_had_never_been(new_repo: NewRepo) -> None:
    begin = "def test_add(self):\n        "
    slow = play.CALC["tests/test_calc.py"].replace(begin, f"{begin}__import__('time').sleep(1)\n        ")
    repo = new_repo({**play.CALC, "tests/test_calc.py": slow})
    with serving(refuses(400)) as server:
        configure(repo, **PATIENT, endpoint=server.address)
        with repo.start("task", play.TEXT) as process:
            eventually(lambda: bool(repo.events("Searched")))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode == 130
    assert repo.events("RepairTried") == []
    assert repo.state().get("first_try") is None


def test_a_task_that_asks_for_more_than_green_tests_goes_to_the_model_at_once(repo: Repo) -> None:
    with serving(refuses(400)) as server:
        done = live(repo, server, "fix the failing test_add by adding amounts as decimals", **PATIENT)
    assert done.code == 6, done.err
    assert len(server.asked) == 1
    assert repo.diff() == ""
    assert repo.events("RepairTried", "Searched") == []


def test_a_message_before_the_repair_is_made_leaves_the_work_to_the_model(repo: Repo) -> None:
    reached, said = repo.home / "reached", repo.home / "said"
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": WAITING.format(reached, said)}]}]}
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks}))
    with serving(refuses(400)) as server:
        configure(repo, **PATIENT, endpoint=server.address)
        with repo.start("task", play.TEXT) as process:
            eventually(reached.exists)
            assert repo.run("say", "add has to take texts too").code == 0
            said.touch()
            process.communicate(timeout=120)
    assert process.returncode == 6
    assert repo.diff() == ""
    (asked,) = server.asked
    assert "add has to take texts too" in json.dumps(asked.body["messages"])
    assert "you have sent another message" in told(asked)


WAITING = "touch {}; until [ -e {} ]; do sleep 0.05; done"

TWO = {
    "a.py": "def add(a, b):\n    return a - b\n",
    "b.py": "def double(a):\n    return a + 3\n",
    "tests/test_both.py": """import unittest

from a import add
from b import double


class BothTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual([add(1, 2), add(5, 5), add(-1, 7)], [3, 10, 6])

    def test_double(self):
        self.assertEqual([double(1), double(4), double(-3)], [2, 8, -6])
""",
}
FINISHED = {"file_path": "b.py", "old_string": "a + 3", "new_string": "a + a"}


def test_after_a_repair_that_is_made_in_part_the_model_sees_it_and_the_verifier_is_asked(
    new_repo: NewRepo,
) -> None:
    repo = new_repo(TWO)
    flag = repo.home / "denied"
    once = (
        f"grep -q '\"Edit\".*b\\.py' && [ ! -e {flag} ] && touch {flag} && echo not now >&2 && exit 2; true"
    )
    give_hook(repo, once)
    turns: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Read", {"file_path": "b.py"}),
        ("Edit", FINISHED),
        ("SubmitChange", {"summary": "doubles", "files": ["a.py", "b.py"]}),
    )

    def policy(asked: Asked) -> Answer:
        if role_of(asked) != "implementer":
            return honest(asked)
        name, given = turns[min(asked.turn, 2)]
        return Plays((use(name, given, f"toolu_{asked.turn}"),))

    with serving(policy=policy) as server:
        done = live(repo, server, **PATIENT)
    assert done.code == 0, done.err
    first = server.asked[0]
    assert "not made: a tool refused the edit" in told(first)
    assert "+    return a + b" in told(first)
    assert "verifier" in {role_of(asked) for asked in server.asked}
