"""Each class of task runs exactly its roles, in order; the program's checks run wherever a file changes."""

from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

MEND = play.role("implementer", *play.MENDED, play.submit("calc.py"))


def review(verdict: str = "APPROVED", *issues: dict[str, Any]) -> dict[str, Any]:
    return play.role("reviewer", play.turn(play.call("SubmitReview", verdict=verdict, issues=list(issues))))


def issue(
    message: str, severity: str = "major", kind: str = "intent-mismatch", **place: Any
) -> dict[str, Any]:
    return {"severity": severity, "kind": kind, "path": "calc.py", "line": 2, "message": message, **place}


SECTIONS = ["Summary", "Findings", "Plan / Recommendations", "Open Questions", "Sources & Evidence"]
PARTS = {
    "explorer": play.findings(),
    "planner": play.plan("calc.py"),
    "implementer": MEND,
    "reviewer": review(),
    "verifier": play.verified("ev-0002"),
}


def acted(repo: Repo) -> list[str]:
    return [event["role"] for event in repo.events("RunStarted")]


def skipped(repo: Repo) -> dict[str, str]:
    gates = repo.state()["gates"]
    return {phase: gate["message"] for phase, gate in gates.items() if gate["status"] == "skipped"}


ROUTES = [
    ("fix add in calc.py", "trivial", "implementer"),
    ("debug why add is wrong", "implementation", "implementer verifier"),
    ("refactor add", "implementation", "implementer reviewer verifier"),
    ("fix the payment", "complex", "explorer planner implementer reviewer verifier"),
    ("fix add in calc.py and its caller in main.py", "implementation", "implementer verifier"),
    ("let add return the sum everywhere", "implementation", "implementer verifier"),
    ("make the failing tests pass", "implementation", "implementer verifier"),
]


@pytest.mark.parametrize(("text", "complexity", "roles"), ROUTES[:4])
def test_a_change_runs_the_roles_of_its_route_and_the_checks(
    new_repo: NewRepo, text: str, complexity: str, roles: str
) -> None:
    repo = new_repo(play.QUICK)
    wanted = roles.split()
    done = repo.task(text, "--sequential", "--yes", script=[PARTS[name] for name in wanted])
    assert (done.code, acted(repo)) == (0, wanted), done.err
    assert repo.state()["task_complexity"] == complexity
    sides = [(record["check"], record["surface"], record["code"]) for record in repo.evidence()]
    assert sides == [("tests", "base", "base"), ("tests", "final", "final"), ("tests", "final", "base")]
    (event,) = repo.events("Classified")
    assert event["complexity"] == complexity
    assert all(message == f"route: {event['route']}" for message in skipped(repo).values())


@pytest.mark.parametrize("switches", [("--plan",), ("--pause-after", "planning")])
def test_explorer_and_planner_work_where_a_person_asks_for_the_plan(
    new_repo: NewRepo, switches: tuple[str, ...]
) -> None:
    repo = new_repo(play.QUICK)
    done = repo.task("--no-input", *switches, "fix add in calc.py", script=list(PARTS.values()))
    way = ["explorer", "planner", "implementer"] if switches == ("--plan",) else ["explorer", "planner"]
    assert (done.code, acted(repo)) == (0 if len(way) == 3 else 75, way), done.err


