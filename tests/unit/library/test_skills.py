from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.errors import InvalidFile, ToolError
from agentflow.core.role import Role, ToolRule
from agentflow.core.task import Phase
from agentflow.library.skill_file import list_skill_files, open_body, read_skill, read_skill_file
from agentflow.library.skills import (
    SkillFolder,
    Skills,
    describe_unknown_skill,
    format_skill_line,
    list_skill_places,
    load_skills,
    offer_skills,
)
from agentflow.settings import find_bundled

HEAD = "name: a-skill\ndescription: Use when something is to be done.\n"
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a skill below a folder, and return its folder."""

    def made(
        head: str = HEAD, body: str = "Do it.\n", name: str = "a-skill", below: str = "repo/.claude/skills"
    ) -> Path:
        folder = tmp_path / below / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(f"---\n{head}---\n{body}", "utf-8")
        return folder

    return made


def a_role(part: str | None = "planner", name: str = "planner", **more: object) -> Role:
    fields = {"description": "d", "model": "fast", "tools": (ToolRule(tool="Read"),), "prompt": "p"}
    return Role(**{**fields, "source": "s", "origin": "user", "name": name, "part": part, **more})  # type: ignore[arg-type]


def project(tmp_path: Path, folder: str = ".claude") -> SkillFolder:
    return SkillFolder(folder=tmp_path / "repo" / folder / "skills", origin="project", root=tmp_path / "repo")


def test_a_skill_says_what_its_head_says(make: Make) -> None:
    metadata = (
        'metadata: {owner: planner, consumers: "verifier, reviewer", roles: planner, paths: "*.sql a/**"}\n'
    )
    skill, odd = read_skill(make(HEAD + metadata), make(HEAD + metadata), "user")
    assert odd == ()
    assert (skill.name, skill.owner, skill.consumers) == ("a-skill", "planner", ("verifier", "reviewer"))
    assert (skill.roles, skill.phases, skill.paths) == (("planner",), (), ("*.sql", "a/**"))
    assert (skill.origin, open_body(skill).text) == ("user", "Do it.")


@pytest.mark.parametrize(
    ("head", "line", "said"),
    [
        ("name: a-skill\n", 1, "description: is missing"),
        ("name: a-skill\ndescription: ' '\n", 3, "description: is missing or empty"),
        (f"{HEAD}descripton: x\n", 4, "did you mean 'description'?"),
        (f"{HEAD}allowed_tools: Read\n", 4, "did you mean 'allowed-tools'?"),
        ("name: [a\n", 3, ""),
    ],
)
def test_what_is_beyond_repair_is_named_with_file_and_line(
    make: Make, head: str, line: int, said: str
) -> None:
    folder = make(head)
    with pytest.raises(InvalidFile) as caught:
        read_skill(folder, folder, "user")
    assert str(caught.value).startswith(f"{folder}/SKILL.md:{line}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "no head", "---\nname: a\n"])
def test_a_file_without_a_head_is_named(make: Make, text: str) -> None:
    folder = make()
    (folder / "SKILL.md").write_text(text)
    with pytest.raises(InvalidFile, match=r"SKILL\.md"):
        read_skill(folder, folder, "user")


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("name: a-skill\ndescription: Use when: it rains\n", "Use when: it rains"),
        ('name: a-skill\ndescription: Says "no": always\n', 'Says "no": always'),
        ("name: a-skill\ndescription: >\n  Two\n  lines\n", "Two lines"),
    ],
)
def test_an_unquoted_colon_is_text(make: Make, head: str, description: str) -> None:
    folder = make(head)
    assert read_skill(folder, folder, "user")[0].description == description


@pytest.mark.parametrize(
    "key",
    [
        "version: 1.0",
        "when_to_use: now",
        "argument-hint: '[file]'",
        "allowed-tools: [Read, 'Bash(git diff:*)']",
        "allowed-tools: Bash(git diff:*), Read",
        "context: fork",
        "disallowed-tools: Bash",
        "paths: ['*.py']",
        "hooks: {PreToolUse: []}",
        "metadata: {nested: {a: b}, count: 3}",
        "metadata: none",
        "somebody-elses: key",
    ],
)
def test_what_other_tools_write_loads(make: Make, key: str) -> None:
    folder = make(f"{HEAD}{key}\n")
    assert read_skill(folder, folder, "user")[0].name == "a-skill"


@pytest.mark.parametrize(
    ("head", "line", "said"),
    [
        ("name: other\ndescription: d\n", 2, "must be the folder's name, a-skill"),
        ("description: d\n", 1, ""),
        (f"name: a-skill\ndescription: {'d' * 1025}\n", 3, "longer than 1024"),
        (f"{HEAD}flavour: '2'\n", 4, "'flavour' has no meaning here"),
        (f"{HEAD}metadata: {{owners: planner}}\n", 4, "did you mean 'owner'?"),
        (f"{HEAD}metadata: {{owner: [a, b]}}\n", 4, "metadata.owner: must be a text"),
    ],
)
def test_what_the_standard_does_not_allow_is_odd_and_loads(
    make: Make, head: str, line: int, said: str
) -> None:
    folder = make(head)
    _, odd = read_skill(folder, folder, "user")
    assert not said or [(each.line, said in each.problem) for each in odd] == [(line, True)]


def test_later_places_win_and_a_person_is_told(make: Make, tmp_path: Path) -> None:
    for below in ("home/.agents/skills", "home/.claude/skills", "home/.config/agentflow/skills"):
        make(HEAD.replace("something", below), below=below)
    places = list_skill_places(
        tmp_path / "home/.claude", tmp_path / "home/.config/agentflow", tmp_path / "repo"
    )
    assert "agentflow/skills" in load_skills(places).find("a-skill").description  # type: ignore[union-attr]
    for below in ("repo/.agents/skills", "repo/.claude/skills"):
        make(HEAD.replace("something", below), below=below)
    found = load_skills(places)
    assert "repo/.claude" in found.find("a-skill").description  # type: ignore[union-attr]
    assert len([warning for warning in found.warnings if "replaces" in warning]) == 4


def test_a_shipped_skill_is_replaced_by_one_of_the_same_name(make: Make, tmp_path: Path) -> None:
    make("name: team-decision\ndescription: Ours.\n", name="team-decision")
    places = list_skill_places(tmp_path / ".claude", tmp_path / "config", tmp_path / "repo")
    found = load_skills(places).find("team-decision")
    assert found is not None
    assert found.origin == "project"


def test_a_repository_does_not_displace_a_skill_that_is_always_open(make: Make, tmp_path: Path) -> None:
    make(f"{HEAD}metadata: {{roles: planner}}\n", below="home/skills")
    make()
    mine = SkillFolder(folder=tmp_path / "home/skills", origin="user")
    found = load_skills((mine, project(tmp_path)))
    assert [skill.origin for skill in found.all] == ["user"]
    assert "left out" in found.warnings[0]


def test_one_that_cannot_be_read_is_left_out_and_said(make: Make, tmp_path: Path) -> None:
    make("name: [a\n", name="broken")
    make()
    found = load_skills((project(tmp_path),))
    assert [skill.name for skill in found.all] == ["a-skill"]
    assert "broken/SKILL.md:" in found.warnings[0]


def test_a_shipped_one_has_to_be_right(make: Make) -> None:
    folder = make("name: [a\n")
    with pytest.raises(InvalidFile):
        load_skills((SkillFolder(folder=folder.parent, origin="bundled"),))


def test_the_scan_is_bounded(make: Make, tmp_path: Path) -> None:
    make(name="a/b/c/d/e/deep")
    make(name="a/b/c/d/e/f/deeper")
    make(name="a/b/c/d/e/deep/inside")
    make(name=".hidden/skill")
    found = load_skills((project(tmp_path),))
    assert [skill.folder.name for skill in found.all] == ["deep"]


def test_no_link_leads_a_repositorys_skill_out_of_it(make: Make, tmp_path: Path) -> None:
    secret = make(HEAD.replace("something", "secret"), below="outside")
    folder = make(name="whole")
    (folder.parent / "linked").symlink_to(secret)
    (folder.parent / "file").mkdir()
    (folder.parent / "file/SKILL.md").symlink_to(secret / "SKILL.md")
    found = load_skills((project(tmp_path),))
    assert [skill.folder.name for skill in found.all] == ["whole"]
    assert [warning for warning in found.warnings if "linked" in warning] == []
    (tmp_path / "repo/.agents").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/skills").mkdir()
    (tmp_path / "outside/skills/found").symlink_to(secret)
    make(below="outside/skills")
    assert load_skills((project(tmp_path, ".agents"),)) == Skills()


def test_the_user_may_keep_skills_elsewhere(make: Make, tmp_path: Path) -> None:
    kept = make(below="dotfiles")
    (tmp_path / "home/skills").mkdir(parents=True)
    (tmp_path / "home/skills/a-skill").symlink_to(kept)
    found = load_skills((SkillFolder(folder=tmp_path / "home/skills", origin="user"),))
    assert open_body(found.all[0]).text == "Do it."


ATTACKS = {
    "up": "../other/SKILL.md",
    "absolute": "/etc/passwd",
    "far up": "../../../.env",
    "a link out": "out",
    "a link to the repository": "env",
    "a linked folder": "all/.env",
    "git": "../../../.git/config",
    "nothing": "none.md",
    "a folder": "references",
    "control": "a\x00b",
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("origin", ["project", "user"])
def test_only_files_of_the_folder_are_read(make: Make, tmp_path: Path, name: str, origin: str) -> None:
    make(name="other")
    folder = make()
    repo = tmp_path / "repo"
    (repo / ".env").write_text("SECRET")
    (repo / ".git").mkdir()
    (repo / ".git/config").write_text("SECRET")
    (folder / "references").mkdir()
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "env").symlink_to(repo / ".env")
    (folder / "all").symlink_to(repo)
    skill, _ = read_skill(folder, repo if origin == "project" else folder, origin)
    with pytest.raises(ToolError):
        read_skill_file(skill, ATTACKS[name])


def test_a_folder_that_becomes_a_link_is_read_no_more(make: Make, tmp_path: Path) -> None:
    folder, repo = make(), tmp_path / "repo"
    (repo / ".env").write_text("SECRET")
    skill, _ = read_skill(folder, repo, "project")
    (folder / "SKILL.md").unlink()
    folder.rmdir()
    folder.symlink_to(repo)
    with pytest.raises(ToolError):
        read_skill_file(skill, ".env")


def test_the_files_beside_it_are_named_and_read(make: Make) -> None:
    folder = make()
    (folder / "references").mkdir()
    (folder / "references/a.md").write_text("first")
    (folder / "NOTES.md").write_text("second")
    (folder / "link.md").symlink_to("/etc/passwd")
    skill, _ = read_skill(folder, folder, "user")
    assert list_skill_files(skill) == ("NOTES.md", "references/a.md")
    assert [read_skill_file(skill, name) for name in list_skill_files(skill)] == ["second", "first"]


SERVED = {
    "owner": ("metadata: {owner: planner}\n", a_role(), True),
    "consumer": ("metadata: {owner: verifier, consumers: planner}\n", a_role(), True),
    "by the part it plays": ("metadata: {owner: planner}\n", a_role(name="terse"), True),
    "by name": ("metadata: {owner: helper}\n", a_role(part=None, name="helper"), True),
    "listed": ("", a_role(skills=("a-skill",)), True),
    "another": ("metadata: {owner: verifier, consumers: reviewer}\n", a_role(), False),
    "nobody": ("", a_role(), True),
    "nobody, and a sub-agent with its own list": ("", a_role(part=None), False),
    "nobody, and a sub-agent that lists Skill": (
        "",
        a_role(part=None, tools=(ToolRule(tool="Skill"),)),
        True,
    ),
    "nobody, and a sub-agent that inherits": ("", a_role(part=None, tools=(), inherits=True), True),
    "nobody, about other files": ("paths: 'src/**'\n", a_role(), False),
    "nobody, about these files": ("paths: ['*.py']\n", a_role(), True),
}


@pytest.mark.parametrize("name", SERVED)
def test_whom_a_skill_serves(make: Make, name: str) -> None:
    head, role, expected = SERVED[name]
    folder = make(HEAD + head)
    skill, _ = read_skill(folder, folder, "user")
    given = offer_skills(Skills(all=(skill,)), role, Phase.PLANNING, ("a.py",))
    assert (given.listed, given.opened) == ((skill,) if expected else (), ())


OPENED = {
    "role": ("roles: planner", ("planner", Phase.PLANNING, ()), True),
    "phase": ("phases: planning", ("planner", Phase.PLANNING, ()), True),
    "path": ("paths: '*.sql db/**'", ("planner", Phase.PLANNING, ("db/a/b.py",)), True),
    "another role": ("roles: verifier", ("planner", Phase.PLANNING, ()), False),
    "another phase": ("phases: review", ("planner", Phase.PLANNING, ()), False),
    "another path": ("paths: '*.sql'", ("planner", Phase.PLANNING, ("a.py",)), False),
}


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("origin", ["user", "project"])
def test_what_opens_a_skill_from_the_beginning(make: Make, name: str, origin: str) -> None:
    key, (part, phase, paths), expected = OPENED[name]
    folder = make(f"{HEAD}metadata:\n  owner: reviewer\n  {key}\n")
    skill, _ = read_skill(folder, folder, origin)
    given = offer_skills(Skills(all=(skill,)), a_role(part=part), phase, paths)
    assert given.opened == ((skill,) if expected and origin == "user" else ())


def test_a_role_may_be_denied_all_skills(make: Make) -> None:
    folder = make(f"{HEAD}metadata: {{roles: planner, owner: planner}}\n")
    skill, _ = read_skill(folder, folder, "user")
    given = offer_skills(Skills(all=(skill,)), a_role(denied=("Skill",)), Phase.PLANNING, ())
    assert (given.listed, given.opened) == ((), ())


def test_a_skill_that_is_kept_from_models_is_not_offered(make: Make) -> None:
    folder = make(f"{HEAD}disable-model-invocation: true\nmetadata: {{owner: planner}}\n")
    skill, _ = read_skill(folder, folder, "user")
    assert offer_skills(Skills(all=(skill,)), a_role(), Phase.PLANNING, ()).listed == ()


def test_an_unknown_skill_of_a_role_is_named() -> None:
    skills = load_skills((SkillFolder(folder=find_bundled("skills"), origin="bundled"),))
    said = describe_unknown_skill(a_role(skills=("team-decision", "verification-gate")), skills)
    assert said is not None
    assert said.startswith("skills: role planner lists verification-gate, which no folder holds")
    assert said.endswith("did you mean verification-gates?")
    assert describe_unknown_skill(a_role(skills=("team-decision",)), skills) is None


def test_the_nearest_to_the_task_are_listed_and_the_others_are_found(make: Make, tmp_path: Path) -> None:
    for number in range(60):
        make(f"name: s{number:02}\ndescription: {'What to do. ' * 10}\n", name=f"s{number:02}")
    make("name: zebra\ndescription: How prices are rounded.\n", name="zebra")
    skills = load_skills((project(tmp_path),))
    given = offer_skills(skills, a_role(), Phase.PLANNING, (), "round the price")
    assert given.listed[0].name == "zebra"
    assert [skill.name for skill in given.listed[1:]] == sorted(skill.name for skill in given.listed[1:])
    assert len(given.listed) + len(given.hidden) == 61
    assert sum(len(format_skill_line(skill)) + 1 for skill in given.listed) <= 4_000
    assert given.hidden
    assert offer_skills(skills, a_role(), Phase.PLANNING, (), "round the price") == given
