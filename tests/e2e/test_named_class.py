"""A person says what a task is: a question, or the class of a change."""

from collections.abc import Sequence
from itertools import cycle

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

CHANGING = "fix add in calc.py and delete the tests"


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


def roles(repo: Repo) -> list[str]:
    runs = sorted((repo.folder / "runs").glob("*.jsonl"), key=lambda path: int(path.name.split("-")[0]))
    return [path.stem.split("-", 1)[1] for path in runs]


@pytest.mark.parametrize("text", [CHANGING, "where is add defined?", "refactor the payment module", "do it"])
def test_a_question_changes_nothing_whatever_its_words(repo: Repo, text: str) -> None:
    asked = repo.run("ask", *text.split(), "--model", repo.scripted([play.findings()]))
    assert asked.code == 0, asked.err
    assert asked.out.startswith("found\n")
    assert repo.diff() == ""
    assert roles(repo) == ["explorer"]
    assert not repo.runs("explorer")[0].tools & {"Edit", "Write", "SubmitChange"}
    assert (repo.state()["route"], repo.state()["status"]) == ("question", "answered")
    assert not list((repo.root / ".claude").glob("research-*"))


def test_a_question_cannot_be_talked_into_a_change(repo: Repo) -> None:
    tries = play.role(
        "explorer",
        *play.edit("calc.py", "a - b", "a + b"),
        play.turn(play.call("Bash", command="echo x > calc.py; rm -rf tests")),
        play.turn(play.call("SubmitFindings", summary="done", findings=[], open_questions=[])),
    )
    asked = repo.run("ask", CHANGING, "--json", "--model", repo.scripted([tries]))
    assert asked.code == 0, asked.err
    assert (asked.json["status"], asked.json["answer"], asked.json["files_changed"]) == (
        "answered",
        "done",
        [],
    )
    assert repo.diff() == ""


REFUSED: dict[str, tuple[Sequence[str], str]] = {
    "no words": (["ask"], "for example: agentflow ask where"),
    "an unknown option": (["ask", "where", "is", "it", "--dry-run"], "unknown option --dry-run"),
    "an option of a change": (
        ["ask", "where is it", "--max-iterations", "3"],
        "unknown option --max-iterations",
    ),
    "a class that is none": (
        ["task", "fix it", "--class", "huge"],
        "classes: trivial, exploratory, implementation, complex, research, question",
    ),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_question_and_no_class_is_refused(repo: Repo, words: Sequence[str], said: str) -> None:
    refused = repo.run(*words)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    assert not (repo.root / ".claude").exists()


CLASSES = {
    "trivial": ("single_file", "trivial", ["implementation"]),
    "implementation": (
        "default",
        "implementation",
        ["implementation", "verification"],
    ),
    "complex": (
        "full",
        "complex",
        ["exploration", "planning", "implementation", "review", "verification"],
    ),
    "exploratory": ("exploratory", "exploratory", ["exploration"]),
    "research": ("research", "research", ["exploration"]),
    "question": ("question", "exploratory", ["exploration"]),
}


TEXTS = ("how does add work?", "rename the column users.email")


@pytest.mark.parametrize(("name", "text"), list(zip(CLASSES, cycle(TEXTS), strict=False)))
def test_the_class_that_is_named_counts_and_not_the_words(repo: Repo, name: str, text: str) -> None:
    repo.task(text, "--class", name, "--pause-after", "refinement", script=play.mending())
    state = repo.state()
    route, complexity, steps = CLASSES[name]
    if name == "complex" and "column" in text:
        route, steps = "migration", ["planning", "implementation", "review", "verification"]
    if name == "exploratory" and "?" in text:
        route = "question"
    assert (state["route"], state["task_complexity"], state["steps"]) == (route, complexity, steps)
    (classified,) = repo.events("Classified")
    assert classified["reasons"][0] == f"named by a person: {name}"


def test_a_named_class_is_kept_when_the_task_goes_on(repo: Repo) -> None:
    script = [play.role("implementer", *play.MENDED, play.submit("calc.py"))]
    paused = repo.task("make add right", "--class", "trivial", "--pause-after", "refinement", script=script)
    assert paused.code == 75
    resumed = repo.run("resume")
    assert resumed.code == 0, resumed.err
    assert roles(repo) == ["implementer"]
    assert repo.state()["task_complexity"] == "trivial"


def test_a_change_that_outgrows_the_named_class_rises_all_the_same(new_repo: NewRepo) -> None:
    others = {f"part{number}.py": "x = 1\n" for number in range(6)}
    repo = new_repo({**play.CALC, **others})
    changes = [step for name in others for step in play.edit(name, "x = 1", "x = 2")]
    script = [play.role("implementer", *play.MENDED, *changes, play.submit("calc.py"))]
    repo.task("make add right", "--class", "trivial", script=script)
    assert repo.state()["task_complexity"] == "complex"
