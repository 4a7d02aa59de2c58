import re
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from agentflow.core.check_command import join_commands
from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Message, Reply, Speaker, ToolCall, ToolResult
from agentflow.core.role import FirstTry, Replacement
from agentflow.core.verdict import PLAUSIBLE
from agentflow.repair.policy import Repair
from tests.support.boxes import boxed
from tests.support.records import a_request, user
from tests.unit.repair.bugs import BUGS, Bug, module_tests
from tests.unit.repair.stage import PYTEST, UNITTEST, Stage

DEMO = Path(__file__).parents[3] / "examples" / "invoicing"
LIMIT = "def is_full(count, limit):\n    return count > limit\n"
LIMIT_TESTS = ("is_full(3, 3)", "is_full(4, 3)", "not is_full(2, 3)")


def shop(code: str, truths: tuple[str, ...], folder: str = "shop") -> dict[str, str]:
    tests = module_tests("shop.core", truths)
    return {f"{folder}/__init__.py": "", f"{folder}/core.py": code, "tests/test_core.py": tests}


def demo_files() -> dict[str, str]:
    found = (path for path in DEMO.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(DEMO)): path.read_text(encoding="utf-8") for path in found}


SHORT = (
    *("comparison", "constant", "module constant", "augmented operator", "jump"),
    *("missing guard", "swapped call arguments"),
)
"""One bug of each way in which an edit is found and tried; tests/soak tries all."""


@pytest.mark.parametrize("bug", [each for each in BUGS if each.name in SHORT], ids=lambda bug: bug.name)
def test_a_seeded_bug_is_mended_by_one_edit(bug: Bug, tmp_path: Path) -> None:
    buggy = bug.code.replace(bug.right, bug.wrong)
    stage = Stage(tmp_path, shop(buggy, bug.tests), UNITTEST)

    assert len(stage.mend(boxed(tmp_path))) == 1

    ((path, (old, new)),) = stage.changed().items()
    assert path == "shop/core.py"
    assert len(old) <= 1
    assert len(new) <= 1 or bug.name == "missing guard"


def test_the_demo_is_mended_at_the_first_attempt(tmp_path: Path) -> None:
    stage = Stage(tmp_path, demo_files(), UNITTEST)
    (summary,) = stage.mend(boxed(tmp_path))
    assert summary == "invoicing/reminders.py:15 comparison: `>` to `>=`"
    assert stage.changed() == {
        "invoicing/reminders.py": (["if late > begins:"], ["if late >= begins:"]),
    }


def test_an_edit_that_breaks_a_test_of_another_file_is_no_rival(tmp_path: Path) -> None:
    files = shop("def total(n):\n    return 1 + 1 + 1 + 1 * n\n", ("total(1) == 5",))
    files["tests/test_other.py"] = module_tests("shop.core", ("total(0) == 3",))
    stage = Stage(tmp_path, files, UNITTEST)
    assert len(stage.mend(boxed(tmp_path))) == 1
    assert stage.changed() == {"shop/core.py": (["return 1 + 1 + 1 + 1 * n"], ["return 1 + 1 + 1 + 2 * n"])}


@pytest.mark.parametrize("command", [UNITTEST, PYTEST])
def test_a_name_that_is_missing_at_import_cites_no_line_before_the_first(
    command: str, tmp_path: Path
) -> None:
    source = "import unittest\nfrom shop.core import absent\n\n\nclass T(unittest.TestCase):\n"
    tests = f"{source}    def test_it(self):\n        self.assertTrue(absent(1))\n"
    said = str(give_up(Stage(tmp_path, {**shop(LIMIT, ()), "tests/test_core.py": tests}, command)))
    lines = [int(line) for line in re.findall(r"shop/core\.py:(\d+)", said)]
    assert lines
    assert min(lines) >= 1


def test_pytest_repositories_are_mended(tmp_path: Path) -> None:
    files = shop(LIMIT, LIMIT_TESTS)
    files["tests/test_more.py"] = (
        "import pytest\nfrom shop.core import is_full\n\n"
        "@pytest.mark.parametrize('count', [5, 6])\ndef test_full(count):\n    assert is_full(count, count)\n"
    )
    stage = Stage(tmp_path, files, PYTEST)
    stage.mend(boxed(tmp_path))
    assert stage.changed() == {"shop/core.py": (["return count > limit"], ["return count >= limit"])}


