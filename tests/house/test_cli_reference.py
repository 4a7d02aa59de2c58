"""docs/reference/cli.md is what `--help` says; AGENTFLOW_UPDATE_DOCS=1 rewrites it."""

import os
import subprocess
import sys
from pathlib import Path

from agentflow.cli.commands import COMMANDS as TABLE

_LISTED = ("list", "show")
INSIDE = {
    "agents": (*_LISTED, "new"),
    "commands": ("list",),
    "skills": (*_LISTED, "new", "test"),
    "hooks": ("list", "new", "test"),
    "tools": _LISTED,
    "permissions": ("test",),
    "memory": ("list", "show", "search", "forget", "edit", "export"),
    "mcp": ("list", "test", "serve"),
    "plugins": ("add", "list", "update", "remove"),
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    (),
    ("help", "all"),
    *((name, *([word] if word else [])) for name in TABLE for word in ("", *INSIDE.get(name, ()))),
)
INTRO = "# Command line\n\nWhat `--help` prints. For exit codes see [exit-codes.md](exit-codes.md).\n"


PROBE = """
import sys
from agentflow.cli.commands import run_command
for line in sys.argv[1:]:
    run_command([*line.split(), "--help"] if line != "help all" else ["help", "all"])
    print("\\f")
"""


def _helps() -> list[str]:
    """Return what `--help` prints for each command, all of them asked in one process."""
    env = {"PATH": os.environ["PATH"], "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    words = (sys.executable, "-c", PROBE, *map(" ".join, COMMANDS))
    done = subprocess.run(words, env=env, check=True, capture_output=True, text=True, timeout=60)
    pages = done.stdout.split("\f\n")[:-1]
    return ["\n".join(line.rstrip() for line in page.strip().splitlines()) for page in pages]


def test_the_reference_is_what_help_says(root: Path) -> None:
    parts = [INTRO]
    for words, said in zip(COMMANDS, _helps(), strict=True):
        title = " ".join(("agentflow", *words))
        parts.append(f"## {title}\n\n```text\n{said}\n```\n")
    page = root / "docs/reference/cli.md"
    if os.environ.get("AGENTFLOW_UPDATE_DOCS"):
        page.write_text("\n".join(parts), "utf-8")
    assert page.read_text("utf-8") == "\n".join(parts)


def test_the_help_of_a_command_begins_with_its_row_of_the_table_and_ends_with_an_example() -> None:
    for words, said in zip(COMMANDS[2:], _helps()[2:], strict=True):
        prose = " ".join(said.split())
        assert prose.count("Example: agentflow ") == 1, words
        if len(words) == 1:
            assert f" {TABLE[words[0]].summary}" in prose, words


def test_an_example_of_the_table_is_of_its_command() -> None:
    assert [name for name, row in TABLE.items() if row.example.split()[1] != name] == []
