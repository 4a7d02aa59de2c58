"""A change of what a project depends on is told, and what is odd about it lessens the result."""

from collections.abc import Callable, Mapping

from tests.support import play
from tests.support.repo import Repo

NewRepo = Callable[[dict[str, str]], Repo]
FILES = {**play.QUICK, "requirements.txt": "alpha==1.0\nbeta==2.0\n"}
MOVED = play.edit("requirements.txt", "alpha==1.0", "alpha==1.1\ngamma==3.0")
ODD = play.edit("requirements.txt", "alpha==1.0", "alpha==1.0\nreqeusts==3.0")
AUDIT = '#!/bin/sh\necho "looking at $2"\necho "Found 2 known vulnerabilities in 1 package"\nexit 1\n'


def test_a_changed_dependency_is_told_and_is_no_caveat(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    assert repo.task(script=play.mending(*play.MENDED, *MOVED)).code == 0
    report = (repo.folder / "report.md").read_text()
    assert "dependencies in requirements.txt: added gamma ==3.0" in report
    assert "dependencies in requirements.txt: moved alpha from ==1.0 to ==1.1" in report
    assert "dependency audit: not run (the network is closed to checks" in report


def test_a_changed_dependency_alone_is_unproved_and_says_how_to_try_it(new_repo: NewRepo) -> None:
    repo = new_repo({**play.GREEN, "requirements.txt": FILES["requirements.txt"]})
    work = play.role("implementer", *MOVED, play.submit("requirements.txt"))
    script = [play.findings(), play.plan("requirements.txt"), work, play.verified("ev-0002")]
    done = repo.task("raise alpha to 1.1", "--json", script=script)
    assert (done.code, done.json["caveats"]) == (4, ["unproved"])
    assert "no test sees which version is named: install it, run the tests" in str(done.json["unproved"])


def test_an_odd_dependency_is_a_caveat_that_its_record_cannot_leave_out(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    done = repo.task(script=play.mending(*play.MENDED, *ODD))
    assert done.code == 4
    assert repo.state()["status"] == "verified_with_caveat"
    assert "requirements.txt: reqeusts is one letter from requests: is it meant?" in done.out
    assert repo.run("verify", repo.folder.name).code == 0


def test_what_the_task_asks_for_by_name_is_a_caveat_all_the_same(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    done = repo.task(f"{play.TEXT} and add reqeusts", script=play.mending(*play.MENDED, *ODD))

    assert (done.code, repo.state()["verdict"]["caveats"]) == (4, ["dependencies"])


def test_a_change_without_dependencies_says_nothing_of_them(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    assert repo.task(script=play.mending(*play.MENDED)).code == 0
    assert "dependenc" not in (repo.folder / "report.md").read_text().split("## Files changed")[0]


def _with_a_tool(repo: Repo) -> Mapping[str, str]:
    tool = repo.home / "tools/pip-audit"
    tool.parent.mkdir(parents=True)
    tool.write_text(AUDIT)
    tool.chmod(0o755)
    return {"PATH": f"{tool.parent}:{repo.environment['PATH']}"}


def test_a_tool_is_asked_where_the_network_is_open_to_checks(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    script, env = play.mending(*play.MENDED, *MOVED), _with_a_tool(repo)
    assert repo.task(play.TEXT, "--network", "--no-sandbox", script=script, env=env).code == 0
    said = "pip-audit -r requirements.txt: exit 1: Found 2 known vulnerabilities in 1 package"
    assert f"dependency audit: {said}" in (repo.folder / "report.md").read_text()


def test_no_tool_is_asked_unless_the_network_is_open(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    script, env = play.mending(*play.MENDED, *MOVED), _with_a_tool(repo)
    assert repo.task(play.TEXT, "--no-sandbox", script=script, env=env).code == 0
    assert "known vulnerabilities" not in (repo.folder / "report.md").read_text()


def test_a_tool_that_is_not_there_is_named(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    assert repo.task(play.TEXT, "--network", script=play.mending(*play.MENDED, *MOVED)).code == 0
    assert "not run (pip-audit is not installed)" in (repo.folder / "report.md").read_text()
