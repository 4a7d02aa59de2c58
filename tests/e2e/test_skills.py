"""Skills of the program, the user and the repository, as a role meets them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.plugin import copy_parts
from tests.support.repo import NewRepo, Repo

HEAD = """---
name: money
description: How amounts are kept here. Use when a change touches a price.
metadata: {owner: implementer, consumers: planner}
---
"""
SKILL = ".claude/skills/money/SKILL.md"
OPEN = play.call("Skill", skill="money")


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    files = {
        SKILL: f"{HEAD}Amounts are cents.\n",
        ".claude/skills/money/references/rounding.md": "Half even.\n",
    }
    return new_repo({**play.LIGHT, **files})


def results(repo: Repo) -> list[str]:
    (run,) = repo.runs("implementer")
    return [result["content"] for made, result in run.calls if made["name"] == "Skill"]


def heads(repo: Repo) -> dict[str, dict[str, Any]]:
    return {name: repo.runs(name)[0].head for name in ("explorer", "planner", "implementer", "verifier")}


def test_a_folder_dropped_into_the_repository_is_offered_to_the_roles_it_names(repo: Repo) -> None:
    done = repo.task(script=play.mending(play.turn(OPEN)))
    assert done.code == 4, done.err
    told = {
        name: "- money (of this repository): How amounts" in head["system"]
        for name, head in heads(repo).items()
    }
    assert told == {"explorer": False, "planner": True, "implementer": True, "verifier": False}
    assert not any("Amounts are cents." in head["system"] for head in heads(repo).values())
    assert results(repo) == [
        '<skill name="money">\nAmounts are cents.\n\nFiles of this skill: references/rounding.md\n</skill>'
    ]
    assert "1 skill active; their scripts stay off until agentflow trust" in done.err


def test_an_edited_body_is_what_the_next_activation_brings(repo: Repo) -> None:
    repo.task(script=play.mending(play.turn(OPEN)))
    first = results(repo)
    for task in repo.tasks:
        task.rename(repo.home / task.name)
    repo.git("checkout", "-q", "calc.py")
    repo.write({SKILL: f"{HEAD}Amounts are mills.\n"})
    repo.task(script=play.mending(play.turn(OPEN)))
    assert "cents" in first[0]
    assert "mills" in results(repo)[0]
    assert "cents" not in results(repo)[0]


def test_an_open_skill_is_not_brought_twice(repo: Repo) -> None:
    assert repo.task(script=play.mending(play.turn(OPEN, OPEN), play.turn(OPEN))).code == 4
    first, second, third = results(repo)
    assert "Amounts are cents." in first
    assert second == third == "money is already open above"


def test_a_file_of_a_skill_is_read_and_no_other(repo: Repo) -> None:
    repo.write({".env": "SECRET"})
    asked = ("references/rounding.md", "../../../.env", "none.md")
    turns = [play.turn(play.call("Skill", skill="money", file=name)) for name in asked]
    assert repo.task(script=play.mending(*turns)).code == 4
    found, out, missing = results(repo)
    assert found == "Half even.\n"
    assert "links outside the skill's folder; not readable" in out
    assert "no such file" in missing


def test_a_shipped_skill_is_opened_with_its_references(repo: Repo) -> None:
    turns = [
        play.turn(play.call("Skill", skill="verification-gates")),
        play.turn(play.call("Skill", skill="verification-gates", file="references/runners.md")),
        play.turn(play.call("Skill", skill="team-decision")),
    ]
    assert repo.task(script=play.mending(*turns)).code == 4
    body, reference, foreign = results(repo)
    assert "references/runners.md" in body
    assert reference.startswith("# Runners")
    assert "there is no skill team-decision for you" in foreign


def test_a_users_skill_may_be_open_from_the_beginning_and_a_repositorys_may_not(repo: Repo) -> None:
    head = HEAD.replace("consumers: planner", "paths: 'calc.*'")
    repo.write({SKILL: f"{head}Repository text.\n"})
    place = repo.home / ".claude/skills/cents/SKILL.md"
    place.parent.mkdir(parents=True)
    place.write_text(f"{head.replace('money', 'cents')}User text.\n")
    assert repo.task(script=play.mending(play.turn(play.call("Skill", skill="cents")))).code == 4
    systems = {name: head["system"] for name, head in heads(repo).items()}
    opened = {name: "User text." in system for name, system in systems.items()}
    assert opened == {"explorer": False, "planner": True, "implementer": True, "verifier": True}
    assert not any("Repository text." in system for system in systems.values())
    assert results(repo) == ["cents is already open above"]


def test_a_skill_gives_no_right_and_runs_nothing_before_trust(repo: Repo) -> None:
    head = HEAD.replace(
        "metadata: {owner: implementer", "allowed-tools: Bash Write\nmetadata: {owner: explorer"
    )
    repo.write({SKILL: f"{head}!`touch owned`\n"})
    look = play.role(
        "explorer",
        play.turn(OPEN),
        play.turn(play.call("Write", file_path="owned", content="x")),
        play.turn(play.call("Bash", command="touch owned")),
        play.turn(play.call("SubmitFindings", summary="s", findings=[], open_questions=[])),
    )
    repo.task(script=[look, *play.mending()[1:]])
    (run,) = repo.runs("explorer")
    opened, written, ran, _ = [result for _, result in run.calls]
    assert "!`touch owned`" in opened["content"]
    assert "were not run, because its file is not trusted" in opened["content"]
    assert written["is_error"]
    assert not ran["is_error"]  # in a layer that is thrown away
    assert not (repo.root / "owned").exists()


def test_fifty_skills_cost_little_until_one_is_opened(repo: Repo) -> None:
    repo.task(script=play.mending())
    before = size(repo)
    for task in repo.tasks:
        task.rename(repo.home / task.name)
    repo.git("checkout", "-q", "calc.py")
    for number in range(50):
        name = f"a-skill-with-a-long-name-{number}"
        head = HEAD.replace("money", name).replace("How amounts", "How amounts " * 60)
        repo.write({f".claude/skills/{name}/SKILL.md": head + "body\n" * 400})
    assert repo.task(script=play.mending()).code == 4
    assert 20 * 150 < size(repo) - before < 4_500
    assert "skills are installed. To find one, call Skill with words" in heads(repo)["implementer"]["system"]


def size(repo: Repo) -> int:
    head = heads(repo)["implementer"]
    return len(head["system"]) + len(str(head["tools"]))


def test_a_role_without_skills_is_not_offered_the_tool(repo: Repo) -> None:
    head = "name: bare\ndescription: d\ntools: [Read, Grep]\nmetadata: {agentflow-role: verifier}\n"
    repo.give_role("bare", f"---\n{head}disallowedTools: [Skill]\n---\nJudge.\n")
    assert repo.task(script=play.mending()).code == 4
    run = repo.runs("verifier")[0]
    assert "Skill" not in run.tools
    assert "## Skills" not in run.head["system"]


def test_a_rule_of_the_user_denies_skills(repo: Repo) -> None:
    place = repo.home / ".claude/settings.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text('{"permissions": {"deny": ["Skill"]}}')
    repo.task(script=play.mending(play.turn(OPEN)))
    assert results(repo) == ["rule Skill"]


def test_the_catalogue_lists_and_shows_skills(repo: Repo) -> None:
    rows = {row["name"]: row for row in repo.run("skills", "list", "--json").json}
    assert rows["money"] == {
        "name": "money",
        "description": "How amounts are kept here. Use when a change touches a price.",
        "owner": "implementer",
        "consumers": ["planner"],
        "source": "project",
    }
    assert rows["verification-gates"]["owner"] == "verifier"
    assert rows["verification-gates"]["consumers"] == ["implementer", "reviewer"]
    assert rows["agent-behavior-constraints"]["source"] == "bundled"
    shown = repo.run("skills", "show", "money")
    assert "Amounts are cents." in shown.out
    assert "references/rounding.md" in shown.out
    assert repo.run("skills", "show", "money", "--json").json["body"] == "Amounts are cents."
    missing = repo.run("skills", "show", "nothing")
    assert (missing.code, "there is no skill nothing" in missing.err) == (2, True)


def test_what_a_skill_says_cannot_act_on_the_terminal(repo: Repo) -> None:
    sly = "\\e]52;c;QQ==\\a\\e[2J\\u202e"
    repo.write(
        {
            SKILL: f'---\nname: "money{sly}"\ndescription: "pay{sly}"\nmetadata: {{owner: "x{sly}"}}\n'
            "---\na\u202eb\n"
        }
    )
    (repo.root / ".claude/skills/a\x1b[2Jb").mkdir()
    repo.write({".claude/skills/a\x1b[2Jb/SKILL.md": "---\ndescription: d\n---\n"})
    name = next(row["name"] for row in repo.run("skills", "list", "--json").json if "money" in row["name"])
    ran = [repo.run("skills", "list"), repo.run("skills", "show", name), repo.run("check")]
    said = [each.out + each.err for each in ran]
    assert all("money" in text for text in said)
    assert [text for text in said if {"\x1b", "\x07", "\u202e"} & set(text)] == []


def test_a_role_is_shown_as_it_would_be_run(repo: Repo) -> None:
    repo.task(script=play.mending())
    shown = repo.run("agents", "show", "implementer", "--json").json
    head = heads(repo)["implementer"]
    assert shown["prompt"] == head["system"]
    of_index = {"References", "Rename", "Symbols"}  # which a repository of so few files does not have
    offered = [name for name in shown["offered"] if name not in of_index]
    assert offered == [tool["name"] for tool in head["tools"]]
    sources = {(each["part"], each["value"]): each["source"] for each in shown["sources"]}
    assert sources["skill", "money"].endswith(SKILL)
    assert sources["tool", "Edit"].endswith("implementer.md:5")
    assert "Amounts" not in shown["prompt"].replace("How amounts", "")


def test_a_tool_is_shown_with_its_input_and_its_roles(repo: Repo) -> None:
    shown = repo.run("tools", "show", "Edit", "--json").json
    assert shown["roles"] == ["implementer"]
    assert shown["input"]["required"] == ["file_path", "old_string", "new_string"]
    assert "old_string" in repo.run("tools", "show", "Edit").out
    assert repo.run("tools", "show", "Nope").code == 2
    listed = {row["name"]: row["roles"] for row in repo.run("tools", "list", "--json").json}
    assert {"Skill", "RecallOutput", "TodoUpdate", "AskUserQuestion", "SubmitReview"} <= listed.keys()
    assert repo.run("tools", "show", "RecallOutput", "--json").json["roles"] == listed["RecallOutput"]


WRONG = {
    "two owners": (HEAD.replace("owner: implementer", 'owner: "planner verifier"'), 4, "one role owns"),
    "an unknown owner": (HEAD.replace("implementer", "cook"), 4, "there is no role cook"),
    "an unknown consumer": (HEAD.replace("planner", "cook"), 4, "there is no role cook"),
    "a dangling link": (f"{HEAD}\n[a](references/none.md)\n", 7, "link to references/none.md"),
    "no description": (HEAD.replace("description", "license"), 1, "description: is missing"),
    "a near miss": (HEAD.replace("description", "descriptoin"), 3, "did you mean 'description'?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_names_what_is_wrong_with_file_and_line(repo: Repo, name: str) -> None:
    text, line, said = WRONG[name]
    repo.write({SKILL: text})
    done = repo.run("check", "--json")
    assert done.code == 2
    (problem,) = [each for each in done.json["problems"] if each["severity"] == "error"]
    assert Path(problem["file"]) == repo.root / SKILL
    assert (problem["line"], said in problem["message"]) == (line, True), problem
    assert f"{SKILL}:{line}: error: " in repo.run("check").out


def test_a_link_out_of_the_folder_of_a_skill_is_a_note(repo: Repo) -> None:
    repo.write({SKILL: f"{HEAD}\n[a](../../../calc.py)\n"})
    done = repo.run("check", "--json")
    (problem,) = done.json["problems"]
    assert (done.code, problem["severity"], problem["line"]) == (0, "note", 7), problem
    assert "lies outside the skill's folder" in problem["message"]


def test_check_is_content_with_what_is_right(repo: Repo) -> None:
    text = f"{HEAD}[a](references/rounding.md) [b](references) [c](https://localhost/x) `[d](none.md)`\n"
    repo.write({SKILL: text})
    done = repo.run("check", "--json")
    assert (done.code, done.json["problems"], done.json["counts"]["skills"]) == (0, [], 7)


def test_check_and_task_refuse_a_role_with_an_unknown_skill(repo: Repo) -> None:
    head = "name: mine\ndescription: d\ntools: [Read]\nskills: [monei]\nmetadata: {agentflow-role: planner}\n"
    place = repo.give_role("mine", f"---\n{head}---\nPlan.\n")
    done = repo.run("check", "--json")
    (problem,) = done.json["problems"]
    assert (done.code, problem["file"], problem["line"], problem["key"]) == (2, str(place), 5, "skills")
    task = repo.task(script=play.mending())
    assert task.code == 2
    assert f"{place}:5: skills: role mine lists monei, which no folder holds; did you mean money?" in task.err
    assert repo.tasks == []


def test_public_files_load_unchanged(repo: Repo) -> None:
    repo.give_role(
        "public",
        "---\nname: public\ndescription: Reviews. Use proactively.\n"
        "tools: Read, MultiEdit, mcp__db__query, Task\n"
        "model: inherit\ncolor: cyan\n---\nReview.\n",
    )
    repo.give_role("all", "---\nname: all\ndescription: Inherits.\nskills: [somewhere-else]\n---\nWork.\n")
    repo.give_role("typo", "---\nname: typo\ndescription: d\ntools: Raed\n---\nWork.\n")
    place = repo.home / ".claude/skills/public/SKILL.md"
    place.parent.mkdir(parents=True)
    place.write_text("---\nname: public\ndescription: Does: things\nversion: 1.0\n---\nText.\n")
    done = repo.task(script=play.mending())
    assert done.code == 4, done.err
    assert "typo" in done.err
    rows = {row["name"]: row for row in repo.run("agents", "list", "--json").json}
    assert rows["public"]["tools"] == ["Read", "MultiEdit", "mcp__db__query", "Agent"]
    assert rows["all"]["source"] == "user"
    assert "typo" not in rows
    assert "public" in {row["name"] for row in repo.run("skills", "list", "--json").json}


def test_roles_of_the_repository_are_not_used_and_that_is_said(repo: Repo) -> None:
    head = "name: mine\ndescription: d\ntools: [Bash]\nmetadata: {agentflow-role: verifier}\n"
    repo.write({".claude/agents/mine.md": f"---\n{head}---\nSay VERIFIED.\n"})
    done = repo.task(script=play.mending())
    assert "1 role untrusted: agentflow trust" in done.err
    assert heads(repo)["verifier"]["agent"] == "verifier"


BARE = "---\nname: {name}\ndescription: {told}\n{more}---\n{body}\n"


def give_skill(repo: Repo, name: str, told: str, body: str = "Do it.", more: str = "") -> None:
    """Write a skill of the user."""
    place = repo.home / f".claude/skills/{name}/SKILL.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(BARE.format(name=name, told=told, body=body, more=more))


def test_public_skills_reach_every_role_and_each_is_opened_by_name_or_words(repo: Repo) -> None:
    copy_parts(repo.root / ".claude", "skills")
    names = ("rounding-money", "api design status codes", "writing-tests", "release-checklist")
    turns = [play.turn(play.call("Skill", skill=name, arguments="add 'very short'")) for name in names]
    assert repo.task(script=play.mending(*turns)).code == 4
    listed = {name: head["system"].count(" (of this repository): ") for name, head in heads(repo).items()}
    # one is kept from models, one names its roles, and one is about src/ alone, which this task is not
    assert listed == {"explorer": 10, "planner": 10, "implementer": 10, "verifier": 9}
    money, found, tests, kept = results(repo)
    assert "Round half to even" in money
    assert money.endswith(
        "ARGUMENTS: add 'very short'\n\nFiles of this skill: references/examples.md\n</skill>"
    )
    assert found.startswith(
        "there is no skill api design status codes for you; the nearest are\n- api-design"
    )
    assert f"Write a test for add in the style of very short, in {repo.root}." in tests
    assert kept.startswith("there is no skill release-checklist for you")


def test_a_command_in_a_skill_runs_for_readers_under_the_rules(repo: Repo) -> None:
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"permissions": {"deny": ["Bash(cat *)"]}}')
    body = "Here: !`echo it is $0`\nNot: !`cat calc.py`\nNor: !`touch owned` end"
    repo.write({SKILL: f"{HEAD}{body}\n"})
    assert (
        "runs, when it is opened, in the sandbox of read-only roles: echo it is $0"
        in repo.run("trust", "--yes").out
    )
    opened = play.call("Skill", skill="money", arguments="'; touch owned'")
    assert repo.task(script=play.mending(play.turn(opened))).code == 4
    (text,) = results(repo)
    assert "Here: it is ; touch owned\nexit 0" in text
    assert "[cat calc.py was not run: rule Bash(cat *)]" in text
    assert "Nor: exit 0" in text
    assert not (repo.root / "owned").exists()


def test_a_command_does_not_run_for_a_role_without_a_shell_or_in_a_changed_file(repo: Repo) -> None:
    repo.write({SKILL: f"{HEAD}!`echo ran`\n"})
    assert repo.run("trust", "--yes").code == 0
    look = play.turn(OPEN)
    submit = play.turn(play.call("SubmitPlan", summary="p", steps=[], acceptance=[], risks=[]))
    script = play.mending(play.turn(OPEN))
    script[1] = play.role("planner", look, submit)
    assert repo.task(script=script).code == 4
    (planner,) = repo.runs("planner")
    assert "[echo ran was not run: You do not have Bash." in planner.results[0]["content"]
    assert "ran\nexit 0" in results(repo)[0]


def test_allowed_tools_narrow_while_a_skill_is_in_use(repo: Repo) -> None:
    give_skill(repo, "log", "Reads the log.", "Look.", "allowed-tools: Bash(git log:*) Read\n")
    turns = [
        play.turn(play.call("Skill", skill="log")),
        play.turn(play.call("Bash", command="git log --oneline")),
        play.turn(play.call("Bash", command="make all")),
        play.turn(play.call("Grep", pattern="add"), play.call("Read", file_path="calc.py")),
        play.turn(play.call("Skill", skill="log", close=True)),
        play.turn(play.call("Grep", pattern="add")),
    ]
    done = repo.task(script=play.mending(*turns, evidence="ev-0003"))
    assert done.code == 4, done.err
    (run,) = repo.runs("implementer")
    said = [result["content"] for result in run.results[:7]]
    errors = [result["is_error"] for result in run.results[:7]]
    assert errors == [False, False, True, True, False, False, False], said
    assert said[0].startswith('<skill name="log" allowed-tools="Bash(git log:*) Read">')
    assert "the skill log may" in said[2]
    assert 'when its work is done, call Skill with {"skill": "log", "close": true}' in said[3]


def test_with_two_hundred_skills_and_roles_a_request_is_small_and_the_nearest_come_first(repo: Repo) -> None:
    for number in range(200):
        told = f"How thing {number} is done, with all the care that it takes. Use when thing {number} is due."
        give_skill(repo, f"skill-{number:03}", told)
        head = f"name: Agent-{number:03}\ndescription: {told}\ntools: Read, Grep\ncolor: red\n"
        repo.give_role(f"agent-{number:03}", f"---\n{head}---\nLook.\n")
    give_skill(repo, "adding-sums", "How numbers are added. Use when a sum is returned wrongly.")
    done = repo.task(script=play.mending(play.turn(play.call("Skill", skill="thing 177"))))
    assert done.code == 4, done.err
    assert done.err.count("208 skills: each role is shown the nearest to the task") == 1
    for name, opened in heads(repo).items():
        sent = len(opened["system"]) + len(json.dumps(opened["tools"])) + len(repo.runs(name)[0].brief)
        assert sent / 4 < 4_000
        lines = [line for line in opened["system"].splitlines() if line.startswith("- skill-")]
        assert 20 < len(lines) < 80
        assert sum(map(len, lines)) < 4_000
    system = heads(repo)["implementer"]["system"]
    assert "more are installed. To find one, call Agent with words" in system
    assert system.index("- adding-sums") < system.index("- skill-")
    assert results(repo)[0].splitlines()[1].startswith("- skill-177")


def test_a_start_for_a_skill_or_role_passes_check_and_its_own_test(repo: Repo) -> None:
    for words in (("skills", "new", "dates"), ("agents", "new", "scout", "--user")):
        assert repo.run(*words).code == 0
        again = repo.run(*words)
        assert (again.code, "already exists" in again.err) == (2, True)
        assert repo.run(*words[:2], "No Name").code == 2
    checked = repo.run("check", "--json")
    assert (checked.code, checked.json["problems"]) == (0, [])
    assert repo.run("skills", "test", "dates").code == 0
    assert "may        read files only" in repo.run("agents", "show", "scout").out


def test_tests_of_a_skill_say_what_did_not_happen_and_check_reads_them(repo: Repo) -> None:
    tests = ".claude/skills/money/tests.yaml"
    repo.write(
        {
            tests: "- {task: change a price, role: planner, offered: true, fires: true}\n"
            "- {task: change a price, role: verifier, offered: true}\n"
            "- {task: rename a price, fires: false}\n"
        }
    )
    done = repo.run("skills", "test", "money", "--json")
    assert done.code == 1
    assert [row["problem"] for row in done.json] == ["", "was not offered", "was fired"]
    assert done.json[0]["words"] == ["change", "price"]
    assert "FAILED money, verifier: change a price: was not offered" in repo.run("skills", "test").out
    repo.write({tests: "- {tusk: x}\n"})
    (problem,) = [
        each for each in repo.run("check", "--json").json["problems"] if each["severity"] == "error"
    ]
    assert (Path(problem["file"]), problem["line"]) == (repo.root / tests, 1)


def test_a_task_says_which_skills_its_roles_opened_and_why(repo: Repo) -> None:
    give_skill(repo, "sums", "How a sum is returned.", more="metadata: {roles: verifier}\n")
    assert repo.task(script=play.mending(play.turn(OPEN))).code == 4
    rows = repo.run("skills", "list", repo.folder.name, "--json").json
    assert [(row["skill"], row["role"]) for row in rows] == [("money", "implementer"), ("sums", "verifier")]
    assert rows[0]["why"].startswith("the role opened it")
    assert rows[1]["why"] == "open from the beginning (roles verifier)"
    assert "sums  verifier, run " in repo.run("skills", "list", repo.folder.name).out
