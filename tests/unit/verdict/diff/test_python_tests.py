"""The tests that changed are known by name."""

import pytest

from agentflow.verdict.diff.python_tests import find_changed_tests, find_moved_tests, has_only_lost_functions

KEPT = "LIMIT = 3\n\n\ndef good(x):\n    assert x\n\n\ndef test_a():\n    good(f())\n"


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("", "def test_a():\n    assert f()\n", {"test_a"}),
        ("", "LIMIT = 3\n\n\ndef test_a():\n    assert f() < LIMIT\n", {"test_a"}),
        (KEPT, f"import g\n{KEPT}\n\ndef test_b():\n    assert g()\n", {"test_b"}),
        (KEPT, KEPT.replace("good(f())", "good(f())\n    assert g()"), {"test_a"}),
        (KEPT, f"# said\n{KEPT}", set()),
        (
            "class A(B):\n    def test_a(self):\n        self.assertTrue(f())\n",
            (
                "class A(B):\n    def test_b(self):\n        self.assertTrue(g())\n\n"
                "    def test_a(self):\n        self.assertTrue(f())\n"
            ),
            {"test_b"},
        ),
        ("def test_a():\n    assert f()\n", "def test_b():\n    assert f()\n", {"test_b"}),
    ],
)
def test_the_tests_that_changed_are_named(before: str, after: str, names: set[str]) -> None:
    assert find_changed_tests(before, after) == names


NEW = "\n\ndef test_b():\n    assert g()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (KEPT, KEPT.replace("assert x", "pass") + NEW),
        (KEPT, KEPT.replace("LIMIT = 3", "LIMIT = 4") + NEW),
        (KEPT, KEPT + "\n\npytestmark = skip\n" + NEW),
        (KEPT, KEPT + "\n\ndef test_b():\n    g()\n"),
        (KEPT, KEPT + "\n\nclass A(B):\n    x = 1\n\n    def test_b(self):\n        assert g()\n"),
        (
            "class A(B):\n    def test_a(self):\n        assert f()\n",
            (
                "class A(C):\n    def test_a(self):\n        assert f()\n\n"
                "    def test_b(self):\n        assert g()\n"
            ),
        ),
        (KEPT, "def test_a(: pass\n"),
        ("def test_a(: pass\n", KEPT),
    ],
)
def test_tests_beside_another_change_are_not_named(before: str, after: str) -> None:
    assert find_changed_tests(before, after) == frozenset()


ONE = "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n):\n    assert n\n"
FILE, OTHER = "tests/test_x.py", "tests/unit/test_y.py"


def test_a_test_in_another_file_goes_on() -> None:
    lost, news = {f"{FILE}::test_a[1]", f"{FILE}::test_a[2]"}, {f"{OTHER}::test_a[1]", f"{OTHER}::test_a[2]"}
    assert find_moved_tests(lost, news, [(ONE, ""), ("", ONE)]) == lost


def test_a_test_of_another_name_goes_on() -> None:
    after = ONE.replace("test_a", "test_b")
    assert find_moved_tests({"tests.X.test_a"}, {"tests.X.test_b"}, [(ONE, after)]) == {"tests.X.test_a"}


def test_one_that_says_something_else_does_not() -> None:
    for other in ("    assert n or True\n", "    pass\n"):
        after = ONE.replace("    assert n\n", other)
        assert (
            find_moved_tests({f"{FILE}::test_a[1]"}, {f"{OTHER}::test_a[1]"}, [(ONE, ""), ("", after)])
            == frozenset()
        )


def test_a_case_that_is_gone_does_not() -> None:
    after = ONE.replace("test_a", "test_b")
    lost, news = {f"{FILE}::test_a[1]", f"{FILE}::test_a[2]"}, {f"{FILE}::test_b[1]"}
    assert find_moved_tests(lost, news, [(ONE, after)]) == {f"{FILE}::test_a[1]"}


def test_a_new_test_takes_the_place_of_one_only() -> None:
    before = ONE + ONE.replace("test_a", "test_c")
    lost = {f"{FILE}::test_a[1]", f"{FILE}::test_c[1]"}
    after = ONE.replace("test_a", "test_b")
    assert len(find_moved_tests(lost, {f"{FILE}::test_b[1]"}, [(before, after)])) == 1


@pytest.mark.parametrize(
    ("after", "is_all"),
    [
        (KEPT.replace(KEPT[KEPT.index("def test_a") :], ""), True),
        (KEPT.replace("LIMIT = 3\n", "from g import h\n\nLIMIT = 3\n").split("def test_a")[0], True),
        (KEPT.split("def test_a", maxsplit=1)[0].replace("LIMIT = 3", "LIMIT = 4"), False),
        (KEPT.split("def test_a", maxsplit=1)[0].replace("assert x", "pass"), False),
        (f"# said\n{KEPT}", False),
        (f"{KEPT}{NEW}", False),
        ("def", False),
    ],
)
def test_a_file_that_only_loses_functions_is_told_from_others(after: str, is_all: bool) -> None:
    assert has_only_lost_functions(KEPT, after) is is_all
