import pytest

from tests.support import play
from tests.support.crew import honest, role_of
from tests.support.live import assert_only_appended, live
from tests.support.messages_server import Answer, Asked, Plays, serving, use
from tests.support.repo import NewRepo

WRONG = (
    use("Read", {"file_path": "calc.py"}),
    use("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a * b"}),
)
RIGHT = (use("Edit", {"file_path": "calc.py", "old_string": "a * b", "new_string": "a + b"}),)
CHANGE = {"summary": "add adds", "files": ["calc.py"]}


def test_a_change_that_never_passes_ends_at_the_limit(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    wrong = ["a * b", "a // b", "a % b", "a ** b"]
    before = ["a - b", *wrong]
    tries = [
        play.role("implementer", *play.edit("calc.py", old, new), play.submit("calc.py"), iteration=number)
        for number, (old, new) in enumerate(zip(before, wrong, strict=False), 1)
    ]
    done = repo.task(
        "--max-iterations",
        "3",
        play.TEXT,
        script=[play.findings(), play.plan(), *tries, play.verified("ev-0002")],
    )
    assert done.code == 3
    assert len(repo.runs("implementer")) == 3
    state = repo.state()
    assert (state["status"], state["active"], state["iteration"]) == ("limit", False, 3)
    log = (repo.folder / "task.md").read_text().split("## Log")[1]
    entries = [
        line for line in log.splitlines() if line.startswith("### Iteration") and "verification" in line
    ]
    assert len(entries) == 3
    shown = [line for line in log.splitlines() if "`python3 -m unittest discover -v -s tests` exit 1" in line]
    assert sum("(evidence ev-" in line for line in shown) == 4  # 3 and the base run


def test_a_failed_iteration_is_told_in_the_same_conversation(new_repo: NewRepo) -> None:
    def policy(asked: Asked) -> Answer:
        tries = [*WRONG, use("SubmitChange", CHANGE), *RIGHT, use("SubmitChange", CHANGE)]
        named = {**tries[asked.turn], "id": f"toolu_{asked.turn}"} if role_of(asked) == "implementer" else {}
        return Plays((named,)) if named else honest(asked)

    repo = new_repo(play.CALC)
    with serving(policy=policy) as server:
        done = live(repo, server, "--json", play.TEXT)
    assert (done.code, done.json["iterations"]) == (0, 2), done.err
    asked = [each for each in server.asked if role_of(each) == "implementer"]
    assert [each.turn for each in asked] == list(range(5))
    assert_only_appended(asked)
    last = asked[-1].raw.decode()
    assert last.count("AssertionError: 2 != 3") == 1
    assert last.count("Change so far") == 0
    first, second = repo.runs("implementer")
    assert (first.head["iteration"], second.head["iteration"], second.head["continues"]) == (1, 2, 1)
    replayed = repo.run("replay", repo.folder.name)
    assert replayed.code == 0, replayed.out


def test_a_conversation_that_goes_on_can_be_taken_up_anywhere(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    first = play.role(
        "implementer", *play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py"), iteration=1
    )
    lost = [
        play.role("implementer", play.turn(play.call("Grep", pattern="add")), {"error": 529}, iteration=2)
    ] * 2
    assert repo.task(play.TEXT, script=[first, *lost]).code == 6
    rest = [play.turn(play.call("Grep", pattern="add"))] * 2
    fixes = play.turn(play.call("Edit", file_path="calc.py", old_string="a * b", new_string="a + b"))
    last = play.role("implementer", *rest[:1], fixes, play.submit("calc.py"), iteration=2)
    script = repo.scripted([first, lost[0], last, play.verified("ev-0003")])
    done = repo.run("resume", repo.folder.name, "--model", script)
    assert done.code == 0, done.err
    assert [run.head.get("continues") for run in repo.runs("implementer")] == [None, 1, 1]


NAMING = {
    "not named": ([], "calc.py changed but is missing from `files`"),
    "not changed": (["calc.py", "README.md"], "in `files`, but unchanged: README.md"),
}


@pytest.mark.parametrize(("named", "said"), NAMING.values(), ids=NAMING)
def test_a_submission_that_is_not_like_the_tree_comes_back_once(
    new_repo: NewRepo, named: list[str], said: str
) -> None:
    repo = new_repo({**play.QUICK, "README.md": ""})
    script = [play.role("implementer", *play.MENDED, play.submit(*named), play.submit("./calc.py"))]
    assert repo.task("fix add in calc.py", script=script).code == 0
    *_, refused, taken = repo.runs("implementer")[0].results
    assert (refused["is_error"], said in refused["content"]) == (True, True)
    assert taken["content"] == "submitted"


def test_a_submission_without_a_change_comes_back_with_a_way_out(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    idle = play.role("implementer", play.submit("calc.py"), play.submit("calc.py"))
    assert repo.task("fix add in calc.py", script=[idle]).code == 1
    refused, taken = repo.runs("implementer")[0].results
    assert "You have changed no files" in refused["content"]
    assert "name no file and say why" in refused["content"]
    assert taken["content"] == "submitted"


def test_a_conversation_that_would_not_fit_is_begun_anew(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    long = {**play.submit("calc.py"), "usage": {"input": 80_000, "output": 1}}
    first = play.role("implementer", *play.edit("calc.py", "a - b", "a * b"), long, iteration=1)
    second = play.role(
        "implementer", *play.edit("calc.py", "a * b", "a + b"), play.submit("calc.py"), iteration=2
    )
    assert repo.task(play.TEXT, script=[first, second, play.verified("ev-0003")]).code == 0
    run = repo.runs("implementer")[1]
    assert "continues" not in run.head or run.head["continues"] is None
    assert "-    return a - b\n+    return a * b" in run.brief


def test_the_failing_evidence_goes_back_word_for_word(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    first = play.role(
        "implementer", *play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py"), iteration=1
    )
    second = play.role(
        "implementer", *play.edit("calc.py", "a * b", "a + b"), play.submit("calc.py"), iteration=2
    )
    done = repo.task(script=[play.findings(), play.plan(), first, second, play.verified("ev-0003")])
    assert done.code == 0, done.err
    brief = repo.runs("implementer")[1].brief
    output = (repo.folder / "evidence/ev-0002.out").read_text()
    assert "test_calc.CalcTest.test_add" in brief
    assert "\n".join(output.rstrip().splitlines()[-20:]) in brief
    assert "before the task" not in brief


def test_the_same_failure_on_the_same_tree_ends_early(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    right = play.role(
        "implementer", *play.edit("calc.py", "a - b", "a + b"), play.submit("calc.py"), iteration=1
    )
    idle = play.role("implementer", play.submit("calc.py"))
    fault = {"severity": "major", "kind": "bug", "path": "calc.py", "line": 2, "message": "no sum"}
    review = play.role(
        "reviewer", play.turn(play.call("SubmitReview", verdict="NEEDS_CHANGES", issues=[fault]))
    )
    judges = [review, review, play.verified("ev-0002"), play.verified("ev-0002")]
    done = repo.task(
        "--review", play.TEXT, script=[play.findings(), play.plan(), right, idle, idle, idle, *judges]
    )
    assert done.code == 1
    assert len(repo.runs("implementer")) == 2
    assert len(repo.runs("reviewer")) == 1  # the tree that it knows is not shown to it again
    assert "no progress" in done.out


def test_a_second_task_inherits_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    wrong = play.role("implementer", *play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py"))
    for words in ("first words", "second words"):
        repo.task("--no-memory", "--max-iterations", "1", words, script=[play.findings(), play.plan(), wrong])
    assert len(repo.tasks) == 2
    for task in repo.tasks:
        text = "".join(path.read_text() for path in task.rglob("*") if path.is_file())
        assert ("first words" in text) != ("second words" in text)


def test_a_role_without_a_result_gets_one_repair_turn_then_the_phase_fails(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    done = repo.task(script=[play.role("explorer", play.turn(text="I looked."), play.turn(text="Really."))])
    assert done.code == 1
    (run,) = repo.runs("explorer")
    assert run.notices == ["brief", "reminder"]
    assert run.outcome == "no_submission"
    assert repo.runs("planner") == []


def test_a_submission_in_prose_is_taken(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    prose = 'Here it is:\n```json\n{"summary": "s", "findings": [], "open_questions": []}\n```\n'
    repo.task(script=[play.role("explorer", play.turn(text=prose))])
    (run,) = repo.runs("explorer")
    assert run.outcome == "submitted"
    assert repo.state()["findings"]["summary"] == "s"


def test_the_tool_limit_ends_a_run_that_calls_for_ever(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    looks = [
        play.turn(play.call("Read", file_path="calc.py"), play.call("Read", file_path="calc.py"))
        for _ in range(60)
    ]
    done = repo.task(script=[play.role("explorer", *looks)])
    assert done.code == 3
    (run,) = repo.runs("explorer")
    assert run.outcome in {"tool_limit", "turn_limit"}
    assert run.notices == ["brief", "finalize"]
    assert run.forced[-1] == "SubmitFindings"
    assert run.forced[:-1] == [None] * (len(run.forced) - 1)


def test_a_provider_error_suspends_and_a_refusal_fails(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.task(script=[{"match": {"role": "explorer"}, "turns": [{"error": 529}]}]).code == 6
    assert repo.state()["status"] == "suspended"
