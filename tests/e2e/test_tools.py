"""Which tools each role is offered, and which of its calls have an effect."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Recorded, Repo

AGENTS = Path(__file__).parents[2] / "agents"
SUBMITS = {
    "explorer": "SubmitFindings",
    "planner": "SubmitPlan",
    "implementer": "SubmitChange",
    "reviewer": "SubmitReview",
    "verifier": "SubmitVerdict",
}
GRANTED = {
    "explorer": {"AskUserQuestion"},
    "planner": {"Escalate"},
    "implementer": {"Escalate", "RecallOutput", "TodoUpdate"},
    "reviewer": {"RecallOutput"},
    "verifier": {"RecallOutput"},
}
"""What a role has beside the nine tools of the table; the planner of these tests wrote todos."""
TABLE = {
    "explorer": {"Read", "Grep", "Glob", "Bash"},
    "planner": {"Read", "Grep", "Glob", "Remember", "TodoWrite"},
    "implementer": {
        *("Read", "Write", "Edit", "MultiEdit", "Grep", "Glob", "Bash", "RunTests", "Mutants", "Remember")
    },
    "reviewer": {"Read", "Grep", "Glob", "Bash"},
    "verifier": {"Read", "Grep", "Bash", "RunTests", "Mutants", "TryTest", "Remember"},
}
"""FEATURES A4 where no provider of web tools is set."""
OWNERS = {
    "Write": {"implementer"},
    "Edit": {"implementer"},
    "MultiEdit": {"implementer"},
    "Bash": {"implementer"},
    "TodoWrite": {"planner"},
    "WebSearch": {"explorer"},
    "WebFetch": {"explorer"},
    "Read": set(TABLE),
    "Grep": set(TABLE),
    "Glob": {"explorer", "planner", "implementer"},
    "Mutants": {"implementer", "verifier"},
    "TryTest": {"verifier"},
    "RunTests": {"implementer", "verifier"},
    "Remember": {"planner", "implementer", "verifier"},
    **{tool: {name} for name, tool in SUBMITS.items()},
}
NAMES = tuple(OWNERS)
HARMLESS = {
    "explorer": "ls .",
    "planner": "ls .",
    "implementer": "touch by-implementer-bash",
    "reviewer": "ruff check .",
    "verifier": "git diff HEAD",
}
SUBMITTED = {
    "SubmitFindings": {"summary": "s", "findings": [], "open_questions": []},
    "SubmitPlan": {"summary": "s", "steps": [], "acceptance": [], "risks": []},
    "SubmitChange": {"summary": "s", "files": []},
    "SubmitReview": {"verdict": "APPROVED", "issues": []},
    "SubmitVerdict": {"verdict": "VERIFIED", "evidence": ["ev-9999"], "reasons": []},
}


def one_of_each(name: str) -> list[dict[str, Any]]:
    """Return a call of every tool except the role's own Submit."""
    inputs: dict[str, dict[str, Any]] = {
        "Read": {"file_path": "calc.py"},
        "Write": {"file_path": f"by-{name}-write", "content": "x"},
        "Edit": {"file_path": "calc.py", "old_string": "2 * a", "new_string": f"2 * a  # {name}"},
        "MultiEdit": {
            "file_path": "calc.py",
            "edits": [{"old_string": "2 * a", "new_string": f"2 * a  # many by {name}"}],
        },
        "Glob": {"pattern": "*.py"},
        "Grep": {"pattern": "def"},
        "Bash": {"command": HARMLESS[name]},
        "Mutants": {"path": "calc.py"},
        "RunTests": {"pattern": "add"},
        "TryTest": {"file_path": "tests/test_tried.py", "content": "import unittest\n"},
        "TodoWrite": {"todos": [{"title": f"by {name}", "status": "in_progress"}]},
        "Remember": {"text": "double doubles", "evidence": "ev-0001"},
        "WebSearch": {"query": "add"},
        "WebFetch": {"url": "http://127.0.0.1:9/", "prompt": "x"},
        **{tool: given for tool, given in SUBMITTED.items() if tool != SUBMITS[name]},
    }
    return [play.call(tool, **given) for tool, given in inputs.items()]


