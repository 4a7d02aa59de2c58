"""A tool that nobody has thought of: every rule applies to it by what it does, whatever it is called."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Recorded, Repo

TOOLS = '''
import agentflow
from agentflow import Category, Effect, Output, Subject, Tool


class Page(agentflow.Record):
    page: str


class Target(agentflow.Record):
    target: str
    text: str = "x"


class Line(agentflow.Record):
    line: str


class Link(agentflow.Record):
    link: str


class Public(agentflow.Record):
    file_path: str


def peek(given, context):
    """Show a file."""
    return Output(content=context.workspace.read(given.page).decode())


def look(given, context):
    """Show a file, named as public tools name it."""
    return Output(content=context.workspace.read(given.file_path).decode())


def put(given, context):
    """Replace a file."""
    context.workspace.write(context.workspace.to_relative(given.target), given.text.encode())
    return Output(content="put")


def launch(given, context):
    """Run a command."""
    return Output(content=f"ran {given.line}")


def get(given, context):
    """Read a page of the web."""
    return Output(content=f"got {given.link}")


class Lab:
    def install_tools(self, tools):
        for name, effect, kind, run, subjects in (
            ("Peek", Effect.READ, Page, peek, {"page": Subject.PATH}),
            ("Look", Effect.READ, Public, look, None),
            ("Put", Effect.WRITE, Target, put, {"target": Subject.PATH}),
            ("Launch", Effect.EXECUTE, Line, launch, {"line": Subject.COMMAND}),
            ("Get", Effect.READ, Link, get, {"link": Subject.ADDRESS}),
        ):
            tools.add(Tool(
                name=f"mcp__lab__{name}", category=Category.REPO, effect=effect, input=kind, call=run,
                subjects=subjects, shows_file=name == "Peek", granted=name != "Launch",
            ))
'''
ROLE = """---
name: implementer
description: Use when a failing check must become a change of the code.
model: sonnet
tools: [Read, Edit, "mcp__lab__Launch(ls *)"]
maxTurns: 100
limits: {tool_calls: 100}
metadata: {agentflow-role: implementer}
---
Make the change.
"""
KEY = "sk-ant-" + "a" * 24
SETTINGS = {
    "permissions": {
        "deny": ["Read(secret/**)", "Edit(*.lock)", "Bash(ls secret*)", "WebFetch(domain:example.org)"],
        "ask": ["Edit(asked.txt)"],
        "allow": ["Read(tokens.pem)"],
    },
    "hooks": {
        "PreToolUse": [
            {"hooks": [{"type": "command", "if": "Read(draft/**)", "command": "echo by hook >&2; exit 2"}]}
        ]
    },
}
FILES = {
    **play.CALC,
    "secret/a.txt": "hidden\n",
    "draft/a.txt": "draft\n",
    "notes.txt": f"a note\nkey {KEY}\n",
    "unread.txt": "old\n",
    "server.pem": "-\n",
    "tokens.pem": "names only\n",
}
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a denied file is not read": ("Peek", {"page": "secret/a.txt"}, "Read(secret/**)"),
    "nor by an input of a public name": ("Look", {"file_path": "secret/a.txt"}, "Read(secret/**)"),
    "nor written": ("Put", {"target": "secret/new.txt"}, "Read(secret/**)"),
    "a hook's condition is met": ("Peek", {"page": "draft/a.txt"}, "by hook"),
    "no path leads out": ("Peek", {"page": "../outside.txt"}, "leads out of the repository"),
    "git is not opened": ("Peek", {"page": ".git/config"}, "belongs to git"),
    "a name of a secret is denied": ("Peek", {"page": "server.pem"}, "has the name of a secret"),
    "unless it is allowed": ("Peek", {"page": "tokens.pem"}, "names only"),
    "a key is redacted": ("Peek", {"page": "notes.txt"}, "key [REDACTED]"),
    "a denied file is not written": ("Put", {"target": "uv.lock"}, "Edit(*.lock)"),
    "a file is read before it is written": ("Put", {"target": "unread.txt"}, "Read it first"),
    "a file that was read may be written": ("Put", {"target": "notes.txt"}, "put"),
    "somebody is asked": ("Put", {"target": "asked.txt"}, "denied: "),
    "and about what programs obey": ("Put", {"target": ".vscode/tasks.json"}, "denied: "),
    "a role's pattern holds": ("Launch", {"line": "ls . && touch x"}, "may not run touch x"),
    "and lets through": ("Launch", {"line": "ls draft"}, "ran ls draft"),
    "a denied command is not run": ("Launch", {"line": "ls secret"}, "Bash(ls secret*)"),
    "a command names no secret": ("Launch", {"line": "ls .env"}, "has the name of a secret"),
    "a denied host is not asked": ("Get", {"link": "https://example.org/a"}, "WebFetch(domain:example.org)"),
    "no key is sent": ("Get", {"link": f"https://example.net/?k={KEY}"}, "holds what looks like a key"),
    "another host is": ("Get", {"link": "https://example.net/a"}, "got https://example.net/a"),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each call came to, in one task of the public API."""
    folder = tmp_path_factory.mktemp("lab")
    repo = Repo(folder / "repo", folder / "home").write(FILES).commit()
    repo.give_role("implementer", ROLE)
    (repo.home / ".claude/settings.json").write_text(json.dumps(SETTINGS))
    turns = [
        # a turn of nothing but refused calls is one of three that end a run
        play.turn(
            play.call(f"mcp__lab__{name}", **given), play.call("Read", file_path="calc.py", limit=number)
        )
        for number, (name, given, _) in enumerate(CALLS.values(), 1)
    ]
    changed = ("calc.py", "notes.txt")
    model = repo.scripted(
        [play.role("implementer", *turns, *play.MENDED, play.submit(*changed)), play.verified()]
    )
    request = "agentflow.TaskRequest(consent=agentflow.core.pending.Consent.NO)"
    task = f"agentflow.run_task({play.TEXT!r}, model={model!r}, capabilities=(Lab(),), request={request})"
    code = f"{TOOLS}\nimport agentflow.core.pending\n{task}\n"
    (folder / "program.py").write_text(code)
    subprocess.run(
        [sys.executable, folder / "program.py"], cwd=repo.root, env=repo.environment, check=True, timeout=100
    )
    return _told(repo.runs("implementer")[0])


def _told(run: Recorded) -> dict[str, str]:
    said = [result["content"] for made, result in run.calls if made["name"].startswith("mcp__lab__")]
    return dict(zip(CALLS, said, strict=True))


@pytest.mark.parametrize("case", CALLS)
def test_a_rule_applies_to_a_tool_by_what_it_does(results: dict[str, str], case: str) -> None:
    assert CALLS[case][2] in results[case]


def test_what_is_denied_is_never_shown(results: dict[str, str], tmp_path: Path) -> None:
    assert not any("hidden" in said or KEY in said for said in results.values()), tmp_path
