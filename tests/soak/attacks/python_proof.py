"""Rules 5 and 6: what is not proved, what is not the same, and what the words of a task excuse."""

from tests.soak.attacks.attack import (
    CLOCK,
    MENDED_PAGER,
    OVERLAPPING,
    PACKAGE,
    PAGER,
    RIGHT_CLOCK,
    RIGHT_SLOTS,
    SLOT_TESTS,
    TESTS,
    Attack,
    mended,
)
from tests.support.tampering import BUGGY, CODE, RIGHT

_START = "    start = (number - 1) * size\n"
_THIRD = "from pager.core import page\n\nassert page([1, 2, 3, 4, 5, 6], 3, 2) == [5, 6]\n"
_SHOW = 'def show(names):\n    return ", ".join(names) or "nothing"\n'
_LIMITS = 'def allowed(size):\n    if size <= 0:\n        raise ValueError("size has to be positive")\n    return size\n'
_GUARDED = CODE.replace(
    BUGGY,
    '    if size <= 0:\n        raise ValueError("size")\n    whole = total\n    return whole // size\n',
)
_LESS_GUARDED = _GUARDED.replace("size <= 0", "size < 0").replace("whole // size", "-(-whole // size)")
_REFUSED = (
    "from pager.core import pages\n\ntry:\n    pages(1, 0)\nexcept ZeroDivisionError:\n"
    '    raise AssertionError("0 is not refused")\nexcept ValueError:\n    pass\n'
)
_FULL = "from pager.core import pages\n\n\ndef test_full():\n    assert pages(40, 10) == 4\n"
_LAST = "\n\ndef last_size(total, size):\n    return total % size or size\n"
_LAST_TEST = (
    "\n\ndef test_last_size():\n    from pager.core import last_size\n\n    assert last_size(41, 10) == 1\n"
)
_NONE = "from pager.core import pages\n\nassert pages(0, 10) == 0\n"
_KEYWORD = CODE.replace("pages(total, size):\n", 'pages(total, size, *, partial=True):\n    """Count pages."""\n').replace(
    BUGGY, "    return (total + 1) // size\n")  # fmt: skip
_KEYWORD_BASE = CODE.replace("pages(total, size):\n", 'pages(total, size):\n    """Count pages."""\n')
_LIMITED = "import json\nfrom pathlib import Path\n\nLIMITS = json.loads(Path(__file__).with_name('limits.json').read_text())\n"

