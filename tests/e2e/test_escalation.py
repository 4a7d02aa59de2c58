"""Questions and escalations: asked once a phase, answered from any process, told to who comes next."""

from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo
from tests.support.terminal import at_terminal

GIVEN = {
    "assumption": "amounts are floats",
    "contradiction": "add takes whole cents",
    "path": "calc.py",
    "line": 2,
    "options": ["amounts are whole cents", "amounts are decimals"],
    "recommended": "B",
}
ASK = {"questions": [{"question": "Which?", "options": [{"label": "integers"}, {"label": "floats"}]}]}
TWO = {
    "questions": [*ASK["questions"], {"question": "Round?", "options": [{"label": "up"}, {"label": "off"}]}]
}
WORK = play.role("implementer", *play.MENDED, play.submit("calc.py"))


def escalate(**changes: Any) -> dict[str, Any]:
    return play.turn(play.call("Escalate", **{**GIVEN, **changes}))


def crew(*planner: dict[str, Any], explorer: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
    """A crew whose explorer and planner do something before they submit; a planner begun anew submits."""
    looks = play.role("explorer", *explorer, *play.findings()["turns"])
    first = play.role("planner", *planner, *play.plan("calc.py")["turns"])
    return [looks, first, play.plan("calc.py"), WORK, play.verified("ev-0002")]


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.LIGHT)


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (("B",), "- amounts are decimals (in place of: amounts are floats; see calc.py:2)"),
        (("C", "whole", 'euros: "€" #1'), '- whole euros: "€" #1 (in place of: amounts are floats'),
        (("only", "cents"), "- only cents (in place of: amounts are floats"),
    ],
)
def test_an_answer_becomes_an_assumption_and_the_step_begins_anew(
    repo: Repo, said: tuple[str, ...], holds: str
) -> None:
    assert repo.task(script=crew(escalate())).code == 75
    state = repo.state()
    assert [(item["kind"], item["tool"]) for item in state["pending"]] == [("escalation", "Escalate")]
    shown = repo.run("status").out
    assert f"agentflow answer {state['task_id']} A | B | C WORDS" in shown
    assert "A  amounts are whole cents" in shown
    answered = repo.run("answer", state["task_id"], *said)
    assert answered.code == 4, answered.err
    first, second = repo.runs("planner")
    assert holds in second.brief
    assert holds not in first.brief
    assert holds in repo.runs("implementer")[0].brief
    assert [event["phase"] for event in repo.events("PhaseStarted")].count("exploration") == 1
    assert repo.state()["usage"]["output"] == sum(
        entry["reply"]["usage"]["output"]
        for name in ("explorer", "planner", "implementer", "verifier")
        for run in repo.runs(name)
        for entry in run.entries
        if entry["type"] == "ReplyReceived"
    )


@pytest.mark.parametrize(("switch", "holds"), [("--yes", "decimals"), ("--no-input", "decimals")])
def test_who_decided_beforehand_takes_what_is_recommended(repo: Repo, switch: str, holds: str) -> None:
    assert repo.task(play.WHOLE_CREW, switch, script=crew(escalate())).code == 4
    assert holds in repo.runs("implementer")[0].brief
    assert [event["by"] for event in repo.events("Answered")] == ["default"]


def test_nobody_is_asked_twice_in_a_phase(repo: Repo) -> None:
    script = crew(escalate())
    script[2] = play.role("planner", escalate(assumption="again"), *play.plan("calc.py")["turns"])
    assert repo.task(play.WHOLE_CREW, "--yes", script=script).code == 4
    (result, _) = repo.runs("planner")[1].results
    assert result["is_error"]
    assert "nobody is asked twice in one phase" in result["content"]
    assert len(repo.events("Answered")) == 1


def test_a_second_question_of_the_explorer_is_refused(repo: Repo) -> None:
    asks = play.turn(play.call("AskUserQuestion", **ASK), play.call("AskUserQuestion", **ASK))
    assert repo.task(play.WHOLE_CREW, "--no-input", script=crew(explorer=(asks,))).code == 4
    first, second, _ = repo.runs("explorer")[0].results
    assert first["content"] == "integers"
    assert "nobody is asked twice" in second["content"]


