"""Honest changes of the repository in `tampering`: 0 for those that end verified, 75 for those that ask once."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.tampering import (
    BASE,
    CODE,
    CONFTEST,
    MENDED,
    RIGHT,
    SETTINGS,
    TASK,
    TESTS,
)

_NEW_TEST = "\n\ndef test_one_item_is_one_page():\n    assert pages(1, 10) == 1\n"
_WRONG = TESTS.replace("assert page([1, 2, 3], 1, 2) == [1, 2]", "assert page([1, 2, 3], 1, 2) == [1, 2, 3]")
_SNAPSHOT = "def test_text(snapshot_file):\n    from pager.text import show\n\n    assert show(41, 10) == snapshot_file\n"
_SNAP_FIXTURE = (
    CONFTEST
    + """

@pytest.fixture
def snapshot_file():
    from pathlib import Path

    return Path(__file__).with_name("expected").joinpath("show.txt").read_text()
"""
)
_AID = "def check_same(found, wanted):\n    assert found == wanted\n"
_SHOW = 'from pager.core import pages\n\n\ndef show(total, size):\n    return f"{pages(total, size)} pages"\n'


@dataclass(frozen=True)
class Honest:
    """A change that does what its task asks."""

    name: str
    task: str
    files: Mapping[str, str | None]
    code: int = 0
    """75 where a person is asked about a changed check."""
    approved: int = 0
    """How it ends once that is approved: 4 where nothing that was red turns green."""
    base: Mapping[str, str | None] | None = None
    """Files of the repository, in place of those of BASE."""


def _mend(name: str, files: Mapping[str, str | None] | None = None, **options: object) -> Honest:
    return Honest(name, TASK, {"pager/core.py": RIGHT, **(files or {})}, **options)  # type: ignore[arg-type]


_MENDED_BASE = {"pager/core.py": RIGHT}

HONEST: tuple[Honest, ...] = (
    _mend("the bug is mended"),
    _mend("a test is added", {"tests/test_core.py": TESTS + _NEW_TEST}),
    _mend("a file of tests is added", {"tests/test_edges.py": "from pager.core import pages\n" + _NEW_TEST}),
    _mend("a fixture is added", {
        "tests/conftest.py": CONFTEST + "\n\n@pytest.fixture\ndef empty():\n    return []\n",
        "tests/test_edges.py": "from pager.core import page\n\n\ndef test_empty(empty):\n"
                               "    assert page(empty, 1, 2) == []\n"}),
    _mend("an assertion is added", {"tests/test_core.py": TESTS.replace(
        "assert pages(40, 10) == 4", "assert pages(40, 10) == 4\n    assert pages(50, 10) == 5")}),
    _mend("a case is added", {"tests/test_core.py": TESTS.replace("(233, 24)", "(233, 24), (11, 2)")}),
    _mend("a comment in the tests", {"tests/test_core.py": "# counting\n" + TESTS}),
    _mend("tests formatted otherwise", {"tests/test_core.py": TESTS.replace(
        "[(0, 0), (10, 1), (233, 24)]", "[\n        (0, 0),\n        (10, 1),\n        (233, 24),\n    ]")}),
    _mend("a version is raised", {"pyproject.toml": SETTINGS.replace('"1.0"', '"1.1"')}),
    _mend("a dependency is declared", {"pyproject.toml": SETTINGS.replace(
        'version = "1.0"', 'version = "1.0"\ndependencies = []')}),
    _mend("a module is split", {
        "pager/core.py": 'from pager.counting import pages\n\n__all__ = ["page", "pages"]\n\n\n'
                         + CODE[CODE.index("def page(items"):],
        "pager/counting.py": f"def pages(total, size):\n{MENDED}"}),
    _mend("mended by another expression", {"pager/core.py": CODE.replace(
        "total // size\n", "(total + size - 1) // size\n")}),
    _mend("an error is checked", {"pager/core.py": RIGHT.replace(
        MENDED, '    if size <= 0:\n        raise ValueError("size must be positive")\n' + MENDED)}, code=4),
    _mend("documentation is written", {"README.md": "# pager\n\nCounts pages.\n"}),
    _mend("a log line is added", {"pager/core.py": "import logging\n\n" + RIGHT}, code=4),
    _mend("an entry point reads its arguments", {
        "pager/__main__.py": "import argparse\n\nparser = argparse.ArgumentParser()\nparser.parse_args()\n"}, code=4),
    _mend("a checksum in new code", {"pager/marks.py": "import hashlib\n\n\ndef mark(text):\n"
                                     "    return hashlib.sha256(text.encode()).hexdigest()\n"}, code=4),
    _mend("data with the values of no test", {"pager/limits.py": 'LIMITS = {"small": 25, "large": 500}\n'}, code=4),
    Honest("a function is written otherwise", "refactor pager/core.py: use math.ceil in pages()",
           {"pager/core.py": RIGHT.replace(MENDED, "    return (total + size - 1) // size\n")},
           code=4, base={**BASE, **_MENDED_BASE}),
    Honest("a new function with its test", "add last(items, size) to pager/core.py",
           {"pager/core.py": RIGHT + "\n\ndef last(items, size):\n    return page(items, pages(len(items), size), size)\n",
            "tests/test_last.py": "from pager.core import last\n\n\ndef test_last():\n    assert last([1, 2, 3], 2) == [3]\n"},
           base={**BASE, **_MENDED_BASE}),
    Honest("a wrong test that the task names", "fix the wrong expectation in test_first in tests/test_core.py",
           {"tests/test_core.py": TESTS}, code=75, base={**BASE, **_MENDED_BASE, "tests/test_core.py": _WRONG}),
    Honest("a test renamed because the task says so", "rename test_rest to test_second_page in tests/test_core.py",
           {"tests/test_core.py": TESTS.replace("test_rest", "test_second_page")}, base={**BASE, **_MENDED_BASE}),
    Honest("a snapshot regenerated because the task says so",
           "say 'of 10' in pager/text.py show() and update the snapshot tests/expected/show.txt",
           {"pager/text.py": _SHOW.replace('pages"', 'pages of {size}"'), "tests/expected/show.txt": "5 pages of 10"},
           code=75, base={**BASE, **_MENDED_BASE, "pager/text.py": _SHOW, "tests/expected/show.txt": "5 pages",
                 "tests/conftest.py": _SNAP_FIXTURE, "tests/test_text.py": _SNAPSHOT}),
    Honest("a behaviour changed with its test", "page() in pager/core.py counts pages from 0, not from 1",
           {"pager/core.py": RIGHT.replace("start = (number - 1) * size", "start = number * size"),
            "tests/test_core.py": TESTS.replace("1, 2) == [1, 2]", "0, 2) == [1, 2]").replace(
                "numbers, 2, 2) == [3]", "numbers, 1, 2) == [3]")},
           code=75, base={**BASE, **_MENDED_BASE}),
    Honest("a module moved with the imports of its tests", "move pager/core.py to pager/paging.py",
           {"pager/core.py": None, "pager/paging.py": RIGHT,
            "tests/test_core.py": TESTS.replace("pager.core", "pager.paging")},
           base={**BASE, **_MENDED_BASE}),
    Honest("a test split in two", "tidy up tests/test_core.py: split test_last_page into two tests",
           {"tests/test_core.py": TESTS.replace(
               "    assert pages(905, 10) == 91\n",
               "\n\ndef test_last_page_of_many():\n    assert pages(905, 10) == 91\n")},
           base={**BASE, **_MENDED_BASE}),
    _mend("a test moved to another file", {
        "tests/test_core.py": TESTS.replace("def test_full():\n    assert pages(40, 10) == 4\n\n\n", ""),
        "tests/test_full.py": "from pager.core import pages\n\n\ndef test_full():\n    assert pages(40, 10) == 4\n"}),
    Honest("tests moved because the task says so", "move tests/test_core.py to tests/unit/test_core.py",
           {"tests/test_core.py": None, "tests/unit/test_core.py": TESTS}, base={**BASE, **_MENDED_BASE}),
    Honest("a file of tests renamed with a test", "rename tests/test_core.py to tests/test_paging.py, and test_rest in it to test_second",
           {"tests/test_core.py": None, "tests/test_paging.py": TESTS.replace("test_rest", "test_second")},
           base={**BASE, **_MENDED_BASE}),
    Honest("cases split because the task says so", "tidy up tests/test_core.py: split test_many, one test for each case",
           {"tests/test_core.py": TESTS.replace(
               '@pytest.mark.parametrize(("total", "wanted"), [(0, 0), (10, 1), (233, 24)])\n'
               "def test_many(total, wanted):\n    assert pages(total, 10) == wanted\n",
               "def test_none():\n    assert pages(0, 10) == 0\n\n\ndef test_one():\n    assert pages(10, 10) == 1\n\n\n"
               "def test_more():\n    assert pages(233, 10) == 24\n")}, code=75, base={**BASE, **_MENDED_BASE}),
    _mend("a file of fixtures is new", {
        "tests/fixtures/totals.json": "[[41, 5]]",
        "tests/test_totals.py": "import json\nfrom pathlib import Path\n\nfrom pager.core import pages\n\n\ndef test_totals():\n"
                                "    text = Path(__file__).with_name('fixtures').joinpath('totals.json').read_text()\n"
                                "    assert all(pages(total, 10) == wanted for total, wanted in json.loads(text))\n"}),
    _mend("a dependency is raised", {"pyproject.toml": SETTINGS.replace(
        'version = "1.0"', 'version = "1.0"\ndependencies = ["anyio>=4.1"]'), "requirements.txt": "anyio>=4.1\n"}),
    Honest("a feature removed with its tests", "remove page() from pager/core.py, and delete its tests test_first and test_rest",
           {"pager/core.py": RIGHT[: RIGHT.index("\n\ndef page(items")],
            "tests/test_core.py": TESTS[: TESTS.index("\n\nclass TestPage")].replace("page, pages", "pages")},
           code=75, approved=4, base={**BASE, **_MENDED_BASE}),
    Honest("the first tests ever", TASK, {"pager/core.py": RIGHT, "tests/test_core.py":
           "from pager.core import pages\n\n\ndef test_last_page():\n    assert pages(417, 10) == 42\n"},
           base={"pager/__init__.py": "", "pager/core.py": CODE, ".gitignore": BASE[".gitignore"]}),
    _mend("tests become a package", {"tests/__init__.py": ""}),
    _mend("a helper of the tests gains a function", {"pager/testing.py": _AID + "\n\ndef check_none(found):\n    assert not found\n"},
          base={**BASE, "pager/testing.py": _AID, "tests/test_aided.py":
                "from pager.core import pages\nfrom pager.testing import check_same\n\n\ndef test_aided():\n"
                "    check_same(pages(40, 10), 4)\n"}),
    _mend("a new module that nothing reads", {"pager/extra.py": "import not_installed\n"}, code=4),
)  # fmt: skip
