"""Independent steps of one plan, carried out at the same time by several implementers."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.live import live
from tests.support.messages_server import Asked, Event, Plays, Stream, serving, use
from tests.support.repo import NewRepo, Repo, eventually

NAMES = ("one", "two", "three")
METHOD = "    def test_{0}(self):\n        self.assertEqual({0}(1, 2), 3)\n"
TESTS = (
    "import unittest\n\nfrom one import one\nfrom three import three\nfrom two import two\n\n\n",
    "class AllTest(unittest.TestCase):\n",
    "\n".join(map(METHOD.format, NAMES)),
)
FILES = {f"{name}.py": f"def {name}(a, b):\n    return a - b\n" for name in NAMES} | {
    "tests/test_all.py": "".join(TESTS)
}
EVIDENCE = "ev-0002"
SERVER = str(Path(__file__).parents[1] / "support/mcp_server.py")


def step(name: str, *after: int, files: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"title": f"mend {name}", "files": list(files or (f"{name}.py",)), "after": list(after)}


def plan(*steps: dict[str, Any], **match: Any) -> dict[str, Any]:
    given = {"summary": "three signs", "acceptance": [], "risks": []}
    return play.role("planner", play.turn(play.call("SubmitPlan", steps=list(steps), **given)), **match)


def at(number: int, title: str) -> str:
    return f"# Your step\n{number}. {title}"


def worker(number: int, name: str, *turns: dict[str, Any], delay: float = 0) -> dict[str, Any]:
    """Return what the implementer of a step does."""
    turns = turns or (*play.edit(f"{name}.py", "a - b", "a + b"), play.submit(f"{name}.py"))
    return {**play.role("implementer", *turns, contains=at(number, f"mend {name}")), "delay": delay}


INDEPENDENT = plan(*map(step, NAMES))
WORKERS = [worker(number, name) for number, name in enumerate(NAMES, 1)]


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(FILES)


def merged(repo: Repo) -> list[tuple[int, list[str], list[str]]]:
    return [(e["step"], e["files"], e["conflicts"]) for e in repo.events("StepMerged")]


def test_independent_steps_are_merged_in_plan_order_and_judged_once(repo: Repo) -> None:
    slow = [worker(1, "one", delay=0.2), *WORKERS[1:]]
    done = repo.task(
        play.WHOLE_CREW,
        "--parallel",
        "2",
        script=[play.findings("one.py"), INDEPENDENT, *slow, play.verified(EVIDENCE)],
    )
    assert done.code == 0, done.err + done.out
    assert [each[0] for each in merged(repo)] == [1, 2, 3]
    assert all("a + b" in repo.read(f"{name}.py") for name in NAMES)
    assert repo.git("status", "--porcelain").split() == ["M", "one.py", "M", "three.py", "M", "two.py"]
    assert [run.head["angle"] for run in repo.runs("implementer")] == [
        f"step {number}: mend {name}" for number, name in enumerate(NAMES, 1)
    ]
    assert len(repo.runs("verifier")) == 1
    assert not (repo.folder / "steps").exists()
    assert "step 3: mend three (three.py)" in done.err
    assert "- step 2 (run 4): all tests pass" in (repo.folder / "report.md").read_text("utf-8")
    undone = repo.run("undo")
    assert undone.code == 0
    assert repo.diff() == ""


def test_two_requests_are_open_at_once(repo: Repo) -> None:
    meet, most = threading.Barrier(2, timeout=20), 20_000

    def answer(asked: Asked) -> Plays | Stream:
        (name,) = (tool for tool in asked.tools if tool.startswith("Submit"))
        match name:
            case "SubmitFindings":
                return Plays((use(name, {"summary": "found", "findings": [], "open_questions": []}),))
            case "SubmitPlan":
                steps = [step("one"), step("two")]
                return Plays((use(name, {"summary": "p", "steps": steps, "acceptance": [], "risks": []}),))
            case "SubmitChange":
                return play_step(asked)
            case _:
                return Plays((use(name, {"verdict": "VERIFIED", "evidence": [EVIDENCE], "reasons": []}),))

    def play_step(asked: Asked) -> Stream:
        own = next(
            name
            for name in NAMES
            if f"mend {name} ({name}.py)\n\nCarry out" in str(asked.body["messages"]).replace("\\n", "\n")
        )
        turns = [
            use("Read", {"file_path": f"{own}.py"}),
            use("Edit", {"file_path": f"{own}.py", "old_string": "a - b", "new_string": "a + b"}),
            use("SubmitChange", {"summary": "mended", "files": [f"{own}.py"]}),
        ]
        return Stream(wait_for_other(Plays((turns[asked.turn],)), asked))

    def wait_for_other(reply: Plays, asked: Asked) -> Iterator[Event]:
        if asked.turn == 0:
            meet.wait()  # nobody is answered before both have asked
        yield from reply.events("small-1")

    repo.write({"three.py": FILES["three.py"].replace("a - b", "a + b")}).commit()
    with serving(policy=answer) as server:
        done = live(repo, server, play.WHOLE_CREW, "--parallel", "2", "--stream", "--max-tokens", str(most))
    assert done.code == 0, done.err + done.out
    assert meet.broken is False
    assert [each[0] for each in merged(repo)] == [1, 2]
    assert "after" in next(asked for asked in server.asked if "SubmitPlan" in asked.tools).raw.decode()
    assert "implementer: step 2: mend two" in done.err, done.err


def test_a_conflict_goes_back_to_the_later_step(repo: Repo) -> None:
    again = play.role(
        "implementer",
        *play.edit("one.py", "# first\n", "# first and second\n"),
        play.submit("one.py", "two.py"),
        contains="another step changed some of the same files",
    )
    script = [
        play.findings("one.py"),
        INDEPENDENT,
        again,
        worker(
            1, "one", *play.edit("one.py", "return a - b", "return a + b  # first"), play.submit("one.py")
        ),
        worker(
            2,
            "two",
            *play.edit("two.py", "a - b", "a + b"),
            play.turn(play.call("Read", file_path="one.py")),
            play.turn(
                play.call("Edit", file_path="one.py", old_string="a - b", new_string="a + b  # second")
            ),
            play.submit("one.py", "two.py"),
        ),
        worker(3, "three"),
        play.verified(EVIDENCE),
    ]
    done = repo.task(play.WHOLE_CREW, "--parallel", "3", "-v", script=script)
    assert done.code == 0, done.err + done.out
    assert merged(repo) == [(1, ["one.py"], []), (2, ["two.py"], ["one.py"]), (3, ["three.py"], [])]
    assert "return a + b  # first and second" in repo.read("one.py")
    assert "step 2 goes back, another step changed one.py" in done.err
    asked = next(run for run in repo.runs("implementer") if run.head["angle"].endswith("(again)"))
    assert "+    return a + b  # first" in asked.brief
    assert "+    return a + b  # second" in asked.brief


def test_steps_that_declare_nothing_have_one_implementer(repo: Repo) -> None:
    """Neither does the option change what such a task writes down of its plan and its runs."""
    steps = [{"title": f"mend {name}", "files": [f"{name}.py"]} for name in NAMES]
    edits = [turn for name in NAMES for turn in play.edit(f"{name}.py", "a - b", "a + b")]
    one = play.role("implementer", *edits, play.submit(*(f"{name}.py" for name in NAMES)))
    script = [play.findings("one.py"), plan(*steps), one, play.verified(EVIDENCE)]
    done = repo.task(play.WHOLE_CREW, "--parallel", "4", script=script)
    assert done.code == 0, done.err
    assert [run.head["angle"] for run in repo.runs("implementer")] == [""]
    assert repo.state()["plan"]["steps"] == steps
    assert merged(repo) == []


def test_a_task_without_the_option_knows_nothing_of_it(repo: Repo) -> None:
    script = [play.findings("one.py"), INDEPENDENT, *WORKERS]
    done = repo.task(play.WHOLE_CREW, "--pause-after", "planning", script=script)
    assert done.code == 75, done.err
    assert "parallel" not in (repo.folder / "events.jsonl").read_text("utf-8")
    (planner,) = repo.runs("planner")
    assert "'after'" not in str(planner.head["tools"])
    assert "at the same time" not in planner.brief


def test_a_task_with_servers_says_what_its_steps_lack_and_goes_on_in_a_sandbox_only(repo: Repo) -> None:
    server = {"command": sys.executable, "args": [SERVER]}
    (repo.home / ".claude.json").write_text(json.dumps({"mcpServers": {"small": server}}), "utf-8")
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("mcp_tools: {explorer: [], planner: [], implementer: [mcp__small], verifier: []}\n")
    script = [play.findings("one.py"), INDEPENDENT, *WORKERS, play.verified(EVIDENCE)]
    paused = repo.task(play.WHOLE_CREW, "--parallel", "2", "--pause-after", "planning", script=script)
    assert paused.code == 75, paused.err
    assert "run at the same time cannot use MCP tools" in paused.err
    before = repo.state()
    refused = repo.run("resume", "--no-sandbox")
    assert refused.code == 2
    assert "without a sandbox nothing separates the implementers' copies" in refused.err
    assert "leave out --no-sandbox" in refused.err
    assert repo.state() == before
    done = repo.run("resume")
    assert done.code == 0, done.err
    workers = repo.runs("implementer")
    assert len(workers) == 3
    assert not any("mcp__small" in str(run.head["tools"]) for run in workers)


def test_a_killed_task_goes_on_where_each_step_was(repo: Repo) -> None:
    held = worker(2, "two", *play.edit("two.py", "a - b", "a + b"), play.submit("two.py"), delay=0.5)
    late = worker(3, "three", delay=0.8)
    script = [play.findings("one.py"), INDEPENDENT, WORKERS[0], held, late, play.verified(EVIDENCE)]
    process = repo.start_task(script, "--parallel", "2")

    def is_in_the_middle() -> bool:
        edited = [event for event in repo.events("ToolFinished") if event["run"] == 4 and event["turn"] == 2]
        return bool(edited) and any(event["run"] == 5 for event in repo.events("RunStarted"))

    eventually(is_in_the_middle)
    process.kill()
    process.communicate()
    assert repo.diff() == ""
    done = repo.run("resume")
    assert done.code == 0, done.err + done.out
    assert [each[0] for each in merged(repo)] == [1, 2, 3]
    assert [len(run.calls) for run in repo.runs("implementer")] == [3, 3, 3]
    assert repo.run("undo").code == 0
    assert repo.diff() == ""


def test_a_step_that_fails_ends_the_task_and_keeps_what_others_did(repo: Repo) -> None:
    silent = {**play.role("implementer", play.turn(text="done"), contains=at(2, "mend two"))}
    script = [play.findings("one.py"), INDEPENDENT, WORKERS[0], silent, WORKERS[2]]
    done = repo.task(play.WHOLE_CREW, "--parallel", "3", script=script)
    assert done.code == 1, done.err
    assert "step 2:" in done.err + done.out
    assert [each[0] for each in merged(repo)] == [1, 3]
    assert repo.run("undo").code == 0
    assert repo.diff() == ""


def test_rules_hold_in_a_copy_and_what_waits_is_decided_as_ever(repo: Repo) -> None:
    """A rule names a file of the repository by its absolute path; a hook sees the files of the copy."""
    seen = repo.home / "seen"
    hook = {"matcher": "Edit", "hooks": [{"type": "command", "command": f"cat one.py >> {seen}"}]}
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    rules = {"deny": [f"Edit(/{repo.root}/three.py)"], "ask": ["Edit(two.py)"]}
    settings.write_text(json.dumps({"permissions": rules, "hooks": {"PostToolUse": [hook]}}))
    named = worker(1, "one", *play.edit(f"{repo.root}/one.py", "a - b", "a + b"), play.submit("one.py"))
    script = [play.findings("one.py"), INDEPENDENT, named, *WORKERS[1:], play.verified(EVIDENCE)]
    waiting = repo.task(play.WHOLE_CREW, "--parallel", "3", script=script)
    assert waiting.code == 75, waiting.err
    assert repo.read("two.py") == FILES["two.py"]
    (item,) = repo.state()["pending"]
    assert item["input"]["file_path"] == "two.py"
    assert repo.run("approve", item["id"]).code == 0
    done = repo.run("resume")
    assert done.code == 4, done.err + done.out
    assert [each[:2] for each in merged(repo)] == [(1, ["one.py"]), (2, ["two.py"]), (3, [])]
    assert repo.read("three.py") == FILES["three.py"]
    assert any("rule Edit(/" in str(run.results) for run in repo.runs("implementer"))
    assert "return a + b" in seen.read_text("utf-8")


def test_what_commands_may_not_make_is_not_made_by_a_step_either(repo: Repo) -> None:
    """The user's own edit meanwhile is kept, and the step that meets it goes back to an implementer."""
    (repo.home / ".config/agentflow").mkdir(parents=True)
    (repo.home / ".config/agentflow/config.yaml").write_text("parallel: 2\n")
    spoil = "mkdir -p .claude; for each in .claude/settings.json .envrc .git/a; do echo x > $each; done; true"
    theirs = f"echo '# mine' >> {repo.root}/one.py"
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": theirs}]}
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"hooks": {"PostToolUse": [hook]}}))
    begin = (play.turn(play.call("Bash", command=spoil)), *play.edit("one.py", "a - b", "a + b"))
    script = [
        play.findings("one.py"),
        plan(step("one"), step("two"), {"title": "mend three", "files": ["three.py"]}),
        play.role(
            "implementer",
            *play.edit("one.py", "a - b", "a + b"),
            play.submit("one.py"),
            contains="another step changed some of the same files",
        ),
        worker(1, "one", *begin, play.submit("one.py")),
        worker(2, "two"),
        play.role("implementer", play.submit(), contains="## Done already, to be left as it is"),
        play.verified("ev-0003"),
    ]
    done = repo.task(play.WHOLE_CREW, "--max-iterations", "1", script=script)
    assert done.code != 0, "what the last implementer claims is not so"
    assert merged(repo) == [(1, [], ["one.py"]), (2, ["two.py"], [])]
    assert repo.read("one.py") == "def one(a, b):\n    return a + b\n# mine\n"
    assert not (repo.root / ".envrc").exists()
    assert not (repo.root / ".claude/settings.json").exists()
    assert not (repo.root / ".git/hooks/a").exists()
    assert [run.head["angle"].partition(":")[0] for run in repo.runs("implementer")] == [
        "step 1",
        "step 2",
        "step 1",
        "",
    ]


def test_a_budget_is_shared_out(repo: Repo) -> None:
    looks = [{**play.turn(play.call("Read", file_path="one.py")), "usage": {"input": 100}}] * 30
    costly = [worker(number, name, *looks) for number, name in enumerate(NAMES, 1)]
    words = (play.WHOLE_CREW, "--parallel", "3", "--max-tokens", "1500")
    done = repo.task(*words, script=[play.findings("one.py"), INDEPENDENT, *costly])
    assert done.code == 3, done.err
    assert 1500 <= repo.state()["usage"]["input"] <= 2100, "each at most one turn and its last word more"
    apart = repo.run("task", "mend", "--parallel", "2", "--no-sandbox")
    assert (apart.code, "nothing separates the implementers' copies" in apart.err) == (2, True), apart.err
