"""The shipped roles, skills and hooks keep to the public formats and to the allow-lists."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import agentflow
from agentflow import frontmatter
from agentflow.core.routing import PIPELINE

ROLE_KEYS = {"name", "description", "model", "tools", "skills", "maxTurns", "limits", "metadata"}
SKILL_KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
MAX_WORDS = 350
MAX_CHARACTERS = 2_000
"""About 500 tokens, so that the tools of a role fit beside its prompt into its first request."""

FINDS = ("Symbols", "References")
TOOLS = {
    "explorer": {
        *("AskUserQuestion", "Read", "Grep", "Glob", *FINDS, "Bash", "WebSearch", "WebFetch", "mcp__*")
    },
    "planner": {"Escalate", "Read", "Grep", "Glob", *FINDS, "Remember", "TodoWrite"},
    "implementer": {
        *("Escalate", "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Grep", "Glob", *FINDS, "Rename"),
        *("Bash", "RunTests", "Mutants", "Remember", "mcp__*"),
    },
    "reviewer": {"Read", "Grep", "Glob", *FINDS, "Bash"},
    "verifier": {"Read", "Grep", *FINDS, "Bash", "RunTests", "Mutants", "TryTest", "Remember"},
}
"""What a role may use: the one list that is kept beside the role files, since more would be a right more."""
LIMITS = {
    "explorer": (25, 40),
    "planner": (15, 20),
    "implementer": (100, 100),
    "reviewer": (25, 30),
    "verifier": (25, 30),
}
MODELS = {
    "explorer": "opus",
    "planner": "opus",
    "implementer": "sonnet",
    "reviewer": "sonnet",
    "verifier": "sonnet",
}
EXECUTES = re.compile(
    r"pytest|unittest|\bbuild\b|\bmake\b|\bbash\b|\bsh\b|\bpython|\bfind\b|\benv\b|\bxargs\b"
)
"""Commands that run the repository's code or another command."""


@pytest.fixture(params=PIPELINE)
def role(request: pytest.FixtureRequest, root: Path) -> tuple[dict[str, Any], str]:
    path = root / "agents" / f"{request.param}.md"
    return frontmatter.split(path.read_text(), path.name)


SKILLS = {
    "agent-behavior-constraints": ("implementer", "explorer planner reviewer verifier"),
    "exploration-strategy": ("explorer", ""),
    "prompt-refinement": ("planner", ""),
    "task-classification": ("planner", ""),
    "team-decision": ("planner", ""),
    "verification-gates": ("verifier", "implementer reviewer"),
}
"""Owner and consumers."""
STRICT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LINK = re.compile(r"\]\(([^)#]+)\)")


@pytest.fixture(params=sorted(SKILLS))
def skill(request: pytest.FixtureRequest, root: Path) -> Path:
    return root / "skills" / str(request.param)


def tool_of(rule: str) -> str:
    return rule.partition("(")[0]


def test_there_are_five_roles(root: Path) -> None:
    assert sorted(path.stem for path in (root / "agents").iterdir()) == sorted(PIPELINE)


def test_a_role_says_who_it_is(role: tuple[dict[str, Any], str]) -> None:
    head, _ = role
    assert set(head) == ROLE_KEYS
    assert head["metadata"] == {"agentflow-role": head["name"]}
    assert head["description"].startswith("Use when")


def test_a_role_has_the_tools_of_the_table_and_no_other(role: tuple[dict[str, Any], str]) -> None:
    head, _ = role
    assert {tool_of(rule) for rule in head["tools"]} == TOOLS[head["name"]]


def test_a_role_has_its_tier_and_limits(role: tuple[dict[str, Any], str]) -> None:
    head, _ = role
    assert head["model"] == MODELS[head["name"]]
    assert (head["maxTurns"], head["limits"]["tool_calls"]) == LIMITS[head["name"]]


def test_only_the_implementer_has_an_open_shell(role: tuple[dict[str, Any], str]) -> None:
    head, _ = role
    assert ("Bash" in head["tools"]) == (head["name"] == "implementer")


@pytest.mark.parametrize("name", ["explorer", "reviewer"])
def test_a_reading_role_runs_no_code_of_the_repository(root: Path, name: str) -> None:
    head, _ = frontmatter.split((root / f"agents/{name}.md").read_text(), name)
    assert [rule for rule in head["tools"] if EXECUTES.search(rule)] == []


