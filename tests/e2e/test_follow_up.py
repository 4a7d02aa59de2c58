"""A follow-up goes on in the conversation of the task before it, and is judged with it."""

import json
from typing import Any

from tests.support import play
from tests.support.crew import honest, role_of, verdict
from tests.support.live import live, meaning
from tests.support.messages_server import Answer, Asked, Plays, serving, text, use
from tests.support.repo import NewRepo

ADDED = 'def half(a):\n    """Return half."""\n    return a / 2\n'
TEST = (
    "import unittest\n\nfrom half import half\n\n\nclass HalfTest(unittest.TestCase):\n"
    "    def test_half(self):\n        self.assertEqual(half(3), 1.5)\n"
)


def policy(asked: Asked) -> Answer:
    """Mend add; add half in one turn; answer the question from what was read before."""
    said = json.dumps(asked.body["messages"])
    if role_of(asked) == "explorer" and "# Follow-up" in said:
        found = [{"claim": "it adds", "path": "calc.py", "line": 2}]
        return _play("SubmitFindings", summary="it was a - b", findings=found, open_questions=[])
    if role_of(asked) == "implementer" and "add half" in said:
        files = {"half.py": ADDED, "tests/test_half.py": TEST}
        written = (
            use("Write", {"file_path": path, "content": content}, f"toolu_{number}")
            for number, (path, content) in enumerate(files.items())
        )
        return Plays((*written, use("SubmitChange", {"summary": "half", "files": [*files]}, "toolu_half")))
    return _play(verdict(asked)[0], **verdict(asked)[1]) if role_of(asked) == "verifier" else honest(asked)


def _play(name: str, **given: Any) -> Plays:
    return Plays((text("Now."), use(name, given, f"toolu_{name}")))


def test_a_follow_up_goes_on_in_the_conversation_and_names_only_what_is_new(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    with serving(policy=policy) as server:
        first = live(repo, server, "fix add in calc.py", "--json").json
        repo.write({"docs/notes.md": "By hand.\n"})
        begin = len(server.asked)
        done = live(repo, server, "now add half, with a test", "--json", "--follows", first["task_id"])
        after = server.asked[begin:]
        asked = live(repo, server, "what did add do before?", "--json", "--follows", done.json["task_id"])
        questions = server.asked[begin + len(after) :]
    assert (done.code, asked.code) == (0, 0), done.json["why"]
    assert [role_of(each) for each in after] == ["implementer", "verifier"]
    assert [role_of(each) for each in questions] == ["explorer"]
    before = [meaning(message) for message in server.asked[begin - 1].body["messages"]]
    messages = [meaning(message) for message in after[0].body["messages"]]
    assert messages[: len(before)] == before
    last = json.dumps(messages[len(before) :])
    assert "# Follow-up" in last
    assert "now add half" in last
    assert "changed by somebody else, so Read them again: docs/notes.md" in last
    assert "Checks before the task" not in last
    ids = [
        block["id"]
        for message in questions[0].body["messages"]
        for block in message["content"]
        if block["type"] == "tool_use"
    ]
    assert len(ids) == len({*ids}) == 6
    assert done.json["files_changed"] == ["calc.py", "docs/notes.md", "half.py", "tests/test_half.py"]
    assert [gate["status"] for gate in done.json["gates"].values()].count("failed") == 0
    assert repo.run("replay", done.json["task_id"]).code == 0
    assert repo.run("verify", done.json["task_id"]).code == 0
