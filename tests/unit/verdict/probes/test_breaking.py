import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.verdict.probes.breaking import Marks, break_change, break_functions, find_changed_lines
from agentflow.workspace.mixed_tree import ChangedTexts

MARKS = Marks(word="qw1", loaded="qw2", reached="qw3")
PYTHON = "LIMIT = 3\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n"


def broken(before: str, after: str, path: str) -> str:
    return break_change(ChangedTexts(path=path, before=before, after=after), MARKS)


def call(tmp_path: Path, text: str, code: str) -> str:
    (tmp_path / "mod.py").write_text(text)
    words = [sys.executable, "-c", f"import mod\n{code}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.stderr.strip().rpartition("\n")[2]


def test_a_changed_function_of_python_raises_and_the_others_do_not(tmp_path: Path) -> None:
    text = broken(PYTHON, PYTHON.replace("return 1", "return 3"), "mod.py")
    assert call(tmp_path, text, "mod.b()") == ""
    assert {each.name for each in tmp_path.iterdir()} >= {"qw2"}
    assert call(tmp_path, text, "mod.a()") == "RuntimeError: qw1"
    assert (tmp_path / "qw3").exists()


def test_all_functions_raise_where_something_beside_them_changed(tmp_path: Path) -> None:
    text = broken(PYTHON, PYTHON.replace("LIMIT = 3", "LIMIT = 4"), "mod.py")
    assert [call(tmp_path, text, f"mod.{name}()") for name in "ab"] == ["RuntimeError: qw1"] * 2
    assert call(tmp_path, broken("A = 1\n", "A = 2\n", "mod.py"), "") == "RuntimeError: qw1"


@pytest.mark.parametrize("head", ["", '"""A script."""\nfrom __future__ import annotations\n\n'])
def test_a_script_fails_before_it_does_what_changed(tmp_path: Path, head: str) -> None:
    before = f"{head}print('a')\nprint('b')\n"
    text = broken(before, before.replace("'b'", "'c'"), "mod.py")
    (tmp_path / "mod.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "mod.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("a\n", 1)
    assert "RuntimeError: qw1" in done.stderr
    assert call(tmp_path, broken(head, f"{head}A = 1\n", "mod.py"), "") == "RuntimeError: qw1"


def test_what_is_no_python_is_refused() -> None:
    assert broken("", "def (", "mod.py").endswith("\n)(qw1\n")


@pytest.mark.parametrize(
    ("path", "lines", "changed", "opening"),
    [
        ("a.js", ["function f(a) {", "  if (a) {", "    return 1", "  }", "}"], 2, 0),
        ("a.js", ["class A {", "  f(a) {", "    return 1", "  }", "}"], 2, 1),
        ("a.ts", ["export const f = (a: number) => {", "  return 1", "}"], 1, 0),
        ("a.go", ["func (s *S) F(a int) (int, error) {", "\tfor {", "\t\treturn 1, nil", "\t}", "}"], 2, 0),
        (
            "a.rs",
            ["impl A {", "    pub fn f(&self) -> i64 {", "        match 1 {", "            1 => 2,"],
            3,
            1,
        ),
        (
            "a.java",
            ["class A {", "    public static int f(int a) {", "        return 1;", "    }", "}"],
            2,
            1,
        ),
        ("a.sh", ["#!/bin/sh", "f() {", "  echo 1", "}"], 2, 1),
    ],
)
def test_a_failing_statement_opens_a_changed_function_of_a_language_with_braces(
    path: str, lines: list[str], changed: int, opening: int
) -> None:
    before = "".join(f"{line}\n" for at, line in enumerate(lines) if at != changed)
    text = broken(before, "".join(f"{line}\n" for line in lines), path).splitlines()
    assert "qw1" in text[opening + 1]
    assert len(text) == len(lines) + 1


@pytest.mark.parametrize(
    ("path", "before", "after", "last"),
    [
        ("a.js", "module.exports = a => a\n", "module.exports = a => a + 1\n", 'throw new Error("qw1");'),
        ("a.c", "int a;\n", "int b;\n", ")(qw1"),
        ("a.rb", "def a\n  1\nend\n", "def a\n  2\nend\n", ")(qw1"),
    ],
)
def test_a_file_whose_functions_are_not_understood_cannot_be_used(
    path: str, before: str, after: str, last: str
) -> None:
    assert broken(before, after, path).splitlines()[-1] == last


def test_a_script_fails_at_its_start() -> None:
    text = broken("#!/bin/sh\necho 1\n", "#!/bin/sh\necho 2\n", "a.sh")
    assert text == '#!/bin/sh\necho "qw1" >&2; exit 97\necho 2\n'


def test_lines_that_are_gone_stand_for_the_line_behind_them() -> None:
    assert find_changed_lines(ChangedTexts(path="a", before="a\nb\nc\n", after="a\nc\n")) == {2}


def test_each_function_raises_where_only_tests_changed() -> None:
    text = break_functions("a.py", PYTHON)
    assert text is not None
    assert text.count("raise RuntimeError") == 2
    assert break_functions("a.py", "A = 1\n") is None
