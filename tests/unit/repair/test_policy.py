import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from agentflow.core.check_command import join_commands
from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Reply, Request, ToolCall, ToolResult, ToolSpec
from agentflow.core.verdict import PLAUSIBLE
from agentflow.repair.policy import Repair
from tests.support.boxes import boxed
from tests.support.records import a_request, user
from tests.unit.repair.bugs import BUGS, Bug, module_tests
from tests.unit.repair.stage import PYTEST, UNITTEST, Stage, told

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
    *("comparison", "constant", "module constant", "augmented operator", "jump", "exception"),
    *("missing guard", "missing return", "swapped call arguments"),
)
"""One bug of each way in which an edit is found and tried; tests/soak tries all."""


@pytest.mark.parametrize("bug", [each for each in BUGS if each.name in SHORT], ids=lambda bug: bug.name)
def test_a_seeded_bug_is_mended_by_one_edit(bug: Bug, tmp_path: Path) -> None:
    buggy = bug.code.replace(bug.right, bug.wrong)
    stage = Stage(tmp_path, shop(buggy, bug.tests), UNITTEST)

    (summary,) = stage.mend(Repair(boxed(tmp_path)))

    ((path, (old, new)),) = stage.changed().items()
    assert path == "shop/core.py"
    assert len(old) <= 1
    assert len(new) <= 1 or bug.name == "missing guard"
    assert summary.endswith(f"; {PLAUSIBLE}")


def test_the_demo_is_mended_at_the_first_attempt(tmp_path: Path) -> None:
    stage = Stage(tmp_path, demo_files(), UNITTEST)
    (summary,) = stage.mend(Repair(boxed(tmp_path)))
    assert summary == f"invoicing/reminders.py:15 comparison: `>` to `>=`; {PLAUSIBLE}"
    assert stage.changed() == {
        "invoicing/reminders.py": (["if late > begins:"], ["if late >= begins:"]),
    }


def test_an_edit_that_breaks_a_test_of_another_file_is_no_rival(tmp_path: Path) -> None:
    files = shop("def total(n):\n    return 1 + 1 + 1 + 1 * n\n", ("total(1) == 5",))
    files["tests/test_other.py"] = module_tests("shop.core", ("total(0) == 3",))
    stage = Stage(tmp_path, files, UNITTEST)
    (summary,) = stage.mend(Repair(boxed(tmp_path)))
    assert stage.changed() == {"shop/core.py": (["return 1 + 1 + 1 + 1 * n"], ["return 1 + 1 + 1 + 2 * n"])}
    assert summary.endswith(f"; {PLAUSIBLE}")


def test_a_new_process_at_every_turn_comes_to_the_same_replies(tmp_path: Path) -> None:
    class Forgetful(Repair):
        async def complete(self, request: Request) -> Reply:
            return await Repair(boxed(tmp_path / "b")).complete(request)

    files = shop(LIMIT, LIMIT_TESTS)
    one, other = Stage(tmp_path / "a", files, UNITTEST), Stage(tmp_path / "b", files, UNITTEST)
    one.mend(Repair(boxed(tmp_path / "a")))
    other.mend(Forgetful(boxed(tmp_path / "b")))
    assert [told(reply) for reply in one.replies] == [told(reply) for reply in other.replies]


def test_call_ids_are_unique_and_nothing_costs_anything(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT, LIMIT_TESTS), UNITTEST)
    stage.mend(Repair(boxed(tmp_path)))
    ids = [part.id for reply in stage.replies for part in reply.parts if isinstance(part, ToolCall)]
    assert len(ids) == len(set(ids))
    assert {reply.usage.cost_usd for reply in stage.replies} == {0.0}
    assert {(reply.usage.input, reply.usage.output, reply.model) for reply in stage.replies} == {
        (0, 0, "repair")
    }


