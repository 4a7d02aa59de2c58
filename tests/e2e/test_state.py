"""What lies on disk while a task runs, after it, and after it was killed."""

import hashlib
import json
import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import play
from tests.support.processes import processes
from tests.support.repo import NewRepo, Repo, eventually

NOTES = {"notes.txt": "nothing to check here\n"}
LINK = ".claude/orchestration.local.md"
KEYS = [
    *("version", "task_id", "active", "status", "current_phase", "iteration", "max_iterations", "started_at"),
    *("task", "task_complexity", "report_requested", "intent", "gates", "todos", "pending", "usage"),
    *("sandbox", "model", "base_tree", "tree", "undone"),
]
TYPES = {
    *(
        "TaskStarted",
        "StateChanged",
        "Classified",
        "GatesMerged",
        "IntentTold",
        "PlanChanged",
        "PhaseStarted",
        "PhaseEnded",
        "RunStarted",
        "RunEnded",
        "Asked",
        "Replied",
    ),
    *(
        "ToolStarted",
        "ToolFinished",
        "ToolBlocked",
        "EvidenceRecorded",
        "CheckStarted",
        "Probed",
        "Probing",
        "Warned",
        "TaskEnded",
    ),
}


def head_of(text: str) -> dict[str, Any]:
    """Return the frontmatter of a Markdown text as any YAML reader sees it."""
    opening, head, body = text.split("---\n", 2)
    assert opening == ""
    assert body.startswith(("## Plan\n", "## Log\n"))
    found = yaml.safe_load(head)
    assert isinstance(found, dict)
    return found


class Reading:
    """What somebody sees who reads the state again and again while a task runs."""

    def __init__(self, repo: Repo, running: "subprocess.Popen[str]") -> None:
        self.heads: list[dict[str, Any]] = []
        self.planned_while_held = False
        link = repo.root / LINK
        while running.poll() is None:
            if link.exists():
                self.heads.append(head_of(link.read_text("utf-8")))
                self.planned_while_held |= bool(self.heads[-1]["todos"]) and is_held(repo)
        self.out, self.err = running.communicate()


def is_held(repo: Repo) -> bool:
    """Return whether the planner's second turn was asked for and has not come."""
    entries = repo.runs("planner")[0].entries
    return (entries[-1]["type"], entries[-1].get("turn")) == ("RequestSent", 2)


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repo, Reading]:
    """A whole task that somebody watched."""
    folder = tmp_path_factory.mktemp("state")
    repo = Repo(folder / "repo", folder / "home").write(play.CALC).commit()
    todos = play.turn(
        play.call("TodoWrite", todos=[{"title": "mend: it # --- now", "status": "in_progress"}])
    )
    planner = play.plan("calc.py")
    script = [
        play.findings(),
        {**planner, "delay": 0.4, "turns": [todos, *planner["turns"]]},
        play.role("implementer", *play.MENDED, play.submit("calc.py")),
        play.verified("ev-0002"),
    ]
    with repo.start_task(script) as running:
        reading = Reading(repo, running)
    assert running.returncode == 0, reading.err
    return repo, reading


def test_a_reader_sees_a_whole_state_at_every_moment(mended: tuple[Repo, Reading]) -> None:
    _, reading = mended
    assert len(reading.heads) > 50
    assert all(list(head) == KEYS for head in reading.heads)
    phases = list(dict.fromkeys(head["current_phase"] for head in reading.heads))
    order = ("refinement", "exploration", "planning", "implementation", "verification", "complete")
    assert phases == [phase for phase in order if phase in phases]
    assert len(phases) >= 5
    assert {head["task_complexity"] for head in reading.heads[:1]} == {"unclassified"}


def test_the_effect_of_a_call_is_on_disk_while_a_later_turn_is_held_open(
    mended: tuple[Repo, Reading],
) -> None:
    _, reading = mended
    assert reading.planned_while_held


