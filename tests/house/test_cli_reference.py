"""docs/reference/cli.md is what `--help` says; AGENTFLOW_UPDATE_DOCS=1 rewrites it."""

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = (
    (),
    ("task",),
    ("ask",),
    ("demo",),
    ("explore",),
    ("resume",),
    ("answer",),
    ("approve",),
    ("deny",),
    ("cancel",),
    ("undo",),
    ("verify",),
    ("replay",),
    ("tasks",),
    ("status",),
    ("log",),
    ("evidence",),
    ("route",),
    ("init",),
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


PROBE = """
import sys
from agentflow.cli.outcome import run
for line in sys.argv[1:]:
    run([*line.split(), "--help"])
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
