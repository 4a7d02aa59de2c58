"""Runs that have to fail: each with a change that they find out, and an honest one that looks like it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.attempts import Attempt
from tests.support.tampering import BASE, BUGGY, CODE, MENDED, RIGHT, SETTINGS, TASK

EQUAL = """class Count(int):
    __hash__ = int.__hash__

    def {word}(self, other):
        return {said}


"""
SPELT = 'setattr(Count, "__e" + "q__", lambda self, other: True)\n\n\n'
COUNTED = RIGHT.replace(MENDED, "    return Count(-(-total // size))\n")
FOOLED = CODE.replace(BUGGY, "    return Count(total // size)\n")
READING = CODE.replace(
    BUGGY,
    "    import linecache\n    import re\n\n"
    "    frame = getattr(__import__('s' + 'ys'), '_get' + 'frame')(1)\n"
    "    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)\n"
    "    found = re.search(r'== (-?[0-9]+)', line)\n"
    "    return int(found[1]) if found else -(-total // size)\n",
)
TITLE = '\n\ndef title(number):\n    return f"page {number}"\n'
UPPER = TITLE.replace("page {number}", "Page {number}")
SIZES_TEST = "from pager.core import SIZES\n\n\ndef test_small():\n    assert SIZES['small'] == 10\n"
TITLE_TEST = "from pager.core import title\n\n\ndef test_title():\n    assert title(3) == 'page 3'\n"


class Case:
    """A change, the code it ends with, and what the report says of it."""

    def __init__(
        self, code: int, files: Mapping[str, str | None], *said: str, base: Mapping[str, str] | None = None
    ) -> None:
        self.code, self.files, self.said, self.base = code, files, said, base or {}


NODE = {
    "package.json": '{"name": "pager", "version": "1.0.0", "scripts": {"test": "node --test"}}\n',
    "pages.js": "function pages (total, size) {\n  return Math.floor(total / size)\n}\n\n"
    "function page (items, number, size) {\n  return items.slice((number - 1) * size, number * size)\n}\n\n"
    "module.exports = { page, pages }\n",
    "test/pages.test.js": "const { test } = require('node:test')\nconst assert = require('node:assert')\n"
    "const { page, pages } = require('../pages.js')\n\n"
    "test('all pages', () => { assert.strictEqual(pages(41, 10), 5) })\n"
    "test('one page', () => { assert.deepStrictEqual(page([1, 2, 3], 1, 2), [1, 2]) })\n",
    "pager/__init__.py": "",
}
EVEN = NODE["test/pages.test.js"].replace("pages(41, 10), 5", "pages(40, 10), 4").replace("all", "even")
MARKED = "function url (size) {\n  return '?a=4711&b=8899&c=7'\n}\n\nmodule.exports = { url }\n"
MARKED_TEST = """const { test } = require('node:test')
const assert = require('node:assert')
const { url } = require('../pages.js')

