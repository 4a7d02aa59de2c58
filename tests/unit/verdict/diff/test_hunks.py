import pytest

from agentflow.core.finding import format_place
from agentflow.verdict.diff.hunks import LineSpan, drop_moved, split_change
from agentflow.workspace.mixed_tree import ChangedTexts

OLD = """import os


def first(a):
    return a


def second(b):
    return b


def third(c):
    return c
"""


def a_change(after: str, before: str = OLD, path: str = "calc.py") -> ChangedTexts:
    modes = ("100644" if before else "000000", "100644" if after else "000000")
    return ChangedTexts(path=path, before=before, after=after, modes=modes)


def place(hunk: LineSpan) -> str:
    return format_place(hunk.lines.path, hunk.lines.line, hunk.lines.end)


def places(*changes: ChangedTexts) -> list[str]:
    return [place(hunk) for hunk in split_change(changes)]


def test_each_function_that_was_changed_is_a_piece() -> None:
    new = OLD.replace("return a", "return a + 1").replace("return c", "return c + 1")
    change = a_change(new)
    first, third = split_change([change])
    assert (place(first), place(third)) == ("calc.py:5", "calc.py:13")
    assert first.take_back() == new.replace("return a + 1", "return a")
    assert third.take_back() == new.replace("return c + 1", "return c")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return b", "    # said\n    return b"),
        ("def second(b):", 'def second(b):\n    """Say it."""\n'),
        ("def second(b):", "def second(b: int) -> int:"),
        ("    return b", "    return (\n        b\n    )"),
    ],
)
def test_what_no_program_depends_on_is_no_piece(old: str, new: str) -> None:
    assert places(a_change(OLD.replace("return a", "return a + 1").replace(old, new))) == ["calc.py:5"]


def test_functions_that_were_added_at_once_are_pieces_of_their_own() -> None:
    more = "\n\ndef fourth(d):\n    return d\n\n\n@cached\ndef fifth(e):\n    return e\n"
    assert len(places(a_change(OLD + more))) == 2
    assert len(places(a_change(OLD + more, before=""))) == 6


def places_of_moved(*changes: ChangedTexts) -> list[str]:
    return [place(hunk) for hunk in drop_moved(split_change(changes))]


def test_code_that_moved_is_taken_back_where_it_is_now() -> None:
    gone = "def third(c):\n    return c\n"
    changes = [a_change(OLD.replace(gone, "")), a_change(gone, before="", path="other.py")]
    assert places_of_moved(*changes) == ["other.py:1-2"]
    assert len(places(*changes)) == 2  # a guard that went may stand elsewhere and guard nothing there


def test_what_c_declares_is_taken_back_where_it_is_defined() -> None:
    header = a_change("int f(int a);\nint g(int a);\n", before="int f(int a);\n", path="a.h")
    code = "int f(int a) {\n    return a;\n}\n"
    defined = a_change(f"{code}\nint g(int a) {{\n    return -a;\n}}\n", before=code, path="a.c")
    assert places_of_moved(header) == ["a.h:2"]
    assert places_of_moved(header, defined) == ["a.c:4-7"]


@pytest.mark.parametrize(
    ("line", "count"),
    [("// said", 1), ("", 1), ("//go:noinline", 2), ("// eslint-disable-line", 2), ("x()", 2)],
)
def test_comments_of_other_languages_are_no_piece_unless_a_program_obeys_them(line: str, count: int) -> None:
    old = "function a() {\n  return 1\n}\n\nfunction b() {\n  return 2\n}\n"
    new = old.replace("return 1", "return 3").replace("function b", f"{line}\nfunction b")
    assert len(places(a_change(new, before=old, path="a.js"))) == count


def test_a_file_that_is_gone_comes_back() -> None:
    change = a_change("", before=OLD)
    (hunk,) = split_change([change])
    assert hunk.take_back() == OLD


@pytest.mark.parametrize(
    ("gone", "is_piece"),
    [
        ("    found = []\n", False),
        ("    found: list = []\n", False),
        ("    found, other = [], 0\n", True),
        ("    found = check(b)\n", True),
        ("    b = 0\n", True),
        ("    b.append([])\n", True),
    ],
)
def test_a_plain_value_that_nothing_uses_any_more_is_no_piece(gone: str, is_piece: bool) -> None:
    old = OLD.replace("    return b\n", f"{gone}    print()\n    return b\n")
    new = OLD.replace("    return b\n", "    print()\n    return b + 1\n")
    assert places(a_change(new, old)) == (["calc.py:9", "calc.py:10"] if is_piece else ["calc.py:10"])


def test_a_version_is_no_piece_and_another_name_is_one() -> None:
    before = '__version__ = "1.0"\nLIMIT = "1.0"\n'
    assert places(a_change(before.replace('version__ = "1.0"', 'version__ = "1.1"'), before)) == []
    assert places(a_change(before.replace('LIMIT = "1.0"', 'LIMIT = "1.1"'), before)) == ["calc.py:2"]


def test_the_names_that_a_module_exports_are_no_piece() -> None:
    before = '__all__ = [\n    "first",\n    "second",\n]\n\n' + OLD
    after = before.replace('"second"', '"second", "third"').replace("return c", "return c + 1")
    assert places(a_change(after, before)) == ["calc.py:18"]


def test_what_no_mutant_is_made_of_is_no_piece() -> None:
    read = '"""Counts."""\n\n\ndef count(a):\n    """Count."""\n    return a\n\n\nprint(count.__doc__)\n'
    assert places(a_change(read.replace("Counts", "Tells").replace("return a", "return b"), read)) == [
        "calc.py:6"
    ]
    code = "#include <math.h>\n\nint f(int a) {\n    return a;\n}\n"
    more = code.replace("#include", "#include <stdio.h>\n#include").replace("return a", "return a + 1")
    assert places(a_change(more, code, "a.c")) == ["a.c:5"]
    assert places(a_change(code.replace("#include <math.h>", "#define A 1"), code, "a.c")) == ["a.c:1"]


def test_the_tests_in_a_source_of_rust_are_no_piece() -> None:
    code = "pub fn f(a: i32) -> i32 {\n    a\n}\n"
    one = "    #[test]\n    fn is_1() {\n        assert_eq!(super::f(1), 1);\n    }\n"
    two = one.replace("1", "2")
    head = "\n#[cfg(test)]\nmod tests {\n"
    before, after = f"{code}{head}{one}}}\n", f"{code}{head}{one}{two}}}\n"
    assert places(a_change(after, before=before, path="src/a.rs")) == []
    changed = after.replace("    a\n", "    a + 0\n")
    assert places(a_change(changed, before=before, path="src/a.rs")) == ["src/a.rs:2"]
