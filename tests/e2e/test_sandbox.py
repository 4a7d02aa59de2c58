"""The boundary as the installed command has it."""

import json
import os
import shutil
import signal
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.processes import processes
from tests.support.repo import COMMAND, NewRepo, Repo, eventually


def config(repo: Repo, text: str) -> None:
    path = repo.home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


READS = {
    "by a script": "printf 'cat .env deep/.env.local\n' > r.sh; sh r.sh",
    "by a program": "python3 -c \"print(open('.en' + 'v').read())\"",
    "by a glob": "cat .e*; cat deep/.e*",
    "by a link": "ln -s .env plain.txt; sh -c 'cat plain.txt'",
    "by a copy": "cp -r . /tmp/copy; sh -c 'cat /tmp/copy/.env'",
    "by an archive": "tar cf - . | strings | grep hunter",
}


def test_a_command_of_a_role_reads_no_file_of_secrets(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, ".gitignore": ".env*\nplain.txt\nr.sh\n"})
    repo.write({".env": "DB_PASSWORD=hunter2hunter2\n", "deep/.env.local": "DB_PASSWORD=hunter2hunter2\n"})
    repo.task(
        script=play.mending(*(play.turn(play.call("Bash", command=command)) for command in READS.values()))
    )

    made = [
        call["input"]["command"] for call, _ in repo.runs("implementer")[0].calls if call["name"] == "Bash"
    ]
    assert made == [*READS.values()]
    recorded = "".join(path.read_text() for path in repo.folder.rglob("*") if path.is_file())
    assert "hunter2hunter2" not in recorded


def test_the_machine_can_hold_the_full_profile(new_repo: NewRepo) -> None:
    found = json.loads(new_repo(play.CALC).run("doctor", "--json").out)
    assert found["sandbox"] == "full", "install bubblewrap: without it these tests say little"
    assert len(found["attacks"]) > 30
    assert [attack for attack in found["attacks"] if not all(attack["held"].values())] == []