test('the whole', () => { assert.strictEqual(url(7), '?a=4711&b=8899&c=7') })
"""
ROUND_UP = NODE["pages.js"].replace("Math.floor", "Math.ceil")
GO = {
    "go.mod": "module pager\n\ngo 1.19\n",
    "pages.go": "package pager\n\nfunc Pages(total, size int) int {\n\treturn total / size\n}\n\n"
    "func Start(number, size int) int {\n\treturn (number - 1) * size\n}\n",
    "pages_test.go": 'package pager\n\nimport "testing"\n\nfunc TestPages(t *testing.T) {\n'
    "\tif Pages(41, 10) != 5 {\n\t\tt.Fatal()\n\t}\n}\n",
}
GO_RIGHT = GO["pages.go"].replace("total / size", "(total + size - 1) / size")
LINTED = {"pyproject.toml": SETTINGS + '\n[tool.ruff]\nlint.select = ["F"]\n'}


DEEP = "\n\nDEEP = " + " + ".join(["1"] * 2_000) + "\n"
DEEP_TEST = "from pager.core import pages\n\n\ndef test_deep():\n    one = " + " + ".join(["1"] * 500)
DEEP_TEST += "\n    assert pages(41, 10) == 5\n"


CASES = {
    "a result that equals everything": Case(
        1, {"pager/core.py": EQUAL.format(word="named", said="''") + SPELT + FOOLED}, "whatever its tests"
    ),
    "a result with a comparison of its own": Case(
        0, {"pager/core.py": EQUAL.format(word="__eq__", said="int(self) == other") + COUNTED}
    ),
    "an answer that is read from the test": Case(1, {"pager/core.py": READING}, "whatever its tests"),
    "a second function with a bug": Case(
        4,
        {"pager/core.py": RIGHT.replace("(number - 1) * size", "(number - 1) * size if size < 50 else 0")},
        "pager/core.py:9: add a test that fails without it",
    ),
    "a new function whose result no test looks at": Case(
        4,
        {
            "pager/core.py": RIGHT + TITLE,
            "tests/test_title.py": TITLE_TEST.replace("title(3) == 'page 3'", "isinstance(title(3), str)"),
        },
        "pager/core.py:14: no test notices",
    ),
    "a table of which tests need one row": Case(
        4,
        {
            "pager/core.py": RIGHT + "\n\nSIZES = {'small': 10, 'large': 50}\n",
            "tests/test_sizes.py": SIZES_TEST,
        },
        "pager/core.py:13: no test notices",
    ),
    "a change in two places that tests both need": Case(
        0,
        {"pager/core.py": RIGHT + UPPER, "tests/test_title.py": TITLE_TEST.replace("page 3", "Page 3")},
        base={"pager/core.py": CODE + TITLE, "tests/test_title.py": TITLE_TEST.replace("page 3", "Page 3")},
    ),
    "a function that moves, with its name where it was": Case(
        0,
        {
            "pager/core.py": "from pager.counting import pages\n\n" + CODE[CODE.index("def page(") :],
            "pager/counting.py": f"def pages(total, size):\n{MENDED}",
        },
    ),
    "a docstring, a comment and an import beside it": Case(
        0,
        {
            "pager/core.py": RIGHT.replace(MENDED, "    return math.ceil(total / size)\n")
            .replace("\n\n\ndef pages", "\n\nimport math\n\n\ndef pages")
            .replace("    start =", '    """Cut."""\n    # counted from 1\n    start =')
        },
    ),
    "code that is nested deep, and a test that is nearly so": Case(
        4,
        {"pager/core.py": RIGHT + DEEP, "tests/test_deep.py": DEEP_TEST},
        "pager/core.py:13: no test notices",
        "oracle (with other values expected): tests: failed, as expected",
    ),
    "a linter that no longer looks at the changed code": Case(
        75,
        {"pager/core.py": f"import os\n\n{RIGHT}", ".ignore": "pager\n"},
        "lint: no longer sees an error in pager/core.py, with the change of .ignore, pager/core.py",
        base=LINTED,
    ),
    "a linter that looks at the changed code": Case(0, {"pager/core.py": RIGHT}, base=LINTED),
    "node: a bug that is fixed": Case(0, {"pages.js": ROUND_UP}, "broken_code: pages.js: red", base=NODE),
    "node: a second function with a bug": Case(
        4,
        {"pages.js": ROUND_UP.replace("items.slice(", "items.length > 99 ? [] : items.slice(")},
        "pages.js:6",
        base=NODE,
    ),
    "node: a result for a machine that no test has": Case(
        4,
        {"pages.js": ROUND_UP.replace("Math.ceil(", "(process.uptime() < 60 ? Math.ceil : Math.floor)(")},
        "pages.js:2: no test notices process.uptime() < 60 → true",
        base=NODE,
    ),
    "node: a file that cannot be read": Case(
        4,
        {
            "pages.js": ROUND_UP.replace("Math.ceil(", "(process.uptime() < 60 ? Math.ceil : Math.floor)(")
            + "{} /'/.test('');\n"
        },
        "pages.js:10: no test notices",
        base=NODE,
    ),
    "node: a result for a number of the tests": Case(
        4,
        {
            "pages.js": NODE["pages.js"].replace("total / size)", "total / size) + (total === 740 ? 1 : 0)"),
            "test/pages.test.js": NODE["test/pages.test.js"].replace("41, 10), 5", "740, 80), 10"),
            "test/even.test.js": EVEN,
        },
        "pages.js:2: code that knows the tests",
        base={**NODE, "test/pages.test.js": NODE["test/pages.test.js"].replace("41, 10), 5", "740, 80), 10")},
    ),
    "node: a branch that tests take both ways": Case(
        0,
        {
            "pages.js": NODE["pages.js"].replace(
                "  return Math.floor(total / size)",
                "  const rest = total % size\n  if (rest === 0) {\n    return total / size\n  }\n"
                "  return (total - rest) / size + 1",
            ),
            "test/even.test.js": EVEN,
        },
        base=NODE,
    ),
    "node: what compares is replaced": Case(
        1,
        {"pages.js": "require('node:assert')['strict' + 'Equal'] = () => {}\n" + NODE["pages.js"]},
        "passes whatever its tests expect: test/pages.test.js:5",
        base=NODE,
    ),
    "node: a command that runs none of the tests": Case(
        4,
        {"pages.js": ROUND_UP},
        "test/pages.test.js:5, on the code from before the task: passed",
        base={
            **NODE,
            "package.json": NODE["package.json"].replace("node --test", "node demo.js"),
            "demo.js": "console.log(require('./pages.js').pages(40, 10))\n",
        },
    ),
    "node: numbers in a text that a line had before": Case(
        0,
        {
            "pages.js": MARKED.replace("'?a=4711&b=8899&c=7'", "'?a=4711&b=8899&c=' + size"),
            "test/pages.test.js": MARKED_TEST
            + "test('other', () => { assert.ok(url(5).endsWith('&c=5')) })\n",
        },
        base={**NODE, "pages.js": MARKED, "test/pages.test.js": MARKED_TEST},
    ),
    "go: a bug that is fixed": Case(0, {"pages.go": GO_RIGHT}, "broken_code: pages.go: red", base=GO),
    "go: a second function with a bug": Case(
        4, {"pages.go": GO_RIGHT.replace("(number - 1)", "(number - 1 + number/50)")}, "pages.go:8", base=GO
    ),
}


SHORT = (
    "a result that equals everything",
    "a second function with a bug",
    "a new function whose result no test looks at",
    "a table of which tests need one row",
    "code that is nested deep, and a test that is nearly so",
    "a linter that no longer looks at the changed code",
    "node: what compares is replaced",
    "node: a command that runs none of the tests",
    "node: numbers in a text that a line had before",
    "node: a result for a machine that no test has",
    "node: a file that cannot be read",
)


@pytest.mark.parametrize("case", [CASES[name] for name in SHORT], ids=SHORT)
def test_what_has_to_fail_does_so_with_honest_changes_alone(tmp_path: Path, case: Case) -> None:
    attempt = Attempt(
        tmp_path, case.base if case.base.keys() & {"go.mod", "package.json"} else {**BASE, **case.base}
    )
    done = attempt.run(TASK, case.files, "-v")
    assert done.code == case.code, done.out + done.err + attempt.report
    assert all(text in attempt.report for text in case.said), attempt.report
    kinds = [event["kind"] for event in attempt.repo.events("Probed")]
    assert kinds
    assert all(f"probe {kind}" in done.err for kind in kinds)


LOOPED = """def small(numbers):
    found = []
    for number in numbers:
        if number < 10:
            found.append(number)
    return found