def test_findings_cite_executed_lines_after_reading_them(tmp_path: Path) -> None:
    stage = Stage(tmp_path, demo_files(), UNITTEST)
    stage.open()
    call = stage.play("explorer", Repair(boxed(tmp_path)))
    read = [part for part in stage.replies[0].parts if isinstance(part, ToolCall)]
    cited = {finding["path"] for finding in call.input["findings"]}
    assert {each.name for each in read} == {"Read"}
    assert (
        cited
        == {each.input["file_path"] for each in read}
        == {"invoicing/aging.py", "invoicing/reminders.py"}
    )
    assert call.input["findings"][0]["claim"] == "executed by 1 failing and 2 passing tests"


@pytest.mark.parametrize("command", [UNITTEST, PYTEST])
def test_a_name_that_is_missing_at_import_cites_no_line_before_the_first(
    command: str, tmp_path: Path
) -> None:
    source = "import unittest\nfrom shop.core import absent\n\n\nclass T(unittest.TestCase):\n"
    tests = f"{source}    def test_it(self):\n        self.assertTrue(absent(1))\n"
    stage = Stage(tmp_path, {**shop(LIMIT, ()), "tests/test_core.py": tests}, command)
    stage.open()
    lines = [finding["line"] for finding in stage.play("explorer", Repair(boxed(tmp_path))).input["findings"]]
    assert lines
    assert min(lines) >= 1


def test_pytest_repositories_are_mended(tmp_path: Path) -> None:
    files = shop(LIMIT, LIMIT_TESTS)
    files["tests/test_more.py"] = (
        "import pytest\nfrom shop.core import is_full\n\n"
        "@pytest.mark.parametrize('count', [5, 6])\ndef test_full(count):\n    assert is_full(count, count)\n"
    )
    stage = Stage(tmp_path, files, PYTEST)
    stage.mend(Repair(boxed(tmp_path)))
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
    stage.mend(Repair(boxed(tmp_path)))
    assert stage.changed() == {"src/shop/core.py": (["return count > limit"], ["return count >= limit"])}


def test_line_endings_of_the_file_stay(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT.replace("\n", "\r\n"), LIMIT_TESTS), UNITTEST)
    stage.mend(Repair(boxed(tmp_path)))
    mended = (tmp_path / "shop" / "core.py").read_bytes()
    assert mended == LIMIT.replace(">", ">=").replace("\n", "\r\n").encode()


def test_a_mark_at_the_start_of_the_file_stays(tmp_path: Path) -> None:
    code = "\ufeffis_full = lambda count, limit: count > limit\n"
    stage = Stage(tmp_path, shop(code, LIMIT_TESTS), UNITTEST)
    stage.mend(Repair(boxed(tmp_path)))
    assert (tmp_path / "shop" / "core.py").read_text() == code.replace(">", ">=")


def test_a_file_in_another_encoding_is_left_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT, LIMIT_TESTS), UNITTEST)
    written = f"# coding: latin-1\n# \xe4\n{LIMIT}".encode("latin-1")
    (tmp_path / "shop" / "core.py").write_bytes(written)
    stage.open()
    with pytest.raises(ModelRejected, match="no line of the code under test"):
        stage.play("implementer", Repair(boxed(tmp_path)))
    assert (tmp_path / "shop" / "core.py").read_bytes() == written


def test_what_one_candidate_leaves_behind_is_gone_for_the_next(tmp_path: Path) -> None:
    code = "def is_full(count):\n    return 2 * 3 * 5 * 7 < 0 or count > 3\n"
    truths = ("not Path('mark').exists() and not Path('mark').touch()", "is_full(3)", "not is_full(2)")
    files = shop(code, truths)
    files["tests/test_core.py"] = "from pathlib import Path\n" + files["tests/test_core.py"]
    stage = Stage(tmp_path, files, UNITTEST)
    stage.open()
    (tmp_path / "mark").unlink()
    stage.play("implementer", Repair(boxed(tmp_path)))
    assert set(stage.changed()) == {"shop/core.py"}


