"""A conversation never overflows: what is archived, summarized and read again, with default settings."""

import json
from collections.abc import Callable
from itertools import accumulate, pairwise
from subprocess import DEVNULL
from threading import Event
from typing import Any

import pytest

from tests.support import play
from tests.support.live import configure, live
from tests.support.messages_server import Answer, Asked, Block, MessagesServer, Plays, refuses, serving, use
from tests.support.repo import Done, NewRepo, Repo

QUESTION = ("where is", "add defined?")


def found(path: str) -> Block:
    """Return the call that ends the run, with a line that it was shown long before."""
    seen = [{"claim": "here", "path": path, "line": 1}]
    return use("SubmitFindings", {"summary": "in calc.py", "findings": seen, "open_questions": []})


SUMMARY = {
    "facts": ["big.txt holds numbers"],
    "goals": ["say where add is"],
    "open_questions": [],
    "discarded": [],
}
ROLE = """---
name: explorer
description: Looks.
model: opus
tools: [Read, Grep, Glob]
maxTurns: 200
limits: {tool_calls: 400}
metadata: {agentflow-role: explorer}
---
You look.
"""
LINES = 410
PAGES = 10


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    """Return a repository with a file whose pages fill a result each."""
    made = new_repo(
        {**play.QUICK, "big.txt": "".join(f"{number:07d} {'x' * 60}\n" for number in range(PAGES * LINES))}
    )
    made.give_role("explorer", ROLE)
    return made


def is_summary(asked: Asked) -> bool:
    return asked.tools == {"SubmitSummary"}


def page(number: int) -> dict[str, Any]:
    return use(
        "Read", {"file_path": "big.txt", "offset": 1 + number % PAGES * LINES, "limit": LINES}, f"t{number}"
    )


class Reader:
    """A model that reads page after page, several a turn, and then says where it is."""

    def __init__(self, turns: int, a_turn: int = 1) -> None:
        self.turns = turns
        self.a_turn = a_turn
        self.made = 0
        self.summary: Callable[[Asked], Answer] = lambda _: Plays((use("SubmitSummary", SUMMARY),))

    def __call__(self, asked: Asked) -> Answer:
        if is_summary(asked):
            return self.summary(asked)
        if self.made == self.turns:
            return self.last(asked)
        first = self.made * self.a_turn
        self.made += 1
        return Plays(tuple(page(first + number) for number in range(self.a_turn)))

    def last(self, asked: Asked) -> Answer:  # noqa: ARG002
        return Plays((found("big.txt"),))


def work(server: MessagesServer) -> list[dict[str, Any]]:
    """Return the bodies of the requests but those for summaries."""
    return [asked.body for asked in server.asked if not is_summary(asked)]


def plain(body: dict[str, Any]) -> list[str]:
    """Return each message of a request without its cache breakpoint."""
    return [
        json.dumps(each).replace(', "cache_control": {"type": "ephemeral"}', "") for each in body["messages"]
    ]


