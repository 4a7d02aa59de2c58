import difflib
import subprocess
from pathlib import Path

import pytest

from agentflow.repair.edits import replacements, undone

TEXTS = [
    ("a\nb\nc\n", "a\nB\nc\n"),
    ("x = 1\ny = 1\nx = 1\ny = 1\n", "x = 1\ny = 1\nx = 2\ny = 1\n"),
    ("a\na\na\na\n", "a\na\nb\na\n"),
    ("a\nb\n", "a\nif b:\n    return\nb\n"),
    ("a\nif b:\n    return\nb\n", "a\nb\n"),
    ("a\nb", "a\nc"),
    ("a\nb", "a\nb\n"),
    ("first\r\nsecond\r\n", "first\r\n2nd\r\n"),
    ("a\x0cb\u2028c\nd\n", "a\x0cb\u2028e\nd\n"),
    ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n13\n"),
    ("ä\nö\n", "ä\nü\n"),
]


@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_each_old_text_is_unique_when_its_turn_comes(before: str, after: str) -> None:
    text = before
    for edit in replacements("a.py", before, after):
        assert edit.old_string != edit.new_string
        assert text.count(edit.old_string) == 1
        text = text.replace(edit.old_string, edit.new_string)
    assert text == after


def test_an_edit_within_a_line_holds_no_line_ending() -> None:
    (edit,) = replacements("a.py", "one\r\ntwo\r\n", "one\r\n2\r\n")
    assert (edit.old_string, edit.new_string) == ("two", "2")


@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_a_diff_of_git_is_taken_back(before: str, after: str, tmp_path: Path) -> None:
    name = "a b.py"
    (tmp_path / name).write_bytes(before.encode())
    for arguments in (["init", "-q"], ["-c", "core.autocrlf=false", "add", "."]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    (tmp_path / name).write_bytes(after.encode())
    diff = subprocess.run(["git", "diff"], cwd=tmp_path, check=True, capture_output=True).stdout.decode()
    assert undone(tmp_path, diff) == {name: before.encode()}


def test_two_files_are_taken_back_apart(tmp_path: Path) -> None:
    diff = ""
    for name in ("a.py", "b.py"):
        lines = difflib.unified_diff(["old\n", "-- x\n"], [f"{name}\n", "-- x\n"], f"a/{name}", f"b/{name}")
        diff += f"diff --git a/{name} b/{name}\n" + "".join(lines)
        (tmp_path / name).write_text(f"{name}\n-- x\n")
    assert undone(tmp_path, diff) == {"a.py": b"old\n-- x\n", "b.py": b"old\n-- x\n"}


def test_a_diff_that_does_not_fit_the_file_is_not_taken_back(tmp_path: Path) -> None:
    diff = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"
    assert undone(tmp_path, diff) == {"a.py": None}
    (tmp_path / "a.py").write_text("other\n")
    assert undone(tmp_path, diff) == {"a.py": None}
    (tmp_path / "a.py").write_text("new\n")
    assert undone(tmp_path, diff) == {"a.py": b"old\n"}
