#!/usr/bin/env python3
"""UserPromptSubmit: asks the model to find out first what a vague task is about. It never blocks.

Silent for markup, while another task is active (younger than 24 hours), for a short follow-up such as
"fix it again", and for a task that names something: a file, a function, a number, a quoted text.
"""

import json
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

VERBS = (
    r"\b(add|build|change|clean|create|fix|implement|improve|make|optimi[sz]e|refactor|remove|rename|rewrite"
    r"|update)\b"
)
PRONOUNS = r"\b(it|that|this|them|those|these|again|same)\b"
CONCRETE = r"[\w-]+\.\w{1,5}\b|/|`|\"|'|\w+\(|\w_\w|[a-z][A-Z]|#?\d+"
NUDGE = (
    "The task names no file, function or example. Before you change anything, find out from the code what it "
    "is about, and say in your result what you assumed."
)


def is_task_active(root: Path) -> bool:
    """Return whether another task is active that began less than a day ago."""
    try:
        head = (root / ".claude/orchestration.local.md").read_text("utf-8").split("\n---", 1)[0]
    except (OSError, UnicodeDecodeError):
        return False
    found = dict(re.findall(r"^(active|task_id|started_at): *['\"]?([^'\"\n]+)", head, re.MULTILINE))
    is_own = "AGENTFLOW_TASK_ID" in os.environ and found.get("task_id") == os.environ["AGENTFLOW_TASK_ID"]
    if found.get("active") != "true" or is_own:
        return False
    try:
        began = datetime.fromisoformat(found.get("started_at", "").replace("Z", "+00:00"))
    except ValueError:
        return False
    return datetime.now(UTC) - began < timedelta(hours=24)


def is_vague(prompt: str) -> bool:
    """Return whether a prompt asks for a change and names nothing concrete."""
    words = prompt.split()
    if not words or prompt.lstrip().startswith("<"):
        return False
    if len(words) <= 4 and re.search(PRONOUNS, prompt, re.IGNORECASE):
        return False
    return bool(re.search(VERBS, prompt, re.IGNORECASE)) and not re.search(CONCRETE, prompt)


def main() -> None:
    try:
        event = json.load(sys.stdin)
        prompt, root = str(event.get("prompt", "")), Path(str(event.get("cwd", ".")))
    except (ValueError, AttributeError):
        return
    if is_vague(prompt) and not is_task_active(root):
        added = {"hookEventName": "UserPromptSubmit", "additionalContext": NUDGE}
        print(json.dumps({"hookSpecificOutput": added}))


main()