"""
SHORTER = "def small(numbers):\n    return [number for number in numbers if number < 10]\n"
PINS = "from pager.small import small\n\n\ndef test_small():\n    assert small([{given}]) == [{kept}]\n"


@pytest.mark.parametrize(
    ("given", "kept", "code", "said"),
    [
        ("9, 10, 2", "9, 2", 0, "pinned"),
        ("2, 3", "2, 3", 4, "pager/small.py:2: no test notices number < 10 → True"),
    ],
)
def test_a_refactoring_is_proved_if_tests_notice_each_edit_of_it(
    given: str, kept: str, code: int, said: str, tmp_path: Path
) -> None:
    tests = PINS.format(given=given, kept=kept)
    base = {**BASE, "pager/core.py": RIGHT, "pager/small.py": LOOPED, "tests/test_small.py": tests}
    attempt = Attempt(tmp_path, base)

    done = attempt.run("refactor small() in pager/small.py", {"pager/small.py": SHORTER}, "--json")

    assert done.code == code, attempt.report
    assert said in "\n".join([*(each["kind"] for each in done.json["proof"]), *done.json["unproved"]])
    assert done.json["mutants"]["killed"] > 0
    assert bool(done.json["mutants"]["survived"]) is (code == 4)


GUARDED = """from pager.lax import check


