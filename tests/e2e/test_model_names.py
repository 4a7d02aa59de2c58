"""What the name of a model says: an id, ids by tier, or a slip that is no model."""

from typing import Any

import pytest

from tests.support import play
from tests.support.crew import honest
from tests.support.live import KEY, MODELS, configure, live, runs
from tests.support.messages_server import (
    MessagesServer,
    serving,
)
from tests.support.repo import NewRepo, Repo


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.LIGHT)


def models_of(server: MessagesServer) -> dict[str, set[str]]:
    return {role: {each.body["model"] for each in asked} for role, asked in runs(server)}


BOTH = dict.fromkeys(MODELS, "gpt-oss:20b")
CHOSEN: dict[str, tuple[tuple[str, ...], dict[str, str], dict[str, Any], dict[str, str]]] = {
    "an id": (("--model", "gpt-oss:20b"), {}, {}, BOTH),
    "an id in the environment": ((), {"AGENTFLOW_MODEL": "gpt-oss:20b"}, {}, BOTH),
    "an id in the settings": ((), {}, {"model": "gpt-oss:20b"}, BOTH),
    "an id for each tier": (
        ("--model", "deep=qwen/qwen3,fast=claude-x-9"),
        {},
        {},
        {role: "qwen/qwen3" if id_ == "big-1" else "claude-x-9" for role, id_ in MODELS.items()},
    ),
    "an id for one tier": (
        ("--model", "deep=qwen/qwen3"),
        {},
        {},
        {role: "qwen/qwen3" if id_ == "big-1" else id_ for role, id_ in MODELS.items()},
    ),
    "an id in place of a list": (
        ("--model", "gpt-oss:20b"),
        {},
        {"models": {"deep": ["big-1", "big-2"], "fast": "small-1"}},
        BOTH,
    ),
}


@pytest.mark.parametrize(("options", "env", "settings", "models"), CHOSEN.values(), ids=CHOSEN)
def test_a_model_is_named_by_its_id(
    repo: Repo,
    options: tuple[str, ...],
    env: dict[str, str],
    settings: dict[str, Any],
    models: dict[str, str],
) -> None:
    configure(repo, **settings)
    with serving(policy=honest) as server:
        there = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}
        done = repo.task(*options, "--json", play.WHOLE_CREW, env={**there, **env})
    assert done.code == 4, done.err
    assert models_of(server) == {role: {model} for role, model in models.items()}
    assert done.json["model"] == (options[1] if options else "gpt-oss:20b")


def test_resume_goes_on_with_the_model_that_was_named(repo: Repo) -> None:
    configure(repo)
    with serving(policy=honest) as server:
        env = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}
        words = ("--model", "deep=qwen/qwen3", "--pause-after", "planning", play.WHOLE_CREW)
        assert repo.task(*words, env=env).code == 75
        assert repo.run("resume", env={**env, "AGENTFLOW_MODEL": "other-1"}).code == 4
    named = {"big-1": "qwen/qwen3", "small-1": "small-1"}
    assert models_of(server) == {role: {named[id_]} for role, id_ in MODELS.items()}


def test_what_the_tiers_stand_for_is_explained(repo: Repo) -> None:
    configure(repo)
    env = {"AGENTFLOW_MODEL": "deep=qwen/qwen3"}
    told = repo.run("config", "--explain", "--json", env=env).json
    assert told["models"] == ["deep: qwen/qwen3 (price unknown)", "fast: small-1 (price unknown)"]
    assert {"key": "model", "value": "deep=qwen/qwen3", "source": "AGENTFLOW_MODEL"} in told["settings"]
    assert "qwen/qwen3" in repo.run("agents", "show", "explorer", env=env).out


NO_MODELS = {
    "repiar": "did you mean repair?",
    "antropic": "did you mean anthropic?",
    "Anthropic": "did you mean anthropic?",
    "scrpt:x.yaml": "did you mean script:FILE?",
    "replay": "is not a model id",
    "script:": "does not say what to play",
    "replay:": "does not say what to play",
    "script:missing.yaml": "cannot read the script missing.yaml",
    "deep=script:x.yaml": "is not a model id",
    "deep=repair,fast=claude-x-9": "is not a model id",
    "opus": "is a tier",
    "deep=fast": "is a tier",
    "deep=": "unknown model ''",
    "slow=claude-x-9": "write deep=ID",
    "deep=a-1,deep=b-1": "write deep=ID",
    "claude x": "unknown model 'claude x'",
    "--": "unknown model '--'",
    "a\nb": "unknown model",
}


@pytest.mark.parametrize(("name", "words"), NO_MODELS.items(), ids=map(repr, NO_MODELS))
def test_what_is_no_model_ends_it_before_anything_is_written(repo: Repo, name: str, words: str) -> None:
    with serving(policy=honest) as server:
        done = live(repo, server, f"--model={name}", "make the failing tests pass")
    assert (done.code, server.asked) == (2, [])
    assert words in done.err
    assert not (repo.root / ".claude").exists()


def test_a_name_that_is_taken_for_an_id_is_shown_where_a_key_is_missing(repo: Repo) -> None:
    done = repo.task("--model", "nonsense", "make the failing tests pass")
    assert done.code == 6
    assert "no credentials for the Messages API, where the model 'nonsense' would be" in done.err