def test_the_built_in_engine_needs_no_role_but_the_implementer(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert repo.task("make the failing tests pass").code == 0
    assert acted(repo) == ["implementer"]
    said = repo.run("route", "make the failing tests pass").out
    assert "here       implementer, checks, because no model is configured" in said


@pytest.mark.parametrize(
    ("text", "complexity", "roles"),
    [
        ("add is slow, speed up the addition", "implementation", "implementer verifier"),
        ("migrate the users to add", "complex", "planner implementer reviewer verifier"),
        ("fix the authentication of add", "complex", "planner implementer reviewer verifier"),
    ],
)
def test_other_words_take_one_of_these_routes(
    new_repo: NewRepo, text: str, complexity: str, roles: str
) -> None:
    found = new_repo(play.QUICK).run("route", text, "--json").json
    assert (found["class"], found["steps"]) == (complexity, roles.split())


def test_a_question_is_answered_by_one_run_and_nothing_else(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    done = repo.task("where is", "add defined?", script=[play.findings()])
    assert (done.code, acted(repo)) == (0, ["explorer"])
    assert done.out.startswith("found\n")
    assert "calc.py:2 (not seen by the explorer)  here" in done.out
    assert repo.state()["status"] == "answered"
    assert repo.evidence() == []
    assert list((repo.root / ".claude").glob("research-*")) == []
    assert set(skipped(repo)) == {"planning", "implementation", "review", "verification"}


@pytest.mark.parametrize(
    ("text", "name", "roles"),
    [
        (
            "research best practices: rate limiting!",
            "research-research-best-practices-rate-limiting",
            "explorer",
        ),
        ("find every caller of add", "research-find-every-caller-of-add", "explorer"),
        ("audit the error handling", "research-audit-the-error-handling", "explorer reviewer"),
        ("write a report on add", "research-write-a-report-on-add", "explorer"),
    ],
)
def test_what_only_reads_leaves_a_document(new_repo: NewRepo, text: str, name: str, roles: str) -> None:
    repo = new_repo(play.QUICK)
    script = [play.findings(), review("NEEDS_CHANGES", issue("swallows errors"))]
    done = repo.task(text, "--json", script=script)
    assert (done.code, acted(repo)) == (0, roles.split()), done.err
    (path,) = (repo.root / ".claude").glob("research-*")
    assert path.name.startswith(f"{name}-2")
    assert path.name.endswith("Z.local.md")
    titles = [row for row in path.read_text().splitlines() if row.startswith("## ")]
    assert [title.removeprefix("## ") for title in titles] == SECTIONS
    assert done.json["document"] == f".claude/{path.name}"
    assert done.json["answer"].startswith("found\n- calc.py:2: here")
    assert repo.git("status", "--porcelain") == ""
    writers = {"Write", "Edit", "NotebookEdit"}
    assert all(not run.tools & writers for name in roles.split() for run in repo.runs(name))


def sections(repo: Repo) -> dict[str, str]:
    (path,) = (repo.root / ".claude").glob("research-*")
    parts = path.read_text().split("\n## ")[1:]
    return {title: body.strip() for title, _, body in (part.partition("\n") for part in parts)}


def test_a_report_says_what_to_do(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    summary = "They need jitter.\n\n**Recommendations:**\n- retry with jitter\n- # not a heading\n"
    found = play.findings()["turns"][-1]["tools"][0]["input"]
    submits = play.turn(play.call("SubmitFindings", **{**found, "summary": summary}))
    done = repo.task("research retries", script=[play.role("explorer", submits)])
    assert done.code == 0, done.err
    said = sections(repo)
    assert said["Summary"] == "They need jitter."
    assert said["Plan / Recommendations"] == "- retry with jitter\n- \\# not a heading"
    assert "retry with jitter" in done.out


def test_a_section_that_is_empty_says_so(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.task("research retries", script=[play.findings()]).code == 0
    said = sections(repo)
    assert list(said) == SECTIONS
    assert all(said.values())
    assert said["Plan / Recommendations"].startswith("- none: ")


@pytest.mark.parametrize("summary", [" ", "N/A", "found"])
def test_research_without_findings_is_no_answer(new_repo: NewRepo, summary: str) -> None:
    repo = new_repo(play.QUICK)
    nothing = play.turn(play.call("SubmitFindings", summary=summary, findings=[], open_questions=[]))
    done = repo.task("research retries", script=[play.role("explorer", nothing)])
    assert (done.code, repo.state()["status"]) == (1, "failed")
    assert list((repo.root / ".claude").glob("research-*")) == []


def test_a_change_larger_than_its_route_gets_the_judges_it_needs(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    writes = [
        play.turn(play.call("Write", file_path=f"m{number}.py", content="# nothing yet\n"))
        for number in range(5)
    ]
    grown = play.role("implementer", *writes, *play.MENDED, play.submit("calc.py"))
    done = repo.task("fix add in calc.py", "--sequential", script=[grown, review(), play.verified("ev-0002")])
    assert (done.code, acted(repo)) == (0, ["implementer", "reviewer", "verifier"]), done.err
    assert repo.state()["task_complexity"] == "complex"


@pytest.mark.parametrize(
    "steps",
    [
        [{"title": "mend it", "files": [f"m{number}.py" for number in range(6)]}],
        [{"title": "mend it, then change the payment", "files": ["calc.py"]}],
    ],
)
def test_a_plan_can_raise_the_class_and_never_lower_it(
    new_repo: NewRepo, steps: list[dict[str, Any]]
) -> None:
    repo = new_repo(play.QUICK)
    wide = play.turn(play.call("SubmitPlan", summary="plan", steps=steps, acceptance=[], risks=[]))
    script = [play.findings(), play.role("planner", wide), MEND, review(), play.verified("ev-0002")]
    assert repo.task("--yes", play.WHOLE_CREW, script=script).code == 0
    assert [event["complexity"] for event in repo.events("Classified")] == ["implementation", "complex"]
    assert "reviewer" in acted(repo)


def test_a_failed_check_decides_without_asking_a_judge(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    worse = play.role("implementer", *play.edit("calc.py", "2 * a", "3 * a"), play.submit("calc.py"))
    done = repo.task("refactor add", "--max-iterations", "1", "--json", script=[worse, review()])
    assert (done.code, acted(repo)) == (3, ["implementer"])
    assert done.json["gates"]["review"]["status"] == "skipped"
    assert done.json["gates"]["review"]["message"] == "- not asked: a required check failed"
    assert done.json["gates"]["verification"]["status"] == "failed"


def test_an_issue_goes_back_to_the_implementer_word_for_word(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    said = 'adds, but the goal says "rounds": # not reached'
    again = play.role("implementer", *play.edit("calc.py", "a + b", "b + a"), play.submit("calc.py"))
    script = [MEND, review("APPROVED", issue(said)), again, review()]
    done = repo.task("fix add in calc.py", "--review", "--sequential", script=script)
    assert (done.code, acted(repo)) == (0, ["implementer", "reviewer"] * 2), done.err
    assert said in repo.runs("implementer")[1].brief
    first = repo.runs("reviewer")[0].brief
    assert "fix add in calc.py" in first
    assert "all tests pass" not in first  # the implementer's own words


def test_a_review_cannot_be_outvoted_and_ends_with_the_iterations(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    more = [play.role("implementer", *play.edit("calc.py", "2 * a", "2 * a  # a"), play.submit("calc.py"))]
    script = [MEND, *more, *[review("NEEDS_CHANGES", issue("no", "minor"))] * 2]
    done = repo.task("fix add in calc.py", "--review", "--max-iterations", "2", "--json", script=script)
    assert (done.code, done.json["status"]) == (3, "limit")
    assert done.json["gates"]["verification"]["status"] == "passed"
    merged, _ = repo.events("GatesMerged")
    assert merged["failed_phases"] == ["review"]
    assert merged["all_passed"] is False


def test_a_complex_task_is_not_verified_without_a_review(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    script = [play.plan("calc.py"), MEND, play.verified("ev-0002")]
    done = repo.task("refactor add", "--json", script=script)
    assert (done.code, done.json["caveats"]) == (4, ["not_reviewed"])
    assert repo.state()["status"] == "verified_with_caveat"


def test_leaving_the_review_out_is_a_caveat(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    script = [play.plan("calc.py"), MEND, play.verified("ev-0002")]
    done = repo.task("refactor add", "--no-review", "--json", script=script)
    assert (done.code, done.json["caveats"]) == (4, ["not_reviewed"])
    assert skipped(repo)["review"] == "--no-review"


@pytest.mark.parametrize("way", ["", "--sequential"])
def test_review_and_verification_run_side_by_side_on_one_tree_unless_in_sequence(
    new_repo: NewRepo, way: str
) -> None:
    repo = new_repo(play.CALC)
    judges = [{**review(), "delay": 6}, {**play.verified("ev-0002"), "delay": 6}]
    done = repo.task("refactor add", *filter(None, [way]), script=[play.plan("calc.py"), MEND, *judges])
    assert done.code == 0, done.err
    gates = repo.state()["gates"]
    assert gates["review"]["tree"] == gates["verification"]["tree"] == repo.state()["tree"]
    assert {gates[phase]["status"] for phase in ("review", "verification")} == {"passed"}
    (reviewed,) = (one["seq"] for one in repo.events("RunEnded") if one["role"] == "reviewer")
    checked = max(one["seq"] for one in repo.events("CheckStarted") if one["code"] == "final")
    verifying = next(one["seq"] for one in repo.events("RunStarted") if one["role"] == "verifier")
    assert checked < reviewed
    assert (verifying < reviewed) is (way == "")
    (heard,) = (one["seq"] for one in repo.events("StateChanged") if one["changed"].get("probes"))
    asked = repo.events("Asked")[-1]["seq"]
    assert checked < asked < heard < max(one["seq"] for one in repo.events("RunEnded"))


def test_what_fails_its_checks_is_not_tried_any_further(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    worse = play.role("implementer", *play.edit("calc.py", "2 * a", "3 * a"), play.submit("calc.py"))
    assert repo.task("fix add in calc.py", "--max-iterations", "1", script=[worse]).code == 3
    assert repo.state()["probes"] is None


def test_an_empty_reply_is_asked_for_once_more(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    broken = {"match": {"role": "verifier"}, "turns": [{"error": 529}]}
    done = repo.task(script=[play.findings(), play.plan("calc.py"), MEND, broken, play.verified("ev-0002")])
    assert done.code == 0, done.err
    (event,) = repo.events("Retried")
    assert "529" in event["reason"]


def test_a_half_made_change_is_put_before_a_person(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    half = play.role("implementer", *play.MENDED, {"error": 529})
    done = repo.task("fix add in calc.py", "--json", script=[half])
    (pending,) = done.json["pending"]
    assert done.code == 75
    assert pending["input"]["changed"] == "M calc.py"
    assert pending["input"]["lines"] == "+1 -1"
    assert done.json["files_changed"] == ["calc.py"]
    refused = repo.run("answer", repo.folder.name, "stop it")
    assert (refused.code, repo.state()["status"]) == (2, "suspended")
    assert "one of: go on from here, give up" in refused.err
    assert repo.run("answer", repo.folder.name, "B").code == 1
    assert repo.run("status", "--json").json["status"] == "failed"
    (told,) = repo.events("IntentTold")
    assert told["gaps"] == ["question lost-1: answered by a person"]
    assert "- gap: question lost-1: answered" in (repo.folder / "report.md").read_text()


def test_who_goes_on_after_a_half_made_change_is_told_of_it(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    half = play.role("implementer", *play.MENDED, {"error": 529})
    rest = play.role("implementer", play.turn(play.call("Read", file_path="calc.py")), play.submit("calc.py"))
    assert repo.task("fix add in calc.py", script=[half, rest]).code == 75
    done = repo.run("answer", repo.folder.name, "Go on from here")
    assert done.code == 0, done.out + done.err
    assert "+    return a + b" in repo.runs("implementer")[1].brief
    assert "before any change" not in done.err


def test_the_ledger_says_truthfully_that_nothing_had_to_be_asked(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.task("fix add in calc.py", script=[MEND]).code == 0
    report = (repo.folder / "report.md").read_text()
    assert "## Intent\n- goal: fix add in calc.py\n- gaps: none" in report
    assert "### Intent\n- goal: fix add in calc.py\n- gaps: none" in (repo.folder / "task.md").read_text()
