import re
from itertools import pairwise
from pathlib import Path

import pytest

from agentflow.core.errors import InvalidFile, UnknownRole
from agentflow.core.role import Limits, ToolRule
from agentflow.core.routing import PIPELINE
from agentflow.library.roles import Roles, load_roles, read_role
from agentflow.settings import find_bundled

HEAD = "name: tester\ndescription: tests things\ntools: [Read]\n"


def a_file(folder: Path, head: str = HEAD, body: str = "You test.\n", name: str = "tester.md") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{head}---\n{body}", "utf-8")
    return path


RULES = [("Read", None), ("Bash", "git diff *, x"), ("Grep", None)]


@pytest.mark.parametrize(
    "tools",
    [
        "tools:\n  - Read\n  - Bash(git diff *, x)\n  - Grep\n",
        'tools: ["Read", "Bash(git diff *, x)", "Grep"]\n',
        'tools: \'["Read", "Bash(git diff *, x)", "Grep"]\'\n',
        "tools: Read, Bash(git diff *, x), Grep\n",
        "tools: Read Bash(git diff *, x) Grep\n",
        "tools: >\n  Read\n  Bash(git diff *, x)\n  Grep\n",
    ],
)
def test_all_spellings_of_tools_mean_the_same(tmp_path: Path, tools: str) -> None:
    role, warnings = read_role(a_file(tmp_path, f"name: a\ndescription: d\n{tools}"), "user")
    assert ([(rule.tool, rule.pattern) for rule in role.tools], warnings) == (RULES, ())


def test_a_role_says_what_its_file_says(tmp_path: Path) -> None:
    head = (
        f"{HEAD}model: opus\nskills: [a, b]\nmaxTurns: 7\nlimits: {{tool_calls: 3}}\n"
        "write_paths: [docs/**]\ndisallowedTools: Grep\nmetadata: {agentflow-role: planner, owner: me}\n"
    )
    path = a_file(tmp_path, head.replace("[Read]", "[Read, Grep]"))
    role, warnings = read_role(path, "project")
    assert warnings == ()
    assert (role.name, role.model, role.part, role.origin) == ("tester", "opus", "planner", "project")
    assert (role.tools, role.skills) == ((ToolRule(tool="Read", source=str(path)),), ("a", "b"))
    assert (role.limits, role.write_paths) == (Limits(turns=7, tool_calls=3), ("docs/**",))
    assert (role.prompt, role.source) == ("You test.", str(path))


def test_a_role_of_no_part_without_tools_has_those_of_its_caller(tmp_path: Path) -> None:
    role, _ = read_role(a_file(tmp_path, "name: a\ndescription: d\ndisallowedTools: [Bash]\n"), "user")
    assert (role.tools, role.inherits, role.denied) == ((), True, ("Bash",))
    listed, _ = read_role(a_file(tmp_path), "user")
    assert not listed.inherits


@pytest.mark.parametrize("key", ["deny", "disallowedTools"])
def test_what_is_denied_is_taken_away_last(tmp_path: Path, key: str) -> None:
    head = f"name: a\ndescription: d\n{key}: Grep, Bash(git push *)\ntools: Read Grep Bash\n"
    role, _ = read_role(a_file(tmp_path, head), "user")
    assert ([str(rule) for rule in role.tools], role.denied) == (["Read"], ("Bash", "Grep"))


def test_defaults_are_small(tmp_path: Path) -> None:
    role, _ = read_role(a_file(tmp_path), "user")
    assert (role.model, role.limits, role.part, role.skills) == ("inherit", Limits(), None, ())
    played, _ = read_role(a_file(tmp_path, f"{HEAD}metadata: {{agentflow-role: planner}}\n"), "user")
    assert played.model == "fast"


def test_whom_a_role_may_use_stands_in_its_tools_and_metadata(tmp_path: Path) -> None:
    head = HEAD.replace("[Read]", '[Read, "Agent(a, b)", handoff_to_c]')
    metadata = "metadata: {agentflow-direct: a b, agentflow-merge: concatenate}\n"
    role, warnings = read_role(a_file(tmp_path, head + metadata), "user")
    assert warnings == ()
    assert (role.list_rules("Agent")[0].names, role.handoffs) == (("a", "b"), ("c",))
    assert (role.direct, role.concatenates) == (("a", "b"), True)


