"""The web for the explorer: absent, offered once the user opens it, and never a way inside."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.test_sandbox import config
from tests.support import play
from tests.support.messages_server import Answer, Asked, Plays, searched, serving, text, use
from tests.support.repo import NewRepo, Recorded, Repo
from tests.support.web_server import Content, WebServer, pages

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
        {**play.QUICK, ".claude/settings.json": '{"network": ["explorer"]}', **options.pop("files", {})}
    )
    if settings:
        config(repo, settings)
    own = repo.home / ".claude/settings.json"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(options.pop("rules", "{}"))
    fetches = play.turn(*(play.call("WebFetch", url=url, prompt="the secret") for url in urls))
    found = play.turn(play.call("SubmitFindings", summary="s", findings=[], open_questions=[]))
    repo.task(QUESTION, script=[play.role("explorer", fetches, found)], **options)
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
    assert {"WebFetch", "WebSearch"} <= run.tools
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


SEARCHES = OPEN + "web_search: true\nmodels: {deep: m, fast: m}\n"
FOUND = {
    "summary": "s",
    "findings": [{"claim": "c", "path": "https://a.test/", "line": 1}],
    "open_questions": [],
}
HOOK = '{"hooks": {"PreToolUse": [{"matcher": "%s", "hooks": [{"type": "command", "command": "true"}]}]}}'
HELD = {
    "a rule that denies it": ('{"permissions": {"deny": ["WebSearch"]}}', ""),
    "a rule that asks": ('{"permissions": {"ask": ["WebSearch"]}}', ""),
    "a rule with a pattern": ('{"permissions": {"deny": ["WebSearch(query:secret)"]}}', ""),
    "a hook on it": (HOOK % "WebSearch", ""),
    "a hook on all that goes out": (HOOK % "Web.*", ""),
    "a hook on everything": (HOOK % "", ""),
    "a mode of the tool": ("{}", "approvals: {tools: {WebSearch: always}}\n"),
    "a mode of the role": ("{}", "approvals: {roles: {explorer: {when: tool is WebSearch}}}\n"),
    "a setting": ("{}", "web_search: false\n"),
}


@pytest.mark.parametrize(("rules", "settings"), HELD.values(), ids=HELD)
def test_nobody_is_asked_about_a_search_so_whatever_would_ask_takes_it_away(
    new_repo: NewRepo, rules: str, settings: str
) -> None:
    run = explored(new_repo, [], OPEN + settings, rules=rules)
    assert "WebFetch" in run.tools
    assert "WebSearch" not in run.tools
    assert "`WebSearch`" not in run.head["system"]


def test_a_hook_that_looks_at_other_tools_leaves_the_search(new_repo: NewRepo) -> None:
    run = explored(new_repo, [], OPEN, rules=HOOK % "Bash|WebFetch")
    assert {"WebFetch", "WebSearch"} <= run.tools


def searching(repo: Repo, policy: Callable[[Asked], Answer], settings: str = SEARCHES) -> list[Asked]:
    """Return what a server was asked that answers a research question."""
    config(repo, settings)
    with serving(policy=policy) as server:
        env = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "k"}
        done = repo.task("research best practices for retries", env=env)
    assert done.code == 0, done.err
    return server.asked


def searcher(asked: Asked) -> Answer:
    """Search, pause in the middle of a second search, and submit."""
    call, result = searched("backoff and jitter", "https://b.test/", call_id="srvtoolu_2")
    turns = (
        Plays((text("I look."), *searched("retry budgets", "https://a.test/"), call), stop="pause_turn"),
        Plays((result, use("Read", {"file_path": "calc.py"}, "toolu_1"))),
        Plays((use("SubmitFindings", FOUND, "toolu_2"),)),
    )
    return turns[asked.turn]


@pytest.mark.parametrize("stream", ["false", "true"])
def test_the_provider_searches_pauses_and_goes_on_and_its_blocks_go_back_as_they_came(
    new_repo: NewRepo, stream: str
) -> None:
    repo = new_repo(play.QUICK)
    asked = searching(repo, searcher, f"{SEARCHES}stream: {stream}\n")
    _, second, third = (each.body["messages"] for each in asked)
    assert {"type": "web_search_20250305", "name": "web_search", "max_uses": 5} in asked[0].body["tools"]
    call, result = searched("backoff and jitter", "https://b.test/", call_id="srvtoolu_2")
    assert second[1]["content"] == [text("I look."), *searched("retry budgets", "https://a.test/"), call]
    assert [message["role"] for message in third] == ["user", "assistant", "assistant", "user"]
    assert third[1] == second[1]
    assert third[2]["content"][0] == result
    assert third[3]["content"][0]["tool_use_id"] == third[2]["content"][1]["id"]
    tools = [(event["type"], event.get("subject") or event.get("summary")) for event in repo.events()]
    told = [each for each in tools if each[0] in ("ToolStarted", "ToolFinished")]
    assert told[:4] == [
        ("ToolStarted", "retry budgets"),
        ("ToolFinished", "1 result"),
        ("ToolStarted", "backoff and jitter"),
        ("ToolFinished", "1 result"),
    ]
    assert "retry budgets" in repo.run("log").out
    assert repo.run("replay", repo.folder.name).code == 0


def test_searches_count_against_the_limit_of_the_role(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    endless = tuple(
        block
        for number in range(8)
        for block in searched("again", "https://a.test/", call_id=f"srvtoolu_{number}")
    )

    def policy(asked: Asked) -> Answer:
        if asked.body.get("tool_choice"):
            return Plays((use("SubmitFindings", FOUND),))
        return Plays((*endless, text("more")), stop="pause_turn")

    asked = searching(repo, policy)
    assert len(asked) == 40 / 8 + 1
    assert asked[-1].body["tool_choice"] == {"type": "tool", "name": "SubmitFindings"}


def test_an_endpoint_that_is_not_known_to_search_is_not_offered_it(new_repo: NewRepo) -> None:
    asked = searching(new_repo(play.QUICK), lambda _: Plays((use("SubmitFindings", FOUND),)), OPEN)
    assert "web_search" not in asked[0].tools
    assert "WebFetch" in asked[0].tools


def test_a_gateway_that_calls_the_search_as_a_tool_of_ours_is_told(new_repo: NewRepo) -> None:
    call_then_end = [Plays((use("WebSearch", {"query": "x"}),)), Plays((use("SubmitFindings", FOUND),))]
    repo = new_repo(play.QUICK)
    asked = searching(repo, lambda asked: call_then_end[asked.turn])
    assert "run only by the model's provider" in asked[1].body["messages"][2]["content"][0]["content"]


def test_the_tools_that_there_are_say_so(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    closed = {tool["name"]: tool["roles"] for tool in repo.run("tools", "list", "--json").json}
    assert closed["WebSearch"] == closed["WebFetch"] == []
    config(repo, SEARCHES)
    env = {"ANTHROPIC_API_KEY": "k"}
    assert "explorer" in repo.run("tools", "list", env=env).out
    assert "explorer" in repo.run("tools", "show", "WebSearch", env=env).out
    assert "WebSearch" in repo.run("agents", "show", "explorer", env=env).out
    assert "WebSearch" not in repo.run("agents", "show", "planner", env=env).out
