"""Links of a repository in the place of what rules a task: what they lead to is protected, or refused."""

import json
import os
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

DENY = json.dumps({"permissions": {"deny": ["Bash(rm *)"]}})
REWRITES = {
    "by its own name": "echo '{}' > conf/rules.json",
    "by the link": "echo '{}' > .claude/settings.json",
    "by another folder": "mv conf gone; mkdir conf; echo '{}' > conf/rules.json",
    "by removing it": "rm -f conf/rules.json; echo '{}' > conf/rules.json",
}
SHORT = ("by the link", "by another folder")


@pytest.fixture(params=["full", "partial"])
def path(request: pytest.FixtureRequest, bare_path: str) -> dict[str, str]:
    """The environment of a level."""
    return {} if request.param == "full" else {"PATH": bare_path}


def linked(repo: Repo, links: dict[str, str]) -> Repo:
    for name, target in links.items():
        place = repo.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    return repo.commit()


@pytest.mark.parametrize("command", [REWRITES[name] for name in SHORT], ids=SHORT)
def test_what_a_link_of_the_settings_leads_to_is_not_rewritten_by_a_command(
    new_repo: NewRepo, path: dict[str, str], command: str
) -> None:
    repo = linked(
        new_repo({**play.LIGHT, "conf/rules.json": DENY}), {".claude/settings.json": "../conf/rules.json"}
    )
    repo.task(
        "--max-iterations",
        "1",
        play.TEXT,
        script=play.mending(play.turn(play.call("Bash", command=command))),
        env=path,
    )
    assert repo.runs("implementer")[0].calls[0][0]["input"]["command"] == command
    assert (repo.root / ".claude/settings.json").read_text() == DENY


def test_nor_by_a_tool_and_its_neighbours_are_written_as_ever(new_repo: NewRepo) -> None:
    files = {**play.QUICK, "conf/rules.json": DENY, "conf/other.txt": "old\n"}
    repo = linked(new_repo(files), {".claude/settings.json": "../conf/rules.json"})
    turns = (
        play.turn(play.call("Read", file_path="conf/rules.json")),
        play.turn(play.call("Write", file_path="conf/rules.json", content="{}")),
        play.turn(play.call("Bash", command="echo new > conf/other.txt && echo more > conf/made.txt")),
    )
    assert (
        repo.task(script=play.mending(*turns, evidence="ev-0003")).code == 4
    )  # nothing proves those two files
    refused = repo.runs("implementer")[0].results[1]["content"]
    assert refused == "conf/rules.json is read-only: no role writes to .claude/settings.json"
    assert repo.read("conf/rules.json") == DENY
    assert (repo.read("conf/other.txt"), repo.read("conf/made.txt")) == ("new\n", "more\n")


def test_a_file_that_a_link_of_the_settings_waits_for_is_set_aside(
    new_repo: NewRepo, path: dict[str, str]
) -> None:
    repo = linked(new_repo({**play.LIGHT, "conf/a": ""}), {".claude/settings.json": "../conf/rules.json"})
    repo.task(
        script=play.mending(play.turn(play.call("Bash", command="echo '{}' > conf/rules.json; true"))),
        env=path,
    )
    assert not (repo.root / "conf/rules.json").exists()
    told = repo.runs("implementer")[0].results[0]["content"]
    assert "conf/rules.json is protected" in told or "Permission denied" in told


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ({".claude/settings.json": "../step", "step": "conf/rules.json"}, "through step"),
        ({".claude/settings.json": "../way/rules.json", "way": "conf"}, "through way"),
        ({".claude/skills": "../way", "way": "../elsewhere"}, "through way"),
        ({".claude/skills": ".."}, ".claude/skills leads to a folder that holds the repository"),
    ],
)
def test_a_link_that_a_command_could_lead_elsewhere_is_refused_by_name(
    new_repo: NewRepo, links: dict[str, str], told: str
) -> None:
    repo = linked(new_repo({**play.QUICK, "conf/rules.json": DENY}), links)
    done = repo.task(script=play.mending())
    assert (done.code, repo.tasks) == (2, [])
    assert told in done.err


@pytest.mark.parametrize(
    "links",
    [
        {"CLAUDE.md": "AGENTS.md", "AGENTS.md": "conf/guide.md"},
        {".claude/skills": "../.agents/skills"},
        {".claude/agents/mine.md": "../../conf/guide.md"},
    ],
    ids=str,
)
def test_usual_links_are_no_obstacle(new_repo: NewRepo, links: dict[str, str]) -> None:
    guide = "---\nname: mine\ndescription: d\n---\n"
    skill = "---\nname: s\ndescription: d\n---\n"
    repo = linked(new_repo({**play.LIGHT, "conf/guide.md": guide, ".agents/skills/s/SKILL.md": skill}), links)
    done = repo.task(script=play.mending())
    assert done.code == 4, done.err


COMMANDS = {
    "task": ("task", "make the failing tests pass"),
    "explore": ("explore",),
    "status": ("status",),
    "resume": ("resume",),
    "undo": ("undo", "2026"),
    "approve": ("approve", "p1-1"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        (".claude", "../elsewhere"),
        (".claude/agentflow", "../src"),
        (".git/agentflow", "../../elsewhere"),
    ],
)
def test_state_in_the_place_of_a_link_is_refused_by_name_and_nothing_is_written(
    new_repo: NewRepo, name: str, target: str, words: tuple[str, ...]
) -> None:
    repo = new_repo({**play.QUICK, "src/a.txt": "mine\n", "src/.gitignore": "mine\n"})
    outside = repo.root.with_name("elsewhere")
    outside.mkdir()
    (outside / ".gitignore").write_text("mine\n")
    place = repo.root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    before = listed(repo.root, outside)
    done = repo.run(*words, env={"AGENTFLOW_MODEL": repo.scripted(play.mending())})
    assert done.code == 2, done.err
    assert f"{name} is a link" in done.err
    assert listed(repo.root, outside) == before


def listed(*folders: Path) -> dict[str, bytes]:
    files = (Path(top, name) for folder in folders for top, _, names in os.walk(folder) for name in names)
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def test_an_ignore_file_in_the_place_of_the_tasks_stays(new_repo: NewRepo) -> None:
    repo = new_repo({**play.LIGHT, ".claude/agentflow/.gitignore": "# mine\n*\n"})
    assert repo.task(script=play.mending()).code == 4
    assert repo.read(".claude/agentflow/.gitignore") == "# mine\n*\n"


def test_settings_that_are_a_link_out_of_the_repository_are_no_obstacle(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    outside = repo.root.with_name("dotfiles")
    outside.mkdir()
    (outside / "settings.json").write_text(DENY)
    linked(repo, {".claude/settings.json": "../../dotfiles/settings.json"})
    done = repo.task(script=play.mending())
    assert done.code == 4, done.err