PART = "metadata: {agentflow-role: planner}\n"
WRONG = {
    "no name": ("description: d\ntools: [Read]\n", "", "name"),
    "no description": ("name: a\ntools: [Read]\n", "", "description"),
    "empty name": ('name: " "\ndescription: d\ntools: []\n', ":2:", "name: must not be empty"),
    "empty description": ("name: a\ndescription: ''\ntools: []\n", ":3:", "description: must not be empty"),
    "no tools": (f"name: a\ndescription: d\n{PART}", "", "tools: is missing"),
    "null tools": (f"name: a\ndescription: d\ntools:\n{PART}", ":4:", "tools: is missing"),
    "a name for no file": ("name: ../a\ndescription: d\n", ":2:", "must be letters, digits"),
    "another way to merge": (f"{HEAD}metadata: {{agentflow-merge: yes}}\n", ":5:", "is not concatenate"),
    "tool": ("name: a\ndescription: d\ntool: [Read]\n", ":4:", "did you mean 'tools'?"),
    "desciption": ("name: a\ndesciption: d\ntools: []\n", ":3:", "did you mean 'description'?"),
    "max_turns": (f"{HEAD}max_turns: 3\n", ":5:", "did you mean 'maxTurns'?"),
    "a number as name": ("name: [a]\ndescription: d\ntools: []\n", ":2:", "name: expected `str`"),
    "a map as tools": ("name: a\ndescription: d\ntools: {Read: true}\n", ":4:", "tools: must be a list"),
    "a broken rule": ("name: a\ndescription: d\ntools: [Read, 'Bash(ls']\n", ":4:", "tools: 'Bash(ls'"),
    "a broken text": ("name: a\ndescription: d\ntools: Read Bash(ls\n", ":4:", "tools: the parentheses"),
    "a broken JSON list": ("name: a\ndescription: d\ntools: '[\"Read\"'\n", ":4:", "tools: "),
    "a number as tool": ("name: a\ndescription: d\ntools: [3]\n", ":4:", "tools: 3 is not a rule"),
    "a broken skill": (f"{HEAD}skills: ['a(']\n", ":5:", "skills: 'a('"),
    "a broken refusal": (f"{HEAD}disallowedTools: 3\n", ":5:", "disallowedTools: must be"),
    "an unknown limit": (f"{HEAD}limits: {{tools: 3}}\n", ":5:", "limits: unknown limit tools"),
    "a limit in words": (f"{HEAD}limits: {{turns: many}}\n", ":5:", "limits"),
    "a part nobody plays": (f"{HEAD}metadata: {{agentflow-role: cook}}\n", ":5:", "'cook' is none of"),
    "turns in words": (f"{HEAD}maxTurns: many\n", ":5:", "maxTurns: expected `int`"),
    "twice": (f"{HEAD}name: b\n{PART}", ":5:", "key 'name' stands twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_file_line_and_key(tmp_path: Path, name: str) -> None:
    head, line, said = WRONG[name]
    path = a_file(tmp_path, head)
    with pytest.raises(InvalidFile) as caught:
        read_role(path, "user")
    assert str(caught.value).startswith(f"{path}{line}")
    assert caught.value.line is not None
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "limits", ["maxTurns: 0", "maxTurns: -3", "limits: {tool_calls: -1}", "limits: {turns: 0}"]
)
def test_a_limit_that_allows_nothing_is_refused(tmp_path: Path, limits: str) -> None:
    with pytest.raises(InvalidFile, match=re.escape(limits.partition(":")[0])):
        read_role(a_file(tmp_path, f"{HEAD}{limits}\n"), "user")


def test_keys_of_other_tools_are_silent_and_unknown_ones_are_not(tmp_path: Path) -> None:
    path = a_file(tmp_path, f"{HEAD}color: red\npermissionMode: plan\nflavour: mint\n")
    _, warnings = read_role(path, "user")
    assert warnings == (f"{path}: key 'flavour' has no meaning here",)


LENIENT = {
    "capitals": ("name: Code-Reviewer\ndescription: d\n", "Code-Reviewer", "d"),
    "a space": ("name: Code Reviewer\ndescription: d\n", "Code Reviewer", "d"),
    "an unquoted colon": ("name: a\ndescription: Use when: it rains\n", "a", "Use when: it rains"),
    "a key twice": ("name: a\nname: b\ndescription: d\n", "b", "d"),
    "an anchor": ("name: &n a\ndescription: *n\n", "a", "a"),
    "a date, a fraction": ("name: a\ndescription: d\nsince: 2026-01-01\nversion: 1.10\n", "a", "d"),
    "an empty line first": ("\nname: a\ndescription: d\n", "a", "d"),
}


@pytest.mark.parametrize("name", LENIENT)
def test_a_public_file_is_read_leniently(tmp_path: Path, name: str) -> None:
    head, called, described = LENIENT[name]
    role, _ = read_role(a_file(tmp_path, head), "user")
    assert (role.name, role.description) == (called, described)


def test_an_unquoted_colon_is_said(tmp_path: Path) -> None:
    path = a_file(tmp_path, LENIENT["an unquoted colon"][0])
    assert read_role(path, "user")[1] == (f"{path}:3: a value with a colon needs quotes; it is read as text",)


BOMBS = {
    "many of few": "a: &a [x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]\n" for a, b in pairwise("abcdefghij")),
    "merged keys": "a: &a {x: y}\nb: {<<: *a}\n",
    "too large": "b: " + "x" * 1_000_001 + "\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_head_that_grows_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFile):
        read_role(a_file(tmp_path, f"{HEAD}{BOMBS[name]}"), "user")


@pytest.mark.parametrize("content", [b"\xff", b"", b"no head", b"---\nname: a\n"])
def test_a_file_that_is_no_role_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        read_role(path, "user")
    assert str(path) in str(caught.value)


def test_the_shipped_roles_play_every_part(tmp_path: Path) -> None:
    roles = load_roles(tmp_path)
    assert roles.warnings == ()
    assert {roles.find_part(part).name for part in PIPELINE} == set(PIPELINE)
    assert {role.origin for role in roles.all} == {"bundled"}


def test_a_role_of_the_user_that_plays_a_part_replaces_the_shipped_one(tmp_path: Path) -> None:
    a_file(tmp_path / "agents", f"{HEAD}metadata: {{agentflow-role: planner}}\n")
    roles = load_roles(tmp_path)
    assert (roles.find_part("planner").name, roles.find_part("planner").origin) == ("tester", "user")
    assert roles.find_part("verifier").origin == "bundled"


def test_a_role_of_a_trusted_project_comes_last(tmp_path: Path) -> None:
    for origin in ("user", "project"):
        head = HEAD.replace("tests things", f"of the {origin}")
        a_file(tmp_path / origin / "agents", f"{head}metadata: {{agentflow-role: planner}}\n")
    assert (
        load_roles(tmp_path / "user", (tmp_path / "project").rglob("*.md")).find_part("planner").description
        == "of the project"
    )
    assert load_roles(tmp_path / "user").find_part("planner").description == "of the user"


def test_a_public_file_named_like_a_part_plays_none(tmp_path: Path) -> None:
    a_file(tmp_path / "agents", HEAD.replace("tester", "planner"), name="planner.md")
    roles = load_roles(tmp_path)
    assert roles.find_part("planner").origin == "bundled"
    assert [role.origin for role in roles.all if role.name == "planner"] == ["bundled", "user"]


def test_a_file_of_the_user_that_is_wrong_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = a_file(tmp_path / "agents", "name: a\n")
    a_file(tmp_path / "agents/deep/er", name="good.md")
    roles = load_roles(tmp_path)
    assert "tester" in {role.name for role in roles.all}
    (warning,) = roles.warnings
    assert str(path) in warning


def test_a_part_that_nobody_plays_is_said_with_its_file() -> None:
    with pytest.raises(UnknownRole, match=r"no role file plays the verifier: .*verifier\.md is missing"):
        Roles(all=()).find_part("verifier")


@pytest.mark.parametrize("kind", ["agents", "skills", "hooks", "examples"])
def test_what_is_shipped_is_found(kind: str) -> None:
    assert find_bundled(kind).is_dir()
