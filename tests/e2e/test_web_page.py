"""`agentflow web`: who is let in, what is shown, and what a person does there."""

import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.page import Page, serve_page
from tests.support.repo import NewRepo, Repo, eventually

ESCAPES = "\x1b[31mred\x1b]0;title\x07"
SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
PAUSE = play.turn(play.call("Bash", command="until [ -e go.log ]; do sleep 0.05; done"))


@pytest.fixture(scope="module")
def told(finished: Repo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Page]]:
    """The page of a repository with a verified task, that several tests read."""
    folder = tmp_path_factory.mktemp("told") / "copy"
    shutil.copytree(finished.root.parent.with_name("kept"), folder, symlinks=True)
    repo = Repo(folder / "repo", folder / "home")
    with serve_page(repo) as page:
        yield repo, page


@pytest.fixture
def asking(new_repo: NewRepo) -> Repo:
    """A repository whose task waits for an approval of an edit."""
    repo = new_repo(play.QUICK)
    (repo.home / ".claude").mkdir()
    (repo.home / ".claude/settings.json").write_text('{"permissions": {"ask": ["Edit(calc.py)"]}}')
    assert repo.task(script=play.mending()).code == 75
    return repo


def files_of(repo: Repo) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in repo.root.rglob("*") if path.is_file()}


