"""What a newcomer meets on an unfriendly machine: one clear message that says what to do."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import COMMAND, NewRepo, Repo, eventually
from tests.support.session_terminal import open_terminal

FULL_DISK = """
mount -t tmpfs -o size=1m none "$1" && cp -r . "$1/repo" && cd "$1/repo" || exit 99
cat /dev/zero > ../filler
exec "$2" task make the failing tests pass
"""
SLOW_GIT = """#!/bin/sh
case " $* " in *" cat-file "*) touch {mark}; sleep 1;; esac
exec {git} "$@"
"""
HANGING_COPY = """#!/bin/sh
case " $* " in *" checkout-index "*) touch {mark}; exec sleep 100;; esac
exec {git} "$@"
"""


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


@pytest.mark.parametrize(
    ("text", "number", "code"),
    [(SLOW_GIT, signal.SIGINT, 130), (HANGING_COPY, signal.SIGINT, 130), (HANGING_COPY, signal.SIGHUP, 143)],
)
def test_a_signal_that_meets_git_is_an_interruption_at_once_and_no_failure_of_git(
    repo: Repo, tmp_path: Path, text: str, number: int, code: int
) -> None:
    mark, git = tmp_path / "mark", tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text(text.format(mark=mark, git=shutil.which("git")))
    git.chmod(0o755)
    path = f"{git.parent}{os.pathsep}{repo.environment['PATH']}"
    words = ("task", play.WHOLE_CREW, "--model", repo.scripted(play.mending()))
    with subprocess.Popen(
        ["env", "--default-signal=HUP", str(COMMAND), *words],  # nohup, under which tests may run, ignores it
        cwd=repo.root,
        env={**repo.environment, "PATH": path},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        eventually(mark.exists)
        asked = time.monotonic()
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=200)
    assert process.returncode == code, err
    assert time.monotonic() - asked < 90  # a copy that is waited for takes 100
    assert "cat-file" not in err
    assert "checkout-index" not in err


def test_a_model_that_says_done_and_did_nothing_is_told_with_the_reason(repo: Repo) -> None:
    done = repo.task(script=play.crew(play.submit("calc.py"), play.turn(text="done")))
    assert done.code == 1
    assert "it ended without a submission; its last one was refused: You have changed no files" in done.out


def test_a_result_that_is_invalid_twice_is_told_with_the_reason(repo: Repo) -> None:
    wrong = play.turn(play.call("SubmitVerdict", verdict="SURE", evidence=[], reasons=[]))
    script = [*play.mending()[:-1], play.role("verifier", wrong, wrong)]
    done = repo.task("make the failing tests pass", "--json", script=script)
    assert (done.code, done.json["caveats"]) == (4, ["verifier_disagrees"])
    (said,) = (
        row for row in (repo.folder / "report.md").read_text().splitlines() if "invalid result twice" in row
    )
    assert "twice; its last one was refused: " in said
    assert "SURE" in said


def test_a_change_is_judged_also_where_what_is_said_of_it_does_not_fit(repo: Repo) -> None:
    wrong = play.turn(play.call("SubmitChange", files=["calc.py"]))
    script = [play.role("implementer", *play.MENDED, wrong, wrong)]
    done = repo.task("fix add in calc.py", "--json", script=script)
    assert (done.code, done.json["files_changed"]) == (0, ["calc.py"]), done.err
    assert "the files are judged as they are" in done.err


ISSUE = {"severity": "minor", "kind": "style", "path": "calc.py", "line": 2, "message": "terse"}


def review(verdict: str = "APPROVED", **given: Any) -> dict[str, Any]:
    return play.turn(play.call("SubmitReview", verdict=verdict, **given))


JUDGES: dict[str, tuple[dict[str, Any], int, list[str]]] = {
    "words in place of a verdict": (play.turn(text="looks fine"), 4, ["not_reviewed"]),
    "an unknown word": (review(verdict="FINE"), 4, ["not_reviewed"]),
    "an unknown key": (review(issues=[{**ISSUE, "suggestion": "none"}]), 0, []),
    "no list": (review(), 0, []),
}


@pytest.mark.parametrize(("said", "code", "caveats"), JUDGES.values(), ids=JUDGES)
def test_the_form_of_a_review_never_loses_proved_work(
    repo: Repo, said: dict[str, Any], code: int, caveats: list[str]
) -> None:
    script = [*play.mending(), play.role("reviewer", said, said)]
    done = repo.task("make the failing tests pass", "--json", "--review", script=script)
    assert (done.code, done.json["caveats"]) == (code, caveats)
    assert (code == 0) or "the reviewer gave no valid result" in (repo.folder / "report.md").read_text()


def test_a_role_that_finds_nothing_to_change_says_so_once(repo: Repo) -> None:
    words = "add is right:\n" + "it subtracts on purpose. " * 30 + "the end"
    nothing = play.turn(play.call("SubmitChange", summary=words, files=[]))
    done = repo.task(script=play.crew(nothing, play.turn(text="not asked")))
    assert done.code == 1
    assert done.out.startswith(
        "✗ not verified: nothing was changed; the implementer says:\n  add is right:\n"
    )
    assert " ".join(done.out.split()).count("it subtracts on purpose.") == 30
    assert repo.state()["iteration"] == 1


def test_a_commit_without_a_name_says_how_to_give_one(repo: Repo) -> None:
    repo.git("config", "user.useConfigOnly", "true")
    assert repo.task(script=play.mending()).code == 0
    refused = repo.run("commit", env={"HOME": str(repo.home)})
    assert refused.code == 2
    said, advice = refused.err.splitlines()[-2:]
    assert said == "agentflow: git does not know the author of the commit"
    assert advice.startswith('  tell it: git config --global user.name "Your Name"; git config')


def test_a_home_that_cannot_be_written_is_named(repo: Repo) -> None:
    refused = repo.run("init", env={"AGENTFLOW_HOME": "/proc/nobody"})
    assert refused.code == 2
    assert "/proc/nobody" in refused.err
    assert "set HOME to one that you can write" in refused.err


def test_tests_of_another_language_are_named_when_no_model_can_be_asked(new_repo: NewRepo) -> None:
    repo = new_repo({"Makefile": "test:\n\tfalse\n", "calc.sh": "true\n"})
    done = repo.task("make the failing tests pass")
    assert done.code == 6
    assert "can only fix Python code tested by one pytest or unittest command" in done.out
    assert "the tests here are run by: make test. Set ANTHROPIC_API_KEY" in done.out


def test_a_change_that_no_check_could_judge_does_not_speak_of_tests_that_failed(new_repo: NewRepo) -> None:
    repo = new_repo(
        {
            "calc.py": "#\n#\n",
            "notes.txt": "one\n",
            "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\n',
        }
    )
    turns = (*play.edit("notes.txt", "one", "two"), play.submit("notes.txt"))
    folders = (folder for folder in repo.environment["PATH"].split(os.pathsep))
    path = os.pathsep.join(folder for folder in folders if not (Path(folder) / "cargo").exists())
    done = repo.task(play.TEXT, script=play.crew(*turns), env={"PATH": path})
    assert done.code == 4, done.err
    assert "changed, but no test could run here" in done.out
    assert "failed before" not in done.out
    assert "(evidence )" not in done.err


def test_an_endpoint_that_hangs_up_is_told_in_plain_words(repo: Repo) -> None:
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("retry: {tries: 2, base_seconds: 0, max_seconds: 0}\nrepair_seconds: 0\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = repo.task(
            "make the failing tests pass", env={"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "k"}
        )
        listener.shutdown(socket.SHUT_RDWR)
    assert done.code == 6
    assert "the connection was closed before a whole reply" in done.out
    assert "SEND_RESPONSE" not in done.out + done.err


def hang_up(listener: socket.socket) -> None:
    """Read the beginning of each request and close the connection."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65_536)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass


def test_the_help_of_a_session_fits_80_columns(repo: Repo) -> None:
    with open_terminal(repo, columns=80) as terminal:
        terminal.wait_for("leaves.")
        terminal.enter("/help")
        terminal.wait_for("A message is")
        shown = terminal.wait_for("Yours, the repository's and skills") + terminal.wait_for(
            "/verification-gates"
        )
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    assert max(len(row) for row in shown.splitlines()) <= 80


def test_a_hook_in_the_home_folder_is_found_by_check(repo: Repo) -> None:
    settings, hook = repo.home / ".claude/settings.json", repo.home / ".claude/hooks/no-lock-files.sh"
    hook.parent.mkdir(parents=True)
    command = {"type": "command", "command": "~/.claude/hooks/no-lock-files.sh"}
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [command]}]}}))
    for mode, said in ((None, "is not there"), (0o644, "is not executable"), (0o755, "0 problems")):
        if mode is not None:
            hook.write_text("#!/bin/sh\n")
            hook.chmod(mode)
        done = repo.run("check", env={"HOME": str(repo.home)})
        assert done.code == (0 if mode == 0o755 else 2)
        assert said in done.out


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk in a namespace")
def test_a_full_disk_is_one_message_that_says_what_to_do(repo: Repo, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    shell = ["unshare", "-Urm", "sh", "-c", FULL_DISK, "sh", str(disk), str(COMMAND)]
    done = subprocess.run(
        shell, cwd=repo.root, env=repo.environment, capture_output=True, text=True, check=False
    )
    if done.returncode in (1, 99) and "agentflow" not in done.stderr:
        pytest.skip(f"no namespace to mount in: {done.stderr}")
    assert done.returncode == 2, done.stderr
    assert "No space left on device" in done.stderr
    assert "free some disk space" in done.stderr


@pytest.mark.skipif(not shutil.which("bwrap"), reason="runs bwrap")
def test_a_crash_is_told_as_one_where_no_report_can_be_written(repo: Repo) -> None:
    (repo.home / "yaml.py").write_text("raise RuntimeError('a broken package')\n")
    nowhere = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", str(COMMAND))
    done = repo.run("route", play.TEXT, command=nowhere, env={"PYTHONPATH": str(repo.home)})
    assert done.code == 70, done.err
    first, *_, last = done.err.splitlines()
    assert first.startswith("agentflow: internal error; its report cannot be written: No usable temporary")
    assert last == "  RuntimeError: a broken package"