def survives(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a request begins with all of the one before it."""
    head = one["tools"] == other["tools"] and one["system"] == other["system"]
    return head and plain(other)[: len(one["messages"])] == plain(one)


def size(body: dict[str, Any]) -> int:
    return sum(map(len, plain(body)))


def results(body: dict[str, Any]) -> list[str]:
    blocks = [block for each in body["messages"] for block in each["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def answered(done: Done) -> None:
    assert done.code == 0, done.err
    assert "in calc.py" in done.out
    assert "not seen" not in done.out  # the line was shown, though its page may be archived by now


def test_the_limits_are_printed_with_their_sources(repo: Repo) -> None:
    configure(repo, limits={"context": 40_000, "turns_kept": 3})
    rows = {
        row["key"]: (row["value"], row["source"]) for row in repo.run("config", "--json").json["settings"]
    }
    own = str(repo.home / ".config/agentflow/config.yaml")
    assert rows["limits.context"] == (40_000, own)
    assert rows["limits.trigger"] == (30_000, "default")
    assert rows["limits.turns_kept"] == (3, own)
    assert rows["limits.summary"] == (5_000, "default")


@pytest.mark.parametrize(("turns", "a_turn"), [(10, 1), (24, 4)], ids=["300 KB", "3 MB"])
def test_output_that_would_not_fit_is_archived_and_the_task_ends_right(
    repo: Repo, turns: int, a_turn: int
) -> None:
    with serving(policy=Reader(turns, a_turn)) as server:
        answered(live(repo, server, *QUESTION))
    told = repo.events("Compacted")
    assert told
    assert all(each["from_tokens"] >= 72_000 > each["to_tokens"] for each in told)
    assert max(map(size, work(server))) / 4 < 96_000
    changed = sum(not survives(one, other) for one, other in pairwise(work(server)))
    assert changed == len(told)  # each request begins with the one before it but for the compactions
    for body in work(server):
        assert "add defined?" in json.dumps(body["messages"][0])
        newest = results({"messages": body["messages"][-1:]})
        assert not [each for each in newest if each.startswith("[archived")]
    assert "RecallOutput" not in {tool["name"] for tool in work(server)[0]["tools"]}
    assert "RecallOutput" in {tool["name"] for tool in work(server)[-1]["tools"]}
    for call_id in told[0]["archived"]:
        kept = (repo.folder / f"outputs/{call_id}.out").read_text("utf-8")
        assert kept in [each for body in work(server) for each in results(body)]


def test_summaries_are_billed_and_a_failed_one_ends_nothing(repo: Repo) -> None:
    reader = Reader(9)
    failing = iter((refuses(500), refuses(500), refuses(400)))
    reader.summary = lambda _: next(failing, Plays((use("SubmitSummary", SUMMARY),)))
    hooks = {"PreCompact": "cat >> pre.json", "PostCompact": "cat >> post.json"}
    entries = {
        name: [{"matcher": "auto", "hooks": [{"type": "command", "command": said}]}]
        for name, said in hooks.items()
    }
    settings = repo.home / ".claude/settings.json"
    settings.write_text(json.dumps({"hooks": entries}))
    with serving(policy=reader) as server:
        answered(live(repo, server, *QUESTION, limits={"context": 8_000, "result_chars": 12_000}))
    told = repo.events("Compacted")
    by = [each["summary"] for each in told]
    assert by.index("program") < by.index("model")
    replies = len(server.asked) - 3
    assert repo.state()["usage"]["input"] == 10 * replies
    assert sum(each["usage"]["input"] for each in told) == 10 * (sum(map(is_summary, server.asked)) - 3)
    read = [json.loads(line) for line in repo.read("post.json").splitlines()]
    assert [each["hook_event_name"] for each in read] == ["PostCompact"] * len(told)
    assert "big.txt holds numbers" in read[by.index("model")]["compact_summary"]
    assert len(repo.read("pre.json").splitlines()) == len(told)


def test_a_prompt_that_is_too_long_is_compacted_and_sent_once_more(repo: Repo) -> None:
    reader = Reader(6)

    def short(asked: Asked) -> Answer:
        message = "prompt is too long: 25001 tokens > 25000 maximum"
        return refuses(400, "invalid_request_error", message) if len(asked.raw) > 100_000 else reader(asked)

    with serving(policy=short) as server:
        answered(live(repo, server, *QUESTION))
    assert repo.events("Compacted")[0]["trigger"] == "overflow"
    assert sum(len(asked.raw) > 100_000 for asked in server.asked) == 1


def test_a_killed_task_goes_on_with_the_same_bytes_and_reads_archived_output(repo: Repo) -> None:
    lines = [f"{number:07d} {'y' * 500}" for number in range(2_000)]
    repo.write({"wide.txt": "\n".join(lines)}).commit()
    reader, waiting, released = Reader(11), Event(), Event()

    def policy(asked: Asked) -> Answer:
        if not reader.made:
            reader.made = 1
            return Plays((use("Read", {"file_path": "wide.txt"}, "wide"),))
        if "RecallOutput" in asked.tools and not waiting.is_set():
            waiting.set()
            released.wait(60)
        return reader(asked)

    def last(asked: Asked) -> Answer:
        pages = [each for each in results(asked.body) if "next offset" in each]
        recall = {"call_id": "c1-1-1", "offset": 16_000, "limit": 16_000}
        return Plays((found("wide.txt") if pages else use("RecallOutput", recall, "r"),))

    reader.last = last  # type: ignore[method-assign]
    with serving(policy=policy) as server:
        configure(repo, endpoint=server.address, model="anthropic")
        started = repo.start("task", *QUESTION, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        assert waiting.wait(60)
        begun = len(server.asked)
        started.kill()
        started.wait()
        released.set()
        answered(repo.run("resume"))
    assert server.asked[begun - 1].raw == server.asked[begun].raw
    whole = (repo.folder / "outputs/c1-1-1.out").read_bytes()
    assert len(whole) > 1_000_000
    (page_two,) = {each for body in work(server) for each in results(body) if "next offset" in each}
    text, _, note = page_two.rpartition("\n[bytes ")
    assert text.encode() == whole[16_000:32_000]
    assert note.startswith(f"16000 to 32000 of {len(whole)}")


TODOS = [("fix add", "in_progress"), ("look", "pending")]
PLANNED = play.role(
    "planner",
    play.turn(
        play.call(
            "TodoWrite",
            todos=[{"content": title, "status": status} for title, status in TODOS],
        )
    ),
    play.turn(
        play.call(
            "SubmitPlan",
            summary="plan",
            steps=[{"title": "fix", "files": ["calc.py"]}],
            acceptance=[],
            risks=[],
        )
    ),
)


def test_many_compactions_leave_plan_todos_and_gates_as_they_were(new_repo: NewRepo) -> None:
    files = {**play.QUICK, "long.txt": "".join(f"{number} {'z' * 40}\n" for number in range(80))}
    reads = [play.turn(play.call("Read", file_path="long.txt"), text=f"{number}") for number in range(24)]
    summary = play.role("summarizer", *[play.turn(play.call("SubmitSummary", **SUMMARY))] * 40)
    work = (*reads[:12], *play.MENDED, *reads[12:], play.submit("calc.py"))
    review = play.role("reviewer", play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[])))
    script = [
        play.findings(),
        PLANNED,
        play.role("implementer", *work),
        review,
        play.verified("ev-0002"),
        summary,
    ]
    repo = new_repo(files)
    configure(repo, limits={"context": 6_000})
    done = repo.task("make the failing tests pass", "--class", "complex", script=script)
    assert done.code == 0, done.err
    assert len(repo.events("Compacted")) >= 10
    state = repo.state()
    assert [step["title"] for step in state["plan"]["steps"]] == ["fix"]
    assert [(todo["title"], todo["status"]) for todo in state["todos"]] == TODOS
    assert {gate["status"] for gate in state["gates"].values()} == {"passed"}
    again = repo.run("replay")
    assert again.code == 0, again.err + again.out


def explored(repo: Repo, *turns: dict[str, Any]) -> list[str]:
    """Return the result of each call of an explorer that made these turns and then submitted."""
    repo.task(*QUESTION, script=[play.role("explorer", *turns, *play.findings("calc.py")["turns"])])
    (run,) = repo.runs("explorer")
    return [result["content"] for result in run.results]


@pytest.mark.parametrize(("calls", "made"), [(2, 2), (4, 3)])
def test_a_role_whose_file_names_no_limit_may_make_the_calls_of_the_settings(
    repo: Repo, calls: int, made: int
) -> None:
    repo.give_role("explorer", ROLE.replace("limits: {tool_calls: 400}\n", ""))
    configure(repo, limits={"calls": calls})
    read = play.turn(play.call("Read", file_path="calc.py"))
    told = explored(repo, read, read, read)
    assert sum("def add" in text for text in told) == made


@pytest.mark.parametrize(("parallel", "at_once"), [(1, 1), (3, 3)])
def test_no_more_calls_that_read_run_at_once_than_the_settings_say(
    repo: Repo, parallel: int, at_once: int
) -> None:
    log = repo.home / "calls.log"
    command = f"echo begin >> {log}; sleep 0.5; echo end >> {log}"
    entry = {"matcher": "Read", "hooks": [{"type": "command", "command": command}]}
    repo.home.joinpath(".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    configure(repo, limits={"parallel": parallel})
    explored(
        repo, play.turn(*(play.call("Read", file_path="calc.py", offset=1 + number) for number in range(3)))
    )
    running = accumulate(1 if line == "begin" else -1 for line in log.read_text().split())
    assert max(running) == at_once
