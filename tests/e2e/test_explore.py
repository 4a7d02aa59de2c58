from agentflow.frontmatter import split
from agentflow.workflow.deep import ANGLES, MOST_EXPLORERS, choose_angles
from tests.support import play
from tests.support.repo import NewRepo, Repo

DOCUMENT = ".claude/deep-dive.local.md"
SECTIONS = ["Overview", "Architecture", "Conventions", "Anti-patterns", "Quick reference", "Notes"]
MEND = play.role("implementer", *play.MENDED, play.submit("calc.py"))


def explored(repo: Repo, *words: str, count: int = 6, delay: float = 0) -> int:
    script = [{**play.findings(), "delay": delay} for _ in range(count)]
    return repo.run("explore", *words, "--model", repo.scripted(script)).code


def test_six_explorers_work_side_by_side_on_different_briefs(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert explored(repo, delay=1) == 0
    head, body = split(repo.read(DOCUMENT), DOCUMENT)
    assert [row[3:] for row in body.splitlines() if row.startswith("## ")] == SECTIONS
    assert (head["phase"], head["agent_count"], head["scope"], head["focus_path"]) == (
        "complete",
        6,
        "full",
        None,
    )
    assert set(head["phases"]) == set(ANGLES)
    assert {"generated", "expires_hint"} <= set(head)
    runs = repo.runs("explorer")
    assert len({run.brief for run in runs}) == 6
    asked = [event["seq"] for event in repo.events("Asked")]
    replied = [event["seq"] for event in repo.events("Replied")]
    assert max(asked) < min(replied)
    assert repo.git("status", "--porcelain") == ""


def test_each_explorer_says_what_it_looks_at(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert explored(repo) == 0
    begun = [row for row in repo.run("log").out.splitlines() if "explorer: " in row]
    assert [row.rpartition("explorer: ")[2] for row in begun] == list(ANGLES)


def test_what_is_fresh_is_not_explored_again_unless_asked_to(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert explored(repo) == 0
    before = repo.read(DOCUMENT)
    assert explored(repo, count=0) == 0
    assert repo.read(DOCUMENT) == before
    assert explored(repo, "--refresh") == 0
    (old,) = (repo.root / ".claude").glob("deep-dive.local.md.bak.*")
    assert old.read_text() == before
    assert repo.git("status", "--porcelain") == ""


def test_an_angle_without_a_result_leaves_it_incomplete(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert explored(repo, count=5) == 1
    head, _ = split(repo.read(DOCUMENT), DOCUMENT)
    assert head["phase"] == "incomplete"
    assert sorted(head["phases"].values()) == ["complete"] * 5 + ["failed"]


def test_a_complete_exploration_is_used_in_place_of_a_new_one(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert explored(repo) == 0
    repo.folder.rename(repo.home / "explored")
    script = [play.plan("calc.py"), MEND]
    assert repo.task(play.WHOLE_CREW, "--context", script=script).code == 0
    assert repo.runs("explorer") == []
    assert "# Deep exploration" in repo.runs("implementer")[0].brief
    assert "--context" in repo.state()["gates"]["exploration"]["message"]


def test_an_incomplete_or_stale_one_is_named_and_not_used(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert explored(repo) == 0
    whole = repo.read(DOCUMENT)
    for change in (("phase: complete", "phase: incomplete"), ("commit: ", "commit: 0")):
        for task in repo.tasks:
            task.rename(repo.home / f"{task.name}-{change[1][:9]}")
        repo.write({DOCUMENT: whole.replace(*change)})
        done = repo.task(play.WHOLE_CREW, "--context", script=[play.findings()])
        assert "--context:" in done.err
        assert "# Deep exploration" not in repo.runs("explorer")[0].brief


def test_what_is_large_gets_more_explorers() -> None:
    small = tuple(f"src/m{number}.py" for number in range(99))
    assert len(choose_angles(small, "")) == 6
    assert len(choose_angles((*small, "src/m100.py"), "")) == 7
    assert len(choose_angles(("a/b/c/d/x.py", "a/b/c/e/x.py"), "")) == 8
    assert len(choose_angles(("x.py", "web/package.json", "web/x.ts"), "")) == 8
    assert len(choose_angles(tuple(f"f{number}/x.py" for number in range(9000)), "")) == MOST_EXPLORERS
    assert all("folder lib of" in angle.text for angle in choose_angles(("lib/x.py",), "lib"))


def test_code_that_is_imported_and_tested_gets_the_explorers_and_examples_none() -> None:
    examples = [f"examples/e{number}/{name}" for name in ("pyproject.toml", "util.py") for number in range(4)]
    sources = ["src/pager/core.py", "src/pager/text.py", "web/src/list.js", "web/package.json"]
    leads = {
        "src/pager/text.py": frozenset({"src/pager/core.py"}),
        "tests/test_core.py": frozenset({"src/pager/core.py"}),
        "web/src/list.test.js": frozenset({"web/src/list.js"}),
        **{name.replace("util", "app"): frozenset({name}) for name in examples if name.endswith(".py")},
    }
    files = (*examples, *sources, *leads)
    names = [angle.name for angle in choose_angles(files, "", leads)][len(ANGLES) :]
    areas = [name for name in names if not name.startswith("what is written in")]
    assert areas == ["src/pager", "web/src", "src/pager/core.py", "web/src/list.js"]


def test_a_folder_outside_is_refused(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert repo.run("explore", "--focus", "..").code == 2
    assert repo.run("explore", "--focus", "nowhere").code == 2
    assert repo.tasks == []