def test_a_candidate_that_never_ends_is_only_a_lost_one(tmp_path: Path) -> None:
    loop = "    while number > 0:\n        number -= 2\n        count += 2\n    return count\n"
    code = f"def steps(number):\n    count = 0\n{loop}"
    stage = Stage(tmp_path, shop(code, ("steps(4) == 2", "steps(0) == 0", "steps(1) == 1")), UNITTEST)
    stage.mend(Repair(boxed(tmp_path)))
    assert stage.changed() == {"shop/core.py": (["count += 2"], ["count += 1"])}


def give_up(stage: Stage) -> ModelRejected:
    with pytest.raises(ModelRejected) as caught:
        stage.mend(Repair(boxed(stage.root)))
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
    assert stage.runs > 3
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
    (summary,) = Stage(tmp_path, files, command).mend(Repair(boxed(tmp_path)))
    assert summary.endswith(f"; {PLAUSIBLE}")


def test_a_green_repository_has_nothing_to_mend(tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT.replace(">", ">="), LIMIT_TESTS), UNITTEST)
    assert str(give_up(stage)).startswith("nothing to fix: the checks pass")


@pytest.mark.parametrize("command", ["make test", "npm test", "cd sub && pytest", "python3 run_tests.py"])
def test_a_command_that_is_no_python_runner_is_left_alone(command: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, shop(LIMIT, LIMIT_TESTS), command)
    error = give_up(stage)
    assert command in str(error)
    assert "--model" in error.hint


JUDGES = [("reviewer", "APPROVED", "NEEDS_CHANGES"), ("verifier", "VERIFIED", "FAILED")]


@pytest.mark.parametrize(("role", "green", "red"), JUDGES)
def test_judging_roles_say_what_the_program_saw(role: str, green: str, red: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"a.py": ""}, "true")
    model = Repair(boxed(tmp_path))
    head = "\n## Checks after the change\n- lint: green, exit 0, evidence ev-0004, output in x\n"
    good = stage.play(role, model, head + "- tests: green, exit 0, evidence ev-0005, output in x\n")
    bad = stage.play(role, model, head + "- tests: red, exit 1, evidence ev-0006, output in x\n")
    assert (good.input["verdict"], bad.input["verdict"]) == (green, red)
    if role == "verifier":
        assert good.input["evidence"] == ["ev-0004", "ev-0005"]
        assert bad.input["evidence"] == ["ev-0006"]
        assert stage.play(role, model).input == {
            "verdict": "FAILED",
            "evidence": [],
            "reasons": ["no check was run after the change"],
        }


def test_a_refused_edit_ends_the_run(tmp_path: Path) -> None:
    class Stubborn(Stage):
        def answer(self, call: ToolCall, seen: set[str]) -> ToolResult:
            result = super().answer(call, seen)
            return result.replace(is_error=call.name == "Edit", content="not allowed")

    stage = Stubborn(tmp_path, shop(LIMIT, LIMIT_TESTS), UNITTEST)
    assert "not allowed" in str(give_up(stage))


def test_a_role_without_a_submission_is_not_played(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"a.py": ""}, "true")
    spec = ToolSpec(name="Read", description="", input_schema={})
    request = a_request(user("# Task\nfix it"), role="writer", tools=(spec,))
    with pytest.raises(ModelRejected, match="does not play writer"):
        anyio.run(Repair(boxed(stage.root)).complete, request)


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
def test_a_task_about_failing_checks_is_taken(task: str, tmp_path: Path) -> None:
    assert Repair(boxed(tmp_path)).explain_refusal(task) is None


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
def test_any_other_task_is_refused_at_once(task: str, tmp_path: Path) -> None:
    model = Repair(boxed(tmp_path))
    began = time.process_time()
    assert (
        model.explain_refusal(task)
        == "The built-in repair engine can only fix Python code with failing tests."
    )
    assert time.process_time() - began < 0.1
