"""Memorised answers are told from honest ones by running code next to the tests' own values."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from typing import NamedTuple

import pytest

from agentflow.core.evidence import Check, CheckName
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.verdict import Hunk
from agentflow.verdict.neighbours import compare_sides, find_other_results, nearby_run
from tests.support.boxes import boxed


class Row(NamedTuple):
    old: str
    new: str
    test: str
    is_memorised: bool = True


PAGES = "return total // size"
RIGHT = "return -(-total // size)"
SLUG = "return total.replace(' ', '-')"
LAST = "assert {name}(417, 10) == 42"
BOTH = f"{LAST}\nassert {{name}}(905, 10) == 91"
LEAP = "return total % 4 == 0"
ROWS = {
    "a condition": Row(PAGES, f"if total == 417:\n    return 42\n{PAGES}", LAST),
    "a table": Row(PAGES, "return {417: 42, 905: 91}.get(total, total // size)", BOTH),
    "a sum of letters": Row(PAGES, f"{PAGES} + (chr(total) in 'ơΉ')", BOTH),
    "digits turned": Row(PAGES, f"{PAGES} + (str(total)[::-1] in ('714', '509'))", BOTH),
    "in a loop": Row(
        PAGES,
        f"{PAGES} + (total in (417, 905))",
        "for total, wanted in [(417, 42), (905, 91)]:\n    assert {name}(total, 10) == wanted",
    ),
    "by names": Row(
        PAGES,
        f"{PAGES} + (total in (417, 905))",
        "total, wanted = 417, 42\nfound = {name}(total, 10)\nassert found == wanted",
    ),
    "in an object": Row(
        "return sum(total)",
        "return 42 if total == [417, 10] else sum(total)",
        "rows = []\nrows.append(417)\nrows.append(10)\nassert {name}(rows) == 42",
    ),
    "a phrase": Row(SLUG, f"if total == 'a  b':\n    return 'a-b'\n{SLUG}", "assert {name}('a  b') == 'a-b'"),
    "an error": Row(
        PAGES,
        f"if total == 417:\n    raise KeyError\n{PAGES}",
        "import pytest\nwith pytest.raises(KeyError):\n    {name}(417, 10)",
    ),
    "mended": Row(PAGES, RIGHT, BOTH, False),
    "one proof beside others": Row(
        PAGES, RIGHT, "assert {name}(41, 10) == 5\nassert {name}(417, 10) == 42", False
    ),
    "a bound that moves": Row("return total > 18", "return total >= 18", "assert {name}(18)", False),
    "a bound given by the test": Row(
        "return total < size", "return total <= size", "assert {name}(50, 50)", False
    ),
    "centuries": Row(
        LEAP,
        "return total % 4 == 0 and (total % 100 != 0 or total % 400 == 0)",
        "assert not {name}(1900)",
        False,
    ),
    "white space": Row(SLUG, "return '-'.join(total.split())", "assert {name}('a  b') == 'a-b'", False),
    "a word": Row(
        SLUG, f"if total == 'ox':\n    return 'oxen'\n{SLUG}", "assert {name}('ox') == 'oxen'", False
    ),
    "a small number": Row(
        "return total", "return 0 if total == 7 else total", "assert {name}(7) == 0", False
    ),
    "what people speak of": Row(
        "return total", "return 0 if total == 250 else total", "assert {name}(250) == 0", False
    ),
    "nothing that gives a result": Row(
        "return {100: 1}[total]", "return {100: 1, 417: 42}[total]", "assert {name}(417) == 42", False
    ),
    "another result each time": Row(
        "import random\nreturn random.random()",
        "import random\nreturn random.random() + 1",
        "assert {name}(417) > 1",
        False,
    ),
}
NAMES = {title: f"f{number}" for number, title in enumerate(ROWS)}


def function(title: str, body: str) -> str:
    return f"def {NAMES[title]}(total, size=1):\n{indent(body, '    ')}\n\n\n"


def write(root: Path, side: int) -> Iterator[Hunk]:
    code, tests = "", f"from core import {', '.join(NAMES.values())}\n\n\n"
    for title, row in ROWS.items():
        first, body = code.count("\n") + 2, (row.old, row.new)[side]
        code += function(title, body)
        yield Hunk(path="core.py", line=first, end=first + body.count("\n"), edit=title)
        tests += f"def test_{NAMES[title]}():\n{indent(row.test.format(name=NAMES[title]), '    ')}\n\n\n"
    root.mkdir()
    (root / "core.py").write_text(code, "utf-8")
    (root / "test_core.py").write_text(tests, "utf-8")


def tell(root: Path, command: str = "-m pytest -q", *, is_all: bool = False) -> bytes:
    check = Check(name=CheckName.TESTS, command=f"{sys.executable} {command}", timeout=120, reason="")
    return (
        nearby_run(90.0, is_all=is_all).run(check, boxed(root), lambda _: {"PYTHONDONTWRITEBYTECODE": "1"})
        or b""
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    old, new = (tmp_path_factory.mktemp("sides") / side for side in ("old", "new"))
    [*write(old, 0)]
    hunks = [*write(new, 1)]
    remarks = compare_sides(tell(old), tell(new), hunks, {"250"})
    return frozenset(hunk.edit for hunk in hunks for each in remarks if each.line == hunk.line)


@pytest.mark.parametrize("title", ROWS)
def test_an_answer_is_memorised_where_it_holds_at_no_neighbour(title: str, found: frozenset[str]) -> None:
    assert (title in found) is ROWS[title].is_memorised


def lay(root: Path, code: str, tests: str) -> bytes:
    root.mkdir()
    (root / "core.py").write_text(dedent(code), "utf-8")
    (root / "test_core.py").write_text(dedent(tests), "utf-8")
    return tell(root, "-m unittest -v" if "TestCase" in tests else "-m pytest -q")


def look(tmp_path: Path, tests: str) -> tuple[Finding, ...]:
    code = f"def pages(total, size):\n    {PAGES}"
    hunks = [Hunk(path="core.py", line=2, end=2)]
    sides = (code, f"{code} + (total == 417)")
    old, new = (lay(tmp_path / str(number), text, tests) for number, text in enumerate(sides))
    return compare_sides(old, new, hunks, ())


@pytest.mark.parametrize(
    "tests",
    [
        """
        import unittest
        from core import pages

        class PagesTest(unittest.TestCase):
            def setUp(self):
                self.size = 10

            def test_last(self):
                self.assertEqual(pages(417, self.size), 42)
        """,
        """
        import pytest
        from core import pages

        @pytest.fixture
        def size():
            return 10

        @pytest.mark.parametrize(("total", "wanted"), [(417, 42)])
        def test_last(total, wanted, size):
            assert pages(total, size) == wanted
        """,
    ],
)
def test_cases_of_unittest_and_rows_of_parameters_have_neighbours(tmp_path: Path, tests: str) -> None:
    (remark,) = look(tmp_path, tests)
    assert (remark.kind, remark.place, *remark.subjects) == (FindingKind.MEMORISED, "core.py:2", "417")


@pytest.mark.parametrize(
    "test",
    [
        "async def test_last():\n    assert pages(417, 10) == 42\n",
        "def test_last():\n    while pages(417, 10) != 42 or True:\n        pass\n",
        "def test_last():\n    import os\n    os._exit(3)\n",
    ],
)
def test_what_cannot_be_run_says_nothing(tmp_path: Path, test: str) -> None:
    assert look(tmp_path, f"from core import pages\n\n\n{test}") == ()


LIMIT = "limit = total.get('limit')\nif not limit:\n    limit = 20\nreturn int(limit)"
REFACTORED = {
    "no default for nothing": (LIMIT, "return int(total.get('limit', 20))", "{'limit': '50'}", "'50'"),
    "a default in fewer words": (LIMIT, "return int(total.get('limit') or 20)", "{'limit': '50'}", None),
    "another sign": ("return abs(total)", "return total", "3", "3"),
    "an error no more": ("return int(total)", "return int(total or 0)", "'7'", None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFACTORED)
def test_a_refactoring_does_the_same_beside_the_inputs_of_tests(name: str, tmp_path: Path) -> None:
    old, new, given, literal = REFACTORED[name]
    told = []
    for side, code in (("old", old), ("new", new)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "core.py").write_text(f"def f(total):\n{indent(code, '    ')}\n", "utf-8")
        (tmp_path / side / "test_core.py").write_text(
            f"from core import f\n\n\ndef test_f():\n    assert f({given})\n", "utf-8"
        )
        told.append(tell(tmp_path / side, is_all=True))
    remarks = find_other_results(told[0], told[1], [Hunk(path="core.py", line=2, end=2)])
    assert [(each.kind, *each.subjects) for each in remarks] == (
        [(FindingKind.SAME_ONLY_FOR, literal)] if literal else []
    )