def test_the_folder_holds_what_the_contract_says(mended: tuple[Repo, Reading]) -> None:
    repo, _ = mended
    found = {path.relative_to(repo.folder).as_posix() for path in repo.folder.rglob("*") if path.is_file()}
    assert found == {
        *(".gitignore", "task.md", "events.jsonl", "report.md"),
        *(
            "runs/1-explorer.jsonl",
            "runs/2-planner.jsonl",
            "runs/3-implementer.jsonl",
            "runs/4-verifier.jsonl",
        ),
        *(f"evidence/ev-000{number}.{kind}" for number in (1, 2, 3) for kind in ("json", "out", "ids")),
        *(f"evidence/ev-000{number}.reads" for number in (1, 2)),
    }
    assert (repo.folder / "outputs").is_dir()
    assert (repo.folder / ".gitignore").read_text() == "*\n"
    assert (repo.root / LINK).readlink() == Path("agentflow", repo.folder.name, "task.md")


def test_only_the_user_can_read_a_task(mended: tuple[Repo, Reading]) -> None:
    repo, _ = mended
    paths = [repo.folder.parent, repo.folder, *repo.folder.rglob("*")]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    wrong = {
        str(path): oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}


def test_the_events_are_numbered_stamped_and_of_known_types(mended: tuple[Repo, Reading]) -> None:
    repo, _ = mended
    events = repo.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    assert {event["task_id"] for event in events} == {repo.folder.name}
    assert {event["type"] for event in events} <= TYPES
    assert events[-1]["type"] == "TaskEnded"
    assert all(list(event)[:3] == ["seq", "at", "type"] for event in events)


def test_the_state_is_the_fold_of_the_events(mended: tuple[Repo, Reading]) -> None:
    repo, _ = mended
    state = repo.state()
    assert head_of((repo.folder / "task.md").read_text()) == {key: state[key] for key in KEYS}
    assert state["current_phase"] == "complete"


def test_evidence_and_hashes_agree_with_the_outputs(mended: tuple[Repo, Reading]) -> None:
    repo, _ = mended
    for record in repo.evidence():
        printed = (repo.folder / f"evidence/{record['id']}.out").read_bytes()
        assert record["bytes"] == len(printed) > 0
        assert record["stdout_sha256"] == hashlib.sha256(printed).hexdigest()
        lines = (repo.folder / record["tests"]["ids_file"]).read_text().splitlines()
        is_whole = record["code"] == record["surface"]
        assert len(lines) == (3 if is_whole else 2)


def test_git_does_not_see_a_task_and_the_exclude_block_stands_once(new_repo: NewRepo) -> None:
    repo = new_repo(NOTES)
    exclude = repo.root / ".git/info/exclude"
    own = "# mine\r\nkept  \r\n*.swp"
    exclude.write_bytes(own.encode())
    repo.task(script=[])
    once = exclude.read_bytes()
    repo.task(script=[])
    assert exclude.read_bytes() == once
    assert once.startswith(own.encode())
    assert once.count(b">>> agentflow managed >>>") == once.count(b"<<< agentflow managed <<<") == 1
    assert repo.git("status", "--porcelain") == ""
    assert len(repo.tasks) == 2
    assert (repo.root / LINK).readlink().parts[1] == max(
        repo.tasks, key=lambda path: path.stat().st_mtime_ns
    ).name


def test_the_ignore_block_can_be_declined(new_repo: NewRepo) -> None:
    repo = new_repo(NOTES)
    before = (repo.root / ".git/info/exclude").read_bytes()
    repo.task(script=[], env={"AGENTFLOW_NO_GITIGNORE": "1"})
    assert (repo.root / ".git/info/exclude").read_bytes() == before
    assert not (repo.root / ".gitignore").exists()


def has_begun(repo: Repo, *types: str) -> bool:
    """Return whether the task has come to an event of one of these types."""
    return any((task / "events.jsonl").exists() for task in repo.tasks) and bool(repo.events(*types))


def test_a_task_killed_at_its_first_request_has_its_text_on_disk(new_repo: NewRepo) -> None:
    repo = new_repo(NOTES)
    running = repo.start_task([{**play.findings("notes.txt", 1), "delay": 60}])
    eventually(lambda: has_begun(repo, "Asked"))
    assert repo.run("status").out.startswith("▸ running")
    running.kill()
    running.communicate()
    changed, asked = repo.events("StateChanged")[0], repo.events("Asked")[0]
    assert (changed["seq"], changed["changed"]["task"]) == (1, play.WHOLE_CREW)
    assert asked["seq"] > 1
    assert head_of((repo.root / LINK).read_text())["task"] == play.WHOLE_CREW
    assert repo.run("status").code == 0


