"""Roles that give work to sub-agents, and what is played of them."""

import json
from typing import Any

from tests.support import play
from tests.support.repo import Repo

SCOUT = """---
name: scout
description: Use when a thing must be found.
tools: [Read, Grep, Glob, Bash]
---
You find one thing and say where it is.
"""
FIXER = """---
name: fixer
description: Use when a sign is wrong.
tools: [Read, Edit]
maxTurns: 9
---
You mend signs.
"""
EXPLORER = """---
name: lead
description: Use to explore.
model: opus
tools: {tools}
metadata: {metadata}
---
You explore.
"""
PLAYS = {"agentflow-role": "explorer"}
REST = (
    play.plan("calc.py"),
    play.role("implementer", *play.MENDED, play.submit()),
    play.verified("ev-0002"),
)
FOUND = [{"claim": "here", "path": "calc.py", "line": 2}]
SUBMIT = play.turn(play.call("SubmitFindings", summary="found", findings=FOUND, open_questions=[]))
USED = {"input": 100, "output": 10}


def delegate(prompt: str = "where is add?", **more: Any) -> dict[str, Any]:
    return play.call("Agent", subagent_type="scout", description="find add", prompt=prompt, **more)


def scout(*turns: dict[str, Any], **match: Any) -> dict[str, Any]:
    return play.role(
        "scout",
        *(turns or (play.turn(play.call("Read", file_path="calc.py")), play.turn(text="calc.py:2"))),
        **match,
    )


def lead(repo: Repo, *tools: str, **metadata: str) -> None:
    text = EXPLORER.replace("{tools}", json.dumps(tools)).replace(
        "{metadata}", json.dumps({**PLAYS, **metadata})
    )
    repo.give_role("lead", text)


def with_subagents(repo: Repo) -> Repo:
    """Give the user of a repository two roles that others can give work to."""
    repo.give_role("scout", SCOUT)
    repo.give_role("fixer", FIXER)
    return repo
