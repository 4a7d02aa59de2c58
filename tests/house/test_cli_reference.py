"""docs/reference/cli.md is what `--help` says; AGENTFLOW_UPDATE_DOCS=1 rewrites it."""

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    (),
    ("task",),
    ("demo",),
    ("explore",),
    ("resume",),
    ("answer",),
    ("approve",),
    ("deny",),
    ("cancel",),
    ("verify",),
    ("replay",),
    ("status",),
    ("log",),
    ("evidence",),
    ("route",),
    ("check",),
    ("config",),
    ("agents",),
    ("agents", "list"),
    ("agents", "show"),
    ("skills",),
    ("skills", "list"),
    ("skills", "show"),
    ("tools",),
    ("tools", "list"),
    ("tools", "show"),
)
INTRO = "# Command line\n\nWhat `--help` prints. For exit codes see [exit-codes.md](exit-codes.md).\n"


def _help(words: tuple[str, ...]) -> str:
    command = Path(sys.executable).with_name("agentflow")
    env = {"PATH": os.environ["PATH"], "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [str(command), *words, "--help"], env=env, check=True, capture_output=True, text=True, timeout=60
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def test_the_reference_is_what_help_says(root: Path) -> None:
    parts = [INTRO]
    for words in COMMANDS:
        title = " ".join(("agentflow", *words))
        parts.append(f"## {title}\n\n```text\n{_help(words)}\n```\n")
    page = root / "docs/reference/cli.md"
    if os.environ.get("AGENTFLOW_UPDATE_DOCS"):
        page.write_text("\n".join(parts), "utf-8")
    assert page.read_text("utf-8") == "\n".join(parts)
