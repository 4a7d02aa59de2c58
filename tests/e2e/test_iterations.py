from tests.support.repo import CALC, TEXT, NewRepo, call, edit, findings, plan, role, submit, turn, verified


def test_a_change_that_never_passes_ends_at_the_limit(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    wrong = ["a * b", "a // b", "a % b", "a ** b"]
    before = ["a - b", *wrong]
    tries = [
        role("implementer", *edit("calc.py", old, new), submit("calc.py"), iteration=number)
        for number, (old, new) in enumerate(zip(before, wrong, strict=False), 1)
    ]
    done = repo.task("--max-iterations", "3", TEXT, script=[findings(), plan(), *tries, verified("ev-0002")])
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


def test_the_failing_evidence_goes_back_word_for_word(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    first = role("implementer", *edit("calc.py", "a - b", "a * b"), submit("calc.py"), iteration=1)
    second = role("implementer", *edit("calc.py", "a * b", "a + b"), submit("calc.py"), iteration=2)
    done = repo.task(script=[findings(), plan(), first, second, verified("ev-0003")])
    assert done.code == 0, done.err
    brief = repo.runs("implementer")[1].brief
    output = (repo.folder / "evidence/ev-0002.out").read_text()
    assert "test_calc.CalcTest.test_add" in brief
    assert "\n".join(output.rstrip().splitlines()[-20:]) in brief
    assert "-    return a - b\n+    return a * b" in brief


def test_the_same_failure_on_the_same_tree_ends_early(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    wrong = role("implementer", *edit("calc.py", "a - b", "a * b"), submit("calc.py"), iteration=1)
    idle = role("implementer", submit("calc.py"))
    fault = {"severity": "major", "kind": "bug", "path": "calc.py", "line": 2, "message": "no sum"}
    review = role("reviewer", turn(call("SubmitReview", verdict="NEEDS_CHANGES", issues=[fault])))
    crew = [findings(), plan(), wrong, idle, idle, idle, review, review]
    done = repo.task("--review", TEXT, script=crew)
    assert done.code == 1
    assert len(repo.runs("implementer")) == 2
    assert len(repo.runs("reviewer")) == 1  # the tree that it knows is not shown to it again
    assert "no progress" in done.out


def test_a_second_task_inherits_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    wrong = role("implementer", *edit("calc.py", "a - b", "a * b"), submit("calc.py"))
    repo.task("--max-iterations", "1", "first words", script=[findings(), plan(), wrong])
    repo.task("--max-iterations", "1", "second words", script=[findings(), plan(), wrong])
    assert len(repo.tasks) == 2
    for task in repo.tasks:
        text = "".join(path.read_text() for path in task.rglob("*") if path.is_file())
        assert ("first words" in text) != ("second words" in text)


def test_a_role_without_a_result_gets_one_repair_turn_then_the_phase_fails(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    done = repo.task(script=[role("explorer", turn(text="I looked."), turn(text="Really."))])
    assert done.code == 1
    (run,) = repo.runs("explorer")
    assert run.notices == ["brief", "reminder"]
    assert run.outcome == "no_submission"
    assert repo.runs("planner") == []


def test_a_submission_in_prose_is_taken(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    prose = 'Here it is:\n```json\n{"summary": "s", "findings": [], "open_questions": []}\n```\n'
    repo.task(script=[role("explorer", turn(text=prose))])
    (run,) = repo.runs("explorer")
    assert run.outcome == "submitted"
    assert repo.state()["findings"]["summary"] == "s"


def test_the_tool_limit_ends_a_run_that_calls_for_ever(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    looks = [turn(call("Read", file_path="calc.py"), call("Read", file_path="calc.py")) for _ in range(60)]
    done = repo.task(script=[role("explorer", *looks)])
    assert done.code == 3
    (run,) = repo.runs("explorer")
    assert run.outcome in {"tool_limit", "turn_limit"}
    assert run.notices == ["brief", "finalize"]
    assert run.forced[-1] == "SubmitFindings"
    assert run.forced[:-1] == [None] * (len(run.forced) - 1)


def test_a_provider_error_suspends_and_a_refusal_fails(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    assert repo.task(script=[{"match": {"role": "explorer"}, "turns": [{"error": 529}]}]).code == 6
    assert repo.state()["status"] == "suspended"