def test_a_prompt_is_short_and_forbids_unshown_claims(role: tuple[dict[str, Any], str]) -> None:
    _, prompt = role
    assert len(prompt.split()) < MAX_WORDS
    assert len(prompt) <= MAX_CHARACTERS
    assert "Never" in prompt
    assert "complete, evidenced, accurate, in scope" in prompt


def test_a_skill_keeps_to_the_strict_format(skill: Path) -> None:
    head, body = frontmatter.split((skill / "SKILL.md").read_text(), skill.name)
    assert strict_problems(skill) == []
    assert (head["metadata"]["owner"], head["metadata"].get("consumers", "")) == SKILLS[skill.name]
    assert "Use when" in head["description"] or "Use before" in head["description"]
    assert len(body.splitlines()) < 500


def test_the_roles_list_the_skills_that_serve_them(role: tuple[dict[str, Any], str]) -> None:
    head, _ = role
    served = {name for name, (owner, users) in SKILLS.items() if head["name"] in (owner, *users.split())}
    assert set(head["skills"]) == served


def test_every_file_of_a_skill_is_named_in_it(skill: Path) -> None:
    inside = {path.relative_to(skill).as_posix() for path in skill.rglob("*") if path.is_file()}
    assert inside == {"SKILL.md", *LINK.findall((skill / "SKILL.md").read_text())}
    assert {path.split("/")[0] for path in inside} <= {"SKILL.md", "references", "examples"}


def test_the_guide_has_the_map_of_owners_and_consumers(root: Path) -> None:
    """AGENTFLOW_UPDATE_DOCS=1 rewrites it."""
    page = root / "docs/guide/skills.md"
    head, begin, rest = page.read_text().partition("<!-- map: written by tests/house/test_content.py -->\n")
    _, end, tail = rest.partition("<!-- end of the map -->")
    rows = ["| skill | owner | consumers | use |", "| --- | --- | --- | --- |"]
    for folder in sorted((root / "skills").iterdir()):
        told, _ = frontmatter.split((folder / "SKILL.md").read_text(), folder.name)
        metadata = told["metadata"]
        users = ", ".join(metadata.get("consumers", "").split()) or "-"
        rows.append(f"| `{told['name']}` | {metadata['owner']} | {users} | {told['description']} |")
    text = "".join((head, begin, "\n".join(rows), "\n", end, tail))
    if os.environ.get("AGENTFLOW_UPDATE_DOCS"):
        page.write_text(text)
    assert page.read_text() == text


def strict_problems(skill: Path) -> list[str]:
    """Return what the public standard would not allow in a skill."""
    head, _ = frontmatter.split((skill / "SKILL.md").read_text(), skill.name)
    name, description = head.get("name", ""), head.get("description", "")
    metadata = head.get("metadata", {})
    found = [f"key {key}" for key in set(head) - SKILL_KEYS]
    if not STRICT_NAME.fullmatch(name) or len(name) > 64 or name != skill.name:
        found.append("name")
    if not description.strip() or len(description) > 1024:
        found.append("description")
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        found.append("metadata")
    texts = [head[key] for key in ("license", "compatibility", "allowed-tools") if key in head]
    return found + ["a text" for text in texts if not isinstance(text, str) or not text.strip()]


@pytest.mark.parametrize(
    "head",
    [
        "name: other\ndescription: d\n",
        "name: a-skill\n",
        "name: a-skill\ndescription: ' '\n",
        "name: a-skill\ndescription: d\nversion: '1'\n",
        "name: a-skill\ndescription: d\nmetadata: {tags: [a]}\n",
        "name: a-skill\ndescription: d\nallowed-tools: [Read]\n",
    ],
)
def test_the_strict_validation_sees_what_is_wrong(tmp_path: Path, head: str) -> None:
    folder = tmp_path / "a-skill"
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\n{head}---\nBody.\n")
    assert len(strict_problems(folder)) == 1


def test_every_shipped_skill_is_checked(root: Path) -> None:
    assert sorted(path.name for path in (root / "skills").iterdir()) == sorted(SKILLS)


def test_every_shipped_hook_names_a_script_that_is_there(root: Path) -> None:
    told = (root / "hooks/hooks.json").read_text()
    named = re.findall(r"/hooks/([\w.-]+)", told)
    assert named
    assert all((root / "hooks" / name).is_file() for name in named)


def test_the_plugin_manifest_names_this_version(root: Path) -> None:
    manifest = json.loads((root / ".claude-plugin/plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("agentflow", agentflow.__version__)
    assert set(manifest) <= {"name", "version", "description", "license", "keywords"}
