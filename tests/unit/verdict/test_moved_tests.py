from agentflow.verdict.moved_tests import moved_tests

ONE = "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n):\n    assert n\n"
FILE, OTHER = "tests/test_x.py", "tests/unit/test_y.py"


def test_a_test_in_another_file_goes_on() -> None:
    lost, news = {f"{FILE}::test_a[1]", f"{FILE}::test_a[2]"}, {f"{OTHER}::test_a[1]", f"{OTHER}::test_a[2]"}
    assert moved_tests(lost, news, [(ONE, ""), ("", ONE)]) == lost


def test_a_test_of_another_name_goes_on() -> None:
    after = ONE.replace("test_a", "test_b")
    assert moved_tests({"tests.X.test_a"}, {"tests.X.test_b"}, [(ONE, after)]) == {"tests.X.test_a"}


def test_one_that_says_something_else_does_not() -> None:
    for other in ("    assert n or True\n", "    pass\n"):
        after = ONE.replace("    assert n\n", other)
        assert (
            moved_tests({f"{FILE}::test_a[1]"}, {f"{OTHER}::test_a[1]"}, [(ONE, ""), ("", after)])
            == frozenset()
        )


def test_a_case_that_is_gone_does_not() -> None:
    after = ONE.replace("test_a", "test_b")
    lost, news = {f"{FILE}::test_a[1]", f"{FILE}::test_a[2]"}, {f"{FILE}::test_b[1]"}
    assert moved_tests(lost, news, [(ONE, after)]) == {f"{FILE}::test_a[1]"}


def test_a_new_test_takes_the_place_of_one_only() -> None:
    before = ONE + ONE.replace("test_a", "test_c")
    lost = {f"{FILE}::test_a[1]", f"{FILE}::test_c[1]"}
    after = ONE.replace("test_a", "test_b")
    assert len(moved_tests(lost, {f"{FILE}::test_b[1]"}, [(before, after)])) == 1