REFUSED: dict[str, tuple[str, str, dict[str, str]]] = {
    "a rebound name": ("GET", "{token}", {"Host": "attacker.example:{port}"}),
    "another port": ("GET", "{token}", {"Host": "127.0.0.1:1"}),
    "no port": ("GET", "{token}", {"Host": "127.0.0.1"}),
    "a longer name": ("GET", "{token}", {"Host": "127.0.0.1:{port}.attacker.example"}),
    "no host": ("GET", "{token}", {"Host": ""}),
    "a wrong token": ("GET", "wrong", {}),
    "a part of the token": ("GET", "{half}", {}),
    "a token with more": ("GET", "{token}x", {}),
    "no token": ("GET", "", {}),
    "a token that is no text": ("GET", "%ff%fe", {}),
    "a page of another origin": ("GET", "{token}", {"Origin": "http://attacker.example"}),
    "a form of another origin": ("POST", "{token}", {"Origin": "http://attacker.example"}),
    "another port's page": ("POST", "{token}", {"Origin": "http://127.0.0.1:1"}),
    "a form of a hidden origin": ("POST", "{token}", {"Origin": "null"}),
    "an action from nowhere": ("POST", "{token}", {}),
    "the secure twin": ("POST", "{token}", {"Origin": "https://127.0.0.1:{port}"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_and_learn_nothing(told: tuple[Repo, Page], name: str) -> None:
    repo, page = told
    method, token, headers = REFUSED[name]
    fill: dict[str, Any] = {"token": page.token, "half": page.token[:20], "port": page.port}
    before = files_of(repo)
    for rest in ("/", f"/tasks/{repo.folder.name}/", f"/tasks/{repo.folder.name}/undo", "/live.js"):
        path = f"/{token.format(**fill)}{rest}"
        sent = {key: value.format(**fill) for key, value in headers.items()}
        sent["Content-Type"] = "application/json"
        answered = page.ask(method, path, sent, b'{"dry_run": false}')
        assert answered.code == 403, rest
        assert answered.text.startswith("Refused: ")
        assert page.token not in answered.text
        assert repo.folder.name not in answered.text
        assert "default-src 'none'" in answered.headers["content-security-policy"]
    assert files_of(repo) == before


def test_only_this_machine_reaches_it(told: tuple[Repo, Page]) -> None:
    _, page = told
    with socket.socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect(("127.0.0.2", page.port))
    for name in ("127.0.0.1", "localhost"):
        assert page.get("", Host=f"{name}:{page.port}").code == 200


def test_every_answer_has_the_strict_headers_and_no_script_in_it(told: tuple[Repo, Page]) -> None:
    repo, page = told
    task = f"tasks/{repo.folder.name}"
    wanted = {"": 200, f"{task}/": 200, f"{task}/evidence/ev-0001": 200, "live.js": 200, "style.css": 200}
    wanted |= {"memory": 200}
    wanted |= {"web.css": 200, "icon.svg": 200, "nothing": 404, f"{task}/undo": 405, "tasks/x/": 404}
    for path, code in wanted.items():
        answered = page.get(path)
        assert answered.code == code, path
        policy = answered.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy)
        assert not any("unsafe" in rule or "*" in rule for rule in policy)
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert answered.headers["referrer-policy"] == "no-referrer"
        assert answered.headers["cache-control"] == "no-store"
        assert page.token not in answered.text
        if "html" in answered.headers["content-type"]:
            inline = re.findall(
                r"<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=|javascript:|https?://", answered.text
            )
            assert inline == [], path


@pytest.mark.parametrize("action", ["approve", "deny", "answer", "say", "stop", "resume", "undo"])
def test_no_get_changes_anything(told: tuple[Repo, Page], action: str) -> None:
    repo, page = told
    before = files_of(repo)
    origin = {"Origin": f"http://{page.host}"}
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        path = f"/{page.token}/tasks/{repo.folder.name}/{action}?dry_run=false&pending=x"
        assert page.ask(method, path, origin).code == 405
    sent = page.ask("POST", f"/{page.token}/tasks/{repo.folder.name}/{action}", origin, b"dry_run=false")
    assert sent.code == 415
    assert files_of(repo) == before


@pytest.mark.parametrize(
    "path",
    [
        "tasks/../../../../../etc/passwd",
        "tasks/%2e%2e%2f%2e%2e%2fcalc.py/",
        "tasks/../",
        "tasks/20200101T000000Z-none/",
        "tasks/2/",
        "tasks/{task}/evidence/../events.jsonl",
        "tasks/{task}/evidence/..%2fevents.jsonl",
        "tasks/{task}/evidence/ev-0001.json",
        "tasks/{task}/evidence/ev-9999",
        "tasks/{task}/evidence/%00",
        "tasks/{task}%00/",
        "tasks/{task}/evidence/",
        "tasks/sessions/",
        "../../calc.py",
        "server.py",
        "..%2fserver.py",
    ],
)
def test_no_path_leads_to_another_file(told: tuple[Repo, Page], path: str) -> None:
    repo, page = told
    answered = page.get(path.format(task=repo.folder.name))
    assert answered.code == 404
    assert "def add" not in answered.text
    assert "root:" not in answered.text


def test_an_unknown_task_action_or_input_is_one_clear_message(told: tuple[Repo, Page]) -> None:
    repo, page = told
    task = repo.folder.name
    assert page.act("20200101T000000Z-none", "stop").code == 404
    assert "no action" in page.act(task, "explode").json["error"]
    assert "is over: verified" in page.act(task, "stop").json["error"]
    assert "is over: verified" in page.act(task, "say", said=["hello"]).json["error"]
    assert "nothing waits" in page.act(task, "approve", pending="call-1").json["error"]
    assert page.act(task, "approve", nonsense=1).code == 409
    assert page.act(task, "deny", pending="x", reason=" ").code == 409
    assert page.act(task, "say", said=["x" * 2_000_000]).code == 413


def test_it_listens_until_ctrl_c_and_says_when_a_port_is_in_use(done: Repo) -> None:
    with serve_page(done) as page, page.follow() as followed:
        followed.wait_for(done.folder.name)
        second = done.run("web", "--port", str(page.port))
        assert second.code == 2
        assert f"port {page.port} is in use" in second.err
        assert second.out == ""
        assert page.interrupt() == 0
        out, err = page.process.communicate()
    assert (out, err) == ("", "")


def test_without_the_extra_one_line_says_how_to_install_it(done: Repo, tmp_path: Path) -> None:
    program = tmp_path / "without.py"
    hide = "import importlib.util as u\nfind = u.find_spec\n"
    hide += "u.find_spec = lambda name, *rest: None if name == 'uvicorn' else find(name, *rest)\n"
    program.write_text(f"{hide}from agentflow.cli.app import main\nmain()\n", "utf-8")
    told = done.run("web", command=(sys.executable, str(program)))
    assert told.code == 2
    assert told.err == "agentflow: the page needs two more packages: pip install 'agentflow[web]'\n"


def test_a_running_task_of_another_process_is_followed_to_its_end(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, ".gitignore": "*.log\n"})
    script = play.crew(PAUSE, *play.MENDED, play.submit("calc.py"), evidence="ev-0003")
    with serve_page(repo) as page, page.follow() as tasks, repo.start_task(script) as process:
        assert "running" in tasks.wait_for(play.WHOLE_CREW)
        task = repo.folder.name
        with page.follow(task) as followed:
            followed.wait_for("until [ -e go.log ]")
            assert page.act(task, "say", said=["keep double"]).json["said"].startswith("The working role")
            repo.write({"go.log": ""})
            followed.wait_for("a + b")
            followed.wait_for("keep double")
            followed.wait_for("✓ Verified")
            process.communicate(timeout=60)
        assert process.returncode == 0
        tasks.wait_for(">verified<")
        assert "a + b" in page.get(f"tasks/{task}/").text


def test_a_killed_task_is_shown_and_goes_on_from_the_page(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, ".gitignore": "*.log\n"})
    script = play.crew(PAUSE, *play.MENDED, play.submit("calc.py"), evidence="ev-0002")
    with serve_page(repo) as page, repo.start_task(script) as process:
        eventually(lambda: any(event["tool"] == "Bash" for event in repo.events("ToolStarted")))
        task = repo.folder.name
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with page.follow() as tasks:
            tasks.wait_for("interrupted")
        with page.follow(task) as followed:
            followed.wait_for("Continue the task")
            repo.write({"go.log": ""})
            assert page.act(task, "resume").json["said"] == "The task continues."
            followed.wait_for("✓ Verified")
        eventually(lambda: repo.state()["status"] == "verified")


