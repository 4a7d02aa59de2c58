"""`agentflow models`: the models of the tiers, their prices, and the providers that are set up."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.repo import Repo

KEY = "sk-secret-of-the-user-0123456789"
CLOSED = "http://127.0.0.1:9"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "my repository", tmp_path / "home").commit()


class Lists(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"object": "list", "data": [{"id": "qwen3-coder"}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def lists_models(port: int = 0) -> Iterator[int]:
    try:
        server = HTTPServer(("127.0.0.1", port), Lists)
    except OSError:
        pytest.skip(f"port {port} is in use")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_each_tier_is_told_with_window_and_dated_price_and_whether_its_provider_answers(repo: Repo) -> None:
    with lists_models() as port:
        env = {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            "OLLAMA_HOST": CLOSED,
        }
        words = ("models", "--model", "deep=claude-opus-5-5,fast=ollama/qwen3")
        found, told = repo.run(*words, "--json", env=env), repo.run(*words, env=env)
    deep, fast = found.json["models"]
    assert (deep["provider"], deep["window"], deep["price"]["output"]) == ("anthropic", 1_000_000, 20)
    assert (deep["as_of"], deep["source"]) == (
        "2026-10-24",
        "https://platform.claude.com/docs/en/about-claude/pricing",
    )
    assert (fast["provider"], fast["model"], fast["window"], fast["price"]) == ("ollama", "qwen3", None, None)
    states = {each["name"]: each for each in found.json["providers"]}
    assert (states["anthropic"]["reachable"], states["ollama"]["reachable"]) == (True, False)
    assert states["anthropic"]["key"] == "ANTHROPIC_API_KEY present"
    assert "price: 2026-10-24 https://" in told.out
    assert "does not answer" in told.out
    assert KEY not in told.out + found.out
    assert all(len(row) <= 100 for row in told.out.splitlines())


def test_without_a_model_it_says_what_to_set(repo: Repo) -> None:
    none = repo.run("models")
    assert (none.code, "No model is configured." in none.out) == (0, True)
    keyed = repo.run("models", env={"MISTRAL_API_KEY": KEY})
    assert "--model mistral/ID" in keyed.out
    assert KEY not in keyed.out


def test_a_server_of_this_machine_that_lists_its_models_is_offered(repo: Repo) -> None:
    with lists_models(1234):
        told = repo.run("models").out
    assert "lmstudio" in told
    assert "--model lmstudio/qwen3-coder" in told
