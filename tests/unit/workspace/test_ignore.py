from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentflow.workspace.ignored_files import END, OPT_OUT, START, insert_block, keep_out_of_git
from tests.unit.workspace.places import Place

BLOCK = f"{START}\n.claude/agentflow/\n.claude/*.local.*\n{END}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv(OPT_OUT, raising=False)
    return Place(tmp_path / "repository")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{BLOCK}\n"),
        ("*.log\n", f"*.log\n{BLOCK}\n"),
        ("*.log", f"*.log\n{BLOCK}\n"),
        (f"a\n{START}\nold\n{END}\nb\n", f"a\n{BLOCK}\nb\n"),
        (f"{START}\n{END}", BLOCK),
        ("*.log\r\n*.tmp\r\n", "*.log\r\n*.tmp\r\n" + BLOCK.replace("\n", "\r\n") + "\r\n"),
        (f"a\r\n{START}\r\nold\r\n{END}\r\nb\r\n", "a\r\n" + BLOCK.replace("\n", "\r\n") + "\r\nb\r\n"),
    ],
)
def test_the_block_stands_once_and_the_rest_stays(before: str, after: str) -> None:
    assert insert_block(before) == after


@pytest.mark.parametrize(
    "malformed",
    [
        f"a\n{START}\nmine\n",
        f"a\n{END}\nmine\n",
        f"{END}\nmine\n{START}\n",
        f"{BLOCK}\nmine\n{BLOCK}\n",
        f"{START}\n{START}\n{END}\n",
        f"{START}\n{END}\n{END}\n",
    ],
)
def test_a_malformed_block_is_left_alone(malformed: str) -> None:
    assert insert_block(malformed) == malformed


lines = st.lists(st.sampled_from(["", "*.log", START, END, "mine", "é\x00"]), max_size=8)


@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_twice_is_once_and_no_line_of_the_user_is_lost(found: list[str], newline: str, ended: bool) -> None:
    text = newline.join(found) + (newline if ended else "")
    once = insert_block(text)
    assert insert_block(once) == once
    outside = text
    if text.count(START) == text.count(END) == 1 and text.index(START) < text.index(END):
        outside = text[: text.index(START)] + text[text.index(END) + len(END) :]
    assert once.count("mine") >= outside.count("mine")
    assert once.count("*.log") >= outside.count("*.log")


def exclude(place: Place) -> Path:
    return place.root / ".git/info/exclude"


def test_our_files_do_not_show_in_git_status(place: Place) -> None:
    keep_out_of_git(place.open())
    place.write(".claude/agentflow/t/task.md", "x")
    place.write(".claude/orchestration.local.md", "x")
    assert place.git("status", "--porcelain") == ""


def test_a_second_time_changes_no_byte(place: Place) -> None:
    keep_out_of_git(place.open())
    before = exclude(place).read_bytes()
    keep_out_of_git(place.open())
    assert exclude(place).read_bytes() == before


def test_the_users_lines_stay_whatever_their_bytes(place: Place) -> None:
    exclude(place).write_bytes(b"*.l\xff\r\n")
    keep_out_of_git(place.open())
    assert exclude(place).read_bytes() == b"*.l\xff\r\n" + BLOCK.replace("\n", "\r\n").encode() + b"\r\n"


def test_a_link_to_another_file_is_replaced_and_that_file_is_left_alone(place: Place) -> None:
    other = place.root.parent / "other"
    other.write_bytes(b"mine\n")
    exclude(place).unlink()
    exclude(place).symlink_to(other)
    keep_out_of_git(place.open())
    assert other.read_bytes() == b"mine\n"
    assert exclude(place).read_text() == f"mine\n{BLOCK}\n"


def test_a_missing_exclude_file_is_made(place: Place) -> None:
    exclude(place).unlink()
    exclude(place).parent.rmdir()
    keep_out_of_git(place.open())
    assert exclude(place).read_text() == f"{BLOCK}\n"


def test_the_opt_out_keeps_us_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = exclude(place).read_bytes()
    monkeypatch.setenv(OPT_OUT, "1")
    keep_out_of_git(place.open())
    assert exclude(place).read_bytes() == before


def test_a_block_in_the_shared_file_is_enough(place: Place) -> None:
    before = exclude(place).read_bytes()
    place.write(".gitignore", f"{BLOCK}\n")
    keep_out_of_git(place.open())
    assert exclude(place).read_bytes() == before


def test_the_shared_file_is_never_written(place: Place) -> None:
    place.write(".gitignore", "*.log\r\n")
    keep_out_of_git(place.open())
    assert (place.root / ".gitignore").read_bytes() == b"*.log\r\n"


def test_a_linked_worktree_uses_the_file_that_git_reads(place: Place, tmp_path: Path) -> None:
    place.git("worktree", "add", "-q", str(tmp_path / "linked"))
    keep_out_of_git(Place.open(place).replace(root=tmp_path / "linked"))
    assert START in exclude(place).read_text()
