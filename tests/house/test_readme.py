"""README and guides say what is true: their commands run and their role files load."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentflow.core.hook import POINTS
from agentflow.core.record import encode
from agentflow.library.roles import read_role

ROOT = Path(__file__).parents[2]
SETUP = (
    (
        "python3 -m venv .venv && PIP_NO_CACHE_DIR=1 .venv/bin/pip install -q -e . "
        "&& .venv/bin/agentflow demo demo"
    ),
    (
        "python3 -m venv .venv && PIP_NO_CACHE_DIR=1 .venv/bin/pip install -q -e '.[dev]' "
        "&& .venv/bin/python -m pytest -q -n 4"
    ),
)
PAGES = (
    "README.md",
    "docs/guide/claude-code.md",
    "docs/guide/getting-started.md",
    "docs/guide/waiting.md",
    "docs/guide/writing-a-role.md",
    "docs/guide/skills.md",
    "docs/guide/sub-agents.md",
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(page: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / page).read_text()) if kind == language]


def runnable() -> Iterator[tuple[str, str]]:
    """Yield page and text of each bash block that is not one of the two set-up commands."""
    for page in PAGES:
        yield from ((page, text) for text in blocks(page, "bash") if text.strip() not in SETUP)


def bash(script: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "PATH": path,
        "HOME": str(home),
        "TMPDIR": str(home),
        "GIT_PAGER": "cat",
        "LANG": "C.UTF-8",
    }
    argv = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def broken_repository(tmp_path: Path) -> Path:
    """A repository with a bug that its own test shows."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "pages.py").write_text("def last(items, size):\n    return len(items) // size + 1\n")
    (folder / "test_pages.py").write_text(
        "import unittest\n\nfrom pages import last\n\n\nclass LastPage(unittest.TestCase):\n"
        "    def test_index_of_the_last_page(self):\n"
        "        for count, size, page in ((5, 2, 2), (9, 2, 4), (12, 5, 2), (1, 2, 0)):\n"
        "            self.assertEqual(last(range(count), size), page)\n"
    )
    made = (
        "git init -q . && git config user.name a && git config user.email a@example.org"
        " && git add . && git commit -qm start"
    )
    assert bash(made, folder, tmp_path).returncode == 0
    return folder


def test_the_first_two_commands_are_the_set_up() -> None:
    assert tuple(text.strip() for text in blocks("README.md", "bash")[:2]) == SETUP


def test_ci_runs_the_readmes_test_command() -> None:
    lines = [line.strip() for line in (ROOT / ".ci/run").read_text().splitlines()]
    assert lines.count(SETUP[1]) == 1
    assert os.access(ROOT / ".ci/run", os.X_OK)


@pytest.mark.parametrize(("page", "script"), [*runnable()])
def test_a_command_block_runs_as_written(
    page: str, script: str, broken_repository: Path, tmp_path: Path
) -> None:
    ran = bash(script, broken_repository, tmp_path)
    assert ran.returncode == 0, f"{page}:\n{script}\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("script", blocks("docs/guide/python.md", "python"))
def test_a_python_block_runs_as_written(script: str, broken_repository: Path, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(script)
    ran = bash(f"python {tmp_path / 'shown.py'}", broken_repository, tmp_path)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("page", ["README.md", "docs/guide/writing-a-role.md"])
def test_a_shown_role_loads_without_a_warning(page: str, tmp_path: Path) -> None:
    shown = blocks(page, "markdown")[0]
    file = tmp_path / "role.md"
    file.write_text(shown)
    role, warnings = read_role(file, "user")
    assert role.part is not None
    assert warnings == ()


@pytest.mark.parametrize("page", ["README.md", "docs/guide/skills.md"])
def test_a_shown_skill_is_offered_to_the_roles_it_names(
    page: str, broken_repository: Path, tmp_path: Path
) -> None:
    folder = broken_repository / ".claude/skills/money"
    (folder / "references").mkdir(parents=True)
    (folder / "references/rounding.md").write_text("Half even.\n")
    (folder / "SKILL.md").write_text(blocks(page, "markdown")[-1])
    ran = bash("agentflow check && agentflow agents show implementer", broken_repository, tmp_path)
    assert ran.returncode == 0, ran.stdout
    assert " 7 skills, " in ran.stdout
    assert "- money (of this repository): How amounts are kept here." in ran.stdout


@pytest.fixture
def shown_hook(tmp_path: Path) -> Path:
    """The README's settings and its hook, in their places below a home."""
    (settings,) = blocks("README.md", "json")
    (script,) = blocks("README.md", "sh")
    (tmp_path / ".claude/hooks").mkdir(parents=True)
    (tmp_path / ".claude/settings.json").write_text(settings)
    hook = tmp_path / ".claude/hooks/no-lock-files.sh"
    hook.write_text(script)
    hook.chmod(0o755)
    return hook


def test_the_shown_rules_and_hook_count(shown_hook: Path, broken_repository: Path, tmp_path: Path) -> None:
    ran = bash("agentflow config --explain", broken_repository, tmp_path)
    assert ran.returncode == 0, ran.stderr
    lines = [line.strip() for line in ran.stdout.splitlines()]
    assert {"deny Bash(git push *)", "ask Edit(migrations/**)"} <= set(lines)
    assert [line for line in lines if line.startswith("PreToolUse") and shown_hook.name in line]


@pytest.mark.parametrize(("path", "code"), [("uv.lock", 2), ("web/yarn.lock", 2), ("lock.py", 0)])
def test_the_shown_hook_guards_lock_files(shown_hook: Path, path: str, code: int) -> None:
    told = encode({"tool_name": "Edit", "tool_input": {"file_path": path, "old_string": "a"}})
    assert subprocess.run([shown_hook], input=told, capture_output=True, check=False).returncode == code


@pytest.mark.parametrize(
    "page",
    sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]),
)
def test_a_link_leads_somewhere(page: str) -> None:
    targets = LINK.findall(BLOCK.sub("", (ROOT / page).read_text()))
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []


def test_each_decision_record_has_a_number_of_its_own() -> None:
    records = sorted((ROOT / "docs/decisions").glob("*.md"))
    numbers = [record.name[:4] for record in records]
    assert len(set(numbers)) == len(numbers)
    assert [record.read_text()[:7] for record in records] == [f"# {number}:" for number in numbers]


def test_the_guide_has_a_row_for_each_hook_event() -> None:
    rows = re.findall(
        r"^\| ([A-Z]\w+(?:, \w+)*) \|", (ROOT / "docs/guide/hooks.md").read_text(), re.MULTILINE
    )
    assert {name for row in rows for name in row.split(", ")} == set(POINTS)
