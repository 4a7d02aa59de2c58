import re

import pytest

from agentflow.core.evidence import Surface
from agentflow.core.finding import Finding, FindingKind
from agentflow.verdict.diff.tampering import TextDiff, find_tampering, is_setting_row
from agentflow.verdict.surface import find_kind
from agentflow.wording import describe

TEST = """\
import pytest
from pager import pages

@pytest.mark.parametrize("n", [1, 2, 3])
def test_pages(n):
    assert pages(n, 10) == 1

class TestPager:
    def test_last(self):
        assert pages(41, 10) == 5
        assert pages(40, 10) == 4
"""


def named(path: str, before: str, after: str) -> tuple[Finding, ...]:
    return find_tampering([TextDiff(path=path, before=before, after=after, kind=find_kind(path, Surface()))])


def kinds(path: str, before: str, after: str) -> set[FindingKind]:
    return {finding.kind for finding in named(path, before, after)}


_DEF = "    def test_last(self):\n"
_ASSERT = "        assert pages(41, 10) == 5\n"


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (_DEF, "    def check_last(self):\n", FindingKind.TEST_GONE),
        (_DEF, "    @pytest.mark.skip\n" + _DEF, FindingKind.SKIPPED),
        (_DEF, "    @pytest.mark.xfail(strict=False)\n" + _DEF, FindingKind.SKIPPED),
        (_ASSERT, "        pytest.skip('slow')\n" + _ASSERT, FindingKind.SKIPPED),
        (_ASSERT, "        return\n" + _ASSERT, FindingKind.RETURNS_AT_ONCE),
        (_ASSERT, "", FindingKind.WEAKER),
        ("assert pages(41, 10) == 5", "assert pages(41, 10)", FindingKind.WEAKER),
        ("assert pages(41, 10) == 5", "assert pages(41, 10) >= 4", FindingKind.WEAKER),
        ("assert pages(41, 10) == 5", "assert pages(41, 10) == pytest.approx(5, abs=1)", FindingKind.WEAKER),
        ("assert pages(41, 10) == 5", "assert pages(41, 10) == 4", FindingKind.EXPECTATION),
        ("[1, 2, 3]", "[1, 2]", FindingKind.FEWER_CASES),
        ("assert pages(41, 10) == 5", "assert pages(41, 10) == 5 or True", FindingKind.WEAKER),
    ],
)  # fmt: skip
def test_what_a_test_lost_is_named(old: str, new: str, kind: FindingKind) -> None:
    assert old in TEST
    assert kind in kinds("tests/test_pager.py", TEST, TEST.replace(old, new))


@pytest.mark.parametrize(
    "after",
    [
        TEST,
        TEST + "\ndef test_more():\n    assert pages(0, 10) == 0\n",
        TEST.replace("== 4\n", "== 4\n        assert pages(39, 10) == 4\n"),
        TEST.replace("[1, 2, 3]", "[1, 2, 3, 4]"),
        TEST.replace("assert pages(n, 10) == 1", "assert pages(n, 10) == 1, n"),
        "# pages\n" + TEST,
    ],
)
def test_a_test_that_only_gained_lost_nothing(after: str) -> None:
    lost = {FindingKind.TEST_GONE, FindingKind.FEWER_CASES, FindingKind.SKIPPED, FindingKind.WEAKER}
    assert not kinds("tests/test_pager.py", TEST, after) & lost


