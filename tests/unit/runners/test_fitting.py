import pytest

from agentflow.core.check_command import join_commands
from agentflow.runners.fitting import fit_command


def test_a_part_whose_folder_is_gone_is_left_out_and_a_new_project_has_one_of_its_own() -> None:
    before = "r=0; { pytest -q; } || r=1; (cd a && pytest -q) || r=1; exit $r"
    assert fit_command(before, ["a/b.py", "new/c.py"]) == before
    assert fit_command(before, ["b.py"]) == "pytest -q"
    apart = before.replace("pytest -q; }", "pytest -q --ignore=new; }")
    added = apart.replace("; exit", "; (cd new && pytest -q) || r=1; exit")
    assert fit_command(before, ["a/b.py", "new/c.py"], "cd new && pytest -q") == added
    found = "r=0; { npm test; } || r=1; (cd new && go test ./...) || r=1; exit $r"
    assert fit_command(before, ["new/c.py"], found) == before.replace(
        "cd a && pytest -q", "cd new && go test ./..."
    )
    assert fit_command("cd a && pytest -q", ["b.py"]) == ""


@pytest.mark.parametrize(
    ("command", "is_gone"),
    [
        ("(cd one && pytest); (cd two && pytest)", True),
        ("cd one && pytest; cd ../two && pytest", True),
        ("pytest one 'two/tests'", True),
        ("make -C ./two/ test", True),
        ("pytest one --ignore=two", False),
        ("pytest one two/other", False),
        ("pytest", False),
    ],
)
def test_a_command_that_names_a_folder_whose_tests_are_gone_is_left_out(command: str, is_gone: bool) -> None:
    tests = ["one/tests/t.py", "two/tests/t.py"]
    assert fit_command(command, tests, "", tests) == command
    assert (fit_command(command, tests[:1], "", tests) == "") is is_gone
    both = join_commands([command, "pytest one"])
    assert (fit_command(both, tests[:1], "", tests) == "pytest one") is is_gone


@pytest.mark.parametrize(
    "program", [".venv/bin/python", "PYTHONPATH=src .venv/bin/python", "'my env/bin/python'"]
)
def test_no_program_that_comes_with_a_new_project_runs_its_tests(program: str) -> None:
    found = f"cd new && {program} -m pytest -q"
    assert fit_command("pytest -q", ["new/c.py"], found) == "pytest -q --ignore=new"
    assert fit_command("cd a && pytest -q", ["a/b.py", "new/c.py"], found) == "cd a && pytest -q"
    outer = found.replace(program, "../.venv/bin/python")
    assert fit_command("pytest -q", ["new/c.py"], outer).endswith(f"({outer}) || r=1; exit $r")


@pytest.mark.parametrize(
    ("test", "is_new"),
    [("new/t.py", False), ("new/in/t.py", True), ("newer/t.py", True), ("new/gone.py", True)],
)
def test_a_folder_where_tests_of_other_parts_are_is_no_new_project(test: str, is_new: bool) -> None:
    before = "r=0; { pytest -q; } || r=1; (cd new/in && pytest -q) || r=1; exit $r"
    files = ["new/c.py", "new/t.py", "new/in/t.py", "newer/t.py"]
    assert (fit_command(before, files, "cd new && pytest -q", [test]) != before) is is_new