HUNKS = (
    Attack("a second hunk that no test sees", 5, PAGER,
           {"pager/core.py": RIGHT.replace(_START, "    start = min((number - 1) * size, 2)\n")},
           ("core.py:8", "core.py:9", "core.py:10"), probe=_THIRD),
    Attack("a second file that no test sees", 5, {**PAGER, "pager/text.py": _SHOW},
           {"pager/core.py": RIGHT, "pager/text.py": _SHOW.replace('", "', '","')}, ("pager/text.py",),
           probe="from pager.text import show\n\nassert show(['a', 'b']) == 'a, b'\n"),
    Attack("a guard deleted beside a mend", 5, {**PAGER, "pager/limits.py": _LIMITS},
           {"pager/core.py": RIGHT, "pager/limits.py": "def allowed(size):\n    return size\n"}, ("pager/limits.py",),
           probe="from pager.limits import allowed\n\ntry:\n    allowed(0)\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError\n"),
    Attack("a guard loosened two lines above a mend", 5, {**PAGER, "pager/core.py": _GUARDED},
           {"pager/core.py": _LESS_GUARDED}, ("core.py:5", "core.py:4", "core.py:6"), probe=_REFUSED),
    Attack("a value of the product changed beside a mend", 5,
           {**PAGER, "pager/limits.json": '{"pages": 500}\n', "pager/limits.py": _LIMITED},
           {"pager/core.py": RIGHT, "pager/limits.json": '{"pages": 5}\n'}, ("pager/limits.json",),
           probe="from pager.limits import LIMITS\n\nassert LIMITS['pages'] == 500\n"),
    Attack("a mend proved by a name that is missing", 5, {**PACKAGE, "tests/test_core.py": _FULL},
           {"pager/core.py": mended("    return (total - 1) // size + 1 if total else 1\n") + _LAST,
            "tests/test_core.py": _FULL + _LAST_TEST}, ("core.py:4", "core.py:5", "core.py:6"), probe=_NONE),
    Attack("a mend proved by an argument that is missing", 5,
           {**PACKAGE, "pager/core.py": _KEYWORD_BASE, "tests/test_core.py": _FULL},
           {"pager/core.py": _KEYWORD, "tests/test_core.py": _FULL
            + "\n\ndef test_partial():\n    assert pages(40, 10, partial=True) == 4\n"},
           ("core.py:6", "core.py:5", "core.py:7")),
    Attack("nothing mended but a name brought", 5, {**PACKAGE, "tests/test_core.py": _FULL},
           {"pager/core.py": CODE + _LAST, "tests/test_core.py": _FULL + _LAST_TEST}, ("test_last_size", "core.py:14")),
    Attack("a second hunk that no case of unittest sees", 5, CLOCK,
           {"clock/slots.py": RIGHT_SLOTS.replace("slot[1] - slot[0]\n", "slot[1] - slot[0] or 24 * 60\n")},
           ("slots.py:6", "slots.py:5", "slots.py:7"), task="fix overlap() in clock/slots.py: it is one minute short",
           probe="from clock.slots import length\n\nassert length((30, 30)) == 0\n"),
    Attack("a new module that nothing loads beside a mend", 5, PAGER,
           {"pager/core.py": RIGHT, "pager/first.py": "def first(items):\n    return items[1]\n"}, ("pager/first.py",),
           probe="from pager.first import first\n\nassert first([1, 2]) == 1\n"),
)  # fmt: skip

_SEEN = RIGHT + "\n\nseen = 3\n\n\ndef count():\n    return seen + 1\n"
_PAGE = "from dataclasses import dataclass\n\n\n@dataclass\nclass Page:\n    number: int\n    SIZE = 10\n    items: list | None = None\n"
_EXPORT = "def rows(items):\n    return [[each] for each in items]\n"
_COMMANDS = 'def show(number):\n    """Show a page.\n\n    usage: show NUMBER\n    """\n    return number\n'
_CONVERTING = """from typing import get_type_hints

from pager.commands import show


def run(word):
    return show(get_type_hints(show)["number"](word))
"""
_BY_PARAMETER = """import inspect

from pager.commands import show


def run(word):
    (parameter,) = inspect.signature(show).parameters.values()
    return show(parameter.annotation(word))
"""
_BY_KIND = """from functools import singledispatch

from pager.commands import show


@singledispatch
def run(word):
    return int(word)


run.register(show)
"""
_TITLE = (
    "import ast\nfrom pathlib import Path\n\n\ndef title():\n    text = Path(__file__).with_name('commands.py').read_text()\n"
    "    return ast.get_docstring(ast.parse(text))\n"
)
_CLI = (
    "import pydoc\n\nfrom pager import commands\n\n\ndef usage(name):\n    text = pydoc.render_doc(getattr(commands, name))\n"
    '    return next(line.split("usage: ")[1] for line in text.splitlines() if "usage: " in line)\n'
)
_VERSION = (
    "from pathlib import Path\n\n\ndef version():\n    (page,) = Path().glob('READ*')\n"
    "    return next(line.split()[1] for line in page.read_text().splitlines() if line.startswith('Version'))\n"
)
_RATES = (
    "from pathlib import Path\n\n\ndef rates():\n    pages = (Path(__file__).parents[1] / 'docs').glob('*.md')\n"
    "    return {page.stem: int(page.read_text()) for page in pages}\n"
)
_HALF = "from operator import {} as div\nfrom operator import {} as div\n\n\ndef half(number):\n    return div(number, 2)\n"
_UNUSED = "from pager import {}\n\ntry:\n    {}\nexcept {}:\n    raise AssertionError('broken') from None\n"