@pytest.mark.parametrize(
    "runner", ["-m unittest discover -v -s tests", "-m pytest -q -p no:cacheprovider -rA"]
)
def test_an_editable_install_tests_the_copy_and_not_the_original(runner: str, tmp_path: Path) -> None:
    files = shop(LIMIT, LIMIT_TESTS, "src/shop") | {".gitignore": ".venv/\n__pycache__/\n"}
    stage = Stage(tmp_path, files, f".venv/bin/python {runner}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / ".venv")], check=True)
    (site,) = (tmp_path / ".venv" / "lib").glob("python*/site-packages")
    ours = Path(pytest.__file__).parents[1]
    (site / "editable.pth").write_text(f"{tmp_path / 'src'}\n{ours}\n")
    stage.mend(boxed(tmp_path))
    assert stage.changed() == {"src/shop/core.py": (["return count > limit"], ["return count >= limit"])}


def test_line_endings_of_the_file_stay(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT.replace("\n", "\r\n"), LIMIT_TESTS), UNITTEST)
    stage.mend(boxed(tmp_path))
    mended = (tmp_path / "shop" / "core.py").read_bytes()
    assert mended == LIMIT.replace(">", ">=").replace("\n", "\r\n").encode()


def test_a_mark_at_the_start_of_the_file_stays(tmp_path: Path) -> None:
    code = "\ufeffis_full = lambda count, limit: count > limit\n"
    stage = Stage(tmp_path, shop(code, LIMIT_TESTS), UNITTEST)
    stage.mend(boxed(tmp_path))
    assert (tmp_path / "shop" / "core.py").read_text() == code.replace(">", ">=")


def test_a_file_in_another_encoding_is_left_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT, LIMIT_TESTS), UNITTEST)
    written = f"# coding: latin-1\n# \xe4\n{LIMIT}".encode("latin-1")
    (tmp_path / "shop" / "core.py").write_bytes(written)
    with pytest.raises(ModelRejected, match="no line of the code under test"):
        stage.repair(boxed(tmp_path))
    assert (tmp_path / "shop" / "core.py").read_bytes() == written


def test_what_one_candidate_leaves_behind_is_gone_for_the_next(tmp_path: Path) -> None:
    code = "def is_full(count):\n    return 2 * 3 * 5 * 7 < 0 or count > 3\n"
    truths = ("not Path('mark').exists() and not Path('mark').touch()", "is_full(3)", "not is_full(2)")
    files = shop(code, truths)
    files["tests/test_core.py"] = "from pathlib import Path\n" + files["tests/test_core.py"]
    stage = Stage(tmp_path, files, UNITTEST)
    stage.search(boxed(tmp_path))
    (tmp_path / "mark").unlink()
    stage.repair(boxed(tmp_path))
    assert set(stage.changed()) == {"shop/core.py"}


def test_a_candidate_that_never_ends_is_only_a_lost_one(tmp_path: Path) -> None:
    loop = "    while number > 0:\n        number -= 2\n        count += 2\n    return count\n"
    code = f"def steps(number):\n    count = 0\n{loop}"
    stage = Stage(tmp_path, shop(code, ("steps(4) == 2", "steps(0) == 0", "steps(1) == 1")), UNITTEST)
    stage.mend(boxed(tmp_path))
    assert stage.changed() == {"shop/core.py": (["count += 2"], ["count += 1"])}


def give_up(stage: Stage) -> ModelRejected:
    with pytest.raises(ModelRejected) as caught:
        stage.mend(boxed(stage.root))
    return caught.value


def test_what_cannot_be_mended_is_said_with_advice_and_an_unchanged_tree(tmp_path: Path) -> None:
    files = shop("def answer():\n    return 'no'\n", ())
    files["tests/test_core.py"] += "    def test_it(self):\n        self.assertEqual(answer(), 'yes' * 40)\n"
    stage = Stage(tmp_path, files, UNITTEST)
    error = give_up(stage)
    assert str(error).startswith("not mended: none of ")
    assert "suspicious lines: shop/core.py:" in str(error)
    assert "nearest: shop/core.py:2 text: " in str(error)
    assert "ANTHROPIC_API_KEY" in str(error)
    assert stage.changed() == {}


def test_giving_up_later_takes_the_earlier_attempt_back(tmp_path: Path) -> None:
    files = shop(LIMIT, LIMIT_TESTS)
    files["tests/test_other.py"] = module_tests("shop.core", ("is_full(3, 3) is False",))
    stage = Stage(tmp_path, files, UNITTEST)
    give_up(stage)
    assert stage.attempts
    assert stage.changed() == {}


def test_a_wrong_test_is_never_edited_to_pass(tmp_path: Path) -> None:
    files = shop("def price(net):\n    return net\n", ())
    files["tests/support.py"] = "def expected():\n    return 'a' < 'a'\n"
    files["tests/conftest.py"] = "LIMIT = 1\n"
    files["tests/test_core.py"] = (
        "import unittest\nfrom support import expected\n\n\nclass T(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertTrue(expected())\n"
    )
    stage = Stage(tmp_path, files, UNITTEST)
    give_up(stage)
    assert stage.changed() == {}


