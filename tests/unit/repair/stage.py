"""A small task loop around the policy: it answers Read and Edit on real files and writes evidence."""

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio

from agentflow.core.evidence import By, CheckName, Evidence, Side, TestCounts
from agentflow.core.messages import Message, Reply, Speaker, ToolCall, ToolResult, ToolSpec
from agentflow.core.record import encode
from agentflow.repair.policy import Repair
from agentflow.workspace.git import open_repository
from tests.support.first_commit import make_repository
from tests.support.records import a_request, user

TASK_ID = "20240101T000000Z-abcd"
UNITTEST = f"{sys.executable} -m unittest discover -v -s tests"
PYTEST = (
    f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider -p no:randomly -rA"
)
_UNITTEST_LINE = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n.*)?? \.\.\. (ok|FAIL|ERROR|skipped)", re.MULTILINE)
_PYTEST_LINE = re.compile(r"^(PASSED|FAILED|ERROR) ([^\s(]+\.py\S*)", re.MULTILINE)
_OUTCOMES = {"ok": "passed", "FAIL": "failed", "ERROR": "error", "PASSED": "passed", "FAILED": "failed"}
SUBMITS = {
    "explorer": "SubmitFindings",
    "planner": "SubmitPlan",
    "implementer": "SubmitChange",
    "reviewer": "SubmitReview",
    "verifier": "SubmitVerdict",
}


class Stage:
    """A repository on disk, the evidence of its checks, and runs of roles in it."""

    def __init__(self, root: Path, files: Mapping[str, str], command: str) -> None:
        self.root = root
        self.command = command
        self.brief = "# Task\nmake the failing tests pass\n"
        self.replies: list[Reply] = []
        self.runs = 0
        self.shown = 0
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8", newline="")
        make_repository(root)
        self.start = self.texts()
        self.tree = ""

    def texts(self) -> dict[str, str]:
        """Return every file that is neither git's nor ours."""
        return {
            str(path.relative_to(self.root)): path.read_bytes().decode()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not {".git", ".claude", ".venv", "__pycache__"} & set(path.parts)
        }

    def changed(self) -> dict[str, tuple[list[str], list[str]]]:
        """Return the lines removed and added in each file that differs from the start."""
        found = {}
        for name, text in self.texts().items():
            lines = list(difflib.ndiff(self.start.get(name, "").splitlines(), text.splitlines()))
            if any(line[:1] in "+-" for line in lines):
                old = [line[2:].strip() for line in lines if line.startswith("- ")]
                found[name] = (old, [line[2:].strip() for line in lines if line.startswith("+ ")])
        return found

    def check(self) -> tuple[str, bool]:
        """Run the tests, keep evidence, and return the lines of a brief and whether they are green."""
        self.shown += 1
        name = f"ev-{self.shown:04}"
        ran = subprocess.run(
            ["bash", "-c", self.command], cwd=self.root, check=False, text=True, capture_output=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        output = ran.stdout + ran.stderr
        ids = _ids(output)
        self.keep(name, ran.returncode)
        place = self.root / self.place(name)
        place.write_text(output)
        place.with_suffix(".ids").write_text("".join(f"{outcome} {test}\n" for test, outcome in ids.items()))
        color = "green" if ran.returncode == 0 else "red"
        tail = "\n".join(output.splitlines()[-20:])
        lines = f"- tests: {color}, exit {ran.returncode}, evidence {name}, output in {self.place(name)}\n"
        return f"{lines}````\n{tail}\n````\n", ran.returncode == 0

    def place(self, name: str) -> str:
        """Return where the output of a check lies, below the root."""
        return f".claude/agentflow/{TASK_ID}/evidence/{name}.out"

    def keep(self, name: str, code: int) -> None:
        """Write the record of a check."""
        path = (self.root / self.place(name)).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(self.evidence(name, code)))

    def open(self) -> None:
        self.tree = open_repository(self.root).write_tree()
        self.brief += f"\n## Checks before the task\n{self.check()[0]}"

    def play(self, role: str, model: Repair, more: str = "") -> ToolCall:
        """Run a role to its submission."""
        self.runs += 1
        messages = [user(self.brief + more)]
        spec = ToolSpec(name=SUBMITS[role], description="", input_schema={})
        seen: set[str] = set()
        for _ in range(6):
            request = a_request(*messages, role=role, run=self.runs, tools=(spec,))
            reply = anyio.run(model.complete, request)
            self.replies.append(reply)
            calls = tuple(part for part in reply.parts if isinstance(part, ToolCall))
            if calls[-1].name == SUBMITS[role]:
                return calls[-1]
            messages.append(Message(speaker=Speaker.ASSISTANT, parts=reply.parts))
            results = tuple(self.answer(call, seen) for call in calls)
            messages.append(Message(speaker=Speaker.USER, parts=results))
        raise AssertionError("no submission after six turns")

    def answer(self, call: ToolCall, seen: set[str]) -> ToolResult:
        """Do what the real tools do: Edit wants the file read and the old text once in it."""
        path = self.root / call.input["file_path"]
        text = path.read_bytes().decode()
        if call.name == "Read":
            seen.add(str(path))
            return ToolResult(call_id=call.id, content=text)
        assert call.name == "Edit"
        assert str(path) in seen
        assert text.count(call.input["old_string"]) == 1
        assert not call.input["replace_all"]
        path.write_bytes(text.replace(call.input["old_string"], call.input["new_string"]).encode())
        return ToolResult(call_id=call.id, content="edited")

    def mend(self, model: Repair, iterations: int = 3) -> list[str]:
        """Play the whole task and return the summary of each attempt; the last one passed."""
        self.open()
        self.play("explorer", model)
        self.play("planner", model)
        summaries, more = [], ""
        for iteration in range(1, iterations + 1):
            summaries.append(self.play("implementer", model, more).input["summary"])
            lines, is_green = self.check()
            if is_green:
                return summaries
            more += f"\n## Iteration {iteration} failed\n- the tests are red\n{lines}"
        raise AssertionError(f"not mended: {summaries}")

    def evidence(self, name: str, code: int) -> Evidence:
        return Evidence(
            id=name, task_id=TASK_ID, iteration=0, role=None, by=By.PROGRAM, check=CheckName.TESTS,
            command=self.command, cwd=".", exit_code=code, timed_out=False,
            started_at="2024-01-01T00:00:00Z", seconds=0.1, stdout_sha256="", bytes=0,
            tree_before=self.tree, tree_after=self.tree, surface=Side.FINAL, code=Side.FINAL,
            sandbox="none", tests=TestCounts(ids_file=f"evidence/{name}.ids"),
        )  # fmt: skip


def _ids(output: str) -> dict[str, str]:
    found = {}
    for name, place, word in _UNITTEST_LINE.findall(output):
        test = place if place.endswith(f".{name}") else f"{place}.{name}"
        found[test] = _OUTCOMES.get(word, "skipped")
    for word, test in _PYTEST_LINE.findall(output):
        found[test] = _OUTCOMES[word] if word != "ERROR" else "error"
    return found


def told(reply: Reply) -> str:
    """Return a reply as text, so that two can be compared."""
    return json.dumps(json.loads(encode(reply)), sort_keys=True)