HELD = (
    *("touch {x}", "{ok} > {x}", "{ok}; touch {x}", "{ok} $(touch {x})", "echo {x} | xargs touch"),
    *("bash -c 'touch {x}'", "eval touch {x}", "find . -exec touch {x} ;", "trap 'touch {x}' EXIT"),
    *("git diff --no-index --output={x} /dev/null calc.py", 'python3 -c \'open("{x}", "w")\''),
    *("git -c alias.z='!touch {x}' z", "git config core.pager 'touch {x}'", "pytest --basetemp={x}"),
)
"""What runs on a copy that is thrown away."""
CORPUS = Path(__file__).parents[1] / "unit/permissions/corpus/refused.txt"
"""What is refused by its words; one command a line."""
SCOPED = ("explorer", "reviewer", "verifier")


def attacks(name: str) -> list[str]:
    """Return commands that may have no effect where a role runs them."""
    if name != "reviewer":
        return [
            text.format(ok=HARMLESS[name], x=f"attack-{name}-{number}") for number, text in enumerate(HELD)
        ]
    general = CORPUS.read_text("utf-8").partition("\n# -- explorer")[0]
    return [line.replace("¶", "\n") for line in general.splitlines() if line and line[0] != "#"][::3]


def shells(name: str) -> dict[str, Any]:
    return play.turn(*(play.call("Bash", command=text) for text in (HARMLESS[name], *attacks(name))))


def acting(name: str, *last: dict[str, Any]) -> dict[str, Any]:
    """Return the script of a role that tries everything before what it does last."""
    tries = [play.turn(play.call("Read", file_path="calc.py")), play.turn(*one_of_each(name))]
    return play.role(name, *tries, *([shells(name)] if name in SCOPED else []), *last)


def submission(name: str, **given: Any) -> dict[str, Any]:
    return play.turn(play.call(SUBMITS[name], **{**SUBMITTED[SUBMITS[name]], **given}))