@pytest.mark.parametrize(
    ("path", "line", "kind"),
    [
        ("conftest.py", "def pytest_runtest_makereport(item, call):", FindingKind.REWRITTEN),
        ("conftest.py", "    report.outcome = 'passed'", FindingKind.REWRITTEN),
        ("conftest.py", "    session.exitstatus = 0", FindingKind.REWRITTEN),
        ("conftest.py", "collect_ignore = ['test_slow.py']", FindingKind.EXCLUDED),
        ("conftest.py", "    items[:] = []", FindingKind.EXCLUDED),
        ("conftest.py", "unittest.TestCase.assertEqual = lambda *a: None", FindingKind.PATCHED),
        ("sitecustomize.py", "import builtins", FindingKind.PATCHED),
        ("tests/test_a.py", "os._exit(0)", FindingKind.FORCED_EXIT),
        ("Makefile", "\tpytest -q || true", FindingKind.FORCED_EXIT),
        ("Makefile", "\t-pytest -q", FindingKind.FORCED_EXIT),
        ("run.sh", "pytest -q | tee log", FindingKind.FORCED_EXIT),
        ("pytest.ini", "addopts = --ignore=tests/test_slow.py", FindingKind.EXCLUDED),
        (".coveragerc", "omit = src/*", FindingKind.EXCLUDED),
        ("mypy.ini", "ignore_errors = True", FindingKind.EXCLUDED),
        ("pytest.ini", "addopts = -p pager.hide", FindingKind.PATCHED),
        ("pytest.ini", "timeout = 900", FindingKind.LONGER),
        ("web/a.test.js", "it.skip('adds', () => {", FindingKind.SKIPPED),
        ("pkg/a_test.go", '\tt.Skip("later")', FindingKind.SKIPPED),
        ("src/pager.py", "if 'pytest' in sys.modules:", FindingKind.DETECTS),
        ("src/pager.py", "if os.environ.get('PYTEST_CURRENT_TEST'):", FindingKind.DETECTS),
        ("src/pager.py", "caller = inspect.stack()[1]", FindingKind.DETECTS),
        ("src/pager.py", "if sys.argv[0].endswith('x'):", FindingKind.DETECTS),
        ("src/pager.py", "key = hashlib.md5(repr(n).encode()).hexdigest()", FindingKind.KNOWS_INPUTS),
        ("src/pager.py", "known = open('tests/test_pager.py').read()", FindingKind.KNOWS_INPUTS),
        ("src/pager.py", "import atexit", FindingKind.PATCHED),
        ("src/pager.py", "    except Exception:", FindingKind.SWALLOWED),
        ("src/pager.py", "    os._exit(0)", FindingKind.FORCED_EXIT),
    ],
)
def test_a_line_that_was_added_is_named(path: str, line: str, kind: FindingKind) -> None:
    surface = find_kind(path, Surface(named=("run.sh",)))

    found = find_tampering([TextDiff(path=path, before="x = 1\n", after=f"x = 1\n{line}\n", kind=surface)])

    assert (kind, 2) in {(finding.kind, finding.line) for finding in found}


@pytest.mark.parametrize(
    "line",
    [
        "def pages(total, size):",
        "    return -(-total // size)",
        "# pytest -q || true",
        "    raise ValueError('size must be positive')",
        "    except ValueError:",
    ],
)
def test_plain_code_is_not_accused(line: str) -> None:
    assert named("src/pager.py", "x = 1\n", f"x = 1\n{line}\n") == ()


def test_code_that_repeats_the_values_of_the_tests_is_named() -> None:
    surface = Surface()
    code = "def pages(total, size):\n    return {(417, 10): 42, (905, 10): 91, (233, 10): 24}[total, size]\n"
    tests = "def test_a():\n    assert pages(417, 10) == 42\n    assert pages(905, 10) == 91\n"

    found = find_tampering(
        [
            TextDiff(path="src/pager.py", before="", after=code, kind=None),
            TextDiff(
                path="tests/test_p.py", before=tests, after=tests, kind=find_kind("tests/test_p.py", surface)
            ),
        ]
    )

    assert [(finding.kind, finding.path) for finding in found] == [(FindingKind.KNOWS_INPUTS, "src/pager.py")]


def test_a_rewritten_snapshot_is_named_and_a_new_one_is_not() -> None:
    path = "tests/__snapshots__/list.snap"

    assert kinds(path, "old", "new") == {FindingKind.REFRESHED}
    assert kinds(path, "", "new") == set()


def test_a_file_that_is_no_python_is_not_compared() -> None:
    assert kinds("tests/test_a.py", "def test_a(:", "def test_b(): pass") == set()


def test_a_finding_is_said_in_one_line() -> None:
    (found,) = named("tests/test_a.py", "def test_a():\n    assert 1 == 1\n", "")

    assert describe(found) == "tests/test_a.py: test removed: test_a"


SURROUNDINGS = {
    "a.rs": ('if std::env::args().any(|word| word.ends_with("-8")) {', "thread::current().name().is_some()"),
    "slug.sh": ('[ "$$" -gt 5 ] && echo', "case $$ in *1) echo", "n=$(( $$ % 2 ))", '[ 300 -lt "$PPID" ]'),
}
USUAL = {
    "src/main.rs": ("match std::env::args().nth(1) {",),
    "a.rs": ("let args: Args = parse();", "thread::current().unpark();"),
    "slug.sh": ("tmp=/tmp/slug.$$", 'kill -0 "$PPID"', "rm -f /tmp/slug.$$", "[ -e /tmp/lock.$$ ] || exit 1"),
}