def list_deleted_files(pid: int) -> list[str]:
    """Return the open files of a process that have no name any more."""
    found = [place.readlink().name for place in Path(f"/proc/{pid}/fd").iterdir()]
    return [name for name in found if name.endswith("(deleted)")]


def test_approved_on_the_page_the_call_is_made_and_the_task_ends(asking: Repo) -> None:
    task = asking.folder.name
    (item,) = asking.state()["pending"]
    with serve_page(asking) as page, page.follow(task) as followed:
        followed.wait_for('data-action="approve"')
        told = page.act(task, "approve", pending=item["id"], comment="", input="").json["said"]
        assert told == f"{item['id']} approved. The task continues."
        followed.wait_for("✓ Verified")
        # the process that went on may still hold the lock
        eventually(lambda: "already approved by" in page.act(task, "approve", pending=item["id"]).text)
        eventually(lambda: bool(page.get()) and not list_deleted_files(page.process.pid))
    assert "a + b" in asking.read("calc.py")
    answer = asking.state()["answers"][item["id"]]
    assert (answer["by"], answer["via"]) == ("", "on the page")


def test_a_task_in_a_worktree_is_listed_and_decided_on_the_page_of_the_repository(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    (repo.home / ".claude").mkdir()
    (repo.home / ".claude/settings.json").write_text('{"permissions": {"ask": ["Edit(calc.py)"]}}')
    assert repo.task(play.WHOLE_CREW, "--worktree", script=play.mending()).code == 75
    (folder,) = (repo.root / ".claude/worktrees").glob("*Z-*/.claude/agentflow/*Z-*")
    task, item = folder.name, repo.run("status", "--json").json["pending"][0]["id"]
    with serve_page(repo) as page, page.follow(task) as followed:
        assert task in page.get().text
        followed.wait_for('data-action="approve"')
        said = page.act(task, "approve", pending=item).json["said"]
        assert said == f"{item} approved. The task continues."
        followed.wait_for("✓ Verified")
        eventually(lambda: "restore   calc.py" in page.act(task, "undo", dry_run=True).text)
    assert "a + b" in (folder.parents[2] / "calc.py").read_text()
    assert "a - b" in repo.read("calc.py")


def test_denied_on_the_page_the_reason_reaches_the_role(asking: Repo) -> None:
    task = asking.folder.name
    (item,) = asking.state()["pending"]
    with serve_page(asking) as page:
        assert page.act(task, "deny", pending=item["id"], reason="not this file").code == 200
        # the continuation outlives the server
        assert page.interrupt() == 0
    eventually(lambda: asking.state()["status"] not in ("running", "suspended"))
    assert "a - b" in asking.read("calc.py")
    assert "not this file" in "".join(path.read_text() for path in (asking.folder / "runs").glob("*.jsonl"))


def test_a_waiting_task_is_stopped_and_an_ended_one_undone(asking: Repo, done: Repo) -> None:
    task = asking.folder.name
    with serve_page(asking) as page:
        assert page.act(task, "stop").json["said"] == "The task has stopped."
        assert asking.state()["status"] == "cancelled"
    task = done.folder.name
    with serve_page(done) as page:
        plan = page.act(task, "undo", dry_run=True, force=False).json["said"]
        assert plan.split() == ["would", "undo", "task", task, "restore", "calc.py"], plan
        assert "a + b" in done.read("calc.py")
        done.write({"calc.py": done.read("calc.py") + "# mine\n"})
        assert "changed since" in page.act(task, "undo", dry_run=False, force=False).json["error"]
        assert "# mine" in done.read("calc.py")
        assert "undid task" in page.act(task, "undo", dry_run=False, force=True).json["said"]
        assert "a - b" in done.read("calc.py")


def test_to_stop_a_waiting_task_stops_no_other(asking: Repo) -> None:
    (waiting,) = asking.tasks
    script = play.crew(PAUSE, play.submit("calc.py"))
    with asking.start_task(script) as process, serve_page(asking) as page:
        eventually(lambda: len(asking.tasks) == 2)
        (running,) = set(asking.tasks) - {waiting}
        eventually(lambda: "ToolStarted" in (running / "events.jsonl").read_text())
        assert "another task is at work" in page.act(waiting.name, "stop").json["error"]
        assert process.poll() is None
        assert page.act(running.name, "stop").code == 200
        process.communicate(timeout=60)
    assert process.returncode == 143


def test_a_question_is_answered_on_the_page(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    asked = {"question": "Which way?", "header": "way", "options": [{"label": "left", "description": ""}] * 1}
    asked["options"] = [{"label": "left", "description": "x"}, {"label": "right", "description": "y"}]
    explorer: dict[str, Any] = play.findings()
    explorer["turns"].insert(0, play.turn(play.call("AskUserQuestion", questions=[asked])))
    assert repo.task("where is add defined?", script=[explorer]).code == 75
    task = repo.folder.name
    with serve_page(repo) as page, page.follow(task) as followed:
        assert "Which way?" in followed.wait_for('data-action="answer"')
        assert "is not an option" in page.act(task, "answer", said=["Q"]).json["error"]
        assert page.act(task, "answer", said=["B"]).json["said"] == "Answered. The task continues."
        followed.wait_for("Answered")
    assert [answer["text"] for answer in repo.state()["answers"].values()] == ["right"]


def test_what_models_files_and_commands_say_is_text(new_repo: NewRepo) -> None:
    name = f"{IMAGE.replace('/', '')}.py"
    repo = new_repo({**play.QUICK, name: "x = 1\n"})
    shout = play.turn(
        play.call("Bash", command=f"echo '{SCRIPT}'; printf '\\033[31m{IMAGE}'"), text=f"{SCRIPT}{ESCAPES}"
    )
    write = [
        play.turn(play.call("Read", file_path=name)),
        play.turn(
            play.call("Edit", file_path=name, old_string="x = 1", new_string=f"x = '{SCRIPT}{ESCAPES}'")
        ),
    ]
    script = play.crew(shout, *write, *play.MENDED, play.submit("calc.py", name), evidence="ev-0003")
    repo.task(f"let add return the sum {SCRIPT} {IMAGE}", script=script)
    task = repo.folder.name
    shouted = next(record["id"] for record in repo.evidence() if "echo" in record["command"])
    with serve_page(repo) as page, page.follow(task) as followed:
        followed.wait_for("&lt;script&gt;")
        pages = {
            path: page.get(path).text for path in ("", f"tasks/{task}/", f"tasks/{task}/evidence/{shouted}")
        }
        pages["live"] = "".join(followed.parts.values())
        for path, text in pages.items():
            assert "&lt;script&gt;alert(1)" in text, path
            assert "<script>alert" not in text, path
            assert "<img" not in text, path
            assert "\x1b" not in text, path
            assert "\x07" not in text, path


def test_a_hundred_megabytes_of_output_are_read_page_by_page(done: Repo) -> None:
    task = done.folder.name
    output = done.folder / "evidence/ev-0001.out"
    with output.open("wb") as file:
        file.write(b"first line\n")
        file.truncate(100_000_000)
        file.seek(100_000_000)
        file.write(b"last line\n")
    with serve_page(done) as page:
        begin = page.get(f"tasks/{task}/evidence/ev-0001?page=1").text
        end = page.get(f"tasks/{task}/evidence/ev-0001?page=9999").text
        odd = page.get(f"tasks/{task}/evidence/ev-0001?page=-1").text
        whole = page.get(f"tasks/{task}/").text
        status = Path(f"/proc/{page.process.pid}/status").read_text()
    assert "first line" in begin
    assert "first line" in odd
    assert "page 1526 of 1526" in end
    assert "last line" in end
    assert len(whole) < 1_000_000
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak < 200_000, "kB"