@pytest.fixture(scope="module")
def default_route(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A task in which the four roles of the default route each try everything."""
    folder = tmp_path_factory.mktemp("tools")
    repo = Repo(folder / "repo", folder / "home").write(play.QUICK).commit()
    script = [
        acting("explorer", submission("explorer")),
        acting("planner", submission("planner")),
        acting("implementer", *play.MENDED, play.submit("calc.py")),
        acting("verifier", submission("verifier", evidence=["ev-0004"])),
    ]
    repo.task(script=script)
    return repo


@pytest.fixture(scope="module")
def with_reviewer(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A task in which the shipped reviewer judges: no route of this version runs it by its own name."""
    folder = tmp_path_factory.mktemp("reviewer")
    repo = Repo(folder / "repo", folder / "home").write(play.QUICK).commit()
    shipped = (AGENTS / "reviewer.md").read_text("utf-8")
    repo.give_role("reviewer", shipped.replace("agentflow-role: reviewer", "agentflow-role: verifier"))
    judge = acting(
        "reviewer",
        play.turn(play.call("SubmitVerdict", verdict="VERIFIED", evidence=["ev-0002"], reasons=[])),
    )
    script = [
        play.role("explorer", submission("explorer")),
        play.role("planner", submission("planner")),
        play.role("implementer", *play.MENDED, play.submit("calc.py")),
        {**judge, "match": {"agent": "reviewer"}},
    ]
    repo.task(play.WHOLE_CREW, "--judges", script=script)
    return repo


@pytest.fixture(params=list(TABLE))
def trial(request: pytest.FixtureRequest) -> tuple[str, Repo]:
    """Each role's name and the task in which it tried everything."""
    fixture = "with_reviewer" if request.param == "reviewer" else "default_route"
    return request.param, request.getfixturevalue(fixture)


def part(name: str) -> str:
    return "verifier" if name == "reviewer" else name


def run_of(name: str, repo: Repo) -> Recorded:
    (run,) = repo.runs(part(name))
    return run


def run_number(name: str, repo: Repo) -> int:
    return int(run_of(name, repo).head["run"])


def tried(name: str, repo: Repo) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tool and the result of each call of `one_of_each`."""
    for made, result in run_of(name, repo).calls[1 : 1 + len(one_of_each(name))]:
        yield made["name"], result


def test_the_offered_tools_are_those_of_the_table(trial: tuple[str, Repo]) -> None:
    name, repo = trial
    assert run_of(name, repo).tools == TABLE[name] | GRANTED.get(name, set()) | {
        SUBMITS[part(name)],
        "Skill",
    }


def test_the_executed_tools_are_those_of_the_table(trial: tuple[str, Repo]) -> None:
    name, repo = trial
    executed = {tool for tool, result in tried(name, repo) if not result["is_error"]}
    refused = {"Remember"} if name == "verifier" else set()  # it can only cite evidence of the tree it judges
    assert executed == TABLE[name] - refused
    started = {
        event["tool"] for event in repo.events("ToolStarted") if event["run"] == run_number(name, repo)
    }
    assert started == TABLE[name] | {SUBMITS[part(name)]}


def test_a_refusal_names_the_owner_and_is_an_event(trial: tuple[str, Repo]) -> None:
    name, repo = trial
    results = dict(tried(name, repo))
    refused = results.keys() - TABLE[name] - {SUBMITS[part(name)]}
    numbers = {result["call_id"] for result in results.values()}
    blocked = {event["tool"]: event for event in repo.events("ToolBlocked") if event["call_id"] in numbers}
    assert blocked.keys() == refused
    for tool in refused:
        assert blocked[tool]["role"] == name
        owners = OWNERS[tool] - {"verifier" if name == "reviewer" else ""}  # in whose place it works here
        assert (blocked[tool].get("owner") or "") in (owners or {""})
        if name not in OWNERS[tool]:  # the explorer has web tools as soon as somebody provides them
            said = f"You do not have {tool}." if owners else f"There is no tool {tool}."
            assert said in results[tool]["content"]


def test_only_the_implementer_changed_the_tree(default_route: Repo, with_reviewer: Repo) -> None:
    before = default_route.git("rev-parse", "HEAD^{tree}").strip()
    state = default_route.state()
    trees = {phase: gate["tree"] for phase, gate in state["gates"].items() if gate["agent"]}
    assert state["base_tree"] == before
    assert (trees["exploration"], trees["planning"]) == (before, before)
    assert trees["verification"] == trees["implementation"] != before
    assert sorted(default_route.git("status", "--porcelain", "-uall").splitlines()) == [
        " M calc.py",
        "?? by-implementer-bash",
        "?? by-implementer-write",
    ]
    assert default_route.read("calc.py").count("# implementer") == 1
    assert with_reviewer.git("status", "--porcelain", "-uall").splitlines() == [" M calc.py"]


def test_only_the_planner_changed_the_todos(default_route: Repo) -> None:
    assert [todo["title"] for todo in default_route.state()["todos"]] == ["by planner"]


def test_no_foreign_submission_took_effect(default_route: Repo, with_reviewer: Repo) -> None:
    assert default_route.state()["review"] is None
    assert with_reviewer.state()["review"] is None
    assert default_route.state()["change"] == {"summary": "all tests pass", "files": ["calc.py"]}


@pytest.mark.parametrize("name", SCOPED)
def test_no_attack_of_a_scoped_shell_has_an_effect(
    name: str, default_route: Repo, with_reviewer: Repo
) -> None:
    repo = with_reviewer if name == "reviewer" else default_route
    results = {made["input"]["command"]: result for made, result in shell_calls(name, repo)}
    assert not results[HARMLESS[name]]["is_error"]
    through = [command for command in attacks(name) if not results[command]["is_error"]]
    assert through == ([] if name == "reviewer" else attacks(name))  # a role file means what it lists
    assert [path.name for path in repo.root.glob("attack-*")] == []
    assert not (repo.root / "x").exists()


def shell_calls(name: str, repo: Repo) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(made, result) for made, result in run_of(name, repo).calls if made["name"] == "Bash"]


@pytest.mark.parametrize("name", SCOPED)
def test_each_refused_command_is_an_event(name: str, default_route: Repo, with_reviewer: Repo) -> None:
    repo = with_reviewer if name == "reviewer" else default_route
    number = run_number(name, repo)
    blocked = [
        event for event in repo.events("ToolBlocked") if (event["run"], event["tool"]) == (number, "Bash")
    ]
    refused = [made for made, result in shell_calls(name, repo) if result["is_error"]]
    assert {event["call_id"] for event in blocked} == {made["id"] for made in refused}