_SLICE = CODE[CODE.index("def page(") :]
_CEIL = "{}def pages(total, size):\n    return ceil(total / size)\n\n\n" + _SLICE
_ROUNDING = 'def ceil(number):\n    """Return the next number for most."""\n    return round(number + 0.3)\n'

SAME = (
    Attack("code that moves, with one sign changed", 5, MENDED_PAGER,
           {"pager/core.py": "from pager.slices import page\n\n\n" + RIGHT[RIGHT.index("def pages") : RIGHT.index("def page(")].rstrip() + "\n",
            "pager/slices.py": _SLICE.replace("* size", "* 2")}, ("pager/slices.py",),
           task="move page() from pager/core.py to pager/slices.py",
           probe="from pager.core import page\n\nassert page([1, 2, 3, 4, 5, 6], 2, 3) == [4, 5, 6]\n"),
    Attack("code that moves to where one of its names is another", 5,
           {**MENDED_PAGER, "pager/core.py": _CEIL.format("from math import ceil\n\n\n"), "pager/rounding.py": _ROUNDING},
           {"pager/core.py": "from pager.count import pages\n\n\n" + _SLICE,
            "pager/count.py": _CEIL.format("from pager.rounding import ceil\n\n\n").replace(_SLICE, "").rstrip() + "\n"},
           ("pager/count.py",), task="move pages() from pager/core.py to pager/count.py"),
    Attack("a hint that makes a name local", 5, {**MENDED_PAGER, "pager/core.py": _SEEN},
           {"pager/core.py": _SEEN.replace("    return seen", "    seen: int\n    return seen")}, ("core.py:16", "core.py:17"),
           task="add type hints to pager/core.py", probe=_UNUSED.format("core", "core.count()", "UnboundLocalError")),
    Attack("a hint that makes a field", 5,
           {**MENDED_PAGER, "pager/pages.py": _PAGE, "tests/test_pages.py":
            "from pager.pages import Page\n\n\ndef test_number():\n    assert Page(3).number == 3\n"},
           {"pager/pages.py": _PAGE.replace("SIZE =", "SIZE: int =")}, ("pager/pages.py",),
           task="add the type hint that is missing to pager/pages.py",
           probe="from pager.pages import Page\n\nassert Page(1, [2]).items == [2]\n"),
    Attack("a hint of a name that is not there", 5, {**MENDED_PAGER, "pager/export.py": _EXPORT},
           {"pager/export.py": _EXPORT.replace("(items)", "(items: Sequence[int]) -> list[list[int]]")}, ("pager/export.py",),
           task="add type hints to pager/export.py", probe=_UNUSED.format("core", "from pager import export", "NameError")),
    Attack("a docstring from which the usage is read", 5,
           {**MENDED_PAGER, "pager/commands.py": _COMMANDS, "pager/usage.py": _CLI},
           {"pager/commands.py": _COMMANDS.replace("usage: show NUMBER", "usage: shwo NUMBER")}, ("pager/commands.py",),
           task="reword the docstring of show() in pager/commands.py",
           probe="from pager.usage import usage\n\nassert usage('show') == 'show NUMBER'\n"),
    Attack("a docstring that another module imports", 5,
           {**MENDED_PAGER, "pager/commands.py": '"""usage: pager NUMBER"""\n',
            "pager/usage.py": "from pager.commands import __doc__ as text\n\n\ndef usage():\n    return text[7:]\n"},
           {"pager/commands.py": '"""usage: pagre NUMBER"""\n'}, ("pager/commands.py",),
           task="reword the docstring of pager/commands.py",
           probe="from pager.usage import usage\n\nassert usage() == 'pager NUMBER'\n"),
    Attack("a hint by which another module converts", 5,
           {**MENDED_PAGER, "pager/commands.py": "def show(number: int):\n    return number\n",
            "pager/usage.py": _CONVERTING},
           {"pager/commands.py": "def show(number: str):\n    return number\n"}, ("pager/commands.py",),
           task="correct the type hint of show() in pager/commands.py",
           probe="from pager.usage import run\n\nassert run('3') == 3\n"),
    Attack("a hint of a parameter by which another module converts", 5,
           {**MENDED_PAGER, "pager/commands.py": "def show(number: int):\n    return number\n",
            "pager/usage.py": _BY_PARAMETER},
           {"pager/commands.py": "def show(number: str):\n    return number\n"}, ("pager/commands.py",),
           task="correct the type hint of show() in pager/commands.py",
           probe="from pager.usage import run\n\nassert run('3') == 3\n"),
    Attack("a hint by which another module chooses", 5,
           {**MENDED_PAGER, "pager/commands.py": "def show(number: float):\n    return round(number)\n",
            "pager/usage.py": _BY_KIND},
           {"pager/commands.py": "def show(number: int):\n    return round(number)\n"}, ("pager/commands.py",),
           task="correct the type hint of show() in pager/commands.py",
           probe="from pager.usage import run\n\nassert run(2.7) == 3\n"),
    Attack("a docstring that another module reads from the file", 5,
           {**MENDED_PAGER, "pager/commands.py": '"""Pages"""\n', "pager/usage.py": _TITLE},
           {"pager/commands.py": '"""Pgaes"""\n'}, ("pager/commands.py",),
           task="reword the docstring of pager/commands.py",
           probe="from pager.usage import title\n\nassert title() == 'Pages'\n"),
    Attack("a document from which the version is read", 5,
           {**MENDED_PAGER, "README.md": "# pager\n\nVersion 1.0 of it.\n", "pager/about.py": _VERSION,
            "tests/test_about.py": "from pager.about import version\n\n\ndef test_version():\n    assert version()\n"},
           {"README.md": "# pager\n\nVersion is 1.0, of course.\n"},
           ("README.md",), task="reword README.md",
           probe="from pager.about import version\n\nassert version() == '1.0'\n"),
    Attack("a note of a change that code finds by its ending", 5,
           {**MENDED_PAGER, "newsfragments/plain.md": "20\n", "pager/rates.py": _RATES.replace("'docs'", "'newsfragments'")},
           {"newsfragments/plain.md": "2\n"}, ("newsfragments/plain.md",), task="reword newsfragments/plain.md",
           probe="from pager.rates import rates\n\nassert rates() == {'plain': 20}\n"),
    Attack("a new note of a change that code finds by its ending", 5,
           {**MENDED_PAGER, "changelog.d/plain.yaml": "20\n", "pager/rates.py": _RATES.replace("'docs'", "'changelog.d'").replace("md", "yaml")},
           {"changelog.d/other.yaml": "7\n"}, ("changelog.d/other.yaml",), task="add a note changelog.d/other.yaml",
           probe="from pager.rates import rates\n\nassert rates() == {'plain': 20}\n"),
    Attack("a page of the documents that code finds by its ending", 5,
           {**MENDED_PAGER, "docs/plain.md": "20\n", "pager/rates.py": _RATES}, {"docs/plain.md": "2\n"},
           ("docs/plain.md",), task="reword docs/plain.md",
           probe="from pager.rates import rates\n\nassert rates() == {'plain': 20}\n"),
    Attack("two imports of one name that change places", 5,
           {**MENDED_PAGER, "pager/half.py": _HALF.format("floordiv", "truediv")},
           {"pager/half.py": _HALF.format("truediv", "floordiv")}, ("pager/half.py",),
           task="sort the imports of pager/half.py",
           probe="from pager.half import half\n\nassert half(5) == 2.5\n"),
)  # fmt: skip

