"""A person tells a running task something, and watches it from another terminal."""

from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import Recorded, Repo, eventually


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    files = {**play.QUICK, ".gitignore": "*.log\n"}
    return Repo(tmp_path / "a repository", tmp_path / "home").write(files).commit()


def test_a_message_reaches_the_role_that_works_and_later_ones_and_the_replay(repo: Repo) -> None:
    is_replayed = f"[ \"$PWD\" != '{repo.root}' ]"  # where nobody says anything
    pause = play.turn(play.call("Bash", command=f"until [ -e go.log ] || {is_replayed}; do sleep 0.1; done"))
    script = play.crew(pause, *play.MENDED, play.submit("calc.py"), evidence="ev-0003")
    with repo.start_task(script) as process:
        eventually(lambda: any(event["tool"] == "Bash" for event in repo.events("ToolStarted")))
        watching = repo.start("watch")
        said = repo.run("say", "keep", "double", "as", "it", "is,", "key", "{x}")
        assert said.code == 0, said.err
        repo.write({"go.log": ""})
        _, told = process.communicate(timeout=120)
        with watching:
            shown, _ = watching.communicate(timeout=60)
    assert (process.returncode, watching.returncode) == (0, 0), told
    assert "> keep double as it is" in shown, shown
    assert "verified" in shown
    (implementer,), (verifier,) = repo.runs("implementer"), repo.runs("verifier")
    assert implementer.notices == ["brief", "person"]
    assert "keep double as it is, key {x}" in implementer.path.read_text()
    assert "keep double" not in implementer.brief
    assert "## Said since\n- keep double as it is, key {x}" in verifier.brief
    assert len(repo.events("PersonSaid")) == 1
    assert repo.run("replay").code == 0
    over = repo.run("say", "too late")
    assert over.code == 2
    assert "is over: verified" in over.err
    finished = repo.run("watch")
    assert finished.code == 0
    assert "> keep double as it is" in finished.out


def test_a_message_that_waits_is_read_after_a_kill_once(repo: Repo) -> None:
    pause = play.turn(play.call("Bash", command="sleep 30"))
    script = play.crew(pause, *play.MENDED, play.submit("calc.py"), evidence="ev-0002")
    with repo.start_task(script) as process:
        eventually(lambda: any(event["tool"] == "Bash" for event in repo.events("ToolStarted")))
        assert repo.run("say", "mind the zero").code == 0
        process.kill()
    resumed = repo.run("resume")
    assert resumed.code == 0, resumed.err
    told = [Recorded(path).notices.count("person") for path in (repo.folder / "runs").glob("*-implementer*")]
    assert sum(told) == 1


def test_nobody_is_told_anything_without_a_task_or_a_text(repo: Repo) -> None:
    assert repo.run("say", "hello").code == 2
    assert repo.run("say").code == 2
    assert repo.run("watch").code == 2
    done = repo.task(play.WHOLE_CREW, script=play.mending())
    assert done.code == 0
    assert repo.run("say", repo.folder.name).code == 2
