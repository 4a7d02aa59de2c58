"""The web for the explorer: absent, offered once the user opens it, and never a way inside."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.test_sandbox import config
from tests.support.repo import CALC, Recorded, Repo, call, role, turn
from tests.support.web_server import Content, WebServer, pages

NewRepo = Callable[[dict[str, str]], Repo]
OPEN = "network: [explorer]\n"
QUESTION = "how does calc.py add?"


@pytest.fixture
def inside() -> Iterator[WebServer]:
    """A server of this machine that no role may reach."""
    with pages({"/": Content(b"secret")}) as server:
        yield server


def explored(new_repo: NewRepo, urls: list[str], settings: str, **options: Any) -> Recorded:
    """Return the run of an explorer that fetches these."""
    repo = new_repo(
        {**CALC, ".claude/settings.json": '{"network": ["explorer"]}', **options.pop("files", {})}
    )
    if settings:
        config(repo, settings)
    own = repo.home / ".claude/settings.json"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(options.pop("rules", "{}"))
    fetches = turn(*(call("WebFetch", url=url, prompt="the secret") for url in urls))
    found = turn(call("SubmitFindings", summary="s", findings=[], open_questions=[]))
    repo.task(QUESTION, script=[role("explorer", fetches, found)], **options)
    return repo.runs("explorer")[0]


def answers(run: Recorded) -> list[str]:
    return [result["content"] for made, result in run.calls if made["name"] == "WebFetch"]


@pytest.mark.parametrize("settings", ["", "network: [checks, implementer]\n"])
def test_without_the_setting_there_is_no_web(new_repo: NewRepo, inside: WebServer, settings: str) -> None:
    files = {".claude/agentflow.yaml": OPEN, ".config/agentflow/config.yaml": OPEN}
    run = explored(new_repo, [f"http://127.0.0.1:{inside.port}/"], settings, files=files)
    assert not {"WebFetch", "WebSearch"} & run.tools
    assert "WebFetch" not in run.head["system"]
    assert answers(run)
    assert inside.asked == []


def test_with_it_the_explorer_is_offered_the_web_and_nothing_inside_is_asked(
    new_repo: NewRepo, inside: WebServer
) -> None:
    hosts = (
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        socket.gethostname(),
    )
    run = explored(new_repo, [f"http://{host}:{inside.port}/" for host in hosts], OPEN)
    assert "WebFetch" in run.tools
    assert "WebSearch" not in run.tools
    assert "`WebFetch`" in run.head["system"]
    assert len(answers(run)) == len(hosts)
    assert all(answer.startswith("url: ") for answer in answers(run)), answers(run)
    assert inside.asked == []


def test_a_redirect_leads_nowhere_inside(new_repo: NewRepo, inside: WebServer) -> None:
    there = {"location": f"http://127.0.0.1:{inside.port}/"}
    text = Content(b"A page.", headers={"content-type": "text/plain"})
    contents = {"http://example.org/a": Content(status=302, headers=there), "http://example.org/b": text}
    with pages(contents) as proxy:
        urls = ["http://example.org/a", "http://example.org/b"]
        env = {"http_proxy": f"http://127.0.0.1:{proxy.port}"}
        run = explored(new_repo, urls, OPEN, env=env)
        assert {path for path, _ in proxy.asked} == set(urls)
    refused, page = answers(run)
    assert "127.0.0.1 is not a public address" in refused
    assert page.startswith("http://example.org/b\n")
    assert page.endswith("A page.")
    assert inside.asked == []


def test_a_rule_denies_a_host(new_repo: NewRepo) -> None:
    rules = '{"permissions": {"deny": ["WebFetch(domain:example.org)"]}}'
    with pages({}) as proxy:
        env = {"http_proxy": f"http://127.0.0.1:{proxy.port}"}
        run = explored(new_repo, ["http://example.org/", "http://example.com/"], OPEN, rules=rules, env=env)
        assert [path for path, _ in proxy.asked] == ["http://example.com/"]
    assert "WebFetch(domain:example.org)" in answers(run)[0]
