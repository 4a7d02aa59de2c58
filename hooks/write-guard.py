#!/usr/bin/env python3
"""PreToolUse: keeps writes inside the repository and away from files that hold secrets.

It looks at the real path, at `..` as a whole part of a path, at names whatever their case, and at the
redirections of a shell command. One glob a line in .claude/write-guard-allow lets a name pass, such as
tests/test_secret_manager.py.
"""

import json
import os
import re
import shlex
import sys
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

SECRET = re.compile(
    r"^\.env|credential|secret|password|token|\.(pem|key|p12|pfx)$|^id_(rsa|ed25519)", re.IGNORECASE
)
DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")


def find_targets(event: dict) -> list[str]:
    """Return the paths that a call writes."""
    given = event.get("tool_input") or {}
    if event.get("tool_name") != "Bash":
        return [str(given[key]) for key in ("file_path", "notebook_path") if key in given]
    lexer = shlex.shlex(str(given.get("command", "")), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words = list(lexer)
    return [after for word, after in pairwise(words) if word in (">", ">>", ">|", "&>", "&>>")]


def explain_refusal(target: str, root: Path, allowed: list[str]) -> str | None:
    """Return why a path may not be written, or None."""
    if target in DEVICES:
        return None
    if ".." in Path(target).parts:
        return f"{target} goes up by `..`: name the file from the repository's root"
    real = Path(os.path.realpath(root / target))
    if not real.is_relative_to(root):
        return f"{target} lies outside the repository"
    name = real.relative_to(root).as_posix()
    if any(fnmatch(name, glob) for glob in allowed):
        return None
    if any(SECRET.search(part) for part in Path(name).parts):
        return f"{name} is named like a file of secrets; a glob in .claude/write-guard-allow lets it pass"
    return None


def main() -> int:
    event = json.load(sys.stdin)
    root = Path(os.path.realpath(event["cwd"]))
    try:
        lines = (root / ".claude/write-guard-allow").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    allowed = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    try:
        targets = find_targets(event)
    except ValueError:  # a command that cannot be taken apart, such as one with an open quote
        return 0
    reasons = [why for target in targets if (why := explain_refusal(target, root, allowed))]
    print("\n".join(reasons), file=sys.stderr)
    return 2 if reasons else 0


sys.exit(main())
