"""The bug of CALC is mended through servers of the Chat Completions API; their faults end as they should."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.chat_server import Chats, fails, honest_chat
from tests.support.crew import honest, role_of
from tests.support.live import KEY, MODELS, configure, live
from tests.support.messages_server import Answer, Asked, MessagesServer, Stream, serving, use
from tests.support.repo import Done, NewRepo, Repo

TIERS = ("--model", "openai/small-1")


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


def chat(repo: Repo, server: MessagesServer, *words: str, **settings: Any) -> Done:
    configure(repo, **settings)
    env = {"OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": KEY}
    return repo.task(*TIERS, *(words or (play.TEXT,)), env=env)


def faulty(*faults: Answer, turn: int = 1) -> Callable[[Asked], Answer]:
    left = list(faults)

    def policy(asked: Asked) -> Answer:
        meets = left and role_of(asked) == "implementer" and asked.turn == turn
        return left.pop(0) if meets else honest_chat(asked)

    return policy


def outcome(repo: Repo, done: Done) -> dict[str, Any]:
    """Return what a task left, without what is another each time."""
    kinds = Counter(event["type"] for event in repo.events())
    calls = {role: [made for run in repo.runs(role) for made in run.calls] for role in MODELS}
    told = {key: done.json[key] for key in ("status", "class", "caveats", "iterations") if key in done.json}
    return {"code": done.code, "told": told, "events": kinds, "calls": calls, "calc": repo.read("calc.py")}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_an_honest_crew_leaves_what_it_leaves_at_the_messages_api(tmp_path: Path, *, stream: bool) -> None:
    left = []
    for name, run, policy in (("messages", live, honest), ("chat", chat, honest_chat)):
        repo = Repo(tmp_path / name, tmp_path / f"{name}-home").write(play.QUICK).commit()
        with serving(policy=policy) as server:
            done = run(repo, server, "--json", play.WHOLE_CREW, stream=stream)
        assert done.code == 0, done.err
        left.append(outcome(repo, done))
    assert left[0] == left[1]
    assert {asked.path for asked in server.asked} == {"/v1/chat/completions"}
    assert {asked.body["model"] for asked in server.asked} == {"small-1"}
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    used, replies = done.json["usage"], len(server.asked)
    assert (used["input"], used["output"], used["cache_read"]) == (10 * replies, 5 * replies, 3 * replies)
    assert used["cost_usd"] is None
    assert done.json["model"] == "openai/small-1"


def test_each_tier_may_have_a_provider_of_its_own(repo: Repo) -> None:
    with serving(policy=honest) as deep, serving(policy=honest_chat) as fast:
        configure(repo, models={"deep": "big-1", "fast": "ollama/qwen3-coder:30b"})
        env = {"ANTHROPIC_BASE_URL": deep.address, "OLLAMA_HOST": fast.address.removeprefix("http://")}
        done = repo.task(play.WHOLE_CREW, env=env)
    assert done.code == 0, done.err
    assert {role_of(asked) for asked in deep.asked} == {"explorer", "planner"}
    assert {role_of(asked) for asked in fast.asked} == {"implementer", "verifier"}
    assert {asked.path for asked in fast.asked} == {"/v1/chat/completions"}
    assert {asked.body["model"] for asked in fast.asked} == {"qwen3-coder:30b"}
    assert "authorization" not in fast.asked[0].headers


def test_the_next_provider_of_a_tier_does_the_work_of_one_that_is_gone(repo: Repo) -> None:
    with serving(policy=honest_chat) as server:
        configure(repo, models={"deep": "gpu/a", "fast": ["openai/gone", "gpu/b"]}, **own(server, "gpu"))
        gone = {"message": "The model `gone` does not exist", "code": "model_not_found"}
        with serving(fails(404, {"error": gone})) as first:
            done = repo.task(env={"OPENAI_BASE_URL": first.address})
    assert done.code == 0, done.err
    assert {asked.body["model"] for asked in server.asked} == {"b"}
    assert len(first.asked) == 1
    assert [event["model"] for event in repo.events("Retried")] == ["gpu/b"]


def test_a_server_that_does_not_run_is_no_end_where_another_provider_is_next(repo: Repo) -> None:
    with serving(policy=honest_chat) as server:
        configure(repo, models={"deep": "gpu/a", "fast": ["ollama/a", "gpu/b"]}, **own(server, "gpu"))
        done = repo.task(env={"OLLAMA_HOST": "127.0.0.1:9"})
    assert done.code == 0, done.err
    assert {asked.body["model"] for asked in server.asked} == {"b"}
    assert repo.events("Retried")[-1]["model"] == "gpu/b"


def own(server: MessagesServer, name: str) -> dict[str, Any]:
    return {"providers": {name: {"endpoint": f"{server.address}/api"}}}


def test_a_cut_stream_and_a_busy_server_are_asked_again(repo: Repo) -> None:
    cut = Chats("", (use("Bash", {"command": "touch planted"}),)).events("small-1")
    busy = fails(429, {"error": {"message": "Rate limit reached", "type": "tokens"}}, retry_after="1")
    with serving(policy=faulty(Stream(cut[:-3]), busy)) as server:
        done = chat(repo, server, stream=True)
    assert done.code == 0, done.err
    assert not (repo.root / "planted").exists()
    cut_off, told = repo.events("Retried")
    assert "cut off" in cut_off["reason"]
    assert "429: Rate limit reached" in told["reason"]
    assert told["seconds"] >= 1


SUSPENDED: dict[str, tuple[Answer, str]] = {
    "a wrong key": (fails(401, {"error": {"message": f"Incorrect API key: {KEY}"}}), "API key was rejected"),
    "a key without the right": (fails(403, {"error": {"message": "no"}}), "may not do this (403: no)"),
    "no such model": (fails(404, {"error": {"message": "no such model"}}), "(404: no such model)"),
    "no money": (
        fails(429, {"error": {"message": "check your plan", "code": "insufficient_quota"}}),
        "(402: check your plan)",
    ),
    "a server without tools": (
        fails(400, {"error": {"message": "gemma:2b does not support tools"}}),
        "Every role needs tools: start the server with them",
    ),
}


@pytest.mark.parametrize(("answer", "words"), SUSPENDED.values(), ids=SUSPENDED)
def test_what_a_person_can_correct_suspends_the_task_and_resume_goes_on(
    repo: Repo, answer: Answer, words: str
) -> None:
    with serving(answer) as server:
        done = chat(repo, server)
    assert (done.code, len(server.asked), repo.state()["status"]) == (6, 1, "suspended")
    assert words in done.out
    assert "then run agentflow resume" in done.out
    assert KEY not in done.out + done.err
    with serving(policy=honest_chat) as server:
        env = {"OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": KEY}
        assert repo.run("resume", env=env).code == 0


def test_a_refusal_ends_it_in_the_words_of_the_model(repo: Repo) -> None:
    with serving(Chats(beside={"refusal": "I cannot help with that."})) as server:
        done = chat(repo, server)
    assert done.code == 6
    assert "refused to go on: I cannot help with that." in done.out


def test_parallel_calls_are_answered_and_the_recorded_replies_can_be_played_again(repo: Repo) -> None:
    reads = tuple(
        use("Read", {"file_path": path}, f"call_{number}")
        for number, path in enumerate(("calc.py", "tests/test_calc.sh"))
    )
    thoughtful = Chats("", reads, beside={"reasoning": "hm"})
    with serving(policy=faulty(thoughtful, turn=0)) as server:
        done = chat(repo, server)
    after = next(each for each in server.asked if role_of(each) == "implementer" and each.turn == 1)
    said, first, second = after.body["messages"][-3:]
    assert (said["reasoning"], len(said["tool_calls"])) == ("hm", 2)
    assert [result["tool_call_id"] for result in (first, second)] == [call["id"] for call in reads]
    assert "def add" in first["content"]
    name = repo.folder.name
    repo.write(play.QUICK)
    again = repo.task("--model", f"replay:{name}", play.TEXT)
    assert (done.code, again.code) == (0, 0), again.err


NAMES: dict[str, tuple[tuple[str, ...], dict[str, str], dict[str, Any], int, str]] = {
    "no key": (("--model", "openrouter/a/b"), {}, {}, 6, "no key for openrouter\n  set OPENROUTER_API_KEY"),
    "a named key that is not there": (
        ("--model", "openai/a"),
        {},
        {"providers": {"openai": {"api_key_env": "WORK_KEY"}}},
        6,
        "the environment holds no WORK_KEY\n  providers.openai.api_key_env in config.yaml names it",
    ),
    "nobody listens": (
        ("--model", "ollama/a"),
        {"OLLAMA_HOST": "127.0.0.1:9"},
        {},
        6,
        "OLLAMA_HOST, or providers.ollama.endpoint in config.yaml",
    ),
    "a provider alone": (
        ("--model", "mistral"),
        {},
        {"models": {"deep": "a"}},
        2,
        "mistral has no model for fast",
    ),
    "a provider without a model": (("--model", "mistral/"), {}, {}, 2, "'mistral/' is not a model id"),
    "an address that is none": (
        ("--model", "gpu/a"),
        {},
        {"providers": {"gpu": {"api_key_env": "WORK_KEY"}}},
        2,
        "begin with http:// or https:// and name a host\n  it is providers.gpu.endpoint in config.yaml",
    ),
    "a provider that has settings of its own": (
        ("--model", "openai/a"),
        {},
        {"providers": {"anthropic": {"endpoint": "http://x.test"}}},
        2,
        "config.yaml: providers: 'anthropic' is no name for a server of the Chat Completions API",
    ),
    "a variable alone": (
        (),
        {"OPENROUTER_API_KEY": KEY},
        {},
        6,
        "OPENROUTER_API_KEY is set: name one of its models with --model openrouter/ID",
    ),
    "a limit of money": (
        ("--model", "openai/a", "--max-cost", "1"),
        {"OPENAI_API_KEY": KEY},
        {},
        2,
        "no price is known for openai/a",
    ),
    "a model that takes no tools": (
        ("--model", "openai/a"),
        {"OPENAI_API_KEY": KEY},
        {"without_tools": ["a"]},
        6,
        "openai/a takes no tools, so it cannot work as the explorer",
    ),
}


@pytest.mark.parametrize(("options", "env", "settings", "code", "words"), NAMES.values(), ids=NAMES)
def test_what_is_missing_is_said_before_anything_is_asked(
    repo: Repo,
    options: tuple[str, ...],
    env: dict[str, str],
    settings: dict[str, Any],
    code: int,
    words: str,
) -> None:
    configure(repo, **{"models": {}, **settings})
    done = repo.task(*options, "add a --json option", env=env)
    assert done.code == code
    assert words in done.out + done.err


def test_a_key_of_a_provider_alone_changes_nothing_for_repair(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    done = repo.task(env={"OPENAI_API_KEY": KEY})
    assert (done.code, repo.state()["model"]) == (0, "repair")


def test_doctor_tells_which_providers_are_set_up_and_answer(repo: Repo) -> None:
    with serving(policy=honest_chat) as server:
        configure(repo, models={"deep": "openai/gpt-x", "fast": "ollama/qwen3-coder"})
        env = {"OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": KEY, "OLLAMA_HOST": "127.0.0.1:9"}
        found = repo.run("doctor", "--json", env=env)
        told = repo.run("doctor", env=env).out
    assert found.json["model"] == "openai"
    openai, ollama = found.json["providers"]
    assert openai == {
        "name": "openai",
        "endpoint": f"{server.address}/v1",
        "key": "OPENAI_API_KEY present",
        "models": ["gpt-x"],
        "reachable": True,
    }
    assert (ollama["endpoint"], ollama["key"], ollama["reachable"]) == (
        "http://127.0.0.1:9/v1",
        "no key",
        False,
    )
    assert f"{server.address}/v1  answers" in told
    assert KEY not in told
