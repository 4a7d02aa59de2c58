"""What of a failed output the sandbox caused: only what names a path that it keeps from a command."""

import tempfile
from pathlib import Path

import pytest

from agentflow.sandbox.run import Sandbox, guess_reason
from agentflow.sandbox.throwaway import make_scratch_folder
from tests.support.boxes import boxed, landlocked, unboxed


@pytest.fixture(params=[boxed, landlocked])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    (tmp_path / "repo").mkdir()
    found: Sandbox = request.param(tmp_path / "repo")
    return found


@pytest.mark.parametrize(
    "said",
    [
        "FileNotFoundError: [Errno 2] No such file or directory: '{}'",
        "PermissionError: [Errno 13] Permission denied: '{}'",
        "cat: {}: No such file or directory",
        "sh: 1: {}: not found",
        "Error: ENOENT: no such file or directory, open '{}'",
        "java.io.FileNotFoundException: {} (Permission denied)",
        "open {}: operation not permitted",
    ],
)
def test_a_hidden_file_that_a_command_asks_for_is_named(said: str, box: Sandbox, tmp_path: Path) -> None:
    needed = tmp_path / "needed"
    needed.touch()
    assert guess_reason(box, said.format(needed)) == (
        f"the sandbox hides {needed}: `readable: [{needed}]` in config.yaml shows it"
    )
    assert guess_reason(unboxed(box.root), said.format(needed)) == ""


def test_a_hidden_file_with_a_space_in_its_name_is_named(box: Sandbox, tmp_path: Path) -> None:
    needed = tmp_path / "what is needed"
    needed.touch()
    assert f"hides {needed}:" in guess_reason(box, f"No such file or directory: '{needed}'")


@pytest.mark.parametrize(
    "said",
    [
        '  File "{}", line 3, in test_it',
        "AssertionError: '{}' != '/other'",
        "reading {}\nFileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
        "FileNotFoundError: [Errno 2] No such file or directory: '{}/gone'",
    ],
)
def test_a_failure_that_only_mentions_a_hidden_path_has_another_cause(
    said: str, box: Sandbox, tmp_path: Path
) -> None:
    mentioned = tmp_path / "mentioned"
    mentioned.touch()
    assert guess_reason(box, said.format(mentioned)) == ""


def test_a_file_of_the_repository_or_of_a_copy_of_it_is_not_hidden(box: Sandbox) -> None:
    (box.root / "a").touch()
    with make_scratch_folder() as folder:
        (folder / "a").touch()
        said = "".join(f"Permission denied: '{place}/a'\n" for place in (box.root, folder))
        assert guess_reason(box, said) == ""


def test_a_file_that_nobody_may_write_is_read_only_outside_as_well(box: Sandbox) -> None:
    said = "OSError: [Errno 30] Read-only file system: '{}'"
    assert "read-only" in guess_reason(box, said.format(f"{tempfile.gettempdir()}/beside"))
    assert guess_reason(box, said.format("/proc/sys/kernel/ostype")) == ""
    assert guess_reason(box, "the names of errors: Read-only file system") == ""