def test_doctor_shows_no_secret_and_names_what_holds_it(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    secret = {"ANTHROPIC_API_KEY": "canary-secret", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    done = repo.run("doctor", env=secret)
    assert "canary-secret" not in done.out + done.err
    assert "ANTHROPIC_API_KEY present" in done.out
    assert "does not answer" in done.out
    assert done.code == 0


def test_doctor_says_what_a_missing_program_costs_and_what_mends_it(
    new_repo: NewRepo, bare_path: str
) -> None:
    said = new_repo(play.CALC).run("doctor", env={"PATH": bare_path}).out
    assert "not found: the sandbox keeps less apart; install the package bubblewrap" in said


def test_commands_of_each_role_and_the_checks_are_kept_in(new_repo: NewRepo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    attack = f"echo x > {outside}/$$; echo x > .git/x; echo x > .claude/x; echo x > .mcp.json"
    poison = (
        f"\n    def test_z(self):\n        __import__('os').system('touch {outside}/t; echo $CANARY_KEY')\n"
    )
    repo = new_repo(
        {**play.CALC, "attack.sh": attack, "tests/test_calc.py": play.CALC["tests/test_calc.py"] + poison}
    )
    made = play.turn(play.call("Bash", command="bash attack.sh"))
    script = play.mending(made, evidence="ev-0003")
    done = repo.task("mend add", script=script, env={"CANARY_KEY": "canary-secret"})
    assert done.code == 0, done.err
    assert list(outside.iterdir()) == []
    assert not any((repo.root / name).exists() for name in (".git/x", ".claude/x", ".mcp.json"))
    kept = [path.read_text("utf-8", "replace") for path in repo.folder.rglob("*") if path.is_file()]
    assert not any("canary-secret" in text for text in kept)
    assert any(".mcp.json is protected" in text for text in kept)
    assert {record["sandbox"] for record in repo.evidence()} == {"full"}


def test_a_check_writes_nothing_into_the_repository(new_repo: NewRepo) -> None:
    body = (
        play.CALC["tests/test_calc.py"] + "\n    def test_log(self):\n        open('kept.log', 'w').close()\n"
    )
    repo = new_repo({**play.CALC, "tests/test_calc.py": body})
    repo.run("verify")
    assert repo.git("status", "--porcelain") == ""


FILTERED = """import ctypes, os, sys
from agentflow.sandbox.launch import load_filter
load_filter(ctypes.CDLL(None, use_errno=True), 9)
os.execv(sys.argv[1], sys.argv[1:])"""


@pytest.fixture(scope="session")
def bare_command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command on a kernel without Landlock: a filter denies landlock_create_ruleset."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7FFF0000)]
    path = tmp_path_factory.mktemp("filter") / "filter"
    path.write_bytes(b"".join(struct.pack("=HBBI", *step) for step in steps))
    start = f"exec 9<{path}; exec {sys.executable} -c '{FILTERED}' {COMMAND}" + ' "$@"'
    return ["bash", "-c", start, "bash"]


def test_without_any_sandbox_nothing_is_run(
    new_repo: NewRepo, bare_path: str, bare_command: list[str]
) -> None:
    repo = new_repo(play.CALC)
    bare: dict[str, Any] = {"command": bare_command, "env": {"PATH": bare_path}}
    for words in (("verify",), ("task", "mend add", "--model", repo.scripted(play.mending()))):
        refused = repo.run(*words, **bare)
        assert refused.code == 7
        assert "no sandbox: bubblewrap (bwrap) is not installed; the kernel has no Landlock" in refused.err
        assert "--no-sandbox" in refused.err
    assert repo.git("status", "--porcelain", "--ignored") == ""
    config(repo, "sandbox: ask\n")
    assert repo.run("verify", **bare).code == 7
    assert repo.run("doctor", **bare).code == 7
    assert "NOT SANDBOXED" in repo.run("verify", "--no-sandbox", **bare).out


def test_the_demo_never_ends_7(
    new_repo: NewRepo, bare_path: str, bare_command: list[str], tmp_path: Path
) -> None:
    done = new_repo(play.CALC).run(
        "demo", str(tmp_path / "demo"), command=bare_command, env={"PATH": bare_path}
    )
    assert done.code == 0, done.err
    assert "NOT SANDBOXED" in done.out


def test_no_sandbox_is_said_in_every_report(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    done = repo.task("--no-sandbox", "mend", "add", script=play.mending())
    assert done.code == 0, done.err
    assert "NOT SANDBOXED" in done.err
    assert "NOT SANDBOXED" in done.out
    assert "NOT SANDBOXED" in (repo.folder / "report.md").read_text()
    assert {record["sandbox"] for record in repo.evidence()} == {"none"}
    assert repo.state()["sandbox"] == "none"


def test_the_user_s_settings_switch_it_off_and_a_repository_s_do_not(new_repo: NewRepo) -> None:
    repo = new_repo(
        {**play.CALC, ".claude/agentflow.yaml": "sandbox: off\n", ".env": "AGENTFLOW_SANDBOX=off\n"}
    )
    assert "sandbox: full" in repo.run("verify").out
    config(repo, "sandbox: off\n")
    assert "NOT SANDBOXED (config.yaml says sandbox: off)" in repo.run("verify").out


def test_partial_names_what_it_does_not_isolate(new_repo: NewRepo, bare_path: str) -> None:
    repo = new_repo(play.CALC)
    done = repo.task("mend add", script=play.mending(), env={"PATH": bare_path})
    assert done.code == 0, done.err
    report = (repo.folder / "report.md").read_text()
    assert "- sandbox: partial; not isolated: Unix sockets of services" in report
    assert "the implementer can read secrets in folders of the repository\n" in done.err
    assert "sandbox    partial: 5 things are not isolated; agentflow status names them\n" in done.out
    assert "Unix sockets of services" in repo.run("status").out
    assert {record["sandbox"] for record in repo.evidence()} == {"partial"}


def test_the_network_is_opened_by_the_user_alone(new_repo: NewRepo) -> None:
    reach = """import socket, unittest

class NetTest(unittest.TestCase):
    def test_it(self):
        names = {line.split(':')[0].strip() for line in open('/proc/net/dev').readlines()[2:]}
        self.assertGreater(len(names), 1, 'Network is unreachable')
"""
    repo = new_repo({"tests/test_net.py": reach})
    closed = repo.run("verify")
    assert closed.code == 1
    assert "the sandbox closes the network" in closed.out
    assert repo.run("verify", "--network").code == 0
    config(repo, "network: [checks]\n")
    assert repo.run("verify").code == 0
    config(repo, "network: [somebody]\n")
    refused = repo.run("verify")
    assert refused.code == 2
    assert "network" in refused.err


def test_a_check_that_needs_what_is_hidden_is_told_so(new_repo: NewRepo, tmp_path: Path) -> None:
    needed = tmp_path / "needed.txt"
    needed.write_text("1")
    test = f"    def test_it(self):\n        open({str(needed)!r})\n"
    body = f"import unittest\n\nclass T(unittest.TestCase):\n{test}"
    repo = new_repo({"tests/test_it.py": body})
    closed = repo.run("verify")
    assert closed.code == 1
    assert f"`readable: [{needed}]` in config.yaml" in closed.out
    config(repo, f"readable: ['{needed}']\n")
    assert repo.run("verify").code == 0


def test_kill_leaves_nothing_in_the_repository_and_the_next_start_clears_the_rest(
    new_repo: NewRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))  # where no other command clears away
    long = f"61.{os.getpid():07}"
    shell = f"echo '{{}}' > .mcp.json; touch sleeping; setsid sleep {long} & sleep {long}"
    repo = new_repo({**play.CALC, "attack.sh": shell})
    process = repo.start_task(
        [
            play.findings(),
            play.plan(),
            play.role("implementer", play.turn(play.call("Bash", command="bash attack.sh"))),
        ]
    )
    eventually((repo.root / "sleeping").exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()  # type: ignore[union-attr]
    process.stderr.close()  # type: ignore[union-attr]
    process.stdin.close()  # type: ignore[union-attr]
    eventually(lambda: processes(f"sleep {long}") == set())
    done = repo.run("verify")
    assert f"{repo.root}/.mcp.json is protected" in done.out
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (repo.root / ".mcp.json").exists()
    assert [path.read_text() for path in repo.root.rglob("*.set-aside/.mcp.json")] == ["{}\n"]


def test_a_killed_check_leaves_the_repository_as_it_was(
    new_repo: NewRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))  # where no other command clears away
    body = """import time, unittest
from pathlib import Path

class T(unittest.TestCase):
    def test_it(self):
        Path('calc.py').write_text('')
        Path('emptied').touch()
        time.sleep(62.5)
"""
    repo = new_repo({**play.CALC, "tests/test_calc.py": body})
    process = repo.start("verify")
    eventually(lambda: [*temporary.glob("agentflow-scratch-*/upper/emptied")] != [])
    process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()  # type: ignore[union-attr]
    assert repo.git("status", "--porcelain") == ""
    repo.run("verify", "--dry-run")
    assert list(temporary.iterdir()) == []


def test_a_sandbox_that_breaks_in_the_middle_of_a_task_ends_it_with_seven(
    new_repo: NewRepo, tmp_path: Path
) -> None:
    real = shutil.which("bwrap")
    if real is None:
        pytest.skip("no bubblewrap here")
    broken = tmp_path / "bin/bwrap"
    broken.parent.mkdir()
    fails = 'case "$*" in *unittest*) echo "bwrap: out of luck" >&2; exit 1;; esac'
    broken.write_text(f'#!/bin/sh\n{fails}\nexec {real} "$@"\n')
    broken.chmod(0o755)
    repo = new_repo(play.CALC)
    done = repo.task(env={"PATH": f"{broken.parent}:{repo.environment['PATH']}"})
    assert done.code == 7, done.err
    assert "agentflow: the sandbox could not be set up: bwrap: out of luck" in done.err.splitlines()
    assert repo.state()["status"] == "error"
    assert repo.diff() == ""


def test_a_home_that_is_no_folder_hides_nothing_and_breaks_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    home = {"HOME": os.devnull}
    assert repo.run("doctor", env=home).code == 0
    assert repo.run("verify", env=home).code == 1
    assert "1 failed" in repo.run("verify", env=home).out


def test_an_activated_environment_of_the_repository_has_no_shell_for_checks(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, ".gitignore": ".venv\n", ".venv/bin/bash": "#!/bin/sh\nexit 0\n"})
    (repo.root / ".venv/bin/bash").chmod(0o755)
    path = os.pathsep.join((str(repo.root / ".venv/bin"), os.environ["PATH"]))
    done = repo.run("verify", env={"PATH": path, "VIRTUAL_ENV": str(repo.root / ".venv")})
    assert done.code == 1, done.out
    assert "failed" in done.out