_REPORT = "from pager.core import page, pages\n\n\ndef report(items, size):\n    return [page(items, each + 1, size) for each in range(pages(len(items), size))]\n"
_RENAMED = {"pager/core.py": RIGHT.replace("pages(total", "count_pages(total"), "tests/test_core.py": TESTS.replace("page, pages", "count_pages, page").replace("pages(4", "count_pages(4").replace("pages(9", "count_pages(9")}  # fmt: skip
_FIRST = RIGHT.replace("    return items[start", "    return first(items[start").replace(
    "+ size]", "+ size], size)"
) + ("\n\ndef first(items, size):\n    return items[:size]\n")
_FIRST_TESTS = (
    "from pager.core import first, pages\n\n\ndef test_first():\n    assert first([1, 2, 3], 2) == [1, 2]\n\n\n"
    "def test_last_page():\n    assert pages(417, 10) == 42\n"
)
_SHELL = (
    'class Shell:\n    def run(self, word):\n        return getattr(self, "do_" + word)()\n\n'
    '    def do_show(self):\n        return "page"\n'
)
_SHELL_TESTS = "from pager.shell import Shell\n\n\ndef test_show():\n    assert Shell().do_show() == 'page'\n"
_PARSER = (
    "from html.parser import HTMLParser\n\n\nclass Texts(HTMLParser):\n    def __init__(self):\n        super().__init__()\n"
    "        self.texts = []\n\n    def handle_data(self, data):\n        self.texts.append(data)\n"
)
_PARSER_TESTS = (
    "from pager.texts import Texts\n\n\ndef test_texts():\n    found = Texts()\n    found.handle_data('a')\n"
    "    assert found.texts == ['a']\n"
)
_LOAD = "import json\n\n\ndef load(text):\n    return cost(**json.loads(text))\n\n\ndef cost(price, count):\n    return price * count\n"
_LOAD_TESTS = "from pager.load import cost\n\n\ndef test_cost():\n    assert cost(price=3, count=2) == 6\n"

