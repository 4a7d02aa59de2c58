"""Todos: the planner keeps them, the implementer ends the current one, code holds both to the rules."""

from typing import Any

from tests.support import play
from tests.support.repo import NewRepo, Recorded, Repo

STEPS = [
    {"id": 1, "content": "mend add", "status": "in_progress"},
    {"id": 2, "content": "look again", "status": "pending"},
]
GREEN = play.turn(play.call("Bash", command="make test"))


def todos(*items: dict[str, Any]) -> dict[str, Any]:
    return play.turn(play.call("TodoWrite", todos=list(items)))


def crew(planner: list[dict[str, Any]], *implementer: dict[str, Any]) -> list[dict[str, Any]]:
    last = play.plan("calc.py")["turns"]
    work = play.role("implementer", *play.MENDED, GREEN, *implementer, play.submit("calc.py"))
    return [play.findings(), play.role("planner", *planner, *last), work, play.verified()]


def run_of(repo: Repo, name: str) -> Recorded:
    return repo.runs(name)[0]


def results(repo: Repo, name: str, tool: str) -> list[tuple[str, bool]]:
    return [
        (result["content"], result.get("is_error", False))
        for made, result in run_of(repo, name).calls
        if made["name"] == tool
    ]


def test_the_implementer_ends_the_current_todo_with_the_evidence_of_a_command(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    updates = [play.turn(play.call("TodoUpdate", status="done", evidence="ev-0002"))]
    repo.task(script=crew([todos(*STEPS)], *updates))
    implementer = run_of(repo, "implementer")
    assert "exit 0, evidence ev-0002" in implementer.results[2]["content"]
    assert results(repo, "implementer", "TodoUpdate") == [("todo 1 completed; todo 2 is in progress", False)]
    assert [(todo["id"], todo["status"], todo["evidence"]) for todo in repo.state()["todos"]] == [
        (1, "completed", "ev-0002"),
        (2, "in_progress", None),
    ]
    changed = [(each["added"], each["changed"], each["removed"]) for each in repo.events("PlanChanged")]
    assert changed == [([1, 2], [], []), ([], [1, 2], [])]
    assert "1. mend add (in_progress)" in implementer.head["system"]


WRONG = (
    ({"status": "completed"}, "needs the id of its evidence"),
    ({"status": "completed", "evidence": "ev-0999"}, "there is no evidence ev-0999"),
    ({"status": "completed", "evidence": "../../other/evidence/ev-0001"}, "there is no evidence"),
    ({"status": "pending"}, "only completed or blocked"),
    ({"status": "completed", "id": 2, "evidence": "ev-0001"}, "id"),
    ({"status": "gone"}, "status"),
)


def test_a_wrong_update_changes_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    repo.task(
        script=crew([todos(*STEPS)], *(play.turn(play.call("TodoUpdate", **given)) for given, _ in WRONG))
    )
    found = results(repo, "implementer", "TodoUpdate")
    for (content, is_error), (given, problem) in zip(found, WRONG, strict=True):
        assert is_error, given
        assert problem in content
    assert [todo["status"] for todo in repo.state()["todos"]] == ["in_progress", "pending"]
    assert len(repo.events("PlanChanged")) == 1


def test_the_implementer_cannot_rewrite_the_list(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    repo.task(script=crew([todos(*STEPS)], todos({"content": "mine", "status": "in_progress"})))
    ((content, is_error),) = results(repo, "implementer", "TodoWrite")
    assert is_error
    assert "You do not have" in content
    assert [todo["title"] for todo in repo.state()["todos"]] == ["mend add", "look again"]


def test_a_list_that_breaks_a_rule_leaves_the_one_before(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    two = [{**step, "status": "in_progress"} for step in STEPS]
    repo.task(script=crew([todos(*STEPS), todos(*two), todos({"content": "a", "status": "completed"})]))
    assert results(repo, "planner", "TodoWrite")[1:] == [
        ("only one todo may be in_progress, not 1, 2", True),
        ("todo 1: completed needs the id of its evidence", True),
    ]
    assert [todo["status"] for todo in repo.state()["todos"]] == ["in_progress", "pending"]


def test_only_what_changed_is_told(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    third = {"id": 7, "content": "third", "status": "pending"}
    repo.task(script=crew([todos(*STEPS), todos(STEPS[0], third), todos(STEPS[0], third)]))
    told = [(each["added"], each["changed"], each["removed"]) for each in repo.events("PlanChanged")]
    assert told == [([1, 2], [], []), ([7], [], [2])]


def test_without_todos_the_implementer_is_offered_no_tool_for_them(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    repo.task(script=crew([]))
    assert not {"TodoWrite", "TodoUpdate"} & run_of(repo, "implementer").tools
    assert "Todos" not in run_of(repo, "implementer").head["system"]


def test_after_ten_turns_the_planner_is_reminded_behind_all_that_was_said(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    looks = [play.turn(play.call("Read", file_path="calc.py")) for _ in range(11)]
    repo.task(script=crew([todos(*STEPS), *looks]))
    planner = run_of(repo, "planner")
    assert planner.notices == ["brief", "todos"]
    types = [entry["type"] for entry in planner.entries]
    place = next(n for n, entry in enumerate(planner.entries) if entry.get("notice") == "todos")
    assert types[:place].count("RequestSent") == 11
    assert types[place - 1] == "CallAnswered"
    assert types[place + 1] == "RequestSent"
    (said,) = planner.entries[place]["message"]["parts"]
    assert "not changed for 10 turns" in said["text"]
    assert "TodoWrite" in said["text"]
