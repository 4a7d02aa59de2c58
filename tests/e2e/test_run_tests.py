"""The tool `RunTests`: a role runs tests by the repository's own runner, and is told what failed."""

import json

from tests.support import play
from tests.support.repo import NewRepo

RUN = play.turn(play.call("RunTests"))
HOSTILE = "x; touch /tmp/here) or $(touch pwned) or `touch pwned`"


def test_a_role_runs_the_tests_that_it_names_and_sees_only_what_is_new(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, "pyproject.toml": "[tool.pytest.ini_options]\n"})
    repo.write(
        {".claude/settings.json": json.dumps({"permissions": {"ask": ["Bash"], "deny": ["Edit(tests/**)"]}})}
    )
    spoils = "def test_spoils():\n    open('left', 'w').close()\n    assert False\n"
    script = [
        play.role(
            "implementer",
            RUN,
            play.turn(play.call("RunTests"), play.call("RunTests", pattern=HOSTILE)),
            *play.MENDED,
            play.turn(play.call("Write", file_path="test_new.py", content=spoils)),
            play.turn(play.call("RunTests", paths=["test_new.py"])),
            play.turn(play.call("RunTests", paths=["../x"])),
            play.turn(play.call("RunTests", pattern="add")),
            play.submit("calc.py"),
        ),
        play.role("verifier", RUN, play.turn(play.call("SubmitVerdict", verdict="FAILED", reasons=["r"]))),
    ]
    done = repo.task("fix add() in calc.py", "--max-iterations", "1", script=script)
    (run,) = repo.runs("implementer")
    first, again, hostile, alone, outside, green = (
        result["content"] for call, result in run.calls if call["name"] == "RunTests"
    )
    assert "1 failed" in first.splitlines()[0], done.err
    assert "\nexit 1, evidence ev-" in first
    assert "failed before the task too: tests/test_calc.py::CalcTest::test_add" in first
    assert "FAILED tests/test_calc.py::CalcTest::test_add\n  tests/test_calc.py:" in first
    assert "test_add: as before" in again
    assert "assert" not in again
    assert "no test ran" in hostile
    assert "1 failed: " in alone
    assert "test_spoils\n  test_new.py:3" in alone
    assert outside == "../x leads out of the repository"
    assert "failed" not in green
    assert "\nexit 0, evidence ev-" in green
    assert [name for name in ("left", "pwned") if (repo.root / name).exists()] == []
