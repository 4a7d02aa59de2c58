import subprocess
from pathlib import Path

import pytest

from agentflow.core.check_command import CommandPart, edit_runs, join_commands, join_parts, split_command

HERE, BELOW = CommandPart(command="go test ./..."), CommandPart(command="pytest -q", folder="a b/")
WHOLE = "r=0; { go test ./...; } || r=1; (cd 'a b' && pytest -q) || r=1; exit $r"


@pytest.mark.parametrize("parts", [(HERE,), (BELOW,), (HERE, BELOW), (BELOW, BELOW)])
def test_a_command_is_read_back_as_the_parts_that_it_was_written_from(parts: tuple[CommandPart, ...]) -> None:
    assert split_command(join_parts(parts)) == parts


def test_several_parts_are_one_command() -> None:
    assert join_parts([HERE, BELOW]) == WHOLE
    assert join_commands([WHOLE, "npm test"]) == WHOLE.replace("exit", "{ npm test; } || r=1; exit")


@pytest.mark.parametrize(
    "command",
    [
        "cd /tmp && pytest -q",
        "cd .. && pytest -q",
        "cd a && pytest -q; cd b",
        f"{WHOLE}; true",
        "r=0; exit $r",
    ],
)
def test_a_command_of_another_form_is_one_part_in_the_root(command: str) -> None:
    assert split_command(command) == (CommandPart(command=command),)


def test_each_part_runs_in_its_folder_and_any_of_them_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    parts = (
        CommandPart(command="false", folder="a/"),
        CommandPart(command="pwd", folder="a/"),
        CommandPart(command="pwd"),
    )
    done = subprocess.run(
        ["bash", "-c", join_parts(parts)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (1, [str(tmp_path / "a"), str(tmp_path)])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("A=1 'my env/python' -m pytest", ("A=1", "'my env/python'", "-m", "pytest")),
        ('go test -run "a b"', ("go", "test", "-run", '"a b"')),
        ("cd a && pytest", ()),
        ("pytest | tee log", ()),
        ("pytest 'a", ()),
        ("", ()),
    ],
)
def test_a_command_has_words_where_it_is_one_run_of_a_program(command: str, words: tuple[str, ...]) -> None:
    assert CommandPart(command=command).words == words


def test_each_run_in_a_command_is_edited_and_what_joins_them_stays() -> None:
    command = "r=0; { a  b; } || r=1; (cd 'c d' && a 'e; f') || r=1; exit $r"
    assert edit_runs(command, lambda words: words) == command
    edited = edit_runs(command, lambda words: (*words, "-v") if words[0] == "a" else words)
    assert edited == "r=0; { a b -v; } || r=1; (cd 'c d' && a 'e; f' -v) || r=1; exit $r"
