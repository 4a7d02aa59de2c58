"""Which files say how to work in a repository, and for which files each of them counts."""

from pathlib import Path

import pytest

from agentflow.library.instructions import MAX_IN_PROMPT, load_instructions, select_instructions
from agentflow.workspace.path_guard import PathGuard


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "repository"


def told(root: Path, files: dict[str, str], *touched: str) -> dict[str, str]:
    """Return path and text of what counts where some files are touched."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    found = load_instructions(PathGuard(root), files)
    return {each.path: each.text for each in select_instructions(found, touched)}


def test_the_root_comes_first_and_the_nearest_folder_last(root: Path) -> None:
    files = {
        "src/api/AGENTS.md": "api",
        "src/CLAUDE.md": "src",
        "docs/CLAUDE.md": "docs",
        "AGENTS.md": "agents",
        "CLAUDE.md": "root",
        "CLAUDE.local.md": "mine",
        ".claude/rules/style.md": "style",
    }
    everywhere = ["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".claude/rules/style.md"]
    assert list(told(root, files)) == everywhere
    assert list(told(root, files, "src/api/a.py")) == [*everywhere, "src/CLAUDE.md", "src/api/AGENTS.md"]
    assert list(told(root, files, "docs/a.md", "srcs/b.py")) == [*everywhere, "docs/CLAUDE.md"]


def test_imports_are_followed_four_times_and_each_file_stands_once(root: Path) -> None:
    files = {"CLAUDE.md": "@AGENTS.md, and @docs/1.md.", "AGENTS.md": "@CLAUDE.md"}
    files |= {f"docs/{number}.md": f"{number} @{number + 1}.md" for number in range(1, 7)}
    found = ["CLAUDE.md", "AGENTS.md", *(f"docs/{number}.md" for number in range(1, 5))]
    assert list(told(root, files)) == found


@pytest.mark.parametrize(
    "text",
    ["`@other.md`", "```\n@other.md\n```", "~~~\n@other.md", "me@other.md", "@gone.md", "<!-- @other.md -->"],
)
def test_what_is_no_import_is_not_read(root: Path, text: str) -> None:
    assert list(told(root, {"CLAUDE.md": f"so\n{text}\n", "other.md": "other"})) == ["CLAUDE.md"]


@pytest.mark.parametrize("path", ["../outside.md", ".env", ".git/config", "binary.dat"])
def test_an_import_leads_to_nothing_that_no_tool_opens(root: Path, path: str) -> None:
    root.mkdir()
    (root.parent / "outside.md").write_text("outside")
    (root / "binary.dat").write_bytes(b"a\0b")
    files = {"CLAUDE.md": f"@{path}", ".env": "KEY=1", ".git/config": "x"}
    assert list(told(root, files)) == ["CLAUDE.md"]


def test_links_are_read_once_and_none_leads_out(root: Path) -> None:
    root.mkdir()
    (root.parent / "outside.md").write_text("outside")
    (root.parent / "rules").mkdir()
    (root.parent / "rules/x.md").write_text("outside")
    (root / "CLAUDE.local.md").symlink_to("../outside.md")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    (root / ".claude").mkdir()
    (root / ".claude/rules").symlink_to("../../rules")
    assert told(root, {"CLAUDE.md": "root"}) == {"CLAUDE.md": "root"}


def test_comments_are_left_out_but_in_code(root: Path) -> None:
    text = "one\n<!-- two\nthree -->\nfour `<!-- five -->`\n```\n<!-- six -->\n```\n"
    kept = "one\nfour `<!-- five -->`\n```\n<!-- six -->\n```"
    assert told(root, {"CLAUDE.md": text}) == {"CLAUDE.md": kept}


def test_a_rule_for_some_files_counts_for_these(root: Path) -> None:
    rules = {
        ".claude/rules/a.md": "---\npaths: src/**/*.py, *.toml\n---\na",
        ".claude/rules/b.md": "---\npaths: [docs/**]\n---\nb",
        ".claude/rules/c/d.md": "---\nnot closed",
    }
    assert list(told(root, rules)) == [".claude/rules/c/d.md"]
    assert told(root, rules, "src/x/y.py") == {
        ".claude/rules/a.md": "a",
        ".claude/rules/c/d.md": "---\nnot closed",
    }
    assert ".claude/rules/b.md" in told(root, rules, "docs/x.md")


def test_a_long_file_is_cut_and_its_size_is_known(root: Path) -> None:
    told(root, {"CLAUDE.md": "x" * (MAX_IN_PROMPT + 5)})
    (only,) = load_instructions(PathGuard(root), ())
    assert (len(only.text), only.size) == (MAX_IN_PROMPT, MAX_IN_PROMPT + 5)