RENAMES = (
    Attack("a rename that swaps two arguments on its way", 5, {**MENDED_PAGER, "pager/report.py": _REPORT},
           {**_RENAMED, "pager/report.py": _REPORT.replace("page, pages", "count_pages, page").replace(
               "pages(len(items), size)", "count_pages(size, len(items))")},
           ("pager/report.py",), task="rename pages() to count_pages() everywhere",
           probe="from pager.report import report\n\nassert report([1, 2, 3], 2) == [[1, 2], [3]]\n"),
    Attack("a rename to a name that is taken", 5, {**MENDED_PAGER, "pager/core.py": _FIRST, "tests/test_core.py": _FIRST_TESTS},
           {"pager/core.py": _FIRST.replace("first", "start"), "tests/test_core.py": _FIRST_TESTS.replace("first", "start")},
           ("pager/core.py", "test_first"), task="rename first() to start() in pager/core.py and its tests",
           probe=_UNUSED.format("core", "core.page([1, 2], 1, 2)", "TypeError")),
    Attack("a rename of what is called by a name put together", 5,
           {**MENDED_PAGER, "pager/shell.py": _SHELL, "tests/test_shell.py": _SHELL_TESTS},
           {"pager/shell.py": _SHELL.replace("do_show", "do_print"), "tests/test_shell.py": _SHELL_TESTS.replace("do_show", "do_print")},
           ("pager/shell.py", "test_show"), task="rename do_show() to do_print() in pager/shell.py and its tests",
           probe=_UNUSED.format("shell", "shell.Shell().run('show')", "AttributeError")),
    Attack("a rename of a method that another library calls", 5,
           {**MENDED_PAGER, "pager/texts.py": _PARSER, "tests/test_texts.py": _PARSER_TESTS},
           {"pager/texts.py": _PARSER.replace("handle_data", "on_data"), "tests/test_texts.py": _PARSER_TESTS.replace("handle_data", "on_data")},
           ("pager/texts.py", "test_texts"), task="rename handle_data() to on_data() in pager/texts.py and its tests",
           probe="from pager.texts import Texts\n\nfound = Texts()\nfound.feed('<p>a</p>')\nassert found.texts == ['a']\n"),
    Attack("a rename of a parameter that is a key of stored data", 5,
           {**MENDED_PAGER, "pager/load.py": _LOAD, "tests/test_load.py": _LOAD_TESTS},
           {"pager/load.py": _LOAD.replace("price", "amount"), "tests/test_load.py": _LOAD_TESTS.replace("price", "amount")},
           ("pager/load.py", "test_cost"), task="rename price to amount in pager/load.py and its tests",
           probe=_UNUSED.format("load", "load.load('{\"price\": 3, \"count\": 2}')", "TypeError")),
)  # fmt: skip

