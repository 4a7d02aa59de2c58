"""Hooks that ask for the sandbox, and the shipped one that does, through the installed command."""

import json
import socket

from tests.support import play
from tests.support.repo import NewRepo, Repo

COMMAND, KNOWN, SKIP = (
    f".claude/{name}" for name in ("test-command", "known-test-failures", "skip-test-verification")
)
GUARD = """import json, pathlib, socket, sys
call = json.load(sys.stdin)["tool_input"]
seen = []
for name, do in {
    "calc": lambda: pathlib.Path("calc.py").read_text(),
    "log": lambda: pathlib.Path("hooks.log").write_text("x"),
    "home": lambda: pathlib.Path("%(home)s/secret").read_text(),
    "net": lambda: socket.create_connection(("127.0.0.1", %(port)s), 5),
}.items():
    try:
        do()
        seen.append(name)
    except OSError:
        pass
if "forbidden" in call.get("command", ""):
    print("forbidden by a guard that reaches", *seen, file=sys.stderr)
    sys.exit(2)
"""


def test_a_trusted_hook_in_the_sandbox_guards_a_task(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    (repo.home / "secret").write_text("x")
    entry = {"type": "command", "command": "python3 .claude/guard.py", "sandbox": True}
    settings = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [entry]}]}})
    with socket.create_server(("127.0.0.1", 0)) as server:
        guard = GUARD % {"home": repo.home, "port": server.getsockname()[1]}
        repo.write({".claude/guard.py": guard, ".claude/settings.json": settings}).commit()
        assert "runs at PreToolUse, in the sandbox of read-only roles" in repo.run("trust", "--yes").out
        call_file = {"tool_name": "Bash", "tool_input": {"command": "forbidden"}}
        (repo.home / "call.json").write_text(json.dumps(call_file))
        given = ("--input", str(repo.home / "call.json"))
        (row,) = repo.run("hooks", "test", ".claude/guard", "--event", "PreToolUse", "--json", *given).json
        assert (row["decision"], row["reason"]) == ("deny", "forbidden by a guard that reaches calc")
        script = play.crew(
            play.turn(play.call("Bash", command="echo forbidden")), *play.MENDED, play.submit("calc.py")
        )
        done = repo.task(play.WHOLE_CREW, "--json", script=script)
        assert (done.code, done.json["files_changed"]) == (0, ["calc.py"]), done.err
        assert "forbidden by a guard that reaches calc" in results(repo)
        done = repo.task(play.WHOLE_CREW, "--json", "--no-sandbox", script=script)
    assert done.code != 0
    assert "was not run, because it asks for a sandbox: there is none: --no-sandbox" in results(repo)
    assert not (repo.root / "hooks.log").exists()


def results(repo: Repo) -> str:
    """Return what the implementer of the newest task was told."""
    return "".join(path.read_text() for path in max(repo.tasks).glob("runs/*implementer.jsonl"))


OLD = (
    "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        open('out', 'w')\n"
)


def gate(repo: Repo) -> tuple[str, str, str]:
    """Return what the completion gate decides, why, and what it tells the person."""
    (row,) = repo.run("hooks", "test", "completion-gate", "--event", "TaskCompleted", "--json").json
    return row["decision"], row["reason"] or "", row.get("notice", "")


def test_the_completion_gate_runs_trusted_tests_where_they_write_nothing(new_repo: NewRepo) -> None:
    green = play.CALC["calc.py"].replace("return a - b", "return a + b")
    repo = new_repo({**play.CALC, "calc.py": green, COMMAND: "python3 -m unittest discover -s tests\n"})
    assert gate(repo) == ("go on", "", f"{COMMAND} not trusted, so not used: agentflow trust")
    repo.run("trust", "--yes")
    assert gate(repo) == ("go on", "", "")
    repo.write({"tests/test_old.py": OLD})
    decision, reason, _ = gate(repo)
    assert (decision, reason) == ("block", "These tests fail: test_old.Old.test_old")
    assert not (repo.root / "out").exists()
    repo.write({KNOWN: "test_old.Old.test_old\n"})
    decision, reason, told = gate(repo)
    assert (decision, told) == ("block", f"{KNOWN} not trusted, so not used: agentflow trust")
    repo.run("trust", "--yes")
    assert gate(repo) == ("go on", "", "")
    repo.write({KNOWN: "", SKIP: "no database here\n"})
    assert gate(repo)[0] == "block"
    repo.run("trust", "--yes")
    assert gate(repo) == ("go on", "", "The tests were not run: no database here")