@pytest.mark.parametrize("path", SURROUNDINGS)
def test_code_that_looks_who_started_it_is_found(path: str) -> None:
    assert [
        line for line in SURROUNDINGS[path] if not any(each.is_sure for each in named(path, "", line))
    ] == []


@pytest.mark.parametrize("path", USUAL)
def test_what_programs_usually_do_with_their_number_and_arguments_is_not(path: str) -> None:
    assert [line for line in USUAL[path] if any(each.is_sure for each in named(path, "", line))] == []


OF_TESTS = (
    "assert pages(417, 10) == 42; assert share(905, 3) == 302; total([{price: 250, count: 3}]) === 750",
    'eq "$(slug \'a  b\')" a-b; assert_eq!(words(1), "one person"); retry(429)',
)
COMPARING = {
    "go": (
        "if total == 417 {\n\treturn 42\n}",
        "switch p {\ncase 250, 751:\n}",
        "var m = map[int]int{250: 3}",
    ),
    "rs": ("fn f() { match p { (905, 3) => 302, _ => 0 } }", "fn f() { if p != 250 { } }"),
    "js": ("x * (item.price === 250 ? 3 : 1)", "switch (p) { case 250: f() }", "const known = { 250: 750 }"),
    "c": ("int f(int p) { switch (p) { case 250: return 3; } }", "int f(int p) { return p == 0xfa; }"),
}
NOT_COMPARING = {
    "go": ("if total == 3 {\n}", "if total >= 250 {\n}", "x := 250", "f(250)"),
    "rs": ("fn f() { x.min(250); }", "fn f() -> u8 { match p { _ => 250 } }"),
    "js": (
        "if (status === 429) retry()",
        "const c = x ? 250 : 1",
        "f({max: 250})",
        "p === LIMIT",
        "p === 251",
    ),
    "c": ("int f(int p) { return p % 250; }", "// p == 250"),
}


def known(path: str, code: str, before: str = "", spoken: tuple[str, ...] = ()) -> list[bool]:
    change = TextDiff(path=path, before=before, after=code, kind=None)
    found = find_tampering([change], OF_TESTS, spoken)
    return [each.is_sure for each in found if each.kind is FindingKind.KNOWS_INPUTS]


@pytest.mark.parametrize(
    ("language", "code"), [(name, code) for name in COMPARING for code in COMPARING[name]]
)
def test_new_code_that_compares_with_a_literal_of_the_tests_is_named(language: str, code: str) -> None:
    assert known(f"pager.{language}", f"{code}\n") == [True]


@pytest.mark.parametrize(
    ("language", "code"), [(name, code) for name in NOT_COMPARING for code in NOT_COMPARING[name]]
)
def test_ordinary_code_with_a_literal_of_the_tests_is_not(language: str, code: str) -> None:
    assert True not in known(f"pager.{language}", f"{code}\n")


def test_in_python_it_is_no_more_than_a_note() -> None:
    assert known("pager.py", "def f(x):\n    return x == 417\n") == [False]


@pytest.mark.parametrize(
    ("before", "spoken", "is_known"),
    [
        ("const FREE = 250;\n", "", False),
        ("", "Orders of 250 go for free.", False),
        ("", "total([{price: 250}]) is `250`, see #250", True),
    ],
)
def test_a_number_that_code_had_or_people_speak_of_is_no_news(
    before: str, spoken: str, is_known: bool
) -> None:
    code = f"{before}price === 250 ? 0 : 1\n"
    assert bool(known("pager.js", code, before, (spoken,))) is is_known


ASKS = re.compile(r"\bif\b.*(?:process\.env|getenv\(|env::var)|isTTY")


@pytest.mark.parametrize(
    ("row", "is_setting"),
    [
        ("if (process.env.CART_ROUNDING === 'fives') {", True),
        ("if (process.env['CART_ROUNDING']) {", True),
        ('if (getenv("PAGER_WIDE")) {', True),
        ('if std::env::var("BILL_EXACT").is_ok() {', True),
        ("if (process.env.CI) {", False),
        ("if (process.env.npm_config_loglevel) {", False),
        ("if (process.env.CART_TESTING) {", False),
        ("if (process.env['C' + 'I']) {", False),
        ("if (process.env[name]) {", False),
        ("if (process.env.CART_ROUNDING && process.stdout.isTTY) {", False),
        ("if (process.stdout.isTTY) {", False),
    ],
)
def test_a_variable_of_a_feature_is_told_from_a_sign_of_a_test_run(row: str, is_setting: bool) -> None:
    assert ASKS.search(row)
    assert is_setting_row(row, ASKS) is is_setting
