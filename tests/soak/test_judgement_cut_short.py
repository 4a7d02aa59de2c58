"""A judgement that is cut short leaves a person's files alone and nothing behind, and is made again."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.attempts import Attempt, files_of
from tests.support.repo import COMMAND, eventually
from tests.support.tampering import BASE, RIGHT, TAMPERING, TASK, TESTS

SLOW = TESTS + "\n\ndef test_slow():\n    import time\n\n    time.sleep(0 if pages(417, 10) == 41 else 4)\n"
WAITS = """import time

import pager.core


def test_first():
    time.sleep(0 if hasattr(pager.core, "first") else 4)
    assert pager.core.first() == 1
"""

GIT = {
    *("HEAD", "COMMIT_EDITMSG", "config", "description", "index"),
    *("hooks", "info", "logs", "objects", "refs", "branches", "agentflow"),
}
"""What is in git's folder, and ours beside it."""


@dataclass(frozen=True)
class Moment:
    """A task whose judgement takes seconds on one side: whose checks on whose code."""

    surface: str
    code: str
    base: Mapping[str, str]
    files: Mapping[str, str]
    task: str = TASK


MOMENTS = {
    "the change under its own checks": Moment(
        "final", "final", {**BASE, "tests/test_core.py": SLOW}, {"pager/core.py": RIGHT}
    ),
    "the change under the checks from before": Moment(
        "base",
        "final",
        {**BASE, "tests/test_core.py": SLOW},
        {"pager/core.py": RIGHT, "tests/test_core.py": f"# slow\n{SLOW}"},
    ),
    "new tests on the code from before": Moment(
        "final",
        "base",
        {**BASE, "pager/core.py": RIGHT},
        {"pager/core.py": f"{RIGHT}\n\ndef first():\n    return 1\n", "tests/test_first.py": WAITS},
        "add first() to pager/core.py",
    ),
}


class Place:
    """A repository, with a folder of its own for whatever is temporary."""

    def __init__(self, folder: Path, base: Mapping[str, str]) -> None:
        self.attempt = Attempt(folder, base)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.environment = {**self.attempt.repo.environment, "TMPDIR": str(self.temporary)}

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        root = self.attempt.repo.root
        return subprocess.Popen(
            [str(COMMAND), *words],
            cwd=root,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def is_running(self, moment: Moment) -> bool:
        """Return whether the checks of one side have begun."""
        begun = self.attempt.repo.events("CheckStarted")
        sides = {(event["surface"], event["code"]) for event in begun}
        return (moment.surface, moment.code) in sides and any(self.temporary.glob("agentflow-scratch-*"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_judgement_cut_short_is_made_again(moment: Moment, number: signal.Signals, tmp_path: Path) -> None:
    place = Place(tmp_path, moment.base)
    repo = place.attempt.repo
    repo.write({"untracked.txt": "mine", "notes.local.py": "ignored"})
    now = files_of(repo.root) | {name: text.encode() for name, text in moment.files.items()}
    model = repo.scripted(place.attempt.script(moment.files))

    with place.start("task", moment.task, "--model", model) as running:
        eventually(lambda: place.is_running(moment), 60)
        os.kill(running.pid, number)
        ended = running.wait(60)

    assert ended == (-number if number is signal.SIGKILL else 130)
    assert files_of(repo.root) == now
    assert str(place.temporary) not in Path("/proc/mounts").read_text("utf-8")
    with place.start("resume") as again:
        assert again.wait(90) == 0
    assert files_of(repo.root) == now
    assert list(place.temporary.iterdir()) == []
    assert not {path.name for path in (repo.root / ".git").iterdir()} - GIT


PATCHED = next(each.files for each in TAMPERING if each.name == "reports of the runner patched")
TOLD = ("StateChanged", "probes")
"""The event, and its key, by which it is saved what the runs showed that have to fail."""


@pytest.mark.parametrize("is_heard", [True, False], ids=["after", "before"])
@pytest.mark.parametrize(
    ("files", "status"), [({"pager/core.py": RIGHT}, "verified"), (PATCHED, "limit")], ids=["fair", "patched"]
)
def test_no_kill_gets_round_the_test_that_has_to_fail(
    files: Mapping[str, str | None], status: str, is_heard: bool, tmp_path: Path
) -> None:
    attempt = Attempt(tmp_path, BASE)
    repo, script = attempt.repo, attempt.script(files)
    model = repo.scripted([{**entry, "delay": 60} if entry is script[-1] else entry for entry in script])
    with repo.start("task", TASK, "--max-iterations", "1", "--model", model) as running:
        eventually(lambda: any(is_told(event) for event in repo.events()), 60)
        running.kill()
    if not is_heard:
        log = repo.folder / "events.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        told = next(place for place, event in enumerate(repo.events()) if is_told(event))
        log.write_bytes(b"".join(lines[:told]))
    assert (repo.state()["probes"] is not None) is is_heard
    repo.scripted(script)
    assert repo.run("resume").code == (0 if status == "verified" else 3)
    assert repo.state()["status"] == status
    ends = {each["end"] for each in repo.state()["probes"] if each["kind"] == "canary"}
    assert ("stayed green" in ends) is (status != "verified")


def is_told(event: dict[str, Any]) -> bool:
    name, key = TOLD
    return event["type"] == name and event["changed"].get(key) is not None
