import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo, eventually

COUNTING = {**play.LIGHT, ".gitignore": "count\n"}
COUNTED = play.turn(play.call("Bash", command="echo x >> count"))


def settings(repo: Repo, **found: Any) -> None:
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))


def count(repo: Repo) -> int:
    path = repo.root / "count"
    return len(path.read_text().splitlines()) if path.exists() else 0


def submitting(*turns: dict[str, Any], evidence: str = "ev-0003") -> list[dict[str, Any]]:
    return play.crew(*turns, play.submit("calc.py"), evidence=evidence)


@pytest.fixture
def asking(new_repo: NewRepo) -> Repo:
    """A repository whose task waits for the approval of its second call of Edit, a command being done."""
    repo = new_repo(COUNTING)
    settings(repo, permissions={"ask": ["Edit(calc.py)"]})
    done = repo.task(script=submitting(COUNTED, *play.MENDED))
    assert done.code == 75, done.err
    return repo


def pending(repo: Repo) -> dict[str, Any]:
    (only,) = repo.run("status", "--json").json["pending"]
    assert isinstance(only, dict)
    return only


def test_a_call_that_a_rule_asks_about_waits_on_disk(asking: Repo) -> None:
    item = pending(asking)
    known = {"id", "kind", "tool", "input", "options", "asked_at", "expires_at"}
    assert item.keys() == known | {"needed", "given", "first_input"}
    assert (item["kind"], item["tool"]) == ("approval", "Edit")
    assert item["input"]["new_string"] == "a + b"
    assert asking.state()["status"] == "suspended"
    assert "a - b" in asking.read("calc.py")
    assert item["id"] in (asking.folder / "task.md").read_text()


def test_approved_elsewhere_it_is_made_once_and_its_siblings_are_not_repeated(asking: Repo) -> None:
    item = pending(asking)
    assert asking.run("resume").code == 75
    assert asking.run("approve", item["id"], "--by", "somebody").code == 0
    assert asking.run("approve", item["id"]).code == 0
    done = asking.run("resume")
    assert done.code == 4, done.err
    assert count(asking) == 1
    assert "a + b" in asking.read("calc.py")
    assert asking.state()["answers"][item["id"]]["by"] == "somebody"
    (run,) = asking.runs("implementer")
    assert [entry["type"] for entry in run.entries].count("RunOpened") == 1


def test_a_damaged_task_keeps_nobody_from_deciding_about_another(asking: Repo) -> None:
    item = pending(asking)
    damaged = asking.folder.with_name("20990102T030405Z-torn")
    shutil.copytree(asking.folder, damaged)
    (damaged / "events.jsonl").write_text("{}\n")
    decided = asking.run("approve", item["id"])
    assert decided.code == 0, decided.err


def test_denied_the_model_sees_the_reason_and_goes_on(asking: Repo) -> None:
    asking.run("deny", pending(asking)["id"], "--reason", "not this file")
    asking.run("resume")
    (run, *_) = asking.runs("implementer")
    assert any(result["is_error"] and "not this file" in result["content"] for result in run.results)
    assert asking.diff() == ""


def test_an_approval_may_change_the_input(asking: Repo) -> None:
    given = {"file_path": "calc.py", "old_string": "a - b", "new_string": "b + a"}
    asking.run("approve", pending(asking)["id"], "--args", json.dumps(given))
    assert asking.run("resume").code == 4
    assert "b + a" in asking.read("calc.py")


@pytest.mark.parametrize(("switch", "code"), [("--yes", 4), ("--no-input", 1)])
def test_consent_given_beforehand_asks_nobody(new_repo: NewRepo, switch: str, code: int) -> None:
    repo = new_repo(COUNTING)
    settings(repo, permissions={"ask": ["Edit(calc.py)"]})
    done = repo.task(switch, play.TEXT, script=submitting(COUNTED, *play.MENDED))
    assert done.code == code, done.err