NOWHERE: dict[str, dict[str, Any]] = {
    "nowhere.py": {"path": "nowhere.py"},
    "the file has": {"line": 4000},
    "passwd": {"path": "../../etc/passwd"},
    "options": {"options": ["only one"]},
    "recommended": {"recommended": "C"},
}


@pytest.mark.parametrize(("changes", "problem"), [(NOWHERE[said], said) for said in ("passwd", "options")])
def test_an_escalation_that_names_no_place_asks_nobody(
    repo: Repo, changes: dict[str, Any], problem: str
) -> None:
    assert repo.task(script=crew(escalate(**changes))).code == 4
    result = repo.runs("planner")[0].results[0]
    assert result["is_error"]
    assert problem in result["content"]


def test_what_is_no_answer_changes_nothing(repo: Repo) -> None:
    repo.task(script=crew(escalate()))
    before = repo.state()
    for said, problem in ((("Z",), "Z is not an option"), (("C",), "C needs your own"), ((" ",), "own")):
        refused = repo.run("answer", before["task_id"], *said)
        assert refused.code == 2
        assert problem in refused.err
        assert "Traceback" not in refused.err
    item = before["pending"][0]["id"]
    assert repo.run("approve", item).code == 2
    assert repo.run("deny", item, "--reason", "no").code == 2
    assert repo.state() == before


def test_several_questions_have_options_and_an_answer_each(repo: Repo) -> None:
    assert repo.task(script=crew(explorer=(play.turn(play.call("AskUserQuestion", **TWO)),))).code == 75
    shown = repo.run("status").out
    assert "Which?" in shown
    assert "B  off" in shown
    few = repo.run("answer", repo.state()["task_id"], "A")
    assert few.code == 2
    assert "2 questions need 2 answers" in few.err
    assert repo.run("answer", repo.state()["task_id"], "2", "never, truncate").code == 4
    assert repo.runs("explorer")[0].results[0]["content"] == "Which? floats\nRound? never, truncate"


def test_an_escalation_is_answered_at_the_terminal(repo: Repo) -> None:
    words = ("task", play.WHOLE_CREW, "--model", repo.scripted(crew(escalate())))
    seen = at_terminal(repo, *words, says=("q", "c", "c whole euros"))
    assert seen.code == 4, seen.text
    assert "  assumption: amounts are floats\n  contradiction: add takes whole cents\n" in seen.text
    assert "    A  amounts are whole cents\n    B  amounts are decimals\n    C  something else" in seen.text
    assert "q is not an option" in seen.text
    assert "C needs your own words" in seen.text
    assert "whole euros" in repo.runs("implementer")[0].brief


def test_a_plan_that_is_shown_anyway_is_the_one_interruption_of_its_phase(repo: Repo) -> None:
    risky = "fix the rounding of refunds in calc.py, a payment function"
    script = [
        play.findings(),
        play.role("planner", escalate(), *play.plan("calc.py")["turns"]),
        WORK,
        play.verified("ev-0002"),
    ]
    assert repo.task(risky, "--no-review", script=script).code == 75
    assert [item["kind"] for item in repo.state()["pending"]] == ["plan"]
    assert "nobody is asked twice" in repo.runs("planner")[0].results[0]["content"]
    assert repo.run("answer", repo.state()["task_id"], "A").code != 75
    assert len(repo.events("Answered")) == 1


def test_a_wide_plan_after_an_escalation_is_taken_as_confirmed(repo: Repo) -> None:
    script = crew(escalate())
    script[2] = play.plan(*(f"m{number}.py" for number in range(6)))
    assert repo.task(play.WHOLE_CREW, "--no-review", script=script).code == 75
    assert repo.run("answer", repo.state()["task_id"], "B").code != 75
    assert [(each["pending"], each["by"]) for each in repo.events("Answered")][-1] == ("plan-1", "default")
    assert repo.runs("implementer")
