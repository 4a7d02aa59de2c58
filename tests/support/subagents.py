"""Roles that give work to sub-agents, and what is played of them."""

import json
from typing import Any

from tests.support.repo import (
    MENDED,
    Repo,
    call,
    plan,
    role,
    submit,
    turn,
    verified,
)

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
    plan("calc.py"),
    role("implementer", *MENDED, submit()),
    verified("ev-0002"),
)
FOUND = [{"claim": "here", "path": "calc.py", "line": 2}]
SUBMIT = turn(call("SubmitFindings", summary="found", findings=FOUND, open_questions=[]))
USED = {"input": 100, "output": 10}


def delegate(prompt: str = "where is add?", **more: Any) -> dict[str, Any]:
    return call("Agent", subagent_type="scout", description="find add", prompt=prompt, **more)


def scout(*turns: dict[str, Any], **match: Any) -> dict[str, Any]:
    return role(
        "scout", *(turns or (turn(call("Read", file_path="calc.py")), turn(text="calc.py:2"))), **match
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