def test_a_denying_rule_cannot_be_waved_through(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    settings(repo, permissions={"deny": ["Edit(calc.py)"], "allow": ["Edit"]})
    repo.task("--yes", play.TEXT, script=submitting(COUNTED, *play.MENDED))
    assert repo.diff() == ""
    assert repo.events("ToolBlocked")


def test_what_is_not_pending_or_over_is_said(asking: Repo) -> None:
    assert asking.run("approve", "p9-9").code == 2
    assert asking.run("approve", pending(asking)["id"], "--args", "[1]").code == 2
    asking.run("approve", pending(asking)["id"])
    asking.run("resume")
    done = asking.run("resume")
    assert done.code == 2
    assert "over" in done.err


def test_a_question_suspends_and_its_answer_is_the_result(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    head = (
        "name: explorer\ndescription: d\ntools: [Read, AskUserQuestion]\nmetadata: {agentflow-role: explorer}"
    )
    repo.give_role("explorer", f"---\n{head}\n---\nLook.\n")
    options = [{"label": "integers"}, {"label": "floats"}]
    asks = play.turn(
        play.call("AskUserQuestion", questions=[{"question": "Which numbers?", "options": options}])
    )
    explorer = play.findings()
    explorer["turns"].insert(0, asks)
    script = [explorer, *submitting(*play.MENDED, evidence="ev-0002")[1:]]
    done = repo.task(script=script)
    assert done.code == 75
    assert pending(repo)["options"] == ["integers", "floats"]
    task_id = repo.folder.name
    assert repo.run("answer", task_id, "B").code == 4
    assert repo.runs("explorer")[0].results[0]["content"] == "floats"


def test_pause_after_a_phase(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    done = repo.task(
        "--pause-after", "planning", play.WHOLE_CREW, script=submitting(*play.MENDED, evidence="ev-0002")
    )
    assert done.code == 75
    assert repo.runs("implementer") == []
    assert repo.run("resume").code == 4
    assert repo.task("--pause-after", "dreaming", play.TEXT, script=[]).code == 2


def test_killed_in_the_middle_it_goes_on_without_repeating_what_was_done(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    held = play.role(
        "implementer",
        COUNTED,
        *play.MENDED,
        play.turn(play.call("Bash", command="sleep 60")),
        play.submit("calc.py"),
    )
    script = [play.findings(), play.plan("calc.py"), held, play.verified("ev-0003")]
    with repo.start_task(script) as process:
        eventually(lambda: any(event["tool"] == "Bash" for event in repo.events("ToolStarted")[3:]))
        process.kill()
    assert repo.state()["task"] == play.WHOLE_CREW
    done = repo.run("resume")
    assert done.code == 4, done.err
    assert count(repo) == 1
    (run,) = repo.runs("implementer")
    assert sum("interrupted" in result["content"] for result in run.results) == 1


def test_a_provider_that_was_down_is_asked_again_on_resume(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    script = [{"match": {"role": "explorer"}, "turns": [{"error": 529}]}]
    assert repo.task(script=script).code == 6
    path = repo.home / "script.yaml"
    path.write_text(json.dumps(submitting(*play.MENDED, evidence="ev-0002")))
    assert repo.run("resume").code == 4


def test_cancel_ends_a_running_task_from_another_terminal(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    slow = play.role("explorer", play.turn(play.call("Read", file_path="calc.py")))
    slow["delay"] = 300
    with repo.start_task([slow]) as process:
        eventually(lambda: bool(repo.tasks) and bool(repo.events("Asked")))
        assert repo.run("cancel", repo.folder.name).code == 0
        assert process.wait(60) == 143
    assert repo.state()["status"] == "cancelled"


HOOK = "#!/bin/sh\n{body}\n"


def hooked(repo: Repo, body: str, point: str = "PreToolUse", **more: Any) -> None:
    script = repo.home / "hook.sh"
    script.write_text(HOOK.format(body=body))
    script.chmod(0o755)
    handler = {"type": "command", "command": str(script), **more}
    settings(repo, hooks={point: [{"matcher": "Edit" if "Tool" in point else "", "hooks": [handler]}]})


def test_a_hook_script_denies_and_the_loop_goes_on(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    hooked(repo, "echo 'calc.py is frozen' >&2; exit 2")
    repo.task(script=submitting(COUNTED, *play.MENDED))
    (run, *_) = repo.runs("implementer")
    assert any("calc.py is frozen" in result["content"] for result in run.results)
    assert run.outcome == "submitted"
    assert repo.diff() == ""


BROKEN = {"slow": ("sleep 30", {"timeout": 1}), "crashing": ("kill -9 $$", {}), "not found": ("exit 127", {})}


@pytest.mark.parametrize(("body", "more"), BROKEN.values(), ids=BROKEN)
def test_a_guard_that_cannot_do_its_work_blocks(new_repo: NewRepo, body: str, more: dict[str, Any]) -> None:
    repo = new_repo(COUNTING)
    hooked(repo, body, **more)
    repo.task(script=submitting(COUNTED, *play.MENDED))
    assert repo.diff() == ""


def test_a_plain_failure_of_a_hook_decides_nothing_and_is_shown(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    hooked(repo, "echo oops >&2; exit 1")
    assert repo.task(script=submitting(COUNTED, *play.MENDED)).code == 4
    assert any("oops" in event["message"] for event in repo.events("Warned"))


def test_a_stop_hook_that_always_blocks_ends_after_eight(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    hooked(repo, "echo again >&2; exit 2", "Stop")
    again = [play.role("implementer", play.submit("calc.py")) for _ in range(9)]
    checks = [play.verified("ev-0002") for _ in range(10)]
    script = [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *play.MENDED, play.submit("calc.py")),
        *again,
        *checks,
    ]
    done = repo.task("--max-iterations", "20", play.TEXT, script=script)
    assert done.code == 5
    assert repo.state()["status"] == "blocked"


def test_a_prompt_hook_refuses_a_task_and_a_session_hook_adds_context(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    hooked(repo, "echo 'not on Sundays' >&2; exit 2", "UserPromptSubmit")
    done = repo.task(script=submitting(*play.MENDED))
    assert done.code == 5
    assert "not on Sundays" in done.err + done.out
    hooked(repo, "echo 'house rule: no globals'", "SessionStart")
    assert repo.task(script=submitting(*play.MENDED, evidence="ev-0002")).code == 4
    brief = next(path for task in repo.tasks for path in task.glob("runs/1-explorer.jsonl")).read_text()
    assert "house rule: no globals" in brief


def test_hooks_of_the_repository_count_only_once_they_are_trusted(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    handler = {"type": "command", "command": "exit 2"}
    planted = {"hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [handler]}]}}
    repo.write({".claude/settings.json": json.dumps(planted)}).commit()
    assert repo.task(script=submitting(COUNTED, *play.MENDED)).code == 4
    repo.git("checkout", "-q", "calc.py")
    assert repo.run("trust", "--yes").code == 0
    repo.task(script=submitting(COUNTED, *play.MENDED))
    assert repo.diff() == ""


def killed_after(repo: Repo, kind: str, **fields: Any) -> None:
    """Put a finished task's files back to where they stood right after an event."""
    path = repo.folder / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    found = [json.loads(line) for line in lines]
    last = next(
        place
        for place, event in enumerate(found)
        if event["type"] == kind and all(event[key] == value for key, value in fields.items())
    )
    path.write_text("".join(lines[: last + 1]))
    kept = {event["evidence"] for event in found[: last + 1] if event["type"] == "EvidenceRecorded"}
    for file in (repo.folder / "evidence").iterdir():
        if file.stem not in kept:
            file.unlink()
    runs = {event["run"] for event in found[: last + 1] if event["type"] == "RunStarted"}
    for file in (repo.folder / "runs").iterdir():
        if int(file.name.split("-")[0]) not in runs:
            file.unlink()
    (repo.folder / "report.md").unlink()


def test_killed_right_after_a_role_had_its_result_the_role_is_not_run_again(
    new_repo: NewRepo, tmp_path: Path
) -> None:
    repo = new_repo(COUNTING)
    assert repo.task(script=submitting(COUNTED, *play.MENDED)).code == 4
    used = repo.state()["usage"]
    shutil.copytree(repo.root, tmp_path / "finished", symlinks=True)
    for name in ("explorer", "planner", "implementer", "verifier"):
        shutil.rmtree(repo.root)
        shutil.copytree(tmp_path / "finished", repo.root, symlinks=True)
        repo.git("checkout", "-q", "calc.py") if name in {"explorer", "planner"} else None
        killed_after(repo, "RunEnded", role=name)
        done = repo.run("resume")
        assert done.code == 4, (name, done.err)
        assert all(len(repo.runs(role)) == 1 for role in ("explorer", "planner", "implementer", "verifier"))
        assert repo.state()["usage"] == used


def test_killed_before_the_end_was_told_resume_tells_it(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    assert repo.task(script=submitting(COUNTED, *play.MENDED)).code == 4
    killed_after(repo, "StateChanged", changed=repo.events("StateChanged")[-1]["changed"])
    done = repo.run("resume")
    assert done.code == 4, done.err
    assert (repo.folder / "report.md").exists()
    assert repo.run("resume").code == 2


def test_refused_calls_end_in_a_forced_submission_not_in_a_failure(new_repo: NewRepo) -> None:
    repo = new_repo(COUNTING)
    explorer = play.findings()
    explorer["turns"][:0] = [play.turn(play.call("Bash", command="cat .env")) for _ in range(3)]
    done = repo.task(script=[explorer, *submitting(*play.MENDED, evidence="ev-0002")[1:]])
    assert done.code == 4, done.err
    (run,) = repo.runs("explorer")
    assert run.forced[-1] == "SubmitFindings"
