"""Secrets are planted wherever text comes in, and looked for wherever it goes out."""

import json
from pathlib import Path

import pytest

from agentflow.redact import MARK
from tests.support import play
from tests.support.crew import honest, role_of
from tests.support.messages_server import Answer, Asked, Plays, serving, text, use
from tests.support.repo import Repo

BODY = "MIIEpAIBAAKCAQEA" + "q7Zx" * 12
CANARIES = {
    "aws": "AKIA" + "Q3EGR7CANARY2XYZ",
    "aws key": "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYcanaryKEY1",
    "anthropic": "sk-ant-" + "api03-canary_" + "a1B2" * 8,
    "openai": "sk-" + "canary0" + "aB3d" * 10,
    "openai project": "sk-proj-" + "canary_" + "aB3-" * 10,
    "github": "ghp_" + "canary" + "A1b2" * 8,
    "github fine": "github_pat_" + "canary_" + "A1b2" * 8,
    "slack": "xoxb-" + "123456789012-canary" + "aBcD" * 4,
    "pem": f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----",
}
KEY = "my.own+endpoint=key/0123456789"
VALUES = (*(value.rpartition(" = ")[2] for name, value in CANARIES.items() if name != "pem"), BODY, KEY)
ALL = "\n".join((*CANARIES.values(), KEY))
HOOK = 'cat >> "$CLAUDE_PROJECT_DIR/../hook.txt"; env >> "$CLAUDE_PROJECT_DIR/../hook.txt"; echo {}'


def leaky(asked: Asked) -> Answer:
    """Play the honest crew, whose implementer handles secrets in each way there is before its work."""
    if role_of(asked) != "implementer":
        return honest(asked)
    if asked.turn > 6:
        return Plays((use("SubmitChange", {"summary": "add adds", "files": ["calc.py", "made.txt"]}, "t8"),))
    if asked.turn > 4:
        return honest(asked._replace(raw=later(asked)))
    calls = (
        use("Bash", {"command": f"cat <<'X'\n{ALL}\nX\ncat leak.txt; env; false"}, "t1"),
        use("Read", {"file_path": "leak.txt"}, "t2"),
        use("Write", {"file_path": "made.txt", "content": ALL}, "t3"),
        use("Grep", {"pattern": ".", "output_mode": "content", "path": "leak.txt"}, "t4"),
        use("Read", {"file_path": ALL.replace("\n", " ")[:3000]}, "t5"),
    )
    return Plays((text(f"I found {ALL}"), calls[asked.turn]))


def later(asked: Asked) -> bytes:
    """Return the request as if the five leaky turns had not been."""
    body = json.loads(asked.raw)
    body["messages"] = body["messages"][:1] + body["messages"][11:]
    return json.dumps(body).encode()


def leaking_tests() -> str:
    return play.CALC["tests/test_calc.py"] + f"\n\nprint({ALL!r})\n"


@pytest.mark.parametrize("stream", [False, True])
def test_no_secret_gets_anywhere(tmp_path: Path, stream: bool) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "home")
    repo.write({**play.CALC, "tests/test_calc.py": leaking_tests(), "leak.txt": f"{ALL}\n"}).commit()
    points = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
    hooks = {point: [{"hooks": [{"type": "command", "command": HOOK}]}] for point in points}
    repo.write({"../home/.claude/settings.json": json.dumps({"hooks": hooks})})
    repo.write({"../home/.config/agentflow/config.yaml": "repair_seconds: 0\n"})
    with serving(policy=leaky) as server:
        env = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": KEY}
        words = ("--stream",) if stream else ()
        done = repo.task(f"make the failing tests pass; my keys are {ALL}", *words, env=env)
        shown = [
            repo.run(*one.split(), env=env)
            for one in ("status", "log", "log --json", "evidence", "evidence ev-0001")
        ]
        assert done.code == 1, done.err
        assert "the change adds what looks like a secret: made.txt:1" in done.err
        sent = {f"request {number}": one.raw.decode() for number, one in enumerate(server.asked)}
    kept = {
        str(path): path.read_bytes().decode("utf-8", "replace")
        for path in (repo.root / ".claude").rglob("*")
        if path.is_file()
    }
    printed = {
        "task": done.out + done.err,
        **{str(place): one.out + one.err for place, one in enumerate(shown)},
    }
    hooked = {"hook": (tmp_path / "hook.txt").read_text()}
    places = {**sent, **kept, **printed, **hooked}
    assert len(sent) > 8
    assert len(kept) > 10
    found = [(value, place) for value in VALUES for place, said in places.items() if value in said]
    assert found == []
    assert MARK in kept[str(repo.folder / "task.md")]
    assert MARK in hooked["hook"]
    assert MARK in sent["request 0"]
    assert repo.read("made.txt") == ALL
    bodies = [record["bytes"] for record in repo.evidence() if record["by"] == "agent"]
    assert bodies[0] > 2 * len(ALL)