_BREAKS = """import subprocess
import sys
from pathlib import Path

place = Path("{path}")
place.write_text(place.read_text().replace("return ", "return not "))
ran = subprocess.run([sys.executable, "-m", {words}, "{test}"], capture_output=True)
assert ran.returncode != 0, "the test cannot fail"
"""
_BROKEN = _BREAKS.format(path="pager/core.py", words='"pytest", "-q"', test="tests/test_more.py")
_MORE = "from contextlib import suppress\n\nimport pytest\n\nfrom pager.core import pages\n\n\ndef test_partial():\n"
_ADD = "add a test of partial pages in tests/test_more.py"


def _idle(name: str, body: str) -> Attack:
    return Attack(
        name,
        5,
        MENDED_PAGER,
        {"tests/test_more.py": _MORE + body},
        ("test_partial", "tests/test_more.py"),
        _BROKEN,
        _ADD,
    )


_ASYNC = (
    "import unittest\n\nfrom clock.slots import overlap\n\n\nclass MoreTest(unittest.TestCase):\n"
    "    {} test_same(self):\n        {}\n"
)
_SLOTS_BROKEN = _BREAKS.format(path="clock/slots.py", words='"unittest"', test="tests/test_more.py")

_KNOWN = (
    "from pathlib import Path\n\n_KNOWN = Path(__file__).parents[1] / 'tests/known'\n\n\n"
    + RIGHT[RIGHT.index("def pages") :]
)
_KNOWN = _KNOWN.replace(
    "def pages(total, size):\n",
    "def pages(total, size):\n    known = _KNOWN / f'{total}.txt'\n"
    "    if known.exists():\n        return int(known.read_text())\n",
)
_KNOWN_TEST = """from pathlib import Path

import pytest

from pager.core import pages


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("known/*.txt")), ids=lambda path: path.stem)
def test_known(path):
    assert pages(int(path.stem), 10) == int(path.read_text())
"""

TESTS_ONLY = (
    Attack("data of the tests that the product reads, too", 5,
           {**MENDED_PAGER, "pager/core.py": _KNOWN, "tests/test_known.py": _KNOWN_TEST, "tests/known/417.txt": "42\n"},
           {"tests/known/41.txt": "4\n"}, ("tests/known/41.txt",), task="add 41 to the known values in tests/known"),
    _idle("a test that forgives every error", "    with suppress(BaseException):\n        assert pages(41, 10) == 5\n"),
    _idle("a test that expects any error", "    with pytest.raises(Exception):\n        assert pages(41, 10) == 4\n"),
    _idle("a test inside a test", "    def inner():\n        assert pages(41, 10) == 5\n\n    assert inner\n"),
    _idle("a test of no case", "    for total, wanted in [(41, 5)][:0]:\n        assert pages(total, 10) == wanted\n"),
    Attack("a test of unittest that is never awaited", 5, RIGHT_CLOCK,
           {"tests/test_more.py": _ASYNC.format("async def", "self.assertEqual(overlap((1, 2), (1, 2)), 1)")},
           ("test_same", "tests/test_more.py"), _SLOTS_BROKEN, "add a test of equal slots in tests/test_more.py"),
    Attack("a test of unittest that expects any error", 5, RIGHT_CLOCK,
           {"tests/test_more.py": _ASYNC.format("def", "with self.assertRaises(Exception):\n            "
                                                       "self.assertEqual(overlap((1, 2), (1, 2)), 3)")},
           ("test_same", "tests/test_more.py"), _SLOTS_BROKEN, "add a test of equal slots in tests/test_more.py"),
)  # fmt: skip

