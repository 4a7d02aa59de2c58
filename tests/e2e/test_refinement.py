"""From words to an intent: saved first, told word for word, unclear text asked about once or assumed."""

from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo
from tests.support.terminal import at_terminal

ODD = 'fix "add": it\'s red # now 🙂\nDo not change `tests/`: only code.\nIt must stay a one-liner.'
VAGUE = "make everything better somehow"


def planner(*files: str, summary: str = "plan") -> dict[str, Any]:
    steps = [{"title": f"edit {file}", "files": [file]} for file in files]
    return play.role(
        "planner",
        play.turn(play.call("SubmitPlan", summary=summary, steps=steps, acceptance=[], risks=["none"])),
    )


def crew(*planners: dict[str, Any]) -> list[dict[str, Any]]:
    work = play.role("implementer", *play.MENDED, play.submit("calc.py"))
    review = play.role("reviewer", play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[])))
    return [play.findings(), *(planners or (planner("calc.py"),)), work, review, play.verified("ev-0002")]


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.LIGHT)


def briefs(repo: Repo) -> list[str]:
    names = ("explorer", "planner", "implementer", "reviewer", "verifier")
    return [run.brief for name in names for run in repo.runs(name)]


def test_the_words_reach_every_role_as_they_are(repo: Repo) -> None:
    assert repo.task("--class", "complex", "--yes", ODD, script=crew()).code == 4
    intent = repo.state()["intent"]
    assert intent["goal"] == ODD
    assert intent["constraints"] == "- Do not change `tests/`: only code.\n- It must stay a one-liner."
    assert intent["actions"].startswith('- fix "add": it')
    assert len(briefs(repo)) >= 4
    for told in briefs(repo):
        assert ODD in told
        assert intent["constraints"] in told
    types = [event["type"] for event in repo.events()]
    first = types.index("RunStarted")
    saved = [event for event in repo.events()[:first] if event["type"] == "StateChanged"]
    assert any(event["changed"].get("intent", {}).get("goal") == ODD for event in saved)


@pytest.mark.parametrize("switch", [(), ("--yes",), ("--no-input",)])
def test_a_vague_text_without_a_terminal_is_assumed_and_recorded(repo: Repo, switch: tuple[str, ...]) -> None:
    assert repo.task(VAGUE, *switch, script=crew()).code != 75
    assumptions = repo.state()["intent"]["assumptions"]
    assert assumptions.startswith("- ")
    assert repo.state()["pending"] == []
    assert "assumed" in (repo.folder / "task.md").read_text("utf-8").split("## Log")[1]
    assert all(assumptions in told for told in briefs(repo))


def test_a_vague_text_at_a_terminal_leads_to_one_question_with_a_way_out(repo: Repo) -> None:
    words = ("task", VAGUE, "--model", repo.scripted(crew()))
    seen = at_terminal(repo, *words, says=("C only add: it subtracts",))
    assert seen.text.count("? question (answer refine-1)") == 1
    assert "something else, in your own words" in seen.text
    assert "several tasks" in seen.text
    assert repo.state()["intent"]["assumptions"] == "- only add: it subtracts"
    assert "only add: it subtracts" in repo.runs("implementer")[0].brief


@pytest.mark.parametrize(
    "text", ["fix all failing tests", "make the failing tests pass", "fix add in calc.py"]
)
def test_a_clear_text_asks_and_assumes_nothing(repo: Repo, text: str) -> None:
    seen = at_terminal(repo, "task", text, "--model", repo.scripted(crew()))
    assert seen.code == 4, seen.text
    assert repo.state()["intent"]["assumptions"] == ""
    assert repo.events("Answered") == []


def test_constraints_edited_by_hand_are_in_the_next_request(repo: Repo) -> None:
    text = "let add return the sum. Do not touch double."
    repo.task(text, "--pause-after", "exploration", script=crew())
    page = repo.folder / "task.md"
    text = page.read_text("utf-8")
    assert text.count("Do not touch double") >= 2
    head, old, rest = text.partition("constraints: ")
    page.write_text(
        f"{head}{old}'- by hand: no lambdas'{rest[rest.index(chr(10) + '  assumptions') :]}", "utf-8"
    )
    assert repo.run("resume").code == 4
    assert "- by hand: no lambdas" in repo.runs("planner")[0].brief
    assert repo.state()["intent"]["constraints"] == "- by hand: no lambdas"


def test_an_edit_that_is_no_yaml_is_told_and_nothing_is_lost(repo: Repo) -> None:
    repo.task(play.WHOLE_CREW, "--pause-after", "exploration", script=crew())
    page = repo.folder / "task.md"
    page.write_text(page.read_text("utf-8").replace("intent:", "intent: ["), "utf-8")
    refused = repo.run("resume")
    assert refused.code == 2
    assert "task.md" in refused.err
    assert "Traceback" not in refused.err


RISKY = "fix the rounding of refunds in calc.py, a payment function"
MANY = [f"m{number}.py" for number in range(6)]


def test_a_plan_of_high_risk_waits_once_and_goes_on_at_the_same_phase(repo: Repo) -> None:
    assert repo.task(RISKY, script=crew()).code == 75
    (item,) = repo.state()["pending"]
    assert (item["kind"], item["options"][0]) == ("plan", "confirm")
    shown = repo.run("status").out
    assert "A | B WORDS | C WORDS" in shown
    assert "edit calc.py" in shown
    answered = repo.run("answer", repo.state()["task_id"], "A")
    assert answered.code != 75, answered.err
    assert len(repo.runs("planner")) == 1
    assert repo.runs("implementer")


def test_a_correction_makes_the_plan_anew_once_and_binds_every_role(repo: Repo) -> None:
    again = planner("calc.py", summary="second plan")
    assert repo.task(RISKY, script=crew(planner(*MANY), again)).code == 75
    answered = repo.run("answer", repo.state()["task_id"], "C", "calc.py", "alone")
    assert answered.code != 75, answered.err
    first, second = repo.runs("planner")
    assert "adjust the scope: calc.py alone" in second.brief
    assert "edit m5.py" in second.brief
    assert "edit m5.py" not in first.brief
    told = repo.runs("implementer")[0].brief
    assert "adjust the scope: calc.py alone" in told
    assert "second plan" in told
    assert "edit m5.py" not in told
    assert len(repo.events("Answered")) == 1


def test_five_files_do_not_wait(repo: Repo) -> None:
    assert repo.task("fix all failing tests", script=crew(planner(*MANY[:5]))).code != 75


def test_six_files_wait(repo: Repo) -> None:
    assert repo.task(play.WHOLE_CREW, script=crew(planner(*MANY))).code == 75
    assert repo.state()["pending"][0]["input"]["why"] == "touches 6 files"


@pytest.mark.parametrize("switch", ["--yes", "--no-input"])
def test_who_decided_beforehand_confirms_and_it_is_recorded(repo: Repo, switch: str) -> None:
    assert repo.task(RISKY, switch, script=crew()).code != 75
    assert [(each["pending"], each["by"]) for each in repo.events("Answered")] == [("plan-1", "default")]