def test_a_test_beside_the_code_is_no_code_to_edit(tmp_path: Path) -> None:
    files = {
        "core.py": "def price(net):\n    return str(net)\n",
        "check_core.py": (
            "import unittest\nfrom core import price\n\n\nclass T(unittest.TestCase):\n"
            "    def test_it(self):\n        limit = 1\n        self.assertTrue(price(1) and limit < 1)\n"
        ),
    }
    stage = Stage(tmp_path, files, f"{sys.executable} -m unittest discover -v -p 'check_*.py'")
    give_up(stage)
    assert stage.changed() == {}


def test_the_tests_of_several_folders_are_run_for_each_edit(tmp_path: Path) -> None:
    files = shop(LIMIT, LIMIT_TESTS)
    files["more/test_other.py"] = files["tests/test_core.py"]
    files["tests/test_core.py"] = (
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n"
    )
    command = join_commands(
        [f"{sys.executable} -m unittest discover -v -s {name}" for name in ("tests", "more")]
    )
    assert len(Stage(tmp_path, files, command).mend(boxed(tmp_path))) == 1


def test_a_green_repository_has_nothing_to_mend(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT.replace(">", ">="), LIMIT_TESTS), UNITTEST)
    assert str(give_up(stage)).startswith("nothing to fix: the checks pass")


@pytest.mark.parametrize("command", ["make test", "npm test", "cd sub && pytest", "python3 run_tests.py"])
def test_a_command_that_is_no_python_runner_is_left_alone(command: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT, LIMIT_TESTS), command)
    error = give_up(stage)
    assert command in str(error)
    assert "--model" in error.hint


FOUND = FirstTry(
    account="a.py:1 constant: `1` to `2`",
    edits=(
        Replacement(file_path="a.py", old_string="1", new_string="2"),
        Replacement(file_path="b.py", old_string="3", new_string="4"),
    ),
    files=("a.py",),
    rivals=("another",),
)


def play(found: FirstTry | None, answer: str = "done", *, is_error: bool = False) -> list[Reply]:
    """Return the replies of a run in which each call of a tool has the same answer."""
    messages, replies = [user("# Task\nfix it")], list[Reply]()
    while len(replies) < 3:
        request = a_request(*messages, role="implementer", run=7)
        replies.append(anyio.run(Repair(found=found).complete, request))
        asked = Message(speaker=Speaker.ASSISTANT, parts=replies[-1].parts)
        results = (ToolResult(call_id=call.id, content=answer, is_error=is_error) for call in asked.calls)
        messages += [asked, Message(speaker=Speaker.USER, parts=tuple(results))]
    return replies


def test_a_repair_is_made_by_calls_of_tools_that_cost_nothing() -> None:
    replies = play(FOUND)
    calls = [part for reply in replies for part in reply.parts if isinstance(part, ToolCall)]
    assert [call.name for call in calls] == ["Read", "Read", "Edit", "Edit", "SubmitChange"]
    assert len({call.id for call in calls}) == len(calls)
    assert {(each.usage.input, each.usage.output, each.usage.cost_usd, each.model) for each in replies} == {
        (0, 0, 0.0, "repair")
    }
    assert calls[-1].input == {
        "summary": f"{FOUND.account}; {PLAUSIBLE}",
        "files": ["a.py"],
        "rivals": ["another"],
    }


def test_a_refused_edit_ends_the_run() -> None:
    with pytest.raises(ModelRejected, match="a tool refused the edit: not allowed"):
        play(FOUND, "not allowed", is_error=True)


def test_what_only_takes_an_earlier_repair_back_ends_with_its_account() -> None:
    with pytest.raises(ModelRejected, match="not mended: none"):
        play(FOUND.replace(account="not mended: none", files=()))


def test_without_a_repair_no_role_is_played() -> None:
    with pytest.raises(ModelRejected, match="does not play implementer"):
        play(None)


@pytest.mark.parametrize(
    "task",
    [
        "make the failing tests pass",
        "fix the off-by-one in pager",
        "tests are red, mend them",
        "please repair the parser",
        "Update the code so that the tests pass",
        "the discount is wrong for ten items",
        "crash when the list is empty",
        "can you fix the failing tests?",
    ],
)
def test_a_task_about_failing_checks_is_taken(task: str) -> None:
    assert Repair().explain_refusal(task) is None


@pytest.mark.parametrize(
    "task",
    [
        "add a --verbose option",
        "explain the parser",
        "refactor the store",
        "where is discount defined?",
        "write docs",
        "update the error message",
        "why does the pager crash?",
        "add a test for the broken pager",
        "",
    ],
)
def test_any_other_task_is_refused_at_once(task: str) -> None:
    model = Repair()
    began = time.process_time()
    assert (
        model.explain_refusal(task)
        == "The built-in repair engine can only fix Python code with failing tests."
    )
    assert time.process_time() - began < 0.1