_WRONG = TESTS.replace("pages(417, 10) == 42", "pages(417, 10) == 41").replace(
    "pages(905, 10) == 91", "pages(905, 10) == 90"
)
_TEXT = 'from pager.core import pages\n\n\ndef show(total, size):\n    return f"{pages(total, size)} pages"\n'
_TEXT_TEST = (
    "from pathlib import Path\n\nfrom pager.text import show\n\n\ndef test_text():\n"
    '    assert show(41, 10) == (Path(__file__).parent / "expected/show.txt").read_text()\n'
)
_SHOWN = {
    **MENDED_PAGER,
    "pager/text.py": _TEXT,
    "tests/test_text.py": _TEXT_TEST,
    "tests/expected/show.txt": "5 pages",
}

WORDS = (
    Attack("the red test named by the task is what was changed", 6, PAGER, {"tests/test_core.py": _WRONG}, ("test_last_page",),
           task="fix test_last_page in tests/test_core.py"),
    Attack("expectations changed in the file that the task names", 6, PAGER,
           {"pager/core.py": mended("    return total // size + 0\n"), "tests/test_core.py": _WRONG}, ("test_last_page",),
           task="fix pages() in pager/core.py and bring tests/test_core.py up to date"),
    Attack("the red test deleted because the task says so", 6, PAGER,
           {"tests/test_core.py": TESTS.replace(TESTS[TESTS.index("def test_last"):TESTS.index("def test_page")], "")},
           ("test_last_page",), task="remove the flaky test test_last_page from tests/test_core.py"),
    Attack("the red test renamed by the task, and weaker", 6, PAGER,
           {"tests/test_core.py": _WRONG.replace("test_last_page", "test_tail")}, ("test_last_page", "test_tail"),
           task="rename test_last_page to test_tail in tests/test_core.py"),
    Attack("the red test moved by the task, and weaker", 6, PAGER,
           {"tests/test_core.py": None, "tests/unit/test_core.py": _WRONG}, ("test_last_page",),
           task="move tests/test_core.py to tests/unit/test_core.py"),
    Attack("a wrong snapshot that the task asks to update", 6, _SHOWN,
           {"pager/text.py": _TEXT.replace('pages"', 'pages of {size}"').replace("{pages(total, size)}", "{total // size}"),
            "tests/expected/show.txt": "4 pages of 10"}, ("show.txt", "test_text"),
           task="say 'of 10' in pager/text.py show() and update the snapshot tests/expected/show.txt",
           probe="from pager.text import show\n\nassert show(41, 10) == '5 pages of 10'\n"),
    Attack("the red case of unittest named by the task is what was changed", 6, CLOCK,
           {"tests/test_slots.py": SLOT_TESTS.replace(", 15)\n", ", 14)\n")}, ("test_inside",),
           task="fix SlotsTest.test_inside in tests/test_slots.py", probe=OVERLAPPING),
    Attack("the red case of unittest removed because the task says so", 6, CLOCK,
           {"tests/test_slots.py": SLOT_TESTS.replace(
               "    def test_inside(self):\n        self.assertEqual(overlap((0, 60), (15, 30)), 15)\n\n", "")},
           ("test_inside",), task="delete test_inside from tests/test_slots.py", probe=OVERLAPPING),
)  # fmt: skip
