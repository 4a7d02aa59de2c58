"""The program as a whole at each level of the sandbox that there is, as root and as an ordinary user."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentflow.core.regex import regex
from tests.support import play
from tests.support.attacks import ALTERING, POLICY, WAYS, state_of
from tests.support.levels import LEVELS, Machine

HONEST_TESTS = play.CALC["tests/test_calc.py"].replace(
    "class CalcTest(unittest.TestCase):",
    """class CalcTest(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            os.utime(shutil.copy2(__file__, folder), (0, 0))
""",
)
SETTING = {**play.CALC, "tests/test_calc.py": f"import os\nimport shutil\nimport tempfile\n{HONEST_TESTS}"}
"""Its tests set times and modes of files of their own."""
NEEDING = {
    **play.CALC,
    "tests/test_calc.py": play.CALC["tests/test_calc.py"] + "\n\nopen('local.cfg').close()\n",
    ".gitignore": "local.cfg\n",
    "local.cfg": "",
}
"""Its tests need a file that git ignores."""
PLACE = ".cache/node_modules/tests/.venv/site-packages/.git-old/build"
"""Where a repository may lie as well; no rule about names is about what is above it."""


@pytest.fixture(scope="module", params=LEVELS, ids=lambda level: level.name.replace(" ", "-"))
def prepared(request: pytest.FixtureRequest) -> Iterator[tuple[Machine, str]]:
    folder = Path(tempfile.mkdtemp(prefix="agentflow-level-"))
    machine = Machine(request.param, folder)
    yield machine, machine.lacks()
    shutil.rmtree(folder)


WEAKEST = pytest.mark.parametrize(
    "prepared", LEVELS[-1:], indirect=True, ids=lambda level: level.name.replace(" ", "-")
)
"""What is tried at one level here is tried at each in tests/soak."""


@pytest.fixture
def machine(prepared: tuple[Machine, str], record_property: Callable[[str, object], None]) -> Machine:
    """A machine of one level; where there is none, that is said, and a failure where all have to be there."""
    found, lack = prepared
    if not lack:
        record_property("level", found.level.name)
        return found
    record_property("lacking level", f"{found.level.name} ({lack})")
    return pytest.fail(lack) if os.environ.get("CI") else pytest.skip(lack)


def test_an_explorer_changes_nothing_and_leaves_nothing_behind(machine: Machine) -> None:
    files = {"a.txt": "a\n", "src/b.txt": "b\n", ".claude/settings.json": "{}", ".gitattributes": "* text\n"}
    repo = machine.repo("looked at", {**play.GREEN, **files})
    temporary = machine.own("temporary")
    before = user_files(repo.root)
    ways = (*WAYS, *POLICY, *(way for way in ALTERING[:6] if " . " not in f"{way} "))
    looks = play.turn(*(play.call("Bash", command=way) for way in ways), play.call("Bash", command="ls"))
    repo.task(
        "where is add defined?",
        script=[play.role("explorer", looks, *play.findings()["turns"])],
        command=machine.command,
        env={**machine.env, "TMPDIR": str(temporary)},
    )
    (run,) = repo.runs("explorer")
    ran = [way["input"].get("command") for way, result in run.calls[:-1] if not result["is_error"]]
    assert [way for way in WAYS if way in ran] == (list(WAYS) if machine.level.sandbox == "full" else [])
    assert ran[-1] == "ls"
    time.sleep(0.4)
    assert user_files(repo.root) == before
    assert list(temporary.iterdir()) == []


def user_files(root: Path) -> dict[str, object]:
    """Return all about each file but agentflow's own records, and what git notes of them."""
    own = regex(r"\.claude(?:/agentflow.*|/orchestration.*)?|\.git(?!/(?:HEAD|config|hooks|refs/heads)).*")
    return {name: state for name, state in state_of(root).items() if not own.fullmatch(name)}


@WEAKEST
def test_the_demo_is_verified(machine: Machine) -> None:
    repo = machine.repo("beside", {})
    shop = machine.own("demo") / "my shop"
    done = repo.run("demo", "-v", str(shop), **machine.options)
    assert done.code == 0, done.err
    assert f"sandbox {machine.level.sandbox}," in done.err
    assert "the sandbox hides" not in done.out + done.err


@WEAKEST
def test_a_repair_is_found_whatever_the_tests_do_to_files_of_their_own(machine: Machine) -> None:
    repo = machine.repo(f"{PLACE}/a repair", SETTING)
    done = repo.task(**machine.options)
    assert done.code == 0, done.err
    assert repo.read("calc.py") == play.GREEN["calc.py"]


def test_an_honest_change_is_verified_and_again_and_undone(machine: Machine) -> None:
    repo = machine.repo(f"{PLACE}/an honest change", NEEDING)
    done = repo.task(play.WHOLE_CREW, "-v", script=play.mending(), **machine.options)
    assert (done.code, "✗" in done.err) == (0, False), done.err
    assert "confirmed: fails without the change (ev-" in done.err
    assert {record["sandbox"] for record in repo.evidence()} == {machine.level.sandbox}
    again = repo.run("verify", repo.folder.name, **machine.options)
    assert again.code == 0, again.out
    assert repo.run("undo", repo.folder.name, **machine.options).code == 0
    assert repo.read("calc.py") == play.CALC["calc.py"]


@WEAKEST
def test_a_lie_is_not_verified(machine: Machine) -> None:
    repo = machine.repo("a lie", play.CALC)
    turns = (*play.edit("calc.py", "a - b", "a - b + 0"), play.submit("calc.py"))
    done = repo.task(play.TEXT, "--max-iterations", "1", script=play.crew(*turns), **machine.options)
    assert done.code == 3, done.err


@WEAKEST
def test_what_cannot_be_read_is_named(machine: Machine) -> None:
    repo = machine.repo("private", play.GREEN)
    (machine.own("private/closed")).chmod(0)
    done = repo.run("verify", **machine.options)
    assert done.code == 2, done.out
    assert f"agentflow: cannot read {repo.root}/closed\n" in done.err
