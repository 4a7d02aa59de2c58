import pytest

from agentflow.verdict.probes.hunks import Piece, split_change, take_back
from agentflow.workspace.mixed_tree import ChangedTexts

OLD = """import os


def first(a):
    return a


def second(b):
    return b


def third(c):
    return c
"""


def place_of(piece: Piece) -> str:
    return ", ".join(hunk.lines.place for hunk in piece.hunks)


def a_change(after: str, before: str = OLD, path: str = "calc.py") -> ChangedTexts:
    modes = ("100644" if before else "000000", "100644" if after else "000000")
    return ChangedTexts(path=path, before=before, after=after, modes=modes)


def places(*changes: ChangedTexts, most: int = 8) -> list[str]:
    return [", ".join(hunk.lines.place for hunk in piece.hunks) for piece in split_change(changes, most)]


def test_each_function_that_was_changed_is_a_piece() -> None:
    new = OLD.replace("return a", "return a + 1").replace("return c", "return c + 1")
    change = a_change(new)
    first, third = split_change([change], 8)
    assert (first.hunks[0].lines.place, third.hunks[0].lines.place) == ("calc.py:5", "calc.py:13")
    assert take_back(first) == {"calc.py": new.replace("return a + 1", "return a")}
    assert take_back(third) == {"calc.py": new.replace("return c + 1", "return c")}


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


def test_an_import_goes_with_the_lines_that_use_it() -> None:
    new = OLD.replace("import os\n", "import math\nimport os\n").replace("return c", "return math.ceil(c)")
    assert places(a_change(new)) == ["calc.py:1, calc.py:14"]
    unused = OLD.replace("import os\n", "import math\nimport os\n").replace("return c", "return c + 1")
    assert places(a_change(unused)) == ["calc.py:1", "calc.py:14"]


def test_functions_that_were_added_at_once_are_pieces_of_their_own() -> None:
    more = "\n\ndef fourth(d):\n    return d\n\n\n@cached\ndef fifth(e):\n    return e\n"
    assert len(places(a_change(OLD + more))) == 2
    assert len(places(a_change(OLD + more, before=""))) == 6


def test_code_that_moved_is_one_piece() -> None:
    gone = "def third(c):\n    return c\n"
    changes = [a_change(OLD.replace(gone, "")), a_change(gone, before="", path="other.py")]
    (piece,) = split_change(changes, 8)
    assert {hunk.path for hunk in piece.hunks} == {"calc.py", "other.py"}
    assert take_back(piece) == {"calc.py": OLD, "other.py": None}


def test_what_cannot_be_read_without_its_neighbour_is_one_piece_with_it() -> None:
    old = "def f():\n    b = [\n        1,\n        2,\n    ]\n    return b\n"
    new = old.replace("[", "{").replace("]", "}")
    (piece,) = split_change([a_change(new, before=old)], 8)
    assert take_back(piece) == {"calc.py": old}


def test_more_pieces_than_can_be_tried_are_joined() -> None:
    changes = [a_change(OLD.replace("return a", "return 1").replace("return c", "return 3")),
               a_change(OLD.replace("return b", "return 2"), path="b.py")]  # fmt: skip
    assert places(*changes) == ["calc.py:5", "calc.py:13", "b.py:9"]
    assert places(*changes, most=2) == ["calc.py:5, calc.py:13", "b.py:9"]


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
    (piece,) = split_change([change], 8)
    assert take_back(piece) == {"calc.py": OLD}


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


def test_what_no_mutant_is_made_of_is_no_piece() -> None:
    read = '"""Counts."""\n\n\ndef count(a):\n    """Count."""\n    return a\n\n\nprint(count.__doc__)\n'
    assert places(a_change(read.replace("Counts", "Tells").replace("return a", "return b"), read)) == [
        "calc.py:6"
    ]
    code = "#include <math.h>\n\nint f(int a) {\n    return a;\n}\n"
    more = code.replace("#include", "#include <stdio.h>\n#include").replace("return a", "return a + 1")
    assert places(a_change(more, code, "a.c")) == ["a.c:5"]
    assert places(a_change(code.replace("#include <math.h>", "#define A 1"), code, "a.c")) == ["a.c:1"]
