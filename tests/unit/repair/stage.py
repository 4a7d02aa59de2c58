"""A small task around the engine: it makes the edits on real files, and runs the checks."""

import difflib
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import By, Check, CheckName, CheckRun, Evidence, Side, TestCounts, TestOutcome
from agentflow.core.role import FirstTry
from agentflow.repair.engine import Attempt, RepairSearch, work_in_thread
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.git import open_repository
from tests.support.first_commit import make_repository

UNITTEST = f"{sys.executable} -m unittest discover -v -s tests"
PYTEST = (
    f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider -p no:randomly -rA"
)
_UNITTEST_LINE = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n.*)?? \.\.\. (ok|FAIL|ERROR|skipped)", re.MULTILINE)
_PYTEST_LINE = re.compile(r"^(PASSED|FAILED|ERROR) ([^\s(]+\.py\S*)", re.MULTILINE)
_OUTCOMES = {
    "ok": TestOutcome.PASSED,
    "PASSED": TestOutcome.PASSED,
    "FAIL": TestOutcome.FAILED,
    "FAILED": TestOutcome.FAILED,
    "ERROR": TestOutcome.ERROR,
}


class Stage:
    """A repository on disk, the checks that ran in it, and the engine's work on it."""

    def __init__(self, root: Path, files: Mapping[str, str], command: str) -> None:
        self.root = root
        self.command = command
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8", newline="")
        make_repository(root)
        self.start = self.texts()
        self.before: tuple[CheckRun, ...] = ()
        self.attempts: tuple[Attempt, ...] = ()

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

    def check(self) -> CheckRun:
        """Run the tests, and return what they showed."""
        ran = subprocess.run(
            ["bash", "-c", self.command], cwd=self.root, check=False, text=True, capture_output=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        tree = open_repository(self.root).write_tree()
        return CheckRun(
            check=Check(name=CheckName.TESTS, command=self.command, timeout=100, reason=""),
            evidence=make_evidence(self.command, ran.returncode, tree),
            outcomes=_read_outcomes(ran.stdout + ran.stderr),
        )

    def search(self, sandbox: Sandbox) -> RepairSearch:
        """Return the search for a repair of what failed at first, after the attempts so far."""
        self.before = self.before or (self.check(),)
        return RepairSearch(
            sandbox=sandbox, checks=self.before, blocked={}, observe=lambda _: None, attempts=self.attempts
        )

    def repair(self, sandbox: Sandbox) -> FirstTry:
        """Let the engine search once, and make the edits."""
        found = anyio.run(work_in_thread, self.search(sandbox).mend)
        for edit in found.edits:
            path = self.root / edit.file_path
            text = path.read_bytes().decode()
            assert text.count(edit.old_string) == 1
            assert not edit.replace_all
            path.write_bytes(text.replace(edit.old_string, edit.new_string).encode())
        return found

    def mend(self, sandbox: Sandbox, iterations: int = 3) -> list[str]:
        """Repair until the tests pass, and return what is said of each attempt."""
        accounts = []
        for _ in range(iterations):
            found = self.repair(sandbox)
            if not found.files:
                raise ModelRejected(found.account)
            accounts.append(found.account)
            after = self.check()
            if after.green:
                return accounts
            tree = open_repository(self.root).write_tree()
            self.attempts += (Attempt(tree=tree, account=found.account, checks=(after,)),)
        raise AssertionError(f"not mended: {accounts}")


def make_evidence(command: str, code: int, tree: str = "") -> Evidence:
    return Evidence(
        id="ev-0001", task_id="20240101T000000Z-abcd", iteration=0, role=None, by=By.PROGRAM,
        check=CheckName.TESTS, command=command, cwd=".", exit_code=code, timed_out=False,
        started_at="2024-01-01T00:00:00Z", seconds=0.1, stdout_sha256="", bytes=0,
        tree_before=tree, tree_after=tree, surface=Side.FINAL, code=Side.FINAL,
        sandbox="none", tests=TestCounts(),
    )  # fmt: skip


def _read_outcomes(output: str) -> dict[str, TestOutcome]:
    found = {}
    for name, place, word in _UNITTEST_LINE.findall(output):
        test = place if place.endswith(f".{name}") else f"{place}.{name}"
        found[test] = _OUTCOMES.get(word, TestOutcome.SKIPPED)
    for word, test in _PYTEST_LINE.findall(output):
        found[test] = _OUTCOMES[word]
    return found