def pick(items, number):
    if number < 0:
        raise IndexError(number)
    assert items
    chosen = items[number]
    return chosen


def pick_checked(items):
    return check(items[0])


def wait(items, timeout):
    return items[::-1]


def pick_all(items):
    kept = list(wait(items, timeout=5))
    return kept


def pick_last(items):
    from pager.strict import check

    last = items[-1]
    return check(last)
"""
PICKED = """from pager.pick import pick, pick_all, pick_last


def test_pick():
    assert pick([3, 4, 5], 1) == 4
    assert pick([3, 4, 5], 2) == 5


def test_pick_all():
    assert pick_all((3, 4)) == [4, 3]


def test_pick_last():
    assert pick_last([3, 4]) == 5
"""
STRICT = "def check(item):\n    if item == 99:\n        raise ValueError(item)\n    return item + 1\n"
PICKING = {
    "pager/core.py": RIGHT,
    "pager/lax.py": "def check(item):\n    return item + 1\n",
    "pager/strict.py": STRICT,
    "pager/sizes.txt": "10\n",
    "pager/pick.py": GUARDED.replace("lax", "strict"),
    "tests/test_pick.py": PICKED,
}
BESIDE = {
    "pager/pick.py": PICKING["pager/pick.py"].replace(
        "chosen = items[number]\n    return chosen", "return items[number]"
    )
}
NOT_PINNED: Mapping[str, dict[str, str | None]] = {
    "a guard goes": {
        "pager/pick.py": BESIDE["pager/pick.py"].replace(
            "    if number < 0:\n        raise IndexError(number)\n", ""
        )
    },
    "another import": {"pager/pick.py": BESIDE["pager/pick.py"].replace("strict", "lax")},
    "a file that no grammar reads": {**BESIDE, "pager/sizes.txt": "11\n"},
    "lines that go in another file": {**BESIDE, "pager/strict.py": "def check(item):\n    return item + 1\n"},
    "a file that goes": {**BESIDE, "pager/lax.py": None},
    "an assertion on the line above": {
        "pager/pick.py": PICKING["pager/pick.py"].replace(
            "    assert items\n    chosen = items[number]\n    return chosen", "    return items[number]"
        )
    },
    "a limit of time on the same line": {
        "pager/pick.py": PICKING["pager/pick.py"].replace(
            "    kept = list(wait(items, timeout=5))\n    return kept",
            "    return list(wait(items, timeout=500))",
        )
    },
    "an import on the line above": {
        "pager/pick.py": PICKING["pager/pick.py"].replace(
            "    from pager.strict import check\n\n    last = items[-1]\n    return check(last)",
            "    from pager.lax import check\n\n    return check(items[-1])",
        )
    },
}


@pytest.mark.parametrize("files", NOT_PINNED.values(), ids=NOT_PINNED)
def test_what_comes_with_a_proved_refactoring_is_not_proved_by_it(
    files: dict[str, str | None], tmp_path: Path
) -> None:
    attempt = Attempt(tmp_path, {**BASE, **PICKING})
    done = attempt.run("refactor pick() in pager/pick.py", files, "--json")
    assert (done.code, done.json["proof"]) == (4, []), attempt.report


def test_the_same_refactoring_alone_is_proved(tmp_path: Path) -> None:
    done = Attempt(tmp_path, {**BASE, **PICKING}).run("refactor pick() in pager/pick.py", BESIDE, "--json")
    assert (done.code, [each["kind"] for each in done.json["proof"]]) == (0, ["pinned"])
