"""The boundary of a user who is not root, where the suite itself is run by root."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.attacks import ALTERING, POLICY, WAYS, state_of
from tests.support.boxes import without_bubblewrap
from tests.support.levels import IDENTITY, NOBODY, PACKAGES, interpreter

RUN = """
import sys
from pathlib import Path
from agentflow.process import Command
from agentflow.sandbox.confine import find_ability
from agentflow.sandbox.run import Sandbox
root, who, shell = sys.argv[1:]
box = Sandbox(root=Path(root), ability=find_ability(), who=who)
box.run(Command(argv=("bash", "-c", shell), cwd=root, timeout=30), Path(root).parent / "output")
print(box.level)
"""
LAYER = """
import sys
from pathlib import Path
from agentflow.process import Command
from agentflow.sandbox.confine import find_ability
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.git import open_repository
from agentflow.workspace.working_copy import WorkingCopy
from agentflow.workspace.working_copy import LowerDirectory
git = open_repository(Path(sys.argv[1]))
underlay = LowerDirectory(git)
underlay.write_below(git.write_tree())
(git.root / "src/b.txt").write_text("more")
(git.root / "src/c.txt").write_text("new")
stage = WorkingCopy(git, git.write_tree(), ())
stage.fill(underlay)
for shell in ("touch other", "echo x >> src/c.txt; rm a.txt"):
    box = Sandbox(root=git.root, ability=find_ability()).switch_to_view(stage.view)
    box.run(Command(argv=("bash", "-c", shell), cwd=str(git.root), timeout=30), git.root.parent / "output")
    print(stage.view.layer is not None, sorted(stage.list_changes()))
stage.restore(lambda _: True)
print(stage.list_changes())
stage.remove()
underlay.close()
"""
As = Callable[..., str]

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="every test is one of an ordinary user")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that others may enter, with programs but no bubblewrap in it."""
    folder = Path(tempfile.mkdtemp(prefix="agentflow-nobody-"))
    folder.chmod(0o755)
    without_bubblewrap(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["full", "partial"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def as_nobody(place: Path, level: str) -> As:
    """Run Python as somebody without rights."""
    path = "/usr/local/bin:/usr/bin:/bin" if level == "full" else str(place / "programs")
    env = {"PATH": path, "HOME": str(place), "PYTHONPATH": PACKAGES}
    python = interpreter()
    if python is None:
        pytest.skip("no Python that others may run")

    def run(*words: str) -> str:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [python, *words],
            **IDENTITY,
            env=env,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    return run


@pytest.fixture
def root(place: Path, level: str) -> Path:
    """A repository of nobody's."""
    folder = place / level / f"repo{time.monotonic_ns()}"
    files = {"a.txt": "a\n", "src/b.txt": "b\n", ".claude/settings.json": "{}", ".gitattributes": "* text\n"}
    for name, text in {**files, ".claude/agentflow/ev-0001.json": "{}"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for path in (folder.parent, folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return folder


@pytest.mark.parametrize(
    ("who", "ways"), [("explorer", (*WAYS, *ALTERING)), ("checks", WAYS), ("implementer", POLICY)]
)
def test_no_way_to_write_gets_through(
    as_nobody: As, root: Path, level: str, who: str, ways: tuple[str, ...]
) -> None:
    before = state_of(root)
    said = as_nobody("-c", RUN, str(root), who, "\n".join(f"( {way} )" for way in ways))
    assert said == f"{level}\n"
    time.sleep(0.4)
    assert state_of(root) == before


def test_a_view_leaves_nothing_behind(as_nobody: As, root: Path, level: str) -> None:
    temporary = root.with_name(f"{root.name}-temporary")
    temporary.mkdir()
    os.chown(temporary, NOBODY, NOBODY)
    script = f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n{RUN}"
    assert as_nobody("-c", script, str(root), "checks", "rm a.txt; echo c > c.txt") == f"{level}\n"
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("level", ["full"])
def test_a_layer_tells_what_a_check_changed_and_nothing_else(as_nobody: As, root: Path) -> None:
    assert as_nobody("-c", LAYER, str(root)).splitlines() == [
        "True ['A other']",
        "True ['A other', 'D a.txt', 'M src/c.txt']",
        "()",
    ]


def test_doctor_finds_every_attack_held_but_those_it_names(as_nobody: As, level: str) -> None:
    found = json.loads(as_nobody("-m", "agentflow", "doctor", "--json", "-C", "/"))
    assert (found["sandbox"], len(found["attacks"]) > 30) == (level, True)
    through = {
        (one["name"], who) for one in found["attacks"] for who, held in one["held"].items() if not held
    }
    gaps = {("change modes and times", who) for who in ("implementer", "checks")}
    gaps |= {("sockets of services", who) for who in ("explorer", "implementer", "checks")}
    assert through == (set() if level == "full" else gaps)


def test_checks_run_in_a_repository_that_is_read_only(as_nobody: As, root: Path) -> None:
    test = root / "tests/test_a.py"
    test.parent.mkdir()
    test.write_text("import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n")
    root.chmod(0o555)
    assert "exit 0, 1 passed" in as_nobody("-m", "agentflow", "verify", "-C", str(root))


def test_a_user_without_a_home_is_told_to_set_one(place: Path) -> None:
    python = interpreter()
    if python is None:
        pytest.skip("no Python that others may run")
    done = subprocess.run(
        [python, "-m", "agentflow", "doctor", "-C", "/"],
        env={"PATH": os.defpath, "PYTHONPATH": PACKAGES},
        cwd=place,
        user=4321,
        group=4321,
        extra_groups=(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "agentflow: this user has no home folder")
