"""The bug of CALC is mended through ANTHROPIC_BASE_URL, and what goes wrong on the way ends as it should."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.crew import honest, role_of
from tests.support.live import KEY, MODELS, assert_only_appended, configure, live, runs
from tests.support.messages_server import (
    Answer,
    Asked,
    Plays,
    Raw,
    Stream,
    refuses,
    serving,
    text,
    use,
)
from tests.support.repo import NewRepo, Repo

OFFERED = {
    "explorer": {
        "Read",
        "Grep",
        "Glob",
        "Bash",
        "Skill",
        "AskUserQuestion",
        "SubmitFindings",
    },
    "planner": {"Read", "Grep", "Glob", "Remember", "TodoWrite", "Skill", "Escalate", "SubmitPlan"},
    "implementer": {
        "Read",
        "Write",
        "Edit",
        "MultiEdit",
        "Grep",
        "Glob",
        "Bash",
        "RunTests",
        "Mutants",
        "RecallOutput",
        "Remember",
        "Skill",
        "Escalate",
        "SubmitChange",
    },
    "verifier": {
        *("Read", "Grep", "Bash", "RunTests", "Mutants", "TryTest", "RecallOutput", "Remember", "Skill"),
        "SubmitVerdict",
    },
}


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


def faulty(*faults: Answer, at: str = "implementer", turn: int = 1) -> Callable[[Asked], Answer]:
    """Return the honest policy, which first meets these faults at one turn of one role."""
    left = list(faults)

    def policy(asked: Asked) -> Answer:
        meets = left and role_of(asked) == at and asked.turn == turn
        return left.pop(0) if meets else honest(asked)

    return policy


def everything_below(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


LINES: dict[str, Mapping[str, Any]] = {
    "thin-plain": {},
    "thin-streamed": {"stream": True},
    "sdk-plain": {"transport": "sdk"},
    "sdk-streamed": {"transport": "sdk", "stream": True},
}


@pytest.mark.parametrize("settings", LINES.values(), ids=LINES)
def test_an_honest_crew_is_verified(repo: Repo, settings: Mapping[str, Any]) -> None:
    with serving(policy=honest) as server:
        done = live(repo, server, "--json", play.WHOLE_CREW, **settings)
    assert done.code == 0, done.err
    assert repo.read("calc.py") == play.CALC["calc.py"].replace("a - b", "a + b")
    assert (done.json["model"], done.json["status"]) == ("anthropic", "verified")
    found = dict(runs(server))
    assert list(found) == list(MODELS)
    assert {role: asked[0].tools for role, asked in found.items()} == OFFERED
    assert {role: {each.body["model"] for each in asked} for role, asked in found.items()} == {
        role: {model} for role, model in MODELS.items()
    }
    for asked in found.values():
        assert_only_appended(asked)
    used = done.json["usage"]
    replies = len(server.asked)
    assert (used["input"], used["output"], used["cache_read"]) == (10 * replies, 5 * replies, 3 * replies)
    assert used["cost_usd"] is None
    assert all(each.body.get("stream", False) is settings.get("stream", False) for each in server.asked)
    assert KEY not in everything_below(repo.root) + done.out + done.err


BUSY = (
    refuses(429, "rate_limit_error", retry_after="1"),
    refuses(529, "overloaded_error"),
    refuses(529, "overloaded_error"),
)


def test_a_busy_server_is_asked_again(repo: Repo) -> None:
    with serving(policy=faulty(*BUSY)) as server:
        done = live(repo, server)
    assert done.code == 0, done.err
    tries = [asked.raw for asked in server.asked if role_of(asked) == "implementer" and asked.turn == 1]
    assert len(tries) == 4
    assert len(set(tries)) == 1
    retried = repo.events("Retried")
    assert [event["attempt"] for event in retried] == [1, 2, 3]
    assert "429: no; try 2 in " in repo.run("log").out
    assert retried[0]["seconds"] >= 1
    assert "429" in retried[0]["reason"]


def test_the_next_model_of_a_tier_does_the_work_of_one_that_is_gone(repo: Repo) -> None:
    def policy(asked: Asked) -> Answer:
        gone = asked.body["model"] == "small-1"
        return refuses(404, "not_found_error", "model: small-1") if gone else honest(asked)

    with serving(policy=policy) as server:
        done = live(repo, server, models={"deep": "big-1", "fast": ["small-1", "small-2"]})
    assert done.code == 0, done.err
    found = {role: [each.body["model"] for each in asked] for role, asked in runs(server)}
    assert found["implementer"] == ["small-1", *["small-2"] * 3]
    assert set(found["verifier"]) == {"small-2"}
    (retried,) = repo.events("Retried")
    assert (retried["run"], retried["model"], retried["seconds"]) == (1, "small-2", 0)
    assert "continuing with small-2" in repo.run("log").out


CUT = Plays((use("Bash", {"command": "touch planted"}),))


def test_no_tool_runs_from_a_cut_stream(repo: Repo) -> None:
    cut = Stream(tuple(CUT.events("small-1")[:-1]))
    with serving(policy=faulty(cut)) as server:
        done = live(repo, server, stream=True)
    assert done.code == 0, done.err
    assert not (repo.root / "planted").exists()
    assert len(repo.events("Retried")) == 1
    assert {record["by"] for record in repo.evidence()} == {"program"}


@pytest.mark.parametrize("stream", [False, True])
def test_no_tool_runs_from_a_reply_cut_by_max_tokens(repo: Repo, *, stream: bool) -> None:
    cut = CUT._replace(stop="max_tokens")
    policy = faulty(cut, turn=1)

    def shifted(asked: Asked) -> Answer:
        late = any(
            "touch" in str(message) or "max_tokens" in str(message) for message in asked.body["messages"]
        )
        if role_of(asked) == "implementer" and late:
            return honest_later(asked)
        return policy(asked)

    with serving(policy=shifted) as server:
        done = live(repo, server, stream=stream)
    assert done.code == 0, done.err
    assert not (repo.root / "planted").exists()
    result = repo.runs("implementer")[0].results[1]
    assert result["is_error"]
    assert "max_tokens" in result["content"]


def honest_later(asked: Asked) -> Answer:
    """Return what the honest implementer says when one of its turns was lost."""
    earlier = {**asked.body, "messages": asked.body["messages"][2:]}
    return honest(asked._replace(raw=json.dumps(earlier).encode()))


def test_a_server_that_stays_down_parks_the_task(repo: Repo) -> None:
    with serving(refuses(503)) as server:
        done = live(repo, server)
    assert done.code == 6
    assert repo.state()["status"] == "suspended"
    assert "503" in done.out + done.err


def test_an_address_where_nobody_listens_is_named_soon(repo: Repo) -> None:
    configure(repo, retry={}, models={"deep": ["big-1", "big-2"], "fast": "small-1"})
    begin = time.monotonic()
    done = repo.task("make the failing tests pass", env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    assert time.monotonic() - begin < 30
    assert done.code == 6
    assert repo.state()["status"] == "suspended"
    for words in ("nothing listens at 127.0.0.1:9 (3 tries)", "ANTHROPIC_BASE_URL"):
        assert words in done.out
    assert [event["reason"].count("nothing listens") for event in repo.events("Retried")] == [1, 1]
    assert repo.evidence() == []


def test_a_redirect_to_another_port_is_refused_by_name(repo: Repo) -> None:
    with serving(policy=honest) as elsewhere:
        aim = elsewhere.address
        with serving(Raw(b"", 307, (("location", f"{aim}/v1/messages"),))) as server:
            done = live(repo, server)
    assert done.code == 6
    assert elsewhere.asked == []
    assert aim.removeprefix("http://") in done.out + done.err
    assert len(server.asked) == 1


def test_a_wrong_key_ends_with_six_and_stands_nowhere(repo: Repo) -> None:
    with serving(refuses(401, "authentication_error", f"invalid key: {KEY}")) as server:
        done = live(repo, server)
    assert done.code == 6
    assert len(server.asked) == 1
    said = "Your API key was rejected (401: invalid key: [redacted]). Correct it, then run agentflow resume"
    assert said in done.out
    assert KEY not in everything_below(repo.root) + done.out + done.err


REFUSALS: dict[str, tuple[Answer, dict[str, Any], str]] = {
    "a wrong key": (refuses(401, "authentication_error", "no"), {}, "Your API key was rejected (401: no)"),
    "a key without the right": (refuses(403, "permission_error", "no"), {}, "may not do this (403: no)"),
    "an empty account": (
        refuses(400, "invalid_request_error", "Your credit balance is too low"),
        {},
        "(400: Your credit balance is too low)",
    ),
    "no such model": (
        refuses(404, "not_found_error", "model: big-0"),
        {"models": {"deep": "big-0", "fast": "big-0"}},
        "Correct the model's id",
    ),
}


@pytest.mark.parametrize(("answer", "settings", "words"), REFUSALS.values(), ids=REFUSALS)
def test_what_a_person_can_correct_suspends_the_task_and_resume_goes_on(
    repo: Repo, answer: Answer, settings: dict[str, Any], words: str
) -> None:
    with serving(answer) as server:
        done = live(repo, server, **settings)
        again = repo.run("resume", env={"ANTHROPIC_BASE_URL": server.address})
    assert (done.code, again.code, len(server.asked)) == (6, 6, 2)
    assert repo.state()["status"] == "suspended"
    assert words in done.out
    assert "then run agentflow resume" in done.out
    with serving(policy=honest) as server:
        configure(repo)
        done = repo.run("resume", "--json", env={"ANTHROPIC_BASE_URL": server.address})
    assert (done.code, done.json["status"]) == (0, "verified"), done.err
    assert {asked.body["model"] for asked in server.asked} <= set(MODELS.values())


def test_a_question_that_met_a_wrong_key_is_not_answered(repo: Repo) -> None:
    with serving(refuses(401, "authentication_error", f"invalid key: {KEY}")) as server:
        configure(repo)
        places = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}
        done = repo.run("ask", "where", "is", "add", "defined?", env=places)
    assert done.code == 6
    first, *_, last = done.out.splitlines()
    assert first.startswith("! Your API key was rejected (401: ")
    assert last == "next       agentflow resume continues it"


def test_without_a_key_it_says_what_to_set(repo: Repo) -> None:
    done = repo.task("--model", "anthropic", "mend it")
    assert done.code == 6
    assert "ANTHROPIC_API_KEY" in done.err
    assert not (repo.root / ".claude").exists()


def test_a_platform_that_is_not_set_up_says_so_once(repo: Repo) -> None:
    done = repo.task("--model", "foundry", "mend it")
    assert done.code == 6
    assert done.err.startswith("agentflow: foundry cannot be used: ")
    assert "ANTHROPIC_FOUNDRY_API_KEY" in done.err
    assert len(done.err.splitlines()) == 2


LOADS: dict[str, tuple[str, set[str]]] = {
    "a thin live task": ("anthropic", {"h11"}),
    "repair": ("repair", set()),
}


@pytest.mark.parametrize(("model", "loaded"), LOADS.values(), ids=LOADS)
def test_only_a_live_task_loads_the_http_library_and_it_never_loads_the_sdk(
    new_repo: NewRepo, model: str, loaded: set[str]
) -> None:
    repo = new_repo(play.CALC)
    with serving(policy=honest) as server:
        environ = {"ANTHROPIC_BASE_URL": server.address, "PYTHONPROFILEIMPORTTIME": "1"}
        done = repo.task("--model", model, "make the failing tests pass", env=environ)
    assert done.code == 0, done.err
    modules = {
        line.rpartition("|")[2].strip() for line in done.err.splitlines() if line.startswith("import time:")
    }
    assert "agentflow.core.task" in modules
    assert modules & {"anthropic", "httpx2", "h11", "git"} == loaded


@pytest.mark.parametrize("models", [{"fast": "plain-1"}, {"fast": ["small-1", "plain-1"]}])
def test_a_model_without_tools_is_refused_before_anything_happens(repo: Repo, models: dict[str, Any]) -> None:
    with serving(policy=honest) as server:
        done = live(repo, server, models={"deep": "big-1", **models}, without_tools=["plain-1"])
    assert done.code == 6
    assert done.err.startswith("agentflow: plain-1 takes no tools, so it cannot work as the implementer\n")
    assert "give fast another model" in done.err
    assert server.asked == []
    assert not (repo.root / ".claude").exists()


NO_TOOLS = (
    "model plain-1 does not support tools",
    "tool use is not supported",
    "No endpoint supports tool use",
)


@pytest.mark.parametrize("words", NO_TOOLS)
@pytest.mark.parametrize("role", ["explorer", "implementer"])
def test_an_endpoint_that_takes_no_tools_ends_it_before_any_edit(repo: Repo, role: str, words: str) -> None:
    with serving(policy=faulty(refuses(400, "invalid_request_error", words), at=role, turn=0)) as server:
        done = live(repo, server, play.WHOLE_CREW)
    assert done.code == 6
    assert words in done.out
    assert "Every role needs tools" in done.out
    assert repo.diff() == ""


def test_nothing_in_the_repository_says_where_requests_go(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    with serving(policy=honest) as server:
        repo.write(
            {
                ".env": f"ANTHROPIC_BASE_URL={server.address}\nANTHROPIC_API_KEY={KEY}\n",
                ".claude/agentflow.yaml": f"endpoint: {server.address}\nmodel: anthropic\n",
            }
        ).commit()
        done = repo.task()
    assert done.code == 0, done.err
    assert server.asked == []
    assert repo.state()["model"] == "repair"


def test_an_endpoint_in_the_users_settings_makes_it_the_default_model(repo: Repo) -> None:
    with serving(policy=honest) as server:
        configure(repo, endpoint=server.address)
        done = repo.task()
    assert done.code == 0, done.err
    assert server.asked
    assert "authorization" not in server.asked[0].headers


def test_a_command_of_a_role_does_not_see_the_key(repo: Repo) -> None:
    look = Plays((use("Bash", {"command": "env"}, "toolu_env"),))

    def policy(asked: Asked) -> Answer:
        if role_of(asked) != "implementer":
            return honest(asked)
        return honest_later(asked) if asked.turn else look

    with serving(policy=policy) as server:
        done = live(repo, server)
    assert done.code == 0, done.err
    output = repo.runs("implementer")[0].results[0]["content"]
    assert "PATH=" in output
    assert KEY not in output
    assert "ANTHROPIC" not in output


def test_a_reply_that_is_paused_without_end_is_ended_by_its_own_bound(repo: Repo) -> None:
    with serving(Plays((text("I look."),), stop="pause_turn")) as server:
        done = live(repo, server, "make the failing tests pass")
    assert done.code == 3
    assert "pause_turn" in done.out
    assert len(server.asked) == 8 + 1
    assert repo.state()["status"] == "limit"