def test_a_task_killed_in_a_call_leaves_a_state_and_no_lock(new_repo: NewRepo) -> None:
    repo = new_repo(NOTES)
    with repo.start_task(BASH) as process:
        eventually(lambda: len(processes(SLEEP)) == 3)
        process.kill()
    eventually(lambda: processes(SLEEP) == set())
    (run,) = repo.runs("implementer")
    assert [entry["type"] for entry in run.entries[-2:]] == ["ReplyReceived", "CallsStarted"]
    head = head_of((repo.folder / "task.md").read_text())
    assert (head["active"], head["status"], head["current_phase"]) == (True, "running", "implementation")
    shown = repo.run("status", "--json")
    assert shown.json["current_phase"] == "implementation"
    (said, *_) = repo.run("status").out.splitlines()
    assert said == f"! interrupted  agentflow resume {repo.folder.name} continues it"
    assert repo.task(script=[]).code == 1  # and not 2: nobody holds the lock


SLEEP = f"sleep 300.{os.getpid()}"
"""Of this process of tests alone: inside the sandbox, which shows no number of outside, three of it run."""
SLEEPING = f"{SLEEP} & setsid -f {SLEEP}; setsid sh -c 'exec {SLEEP}' & wait"
SLOW_TEST = f"""import subprocess, unittest

class Slow(unittest.TestCase):
    def test_slow(self):
        for apart in (True, False, False):
            child = subprocess.Popen({SLEEP.split()}, start_new_session=apart)
        child.wait()
"""
BASH = [
    play.findings("notes.txt", 1),
    play.plan(),
    play.role("implementer", play.turn(play.call("Bash", command=SLEEPING))),
]
MODEL: list[dict[str, Any]] = [{**play.findings("notes.txt", 1), "delay": 300}]
STOPPED = {
    "SIGTERM in a command": (signal.SIGTERM, BASH, NOTES, True),
    "SIGINT in a check": (signal.SIGINT, [], {**play.GREEN, "tests/test_slow.py": SLOW_TEST}, True),
    "SIGINT in a request": (signal.SIGINT, MODEL, NOTES, False),
}


@pytest.mark.parametrize(("number", "script", "files", "has_children"), STOPPED.values(), ids=STOPPED)
def test_a_signal_ends_a_task_and_all_it_started(
    new_repo: NewRepo,
    number: signal.Signals,
    script: list[dict[str, Any]],
    files: dict[str, str],
    has_children: bool,
) -> None:
    repo = new_repo(files)
    running = repo.start_task(script, "--json")
    eventually(lambda: has_begun(repo, "Asked", "CheckStarted"))
    eventually(lambda: len(processes(SLEEP)) == (3 if has_children else 0))
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number, err
    assert "Traceback" not in err
    assert processes(SLEEP) == set()
    told = json.loads(out)
    assert (told["status"], told["exit_code"]) == ("cancelled", 128 + number)
    head = head_of((repo.root / LINK).read_text())
    assert (head["status"], head["active"]) == ("cancelled", False)
    assert repo.events()[-1]["type"] == "TaskEnded"
    assert repo.events()[-1]["exit_code"] == 128 + number
    assert (repo.folder / "report.md").is_file()


def test_a_second_task_beside_a_running_one_is_refused_and_a_reader_is_not(new_repo: NewRepo) -> None:
    repo = new_repo(NOTES)
    running = repo.start_task(MODEL)
    eventually(lambda: has_begun(repo, "Asked"))
    before = repo.events()
    second = repo.run("task", play.WHOLE_CREW, "--model", f"script:{repo.home / 'script.yaml'}")
    shown = repo.run("status", "--json")
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert second.code == 2
    assert second.out == ""
    assert second.err.splitlines()[0] == "agentflow: another task is at work in this repository"
    assert len(repo.tasks) == 1
    assert repo.events()[: len(before)] == before
    assert (shown.code, shown.json["status"], shown.json["active"]) == (0, "running", True)
