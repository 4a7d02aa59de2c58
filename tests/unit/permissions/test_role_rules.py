import pytest

from agentflow.core.record import Record
from agentflow.core.role import Plan, Role
from agentflow.core.routing import PIPELINE
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.permissions.role_rules import explain_role_refusal, find_owner
from agentflow.permissions.rules import compile_pattern, parse_rules
from tests.support.tools import tool_named

LISTS = {
    "explorer": "Read Grep Glob WebSearch WebFetch Bash(ls *) Bash(rg *) Bash(git log *) Bash(find *)",
    "planner": "Read Grep Glob TodoWrite",
    "implementer": "Read Write Edit Grep Glob Bash",
    "reviewer": "Read Grep Glob Bash(ruff check*) Bash(git diff:*) Bash(mypy)",
    "verifier": "Read Grep Bash(pytest*) Bash(ruff check*)",
}


def a_role(name: str, tools: str, part: str | None = None) -> Role:
    return Role(
        name=name,
        description="d",
        model="fast",
        tools=parse_rules(tools, f"agents/{name}.md"),
        prompt="",
        source=f"agents/{name}.md",
        origin="bundled",
        part=part,
    )


ROLES = {part: a_role(part, LISTS[part], part) for part in PIPELINE}


class Anything(Record):
    pass


def call(given: Anything, context: ToolContext) -> Output:
    return Output(content=f"{given}{context}")


def a_tool(name: str, category: Category, kind: type[Record] = Anything) -> Tool:
    return Tool(name=name, category=category, effect=Effect.READ, input=kind, call=call)


TOOLS = {
    name: tool_named(name)
    for name in (
        *("Read", "Write", "Edit", "Glob", "Grep"),
        *("Bash", "TodoWrite", "WebSearch", "WebFetch"),
    )
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("part", PIPELINE)
def test_a_role_may_use_what_its_list_names_and_nothing_else(part: str, tool: str) -> None:
    listed = {rule.tool for rule in ROLES[part].tools}
    refused = explain_role_refusal(ROLES[part], TOOLS[tool], "touch x")
    if tool not in listed:
        assert refused == f"{part} may not use {tool}"
    elif tool == "Bash" and part != "implementer":
        assert refused is not None
    else:
        assert refused is None


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("ls *", ("ls", "ls -la"), ("lsof", "lsof -i", "xls")),
        ("ls*", ("ls", "ls -la", "lsof"), ("xls",)),
        ("git diff:*", ("git diff", "git diff a"), ("git difftool", "git")),
        ("git diff *", ("git diff", "git diff a"), ("git difftool", "git")),
        ("npm run build", ("npm run build",), ("npm run build x", "npm run", "npm 'run build'")),
        ("git * main", ("git log main", "git log -5 main"), ("git main", "git log maintenance")),
        ("*", ("ls", "touch x"), ()),
        ("a.b", ("a.b",), ("axb",)),
        ("ls:* -la", (), ("ls x -la",)),
    ],
)
def test_patterns_mean_what_the_public_rules_say(
    pattern: str, matching: tuple[str, ...], others: tuple[str, ...]
) -> None:
    wanted = compile_pattern(pattern)
    assert [each for each in matching if not wanted.fullmatch(each)] == []
    assert [each for each in others if wanted.fullmatch(each)] == []


def test_a_bare_rule_allows_all_beside_patterns() -> None:
    role = a_role("guide", "Bash(ls *) Bash")
    assert explain_role_refusal(role, TOOLS["Bash"], "touch x; ls") is None


def test_a_category_stands_for_its_tools() -> None:
    role = a_role("guide", "fs shell(ls *)")
    assert explain_role_refusal(role, TOOLS["Edit"], "a.py") is None
    assert explain_role_refusal(role, TOOLS["Bash"], "ls -la") is None
    assert explain_role_refusal(role, TOOLS["Bash"], "touch x") is not None
    assert explain_role_refusal(role, TOOLS["TodoWrite"], "") == "guide may not use TodoWrite"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("docs/a.md", True),
        ("docs/deep/a.md", True),
        ("src/a.md", False),
        ("docs/../src/a.md", False),
        ("/docs/a.md", False),
        ("docs", False),
    ],
)
def test_a_path_pattern_holds_file_tools_to_it(path: str, *, allowed: bool) -> None:
    role = a_role("scribe", "Write(docs/**)")
    assert (explain_role_refusal(role, TOOLS["Write"], path) is None) == allowed


def test_a_pattern_of_a_tool_that_fetches_names_hosts_or_whole_addresses() -> None:
    role = a_role("guide", "WebFetch(domain:example.org) WebFetch(https://example.net/*)")
    assert explain_role_refusal(role, TOOLS["WebFetch"], "https://example.org/a") is None
    assert explain_role_refusal(role, TOOLS["WebFetch"], "https://example.net/a") is None
    assert explain_role_refusal(role, TOOLS["WebFetch"], "https://example.com/a") is not None


@pytest.mark.parametrize("part", PIPELINE)
def test_a_submit_tool_belongs_to_its_part_whatever_the_list_says(part: str) -> None:
    tool = a_tool("SubmitPlan", Category.STATE, Plan)
    role = a_role(part, "state SubmitPlan Read", part)
    assert explain_role_refusal(role, tool, "") == (
        None if part == "planner" else "SubmitPlan belongs to the planner"
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            "pytest",
            "reviewer may not run pytest; it may run ruff check*, git diff:*, mypy, and commands",
        ),
        ("ruff check . --fix", "reviewer may not give --fix to ruff: it can run, write or delete something"),
        ("ruff check . | tee x", "reviewer may not run tee x; it may run"),
    ],
)
def test_a_refusal_says_what_is_allowed(command: str, reason: str) -> None:
    assert str(explain_role_refusal(ROLES["reviewer"], TOOLS["Bash"], command)).startswith(reason)


@pytest.mark.parametrize(
    ("tool", "owner"),
    [
        ("Edit", "implementer"),
        ("Write", "implementer"),
        ("TodoWrite", "planner"),
        ("WebSearch", "explorer"),
        ("WebFetch", "explorer"),
        ("Bash", "implementer"),
        ("Glob", "explorer"),
        ("Nothing", None),
    ],
)
def test_a_tool_has_an_owner_in_the_pipeline(tool: str, owner: str | None) -> None:
    stranger = a_role("guide", "Nothing Edit")
    assert find_owner(tool, (stranger, *reversed(ROLES.values()))) == owner
